"""What makes outputs unusable whatever they say: missing, not finite, other tokens, or text that turns in a circle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from harness.domain.outputs import Output, Source
from harness.domain.workload import OutputProfile

_MIN_TOKENS_SHARE = 8
_MAX_SHARE = 0.9
_MIN_TOKENS_VARIETY = 16
_MIN_VARIETY = 0.1


def incomplete(outputs: Mapping[str, Output], profile: OutputProfile) -> str:
    """Which prompts have no answer, or one of another length than was asked for; empty if all are there."""
    missing = [prompt.name for prompt in profile.prompts if prompt.name not in outputs]
    if missing or not profile.prompts:
        return f"{len(missing)} of {len(profile.prompts)} prompts have no answer: {', '.join(missing[:3]) or '-'}"
    for prompt in profile.prompts:
        output = outputs[prompt.name]
        asked = profile.n_predict if generates(output) else 0
        if len(output.tokens) != asked:
            return f"prompt '{prompt.name}' has {len(output.tokens)} tokens, {asked} were asked for"
    return ""


def answered_twice(outputs: Sequence[Output]) -> str:
    """The first prompt with more than one answer: nobody could tell which one counts; empty where each has one."""
    return next((name for name, count in Counter(output.prompt for output in outputs).items() if count > 1), "")


def not_asked(outputs: Sequence[Output], profile: OutputProfile) -> str:
    """The first prompt that has an answer and was not asked; empty if there is none."""
    asked = {prompt.name for prompt in profile.prompts}
    return next((output.prompt for output in outputs if output.prompt not in asked), "")


def generates(output: Output) -> bool:
    """Whether its source generates at all."""
    return output.source is not Source.PERPLEXITY


def not_finite(outputs: Mapping[str, Output]) -> str:
    """Which prompt has NaN or infinity among its logits; empty if none has."""
    return next((f"prompt '{name}' has NaN or inf logits" for name, each in outputs.items() if not each.finite), "")


def broken(reference: Mapping[str, Output], answers: Mapping[str, Output]) -> str:
    """What is wrong with answers beside their reference, apart from which tokens they chose; empty if nothing is."""
    found = not_finite({name: answers[name] for name in reference if name in answers})
    for name, output in reference.items():
        found = found or (_tokenized_otherwise(output, answers[name]) if name in answers else "")
    return found


def is_degenerate(tokens: Sequence[int]) -> bool:
    """Whether an answer is one token over and over, or a few tokens in a circle."""
    if len(tokens) < _MIN_TOKENS_SHARE:
        return False
    counts = Counter(tokens)
    too_few = len(tokens) >= _MIN_TOKENS_VARIETY and len(counts) / len(tokens) < _MIN_VARIETY
    return too_few or max(counts.values()) / len(tokens) > _MAX_SHARE


def _tokenized_otherwise(reference: Output, answer: Output) -> str:
    """A source that leads through no answer has no tokens of it: that is no other tokenizer."""
    forced = reference.forced_tokens and answer.forced_tokens
    for what, ours, theirs in (
        ("prompt", reference.prompt_tokens, answer.prompt_tokens),
        ("the answer to prompt", reference.forced_tokens if forced else (), answer.forced_tokens if forced else ()),
    ):
        if ours != theirs:
            return f"{what} '{reference.prompt}' is tokenized differently ({len(ours)} v {len(theirs)} tokens)"
    return ""


def newly_degenerate(reference: Output, answer: Output) -> bool:
    """Whether an answer turns in a circle where its reference does not."""
    return is_degenerate(answer.tokens) and not is_degenerate(reference.tokens)


def degenerate_text(answer: Output) -> str:
    """How an answer turns in a circle, for a reason."""
    distinct = len(set(answer.tokens))
    return f"prompt '{answer.prompt}' is degenerate: {distinct} distinct of {len(answer.tokens)} tokens"
