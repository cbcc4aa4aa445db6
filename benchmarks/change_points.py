"""How often changes are found in nights that don't change, and in how many nights those that are there.

    python benchmarks/change_points.py               the tables of docs/explanation/change-points.md
    python benchmarks/change_points.py --calibrate   harness/history/clear_by_chance.py's table
    python benchmarks/change_points.py --choose      what other penalties, widths and rules would do, on another seed

Nights are simulated: normal or heavy tails, neighbours that are alike, single wild nights, scatter that grows. Three
seeds, so that nothing is scored on series that something was chosen by. CPU time some minutes each, less with
``--series``. ``--write`` puts the tables into the page between its marks.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from harness.history import changes, noise
from harness.history.changes import ALPHA, LEAST_NIGHTS, Found, analyse, clearest
from harness.history.clear_by_chance import CHANCES, LENGTHS
from harness.history.series import ChangeKind

Nights = NDArray[np.float64]
Maker = Callable[[np.random.Generator, int], Nights]

CALIBRATING, CHOOSING, SCORING = 20261201, 20261202, 20261203
NIGHTS = 90
SD = 0.03
AFTER = (3, 7, 20)
SIZES = (0.03, 0.05, 0.10)
WITHIN = (3, 5, 7, 10, 20)
"""Nights after a step, of which one each is looked at."""
ALIKE = 0.3
"""How nights correlate of which the table of chances is made: a night is a little like the one before."""
PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "change-points.md"


# ---- simulated nights ------------------------------------------------------------------------------------------------


def white(random: np.random.Generator, nights: int) -> Nights:
    """Independent normal nights of standard deviation 1."""
    return random.normal(size=nights)


def alike(phi: float) -> Maker:
    """Nights of which neighbours correlate by ``phi``."""

    def make(random: np.random.Generator, nights: int) -> Nights:
        new = random.normal(size=nights)
        new[1:] *= math.sqrt(1 - phi**2)
        return np.asarray(lfilter([1.0], [1.0, -phi], new))

    return make


def heavy(random: np.random.Generator, nights: int) -> Nights:
    """Student's t with four degrees of freedom, standard deviation 1."""
    return random.standard_t(4, size=nights) / math.sqrt(2)


def wild(random: np.random.Generator, nights: int) -> Nights:
    """Normal nights of which one in 30 is slower by 3 to 10 standard deviations."""
    values = random.normal(size=nights)
    hit = random.random(nights) < 1 / 30
    return np.where(hit, values - random.uniform(3, 10, size=nights), values)


