"""Tables of the benchmark of output equivalence, in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict

from equivalence_plan import FAULTS, MUST
from equivalence_rivals import CRITERIA
from equivalence_score import Judged
from scipy.stats import beta

from harness.domain.tolerance import ContrastClass, Figures
from harness.models.corruptions import Kind

_CONFIDENCE = 0.95
_TIERS = ("bitwise", "greedy", "near_tie", "distribution", "lossy_declared", "different", "broken", "crash")


def bounds(hits: int, tries: int) -> tuple[float, float]:
    """Exact binomial bounds (Clopper and Pearson), 95 % together."""
    tail = (1 - _CONFIDENCE) / 2
    low = 0.0 if hits == 0 else float(beta.ppf(tail, hits, tries - hits + 1))
    high = 1.0 if hits == tries else float(beta.ppf(1 - tail, hits + 1, tries - hits))
    return low, high


def report(harmless: Sequence[Judged], planted: Sequence[Judged]) -> str:
    """All tables."""
    parts = [
        "Harmless changes: each pair of ways of running a network, judged.",
        _table(
            (
                "contrast",
                "positions",
                "pairs",
                "not bitwise",
                "networks x quants",
                "alarms",
                "bounds",
                "by calibration",
            ),
            _alarms(harmless),
        ),
        _table(("contrast", *_TIERS), _tiers(harmless)),
        "Planted faults found, of those tried; * has to be found.",
        _table(("fault", "weights", "one build: 250, 1,000, by calibration", "two forks: the same"), _faults(planted)),
        "Other criteria on the same answers, at 1,000 positions: false alarms, and faults found.",
        _table(("criterion", "false alarms", "found", "of these, what must be found"), _rivals(harmless, planted)),
    ]
    return "\n\n".join(parts) + "\n"


def floors(seen: Iterable[tuple[str, ContrastClass, Figures, Figures]]) -> str:
    """What calibration networks showed, and the floors that follow."""
    names = tuple(Figures.__dataclass_fields__)
    rows = [
        (quant, str(contrast), *(f"{value:.1e} -> {asdict(floor)[name]:.1e}" for name, value in asdict(found).items()))
        for quant, contrast, found, floor in seen
    ]
    return _table(("quant", "contrast", *names), rows) + "\n"


def _alarms(judged: Sequence[Judged]) -> Iterator[Sequence[str]]:
    for contrast in ContrastClass:
        for budget in sorted({each.budget for each in judged}):
            mine = [each for each in judged if each.contrast is contrast and each.budget == budget]
            if mine:
                yield _alarm_row(str(contrast), budget, mine)
    for budget in sorted({each.budget for each in judged}):
        yield _alarm_row("all", budget, [each for each in judged if each.budget == budget])


def _alarm_row(name: str, budget: int, mine: Sequence[Judged]) -> Sequence[str]:
    alarms = sum(each.found for each in mine)
    low, high = bounds(alarms, len(mine))
    moved = sum(each.tier != "bitwise" for each in mine)
    networks = len({(each.net, each.quant) for each in mine})
    return (
        name,
        f"{budget:,}",
        f"{len(mine)}",
        f"{moved}",
        f"{networks}",
        f"{alarms}",
        f"{low:.2%} to {high:.2%}",
        _calibrated(mine),
    )


def _tiers(judged: Sequence[Judged]) -> Iterator[Sequence[str]]:
    most = max(each.budget for each in judged)
    for contrast in ContrastClass:
        mine = [each for each in judged if each.contrast is contrast and each.budget == most]
        if mine:
            yield str(contrast), *(f"{sum(each.tier == tier for each in mine)}" for tier in _TIERS)


def _faults(judged: Sequence[Judged]) -> Iterator[Sequence[str]]:
    """One row for each fault and quantization; calibrated: at the largest budget."""
    budgets = sorted({each.budget for each in judged})
    for fault in (*map(str, Kind), *FAULTS):
        for quant in dict.fromkeys(each.quant for each in judged):
            mine = [each for each in judged if (each.planted, each.quant) == (fault, quant)]
            if mine:
                yield (
                    fault + (" *" if fault in MUST else ""),
                    quant,
                    *(_cell(mine, budgets, one_build=one_build) for one_build in (True, False)),
                )


def _cell(mine: Sequence[Judged], budgets: Sequence[int], *, one_build: bool) -> str:
    """Found at each budget, then calibrated."""
    sided = [each for each in mine if (each.contrast is not ContrastClass.FORK) == one_build]
    parts = [[each for each in sided if each.budget == budget] for budget in budgets]
    return ", ".join([*(f"{sum(each.found for each in part)}/{len(part)}" for part in parts), _calibrated(parts[-1])])


def _calibrated(mine: Sequence[Judged]) -> str:
    """How many are found by a calibration alone, of those of which it knows something."""
    known = [each.calibrated for each in mine if each.calibrated is not None]
    return f"{sum(known)}/{len(known)}" if known else "-"


def _rivals(harmless: Sequence[Judged], planted: Sequence[Judged]) -> Iterator[Sequence[str]]:
    criteria: dict[str, Callable[[Judged], bool]] = {"this judge": lambda each: each.found}
    for place, name in enumerate(CRITERIA):
        criteria[name] = lambda each, place=place: each.rivals[place]  # type: ignore[misc]
    well, ill = ([each for each in judged if each.budget == 1000] for judged in (harmless, planted))  # noqa: PLR2004
    must = [each for each in ill if each.planted in MUST]
    for name, alarmed in criteria.items():
        yield name, *(f"{sum(map(alarmed, listed))}/{len(listed)}" for listed in (well, ill, must))


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ("---",) * len(headings), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)
