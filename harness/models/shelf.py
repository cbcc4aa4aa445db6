"""What lies in the cache: made and fetched models, fetched builds, their sizes, and room for more within the quota.

They are removed record first, so that what is half removed does not count as present. Removed are those that nobody
uses, the ones that were wanted longest ago first.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from harness import settings
from harness.domain.errors import BadInput, Infrastructure
from harness.domain.suggest import did_you_mean
from harness.models.storage import read_json
from harness.models.turns import lock_of
from harness.models.usage import alone_with

_GIB = 1024**3
_MIB = 1024**2
_UNFINISHED = ".unfinished"
_MOST_LISTED = 10


@dataclass(frozen=True)
class Held:
    """A model or a build in the cache.

    Attributes:
        name: Its file's name, or that of its first part, or of a build's archive.
        kind: Models are ``made`` of a card or ``fetched``; a ``build`` is a fetched one; ``unfinished`` is a transfer
            or a making that broke off.
        files: All its files; a build's folder.
        record: The file that makes it count as present; of an unfinished one, what is locked while it grows.
        size: Bytes.
        wanted: When it was last wanted, seconds since 1970.
        sha256: Digests of its files or of its archive; empty for unfinished ones.
        in_use: A job holds it.
        kept: A baseline is it, or was: it is not removed to make room.
    """

    name: str
    kind: str
    files: tuple[Path, ...]
    record: Path
    size: int
    wanted: float
    sha256: tuple[str, ...]
    in_use: bool
    kept: bool = False


def quota_bytes() -> int | None:
    """What ``MOE_CACHE_GIB`` allows models and fetched builds to take; None without it.

    Raises:
        BadInput: ``E-bad-setting``.
    """
    return settings.cache_bytes()


def made_folder(root: Path) -> Path:
    """Where models that are made of cards lie."""
    return root / "models"


def fetched_folder(root: Path) -> Path:
    """Where fetched models lie, each in a folder of its own with a record beside it."""
    return root / "fetched"


def builds_folder(root: Path) -> Path:
    """Where fetched builds lie unpacked, each in a folder named after its archive's digest with a record beside it."""
    return root / "builds" / "fetched"


def unfinished_build(place: Path) -> Path:
    """Where what belongs in a folder of `builds_folder` lies until it is whole."""
    return place.with_name(f".{place.name}{_UNFINISHED}")


def kept_mark(record: Path) -> Path:
    """The file that keeps what a record is of from being removed to make room."""
    return record.with_suffix(".keep")


def held_models(root: Path) -> tuple[Held, ...]:
    """All models of a cache, the one that was wanted longest ago first."""
    return _by_age([*_made(made_folder(root)), *_fetched(fetched_folder(root))])


def held(root: Path) -> tuple[Held, ...]:
    """All that shares the quota, models and fetched builds, what was wanted longest ago first."""
    return _by_age([*held_models(root), *_builds(builds_folder(root))])


def make_room(root: Path, needed: int) -> None:
    """Remove what nobody uses until something fits into the quota; nothing without one.

    Args:
        root: Root of the cache.
        needed: Bytes of what is to come.

    Raises:
        BadInput: ``E-bad-setting``.
        Infrastructure: ``E-cache-full``, with what lies there.
    """
    quota = quota_bytes()
    if quota is None:
        return
    models = held(root)
    excess = sum(model.size for model in models) + needed - quota
    free = [model for model in models if not model.in_use and not model.kept]
    if excess > sum(model.size for model in free):
        raise _full(models, needed, quota, root)
    for model in free:
        if excess <= 0:
            return
        if remove(model):
            excess -= model.size
    if excess > 0:
        raise _full(held(root), needed, quota, root)


def remove(model: Held) -> bool:
    """Remove a model or build; false where somebody has begun to use it."""
    if model.kind == "unfinished":
        return _remove_unfinished(model)
    with alone_with(model.record) as alone:
        if not alone:
            return False
        model.record.unlink(missing_ok=True)
    for file in model.files:
        with suppress(OSError):
            _delete(file)
    if model.kind == "fetched":
        with suppress(OSError):
            model.files[0].parent.rmdir()
    return True


def _remove_unfinished(model: Held) -> bool:
    try:
        with FileLock(model.record, timeout=0):
            for file in model.files:
                _delete(file)
    except (Timeout, OSError):
        return False
    return True


