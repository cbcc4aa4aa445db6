"""Outputs of two arms: the same, explained by a near-tie, or different.

Provisional: greedy tokens, prompt logits' hashes and the reference's margins. A difference between the two limits is
neither a tie nor proof and stays undecided until distributions are compared. Only the first divergence of a prompt is
looked at: after it the two arms answer different contexts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.domain.outputs import Output
from harness.domain.words import Equivalence, Status
from harness.domain.workload import OutputProfile
from harness.judging.quants import Limits
from harness.judging.textdiff import show_divergence

_MIN_TOKENS_SHARE = 8
_MAX_SHARE = 0.9
_MIN_TOKENS_VARIETY = 16
_MIN_VARIETY = 0.1


@dataclass(frozen=True, slots=True)
class OutputsVerdict:
    """What two sets of answers say.

    Attributes:
        status: Pass, fail, inconclusive; error where the reference itself cannot be used.
        equivalence: The word; ``None`` where undecided or without a reference.
        why: The finding with prompt, position, margin and both tokens.
        detail: The diverging texts, for a person to read.
    """

    status: Status
    equivalence: Equivalence | None
    why: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first token at which two answers part.

    Attributes:
        prompt: The prompt's name.
        position: Index of the generated token.
        reference: The baseline's answer.
        other: The candidate's answer.
        margin: Gap to the runner-up in the baseline, nats; ``None`` where it is not known.
    """

    prompt: str
    position: int
    reference: Output
    other: Output
    margin: float | None

    def __str__(self) -> str:
        margin = "unknown" if self.margin is None else f"{self.margin:.3g} nat"
        tokens = f"{self.reference.tokens[self.position]} became {self.other.tokens[self.position]}"
        return f"prompt '{self.prompt}' token {self.position}: id {tokens}, reference margin {margin}"


def judge_outputs(
    baseline: Sequence[Output], candidate: Sequence[Output], profile: OutputProfile, limits: Limits
) -> OutputsVerdict:
    """Compare a candidate's answers with the baseline's.

    Args:
        baseline: The reference answers.
        candidate: The answers in question.
        profile: What both were asked.
        limits: What a divergence means at this quantization.
    """
    reference = {output.prompt: output for output in baseline}
    answers = {output.prompt: output for output in candidate}
    unusable = _incomplete(reference, profile) or _not_finite(reference)
    if unusable:
        return OutputsVerdict(Status.ERROR, None, f"the baseline is no reference: {unusable}")
    broken = _incomplete(answers, profile) or _broken(reference, answers)
    if broken:
        return OutputsVerdict(Status.FAIL, Equivalence.BROKEN, broken, _first_texts(reference, answers, profile))
    pairs = [(reference[prompt.name], answers[prompt.name]) for prompt in profile.prompts]
    divergences = [found for pair in pairs if (found := first_divergence(*pair))]
    if divergences:
        return _judge_divergences(divergences, len(pairs), limits)
    return _identical(pairs, profile)


def scope(profile: OutputProfile) -> str:
    """Say how much was compared, and what that does not show."""
    prompts = len(profile.prompts)
    tokens, positions = prompts * profile.n_predict, prompts * profile.positions
    return (
        f"{prompts} prompts, {tokens} greedy tokens, up to {positions} prompt positions: "
        "finds gross breakage, does not prove unchanged quality"
    )


def first_divergence(reference: Output, other: Output) -> Divergence | None:
    """Find where two answers of equal length part."""
    for position, (ours, theirs) in enumerate(zip(reference.tokens, other.tokens, strict=True)):
        if ours != theirs:
            return Divergence(reference.prompt, position, reference, other, _margin(reference, position))
    return None


def is_degenerate(tokens: Sequence[int]) -> bool:
    """Whether an answer is one token over and over, or a few tokens in a circle."""
    if len(tokens) < _MIN_TOKENS_SHARE:
        return False
    counts = Counter(tokens)
    too_few = len(tokens) >= _MIN_TOKENS_VARIETY and len(counts) / len(tokens) < _MIN_VARIETY
    return too_few or max(counts.values()) / len(tokens) > _MAX_SHARE


def _margin(output: Output, position: int) -> float | None:
    if output.margins is None or position >= len(output.margins):
        return None
    margin = output.margins[position]
    return None if math.isnan(margin) else margin


