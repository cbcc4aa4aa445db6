"""Answered requests to rows: one for each quantity of a profile that was asked for, checked like any other row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from harness.domain.failure import Failure, FailureKind
from harness.domain.measurement import prompt_fact
from harness.domain.workload import Metric, ProfileWorkload, PromptProfile, Workload
from harness.engines.engine import Order, Row
from harness.engines.rows import wrong_samples


@dataclass(frozen=True, slots=True)
class Answer:
    """One request as a child of ours timed it. Times are ns.

    Attributes:
        profile: The profile's name.
        prompt_tokens: Tokens of the prompt.
        prompt_sha256: Hash of their ids.
        predicted: Tokens generated.
        ttft_ns: Request to first token.
        prefill_ns: The prompt's processing.
        decode_ns: First token to last.
        cold_ns: Start of the engine to first token; ``None`` where the process had answered before.
    """

    profile: str
    prompt_tokens: int
    prompt_sha256: str
    predicted: int
    ttft_ns: int
    prefill_ns: int
    decode_ns: int
    cold_ns: int | None

    @property
    def prompt(self) -> str:
        """The prompt in words, equal for equal tokens."""
        return f"{self.prompt_tokens} tokens ({self.prompt_sha256[:12]})"


@dataclass(frozen=True, slots=True)
class ProfileRows:
    """What the answers of a process come to.

    Attributes:
        rows: The right ones, by workload name.
        problems: What is wrong with the others, or does not belong.
        prompts: What the process says of the prompts, as ``ProcessRun.engine`` keeps it.
    """

    rows: Mapping[str, Row]
    problems: tuple[Failure, ...]
    prompts: Mapping[str, str]


def profile_rows(order: Order, answers: Sequence[Answer]) -> ProfileRows:
    """Check the answers against what was asked for and make rows of them. Never raises.

    Args:
        order: What was asked for.
        answers: What came, in order.
    """
    rows: dict[str, Row] = {}
    problems: list[Failure] = []
    asked = {profile.name: profile for profile in order.profiles}
    strangers = sorted({answer.profile for answer in answers} - asked.keys())
    problems += [_unparsable("E-unexpected-row", f"answers to {name!r}, which was not asked") for name in strangers]
    wrong = {name: _wrong_work(profile, answers) for name, profile in asked.items()}
    problems += [failure for failure in wrong.values() if failure]
    for load in order.of_profiles:
        if not wrong[load.profile.name]:
            outcome = _row(order, load, [answer for answer in answers if answer.profile == load.profile.name])
            if isinstance(outcome, Row):
                rows[load.name] = outcome
            else:
                problems.append(outcome)
    return ProfileRows(rows, tuple(problems), {prompt_fact(answer.profile): answer.prompt for answer in answers})


def wants(order: Order, profile: PromptProfile) -> tuple[bool, bool]:
    """Whether a cold start, and whether warm requests, are asked for of a profile."""
    metrics = {load.metric for load in order.of_profiles if load.profile == profile}
    return Metric.COLD in metrics, bool(metrics - {Metric.COLD})


def _wrong_work(profile: PromptProfile, answers: Iterable[Answer]) -> Failure | None:
    """Another prompt or another length than asked, or not the same each time: then no time says anything."""
    mine = [answer for answer in answers if answer.profile == profile.name]
    prompts = sorted({answer.prompt for answer in mine})
    if len(prompts) > 1:
        return _mismatch(f"{profile.name}: the prompt changed between requests: {' and '.join(prompts)}")
    for answer in mine:
        if profile.prompt_tokens not in (0, answer.prompt_tokens) or answer.prompt_tokens < 1:
            asked = profile.prompt_tokens or "the whole text"
            return _mismatch(f"{profile.name}: {answer.prompt_tokens} tokens of prompt were processed, asked {asked}")
        if answer.predicted != profile.n_predict:
            return _mismatch(f"{profile.name}: {answer.predicted} tokens were generated, asked {profile.n_predict}")
    return None


def _row(order: Order, load: ProfileWorkload, answers: Sequence[Answer]) -> Row | Failure:
    cold = load.metric is Metric.COLD
    chosen = [answer for answer in answers if (answer.cold_ns is not None) is cold]
    wanted = 1 if cold else order.repetitions
    if len(chosen) != wanted:
        return _unparsable("E-rows-missing", f"{load.name}: {len(chosen)} samples, asked {wanted}")
    samples = [_NS[load.metric](answer) for answer in chosen]
    work = _WORK[load.metric](chosen[0])
    failure = wrong_samples(work, samples, {})
    if failure:
        return replace(failure, message=f"{load.name}, as {failure.message}")
    tokens = 1 if load.metric.is_time else work.tokens
    return Row(load.name, tokens, tuple(samples), warms_up=not cold)


_NS: Mapping[Metric, Callable[[Answer], int]] = MappingProxyType(
    {
        Metric.COLD: lambda answer: answer.cold_ns or 0,
        Metric.TTFT: lambda answer: answer.ttft_ns,
        Metric.PREFILL: lambda answer: answer.prefill_ns,
        Metric.DECODE: lambda answer: answer.decode_ns,
    }
)


def _prompt_work(answer: Answer) -> Workload:
    """A first token needs the whole prompt: no time to it can be believed that the prompt's processing can't have."""
    return Workload(answer.prompt_tokens, 0)


_WORK: Mapping[Metric, Callable[[Answer], Workload]] = MappingProxyType(
    {
        Metric.COLD: _prompt_work,
        Metric.TTFT: _prompt_work,
        Metric.PREFILL: _prompt_work,
        Metric.DECODE: lambda answer: Workload(0, answer.predicted - 1),
    }
)
"""What is done inside a time, as the plain workload whose plausibility holds for it too."""


def _unparsable(slug: str, message: str) -> Failure:
    return Failure(FailureKind.UNPARSABLE, message, slug)


def _mismatch(message: str) -> Failure:
    return Failure(FailureKind.ECHO_MISMATCH, message, "E-echo-mismatch")
