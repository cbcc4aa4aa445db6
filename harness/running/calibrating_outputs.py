"""A calibration of outputs: sound arms beside themselves and each other, then faults that were planted in the model.

Nothing is timed. Everything runs as a matrix's jobs do, and is judged by the same judge.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations, product
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

from harness.domain.arm import Arm
from harness.domain.build import Build
from harness.domain.errors import BadInput, HarnessError
from harness.domain.failure import FailureKind
from harness.domain.job import Design, Job
from harness.domain.model import Model
from harness.domain.node import ANY_CLASS, NodeClass
from harness.domain.outputs import Output, Variation
from harness.domain.stopping import RunWholeSchedule
from harness.domain.tolerance import ContrastClass, Tolerance
from harness.domain.words import Equivalence
from harness.engines.flags import Unsupported, complete
from harness.execution.dispatch import Dispatcher
from harness.execution.events import JobEvent
from harness.execution.local import LocalExecutor
from harness.execution.node import probe_node
from harness.judging.output_floors import seen_in, tolerated_after
from harness.judging.outputs import judge_outputs
from harness.judging.outputs_allowed import allowed_of, backend_of, contrast_class
from harness.judging.outputs_statistics import Unreadable
from harness.judging.quants import limits_of
from harness.models.corrupting import write_corrupted
from harness.models.corruptions import Corruption, Kind
from harness.models.request import model_path
from harness.models.storage import cache_root, make_folder
from harness.models.usage import cache_held
from harness.reporting.journal import JournalWriter, RunInfo
from harness.running.model_content import content_of
from harness.running.output_calibration import ModelResult, OutputCalibration, OutputTarget, PlantedFault
from harness.running.records import Records
from harness.running.tolerance_file import Found, tolerances_in

Watch: TypeAlias = Callable[[str, JobEvent | None], None]
Answers: TypeAlias = tuple[Output, ...]

FAULTS = (Kind.SWAPPED_EXPERTS, Kind.FEWER_EXPERTS, Kind.ZEROED_HEAD, Kind.ZEROED_EXPERT)
"""Kinds that are planted."""
HARD = frozenset({Kind.ZEROED_EXPERT})
"""Of them those that may be missed: one expert of many is seldom chosen."""
_ATTENTION = "fa"
_ANYWHERE = NodeClass(ANY_CLASS)


@dataclass(frozen=True, slots=True)
class OutputSettings:
    """How outputs are calibrated.

    Attributes:
        design: Limits of a process, as in the matrix.
        reports: Folder of the journal.
        store: File of known tolerances.
    """

    design: Design
    reports: Path
    store: Path


class OutputCalibrator:
    """Runs one calibration on this node. A context manager: whatever happens, no process is left.

    Args:
        targets: What is calibrated.
        settings: How.
        watch: Called with what is being done and each event, and with ``None`` while nothing happens.

    Raises:
        BadInput: If the file of known tolerances can't be read.
        Infrastructure: If it or the journal can't be written, which is tried before anything runs.
    """

    def __init__(
        self, targets: Sequence[OutputTarget], settings: OutputSettings, watch: Watch = lambda _, __: None
    ) -> None:
        self._targets = targets
        self._settings = settings
        self._watch = watch
        self._node = probe_node()
        self._file = tolerances_in(settings.store)
        self._file.change(lambda file: file)
        self._journal = JournalWriter(settings.reports)
        self._records = Records(self._journal)
        self._dispatcher = Dispatcher(lambda: LocalExecutor(RunWholeSchedule()))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._dispatcher.close()
        self._journal.close()

    def run(self) -> OutputCalibration:
        """Calibrate model after model; what is found of one is in the file before the next one begins.

        Raises:
            BadInput: If a build or model is not there.
            Infrastructure: If jobs can't be run, or files not written.
        """
        when, began = datetime.now(UTC), time.monotonic()
        self._journal.run_started(RunInfo("calibration of outputs", "local", 0))
        models = []
        for target in self._targets:
            asked = replace(target, profile=replace(target.profile, variations=tuple(Variation)))
            result = self._calibrate(asked, when)
            if result.found:
                self._keep(result.found)
            models.append(result)
        self._journal.run_finished()
        return OutputCalibration(self._node, when, time.monotonic() - began, tuple(models))

    def _keep(self, found: tuple[Found, ...]) -> None:
        self._file.change(lambda file: file.with_found(self._node, found))

    # ---- one model ---------------------------------------------------------------------------------------------------

    def _calibrate(self, target: OutputTarget, when: datetime) -> ModelResult:
        sound: dict[Arm, tuple[Answers, ...]] = {}
        troubles: list[str] = []
        for arm in target.arms:
            alike = self._answered((arm, arm), target, f"{arm.label} against itself")
            other = _other_attention(arm)
            doing = f"{arm.label} with fa={other.flags.get(_ATTENTION)}" if other else ""
            toggled = self._answered((other,), target, doing) if other else _Answered((), ())
            # All of these are sound ways to run the arm.
            sound[arm] = (*alike.answers, *toggled.answers)
            troubles += [*alike.troubles, *toggled.troubles]
        try:
            found = tuple(self._tolerances(target, sound, when))
        except Unreadable as damage:
            return ModelResult(target, troubles=(*troubles, f"outputs cannot be compared: {damage}"))
        faults = tuple(self._faults(_Known(target, sound, found))) if found else ()
        return ModelResult(target, found, faults, tuple(troubles))

    def _tolerances(
        self, target: OutputTarget, sound: Mapping[Arm, tuple[Answers, ...]], when: datetime
    ) -> Iterator[Found]:
        """What follows from sound pairs, for each class of contrast and what computed."""
        kinds: dict[_Kind, list[tuple[Answers, Answers]]] = {}
        for arm, answers in sound.items():
            kinds.setdefault(self._kind(arm, arm), []).extend(combinations(answers, 2))
        for one, other in target.contrasts:
            kinds.setdefault(self._kind(one, other), []).extend(product(sound[one], sound[other]))
        for (contrast, backends), pairs in kinds.items():
            alone = [each for pair in pairs for each in pair] if contrast is ContrastClass.FLAGS else []
            seen = seen_in(pairs, alone)
            if seen:
                yield Found(
                    content=content_of(target.model),
                    model=target.model.name,
                    contrast=contrast,
                    backends=backends,
                    when=when,
                    pairs=len(pairs),
                    positions=seen.positions,
                    decoded=seen.decoded,
                    seen=seen.figures,
                    tolerated=tolerated_after(seen.figures, contrast),
                )

    def _kind(self, one: Arm, other: Arm) -> _Kind:
        backends = {backend_of(arm, self._node) for arm in (one, other)}
        return contrast_class(one, other, self._node), tuple(sorted(backends))

    # ---- planted faults ----------------------------------------------------------------------------------------------

    def _faults(self, known: _Known) -> Iterator[PlantedFault]:
        """Plant each kind in a copy of the model, and let the judge look at it."""
        target = known.target
        for kind in FAULTS:
            with ExitStack() as stack:
                stack.enter_context(cache_held())
                folder = make_folder(cache_root() / "faults")
                place = stack.enter_context(tempfile.TemporaryDirectory(dir=folder))
                try:
                    copy, corruption = write_corrupted(model_path(target.model), Path(place), kind)
                except HarnessError as refused:
                    yield PlantedFault(str(kind), "", "", "", None, str(refused))
                    continue
                broken = Model(f"{target.model.name}, {kind}", path=str(copy))
                for arm in _one_of_each_build(target.arms):
                    doing = f"{arm.label} with {corruption.what}"
                    answered = self._answered((replace(arm, model=broken),), target, doing)
                    yield from self._fault(known, arm, corruption, answered)

    def _fault(self, known: _Known, arm: Arm, corruption: Corruption, answered: _Answered) -> Iterator[PlantedFault]:
        """A broken copy beside the sound arm itself, and beside those that the arm is compared with in the matrix."""
        for reference in (arm, *(one for one, other in known.target.contrasts if other == arm)):
            kind = self._kind(reference, arm)
            required = corruption.kind not in HARD
            planted = PlantedFault(
                str(corruption.kind), corruption.what, arm.label, str(kind[0]), None, "", required=required
            )
            if not answered.answers or not known.sound[reference]:
                word = Equivalence.BROKEN if answered.broken else None
                yield replace(planted, equivalence=word, reason="; ".join(answered.troubles) or "no sound answers")
                continue
            allowed = allowed_of(reference, arm, None, known.tolerances(kind), self._node)
            limits = limits_of(known.target.model)
            ours, theirs = known.sound[reference][0], answered.answers[0]
            verdict = judge_outputs(ours, theirs, known.target.profile, limits, allowed)
            yield replace(planted, equivalence=verdict.equivalence, reason=verdict.why)

    # ---- running -----------------------------------------------------------------------------------------------------

    def _answered(self, arms: tuple[Arm, ...], target: OutputTarget, doing: str) -> _Answered:
        """What fresh processes of the arms answer."""
        design = replace(self._settings.design, calibration=True)
        job = Job(arms, (), target.profile, _ANYWHERE, design, cases=())
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
        failures = [failure for failure in (record.failure, *(run.failure for run in record.runs)) if failure]
        return _Answered(
            answers=tuple(run.outputs for run in record.runs if run.failure is None and run.outputs),
            troubles=tuple(f"{doing}: {failure.slug}: {failure.message}" for failure in failures),
            broken=any(failure.kind is FailureKind.CRASH for failure in failures),
        )


_Kind: TypeAlias = tuple[ContrastClass, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Answered:
    """What some processes answered.

    Attributes:
        answers: Of each that did.
        troubles: What went wrong with the others.
        broken: One crashed.
    """

    answers: tuple[Answers, ...]
    troubles: tuple[str, ...]
    broken: bool = False


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a model once its sound arms have answered."""

    target: OutputTarget
    sound: Mapping[Arm, tuple[Answers, ...]]
    found: tuple[Found, ...]

    def tolerances(self, kind: _Kind) -> tuple[Tolerance, ...]:
        """Those of a kind of contrast, as a job has them."""
        known = (each for each in self.found if (each.contrast, each.backends) == kind)
        return tuple(
            Tolerance(each.contrast, each.tolerated, "this calibration", each.positions, each.decoded) for each in known
        )


def _other_attention(arm: Arm) -> Arm | None:
    """The arm with flash attention switched; ``None`` where its build or its cache needs it as it is."""
    found = arm.flags.get(_ATTENTION)
    if found not in (0, 1):
        return None
    try:
        flags = complete(arm.build, {**arm.flags.as_dict(), _ATTENTION: 1 - int(found)})
    except (BadInput, Unsupported):
        return None
    return replace(arm, flags=flags)


def _one_of_each_build(arms: Sequence[Arm]) -> list[Arm]:
    first: dict[Build, Arm] = {}
    for arm in arms:
        first.setdefault(arm.build, arm)
    return list(first.values())
