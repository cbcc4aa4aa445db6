"""A calibration from targets to results: arms against themselves, then slowdowns that were planted and must be found.

Everything runs as a matrix's jobs do: the same schedule, the same executor, the same rule, the same journal. Only the
arms are alike, or the candidate was made slower by a known share.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, stdev
from types import TracebackType
from typing import Self, TypeAlias

from harness.domain.case import Case, ContrastCheck, Expectation
from harness.domain.cell import Cell, cell_of
from harness.domain.errors import BadInput, Infrastructure
from harness.domain.failure import FailureKind
from harness.domain.job import Design, Job
from harness.domain.measurement import ProcessRun
from harness.domain.node import ANY_CLASS, NodeClass, NodeFacts
from harness.domain.policy import Policy
from harness.domain.spread import Spread
from harness.domain.words import Kind
from harness.domain.workload import Timed
from harness.execution.dispatch import Dispatcher
from harness.execution.events import JobEvent
from harness.execution.local import LocalExecutor
from harness.execution.node import probe_node
from harness.judging import quads
from harness.judging.budget import ASSUMED_QUAD_SD, Pace
from harness.judging.calibration import FEWEST_QUADS, Alike, faults, judge_alike
from harness.judging.judge import judge
from harness.judging.record import JobRecord
from harness.judging.samples import Implausible, NothingKept
from harness.judging.sequential import Limits
from harness.judging.throughput import limits_of
from harness.reporting.journal import JournalWriter, RunInfo
from harness.running.calibration import Calibration, CellResult, Plant, Target
from harness.running.calibration_needs import ALIKE_SHARE, Measured
from harness.running.calibration_plants import PlannedPlant, plants_for
from harness.running.calibration_stops import CalibrationStops
from harness.running.known_spreads import lookup_exact
from harness.running.records import Records
from harness.running.spread_file import Record, SpreadFile, change_spreads

Watch: TypeAlias = Callable[[str, JobEvent | None], None]

_MOST_QUADS = 500
_NS = 1e-9
_OWN = "this calibration"
_ANYWHERE = NodeClass(ANY_CLASS)
_CHECK = ContrastCheck("calibration", "calibration", Expectation.NO_REGRESSION)


@dataclass(frozen=True, slots=True)
class Settings:
    """How a calibration is made.

    Attributes:
        minutes: How long it may take, models and burn-in not counted.
        design: How often things are repeated, as in the matrix.
        policy: How strictly is judged, as in the matrix.
        reports: Folder of its journal.
        store: File of known spreads.
        fresh: Forget what earlier calibrations found.
    """

    minutes: float
    design: Design
    policy: Policy
    reports: Path
    store: Path
    fresh: bool = False


class Calibrator:
    """Runs one calibration on this node. A context manager: whatever happens, no process is left.

    Args:
        targets: What is calibrated.
        settings: How.
        watch: Called with what is being done and each event, and with ``None`` while nothing happens.

    Raises:
        Infrastructure: ``E-niceness`` where this process does not run at the normal priority; if the journal or the
            file of known spreads cannot be written, which is tried before anything is measured.
        BadInput: If that file can't be read.
    """

    def __init__(self, targets: Sequence[Target], settings: Settings, watch: Watch = lambda _, __: None) -> None:
        self._targets = targets
        self._settings = settings
        self._watch = watch
        self._node = _calm_node()
        self._known = change_spreads(settings.store, lambda file: file)
        self._journal = JournalWriter(settings.reports)
        self._records = Records(self._journal)
        self._dispatcher = Dispatcher(lambda: LocalExecutor(CalibrationStops(settings.policy)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._dispatcher.close()
        self._journal.close()

    def run(self) -> Calibration:
        """Calibrate target after target; each one's cells are in the file before the next one begins.

        Raises:
            BadInput: If a build or model is not there.
            Infrastructure: If jobs can't be run, or files not written.
        """
        when, began = datetime.now(UTC), time.monotonic()
        self._journal.run_started(RunInfo("calibration", "local", 0, policy=self._settings.policy))
        cells: list[CellResult] = []
        for target in self._targets:
            results, records = self._calibrate(target, when)
            self._store(records)
            cells += results
        self._journal.run_finished()
        return Calibration(self._node, when, time.monotonic() - began, tuple(cells))

    # ---- one target --------------------------------------------------------------------------------------------------

    def _calibrate(self, target: Target, when: datetime) -> tuple[list[CellResult], dict[Cell, Record]]:
        minutes = self._settings.minutes / len(self._targets)
        alike_job = self._job(target, minutes * ALIKE_SHARE, blocks=quads.BLOCKS * _MOST_QUADS)
        record = self._run(alike_job, f"{target.arm.label} against itself")
        results = {load: self._alike(target, load, record) for load in target.workloads}
        sound = [load for load, result in results.items() if result.alike]
        alike = {load.name: found for load, result in results.items() if (found := result.alike)}
        planned = plants_for(target, sound, self._node)
        for plant in planned:
            share = minutes * (1 - ALIKE_SHARE) / len(planned)
            for load, planted in self._plant(target, plant, alike, share, record).items():
                results[load] = replace(results[load], plants=(*results[load].plants, planted))
        proven = all(result.word == "fine" for result in results.values())
        needed = None if proven else self._minutes_needed(target, list(results.values()), minutes, record)
        judged = [_with_faults(_with_needed(result, needed)) for result in results.values()]
        stored = {
            result.cell: _record(when, result, found, load, record)
            for load, result in zip(target.workloads, judged, strict=True)
            if (found := result.alike)
        }
        return judged, stored

    def _alike(self, target: Target, load: Timed, record: JobRecord) -> CellResult:
        cell = cell_of(target.arm, load.name)
        earlier = None if self._settings.fresh else lookup_exact(self._known, self._node, cell)
        trouble = _trouble(record)
        log_ratios: tuple[float, ...] = ()
        try:
            log_ratios = () if trouble else _log_ratios(record, load, self._settings.policy)
        except (Implausible, NothingKept) as error:
            trouble = f"{error}"
        alike = judge_alike(load.name, log_ratios, self._limits(target, load, log_ratios))
        if alike is None and not trouble:
            trouble = f"{len(log_ratios)} of the {FEWEST_QUADS} quads that it takes fit in the time"
        runs = [run for run in record.runs if run.samples_of(load.name)]
        loads = [run.load_s for run in runs if run.load_s is not None]
        return CellResult(
            cell=cell,
            alike=alike,
            process_s=fmean(run.wall_s for run in runs) if runs else 0.0,
            load_s=fmean(loads) if loads else None,
            earlier=earlier,
            trouble=trouble,
        )

    def _plant(
        self, target: Target, plant: PlannedPlant, alike: Mapping[str, Alike], minutes: float, record: JobRecord
    ) -> dict[Timed, Plant]:
        """Plant one slowdown and let the judge look for it."""
        spreads = tuple(Spread(name, found.quad_sd, found.quads - 1.0, _OWN) for name, found in alike.items())
        job = plant.job(replace(self._job(target, minutes), spreads=spreads))
        highest = [
            (replace(each, quad_sd=alike[each.workload].sd_high), limits_of(self._settings.policy, job, each.workload))
            for each in spreads
        ]

        def fitting(loss: float) -> int:
            return min(job.design.blocks // quads.BLOCKS, _pace(record, loss).quads(minutes))

        loss = plant.loss_for(highest, fitting)
        if loss is None:
            reason = f"no loss is sure to be found within the {fitting(0.0)} quads that fit"
            return {
                load: Plant(plant.what(None), None, plant.required(load), None, None, reason) for load in plant.loads
            }
        record = self._run(plant.slowed(job, loss), f"{target.arm.label} with {plant.what(loss)}")
        return {load: self._found(record, plant, load, loss) for load in plant.loads}

    def _minutes_needed(
        self, target: Target, results: Sequence[CellResult], minutes: float, record: JobRecord
    ) -> float | None:
        """Of the whole calibration, if every target were as this one; ``None`` where no time would do."""
        if _trouble(record) or not record.runs:
            return None
        loads = dict(zip((load.name for load in target.workloads), results, strict=True))
        found = {name: result.alike or result.earlier for name, result in loads.items()}
        sds = {name: spread.quad_sd if spread else ASSUMED_QUAD_SD for name, spread in found.items()}
        job = self._job(target, 0.0)
        known = replace(job, spreads=tuple(Spread(name, sd, FEWEST_QUADS - 1.0, _OWN) for name, sd in sds.items()))
        measured = Measured(
            quad_sds=sds,
            limits={name: limits_of(self._settings.policy, known, name) for name in sds},
            pace=lambda loss: _pace(record, loss),
            plants=plants_for(target, target.workloads, self._node),
            most_quads=job.design.blocks // quads.BLOCKS,
        )
        own = measured.minutes(minutes)
        return None if own is None else own * len(self._targets)

    def _found(self, record: JobRecord, plant: PlannedPlant, load: Timed, loss: float) -> Plant:
        case = Case(Kind.THROUGHPUT, record.job.arms, load, _ANYWHERE, _CHECK)
        verdict = judge(case, record, self._settings.policy)
        known = loss if plant.sleeps else None
        word, ratio = verdict.throughput, verdict.estimate
        return Plant(plant.what(loss), known, plant.required(load), word, ratio, verdict.reason)

    # ---- running -----------------------------------------------------------------------------------------------------

    def _job(self, target: Target, minutes: float, blocks: int | None = None) -> Job:
        design = replace(self._settings.design, minutes=minutes, calibration=True)
        design = replace(design, blocks=blocks or design.blocks)
        return Job((target.arm, target.arm), target.workloads, None, _ANYWHERE, design, cases=())

    def _limits(self, target: Target, load: Timed, log_ratios: Sequence[float]) -> Limits:
        """The matrix's, with the margin that follows from the scatter where it goes by that."""
        job = self._job(target, 0.0)
        if len(log_ratios) >= FEWEST_QUADS:
            found = Spread(load.name, stdev(log_ratios), len(log_ratios) - 1.0, _OWN)
            job = replace(job, spreads=(found,))
        return limits_of(self._settings.policy, job, load.name)

    def _run(self, job: Job, doing: str) -> JobRecord:
        self._journal.job_submitted(job)
        self._records.add([job])
        self._dispatcher.add([job])
        for event in self._dispatcher.events():
            if event is not None:
                self._records.take(event)
            self._watch(doing, event)
        record = self._records.close(job.id)
        if record.failure and record.failure.kind is FailureKind.INPUT_MISSING:
            raise BadInput(record.failure.slug, record.failure.message)
        return record

    def _store(self, records: dict[Cell, Record]) -> None:
        def change(file: SpreadFile) -> SpreadFile:
            for cell, record in records.items():
                file = file.with_record(self._node, cell, record, fresh=self._settings.fresh)
            return file

        if records:
            change_spreads(self._settings.store, change)


