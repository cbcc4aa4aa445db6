"""Models by address or digest, in the node's cache: fetched once, whatever the number of jobs that want them.

Each lies in a folder named after its digests, its parts under their own names, and counts as present once the record
beside the folder is written. Who wants the same one waits for who fetches it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from harness.domain.errors import BadInput
from harness.domain.halting import ShouldStop, go_on, never
from harness.models.address import address_fault
from harness.models.download import SILENCE_S, Download, download
from harness.models.hashing import file_sha256
from harness.models.inspect import inspect_gguf
from harness.models.shelf import fetched_folder, held_models, make_room
from harness.models.splits import part_names
from harness.models.storage import disk_errors, make_folder, read_json, require_space, write_json
from harness.models.turns import turn

_KEY_DIGITS = 16
_LOCK_SECONDS = 6 * 3600.0

ReportFetch = Callable[[str, int, int], None]
"""Told a file's name, the bytes that are there and those in all; 0 and 0 while somebody else is waited for."""


@dataclass(frozen=True)
class Fetching:
    """How a model is fetched.

    Attributes:
        root: Root of the cache.
        report: Told the progress.
        silence_s: How long a server may send nothing.
        lock_seconds: How long another one who fetches it is waited for.
        should_stop: Ends the fetching; what has come is gone on with another time.
    """

    root: Path
    report: ReportFetch = lambda _name, _done, _total: None
    silence_s: float = SILENCE_S
    lock_seconds: float = _LOCK_SECONDS
    should_stop: ShouldStop = never


def fetch_model(url: str, sha256: tuple[str, ...], how: Fetching) -> tuple[Path, Path]:
    """A model's file and its record, fetched first where the cache has none.

    Args:
        url: Address of the file, or of the first part of a split model; the others lie beside it.
        sha256: Digests of all parts, in their order.
        how: Where to and how.

    Raises:
        BadInput: ``E-bad-address``, ``E-model-digests``; as `download`; what is wrong with the file.
        Infrastructure: As `download`; ``E-cache-busy``, ``E-cache-full``, ``E-disk-full``, ``E-no-permission``,
            ``E-cache-unusable``.
        Stopped: It was told to stop.
    """
    addresses = part_addresses(url, sha256)
    place = _place(sha256, how.root)
    record = place.with_suffix(".json")
    if not _present(record):
        with turn(place, lambda: how.report(place.name, 0, 0), how.lock_seconds, how.should_stop):
            if not _present(record):
                _fetch(addresses, sha256, place, how)
    return _first(record), record


def cached_model(sha256: tuple[str, ...], root: Path) -> tuple[Path, Path]:
    """The file and record of a model that is in the cache already, made or fetched.

    Raises:
        BadInput: ``E-model-not-cached``.
    """
    for model in held_models(root):
        if model.sha256 == sha256:
            return model.files[0], model.record
    message = f"the cache has no model with the digest {sha256[0]}"
    hint = "give its 'url' or 'path' too; see 'moe-harness models list'"
    raise BadInput("E-model-not-cached", message, hint=hint, where=str(root))


def part_addresses(url: str, sha256: tuple[str, ...]) -> tuple[str, ...]:
    """The addresses of all parts of a model.

    Raises:
        BadInput: ``E-bad-address``, whether or not the cache has it already; ``E-model-digests``: another number of
            digests than of parts.
    """
    if fault := address_fault(url):
        raise BadInput("E-bad-address", fault, where=url)
    parts = urlsplit(url)
    folder, _, name = parts.path.rpartition("/")
    names = part_names(name)
    if not unquote(name).strip("."):
        raise BadInput("E-bad-address", "the address names no file", where=url)
    if len(names) != len(sha256):
        message = f"'{unquote(name)}' is a model of {len(names)} files, {len(sha256)} digests are given"
        raise BadInput("E-model-digests", message, hint="give one for each file, in their order", where=url)
    return tuple(parts._replace(path=f"{folder}/{each}").geturl() for each in names)


def check_digests(
    path: Path, sha256: tuple[str, ...], parts: tuple[Path, ...], should_stop: ShouldStop = never
) -> None:
    """Hold the files of a model that lies somewhere against the digests that are asked for.

    Raises:
        BadInput: ``E-model-digests``, ``E-digest-mismatch``; as `file_sha256`.
        Stopped: It was told to stop.
    """
    if len(parts) != len(sha256):
        message = f"it is a model of {len(parts)} files, {len(sha256)} digests are given"
        raise BadInput("E-model-digests", message, hint="give one for each file, in their order", where=str(path))
    for part, expected in zip(parts, sha256, strict=True):
        found = file_sha256(part, should_stop=should_stop)
        if found != expected:
            message = f"it has the digest {found}, expected {expected}"
            raise BadInput("E-digest-mismatch", message, hint="it is another file, or damaged", where=str(part))


def _place(sha256: tuple[str, ...], root: Path) -> Path:
    key = sha256[0] if len(sha256) == 1 else hashlib.sha256("\n".join(sha256).encode()).hexdigest()
    return fetched_folder(root) / key[:_KEY_DIGITS]


def _present(record: Path) -> bool:
    """Whether the record is written and every file there with the size that it says."""
    said = read_json(record)
    try:
        return said is not None and all(
            (record.with_suffix("") / name).stat().st_size == size
            for name, size in zip(said["files"], said["sizes"], strict=True)
        )
    except (OSError, KeyError, TypeError, ValueError):
        return False


def _first(record: Path) -> Path:
    said = read_json(record) or {}
    return record.with_suffix("") / str(said["files"][0])


def _fetch(addresses: tuple[str, ...], sha256: tuple[str, ...], place: Path, how: Fetching) -> None:
    make_folder(place)
    files = []

    def room(needed: int) -> None:
        make_room(how.root, needed)
        require_space(place, needed)

    for address, digest in zip(addresses, sha256, strict=True):
        target = place / unquote(urlsplit(address).path.rpartition("/")[2]).replace("/", "_")
        files.append(target)
        if target.exists():  # a part that came whole before another one broke off, unless it was damaged since
            if file_sha256(target, cache=how.root, should_stop=how.should_stop) == digest:
                continue
            target.unlink()
        with disk_errors(target):
            download(Download(address, digest, target, _reporting(how, target.name), room, how.silence_s))
    inspect_gguf(files[0])
    with disk_errors(place):
        record = {"files": [file.name for file in files], "sizes": [file.stat().st_size for file in files]}
        write_json(place.with_suffix(".json"), {**record, "sha256": list(sha256), "url": addresses[0]})


def _reporting(how: Fetching, name: str) -> Callable[[int, int], None]:
    def report(done: int, total: int) -> None:
        go_on(how.should_stop)
        how.report(name, done, total)

    return report
