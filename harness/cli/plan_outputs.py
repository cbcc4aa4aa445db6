"""What a check of outputs costs: the positions and tokens that each of its arms evaluates."""

from __future__ import annotations

from harness.domain.case import Case
from harness.domain.workload import OutputProfile, Prompt


def outputs_of(case: Case) -> dict[str, int] | None:
    """Counts of one arm, at most: the model's tokenizer decides; ``None`` for a case that asks for no outputs."""
    profile = case.workload
    if not isinstance(profile, OutputProfile):
        return None
    return {
        "prompts": len(profile.prompts),
        "positions": sum(min(profile.positions, _longest(prompt)) for prompt in profile.prompts),
        "forced": sum(min(profile.forced, len(prompt.answer.encode())) for prompt in profile.prompts),
        "generated": profile.n_predict * len(profile.prompts),
    }


def outputs_text(counts: dict[str, int]) -> str:
    """The same in words."""
    return (
        f"{counts['prompts']} prompts; of each arm up to {counts['positions']:,} prompt positions, "
        f"{counts['forced']:,} forced and {counts['generated']:,} generated tokens"
    )


def _longest(prompt: Prompt) -> int:
    """Tokens of a prompt, at most: no tokenizer makes more than there are bytes."""
    return prompt.tokens or max(1, len(prompt.text.encode()))
