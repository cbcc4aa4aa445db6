"""What execution needs of an engine: a command to start, and sense made of what it printed.

Both parts are pure: starting the process is execution's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from harness.domain.arm import Arm
from harness.domain.failure import Failure
from harness.domain.load_facts import LoadFacts
from harness.domain.outputs import Output
from harness.domain.workload import Metric, OutputProfile, ProfileWorkload, PromptProfile, Timed, Workload


@dataclass(frozen=True, slots=True)
class Order:
    """What one process is asked to do.

    Attributes:
        arm: The way of running; flags complete.
        model: The model file.
        workloads: To be timed, in this order.
        repetitions: Repetitions of each, warm-up included: every one is reported raw.
        outputs: Prompts to answer, or ``None``.
        threads: Compute threads.
        slowdown: Share of its speed that is taken away on purpose: a calibration's planted loss.
        timeout_s: Limit of the process, seconds.
        logs: Whether the engine is to log how it loads: logs take time, so nothing that counts is timed then.
    """

    arm: Arm
    model: Path
    workloads: tuple[Timed, ...]
    repetitions: int
    outputs: OutputProfile | None
    threads: int
    slowdown: float = 0.0
    timeout_s: float = 600.0
    logs: bool = False

    @property
    def plain(self) -> tuple[Workload, ...]:
        """The workloads that are prompt processing or token generation."""
        return tuple(load for load in self.workloads if isinstance(load, Workload))

    @property
    def of_profiles(self) -> tuple[ProfileWorkload, ...]:
        """The workloads that are quantities of a profile."""
        return tuple(load for load in self.workloads if isinstance(load, ProfileWorkload))

    @property
    def profiles(self) -> tuple[PromptProfile, ...]:
        """The profiles, each once; one whose cold start is asked for comes first."""
        cold_first = sorted(self.of_profiles, key=lambda load: load.metric is not Metric.COLD)
        return tuple(dict.fromkeys(load.profile for load in cold_first))


@dataclass(frozen=True, slots=True)
class Command:
    """How to start the engine: argument vector, variables beside the clean environment, standard input."""

    argv: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict, hash=False)
    stdin: str = ""


@dataclass(frozen=True, slots=True)
class Exit:
    """How the process ended and what it wrote.

    Attributes:
        code: Exit code; ``None`` where a signal ended it.
        signal: Signal that ended it; ``None`` where it exited.
        timed_out: It was killed at its deadline.
        stdout: Standard output.
        stderr: Standard error (bounded: beginning and end).
    """

    code: int | None
    signal: int | None
    timed_out: bool
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Row:
    """Raw repetitions of one workload, as reported and checked against what was asked.

    Attributes:
        workload: The workload's name.
        tokens: Tokens inside the timed part of a repetition.
        samples_ns: Every repetition's time.
        warms_up: Whether the first repetitions are warm-up; not where a process has one, such as a cold start.
    """

    workload: str
    tokens: int
    samples_ns: tuple[int, ...]
    warms_up: bool = True


@dataclass(frozen=True, slots=True)
class Report:
    """Sense made of one process. Whole rows are kept whatever came after them.

    Attributes:
        rows: One per workload that was completed.
        outputs: One per prompt that was answered.
        load_s: Loading time in seconds, where the engine says.
        engine: What it says of itself: version, commit, library hashes, CPU and GPU names.
        failure: What went wrong first, if anything.
        load: What its log says of loading, where it was to log.
    """

    rows: tuple[Row, ...]
    outputs: tuple[Output, ...]
    load_s: float | None
    engine: dict[str, str]
    failure: Failure | None
    load: LoadFacts | None = None


class Engine(Protocol):
    """One way to measure with a build."""

    def locate(self) -> Sequence[Path]:
        """Files whose bytes decide what runs: executable and libraries, for the content key.

        Raises:
            BadInput: If the build is not there, not executable or of the other fork, or its wheel is not verified.
        """
        ...

    def opaque(self) -> str:
        """Why the located files do not tell what runs; empty if they do. Such measurements equal no others."""
        ...

    def refusal(self, order: Order) -> str:
        """Why this engine cannot do what is asked (e.g. no logits from ``llama-bench``); empty if it can."""
        ...

    def command(self, order: Order) -> Command:
        """The command that does what is asked. Every flag is spelled out."""
        ...

    def read(self, order: Order, ended: Exit) -> Report:
        """Make sense of what the process wrote. Never raises: what cannot be read is a failure in the report."""
        ...

    def asking_why(self, order: Order, ended: Exit) -> Command | None:
        """The command that fails again and says why, where the engine kept that to itself; nothing of it is timed."""
        ...
