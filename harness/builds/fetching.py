"""Archives of builds, fetched by digest into the node's cache and unpacked there: once, and whole or not at all.

They count as present once the record beside the folder is written, and share quota and eviction with models.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from harness.builds.unpacking import single_folder, unpack
from harness.domain.build import Variant
from harness.domain.halting import ShouldStop, go_on, never
from harness.models.amounts import amount_text
from harness.models.download import Download, download
from harness.models.shelf import builds_folder, kept_mark, make_room, unfinished_build
from harness.models.storage import cache_root, disk_errors, make_folder, require_space, write_json
from harness.models.turns import turn
from harness.models.usage import obtain, want

_LOCK_SECONDS = 3600.0
_MAX_ARCHIVE_BYTES = 16 * 1024**3
_UNPACKED = 3
"""What an archive of programs grows to, about, for the question whether there is space."""

_ARCHIVE, _TREE = "archive", "unpacked"


def fetched(
    variant: Variant,
    *,
    cache: Path | None = None,
    report: Callable[[str], None] = lambda _: None,
    should_stop: ShouldStop = never,
) -> Path:
    """The unpacked folder of a variant's archive, fetched first where the cache has none.

    Who wants the same archive waits for who fetches it. Inside `harness.models.usage.cache_held` it stays in the cache
    to the end of that block.

    Args:
        variant: One with ``url`` and ``sha256``.
        cache: Root of the cache; `cache_root()` when None.
        report: Told what is going on.
        should_stop: Ends the fetching; what has come is gone on with another time.

    Raises:
        BadInput: As `download`, as `unpack`.
        Infrastructure: As `download`; ``E-cache-busy``, ``E-cache-full``, faults of the disk.
        Stopped: It was told to stop.
    """
    root = cache or cache_root()
    place = _place(variant, root)

    def waiting() -> None:
        report(f"waiting for another process that fetches {variant.url}")

    def get() -> tuple[Path, Path]:
        if not _present(place):
            with turn(place, waiting, _LOCK_SECONDS, should_stop):
                if not _present(place):
                    report(f"fetching {variant.url}")
                    _fetch(variant, place, root, report, should_stop)
        return place, _record(place)

    return single_folder(obtain(get, variant.url))


def in_cache(variant: Variant) -> Path | None:
    """As `fetched`, but nothing is fetched: ``None`` where that would be needed."""
    place = _place(variant, cache_root())
    return single_folder(place) if _present(place) else None


def keep(variant: Variant) -> None:
    """Let nothing remove a variant's archive from this node's cache to make room, now or once it is fetched.

    Raises:
        Infrastructure: Faults of the disk.
    """
    record = _record(_place(variant, cache_root()))
    make_folder(record.parent)
    with disk_errors(record):
        kept_mark(record).touch()


def note_use(path: str) -> None:
    """Count a build by path as wanted where it is one that was fetched: `ab` has its builds as files already."""
    shelf = builds_folder(cache_root())
    if path and Path(path).is_relative_to(shelf):
        want(_record(shelf / Path(path).relative_to(shelf).parts[0]))


def _place(variant: Variant, root: Path) -> Path:
    return builds_folder(root) / variant.sha256


def _record(place: Path) -> Path:
    return place.with_suffix(".json")


def _present(place: Path) -> bool:
    return _record(place).is_file() and place.is_dir()


def _fetch(variant: Variant, place: Path, root: Path, report: Callable[[str], None], should_stop: ShouldStop) -> None:
    """Fetch, check and unpack beside the place, and only then give it the name."""

    def arrived(done: int, total: int) -> None:
        go_on(should_stop)
        report(f"fetching {variant.url}, {amount_text(done, total)}")

    work = make_folder(unfinished_build(place))

    def room(needed: int) -> None:
        make_room(root, needed)
        require_space(work, needed)

    try:
        with disk_errors(work):
            archive = Download(
                variant.url,
                variant.sha256,
                work / _ARCHIVE,
                report=arrived,
                room=room,
                most_bytes=_MAX_ARCHIVE_BYTES,
            )
            download(archive)
    except BaseException:
        with suppress(OSError):
            work.rmdir()  # unless there is something to go on with
        raise
    try:
        with disk_errors(place):
            room(_UNPACKED * archive.target.stat().st_size)
            _unpack(archive.target, work / _TREE, place)
            write_json(_record(place), {"url": variant.url, "name": _name(variant.url)})
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _unpack(archive: Path, tree: Path, place: Path) -> None:
    for left in (tree, place):  # by a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    tree.mkdir()
    unpack(archive, tree)
    tree.replace(place)


def _name(url: str) -> str:
    return PurePosixPath(unquote(urlsplit(url).path)).name
