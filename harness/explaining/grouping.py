"""What reds share: the smallest conjunctions of factors that cover them and leave the greens out.

In words. A condition is ``factor = value``, or a bound on a number. A conjunction is scored by the reds that it is the
first to explain minus the greens that it takes along; the best one is told, its reds are set aside, and the next is
looked for, until nothing explains two more reds. Of equal ones that with fewer greens counts, then that with fewer
conditions, then the first in the matrix's order: the same night gives the same groups. Many conjunctions are tried, so
a small group can be pure by chance: how likely that is, is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

from harness.explaining.factors import Value

MOST_CONDITIONS = 3
FEWEST_REDS = 2
"""One red alone shares nothing: its id says all there is."""
CHANCE = 0.05
"""From here on a group is told to be no more than chance would give."""
_MOST_TRIED = 160
"""Conditions that conjunctions are made of: those that leave most greens out for the reds they keep."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition.

    Attributes:
        factor: The factor.
        relation: ``=``, ``>=`` or ``<=``.
        value: What it is held against.
        same: Other conditions that hold for exactly the same cases: which of them matters can't be told.
    """

    factor: str
    relation: str
    value: Value
    same: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = f"{self.value:g}" if isinstance(self.value, float) else self.value
        return f"{self.factor} {self.relation} {shown}"


@dataclass(frozen=True, slots=True)
class Group:
    """Reds that share a conjunction.

    Attributes:
        conditions: What they share.
        reds: Reds that it holds for.
        new: Those of them that no earlier group explains.
        greens: Greens that it holds for, too.
        all_reds: Reds of the night.
        all_greens: Greens of the night.
        chance: Bound on the probability that reds which fell at random would give so pure a conjunction, of all that
            were tried.
    """

    conditions: tuple[Condition, ...]
    reds: tuple[str, ...]
    new: tuple[str, ...]
    greens: tuple[str, ...]
    all_reds: int
    all_greens: int
    chance: float

    @property
    def coverage(self) -> float:
        """Share of the night's reds that it holds for."""
        return len(self.reds) / self.all_reds

    @property
    def purity(self) -> float:
        """Share of reds among the cases that it holds for."""
        return len(self.reds) / (len(self.reds) + len(self.greens))

    @property
    def may_be_chance(self) -> bool:
        """Whether chance would do as well."""
        return self.chance > CHANCE


@dataclass(frozen=True, slots=True)
class Grouped:
    """The reds of a night, sorted.

    Attributes:
        groups: In the order in which they were found.
        alone: Reds that no group explains.
    """

    groups: tuple[Group, ...]
    alone: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Term:
    """A condition, and a bit for each case that it holds for."""

    condition: Condition
    reds: int
    greens: int


def group_reds(reds: Mapping[str, Mapping[str, Value]], greens: Mapping[str, Mapping[str, Value]]) -> Grouped:
    """Sort reds by what they share.

    Args:
        reds: Factors of each red case by its id.
        greens: The same of those that passed.
    """
    red_ids, green_ids = tuple(reds), tuple(greens)
    terms = _terms(list(reds.values()), list(greens.values()))
    tried = sum(comb(len(terms), size) for size in range(1, MOST_CONDITIONS + 1))
    left, groups = (1 << len(red_ids)) - 1, []
    while best := _best(terms, left):
        held, taken = _held(best, len(red_ids), len(green_ids))
        groups.append(
            Group(
                tuple(term.condition for term in best),
                _picked(red_ids, held),
                _picked(red_ids, held & left),
                _picked(green_ids, taken),
                len(red_ids),
                len(green_ids),
                _chance(held.bit_count(), taken.bit_count(), len(red_ids), len(green_ids), tried),
            )
        )
        left &= ~held
    return Grouped(tuple(groups), _picked(red_ids, left))


def _held(terms: Iterable[_Term], reds: int, greens: int) -> tuple[int, int]:
    held, taken = (1 << reds) - 1, (1 << greens) - 1
    for term in terms:
        held &= term.reds
        taken &= term.greens
    return held, taken


