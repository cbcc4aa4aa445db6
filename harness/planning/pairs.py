"""Which arms a contrast compares: all pairs that differ in its factor and in nothing else that was decided.

What counts as a difference:

* A **flag** as the factor: the two arms declare the same everything else. What completing the flags changes beside
  the factor is then a consequence of it (``rtr = 1`` makes ik_llama.cpp's loader drop mmap): it can't be held fixed,
  so it is said in a note and is not refused.
* The **build**: flags that only one of the two has are part of what the build is. A flag that both have and that
  differs is confounded, unless the difference goes away without the flags of one build only: then it is their
  consequence, and noted.
* The **model** or the **environment**: all flags are equal.
* A **configuration** is several flags and variables at once, put over an arm: they are the factor, and all else is the
  arm's own.

A pair that would differ in more is no pair. Where a contrast finds both sides but no pair, it is confounded, and the
error names the difference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from harness.domain.errors import BadInput
from harness.domain.flags import Flags, FlagValue
from harness.planning.arms import Declared, PlannedArm, Workshop, holds, is_placed
from harness.planning.configuration import Configuration
from harness.planning.overlays import ArmKey, arm_key, put_over
from harness.planning.schema import Where

Side: TypeAlias = FlagValue | Configuration

_HOW_TO_HAVE_IT = (
    "add it to [flags] or as [[include]], or look at the excludes; values that come to the same flags are one arm"
)
OVERLAID = frozenset({"configuration", "environment"})
"""Factors whose arms are made: their sides are settings that are put over arms of the matrix."""


@dataclass(frozen=True, slots=True)
class Factor:
    """What a contrast or an output check asks for.

    Attributes:
        name: ``build``, ``model``, ``configuration``, ``environment`` or a flag's name.
        baseline: Value of the first arm, or the settings that make it.
        candidate: Value of the second.
        where: What holds for both.
        origin: File and key, for errors.
        places: File and key of either side's settings, for errors.
        named: Flags that the values of a named axis stand for.
    """

    name: str
    baseline: Side
    candidate: Side
    where: Where
    origin: str
    places: tuple[str, str]
    named: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Pair:
    """Baseline and candidate, and what changes along with the factor."""

    baseline: PlannedArm
    candidate: PlannedArm
    note: str = ""


Group: TypeAlias = tuple[list[PlannedArm], list[PlannedArm]]


def find_pairs(factor: Factor, arms: Sequence[PlannedArm], workshop: Workshop) -> list[Pair]:
    """All pairs of a factor, in the order of the arms.

    Raises:
        BadInput: ``E-no-contrast`` where one side has no arm, ``E-confounded`` where no two arms differ in the
            factor only.
    """
    chosen = meeting(factor.where, arms, lenient=factor.name == "build")
    if factor.name in OVERLAID:
        return _overlaid_pairs(factor, chosen, workshop)
    require_sides(factor, chosen, arms)
    pairs: list[Pair] = []
    for baselines, candidates in _groups(factor, chosen).values():
        found = _pairs_of_group(factor, baselines, candidates, workshop)
        if baselines and candidates and not found:
            raise _confounded(factor, baselines, candidates)
        pairs += found
    if not pairs:
        message = "no model and node class has an arm of both sides"
        raise BadInput("E-no-contrast", message, where=factor.origin)
    return pairs


def meeting(where: Where, arms: Iterable[PlannedArm], *, lenient: bool) -> list[PlannedArm]:
    """The arms that meet a condition.

    Args:
        where: The condition.
        arms: The arms.
        lenient: A flag that an arm does not have says nothing about it: so it is between builds.
    """
    return [arm for arm in arms if _meets(where, arm, lenient=lenient)]


def _meets(where: Where, arm: PlannedArm, *, lenient: bool) -> bool:
    if not holds(where, arm.arm.build, arm.arm.model, arm.node_class) or not is_placed(where, arm):
        return False
    return all(arm.has(name, values) or (lenient and name not in arm.flags) for name, values in where.flags.items())


def _is_side(factor: Factor, arm: PlannedArm, side: Side) -> bool:
    if factor.name == "build":
        return arm.arm.build.name == side
    if factor.name == "model":
        return arm.arm.model.name == side
    return not isinstance(side, Configuration) and arm.has(factor.name, (side,))


def require_sides(factor: Factor, chosen: Sequence[PlannedArm], arms: Sequence[PlannedArm]) -> None:
    """Refuse a factor one side of which no chosen arm has.

    Raises:
        BadInput: ``E-no-contrast``.
    """
    for word, side in (("baseline", factor.baseline), ("candidate", factor.candidate)):
        if any(_is_side(factor, arm, side) for arm in chosen):
            continue
        exists = any(_is_side(factor, arm, side) for arm in arms)
        reason = "none of them meets 'where'" if exists else "the matrix has no such arm"
        hint = "mend 'where'" if exists else _HOW_TO_HAVE_IT
        raise BadInput(
            "E-no-contrast", f"no {word} arm with {factor.name} = {side}: {reason}", hint=hint, where=factor.origin
        )


def _groups(factor: Factor, chosen: Sequence[PlannedArm]) -> dict[tuple[str, ...], Group]:
    """What could be pairs at all: same class, and same model and build unless that is the factor."""
    groups: dict[tuple[str, ...], Group] = defaultdict(lambda: ([], []))
    for arm in chosen:
        model = "" if factor.name == "model" else arm.arm.model.name
        build = "" if factor.name == "build" else arm.arm.build.name
        group = groups[arm.node_class.name, model, build]
        for members, side in zip(group, (factor.baseline, factor.candidate), strict=True):
            if _is_side(factor, arm, side):
                members.append(arm)
    return groups


def _pairs_of_group(
    factor: Factor, baselines: Sequence[PlannedArm], candidates: Sequence[PlannedArm], workshop: Workshop
) -> list[Pair]:
    names = _compared(factor, baselines, candidates)
    by_key: dict[tuple[object, ...], list[PlannedArm]] = defaultdict(list)
    for arm in candidates:
        by_key[_key(factor, arm, names)].append(arm)
    pairs = []
    for baseline in baselines:
        for candidate in by_key.get(_key(factor, baseline, names), ()):
            pair = _pair(factor, baseline, candidate, workshop)
            if pair:
                pairs.append(pair)
    return pairs


def _compared(factor: Factor, baselines: Sequence[PlannedArm], candidates: Sequence[PlannedArm]) -> list[str]:
    """Declared flags that must be equal: all but the factor; between builds, those that both sides declare."""
    if factor.name == "build":
        return sorted(_declared_by(baselines) & _declared_by(candidates))
    left, right = ({name for arm in arms for name in arm.declared} for arms in (baselines, candidates))
    return sorted((left | right) - settings_of(factor))


def _declared_by(arms: Sequence[PlannedArm]) -> set[str]:
    """Flags that arms of one build declare; where it can do some of them, what it can't do is not asked of those."""
    able = [arm for arm in arms if not arm.unsupported] or arms
    return {name for arm in able for name in arm.declared}


