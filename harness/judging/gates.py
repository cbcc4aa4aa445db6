"""What must hold before figures are looked at. Each gate returns a verdict that ends the matter, or ``None``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from harness.domain.failure import Failure, FailureKind
from harness.domain.measurement import ProcessRun, Samples, prompt_fact
from harness.domain.verdict import Verdict
from harness.domain.words import Kind, Status
from harness.domain.workload import ProfileWorkload, Timed, Workload
from harness.judging.evidence import Evidence
from harness.judging.floors import MIN_STARTS
from harness.judging.samples import Implausible, NothingKept, ProcessMedian
from harness.judging.stopping import is_decided

_SPARES_WHOLE_ROWS = frozenset(
    {FailureKind.CRASH, FailureKind.OUT_OF_MEMORY, FailureKind.TIMEOUT, FailureKind.INTERRUPTED, FailureKind.NODE_LOST}
)
"""Ends of a process that leave what it had completed before valid. All others cast doubt on every row."""


@dataclass(frozen=True, slots=True)
class _Blame:
    """A failure that this case has to answer for."""

    arm: int
    failure: Failure


def wrong_node(evidence: Evidence) -> Verdict | None:
    """The job landed on a node outside the case's class: nothing measured there answers the case."""
    node = evidence.record.node
    unmet = evidence.case.node_class.unmet(node) if node else ""
    if not unmet:
        return None
    return evidence.verdict(Status.NOT_APPLICABLE, f"not_applicable: {unmet}", slug="E-wrong-node")


def failed(evidence: Evidence) -> Verdict | None:
    """Turn failures into verdicts: unsupported, no baseline, the candidate's fault, infrastructure - in this order."""
    blames = list(_blames(evidence))
    for blame in blames:
        if blame.failure.kind is FailureKind.UNSUPPORTED:
            return _failure_verdict(evidence, Status.UNSUPPORTED, blame, "unsupported: ")
    for blame in blames:
        if _leaves_no_baseline(evidence, blame, blames):
            return _without_baseline(evidence, blame, blames)
    for blame in blames:
        if blame.failure.blames_candidate:
            return _failure_verdict(evidence, Status.FAIL, blame)
    if blames:
        return _failure_verdict(evidence, Status.ERROR, blames[0])
    return _job_failed(evidence)


def unmeasured(evidence: Evidence) -> Verdict | None:
    """An arm without any process that this case could rest on."""
    for arm, runs in enumerate(evidence.runs):
        if not any(_answers(evidence, run) for run in runs):
            reason = f"{evidence.label(arm)} has no measurement of {evidence.case.workload_name}"
            slug = "E-no-baseline" if evidence.is_pair and arm == 0 else "E-no-measurement"
            return evidence.verdict(Status.ERROR, reason, slug=slug)
    return None


def content_keys(evidence: Evidence) -> Verdict | None:
    """What really ran must be one thing per arm, and another in each arm of a contrast that is no calibration."""
    keys = [{run.content_key for run in runs if run.content_key} for runs in evidence.runs]
    for arm, found in enumerate(keys):
        if len(found) > 1:
            reason = f"{evidence.label(arm)} changed while it was measured: content keys {', '.join(sorted(found))}"
            return evidence.verdict(Status.ERROR, reason, slug="E-content-changed")
    for one, other in combinations(range(len(keys)), 2):
        if keys[one] & keys[other] and not evidence.record.job.design.calibration:
            labels = f"{evidence.label(one)} and {evidence.label(other)}"
            reason = f"no contrast: {labels} are the same content {keys[one].pop()}"
            return evidence.verdict(Status.ERROR, reason, slug="E-no-contrast")
    return None


def tokenized_alike(evidence: Evidence) -> Verdict | None:
    """All processes have to answer the same tokens: a tokenizer that cuts the prompt otherwise changes the work."""
    workload = evidence.case.workload
    if not isinstance(workload, ProfileWorkload):
        return None
    fact = prompt_fact(workload.profile.name)
    found = {
        evidence.label(arm): sorted({run.engine[fact] for run in runs if fact in run.engine})
        for arm, runs in enumerate(evidence.runs)
    }
    if len({cut for cuts in found.values() for cut in cuts}) < 2:  # noqa: PLR2004 - two different ones
        return None
    told = "; ".join(f"{label}: {' and '.join(cuts)}" for label, cuts in found.items())
    reason = f"the prompt of {workload.profile.name} was not cut into the same tokens: {told}"
    return evidence.verdict(Status.ERROR, reason, slug="E-tokenizers-differ")


def niced(evidence: Evidence) -> Verdict | None:
    """Speed measured at another priority than normal says nothing: where only some was, that is void, not the rest."""
    if not evidence.times_speed:
        return None
    scored = [run for run in evidence.all_runs if run.step.scored]
    values = sorted({run.conditions.niceness for run in scored} - {0})
    if not values or any(run.conditions.niceness == 0 for run in scored):
        return None
    reason = f"not_judged: measured at niceness {', '.join(map(str, values))}, speed needs 0"
    return evidence.verdict(Status.NOT_JUDGED, reason, slug="E-niceness")


def _blames(evidence: Evidence) -> Iterator[_Blame]:
    for arm, runs in enumerate(evidence.runs):
        for run in runs:
            failure = _relevant_failure(evidence, run, runs)
            if failure:
                yield _Blame(arm, failure)


