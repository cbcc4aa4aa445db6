"""Verdicts: opinion on measurements, with estimate, interval and the reason."""

from __future__ import annotations

from dataclasses import dataclass

from harness.domain.words import Equivalence, Pitfall, Status, Throughput


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval.

    Attributes:
        value: Best estimate.
        low: Lower bound of the interval.
        high: Upper bound.
        n: What it rests on: process starts (single arm), quads of four (contrast), blocks of all arms (attribution).
        unit: ``t/s``, ``ms``, ``ratio`` or ``MiB``.
        p: Two-sided p-value, where a test was made.
        assumed: How far quads are taken to scatter (standard deviation of a log ratio), where nobody knows: interval
            and p-value hold if they do. ``None``: the scatter is known or estimated.
    """

    value: float
    low: float
    high: float
    n: int
    unit: str
    p: float | None = None
    assumed: float | None = None


@dataclass(frozen=True, slots=True)
class ArmSpeed:
    """What an arm did, for the closing table: mean of its processes and their relative spread.

    Attributes:
        label: The arm.
        tps: Tokens per second: geometric mean of process medians.
        spread: Standard deviation of the process medians over their mean; ``None`` below two processes.
        processes: Process starts.
        ms: Where the workload is a time to the first token: that time, of which ``tps`` is the inverse.
    """

    label: str
    tps: float
    spread: float | None
    processes: int
    ms: float | None = None


@dataclass(frozen=True, slots=True)
class Effect:
    """One part of a change that has several causes.

    Attributes:
        name: A factor, ``interaction``, or a step such as ``build at the old configuration``.
        throughput: The word; ``None`` for a step, which is shown and not judged.
        ratio: What it multiplies the speed by, with its interval; ``None`` where there are too few blocks.
    """

    name: str
    throughput: Throughput | None
    ratio: Estimate | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a case ended.

    Attributes:
        case: The case's id.
        status: The contract's word.
        reason: One sentence with the figures; the first line of every message.
        throughput: Verdict on speed, where one was made.
        equivalence: Verdict on outputs, where one was made.
        inert: A flag that should change numbers changed none: outputs are bitwise equal.
        pitfall: Verdict on the trap, where one was made.
        estimate: The figure behind it.
        expected: What the check wanted, in words.
        arms: Speeds of the arms.
        slug: Of the error or refusal, if it is one.
        detail: Longer text: the end of an engine's log, a difference in outputs.
        node: Short description of the node class members it ran on (CPU or GPU name).
        seconds: Measured seconds of the job's processes that this case rests on.
        synthetic: The weights are random.
        contrast: Name of the contrast that the case belongs to, if any.
        effects: Of an attribution: the two factors, their interaction, then the simple steps.
        void: Which measurements of its job count for nothing, and why; empty where all count.
        scope: Of outputs: what was compared, and what that does not show.
        load: How the builds loaded the model, a line each: what they did otherwise than asked or estimated, and in
            what two arms differ.
        tries: The tries of its job, a line each, where infrastructure made more than one necessary.
    """

    case: str
    status: Status
    reason: str
    throughput: Throughput | None = None
    equivalence: Equivalence | None = None
    pitfall: Pitfall | None = None
    estimate: Estimate | None = None
    expected: str = ""
    arms: tuple[ArmSpeed, ...] = ()
    slug: str = ""
    detail: str = ""
    node: str = ""
    seconds: float = 0.0
    synthetic: bool = False
    contrast: str = ""
    effects: tuple[Effect, ...] = ()
    void: str = ""
    inert: bool = False
    scope: str = ""
    load: str = ""
    tries: tuple[str, ...] = ()