def _key(factor: Factor, arm: PlannedArm, names: Iterable[str]) -> tuple[object, ...]:
    """An arm's values of the compared flags, and of other named axes; what it does not declare is as completed."""
    flags = [arm.declared.get(name, arm.flags.get(name)) for name in names]
    return (*flags, *(pair for pair in arm.arm.named if pair[0] != factor.name))


def _pair(factor: Factor, baseline: PlannedArm, candidate: PlannedArm, workshop: Workshop) -> Pair | None:
    """The two arms as a pair, or ``None`` if they differ in more than the factor."""
    if baseline.unsupported or candidate.unsupported or factor.name == "model":
        return Pair(baseline, candidate)
    beside = _beside(factor, baseline, candidate)
    if factor.name == "build" and beside and not _follows_from_own_flags(beside, baseline, candidate, workshop):
        return None
    return Pair(baseline, candidate, _note(factor, beside, baseline, candidate))


def _beside(factor: Factor, baseline: PlannedArm, candidate: PlannedArm) -> list[str]:
    """Flags beside the factor that both arms have and that differ."""
    mine, theirs = baseline.flags, candidate.flags
    own = settings_of(factor)
    return [name for name in mine if name not in own and name in theirs and mine[name] != theirs[name]]


def _follows_from_own_flags(
    names: Iterable[str], baseline: PlannedArm, candidate: PlannedArm, workshop: Workshop
) -> bool:
    """Whether differences go away when each arm declares only what both builds know."""
    plain: list[Flags] = []
    for arm, other in ((baseline, candidate), (candidate, baseline)):
        shared: Declared = {name: value for name, value in arm.declared.items() if name in other.flags}
        flags = workshop.completed(arm.arm.build, shared)
        if not isinstance(flags, Flags):
            return False
        plain.append(flags)
    return all(plain[0].get(name) == plain[1].get(name) for name in names)


