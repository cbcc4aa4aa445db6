"""Figures in words: the first line of every verdict is made here, so that all of them read alike."""

from __future__ import annotations

from collections.abc import Sequence

from harness.domain.case import (
    AttributionCheck,
    Check,
    ContrastCheck,
    Expectation,
    FloorCheck,
    MemoryCheck,
    OutputCheck,
    PitfallCheck,
)
from harness.domain.node import NodeFacts
from harness.domain.policy import Policy
from harness.domain.verdict import ArmSpeed, Estimate
from harness.judging.centres import count, percent
from harness.judging.sequential import INTERVAL_ALPHA

NO_FLOOR = "the speed is shown, no floor"
"""What is expected of a case that only measures."""

LEVEL = f"{100 * (1 - INTERVAL_ALPHA):g} %"
_WHOLE_FROM = 999.95
_ONE_DIGIT_FROM = 99.995


def speed_text(tps: float) -> str:
    """Tokens per second with about four digits, without the unit."""
    if tps >= _WHOLE_FROM:
        return f"{tps:.0f}"
    if tps >= _ONE_DIGIT_FROM:
        return f"{tps:.1f}"
    return f"{tps:.2f}" if tps >= 1 else f"{tps:.3g}"


def arm_text(arm: ArmSpeed) -> str:
    """An arm's figure without the unit: its speed, or the ms of a time to the first token."""
    return speed_text(arm.tps if arm.ms is None else arm.ms)


def speeds_text(arms: Sequence[ArmSpeed], between: str = " -> ") -> str:
    """All arms' figures, e.g. ``412.3 -> 380.1 t/s`` or ``3777 -> 7459 ms``; baseline first."""
    unit = "t/s" if any(arm.ms is None for arm in arms) else "ms"
    return f"{between.join(map(arm_text, arms))} {unit}" if arms else "no speed"


def interval_name(estimate: Estimate) -> str:
    """What an interval holds: 99 %, or what it would hold if quads scattered as nobody knows that they do."""
    assumption = assumption_text(estimate)
    return f"interval {assumption}" if assumption else f"{LEVEL} interval"


def assumption_text(estimate: Estimate) -> str:
    """What its interval assumes, e.g. ``if quads scatter by 10 %``; empty where that is known or estimated."""
    return assumed_text(estimate.assumed)


def assumed_text(assumed: float | None) -> str:
    """The same of a scatter that is kept without its estimate: standard deviation of a log ratio, or ``None``."""
    return "" if assumed is None else f"if quads scatter by {percent(assumed)}"


def estimate_text(estimate: Estimate) -> str:
    """A figure with its interval and what it rests on."""
    if estimate.unit == "ratio":
        return (
            f"ratio {estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}] "
            f"({interval_name(estimate)}, n = {count(estimate.n)})"
        )
    if estimate.unit == "MiB":
        return f"peak {estimate.value:.1f} MiB (n = {estimate.n} processes, lowest {estimate.low:.1f})"
    figures = f"{speed_text(estimate.value)} {estimate.unit} [{speed_text(estimate.low)}, {speed_text(estimate.high)}]"
    return f"{figures} ({interval_name(estimate)}, n = {estimate.n} processes)"


def node_text(node: NodeFacts | None) -> str:
    """Short description of what decides speed: GPUs, or the CPU."""
    if node is None:
        return "unknown node"
    if not node.gpus:
        return f"{' '.join(node.cpu_model.split())} ({node.cores} cores)"
    names = [gpu.name for gpu in node.gpus]
    return ", ".join(f"{names.count(name)}x {name}" if names.count(name) > 1 else name for name in dict.fromkeys(names))


def expected_text(check: Check, policy: Policy) -> str:
    """What a check wants, in words."""
    match check:
        case FloorCheck():
            return _floor_text(check)
        case ContrastCheck(expect=expect):
            return _EXPECTED[expect] + f" (alpha {policy.alpha:g}, {_margin_text(policy)})"
        case AttributionCheck(factors=(first, _), expect=expect):
            wanted = _EXPECTED_OF_FACTOR[expect].format(first)
            return f"{wanted} (alpha {policy.alpha:g} for three tests together, {_margin_text(policy)})"
        case PitfallCheck(source=source):
            return f"slower, as reported in {source or 'an unnamed source'} (alpha {policy.alpha:g})"
        case OutputCheck(lossy=lossy, reference=reference):
            loss = "" if lossy is None else f", or a declared loss of at most {lossy:g} nat on average"
            return f"outputs equivalent to {f'those on record as {reference}' if reference else _THE_BASELINES}{loss}"
        case MemoryCheck(max_rss_mib=limit):
            return f"peak resident memory of at most {limit:g} MiB"


def _floor_text(check: FloorCheck) -> str:
    if check.max_ms is not None:
        return f"at most {check.max_ms:g} ms"
    floor = check.tokens_per_second
    return NO_FLOOR if floor is None else f"at least {floor:g} t/s"


_THE_BASELINES = "the baseline's"
_EXPECTED = {
    Expectation.NO_REGRESSION: "candidate not slower than the baseline",
    Expectation.IMPROVED: "candidate faster than the baseline",
    Expectation.REPORT: "any decided verdict",
}


_EXPECTED_OF_FACTOR = {
    Expectation.NO_REGRESSION: "{} does not make it slower",
    Expectation.IMPROVED: "{} makes it faster",
    Expectation.REPORT: "the effects of both factors decided",
}


def _margin_text(policy: Policy) -> str:
    return "margin by the known spread" if policy.auto_margin else f"margin {policy.margin:g}"
