"""What an output check covered, and what it does not show: told with every verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.domain.outputs import Output
from harness.domain.workload import OutputProfile
from harness.judging.outputs_places import Positions

_ALWAYS = "longer contexts, sampling, other prompts, several requests at once"


def scope_text(
    profile: OutputProfile, pairs: Sequence[tuple[Output, Output]], counts: Mapping[Positions, int] | None
) -> str:
    """In words, what was compared and what was not.

    Args:
        profile: What was asked.
        pairs: The answers that were compared.
        counts: Positions compared by kind; ``None``: no distributions at all.
    """
    generated = sum(len(ours.tokens) for ours, theirs in pairs if theirs.tokens)
    given = {kind: number for kind, number in (counts or {}).items() if number and kind is not Positions.GREEDY}
    positions = " + ".join(f"{number:,} {kind}" for kind, number in given.items())
    covered = [
        f"{len(profile.prompts)} prompts",
        f"{generated} greedy tokens",
        *([f"distributions at {positions} positions"] if positions else []),
        *(["those of generated tokens until they part"] if counts and counts[Positions.GREEDY] else []),
        f"contexts of up to {max((_context(ours) for ours, _ in pairs), default=0):,} tokens",
    ]
    return (
        f"compared: {', '.join(covered)}; not covered: {', '.join([*_left_out(profile, counts, generated), _ALWAYS])}"
    )


def brief_scope(profile: OutputProfile, counts: Mapping[Positions, int] | None) -> str:
    """How much was compared, for the end of a reason."""
    prompts = f"{len(profile.prompts)} prompts"
    if counts is None:
        return f"{prompts}, {len(profile.prompts) * profile.n_predict} greedy tokens"
    return f"{prompts}, {sum(counts.values()):,} positions"


def _left_out(profile: OutputProfile, counts: Mapping[Positions, int] | None, generated: int) -> list[str]:
    told = [] if generated else ["generation"]
    if counts is None:
        return [*told, "distributions of the next token"]
    if not counts[Positions.PREFILL]:
        told.append("prompt positions (a server gives none)")
    if not counts[Positions.FORCED]:
        told.append("forced answers")
    return [*told, f"tokens beyond the {profile.top} most probable (divergences are lower bounds)"]


def _context(output: Output) -> int:
    return len(output.prompt_tokens) + max(len(output.tokens), len(output.forced_tokens))