def named(models: Iterable[Held], name: str) -> Held:
    """The model or build of a name, or of the only name that begins so.

    Raises:
        BadInput: ``E-not-cached`` with the nearest name; ``E-ambiguous-name`` with those that it fits.
    """
    listed = tuple(models)
    exact = [model for model in listed if model.name == name]
    like = exact or [model for model in listed if model.name.startswith(name)]
    if not like:
        hint = did_you_mean(name, [model.name for model in listed]) or "see 'moe-harness models list'"
        raise BadInput("E-not-cached", f"the cache has no model or build '{name}'", hint=hint)
    if len(like) > 1:
        fitting = ", ".join(f"{model.name} ({_in_words(model.size)})" for model in like[:_MOST_LISTED])
        message = f"'{name}' fits {len(like)} of what is in the cache: {fitting}"
        raise BadInput("E-ambiguous-name", message, hint="write more of the name")
    return like[0]


def _made(folder: Path) -> Iterator[Held]:
    for record in sorted(folder.glob("*.json")):
        said, model = read_json(record), record.with_suffix(".gguf")
        if said and model.is_file():
            yield _held("made", (model,), record, (str(said.get("sha256", "")),))
    for part in sorted(folder.glob(".*.part")):
        final = folder / part.name.removeprefix(".").rsplit(".", 2)[0]
        yield _unfinished(final.name, (part,), lock_of(final))


def _fetched(folder: Path) -> Iterator[Held]:
    for place in sorted(path for path in folder.glob("*") if path.is_dir()):
        record = place.with_suffix(".json")
        said = read_json(record)
        if said and "files" in said:
            files = tuple(place / str(name) for name in said["files"])
            yield _held("fetched", files, record, tuple(said["sha256"]))
        else:
            parts = tuple(sorted(path for path in place.iterdir() if path.is_file()))
            if parts:
                yield _unfinished(parts[0].name.removeprefix(".").removesuffix(".partial"), parts, lock_of(place))


def _builds(folder: Path) -> Iterator[Held]:
    for place in sorted(path for path in folder.glob("*") if path.is_dir()):
        digest = place.name.removeprefix(".").removesuffix(_UNFINISHED)
        record = folder / f"{digest}.json"
        said = read_json(record)
        if said and place.name == digest:
            yield _held("build", (place,), record, (digest,), str(said.get("name", "")))
        else:
            yield _unfinished(digest, (place,), lock_of(folder / digest))


def _held(kind: str, files: tuple[Path, ...], record: Path, sha256: tuple[str, ...], name: str = "") -> Held:
    with alone_with(record) as alone:
        in_use = not alone
    size, kept = sum(map(_size, files)), kept_mark(record).exists()
    return Held(name or files[0].name, kind, files, record, size, _changed(record), sha256, in_use, kept)


def _unfinished(name: str, files: tuple[Path, ...], lock: Path) -> Held:
    try:
        with FileLock(lock, timeout=0):
            in_use = False
    except (Timeout, OSError):
        in_use = True
    wanted = max(map(_changed, files), default=0.0)
    return Held(name, "unfinished", files, lock, sum(map(_size, files)), wanted, (), in_use)


def _by_age(found: list[Held]) -> tuple[Held, ...]:
    return tuple(sorted(found, key=lambda each: (each.wanted, each.name)))


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _size(path: Path) -> int:
    """Bytes of a file, or of all that a folder holds; links are not followed out of it."""
    try:
        inside = path.rglob("*") if path.is_dir() else (path,)
        return sum(each.lstat().st_size for each in inside if each.is_file() and not each.is_symlink())
    except OSError:
        return 0


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _full(models: tuple[Held, ...], needed: int, quota: int, root: Path) -> Infrastructure:
    listed = [
        f"{model.name} ({_in_words(model.size)}{', in use' if model.in_use else ', a baseline' if model.kept else ''})"
        for model in sorted(models, key=lambda model: -model.size)[:_MOST_LISTED]
    ]
    more = f" and {len(models) - _MOST_LISTED} more" if len(models) > _MOST_LISTED else ""
    there = f"it holds {', '.join(listed)}{more}" if listed else "it holds nothing"
    message = f"{_in_words(needed)} are needed, the quota is {_in_words(quota)}; {there}"
    hint = f"let the jobs that use them end, or raise {settings.CACHE_GIB}; see 'moe-harness models list'"
    return Infrastructure("E-cache-full", message, hint=hint, where=str(root))


def _in_words(size: int) -> str:
    if size < _MIB:
        return f"{size} bytes"
    return f"{size / _MIB:.1f} MiB" if size < _GIB else f"{size / _GIB:.1f} GiB"