def _incomplete(outputs: Mapping[str, Output], profile: OutputProfile) -> str:
    missing = [prompt.name for prompt in profile.prompts if prompt.name not in outputs]
    if missing or not profile.prompts:
        return f"{len(missing)} of {len(profile.prompts)} prompts have no answer: {', '.join(missing[:3]) or '-'}"
    for prompt in profile.prompts:
        got = len(outputs[prompt.name].tokens)
        if got != profile.n_predict:
            return f"prompt '{prompt.name}' has {got} tokens, {profile.n_predict} were asked for"
    return ""


def _not_finite(outputs: Mapping[str, Output]) -> str:
    return next((f"prompt '{name}' has NaN or inf logits" for name, each in outputs.items() if not each.finite), "")


def _broken(reference: Mapping[str, Output], answers: Mapping[str, Output]) -> str:
    checks: tuple[Callable[[Output, Output], str], ...] = (_tokenized_otherwise, _newly_degenerate)
    found = _not_finite({name: answers[name] for name in reference if name in answers})
    for check in checks:
        for name, output in reference.items():
            found = found or (check(output, answers[name]) if name in answers else "")
    return found


def _tokenized_otherwise(reference: Output, answer: Output) -> str:
    if reference.prompt_tokens == answer.prompt_tokens:
        return ""
    ours, theirs = len(reference.prompt_tokens), len(answer.prompt_tokens)
    return f"prompt '{reference.prompt}' is tokenized differently ({ours} v {theirs} tokens)"


def _newly_degenerate(reference: Output, answer: Output) -> str:
    if not is_degenerate(answer.tokens) or is_degenerate(reference.tokens):
        return ""
    distinct = len(set(answer.tokens))
    return f"prompt '{answer.prompt}' is degenerate: {distinct} distinct of {len(answer.tokens)} tokens"


def _identical(pairs: Sequence[tuple[Output, Output]], profile: OutputProfile) -> OutputsVerdict:
    hashes = [(ours.logits_sha256, theirs.logits_sha256) for ours, theirs in pairs]
    if all(ours and ours == theirs for ours, theirs in hashes):
        return OutputsVerdict(
            Status.PASS, Equivalence.BITWISE, "all logits' hashes and greedy tokens equal", scope(profile)
        )
    known = "" if all(ours and theirs for ours, theirs in hashes) else ", logits not known"
    return OutputsVerdict(Status.PASS, Equivalence.GREEDY, f"all greedy tokens equal{known}", scope(profile))


def _judge_divergences(found: Sequence[Divergence], prompts: int, limits: Limits) -> OutputsVerdict:
    ordered = sorted(found, key=lambda divergence: _severity(divergence, limits), reverse=True)
    worst = ordered[0]
    status, word, meaning = _meaning(worst.margin, limits)
    why = f"{len(found)} of {prompts} prompts diverge, {worst}: {meaning}"
    return OutputsVerdict(status, word, why, "\n\n".join(_show(divergence) for divergence in ordered))


def _severity(divergence: Divergence, limits: Limits) -> tuple[int, float]:
    """Order proof before doubt before ties, then by margin."""
    status, _, _ = _meaning(divergence.margin, limits)
    return (Status.PASS, Status.INCONCLUSIVE, Status.FAIL).index(status), divergence.margin or 0.0


def _meaning(margin: float | None, limits: Limits) -> tuple[Status, Equivalence | None, str]:
    if margin is None:
        return Status.INCONCLUSIVE, None, "whether this is a tie cannot be known"
    if margin <= limits.tie:
        return Status.PASS, Equivalence.NEAR_TIE, f"a near-tie (at most {limits.tie:g} nat)"
    if margin > limits.hard:
        return Status.FAIL, Equivalence.DIFFERENT, f"no tie explains this (above {limits.hard:g} nat)"
    return (
        Status.INCONCLUSIVE,
        None,
        f"more than a tie ({limits.tie:g} nat) and less than proof ({limits.hard:g} nat)",
    )


def _show(divergence: Divergence) -> str:
    return f"{divergence}\n{show_divergence(divergence.reference.text, divergence.other.text)}"


def _first_texts(reference: Mapping[str, Output], answers: Mapping[str, Output], profile: OutputProfile) -> str:
    shown = [
        f"prompt '{prompt.name}'\n{show_divergence(reference[prompt.name].text, answers[prompt.name].text)}"
        for prompt in profile.prompts
        if prompt.name in answers and reference[prompt.name].tokens != answers[prompt.name].tokens
    ]
    return "\n\n".join(shown)
