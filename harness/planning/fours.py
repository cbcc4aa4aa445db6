"""Which four arms an attribution compares: every way to combine the two sides of two factors, all else alike.

Each step from one of the four to its neighbour is a pair of one factor, found by the rules for pairs: so nothing is
attributed to a factor that something else had changed along with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.domain.errors import BadInput
from harness.planning.arms import PlannedArm, Workshop
from harness.planning.overlays import ArmKey, arm_key
from harness.planning.pairs import (
    OVERLAID,
    Factor,
    Pair,
    find_pairs,
    meeting,
    overlaid,
    require_sides,
    settings_of,
)
from harness.planning.schema import Where


@dataclass(frozen=True, slots=True)
class Four:
    """The arms of an attribution.

    Attributes:
        arms: Both factors old; second new; first new; both new.
        note: What changes along with the factors.
    """

    arms: tuple[PlannedArm, PlannedArm, PlannedArm, PlannedArm]
    note: str = ""


def find_fours(
    factors: tuple[Factor, Factor], where: Where, arms: Sequence[PlannedArm], workshop: Workshop, origin: str
) -> list[Four]:
    """All fours of two factors, in the order of the arms.

    Args:
        factors: The two factors; their own conditions are empty.
        where: What holds for all four arms, before settings are put over them.
        arms: The matrix's arms.
        workshop: Makes arms.
        origin: File and key of the attribution, for errors.

    Raises:
        BadInput: ``E-no-contrast`` where a side has no arm or the four corners don't all exist, ``E-confounded`` where
            both factors set the same flag or two neighbours differ in more than their factor.
    """
    _refuse_overlap(factors, origin)
    chosen = meeting(where, arms, lenient=any(factor.name == "build" for factor in factors))
    if not chosen:
        raise BadInput("E-no-contrast", "no arm meets 'where'", where=origin)
    for factor in factors:
        if factor.name not in OVERLAID:
            require_sides(factor, chosen, arms)
    first, second = factors
    found = list(_joined(_pairs(first, second, chosen, workshop), _pairs(second, first, chosen, workshop)))
    if not found:
        message = f"the matrix has no four arms that combine both sides of {first.name} with both of {second.name}"
        hint = "add the missing ones to [flags] or as [[include]], or look at the excludes"
        raise BadInput("E-no-contrast", message, hint=hint, where=origin)
    return found


def _refuse_overlap(factors: tuple[Factor, Factor], origin: str) -> None:
    both = sorted(settings_of(factors[0]) & settings_of(factors[1]))
    if both:
        message = f"both factors set {', '.join(both)}: its effect can't be attributed to either"
        raise BadInput("E-confounded", message, hint="let one of the factors set it", where=origin)


def _pairs(factor: Factor, other: Factor, chosen: Sequence[PlannedArm], workshop: Workshop) -> list[Pair]:
    """The factor's pairs at either side of the other one.

    Where the other factor's arms are made, each of its sides is looked at by itself: a flag that one side declares
    says nothing about the arms of the other.
    """
    if other.name not in OVERLAID:
        return find_pairs(factor, chosen, workshop)
    sides = zip(*(overlaid(other, arm, workshop) for arm in chosen), strict=True)
    return [pair for side in sides for pair in find_pairs(factor, _unique(side), workshop)]


def _unique(arms: Sequence[PlannedArm]) -> list[PlannedArm]:
    return list({arm_key(arm): arm for arm in arms}.values())


def _joined(first: Sequence[Pair], second: Sequence[Pair]) -> Iterator[Four]:
    """Pairs of both factors, put together where they close the square."""
    steps: dict[ArmKey, list[Pair]] = defaultdict(list)
    for pair in second:
        steps[arm_key(pair.baseline)].append(pair)
    closing = {(arm_key(pair.baseline), arm_key(pair.candidate)): pair for pair in first}
    for pair in first:
        for at_old in steps[arm_key(pair.baseline)]:
            for at_new in steps[arm_key(pair.candidate)]:
                last = closing.get((arm_key(at_old.candidate), arm_key(at_new.candidate)))
                if last:
                    corners = (pair.baseline, at_old.candidate, pair.candidate, at_new.candidate)
                    yield Four(corners, _note(pair, at_old, at_new, last))


def _note(*pairs: Pair) -> str:
    return "; ".join(dict.fromkeys(pair.note for pair in pairs if pair.note))