def _picked(names: Sequence[str], bits: int) -> tuple[str, ...]:
    return tuple(name for index, name in enumerate(names) if bits >> index & 1)


# ---- conditions ------------------------------------------------------------------------------------------------------


def _terms(reds: Sequence[Mapping[str, Value]], greens: Sequence[Mapping[str, Value]]) -> list[_Term]:
    """All conditions that hold for two reds and not for every case; those that hold for the same cases are one."""
    alike: dict[tuple[int, int], list[Condition]] = {}
    everything = ((1 << len(reds)) - 1, (1 << len(greens)) - 1)
    for condition in _conditions(reds):
        bits = (_bits(condition, reds), _bits(condition, greens))
        if bits[0].bit_count() >= FEWEST_REDS and bits != everything:
            alike.setdefault(bits, []).append(condition)
    terms = [
        _Term(Condition(first.factor, first.relation, first.value, tuple(map(str, others))), *bits)
        for bits, (first, *others) in alike.items()
    ]
    if len(terms) <= _MOST_TRIED:
        return terms
    share = len(greens) / max(1, len(reds))
    kept = sorted(
        terms, key=lambda term: (term.greens.bit_count() - share * term.reds.bit_count(), str(term.condition))
    )
    return kept[:_MOST_TRIED]


def _conditions(cases: Sequence[Mapping[str, Value]]) -> Iterator[Condition]:
    """Equalities first: of conditions that hold for the same cases the plainest gives its name."""
    values: dict[str, set[Value]] = {}
    for case in cases:
        for factor, value in case.items():
            values.setdefault(factor, set()).add(value)
    for factor, found in values.items():
        for value in sorted(found, key=lambda value: (isinstance(value, str), value)):
            yield Condition(factor, "=", value)
    for factor, found in values.items():
        for number in sorted(value for value in found if isinstance(value, float)):
            yield Condition(factor, ">=", number)
            yield Condition(factor, "<=", number)


def _bits(condition: Condition, cases: Sequence[Mapping[str, Value]]) -> int:
    return sum(1 << index for index, case in enumerate(cases) if _holds(condition, case.get(condition.factor)))


def _holds(condition: Condition, value: Value | None) -> bool:
    wanted = condition.value
    if condition.relation == "=" or not isinstance(value, float) or not isinstance(wanted, float):
        return condition.relation == "=" and value == wanted
    return value >= wanted if condition.relation == ">=" else value <= wanted


# ---- the search ------------------------------------------------------------------------------------------------------


def _best(terms: Sequence[_Term], left: int) -> tuple[_Term, ...]:
    """The conjunction that explains most; empty where none explains two reds more than it takes greens along."""
    useful = [term for term in terms if (term.reds & left).bit_count() >= FEWEST_REDS]
    best: tuple[_Term, ...] = ()
    best_score = (0, 0)
    for size in range(1, MOST_CONDITIONS + 1):
        most = max(((term.reds & left).bit_count() for term in useful), default=0)
        if size > 1 and best_score[0] >= most:
            break  # nothing is left to be gained: the best already takes no green and all the reds that one can have
        for chosen in combinations(useful, size):
            held, taken = left, -1
            for term in chosen:
                held &= term.reds
                taken &= term.greens
            count = held.bit_count()
            if count < FEWEST_REDS or count <= best_score[0]:
                continue
            greens = taken.bit_count()
            score = (count - greens, -greens)
            if count > greens and score > best_score:
                best, best_score = chosen, score
    return best


def _chance(reds: int, greens: int, all_reds: int, all_greens: int, tried: int) -> float:
    """Of so many cases drawn at random, so many or more reds, at most, in any of the conjunctions that were tried."""
    drawn, cases = reds + greens, all_reds + all_greens
    ways = sum(comb(all_reds, hit) * comb(all_greens, drawn - hit) for hit in range(reds, min(drawn, all_reds) + 1))
    return min(1.0, tried * ways / comb(cases, drawn))
