"""Outputs of two arms: equal, equal but for rounding, different or broken.

Tiers, the first that holds: the reference cannot be used (an error); *broken*; *bitwise*; inside all tolerances,
which is *greedy*, *near_tie* or *distribution* by what the greedily chosen tokens do; *lossy_declared*; *different*.
Answers without distributions, as old journals have them, are judged by the margins of their tokens alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from harness.domain.outputs import Output
from harness.domain.words import Equivalence, Status
from harness.domain.workload import OutputProfile
from harness.judging import outputs_shown as shown
from harness.judging.outputs_margins import Divergence, first_divergences, judge_by_margins, same_hashes
from harness.judging.outputs_places import Positions
from harness.judging.outputs_scope import brief_scope, scope_text
from harness.judging.outputs_sound import (
    answered_twice,
    broken,
    degenerate_text,
    incomplete,
    newly_degenerate,
    not_asked,
    not_finite,
)
from harness.judging.outputs_tolerated import Row, rows_of, tolerated
from harness.judging.outputs_verdict import OutputsVerdict
from harness.judging.quants import Limits
from harness.judging.tolerances import Allowed

if TYPE_CHECKING:
    from harness.judging.outputs_statistics import Comparison

Pairs: TypeAlias = Sequence[tuple[Output, Output]]

_MEANS = ("mean KLD", "decode mean")
"""What a declared loss is a budget of."""


def judge_outputs(
    baseline: Sequence[Output], candidate: Sequence[Output], profile: OutputProfile, limits: Limits, allowed: Allowed
) -> OutputsVerdict:
    """Compare a candidate's answers with the baseline's.

    Args:
        baseline: The reference answers.
        candidate: The answers in question.
        profile: What both were asked.
        limits: What a divergence means at this quantization.
        allowed: What is tolerated of the two.
    """
    return _judged(tuple(baseline), tuple(candidate), profile, limits, allowed)


@lru_cache(maxsize=16)
def _judged(
    baseline: tuple[Output, ...],
    candidate: tuple[Output, ...],
    profile: OutputProfile,
    limits: Limits,
    allowed: Allowed,
) -> OutputsVerdict:
    """Kept: every case of a job, and the rule between its quads, asks the same again."""
    for whose, outputs in (("the baseline", baseline), ("the candidate", candidate)):
        if twice := answered_twice(outputs):
            return _unreadable(f"{whose} has two answers to prompt '{twice}'")
        if unasked := not_asked(outputs, profile):
            return _unreadable(f"{whose} has an answer to prompt '{unasked}', which was not asked")
    reference = {output.prompt: output for output in baseline}
    answers = {output.prompt: output for output in candidate}
    unusable = incomplete(reference, profile) or not_finite(reference)
    if unusable:
        return _no_reference(unusable)
    pairs = [(reference[prompt.name], answers[prompt.name]) for prompt in profile.prompts if prompt.name in answers]
    seen = any(each.prefill or each.forced or each.greedy for pair in pairs for each in pair)
    collapsed = [pair for pair in pairs if newly_degenerate(*pair)]
    fault = incomplete(answers, profile) or broken(reference, answers)
    if collapsed and not seen:
        fault = fault or degenerate_text(collapsed[0][1])
    if fault:
        return _broken(fault, pairs, profile)
    found = (_judge_distributions if seen else _judge_tokens)(pairs, profile, limits, allowed)
    return _collapsed(found, collapsed, pairs, profile, limits) if collapsed else found


def _collapsed(
    found: OutputsVerdict, collapsed: Pairs, pairs: Pairs, profile: OutputProfile, limits: Limits
) -> OutputsVerdict:
    """Broken, unless the figures show nothing: a text that a tie led into may turn in a circle by chance."""
    why = degenerate_text(collapsed[0][1])
    margins = [parted.margin for parted in first_divergences(collapsed)]
    tied = all(margin is not None and margin <= limits.tie for margin in margins)
    if not tied or found.equivalence not in (Equivalence.NEAR_TIE, Equivalence.DISTRIBUTION):
        return _broken(why, pairs, profile)
    told = f"{why}, after a near-tie (up to {limits.tie:g} nat) and inside all tolerances: {found.why}"
    return replace(found, status=Status.INCONCLUSIVE, equivalence=None, why=told)


def _judge_tokens(pairs: Pairs, profile: OutputProfile, limits: Limits, allowed: Allowed) -> OutputsVerdict:
    """Without any distribution that both have: nothing compared is no equality."""
    if not any(ours.tokens and theirs.tokens for ours, theirs in pairs):
        return _unreadable("nothing is in both, neither tokens nor distributions")
    return _told(_inert(judge_by_margins(pairs, limits), allowed), profile, pairs, None)


def _judge_distributions(pairs: Pairs, profile: OutputProfile, limits: Limits, allowed: Allowed) -> OutputsVerdict:
    from harness.judging.outputs_statistics import (  # noqa: PLC0415 - brings numpy, which plans do without
        BASELINE,
        CANDIDATE,
        Comparison,
        Unreadable,
        not_finite_at,
    )

    ours, theirs = zip(*pairs, strict=True)
    try:
        if fault := not_finite_at(ours, BASELINE):
            return _no_reference(fault)
        if fault := not_finite_at(theirs, CANDIDATE):
            return _broken(fault, pairs, profile)
        return _judge_compared(Comparison(pairs), pairs, profile, limits, allowed)
    except Unreadable as damage:
        return _unreadable(str(damage))


def _judge_compared(
    compared: Comparison, pairs: Pairs, profile: OutputProfile, limits: Limits, allowed: Allowed
) -> OutputsVerdict:
    counts = compared.counts
    if not compared.positions:
        return _judge_tokens(pairs, profile, limits, allowed)
    same_tokens = all(ours.tokens == theirs.tokens for ours, theirs in pairs)
    if same_tokens and same_hashes(pairs) and compared.identical:
        why = "all logits' hashes, greedy tokens and kept probabilities equal"
        return _told(_inert(OutputsVerdict(Status.PASS, Equivalence.BITWISE, why), allowed), profile, pairs, counts)
    found = _judge_figures(compared, pairs, limits, allowed)
    return _told(found, profile, pairs, counts)


def _judge_figures(compared: Comparison, pairs: Pairs, limits: Limits, allowed: Allowed) -> OutputsVerdict:
    from harness.judging.outputs_statistics import own_of  # noqa: PLC0415 - as above

    own, candidates_own = (own_of(outputs) for outputs in zip(*pairs, strict=True))
    tolerable = tolerated(allowed, limits, own.figures, candidates_own.figures, own.largest_flip)
    rows = rows_of(compared.figures, tolerable, compared.positions, compared.decoded)
    hard_flips = compared.hard_flips(tolerable.hard)
    worst = compared.worst(tolerable.hard, tolerable.figures.maximum, shown.SHOWN_PROMPTS)
    figures = shown.figures_text(rows, hard_flips, compared.positions, tolerable.hard)
    found = _tier(rows, hard_flips, pairs, limits, allowed)
    if found.status is Status.PASS and tolerable.believed is not None:
        strict = rows_of(compared.figures, tolerable.believed, compared.positions, compared.decoded)
        believed = _tier(strict, compared.hard_flips(tolerable.believed.hard), pairs, limits, allowed)
        found = found if believed.status is Status.PASS else _excused_by_the_baseline(allowed)
    place = f", {shown.place_text(worst[0].place)}" if found.wrong else ""
    notes = "".join(f"; {note}" for note in tolerable.notes)
    why = f"{figures}{place}{notes}{found.why}"
    detail = "\n".join(
        [
            *shown.figures_table(rows, hard_flips, tolerable, _unjudged(compared)),
            *shown.prompts_apart(worst, pairs),
        ]
    )
    return replace(found, why=why, detail=detail)


def _tier(rows: Sequence[Row], hard_flips: int, pairs: Pairs, limits: Limits, allowed: Allowed) -> OutputsVerdict:
    """The word, and what there is to add to the figures."""
    parted = first_divergences(pairs)
    unseen = [each for each in parted if each.reference.greedy is None or each.other.greedy is None]
    surprising = [each for each in unseen if each.margin is not None and each.margin > limits.flip]
    if surprising:
        return OutputsVerdict(Status.FAIL, Equivalence.DIFFERENT, f", {surprising[0]}")
    if not hard_flips and not any(row.over for row in rows):
        return _inside(parted, pairs, limits)
    if allowed.lossy is not None and _within_budget(rows, allowed.lossy):
        # No count of flips: each costs a divergence of its own, so the budget bounds them too.
        why = f", declared lossy ({allowed.factor or 'the KV cache'}: mean of at most {allowed.lossy:g})"
        return OutputsVerdict(Status.PASS, Equivalence.LOSSY_DECLARED, why)
    if allowed.advisory and not hard_flips:
        why = f"; advisory: nothing is calibrated for {allowed.advisory}"
        return OutputsVerdict(Status.INCONCLUSIVE, Equivalence.DIFFERENT, why, advisory=allowed.advisory)
    return OutputsVerdict(Status.FAIL, Equivalence.DIFFERENT, "")


def _excused_by_the_baseline(allowed: Allowed) -> OutputsVerdict:
    """No equality: a baseline that is broken under a harmless change would let everything pass."""
    why = ": the baseline is no reference for so small a difference"
    return OutputsVerdict(Status.INCONCLUSIVE, Equivalence.DIFFERENT, why, advisory=allowed.advisory)


def _inside(parted: Sequence[Divergence], pairs: Pairs, limits: Limits) -> OutputsVerdict:
    """Inside all tolerances, the word goes by what was generated."""
    if not any(ours.tokens and theirs.tokens for ours, theirs in pairs):
        return OutputsVerdict(Status.PASS, Equivalence.DISTRIBUTION, ", nothing was generated")
    if not parted:
        return OutputsVerdict(Status.PASS, Equivalence.GREEDY, ", all greedy tokens equal")
    margins = [each.margin for each in parted if each.margin is not None]
    told = f", {len(parted)} of {len(pairs)} prompts diverge"
    if len(margins) == len(parted) and max(margins) <= limits.tie:
        why = f"{told}, at margins of at most {max(margins):.2g} nat (a near-tie up to {limits.tie:g})"
        return OutputsVerdict(Status.PASS, Equivalence.NEAR_TIE, why)
    return OutputsVerdict(Status.PASS, Equivalence.DISTRIBUTION, told)


def _within_budget(rows: Sequence[Row], budget: float) -> bool:
    means = [row for row in rows if row.name in _MEANS]
    return all(row.found <= max(budget, row.limit or 0.0) for row in means)


def _unjudged(compared: Comparison) -> dict[str, str]:
    return {"same top token": f"{100 * compared.same_top:.2f} %"}


def _broken(why: str, pairs: Pairs, profile: OutputProfile) -> OutputsVerdict:
    scope = scope_text(profile, pairs, None)
    return OutputsVerdict(Status.FAIL, Equivalence.BROKEN, why, shown.texts_apart(pairs), scope)


def _unreadable(why: str) -> OutputsVerdict:
    return OutputsVerdict(Status.ERROR, None, f"the outputs cannot be compared: {why}", slug="E-outputs-unreadable")


def _no_reference(why: str) -> OutputsVerdict:
    return OutputsVerdict(Status.ERROR, None, f"the baseline is no reference: {why}", slug="E-no-baseline")


def _inert(found: OutputsVerdict, allowed: Allowed) -> OutputsVerdict:
    if found.equivalence is not Equivalence.BITWISE or not allowed.changes_numbers:
        return found
    return replace(found, inert=True, why=f"inert, {allowed.factor} should change numbers: {found.why}")


def _told(
    found: OutputsVerdict, profile: OutputProfile, pairs: Pairs, counts: Mapping[Positions, int] | None
) -> OutputsVerdict:
    """With how much was compared at the end of the reason, and what that does not show."""
    why = f"{found.why} ({brief_scope(profile, counts)})"
    return replace(found, why=why, scope=scope_text(profile, pairs, counts))
