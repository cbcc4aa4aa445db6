"""Contrasts that a documented pitfall gives: which arms are compared, and why it is not about some of them.

Where arms of the matrix have both sides of the pitfall's flag they are compared, as in any contrast. Otherwise both
sides are put over every arm that meets ``where``, with those of the pitfall's settings that the matrix does not say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from harness.domain.errors import BadInput
from harness.domain.words import Kind, Status
from harness.domain.workload import Timed, Workload
from harness.pitfalls.conditions import applies, is_gone
from harness.pitfalls.entry import CONFIGURATION, SIDES, Contrast, Pitfall
from harness.pitfalls.facts import Facts
from harness.pitfalls.model_facts import facts_of_model
from harness.planning.arms import PlannedArm, Workshop
from harness.planning.configuration import Configuration
from harness.planning.overlays import arm_key
from harness.planning.pairs import Factor, Pair, find_pairs, meeting, note_of_settings, overlaid
from harness.planning.placement import CPU, placements_of
from harness.planning.plan import PlannedCase
from harness.planning.schema import Where


@dataclass(frozen=True, slots=True)
class PitfallPair:
    """Two arms of a pitfall.

    Attributes:
        pair: Without the trap, and with it.
        made: They were made for it.
        outside: Why the pitfall is not about them; empty where it is, or may be.
    """

    pair: Pair
    made: bool
    outside: str


def factor_of(pitfall: Pitfall) -> str:
    """In what the arms of a pitfall differ."""
    return _contrast(pitfall).factor


def suffering(pitfall: Pitfall, workloads: Iterable[Timed]) -> list[Timed]:
    """The workloads that a pitfall is about: prompt processing, token generation, or both; no profiles."""
    kinds = _contrast(pitfall).workloads
    plain = [each for each in workloads if isinstance(each, Workload) and not (each.n_prompt and each.n_gen)]
    return [each for each in plain if ("pp" if each.n_prompt else "tg") in kinds]


def pitfalls_once(cases: Iterable[PlannedCase]) -> list[PlannedCase]:
    """Two pitfalls can ask the same of other models (k-quants, IQ types): such a case is that of the one it is for."""
    first: dict[str, int] = {}
    kept: list[PlannedCase] = []
    for case in cases:
        at = first.setdefault(case.id, len(kept))
        same = at < len(kept) and case.case.check != kept[at].case.check
        if not same or case.case.kind is not Kind.PITFALL or kept[at].case.kind is not Kind.PITFALL:
            kept.append(case)
        elif kept[at].status is Status.NOT_APPLICABLE:
            both = f"{kept[at].reason}; {case.reason}" if case.status is Status.NOT_APPLICABLE else ""
            kept[at] = replace(case, reason=both) if both else case
    return kept


def pitfall_pairs(
    pitfall: Pitfall, where: Where, arms: Sequence[PlannedArm], workshop: Workshop, origin: str
) -> list[PitfallPair]:
    """All pairs that a pitfall is asked of.

    Args:
        pitfall: One that has a contrast.
        where: The arms that it is asked of.
        arms: All arms of the matrix.
        workshop: Completes flags.
        origin: File and key, for errors.

    Raises:
        BadInput: ``E-no-contrast``, ``E-confounded``, as of other contrasts.
    """
    contrast = _contrast(pitfall)
    chosen = meeting(where, arms, lenient=False)
    if not chosen:
        raise BadInput("E-no-contrast", "no arm meets 'where'", where=origin)
    made = not _has_both_sides(contrast, chosen)
    if made:
        found = [_overlaid(contrast, arm, workshop, where, origin) for arm in chosen]
    else:
        found = find_pairs(_factor(contrast, where, origin), arms, workshop)
    pairs = {(arm_key(pair.baseline), arm_key(pair.candidate)): pair for pair in found}
    return [_held(pitfall, pair, workshop, made=made) for pair in pairs.values()]


def _contrast(pitfall: Pitfall) -> Contrast:
    assert pitfall.contrast is not None  # noqa: S101 - `references` saw to it
    return pitfall.contrast


def _has_both_sides(contrast: Contrast, chosen: Sequence[PlannedArm]) -> bool:
    if contrast.factor == CONFIGURATION:
        return False
    sides = (contrast.side(which)[contrast.factor] for which in SIDES)
    return all(any(arm.has(contrast.factor, (side,)) for arm in chosen) for side in sides)


def _factor(contrast: Contrast, where: Where, origin: str) -> Factor:
    safe, trap = (contrast.side(which)[contrast.factor] for which in SIDES)
    return Factor(contrast.factor, safe, trap, where, origin, (origin, origin))


def _overlaid(contrast: Contrast, arm: PlannedArm, workshop: Workshop, where: Where, origin: str) -> Pair:
    """An arm with either side, and with those settings that the matrix leaves open."""
    setting = {name: value for name, value in contrast.setting.items() if name not in arm.declared}
    safe, trap = (Configuration({**setting, **contrast.side(which)}) for which in SIDES)
    factor = Factor(CONFIGURATION, safe, trap, where, origin, (origin, origin))
    baseline, candidate = overlaid(factor, arm, workshop)
    return Pair(baseline, candidate, note_of_settings(replace(factor, name=contrast.factor), baseline, candidate))


def _held(pitfall: Pitfall, pair: Pair, workshop: Workshop, *, made: bool) -> PitfallPair:
    """A pair held against the pitfall's builds and conditions; what can't be told is noted."""
    held = applies(pitfall, _facts(pair.candidate, workshop))
    outside = "; ".join(held.outside) or _no_way_out(pitfall, pair, workshop)
    number = workshop.source(pair.candidate.arm.build).number
    gone = is_gone(pitfall, pair.candidate.arm.build.fork, number) if number is not None else ""
    notes = (pair.note, *(f"may not apply: {unknown}" for unknown in held.unknown), gone)
    note = "; ".join(filter(None, notes)) if not outside else pair.note
    return PitfallPair(replace(pair, note=note), made, f"{pitfall.id}: {outside}" if outside else "")


def _no_way_out(pitfall: Pitfall, pair: Pair, workshop: Workshop) -> str:
    """A physical batch that is meant to reach the threshold and does not, either."""
    if pitfall.when.offload is None or _contrast(pitfall).factor != "ub":
        return ""
    both = applies(pitfall, _facts(pair.baseline, workshop)).is_inside
    return "both sides are on the same side of the threshold" if both else ""


def _facts(arm: PlannedArm, workshop: Workshop) -> Facts:
    build = arm.arm.build
    known = workshop.source(build)
    return Facts(
        fork=build.fork,
        number=known.number,
        commit=known.commit,
        placement=arm.placement,
        gpu_code=placements_of(build, arm.node_class) != (CPU,),
        model=facts_of_model(arm.arm.model),
        flags={name: (value,) for name, value in arm.flags.items()},
        said=frozenset(arm.declared),
    )
