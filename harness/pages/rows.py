"""What the overview says of a case: one row, in words and figures that are formatted here and nowhere else."""

from __future__ import annotations

from typing import Any

from harness.domain.arm import Arm
from harness.domain.case import AttributionCheck, ContrastCheck, OutputCheck, PitfallCheck
from harness.domain.flags import FlagValue
from harness.domain.verdict import Estimate, Verdict
from harness.domain.workload import Metric, ProfileWorkload, Workload
from harness.judging.wording import assumption_text, speed_text, speeds_text
from harness.pages.shown import Shown, ratio_of
from harness.reporting.clean import capped, one_line
from harness.reporting.plain_words import signed, signed_between
from harness.reporting.summary import verdict_words

_ARROW = " → "
_MAX_REASON_BYTES = 4000
_METRIC_PANELS = {Metric.PREFILL: "pp", Metric.DECODE: "tg", Metric.COLD: "first", Metric.TTFT: "first"}


def row_data(shown: Shown) -> dict[str, Any]:
    """A case's row.

    Returns:
        What the page's script reads: words to filter by, texts to show, and of a ratio the figures to draw. Keys that
        have nothing to say are left out.
    """
    case, verdict = shown.case, shown.verdict
    ratio = ratio_of(verdict)
    figure, interval = _figures(verdict)
    row = {
        "id": verdict.case,
        "journal": shown.journal,
        "status": str(verdict.status),
        "words": verdict_words(verdict),
        "found": [str(word) for word in (verdict.throughput, verdict.equivalence, verdict.pitfall) if word]
        + (["inert"] if verdict.inert else []),
        "kind": str(case.kind),
        "panel": _panel(case.workload),
        "workload": case.workload_name,
        "class": case.node_class.name,
        "node": verdict.node,
        "builds": list(dict.fromkeys(arm.build.name for arm in case.arms)),
        "models": list(dict.fromkeys(arm.model.name for arm in case.arms)),
        "flags": _flags(case.arms),
        "factors": _factors(shown),
        "contrast": verdict.contrast,
        "what": what_runs(case.arms),
        "reason": one_line(capped(verdict.reason, _MAX_REASON_BYTES)),
        "speeds": speeds_text(verdict.arms, _ARROW) if verdict.arms else ("" if ratio else figure),
        "figure": figure if ratio else "",
        "interval": interval,
        "assumed": assumption_text(ratio) if ratio else "",
        "synthetic": verdict.synthetic,
        "seconds": round(verdict.seconds, 1),
        "ratio": [ratio.value, ratio.low, ratio.high] if ratio else None,
        "margin": _margin(shown) if ratio else None,
    }
    return {name: value for name, value in row.items() if value or value == 0}


def what_runs(arms: tuple[Arm, ...]) -> str:
    """The arms of a case in few words, what they share once: ``ik rtr 0 → 1, fa=1``."""
    if len(arms) == 1:
        return arms[0].label.replace("+", " ")
    models = dict.fromkeys(arm.model.name for arm in arms)
    values: dict[str, dict[str, None]] = {}
    for arm in arms:
        for name, value in _settings(arm).items():  # one that only one fork has says nothing about the other
            values.setdefault(name, {})[str(value)] = None
    changes = [f"{name} {_ARROW.join(found)}" for name, found in values.items() if len(found) > 1]
    shared = [f"{name}={next(iter(found))}" for name, found in values.items() if len(found) == 1]
    head = [
        _ARROW.join(dict.fromkeys(arm.build.name for arm in arms)),
        *([_ARROW.join(models)] if len(models) > 1 else []),
    ]
    return ", ".join(filter(None, [*head, *changes, " ".join(shared)]))


def estimate_texts(estimate: Estimate | None) -> tuple[str, str]:
    """A figure and its interval for two columns."""
    if estimate is None:
        return "", ""
    if estimate.unit == "ratio":
        return signed(estimate.value), signed_between(estimate.low, estimate.high)
    value, low, high = (speed_text(each) for each in (estimate.value, estimate.low, estimate.high))
    return f"{value} {estimate.unit}", f"{low} .. {high}"


def _figures(verdict: Verdict) -> tuple[str, str]:
    return estimate_texts(verdict.effects[-1].ratio if verdict.effects else verdict.estimate)


def _panel(workload: object) -> str:
    """Of which kind its time is; kinds are never shown in one plot."""
    match workload:
        case Workload(n_prompt=pp, n_gen=tg) if pp and tg:
            return "both"
        case Workload(n_prompt=pp):
            return "pp" if pp else "tg"
        case ProfileWorkload(metric=metric):
            return _METRIC_PANELS.get(metric, "")
        case _:
            return ""


def _margin(shown: Shown) -> float:
    known = shown.declared.spread_of(shown.case.workload_name) if shown.declared else None
    return shown.policy.margin_for(known)


def _factors(shown: Shown) -> list[str]:
    match shown.case.check:
        case ContrastCheck(factor=factor) | PitfallCheck(factor=factor) | OutputCheck(factor=factor):
            return [factor] if factor else []
        case AttributionCheck(factors=factors):
            return list(factors)
        case _:
            return []


def _settings(arm: Arm) -> dict[str, FlagValue]:
    """What the label shows, and what it calls them."""
    values = {**dict(arm.environment), **arm.flags.as_dict(), **dict(arm.named)}
    return {name: values[name] for name in sorted(arm.shown) if name in values}


def _flags(arms: tuple[Arm, ...]) -> list[str]:
    """The flags that tell the arms of a run apart: the others are the same everywhere."""
    return list(dict.fromkeys(f"{name}={value}" for arm in arms for name, value in _settings(arm).items()))
