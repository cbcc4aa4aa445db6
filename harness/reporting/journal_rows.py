"""A journal as rows that can be compared with those of another session."""

from __future__ import annotations

from collections.abc import Iterator

from harness.domain.arm import Arm
from harness.domain.canonical import id_part
from harness.domain.case import Case
from harness.domain.imported import Imported, ImportedBuild, ImportedModel, ImportedRow, ImportProblem
from harness.domain.job import Job
from harness.domain.measurement import ProcessRun, Samples, is_plausible_ns
from harness.domain.node import GIB, NodeFacts
from harness.domain.words import Kind
from harness.judging.record import JobRecord
from harness.reporting.state import JobTry, JournalState

_TIMED = (Kind.THROUGHPUT, Kind.PITFALL, Kind.ATTRIBUTION)


def journal_rows(state: JournalState, source: str) -> Imported:
    """Every scored process of the arms whose speed is asked for: the candidates, and beside each its baseline.

    The rows of a candidate name the ``case`` of its baseline as their ``control``; a baseline's own rows name
    themselves. Void quads are left out, as the verdicts of the run leave them out.

    Args:
        state: The journal, read.
        source: Its name, for messages.
    """
    problems = [
        ImportProblem("E-damaged-row", f"{source}, line {problem.line}", problem.message, row_lost=False)
        for problem in state.problems
    ]
    rows: list[ImportedRow] = []
    for job_id, last in state.jobs.items():
        controls = _controls(state, job_id)
        if not controls:
            continue
        record = last.record
        if record is None or (record.failure and not record.was_stopped):
            problems.append(ImportProblem("E-never-finished", f"{source}, {job_id}", _why_unusable(last)))
        else:
            problems += (*_failures(record, source), *_impossible(record, source))
            rows += _rows(record, controls, source)
    return Imported(tuple(rows), tuple(problems), "journal")


def _controls(state: JournalState, job: str) -> dict[str, str]:
    """By identity of each arm whose speed the job's cases ask for: the identity of its baseline, or its own."""
    cases = [planned.case for planned in state.planned.values() if planned.job == job and planned.case.kind in _TIMED]
    found = {arm.identity: arm.identity for case in cases for arm in _baselines(case)}
    for case in cases:
        # An arm alone has no baseline; a candidate of one contrast can be the baseline of another.
        baselines = _baselines(case)
        controls = [arm.identity for arm in baselines] or [""]
        found.update(zip((arm.identity for arm in case.arms[len(baselines) :]), controls, strict=True))
    return found


def _baselines(case: Case) -> tuple[Arm, ...]:
    return case.arms[: len(case.arms) // 2]


def _why_unusable(last: JobTry) -> str:
    return last.failure.message if last.failure else "the job did not come to its end, or parts of it are lost"


def _failures(record: JobRecord, source: str) -> Iterator[ImportProblem]:
    for run in record.runs:
        if run.failure and run.step.scored:
            place = f"{source}, {record.job.id}, block {run.step.block}"
            yield ImportProblem(run.failure.slug, place, run.failure.message)


def _impossible(record: JobRecord, source: str) -> Iterator[ImportProblem]:
    for run in record.runs:
        for samples in run.samples:
            if run.step.scored and not _is_possible(samples):
                place = f"{source}, {record.job.id}, block {run.step.block}"
                yield ImportProblem("E-damaged-row", place, f"{samples.workload}: its tokens or a time are not above 0")


def _is_possible(samples: Samples) -> bool:
    return samples.tokens > 0 and all(map(is_plausible_ns, samples.all_ns))


def _rows(record: JobRecord, controls: dict[str, str], source: str) -> Iterator[ImportedRow]:
    void = record.voided
    names = {arm.identity: arm for arm in record.job.arms}
    for run in record.runs:
        arm = record.job.arms[run.step.arm] if run.step.arm < len(record.job.arms) else None
        wanted = arm and arm.identity in controls and run.step.scored and run.step.block not in void
        if arm and wanted and not run.failure:
            yield from _arm_rows(record, arm, names.get(controls[arm.identity]), run, source)


def _arm_rows(record: JobRecord, arm: Arm, control: Arm | None, run: ProcessRun, source: str) -> Iterator[ImportedRow]:
    for samples in filter(_is_possible, run.samples):
        yield ImportedRow(
            workload=samples.workload,
            tokens=samples.tokens,
            settings=tuple(sorted([*((name, str(value)) for name, value in arm.flags), *arm.environment])),
            build=ImportedBuild(arm.build.fork, run.engine.get("build_commit", ""), content=run.content_key),
            model=ImportedModel(file=arm.model.name, quant=arm.model.quant),
            machine=_machine(record.node),
            samples_ns=tuple(float(value) for value in samples.all_ns),
            discarded=samples.discarded,
            source=source,
            place=f"{record.job.id}, block {run.step.block}",
            case=_case(arm, samples.workload, record.job),
            control=_case(control, samples.workload, record.job) if control else "",
            label=arm.label,
        )


def _case(arm: Arm, workload: str, job: Job) -> str:
    """One arm's id, in the form of a case's."""
    parts = (id_part(arm.model.name), arm.label, id_part(workload))
    return f"{Kind.THROUGHPUT}/{'/'.join(parts)}@{id_part(job.node_class.name)}"


def _machine(node: NodeFacts | None) -> tuple[tuple[str, str], ...]:
    """What has to be equal, or two sessions have no common baseline."""
    if node is None:
        return ()
    facts = {
        "cpu": node.cpu_model,
        "cores": str(node.cores),
        "memory": f"{round(node.usable_ram_bytes / GIB)} GiB",
        "gpu": ", ".join(sorted(gpu.name for gpu in node.gpus)) or "none",
        "driver": ", ".join(sorted({gpu.driver for gpu in node.gpus})) or "none",
        "kernel": node.kernel,
        "governor": node.governor,
        "NUMA nodes": str(node.numa_nodes),
    }
    return tuple(sorted(facts.items()))
