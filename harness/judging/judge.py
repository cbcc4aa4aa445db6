"""One entry point: a case and its job's record in, a verdict out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean

from harness.domain.case import (
    AttributionCheck,
    Case,
    ContrastCheck,
    Expectation,
    FloorCheck,
    MemoryCheck,
    OutputCheck,
    PitfallCheck,
)
from harness.domain.failure import FailureKind
from harness.domain.policy import Policy
from harness.domain.verdict import ArmSpeed, Estimate, Verdict
from harness.domain.words import Pitfall, Status, Throughput
from harness.domain.workload import OutputProfile
from harness.judging import gates
from harness.judging.attribution import Attribution, judge_attribution, limits_of_each
from harness.judging.attribution_words import attribution_text
from harness.judging.contrasts import contrast_of
from harness.judging.disturbance import disturbance_text
from harness.judging.ending import ending_text
from harness.judging.evidence import Evidence
from harness.judging.floors import judge_floor
from harness.judging.loading import load_notes, load_text, no_contrast
from harness.judging.memory import judge_memory
from harness.judging.off_gpu import off_gpu, off_gpu_notes
from harness.judging.outputs_golden import against_golden
from harness.judging.outputs_rounds import compare_arms, never_repeated, worst_of
from harness.judging.outputs_verdict import OutputsVerdict
from harness.judging.pitfalls import judge_pitfall
from harness.judging.quarantine import quarantined
from harness.judging.record import JobRecord
from harness.judging.samples import arm_speed
from harness.judging.shortfall import shortfall_text
from harness.judging.throughput import ContrastVerdict, limits_of
from harness.judging.trade_offs import accepted, reading
from harness.judging.wording import estimate_text, speeds_text

_GATES: tuple[Callable[[Evidence], Verdict | None], ...] = (
    gates.wrong_node,
    gates.failed,
    gates.unmeasured,
    gates.content_keys,
    no_contrast,
    off_gpu,
    gates.tokenized_alike,
    gates.niced,
    quarantined,
)


def judge(case: Case, job: JobRecord, policy: Policy) -> Verdict:
    """Judge one case from its job's record.

    Args:
        case: What is asked.
        job: What was measured.
        policy: How strictly is judged.

    Returns:
        The verdict; judging the same record again gives an equal one.
    """
    evidence = Evidence.of(case, job, policy)
    verdict = _refusal(evidence) or _judge_check(evidence)
    return _apply_policy(replace(verdict, load=load_text(evidence)), policy)


def _refusal(evidence: Evidence) -> Verdict | None:
    return next((refusal for gate in _GATES if (refusal := gate(evidence))), None)


def _judge_check(evidence: Evidence) -> Verdict:
    match evidence.case.check:
        case FloorCheck() as check:
            return _floor(evidence, check)
        case ContrastCheck() as check:
            return _wrong_output(evidence) or _contrast(evidence, check)
        case PitfallCheck() as check:
            return _wrong_output(evidence) or _pitfall(evidence, check)
        case AttributionCheck() as check:
            return _wrong_output(evidence) or _attribution(evidence, check)
        case OutputCheck():
            return _outputs(evidence)
        case MemoryCheck() as check:
            return _memory(evidence, check)


def _apply_policy(verdict: Verdict, policy: Policy) -> Verdict:
    if verdict.status is not Status.INCONCLUSIVE or policy.inconclusive == "skip":
        return verdict
    return replace(verdict, status=Status.ERROR, slug=verdict.slug or "E-inconclusive")


# ---- speed -----------------------------------------------------------------------------------------------------------


def _floor(evidence: Evidence, check: FloorCheck) -> Verdict:
    found = judge_floor(
        evidence.sound_runs(0),
        evidence.case.workload_name,
        check.least_tps,
        in_ms=evidence.in_ms,
        ceiling_tps=evidence.policy.ceiling_tps,
    )
    if not all(output.finite for run in evidence.output_runs[0] for output in run.outputs):
        return evidence.verdict(Status.NOT_JUDGED, "not_judged: the outputs hold NaN or inf", slug="E-wrong-output")
    arms = _arms(arm_speed(evidence.case.arms[0].label, found.medians, in_ms=evidence.in_ms))
    figures = [estimate_text(found.speed) if found.speed else speeds_text(arms), found.why]
    word = "inconclusive: " if found.status is Status.INCONCLUSIVE else ""
    reason = f"{word}{', '.join([*figures, *_circumstances(evidence, found.status)])},"
    return evidence.verdict(found.status, reason, estimate=found.speed, arms=arms)


def _contrast(evidence: Evidence, check: ContrastCheck) -> Verdict:
    found, arms = _compare(evidence)
    status = _contrast_status(found.throughput, check.expect)
    together = _decided_together(evidence, found)
    trade = accepted(evidence.case.workload_name, together, evidence.policy.trades) if status is Status.FAIL else None
    if trade and check.expect is Expectation.NO_REGRESSION:
        status = Status.PASS
    else:
        trade = None
    notes = [reading(together), str(trade or "")]
    inert = _is_inert(evidence, found)
    notes += ["inert: neither outputs nor speed change"] if inert else []
    reason = _contrast_reason(evidence, found, arms, notes)
    return evidence.verdict(status, reason, throughput=found.throughput, estimate=found.ratio, arms=arms, inert=inert)


def _is_inert(evidence: Evidence, found: ContrastVerdict) -> bool:
    """Whether a factor that should change numbers changes neither them nor the speed."""
    outputs = _compare_outputs(evidence)
    return outputs is not None and outputs.inert and found.throughput is Throughput.EQUIVALENT


def _decided_together(evidence: Evidence, found: ContrastVerdict) -> dict[str, ContrastVerdict]:
    """What the workloads of the same job say, each by its own gates; alone, if this one is not different."""
    name = evidence.case.workload_name
    if found.throughput not in (Throughput.REGRESSED, Throughput.IMPROVED):
        return {name: found}
    others = (
        Evidence.of(replace(evidence.case, workload=workload), evidence.record, evidence.policy)
        for workload in evidence.record.job.workloads
    )
    return {
        other.case.workload_name: found if other.case.workload_name == name else contrast_of(other)
        for other in others
        if other.case.workload_name == name or not _refusal(other)
    }


def _contrast_status(word: Throughput, expect: Expectation) -> Status:
    if word is Throughput.INCONCLUSIVE:
        return Status.INCONCLUSIVE
    met = {
        Expectation.NO_REGRESSION: word is not Throughput.REGRESSED,
        Expectation.IMPROVED: word is Throughput.IMPROVED,
        Expectation.REPORT: True,
    }
    return Status.PASS if met[expect] else Status.FAIL


def _pitfall(evidence: Evidence, check: PitfallCheck) -> Verdict:
    found, arms = _compare(evidence)
    word = judge_pitfall(found.throughput)
    status = Status.INCONCLUSIVE if word is Pitfall.INCONCLUSIVE else Status.PASS
    advice = {
        Pitfall.PRESENT: f"pitfall present, use {check.instead or 'the baseline'}: ",
        Pitfall.GONE: "pitfall gone, the advice is out of date for this build: ",
    }
    return evidence.verdict(
        status,
        advice.get(word, "") + _contrast_reason(evidence, found, arms, []),
        throughput=found.throughput,
        pitfall=word,
        estimate=found.ratio,
        arms=arms,
    )


def _compare(evidence: Evidence) -> tuple[ContrastVerdict, tuple[ArmSpeed, ...]]:
    found = contrast_of(evidence)
    baseline, candidate = evidence.case.arms
    speeds = (
        arm_speed(arm.label, medians, in_ms=evidence.in_ms)
        for arm, medians in ((baseline, found.baseline), (candidate, found.candidate))
    )
    return found, _arms(*speeds)


def _contrast_reason(
    evidence: Evidence, found: ContrastVerdict, arms: tuple[ArmSpeed, ...], notes: Sequence[str]
) -> str:
    figures = [speeds_text(arms), *_figure(found.ratio), found.why]
    if any(found.incomplete):
        ours, theirs = found.incomplete
        figures.append(f"processes outside whole quads: baseline {ours}, candidate {theirs}")
    undecided = Status.INCONCLUSIVE if found.throughput is Throughput.INCONCLUSIVE else Status.PASS
    if undecided is Status.INCONCLUSIVE:
        notes = [*notes, _shortfall(evidence, found)]
    figures += [*filter(None, notes), *_circumstances(evidence, undecided)]
    return f"{found.throughput}: {', '.join(figures)},"


def _shortfall(evidence: Evidence, found: ContrastVerdict) -> str:
    """How much more it would take."""
    job = evidence.record.job
    limits = limits_of(evidence.policy, job, evidence.case.workload_name)
    return shortfall_text([found.log_ratios], limits, job, _process_s(evidence))


def _process_s(evidence: Evidence) -> float:
    return fmean(run.wall_s for run in evidence.all_runs)


def _circumstances(evidence: Evidence, status: Status) -> list[str]:
    """Doubts about outputs, what is void, and of the undecided why there is no more of them and what disturbed them."""
    told = [_outputs_note(evidence), *load_notes(evidence), *off_gpu_notes(evidence), evidence.record.voids]
    if status is Status.INCONCLUSIVE:
        told += [ending_text(evidence.record), disturbance_text(evidence.all_runs)]
    return [text for text in told if text]


def _outputs_note(evidence: Evidence) -> str:
    """What a reader of a speed has to know of its outputs: that they differ by advice alone, or not at all."""
    found = _compare_outputs(evidence)
    if found is None:
        return ""
    if found.advisory:
        return f"outputs: {found.equivalence} by advice alone, nothing is calibrated for {found.advisory}"
    return "outputs: inert, equal to the bit although the numbers should change" if found.inert else ""


def _figure(estimate: Estimate | None) -> list[str]:
    return [estimate_text(estimate)] if estimate else []


def _arms(*speeds: ArmSpeed | None) -> tuple[ArmSpeed, ...]:
    return tuple(speed for speed in speeds if speed)


def _attribution(evidence: Evidence, check: AttributionCheck) -> Verdict:
    policy, job = evidence.policy, evidence.record.job
    name = evidence.case.workload_name
    runs = [evidence.sound_runs(arm) for arm in range(len(evidence.runs))]
    limits = limits_of(policy, job, name)
    found = judge_attribution(
        runs, name, check.factors, limits, spread=job.spread_of(name), ceiling_tps=policy.ceiling_tps
    )
    arms = _arms(
        *(
            arm_speed(arm.label, medians, in_ms=evidence.in_ms)
            for arm, medians in zip(evidence.case.arms, found.medians, strict=True)
        )
    )
    status = _attribution_status(found, check.expect)
    word = "inconclusive: " if status is Status.INCONCLUSIVE else ""
    notes = [_attribution_shortfall(evidence, found, check)] if status is Status.INCONCLUSIVE else []
    figures = ", ".join([speeds_text(arms, ", "), *filter(None, notes), *_circumstances(evidence, status)])
    return evidence.verdict(
        status,
        f"{word}{attribution_text(found)}; {figures},",
        throughput=found.first.throughput,
        estimate=found.first.ratio,
        arms=arms,
        effects=found.effects,
    )


def _attribution_shortfall(evidence: Evidence, found: Attribution, check: AttributionCheck) -> str:
    """How many more blocks would decide what the check asks of, the first factor or both."""
    job = evidence.record.job
    limits = limits_of_each(limits_of(evidence.policy, job, evidence.case.workload_name))
    asked = found.effects[: 2 if check.expect is Expectation.REPORT else 1]
    undecided = [
        contrasts
        for effect, contrasts in zip(asked, found.contrasts, strict=False)
        if effect.throughput is Throughput.INCONCLUSIVE
    ]
    return shortfall_text(undecided, limits, job, _process_s(evidence))


def _attribution_status(found: Attribution, expect: Expectation) -> Status:
    """What is expected is expected of the first factor; a report wants both factors decided."""
    first = found.first.throughput or Throughput.INCONCLUSIVE
    undecided = expect is Expectation.REPORT and found.second.throughput is Throughput.INCONCLUSIVE
    return Status.INCONCLUSIVE if undecided else _contrast_status(first, expect)


# ---- outputs and memory ----------------------------------------------------------------------------------------------


def _wrong_output(evidence: Evidence) -> Verdict | None:
    """Equivalence comes before throughput: the speed of wrong output is not judged."""
    found = _compare_outputs(evidence)
    if found is None or found.speed_may_be_judged:
        return None
    word = found.equivalence or "unknown"
    return evidence.verdict(
        Status.NOT_JUDGED,
        f"not_judged: the outputs are {word} ({found.why}),",
        equivalence=found.equivalence,
        slug="E-wrong-output",
        detail=found.detail,
        scope=found.scope,
    )


def _gives_none(evidence: Evidence) -> bool:
    """Whether a build has no program that gives outputs: its speed is judged, and the case of outputs says why not."""
    failures = (run.failure for runs in evidence.output_runs for run in runs if run.step.apart)
    return any(failure is not None and failure.kind is FailureKind.UNSUPPORTED for failure in failures)


def _outputs(evidence: Evidence) -> Verdict:
    found = _compare_outputs(evidence)
    if found is None:
        return evidence.verdict(Status.ERROR, "the job was asked for no outputs", slug="E-no-measurement")
    word = found.equivalence or found.status
    head = f"inconclusive: {word}" if found.advisory else f"{word}"
    return evidence.verdict(
        found.status,
        f"{head}: {found.why}",
        equivalence=found.equivalence,
        slug=found.slug,
        detail=found.detail,
        scope=found.scope,
        inert=found.inert,
    )


def _compare_outputs(evidence: Evidence) -> OutputsVerdict | None:
    """What the answers of a case's arms say, the worst of them; ``None`` where no outputs are asked for."""
    found = _compare_answers(evidence)
    if found is None or not evidence.record.was_stopped:
        return found
    return never_repeated(found, evidence.output_runs)


def _compare_answers(evidence: Evidence) -> OutputsVerdict | None:
    case, job = evidence.case, evidence.record.job
    profile = case.workload if isinstance(case.workload, OutputProfile) else job.outputs
    if isinstance(case.check, OutputCheck) and case.check.reference and profile is not None:
        return against_golden(job, case.arms[0], case.check, profile, evidence.output_runs[0], evidence.record.node)
    if profile is None or not evidence.is_pair or _gives_none(evidence):
        return None
    checks = (case.check,) if isinstance(case.check, OutputCheck) else job.output_checks
    found = compare_arms(
        case.arms, evidence.output_runs, checks, profile, known=job.tolerances, node=evidence.record.node
    )
    return worst_of(found, [evidence.label(arm) for arm in range(1, len(case.arms))])


def _memory(evidence: Evidence, check: MemoryCheck) -> Verdict:
    found = judge_memory(evidence.all_runs, check.max_rss_mib)
    slug = "E-no-measurement" if found.status is Status.ERROR else ""
    figure = _figure(found.peak)
    return evidence.verdict(found.status, f"{', '.join([*figure, found.why])},", estimate=found.peak, slug=slug)