def _note(factor: Factor, beside: Iterable[str], baseline: PlannedArm, candidate: PlannedArm) -> str:
    changes = [f"{name} {baseline.flags[name]} -> {candidate.flags[name]}" for name in beside]
    cause = "the builds' own flags" if factor.name == "build" else factor.name
    return f"as a consequence of {cause}: {', '.join(changes)}" if changes else ""


def _confounded(factor: Factor, baselines: Sequence[PlannedArm], candidates: Sequence[PlannedArm]) -> BadInput:
    baseline = baselines[0]
    differences = [(_differences(factor, baseline, candidate), candidate) for candidate in candidates]
    fewest, nearest = min(differences, key=lambda found: len(found[0]))
    shown = ", ".join(
        f"{name} ({baseline.flags.get(name, 'none')} v {nearest.flags.get(name, 'none')})" for name in fewest
    )
    message = f"the arms differ in more than {factor.name}: also in {shown}"
    hint = "a contrast has one factor: declare these flags alike, or make a contrast of each"
    return BadInput("E-confounded", message, hint=hint, where=factor.origin)


def _differences(factor: Factor, baseline: PlannedArm, candidate: PlannedArm) -> list[str]:
    mine, theirs = baseline.flags, candidate.flags
    names = mine.keys() & theirs.keys() if factor.name == "build" else mine.keys() | theirs.keys()
    return sorted(name for name in names - settings_of(factor) if mine.get(name) != theirs.get(name))


def _overlaid_pairs(factor: Factor, chosen: Sequence[PlannedArm], workshop: Workshop) -> list[Pair]:
    """Each arm with either side's settings put over it; these arms are made for the contrast."""
    if not chosen:
        raise BadInput("E-no-contrast", "no arm meets 'where'", where=factor.origin)
    pairs: dict[tuple[ArmKey, ArmKey], Pair] = {}
    for arm in chosen:
        baseline, candidate = overlaid(factor, arm, workshop)
        if arm_key(baseline) != arm_key(candidate):
            pair = Pair(baseline, candidate, note_of_settings(factor, baseline, candidate))
            pairs.setdefault((arm_key(baseline), arm_key(candidate)), pair)
    if not pairs:
        message = f"both sides of {factor.name} leave the same settings"
        raise BadInput("E-no-contrast", message, hint="a side must set what the arms do not have", where=factor.origin)
    return list(pairs.values())


def overlaid(factor: Factor, arm: PlannedArm, workshop: Workshop) -> tuple[PlannedArm, PlannedArm]:
    """An arm under either side's settings. Between configurations both labels show what either side sets."""
    made = []
    for side, place in zip((factor.baseline, factor.candidate), factor.places, strict=True):
        settings = side if isinstance(side, Configuration) else Configuration()
        shown = settings.names if factor.name == "environment" else settings_of(factor)
        made.append(put_over(arm, settings, shown, workshop, place))
    return made[0], made[1]


def settings_of(factor: Factor) -> frozenset[str]:
    """Flags and variables that a factor is about: its own name, what its values stand for, or what its sides set."""
    if factor.named:
        return factor.named | {factor.name}
    sides = [side for side in (factor.baseline, factor.candidate) if isinstance(side, Configuration)]
    return frozenset().union(*(side.names for side in sides)) if sides else frozenset({factor.name})


def note_of_settings(factor: Factor, baseline: PlannedArm, candidate: PlannedArm) -> str:
    """What changes beside what either side sets."""
    if baseline.unsupported or candidate.unsupported:
        return ""
    beside = [name for name in _beside(factor, baseline, candidate) if name not in settings_of(factor)]
    return _note(factor, beside, baseline, candidate)
