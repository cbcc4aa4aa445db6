"""Each node for a case, one by one: its class, its builds' files, and what its memory has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from harness.builds.choosing import no_variant
from harness.domain.model import Model
from harness.domain.node import Lack, NodeClass, NodeFacts
from harness.domain.words import Status
from harness.models.card import packaged_cards
from harness.planning.needs import Needs
from harness.planning.plan import PlannedCase
from harness.planning.rooms import Room, fit_on

_NOT_KNOWN = "what it needs is not known, since this machine has no file of"
_TELLING = "a shape card tells it (moe-harness models card FILE where the file is)"


@dataclass(frozen=True, slots=True)
class Place:
    """A case on one node.

    Attributes:
        node: The node.
        fits: Whether it can run there; ``None``: the class fits, and what memory it needs is not known.
        reason: Why not, why that is not known, or what is odd about it.
        of_class: Whether the node is of the case's class.
        rooms: What each arm needs of each device; none where the node is not of the class.
        distance: How far it is from fitting, to be compared with that of other nodes: number and size of what lacks.
    """

    node: NodeFacts
    fits: bool | None
    reason: str = ""
    of_class: bool = True
    rooms: tuple[Room, ...] = ()
    distance: tuple[float, float] = (0, 0)


def nearest_of(places: Sequence[Place]) -> Place | None:
    """The node that lacks least, where a case fits none; ``None`` where it fits one, may fit one, or has no places."""
    if any(place.fits is not False for place in places):
        return None
    return min(places, key=lambda place: place.distance, default=None)


def places_of(needs: Needs, nodes: Sequence[NodeFacts]) -> Callable[[PlannedCase], tuple[Place, ...]]:
    """Hold cases against nodes; of a case that no build can run there are no places.

    Args:
        needs: Of all cases of the matrix.
        nodes: The nodes.
    """

    @cache
    def lacks(node_class: NodeClass) -> tuple[tuple[Lack, ...], ...]:
        """What each node lacks to be of a class."""
        return tuple(map(node_class.lacks, nodes))

    def found(planned: PlannedCase) -> tuple[Place, ...]:
        if planned.status is Status.UNSUPPORTED:
            return ()
        lacking = lacks(planned.case.node_class)
        return tuple(_place(planned, needs, node, its) for node, its in zip(nodes, lacking, strict=True))

    return found


def _place(planned: PlannedCase, needs: Needs, node: NodeFacts, lacks: Sequence[Lack]) -> Place:
    case = planned.case
    if lacks:
        said = f"not of class {case.node_class.name}: {'; '.join(lack.said for lack in lacks)}"
        distance = (1 + len(lacks), sum(lack.share for lack in lacks))
        return Place(node, fits=False, reason=said, of_class=False, distance=distance)
    if unvaried := next(filter(None, (no_variant(arm.build, node) for arm in case.arms)), ""):
        return Place(node, fits=False, reason=unvaried, distance=(1, 0))
    fit = fit_on(case, needs, node)
    if fit.short:
        reason = "; ".join(room.said for room in fit.rooms if room.short)
        return Place(node, fits=False, reason=reason, rooms=fit.rooms, distance=(0, fit.short))
    if not fit.known:
        models = {arm.model.name: arm.model for arm in case.arms}
        reason = f"{_NOT_KNOWN} {', '.join(models)}: {_TELLING}{_cards_text(models.values())}"
        return Place(node, fits=None, reason=reason, rooms=fit.rooms)
    return Place(node, fits=True, reason=fit.rereading.said if fit.rereading else "", rooms=fit.rooms)


def _cards_text(models: Iterable[Model]) -> str:
    """The packaged cards whose names these models have, in part; empty where there are none."""
    names = [f"{model.name} {model.file_name}".lower() for model in models if not model.card]
    cards = [f'card = "{card}"' for card in packaged_cards() if any(card in name for name in names)]
    return f", or the packaged card of that name: {' or '.join(cards)}" if cards else ""