def wider(random: np.random.Generator, nights: int) -> Nights:
    """Scatter that is three times as large from the middle on."""
    values = random.normal(size=nights)
    values[nights // 2 :] *= 3
    return values


def widening(random: np.random.Generator, nights: int) -> Nights:
    """Scatter that grows from night to night, to three times as large."""
    return random.normal(size=nights) * np.linspace(1, 3, nights)


STABLE: dict[str, Maker] = {
    "independent": white,
    "scatter x 3 from the middle on": wider,
    "neighbours correlate by 0.3": alike(ALIKE),
    "scatter that grows slowly, x 3": widening,
    "neighbours correlate by 0.6": alike(0.6),
    "heavy tails (t, 4 df)": heavy,
    "one wild night in 30": wild,
}


# ---- scores ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hits:
    """What was found of one planted step.

    Attributes:
        found: Share of series in which a change of its direction was told within a week of it.
        exact: Of those, the share with exactly its night.
        held: Of those, the share whose named range of nights holds its night.
        covered: Of those, the share whose interval holds its size.
    """

    found: float
    exact: float
    held: float
    covered: float


def false_at_the_end(make: Maker, seed: int, series: int, nights: int = NIGHTS) -> float:
    """Share of series that don't change and in which a look at the end finds something."""
    random = np.random.default_rng(seed)
    return sum(bool(analyse(SD * make(random, nights)).changes) for _ in range(series)) / series


def false_in_any_look(make: Maker, seed: int, series: int, *, row: int = 1, alpha: float = ALPHA) -> float:
    """Share of series in which a change is told in one of the looks after each of 90 nights.

    Args:
        make: Makes the nights.
        seed: Of the random numbers.
        series: How many.
        row: So many looks in a row have to tell one.
        alpha: Of a look.
    """
    random = np.random.default_rng(seed)
    return sum(_ever(SD * make(random, NIGHTS), row, alpha) for _ in range(series)) / series


def _ever(values: Nights, row: int, alpha: float) -> bool:
    told = 0
    for end in range(LEAST_NIGHTS, len(values) + 1):
        told = told + 1 if analyse(values[:end], alpha).changes else 0
        if told >= row:
            return True
    return False


def nights_until(
    size: float, sd: float, make: Maker, *, seed: int, series: int, row: int = 1, alpha: float = ALPHA
) -> list[float]:
    """For each series after how many nights a slowdown is told, one look a night from a 60th good one on."""
    random = np.random.default_rng(seed)
    return [_nights_until(size, sd * make(random, NIGHTS), row, alpha) for _ in range(series)]


def _nights_until(size: float, values: Nights, row: int, alpha: float) -> float:
    place = NIGHTS - 30
    values[place:] += math.log1p(-size)
    told = 0
    for end in range(place + 1, len(values) + 1):
        near = any(each.size < 0 and _near(each, place) for each in analyse(values[:end], alpha).changes)
        told = told + 1 if near else 0
        if told >= row:
            return end - place
    return math.inf


def power(size: float, after: int, sd: float, *, seed: int, series: int) -> Hits:
    """Plant a slowdown so many nights before the end of 90 and look for it there."""
    random = np.random.default_rng(seed)
    place, truth = NIGHTS - after, math.log1p(-size)
    hits: list[Found] = []
    for _ in range(series):
        values = sd * white(random, NIGHTS)
        values[place:] += truth
        near = [each for each in analyse(values).changes if each.size < 0 and _near(each, place)]
        hits += near[:1]
    count = max(1, len(hits))
    return Hits(
        len(hits) / series,
        sum(each.after == place for each in hits) / count,
        sum(each.earliest <= place <= each.latest for each in hits) / count,
        sum(abs(each.size - truth) <= each.error for each in hits) / count,
    )


def _near(found: Found, place: int) -> bool:
    return abs(found.after - place) <= 7 or found.earliest <= place <= found.latest  # noqa: PLR2004 - a week


def shapes(seed: int, series: int) -> dict[str, tuple[float, float, float]]:
    """What becomes of changes that are no lasting step: share told as steps alone, with a drift, and not at all."""
    random = np.random.default_rng(seed)
    slow = np.concatenate([np.zeros(15), np.linspace(0, 1, 60), np.ones(15)])
    back = np.where((np.arange(NIGHTS) >= 60) & (np.arange(NIGHTS) < 67), 1.0, 0.0)  # noqa: PLR2004 - a week in the middle
    middle = np.where(np.arange(NIGHTS) >= NIGHTS // 2, 1.0, 0.0)
    lone, pair = np.zeros(NIGHTS), np.zeros(NIGHTS)
    lone[-1], pair[-2:] = 1.0, 1.0
    planted = {
        "10 % over 60 nights, SD 1 %": (0.10 * slow, 0.01),
        "10 % over 60 nights, SD 3 %": (0.10 * slow, 0.03),
        "5 % at once in the middle, SD 1 %": (0.05 * middle, 0.01),
        "5 % for 7 nights, then back, SD 1 %": (0.05 * back, 0.01),
        "half the speed on the last night, SD 1 %": (0.69 * lone, 0.01),
        "half the speed on the last two nights, SD 1 %": (0.69 * pair, 0.01),
    }
    return {name: _told(random, -shape, sd, series) for name, (shape, sd) in planted.items()}


def _told(random: np.random.Generator, shape: Nights, sd: float, series: int) -> tuple[float, float, float]:
    kinds = [{each.kind for each in analyse(shape + sd * random.normal(size=NIGHTS)).changes} for _ in range(series)]
    steps = sum(each == {ChangeKind.STEP} for each in kinds)
    drifts = sum(ChangeKind.DRIFT in each for each in kinds)
    return steps / series, drifts / series, (series - steps - drifts) / series


# ---- pages -----------------------------------------------------------------------------------------------------------


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def report(series: int) -> dict[str, list[str]]:
    """The tables of the page, by their marks there."""
    errs = [
        "| 90 nights that do not change | told at the end | told in any of 81 nightly looks |",
        "|---|---|---|",
    ]
    for number, (name, make) in enumerate(STABLE.items()):
        ends = false_at_the_end(make, SCORING, series)
        of = series // 2 if number < 3 else series // 10  # noqa: PLR2004 - the goals are about the first three
        looks = false_in_any_look(make, SCORING + 1, of)
        errs.append(f"| {name} | {100 * ends:.1f} % | {_share(looks, of)} |")
    until = [
        f"| step | nights | told within {' / '.join(map(str, WITHIN))} nights | half of them within |",
        "|---|---|---|---|",
    ]
    for sd in (0.01, 0.02, SD):
        until += [_until_row(size, sd, white, "", series // 10) for size in SIZES]
    until.append(_until_row(0.10, 0.02, alike(ALIKE), ", neighbours correlate by 0.3", series // 10))
    found = [
        "| step | SD | found after 3 / 7 / 20 nights | its very night | in the named range | size in the interval |",
        "|---|---|---|---|---|---|",
    ]
    found += [_power_row(size, sd, series // 4) for sd in (0.01, SD) for size in SIZES]
    told = ["| planted | told as step | as drift | not told |", "|---|---|---|---|"]
    for name, shares in shapes(SCORING + 3, series // 8).items():
        told.append(f"| {name} | {' | '.join(f'{100 * share:.0f} %' for share in shares)} |")
    return {"errs": errs, "until": until, "finds": found, "shapes": told}


def _share(share: float, of: int) -> str:
    """A share with two standard errors."""
    return f"{100 * share:.1f} ± {200 * math.sqrt(max(share, 1 / of) * (1 - share) / of):.1f} %"


def _until_row(size: float, sd: float, make: Maker, words: str, series: int) -> str:
    nights = nights_until(size, sd, make, seed=SCORING + 4, series=series)
    within = " / ".join(f"{100 * sum(each <= most for each in nights) / len(nights):.0f}" for most in WITHIN)
    middle = float(np.median(nights))
    half = f"{middle:.0f} nights" if math.isfinite(middle) else "none of 30 nights"
    return f"| {100 * size:.0f} % | SD {100 * sd:.0f} %{words} | {within} % | {half} |"


def write(tables: dict[str, list[str]]) -> None:
    """Put tables between their marks on the page."""
    text = PAGE.read_text(encoding="utf-8")
    for name, lines in tables.items():
        marks = (f"<!-- {name}: begin -->", f"<!-- {name}: end -->")
        before, begin, rest = text.partition(marks[0])
        _, end, after = rest.partition(marks[1])
        if not end:
            sys.exit(f"{PAGE} has no place for the table '{name}'")
        text = "\n".join([f"{before}{begin}", "", *lines, "", f"{end}{after}"])
    PAGE.write_text(text, encoding="utf-8")


def _power_row(size: float, sd: float, series: int) -> str:
    hits = [power(size, after, sd, seed=SCORING + 2, series=series) for after in AFTER]
    found = " / ".join(f"{100 * each.found:.0f}" for each in hits)
    last = [each for each in hits if each.found >= 0.05] or hits[-1:]  # noqa: PLR2004 - of fewer nothing can be said
    ends = (last[0], last[-1]) if len(last) > 1 else (last[0],)
    ranges = (" to ".join(f"{100 * part(each):.0f}" for each in ends) for part in _PARTS)
    return f"| {100 * size:.0f} % | {100 * sd:.0f} % | {found} % | {' | '.join(f'{each} %' for each in ranges)} |"


_PARTS: Sequence[Callable[[Hits], float]] = (
    lambda each: each.exact,
    lambda each: each.held,
    lambda each: each.covered,
)


def calibrate(series: int) -> None:
    """The clearest step of series that do not change and whose neighbours are a little alike, by length."""
    for nights in LENGTHS:
        random = np.random.default_rng((CALIBRATING, nights))
        clear = [clearest(SD * alike(ALIKE)(random, nights)) for _ in range(series)]
        told = ", ".join(f"{value:.2f}" for value in np.quantile(clear, [1 - chance for chance in CHANCES]))
        _say(f"    {nights}: ({told}),")


def choose(series: int) -> None:
    """False alarms and power by penalty; what named ranges and intervals hold by their width."""
    for penalty in (1.0, 2.0, 2.5, 3.0):
        with mock.patch.object(changes, "_LOW_PENALTY", penalty):
            false = [false_at_the_end(alike(phi), CHOOSING, series) for phi in (0.0, 0.3, 0.6)]
            found = [power(0.05, after, SD, seed=CHOOSING + 1, series=series // 4).found for after in AFTER]
        _say(f"penalty {penalty}: false {_percent(false)}, 5 % step at SD 3 % found {_percent(found)}")
    for drop, width in ((4.0, 2.0), (5.0, 2.3), (6.0, 2.6)):
        with mock.patch.object(changes, "_SURE_DROP", drop), mock.patch.object(changes, "_HALF_WIDTH", width):
            hits = [
                power(0.05, after, sd, seed=CHOOSING + 2, series=series // 4) for sd in (0.015, SD) for after in AFTER
            ]
        held, covered = _percent([each.held for each in hits]), _percent([each.covered for each in hits])
        _say(f"drop {drop}, width {width}: in the range {held}, in the interval {covered}")


def rules(series: int) -> list[str]:
    """What else could be done about scatter that grows, as a table."""
    told = [
        "| rule | false: independent / scatter x 3 / alike by 0.3 | 10 % at SD 2 % told within 3 / 5 / 7 nights |",
        "|---|---|---|",
    ]
    for prior, row, alpha, name in RULES:
        with mock.patch.object(noise, "_PRIOR_NIGHTS", prior):
            false = [
                false_in_any_look(make, CHOOSING + 4, series, row=row, alpha=alpha)
                for make in (white, wider, alike(ALIKE))
            ]
            nights = nights_until(0.10, 0.02, white, seed=CHOOSING + 5, series=series, row=row, alpha=alpha)
        within = [sum(each <= most for each in nights) / series for most in WITHIN[:3]]
        told.append(f"| {name} | {_percent(false)} | {_percent(within)} |")
    return told


RULES = (
    (noise._PRIOR_NIGHTS, 1, ALPHA, "as it is"),  # noqa: SLF001 - what is chosen here
    (1e9, 1, ALPHA, "the scatter of the whole series alone"),
    (0.0, 1, ALPHA, "the scatter of each side alone (Welch)"),
    (noise._PRIOR_NIGHTS, 2, 2 * ALPHA, "twice the error rate, and a second look confirms"),  # noqa: SLF001
    (noise._PRIOR_NIGHTS, 1, ALPHA / 4, "a quarter of the error rate"),  # noqa: SLF001
)


def _percent(shares: Sequence[float]) -> str:
    return " / ".join(f"{100 * share:.1f}" for share in shares) + " %"


def main() -> None:
    """Write what is asked to standard output, or into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calibrate", action="store_true")
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--rules", action="store_true", help="the page's table of other rules")
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    parser.add_argument("--series", type=int, default=0, help="series of each row [6000, 2000, 200 or 1000]")
    given = parser.parse_args()
    if given.calibrate:
        calibrate(given.series or 6000)
    elif given.choose:
        choose(given.series or 2000)
    else:
        tables = {"rules": rules(given.series or 200)} if given.rules else report(given.series or 1000)
        for lines in tables.values():
            _say("\n".join([*lines, ""]))
        if given.write:
            write(tables)


if __name__ == "__main__":
    sys.exit(main())
