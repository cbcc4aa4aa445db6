"""Measurements: what one engine process reported, raw, with what was discarded and why."""

from __future__ import annotations

import math
from dataclasses import dataclass

from harness.domain.failure import Failure

NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Samples:
    """The repetitions of one workload inside one process.

    Attributes:
        workload: The workload's name.
        tokens: Tokens inside the timed part of a repetition.
        all_ns: Every repetition's time in nanoseconds, in order.
        discarded: How many of the first were warm-up and are not judged.
    """

    workload: str
    tokens: int
    all_ns: tuple[int, ...]
    discarded: int

    @property
    def kept_ns(self) -> tuple[int, ...]:
        """The repetitions that are judged."""
        return self.all_ns[self.discarded :]


@dataclass(frozen=True, slots=True)
class Output:
    """What one arm answered to one prompt.

    Attributes:
        prompt: The prompt's name.
        prompt_tokens: Its token ids.
        tokens: Greedily generated ids.
        margins: Per generated token, gap to the runner-up's log-probability, in nats; ``None``: not known.
        text: The generated text, shown only.
        logits_sha256: Hash over the raw 32-bit logits; empty where the engine gives none.
        finite: No NaN and no infinity was among the logits.
    """

    prompt: str
    prompt_tokens: tuple[int, ...]
    tokens: tuple[int, ...]
    margins: tuple[float, ...] | None
    text: str
    logits_sha256: str
    finite: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One process start in a job's schedule.

    Attributes:
        arm: Index of the arm in the job.
        block: Index of the block (for two arms: of the pair); -1 for the burn-in, which is not scored.
        outputs: Whether this process also answers the prompts.
    """

    arm: int
    block: int
    outputs: bool = False

    @property
    def scored(self) -> bool:
        """Burn-in processes are run and recorded, and not judged."""
        return self.block >= 0


@dataclass(frozen=True, slots=True)
class Conditions:
    """The state of the machine around one process.

    Attributes:
        niceness: Niceness the engine ran at.
        cpus: Cores it was pinned to; empty where it was not.
        threads: Compute threads it was given.
        load_before: One-minute load average before it started.
    """

    niceness: int
    cpus: tuple[int, ...]
    threads: int
    load_before: float


@dataclass(frozen=True, slots=True)
class ProcessRun:
    """One engine process: fact, not opinion.

    Attributes:
        step: Its place in the schedule.
        content_key: Hash of what really ran (model bytes, executable, libraries, flags); empty if it never got so far.
        samples: One entry per workload.
        outputs: One entry per prompt, where asked.
        wall_s: From start to exit, seconds.
        load_s: Loading the model, seconds; ``None`` where the engine does not say.
        max_rss_bytes: Peak resident memory.
        conditions: The state of the machine.
        engine: What the engine said of itself: version, libraries, commit.
        failure: What went wrong, if anything; complete samples that came before it are kept.
    """

    step: Step
    content_key: str
    samples: tuple[Samples, ...]
    outputs: tuple[Output, ...]
    wall_s: float
    load_s: float | None
    max_rss_bytes: int
    conditions: Conditions
    engine: dict[str, str]
    failure: Failure | None = None

    def samples_of(self, workload: str) -> Samples | None:
        """The samples of a workload, if this process has them."""
        return next((entry for entry in self.samples if entry.workload == workload), None)


def is_plausible_ns(value: float) -> bool:
    """A time can be judged only if it is a positive finite number."""
    return math.isfinite(value) and value > 0
