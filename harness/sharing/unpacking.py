"""A bundle opened: anybody's archive, so nothing outside its folder is touched, and nothing grows without limit."""

from __future__ import annotations

import hashlib
import json
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from harness.domain.errors import BadInput, Infrastructure
from harness.reporting.journal import JOURNAL_NAME
from harness.sharing.bundle import MANIFEST, SCHEMA, is_manifest

MOST_FILES = 10_000
SMALL_BYTES = 512 * 2**20
"""So much a bundle may always unpack to."""
MOST_BYTES = 64 * 2**30
_GROWTH = 20
"""By how much more than a small one may grow: text packs better, weights and programs do not."""
_LONGEST_NAME = 400
_PIECE = 1 << 20
_MAGIC = b"\x1f\x8b"


def is_bundle(path: Path) -> bool:
    """Whether a path is an archive and no journal."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def unpack_bundle(archive: Path, folder: Path) -> dict[str, Any]:
    """Unpack a bundle and hold its files against their digests.

    Args:
        archive: The archive.
        folder: Where to: a folder that is empty or not there.

    Returns:
        Its manifest.

    Raises:
        BadInput: ``E-bundle-unsafe``: names that lead out, links, devices; ``E-bundle-too-large``; ``E-not-a-bundle``:
            broken, of another kind or changed; ``E-bundle-schema``: a newer version made it.
        Infrastructure: ``E-bundle-write``.
    """
    try:
        digests = _extract(archive, folder)
        manifest = _manifest(folder, archive)
    except (tarfile.TarError, EOFError, zlib.error) as broken:
        raise _no_bundle(archive, f"the archive is broken: {broken}") from broken
    except OSError as error:
        if isinstance(error, FileNotFoundError) or error.errno is None:  # gzip has errors of its own
            raise _no_bundle(archive, f"{error.strerror or error}") from error
        raise Infrastructure("E-bundle-write", f"{error.strerror or error}", where=f"{archive}") from error
    _check(manifest, digests, archive)
    return manifest


def _extract(archive: Path, folder: Path) -> dict[str, str]:
    most = min(MOST_BYTES, max(SMALL_BYTES, _GROWTH * archive.stat().st_size))
    digests: dict[str, str] = {}
    total = 0
    with tarfile.open(archive, "r|gz") as tar:
        for member in _members(tar, archive):
            total += member.size
            if total > most or len(digests) >= MOST_FILES:
                message = f"it unpacks to more than {most // 2**20} MiB or {MOST_FILES} files"
                raise BadInput("E-bundle-too-large", message, where=f"{archive}")
            target = folder / member.name
            if target.exists():
                raise _unsafe(archive, f"{member.name!r} is in it twice, or in the way")
            content = tar.extractfile(member)
            if content is None:
                raise _unsafe(archive, f"{member.name!r} is no file")
            target.parent.mkdir(parents=True, exist_ok=True)
            found = hashlib.sha256()
            with target.open("xb") as file:
                while piece := content.read(_PIECE):
                    found.update(piece)
                    file.write(piece)
            target.chmod(0o755 if member.mode & 0o100 else 0o644)
            digests[member.name] = found.hexdigest()
    return digests


def _members(tar: tarfile.TarFile, archive: Path) -> Iterator[tarfile.TarInfo]:
    for member in tar:
        name = PurePosixPath(member.name)
        odd = (
            "\\" in member.name
            or "\0" in member.name
            or len(member.name) > _LONGEST_NAME
            or not member.name.isprintable()
        )
        if name.is_absolute() or ".." in name.parts or odd or not name.parts:
            raise _unsafe(archive, f"{member.name[:100]!r} leads outside, or is no name")
        if not member.isreg() or member.issparse():
            raise _unsafe(archive, f"{member.name!r} is a link, a folder, a device or has holes")
        yield member


def _manifest(folder: Path, archive: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / MANIFEST).read_bytes())
    except (FileNotFoundError, ValueError, RecursionError) as error:
        raise _no_bundle(archive, f"it has no readable {MANIFEST}") from error
    if not is_manifest(found) or not isinstance(found.get("files"), dict):
        raise _no_bundle(archive, f"its {MANIFEST} is another's")
    schema = found.get("schema")
    if not isinstance(schema, int) or schema > SCHEMA:
        message = f"it has schema {schema!r}, this version reads up to {SCHEMA}"
        raise BadInput("E-bundle-schema", message, hint="use a newer moe-harness", where=f"{archive}")
    return dict(found)


def _check(manifest: Mapping[str, Any], digests: Mapping[str, str], archive: Path) -> None:
    found = {name: digest for name, digest in digests.items() if name != MANIFEST}
    if found != manifest["files"]:
        wrong = sorted(name for name in {*found, *manifest["files"]} if found.get(name) != manifest["files"].get(name))
        raise _no_bundle(archive, f"it was changed after it was packed: {', '.join(wrong[:3])}")
    if JOURNAL_NAME not in found:
        raise _no_bundle(archive, f"it has no {JOURNAL_NAME}")


def _unsafe(archive: Path, what: str) -> BadInput:
    hint = "a bundle has plain files inside it only: ask for a new one"
    return BadInput("E-bundle-unsafe", f"not unpacked: {what}", hint=hint, where=f"{archive}")


def _no_bundle(archive: Path, why: str) -> BadInput:
    return BadInput("E-not-a-bundle", why, hint="moe-harness bundle makes one", where=f"{archive}")