def _calm_node() -> NodeFacts:
    node = probe_node()
    if node.niceness:
        message = f"this process runs at niceness {node.niceness}: speeds are judged at 0 only"
        raise Infrastructure("E-niceness", message, hint="start it without nice")
    return node


def _trouble(record: JobRecord) -> str:
    failures = [record.failure, *(run.failure for run in record.runs)]
    return next((f"{failure.slug}: {failure.message}" for failure in failures if failure), "")


def _log_ratios(record: JobRecord, load: Timed, policy: Policy) -> tuple[float, ...]:
    baseline, candidate = ([run for run in record.runs if run.step.arm == arm] for arm in (0, 1))
    voided = record.voided
    return quads.quads_of(baseline, candidate, load.name, voided, policy.ceiling_tps).log_ratios


def _pace(record: JobRecord, loss: float = 0.0) -> Pace:
    """The pace of equal arms, or what it becomes where one of them is slower."""
    process_s = fmean(run.wall_s for run in record.runs)
    longer_s = fmean(map(_repeating_s, record.runs)) * loss / (1 - loss)
    return Pace(process_s + longer_s / 2, record.job.design.burn_in)


def _with_needed(result: CellResult, needed: float | None) -> CellResult:
    """With the minutes that would do, where those that were given did not."""
    return result if result.word in ("fine", "quarantined") else replace(result, needed=needed)


def _with_faults(result: CellResult) -> CellResult:
    if result.alike is None:
        return result
    missed = [f"{plant.what} was not found: {plant.throughput}" for plant in result.plants if plant.missed]
    return replace(result, faults=(*faults(result.alike, result.earlier), *missed))


def _record(when: datetime, result: CellResult, alike: Alike, load: Timed, record: JobRecord) -> Record:
    runs = [run for run in record.runs if run.samples_of(load.name)]
    return Record(
        when=when,
        quads=alike.quads,
        quad_sd=alike.quad_sd,
        process_s=result.process_s,
        start_s=fmean(max(0.0, run.wall_s - _repeating_s(run)) for run in runs),
        load_s=result.load_s,
        repetition_s=fmean(ns * _NS for run in runs if (told := run.samples_of(load.name)) for ns in told.all_ns),
        quarantine="; ".join(result.faults),
    )


def _repeating_s(run: ProcessRun) -> float:
    return sum(sum(samples.all_ns) for samples in run.samples) * _NS
