"""What an output check covered, and what it does not show: told with every verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.domain.outputs import Output
from harness.domain.workload import OutputProfile
from harness.judging.outputs_places import Positions

_ALWAYS = "sampling, other prompts, other batches and loads"


def scope_text(
    profile: OutputProfile, pairs: Sequence[tuple[Output, Output]], counts: Mapping[Positions, int] | None
) -> str:
    """In words, what was compared and what was not.

    Args:
        profile: What was asked.
        pairs: The answers that were compared.
        counts: Positions compared by kind; ``None``: no distributions at all.
    """
    covered = [f"{len(profile.prompts)} prompts", *_covered(profile, counts)]
    longest = max((len(ours.prompt_tokens) + _decoded(ours) for ours, _ in pairs), default=0)
    if longest:
        covered.append(f"contexts of up to {longest:,} tokens")
    return f"compared: {', '.join(covered)}; not covered: {', '.join([*_left_out(profile, counts), _ALWAYS])}"


def brief_scope(profile: OutputProfile, counts: Mapping[Positions, int] | None) -> str:
    """How much was compared, for the end of a reason."""
    prompts = f"{len(profile.prompts)} prompts"
    if counts is None:
        return f"{prompts}, {len(profile.prompts) * profile.n_predict} greedy tokens"
    return f"{prompts}, {sum(counts.values()):,} positions"


def _covered(profile: OutputProfile, counts: Mapping[Positions, int] | None) -> list[str]:
    generated = f"{len(profile.prompts) * profile.n_predict} greedy tokens"
    if counts is None:
        return [generated]
    told = " + ".join(f"{number:,} {kind}" for kind, number in counts.items() if number)
    return [f"distributions at {told or 'no'} positions", generated]


def _left_out(profile: OutputProfile, counts: Mapping[Positions, int] | None) -> list[str]:
    if counts is None:
        return ["distributions of the next token, longer contexts"]
    told = []
    if not counts[Positions.PREFILL]:
        told.append("prompt positions (a server gives none)")
    if not counts[Positions.FORCED]:
        told.append("forced answers")
    told.append(f"tokens beyond the {profile.top} most probable (divergences are lower bounds)")
    return [*told, "longer contexts"]


def _decoded(output: Output) -> int:
    return max(len(output.tokens), len(output.forced_tokens))
