"""What lies at a place, as far as it fits: the models that were used last."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeAlias

Models: TypeAlias = tuple[tuple[str, int], ...]
"""What a job loads: key of each model's content, and its bytes."""


class ModelsAtHand:
    """The models of one place.

    Args:
        room: Bytes for them. The last one stays, whatever its size.
        held: Those that lie there already, the one used last at the end.
    """

    def __init__(self, room: int, held: Models = ()) -> None:
        self._room = room
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._missing: dict[Models, int] = {}
        self.use(held)

    def use(self, models: Models) -> None:
        """Have models lie there, used last; the oldest ones make room."""
        self._missing.clear()
        for key, size in models:
            self._sizes[key] = size
            self._sizes.move_to_end(key)
        while len(self._sizes) > 1 and sum(self._sizes.values()) > self._room:
            self._sizes.popitem(last=False)

    def forget(self, models: Models) -> None:
        """Know no more whether models lie there."""
        self._missing.clear()
        for key, _ in models:
            self._sizes.pop(key, None)

    def missing(self, models: Models) -> int:
        """Bytes of those models that would have to be loaded."""
        known = self._missing.get(models)
        if known is None:
            known = self._missing[models] = sum([size for key, size in models if key not in self._sizes])
        return known
