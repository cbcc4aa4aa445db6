"""Which arms a contrast compares: all pairs that differ in its factor and in nothing else that was decided.

What counts as a difference:

* A **flag** as the factor: the two arms declare the same everything else. What completing the flags changes beside
  the factor is then a consequence of it (``rtr = 1`` makes ik_llama.cpp's loader drop mmap): it can't be held fixed,
  so it is said in a note and is not refused.
* The **build**: flags that only one of the two has are part of what the build is. A flag that both have and that
  differs is confounded, unless the difference goes away without the flags of one build only: then it is their
  consequence, and noted.
* The **model** or the **environment**: all flags are equal.

A pair that would differ in more is no pair. Where a contrast finds both sides but no pair, it is confounded, and the
error names the difference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from harness.domain.errors import BadInput
from harness.domain.flags import Flags, FlagValue
from harness.planning.arms import Declared, PlannedArm, Workshop, holds
from harness.planning.schema import Where

Side: TypeAlias = FlagValue | dict[str, str]


@dataclass(frozen=True, slots=True)
class Factor:
    """What a contrast or an output check asks for.

    Attributes:
        name: ``build``, ``model``, ``environment`` or a flag's name.
        baseline: Value of the first arm.
        candidate: Value of the second.
        where: What holds for both.
        origin: File and key, for errors.
    """

    name: str
    baseline: Side
    candidate: Side
    where: Where
    origin: str


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
    chosen = [arm for arm in arms if _meets(factor, arm)]
    if factor.name == "environment":
        return _environment_pairs(factor, chosen)
    _require_sides(factor, chosen, arms)
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


def _meets(factor: Factor, arm: PlannedArm) -> bool:
    """Whether ``where`` holds. Between builds, a flag that one of them does not have says nothing about its arms."""
    if not holds(factor.where, arm.arm.build, arm.arm.model, arm.node_class):
        return False
    lenient = factor.name == "build"
    return all(
        arm.has(name, values) or (lenient and name not in arm.flags) for name, values in factor.where.flags.items()
    )


def _is_side(factor: Factor, arm: PlannedArm, side: Side) -> bool:
    if factor.name == "build":
        return arm.arm.build.name == side
    if factor.name == "model":
        return arm.arm.model.name == side
    return not isinstance(side, dict) and arm.has(factor.name, (side,))


def _require_sides(factor: Factor, chosen: Sequence[PlannedArm], arms: Sequence[PlannedArm]) -> None:
    for word, side in (("baseline", factor.baseline), ("candidate", factor.candidate)):
        if any(_is_side(factor, arm, side) for arm in chosen):
            continue
        exists = any(_is_side(factor, arm, side) for arm in arms)
        reason = "none of them meets 'where'" if exists else "the matrix has no such arm"
        hint = "mend 'where'" if exists else "add it to [flags] or as [[include]], or look at the excludes"
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
        by_key[_key(arm, names)].append(arm)
    pairs = []
    for baseline in baselines:
        for candidate in by_key.get(_key(baseline, names), ()):
            pair = _pair(factor, baseline, candidate, workshop)
            if pair:
                pairs.append(pair)
    return pairs


def _compared(factor: Factor, baselines: Sequence[PlannedArm], candidates: Sequence[PlannedArm]) -> list[str]:
    """Declared flags that must be equal: all but the factor; between builds, those that both sides declare."""
    left = {name for arm in baselines for name in arm.declared}
    right = {name for arm in candidates for name in arm.declared}
    return sorted(left & right if factor.name == "build" else (left | right) - {factor.name})


def _key(arm: PlannedArm, names: Iterable[str]) -> tuple[object, ...]:
    """An arm's values of the compared flags; what it does not declare has the completed value."""
    return tuple(arm.declared.get(name, arm.flags.get(name)) for name in names)


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
    return [name for name in mine if name != factor.name and name in theirs and mine[name] != theirs[name]]


def _follows_from_own_flags(
    names: Iterable[str], baseline: PlannedArm, candidate: PlannedArm, workshop: Workshop
) -> bool:
    """Whether differences go away when each arm declares only what both builds know."""
    plain: list[Flags] = []
    for arm, other in ((baseline, candidate), (candidate, baseline)):
        shared: Declared = {name: value for name, value in arm.declared.items() if name in other.flags}
        flags = workshop.completed(arm.arm.build, shared, arm.origin)
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
    return sorted(name for name in names if name != factor.name and mine.get(name) != theirs.get(name))


def _environment_pairs(factor: Factor, chosen: Sequence[PlannedArm]) -> list[Pair]:
    """Each arm with either set of variables put over the matrix's own; these arms are made for the contrast."""
    if not chosen:
        raise BadInput("E-no-contrast", "no arm meets 'where'", where=factor.origin)
    return [Pair(_with_environment(arm, factor.baseline), _with_environment(arm, factor.candidate)) for arm in chosen]


def _with_environment(arm: PlannedArm, side: Side) -> PlannedArm:
    if not isinstance(side, dict) or not side:
        return arm
    environment = tuple(sorted({**dict(arm.arm.environment), **side}.items()))
    shown = tuple(sorted({*arm.arm.shown, *side}))
    return replace(arm, arm=replace(arm.arm, environment=environment, shown=shown))