def _leaves_no_baseline(evidence: Evidence, blame: _Blame, blames: Sequence[_Blame]) -> bool:
    """Whether a failure is a baseline's and takes it away: a crash; anything else where none of its processes is good.

    What else goes wrong in a baseline alone keeps its own word: only a candidate's fault needs a baseline to be one.
    """
    if blame.arm in evidence.candidates:
        return False
    if blame.failure.blames_candidate:
        return True
    runs = evidence.runs[blame.arm]
    is_good = any(_answers(evidence, run) and not _relevant_failure(evidence, run, runs) for run in runs)
    return not is_good and any(other.failure.blames_candidate for other in blames)


def _without_baseline(evidence: Evidence, blame: _Blame, blames: Sequence[_Blame]) -> Verdict:
    """No baseline, and what went wrong in a candidate beside it: both are broken, and none is to blame alone."""
    beside = next((other for other in blames if other.arm in evidence.candidates), None)
    told = [blame, *([beside] if beside else [])]
    reason = f"no baseline: {'; '.join(_failure_text(evidence, each) for each in told)}"
    detail = "\n".join(each.failure.detail for each in told if each.failure.detail)
    return evidence.verdict(Status.ERROR, reason, slug="E-no-baseline", detail=detail)


def _relevant_failure(evidence: Evidence, run: ProcessRun, siblings: tuple[ProcessRun, ...]) -> Failure | None:
    if run.failure and not _is_spared(evidence, run, siblings):
        return run.failure
    workload = evidence.case.workload
    samples = run.samples_of(evidence.case.workload_name)
    if evidence.times_speed and isinstance(workload, Workload | ProfileWorkload) and samples:
        return _distrust(samples, workload, evidence.policy.ceiling_tps)
    return None


def _is_spared(evidence: Evidence, run: ProcessRun, siblings: tuple[ProcessRun, ...]) -> bool:
    """Whether the case has all it needs although this process failed: its own rows whole, and starts enough."""
    if not run.failure or run.failure.kind not in _SPARES_WHOLE_ROWS or evidence.case.kind is Kind.MEMORY:
        return False
    if evidence.case.kind is Kind.EQUIVALENCE:
        asked = evidence.record.job.outputs
        return asked is not None and {prompt.name for prompt in asked.prompts} <= {each.prompt for each in run.outputs}
    if not _answers(evidence, run):
        return _was_not_asked(evidence, run)
    return sum(each.step.scored and _answers(evidence, each) for each in siblings) >= MIN_STARTS


def _was_not_asked(evidence: Evidence, run: ProcessRun) -> bool:
    """Whether a process was started for other workloads alone: this one was decided before."""
    record = evidence.record
    if not run.step.scored or len(record.job.workloads) < 2:  # noqa: PLR2004 - this one and another
        return False
    before = record.runs[: record.runs.index(run)]
    return is_decided(record.job, before, evidence.case.workload_name, evidence.policy)


def _distrust(samples: Samples, workload: Timed, ceiling_tps: float) -> Failure | None:
    if workload.tokens not in (samples.tokens, None):
        message = f"{workload.name}: {samples.tokens} tokens were timed, {workload.tokens} were asked for"
        return Failure(FailureKind.ECHO_MISMATCH, message, "E-echo-mismatch")
    try:
        ProcessMedian.of(samples, 0, ceiling_tps)
    except Implausible as error:
        return Failure(FailureKind.IMPLAUSIBLE, str(error), "E-implausible")
    except NothingKept as error:
        return Failure(FailureKind.UNPARSABLE, str(error), "E-nothing-kept")
    return None


def _answers(evidence: Evidence, run: ProcessRun) -> bool:
    match evidence.case.kind:
        case Kind.MEMORY:
            return True
        case Kind.EQUIVALENCE:
            return bool(run.outputs)
        case Kind.THROUGHPUT | Kind.PITFALL | Kind.ATTRIBUTION:
            return run.samples_of(evidence.case.workload_name) is not None


def _job_failed(evidence: Evidence) -> Verdict | None:
    failure = evidence.record.failure
    if failure is None or failure in [run.failure for run in evidence.record.runs]:
        return None  # a process's failure told again: the cases that it concerns have answered for it
    if evidence.record.was_stopped and all(any(_answers(evidence, run) for run in runs) for runs in evidence.runs):
        return None  # what was measured until then counts
    tries = f" after {evidence.record.tries} tries" if evidence.record.tries > 1 else ""
    status = Status.ERROR
    if failure.kind is FailureKind.UNSUPPORTED:
        status = Status.UNSUPPORTED
    elif failure.blames_candidate and not evidence.is_pair:
        status = Status.FAIL
    word = f"{status}: " if status is Status.UNSUPPORTED else ""
    reason = f"{word}job failed{tries}, {failure.message}"
    return evidence.verdict(status, reason, slug=failure.slug, detail=failure.detail)


def _failure_verdict(evidence: Evidence, status: Status, blame: _Blame, prefix: str = "") -> Verdict:
    failure = blame.failure
    reason = f"{prefix}{_failure_text(evidence, blame)}"
    return evidence.verdict(status, reason, slug=failure.slug, detail=failure.detail)


def _failure_text(evidence: Evidence, blame: _Blame) -> str:
    return f"{evidence.label(blame.arm)}: {blame.failure.kind}, {blame.failure.message}"
