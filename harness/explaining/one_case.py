"""One case in all its parts: verdict, quads, arms side by side, time over depth, and what would decide it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp
from statistics import fmean, stdev

from harness.domain.build import Build
from harness.domain.case import Case
from harness.domain.measurement import ProcessRun
from harness.domain.spread import Spread
from harness.domain.verdict import Verdict
from harness.domain.words import Status
from harness.domain.workload import OutputProfile
from harness.explaining.arm_states import Row, content_rows, load_rows, state_rows
from harness.explaining.depth import DepthFit, fit_depths
from harness.judging.budget import NEARLY_SURE, assumed_spread, smallest_effect
from harness.judging.disturbance import disturbance_text
from harness.judging.ending import ending_text
from harness.judging.evidence import Evidence
from harness.judging.quads import BLOCKS, quads_of
from harness.judging.record import JobRecord
from harness.judging.samples import Implausible, NothingKept, process_medians
from harness.judging.shortfall import FEWEST, shortfall_text
from harness.judging.throughput import judge_contrast, limits_of
from harness.judging.wording import node_text
from harness.reporting.state import JobTry, JournalState

_PAIR = 2


@dataclass(frozen=True, slots=True)
class Block:
    """One quad of a pair, or one block of other cases, in order of time.

    Attributes:
        number: From 1.
        ratio: Of a quad, candidate speed over baseline speed; ``None`` where it has none.
        speeds: Of each arm, t/s of its processes.
        use: ``counted``, or why it is not.
    """

    number: int
    ratio: float | None
    speeds: tuple[tuple[float, ...], ...]
    use: str


@dataclass(frozen=True, slots=True)
class Undecided:
    """What it would take.

    Attributes:
        ended: Why there is no more data.
        needed: How much more would likely decide it.
        quads: Quads that there are.
        quad_sd: How far they scatter, log scale; assumed where ``assumed``.
        assumed: Whether that is an assumption.
        smallest: Smallest loss that so many quads find with 95 %; ``None``: none up to 90 %.
        smallest_of_four_times: The same of four times as many.
    """

    ended: str
    needed: str
    quads: int
    quad_sd: float
    assumed: bool
    smallest: float | None
    smallest_of_four_times: float | None


@dataclass(frozen=True, slots=True)
class CaseExplained:
    """Everything that a journal tells of one case.

    Attributes:
        verdict: The verdict.
        node: Where it ran.
        arms: Labels of its arms.
        end: Why its job ended, where that is told.
        busy: What else the machine did meanwhile; empty where nothing of note was seen.
        void: What counts for nothing and why.
        blocks: Quads, or blocks.
        declared: What the arms are declared to be: build, model, flags, environment.
        content: What really ran.
        states: Machine and processes.
        loads: How the model was loaded.
        depth: Time over depth, where several depths were run.
        undecided: What would decide it; ``None`` where it is decided or no speeds are compared.
        log: Ends of logs of processes that failed.
    """

    verdict: Verdict
    node: str
    arms: tuple[str, ...]
    end: str = ""
    busy: str = ""
    void: str = ""
    blocks: tuple[Block, ...] = ()
    declared: tuple[Row, ...] = ()
    content: tuple[Row, ...] = ()
    states: tuple[Row, ...] = ()
    loads: tuple[Row, ...] = ()
    depth: DepthFit | None = None
    undecided: Undecided | None = None
    log: str = ""


def explain_case(state: JournalState, case_id: str) -> CaseExplained:
    """Take a case apart.

    Args:
        state: The journal.
        case_id: Id of a planned case.
    """
    case = state.planned[case_id].case
    verdict = next(each for each in state.final_verdicts() if each.case == case_id)
    labels = tuple(arm.label for arm in case.arms)
    last = state.jobs.get(state.planned[case_id].job)
    declared = tuple(_declared_rows(case))
    if last is None or last.job is None:
        return CaseExplained(verdict, "", labels, declared=declared)
    evidence = Evidence.of(case, _record(last), state.policy)
    counted = [evidence.sound_runs(arm) for arm in range(len(evidence.runs))]
    scored = [[run for run in runs if run.step.scored] or list(runs) for runs in evidence.runs]
    burnt_in = [_with_load(evidence, arm) for arm in range(len(evidence.runs))]
    return CaseExplained(
        verdict=verdict,
        node=node_text(last.node) if last.node else "",
        arms=labels,
        end=ending_text(evidence.record),
        busy=disturbance_text([run for runs in scored for run in runs]),
        void=evidence.record.voids,
        blocks=tuple(_blocks(evidence)),
        declared=declared,
        content=tuple(content_rows(evidence.runs)),
        states=tuple(state_rows(scored)),
        loads=tuple(load_rows(burnt_in)),
        depth=_depth(evidence, counted),
        undecided=_undecided(evidence, verdict),
        log="\n".join(_logs(evidence)),
    )


def _record(last: JobTry) -> JobRecord:
    """What there is of a job, also where it never came to its end: to look at, not to judge."""
    assert last.job is not None  # noqa: S101 - the caller has seen to it
    return JobRecord(last.job, last.runs, last.failure, last.node, last.attempt, last.end)


def _with_load(evidence: Evidence, arm: int) -> Sequence[ProcessRun]:
    return evidence.runs[arm] or evidence.output_runs[arm]


# ---- what is declared ------------------------------------------------------------------------------------------------


def _declared_rows(case: Case) -> list[Row]:
    arms = case.arms
    names = dict.fromkeys(name for arm in arms for name, _ in arm.flags)
    variables = dict.fromkeys(name for arm in arms for name, _ in arm.environment)
    rows = [
        ("build", [f"{arm.build.name} ({arm.build.fork})" for arm in arms]),
        ("build from", [arm.build.wheel or _source(arm.build) for arm in arms]),
        ("model", [" ".join(filter(None, [arm.model.name, arm.model.quant])) for arm in arms]),
        *((f"flag {name}", [_text(arm.flags.get(name)) for arm in arms]) for name in names),
        *((f"variable {name}", [dict(arm.environment).get(name, "") for arm in arms]) for name in variables),
    ]
    return [Row(name, tuple(values), len(set(values)) > 1) for name, values in rows if any(values)]


def _source(build: Build) -> str:
    return f"commit {build.source.commit}" if build.source and build.source.commit else ""


def _text(value: object) -> str:
    return "" if value is None else str(value)


# ---- blocks ----------------------------------------------------------------------------------------------------------


def _blocks(evidence: Evidence) -> list[Block]:
    if not evidence.times_speed:
        return []
    try:
        return _quads(evidence) if len(evidence.runs) == _PAIR else _single_blocks(evidence)
    except (Implausible, NothingKept) as refused:
        return [Block(1, None, (), f"no speed: {refused}")]


def _quads(evidence: Evidence) -> list[Block]:
    name, ceiling = evidence.case.workload_name, evidence.policy.ceiling_tps
    medians = [process_medians(runs, name, ceiling) for runs in evidence.runs]
    voided = evidence.record.voided
    counted = _counted_quads(evidence)
    begun = sorted({block // BLOCKS for of_arm in medians for block in of_arm} | {block // BLOCKS for block in voided})
    found, used = [], 0
    for quad in begun:
        blocks = (BLOCKS * quad, BLOCKS * quad + 1)
        speeds = tuple(tuple(of_arm[block].tps for block in blocks if block in of_arm) for of_arm in medians)
        whole = all(len(each) == BLOCKS for each in speeds)
        ratio = None
        if whole:
            ratio = exp(fmean(medians[1][block].log_tps - medians[0][block].log_tps for block in blocks))
        why = next((voided[block] for block in blocks if block in voided), "")
        if why:
            use = f"void: {why}"
        elif not whole:
            use = "not whole: a process is missing"
        elif used < counted:
            use, used = "counted", used + 1
        else:
            use = "after the decision"
        found.append(Block(quad + 1, ratio, speeds, use))
    return found


def _counted_quads(evidence: Evidence) -> int:
    """How many quads the verdict rests on: it may be decided before the last."""
    job, name = evidence.record.job, evidence.case.workload_name
    baseline, candidate = evidence.runs
    found = judge_contrast(
        baseline,
        candidate,
        name,
        limits_of(evidence.policy, job, name),
        spread=job.spread_of(name),
        voided=evidence.record.voided,
        ceiling_tps=evidence.policy.ceiling_tps,
    )
    return found.ratio.n if found.ratio else 0


def _single_blocks(evidence: Evidence) -> list[Block]:
    name, ceiling = evidence.case.workload_name, evidence.policy.ceiling_tps
    medians = [process_medians(runs, name, ceiling) for runs in evidence.runs]
    voided = evidence.record.voided
    begun = sorted({block for of_arm in medians for block in of_arm} | voided.keys())
    return [
        Block(
            block + 1,
            None,
            tuple((of_arm[block].tps,) if block in of_arm else () for of_arm in medians),
            f"void: {voided[block]}"
            if block in voided
            else "counted"
            if all(block in of_arm for of_arm in medians)
            else "not whole: a process is missing",
        )
        for block in begun
    ]


# ---- depth, what would decide, logs ----------------------------------------------------------------------------------


def _depth(evidence: Evidence, counted: Sequence[Sequence[ProcessRun]]) -> DepthFit | None:
    workload = evidence.case.workload
    if workload is None or isinstance(workload, OutputProfile) or not evidence.times_speed:
        return None
    arms = {arm.label: runs for arm, runs in zip(evidence.case.arms, counted, strict=True)}
    return fit_depths(workload, evidence.record.job.workloads, arms)


def _undecided(evidence: Evidence, verdict: Verdict) -> Undecided | None:
    inconclusive = verdict.status is Status.INCONCLUSIVE or verdict.slug == "E-inconclusive"
    if not inconclusive or not evidence.times_speed or len(evidence.runs) != _PAIR or not evidence.all_runs:
        return None
    job, name = evidence.record.job, evidence.case.workload_name
    try:
        baseline, candidate = evidence.runs
        voided = evidence.record.voided
        quads = quads_of(baseline, candidate, name, voided, evidence.policy.ceiling_tps).log_ratios
    except (Implausible, NothingKept):
        return None
    limits = limits_of(evidence.policy, job, name)
    known = job.spread_of(name) or assumed_spread(name)
    own = len(quads) >= FEWEST
    spread = Spread(name, max(stdev(quads), 1e-4), len(quads) - 1, "its own quads") if own else known
    process_s = fmean(run.wall_s for run in evidence.all_runs)
    return Undecided(
        ended=ending_text(evidence.record),
        needed=shortfall_text([quads], limits, job, process_s),
        quads=len(quads),
        quad_sd=spread.quad_sd,
        assumed=not own and spread.df <= 0,
        smallest=smallest_effect(len(quads), NEARLY_SURE, spread, replace(limits, max_quads=len(quads)))
        if quads
        else None,
        smallest_of_four_times=smallest_effect(
            4 * len(quads), NEARLY_SURE, spread, replace(limits, max_quads=4 * len(quads))
        )
        if quads
        else None,
    )


def _logs(evidence: Evidence) -> list[str]:
    failures = [evidence.record.failure, *(run.failure for run in evidence.record.runs)]
    told = dict.fromkeys(
        f"{failure.slug}: {failure.message}\n{failure.detail}".rstrip() for failure in failures if failure
    )
    return list(told)
