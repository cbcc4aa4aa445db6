"""Gains and losses of one contrast: a gain never makes up for a loss, unless the policy says that it pays for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.domain.policy import Trade
from harness.domain.verdict import Estimate
from harness.domain.words import Throughput
from harness.judging.throughput import ContrastVerdict

_MIXED = (Throughput.IMPROVED, Throughput.REGRESSED)


@dataclass(frozen=True, slots=True)
class Accepted:
    """A loss that is paid for.

    Attributes:
        trade: What the policy says.
        gain: The workload that pays.
        ratio: Its gain.
    """

    trade: Trade
    gain: str
    ratio: Estimate

    def __str__(self) -> str:
        gain = f"{self.gain} {100 * (self.ratio.value - 1):+.1f} %"
        return f"accepted by the policy: {gain} pays for a loss of at most {100 * self.trade.at_most:g} %"


def reading(found: Mapping[str, ContrastVerdict]) -> str:
    """What the workloads of a contrast say together, e.g. ``mixed: pp512 improved, tg128 regressed``.

    Args:
        found: What was decided, by workload.

    Returns:
        A phrase; empty unless one got faster and another slower.
    """
    decided = {name: each.throughput for name, each in found.items() if each.throughput in _MIXED}
    if len(set(decided.values())) < len(_MIXED):
        return ""
    return "mixed: " + ", ".join(f"{name} {word}" for name, word in decided.items())


def accepted(loss: str, found: Mapping[str, ContrastVerdict], trades: Iterable[Trade]) -> Accepted | None:
    """Whether a loss is paid for by a gain of the same contrast.

    Both have to be sure: the lower bounds of the two intervals keep to the trade.

    Args:
        loss: The workload that got slower.
        found: What was decided, by workload.
        trades: What the policy accepts.
    """
    lost = found[loss].ratio
    if lost is None:
        return None
    for trade in trades:
        if trade.pays_for(loss) and lost.low >= 1 - trade.at_most:
            for name, each in found.items():
                if trade.pays_with(name) and _gained(each, trade.at_least) and each.ratio:
                    return Accepted(trade, name, each.ratio)
    return None


def _gained(found: ContrastVerdict, at_least: float) -> bool:
    return found.throughput is Throughput.IMPROVED and found.ratio is not None and found.ratio.low >= 1 + at_least
