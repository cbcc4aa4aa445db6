"""Outputs without distributions, as old journals have them: the reference's margin where greedy tokens part decides.

Only the first divergence of a prompt is looked at: after it the two arms answer different contexts. One between the two
limits is neither a tie nor proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.domain.outputs import Output
from harness.domain.words import Equivalence, Status
from harness.judging.outputs_sound import generates
from harness.judging.outputs_verdict import OutputsVerdict
from harness.judging.quants import Limits
from harness.judging.textdiff import show_divergence


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


def first_divergences(pairs: Sequence[tuple[Output, Output]]) -> list[Divergence]:
    """Where the answers to each prompt part, of those that do; a source that generates nothing parts nowhere."""
    generating = [pair for pair in pairs if all(map(generates, pair))]
    return [found for pair in generating if (found := first_divergence(*pair))]


def first_divergence(reference: Output, other: Output) -> Divergence | None:
    """Find where two answers of equal length part."""
    for position, (ours, theirs) in enumerate(zip(reference.tokens, other.tokens, strict=True)):
        if ours != theirs:
            return Divergence(reference.prompt, position, reference, other, _margin(reference, position))
    return None


def judge_by_margins(pairs: Sequence[tuple[Output, Output]], limits: Limits) -> OutputsVerdict:
    """Compare answers by their tokens, the hashes of their logits and the reference's margins.

    Args:
        pairs: Sound answers of reference and other arm to the same prompts.
        limits: What a divergence means at this quantization.
    """
    divergences = first_divergences(pairs)
    if divergences:
        return _judge_divergences(divergences, len(pairs), limits)
    if same_hashes(pairs):
        return OutputsVerdict(Status.PASS, Equivalence.BITWISE, "all logits' hashes and greedy tokens equal")
    known = "" if all(ours.logits_sha256 and theirs.logits_sha256 for ours, theirs in pairs) else ", logits not known"
    return OutputsVerdict(Status.PASS, Equivalence.GREEDY, f"all greedy tokens equal{known}")


def same_hashes(pairs: Sequence[tuple[Output, Output]]) -> bool:
    """Whether the hashes of all logits are there and equal."""
    return all(ours.logits_sha256 and ours.logits_sha256 == theirs.logits_sha256 for ours, theirs in pairs)


def show_divergences(divergences: Sequence[Divergence]) -> str:
    """The texts on either side of each divergence."""
    return "\n\n".join(_show(divergence) for divergence in divergences)


def _margin(output: Output, position: int) -> float | None:
    if output.margins is None or position >= len(output.margins):
        return None
    margin = output.margins[position]
    return None if math.isnan(margin) else margin


def _judge_divergences(found: Sequence[Divergence], prompts: int, limits: Limits) -> OutputsVerdict:
    ordered = sorted(found, key=lambda divergence: _severity(divergence, limits), reverse=True)
    worst = ordered[0]
    status, word, meaning = _meaning(worst.margin, limits)
    why = f"{len(found)} of {prompts} prompts diverge, {worst}: {meaning}"
    return OutputsVerdict(status, word, why, show_divergences(ordered))


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
