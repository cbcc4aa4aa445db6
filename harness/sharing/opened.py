"""A journal, or a bundle that holds one: both are opened alike."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness.reporting.replay import read_journal
from harness.reporting.state import JournalState
from harness.sharing.bundle import BUILDS, MODELS, card_file
from harness.sharing.unpacking import is_bundle, unpack_bundle


@dataclass(frozen=True, slots=True)
class Opened:
    """What was opened.

    Attributes:
        state: The journal.
        origin: What was given, for messages.
        folder: Where a bundle was unpacked; ``None`` of a journal.
        builds: Builds that the bundle has with it, by name.
        models: Model files likewise.
        cards: Shape cards likewise.
    """

    state: JournalState
    origin: Path
    folder: Path | None = None
    builds: dict[str, str] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)
    cards: dict[str, str] = field(default_factory=dict)


@contextmanager
def opened(path: Path) -> Iterator[Opened]:
    """Open a journal, its folder, or a bundle, which is unpacked for the length of the block.

    Raises:
        BadInput: As `read_journal` and `unpack_bundle`.
    """
    if not is_bundle(path):
        yield Opened(read_journal(path), path)
        return
    with tempfile.TemporaryDirectory(prefix="moe-bundle-") as temporary:
        folder = Path(temporary)
        unpack_bundle(path, folder)
        yield _opened(read_journal(folder), path, folder)


def _opened(state: JournalState, origin: Path, folder: Path) -> Opened:
    arms = [arm for planned in state.planned.values() for arm in planned.case.arms]
    builds = {arm.build.name: folder / BUILDS / arm.build.name for arm in arms}
    models = {arm.model.name: folder / MODELS / arm.model.name / arm.model.file_name for arm in arms}
    cards = {arm.model.name: folder / card_file(arm.model.name) for arm in arms}
    inside = folder.resolve()

    def there(found: dict[str, Path]) -> dict[str, str]:
        """Names are anybody's: what they lead to outside is no part of the bundle."""
        return {
            name: str(place)
            for name, place in found.items()
            if place.exists() and place.resolve() != inside and place.resolve().is_relative_to(inside)
        }

    return Opened(state, origin, folder, there(builds), there(models), there(cards))
