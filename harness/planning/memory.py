"""Whether a case's processes fit into the memory of the nodes, told before anything is loaded.

A case is ``not_applicable`` only where it is sure not to fit on any node of its class: what a GPU must hold, and what
RAM must hold that the kernel can't drop. Weights that are mapped from the file may be more than the RAM: that is slow,
and a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from harness.builds.choosing import no_variant
from harness.domain.build import Build
from harness.domain.node import NodeClass, NodeFacts
from harness.domain.words import Status
from harness.planning.needs import Needs, declared_gpus
from harness.planning.plan import PlannedCase
from harness.planning.rooms import Fit, fit_on

DOES_NOT_FIT = "E-model-does-not-fit"


def check_memory(cases: Sequence[PlannedCase], nodes: Iterable[NodeFacts] | None) -> tuple[PlannedCase, ...]:
    """Mark the cases that fit no node as ``not_applicable``, and note what is odd about cases.

    Args:
        cases: The cases. What no build can do stays as it is; where the class has no node, flags are looked at.
        nodes: Facts of every node of the fleet; ``None``: not known, and only flags are looked at.
    """
    needs = Needs(cases)
    places: dict[tuple[NodeClass, tuple[Build, ...]], tuple[NodeFacts, ...]] = {}
    fleet = None if nodes is None else tuple(nodes)
    silent: set[tuple[object, ...]] = set()
    checked = []
    for planned in cases:
        case = planned.case
        kind = (planned.status, case.node_class, needs.kind(case))
        if planned.status is Status.UNSUPPORTED or kind in silent:
            checked.append(planned)
            continue
        key = (case.node_class, tuple(arm.build for arm in case.arms if arm.build.variants))
        if key not in places:
            places[key] = _places(*key, fleet or ())
        found = _checked(planned, needs, places[key])
        if found is planned:
            silent.add(kind)
        checked.append(found)
    return tuple(checked)


def _places(node_class: NodeClass, builds: Sequence[Build], fleet: Sequence[NodeFacts]) -> tuple[NodeFacts, ...]:
    """The nodes that a case of a class can go to."""
    return tuple(
        node for node in fleet if not node_class.unmet(node) and not any(no_variant(build, node) for build in builds)
    )


def _checked(planned: PlannedCase, needs: Needs, places: Sequence[NodeFacts]) -> PlannedCase:
    case = planned.case
    if not places or planned.status is not None:
        declared = needs.of_arms(case, lambda arm: declared_gpus(arm, case.node_class))
        return _noted(planned, dict.fromkeys(note for each in declared for note in each.memory.notes))
    fits = [fit_on(case, needs, node) for node in places]
    possible = [fit for fit in fits if not fit.short]
    if not possible:
        reason = f"{DOES_NOT_FIT}: {_nearest(fits, places)}"
        return replace(_noted(planned, fits[0].notes), status=Status.NOT_APPLICABLE, reason=reason)
    slow = possible[0].rereading if all(fit.rereading for fit in possible) else None
    return _noted(planned, (*possible[0].notes, *([slow.said] if slow else [])))


def _nearest(fits: Sequence[Fit], nodes: Sequence[NodeFacts]) -> str:
    """What the node lacks that lacks least."""
    nearest = min(range(len(fits)), key=lambda index: fits[index].short)
    lacking = fits[nearest].lacking
    said = lacking.said if lacking else ""
    if len(nodes) == 1:
        return said
    return f"on none of {len(nodes)} nodes of its class, the nearest one is {nodes[nearest].described}: {said}"


def _noted(planned: PlannedCase, notes: Iterable[str]) -> PlannedCase:
    found = tuple(note for note in notes if note not in planned.note)
    return replace(planned, note="; ".join(filter(None, [planned.note, *found]))) if found else planned
