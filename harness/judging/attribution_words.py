"""An attribution in one sentence: of the whole change, what is due to which factor."""

from __future__ import annotations

from harness.domain.verdict import Effect, Estimate
from harness.domain.words import Throughput
from harness.judging.attribution import FEWEST_BLOCKS, TESTS, Attribution
from harness.judging.sequential import INTERVAL_ALPHA

_SHOWN = (Throughput.REGRESSED, Throughput.IMPROVED)


def attribution_text(found: Attribution) -> str:
    """E.g. ``of -12.0 %: build -1.1 % [-2.0, -0.2] (equivalent), ...``; what is missing where there are no figures."""
    if found.whole.ratio is None:
        blocks = f"{found.blocks} block{'s' * (found.blocks != 1)}"
        return f"{blocks} with all four arms, at least {FEWEST_BLOCKS} are needed for an interval"
    parts = ", ".join([_main(found.first), _main(found.second), _interaction(found)])
    basis = f"{100 * (1 - INTERVAL_ALPHA):g} % intervals, n = {found.blocks} blocks of four arms"
    dropped = f", {found.dropped} dropped for want of an arm" if found.dropped else ""
    return f"of {_change(found.whole.ratio)}: {parts} ({basis}{dropped}, alpha / {TESTS} for each effect)"


def _main(effect: Effect) -> str:
    return f"{effect.name} {_figure(effect)} ({effect.throughput}{_doubt(effect)})"


def _doubt(effect: Effect) -> str:
    """The first decision stands, whatever scatter it was made by; the figure is of all blocks and their own scatter."""
    ratio = effect.ratio
    if ratio is None or effect.throughput not in _SHOWN or not ratio.low <= 1 <= ratio.high:
        return ""
    return " as first decided, not by the interval of all blocks"


def _interaction(found: Attribution) -> str:
    """The interaction; where there is one, the main effects are averages, so each step is told by itself too."""
    effect = found.interaction
    if effect.throughput is Throughput.EQUIVALENT:
        return f"no {effect.name} {_interval(effect)}"
    if effect.throughput not in _SHOWN:
        return f"{effect.name} none shown {_interval(effect)}"
    alone = ", ".join(f"{step.name} {_figure(step)}" for step in found.steps[:-1])
    return f"{_main(effect)}: one depends on the other, {alone}"


def _figure(effect: Effect) -> str:
    return f"{_change(effect.ratio)} {_interval(effect)}" if effect.ratio else "unknown"


def _change(ratio: Estimate) -> str:
    return f"{_percent(ratio.value)} %"


def _interval(effect: Effect) -> str:
    ratio = effect.ratio
    return f"[{_percent(ratio.low)}, {_percent(ratio.high)}]" if ratio else ""


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f}"
