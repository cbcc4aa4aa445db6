"""Archives unpacked with nothing outside their folder touched, and not without limit."""

from __future__ import annotations

import stat
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from harness.domain.errors import BadInput

MAX_BYTES = 32 * 1024**3
"""More than any build has; an archive can say that it holds a petabyte."""
MAX_ENTRIES = 100_000
_MAX_LINK_BYTES = 4096


def unpack(archive: Path, folder: Path, *, max_bytes: int = MAX_BYTES) -> None:
    """Unpack a tar archive (plain or gzip, bzip2, xz) or a zip archive.

    Files, folders and links inside it only: absolute names, names and links that lead out, devices and more bytes than
    allowed are refused, before anything is written.

    Args:
        archive: The file.
        folder: Where to; it is there and empty.
        max_bytes: Unpacked bytes at most.

    Raises:
        BadInput: ``E-archive-unsafe``, ``E-archive-too-large``, ``E-archive-unreadable``.
        OSError: What the disk refuses.
    """
    try:
        if tarfile.is_tarfile(archive):
            with tarfile.open(archive) as tar:
                _unpack_tar(tar, folder, archive, max_bytes)
        elif zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as packed:
                _unpack_zip(packed, folder, archive, max_bytes)
        else:
            raise BadInput("E-archive-unreadable", "neither a tar nor a zip archive", where=f"{archive}")
    except tarfile.FilterError as unsafe:
        raise _unsafe(archive, f"{unsafe}") from unsafe
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as broken:
        raise BadInput("E-archive-unreadable", f"the archive is broken: {broken}", where=f"{archive}") from broken


def _unpack_tar(tar: tarfile.TarFile, folder: Path, archive: Path, max_bytes: int) -> None:
    tar.extraction_filter = tarfile.data_filter
    members = []
    counted = 0
    for member in tar:
        counted += member.size
        members.append(member)
        _check_size(archive, counted, len(members), max_bytes)
        tarfile.data_filter(member, str(folder))  # raises for what is unsafe, while nothing is written yet
        if member.name.startswith("/"):
            raise _unsafe(archive, f"{member.name!r} is an absolute name")
    tar.extractall(folder, members=members, filter="data")


def _unpack_zip(packed: zipfile.ZipFile, folder: Path, archive: Path, max_bytes: int) -> None:
    members = packed.infolist()
    _check_size(archive, sum(member.file_size for member in members), len(members), max_bytes)
    links = [member for member in members if stat.S_ISLNK(member.external_attr >> 16)]
    if any(member.file_size > _MAX_LINK_BYTES for member in links):
        raise _unsafe(archive, "a link's target is longer than any path")
    targets = {member.filename: packed.read(member).decode("utf-8", "replace") for member in links}
    for name in _names(members, targets):
        parts = PurePosixPath(name)
        if parts.is_absolute() or ".." in parts.parts or "\\" in name:
            raise _unsafe(archive, f"{name!r} leads outside")
    for member in members:
        if member.filename not in targets:
            written = Path(packed.extract(member, folder))
            if mode := (member.external_attr >> 16) & 0o755:
                written.chmod(mode | 0o600 | (0o100 if member.is_dir() else 0))
    for name, target in targets.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)


def _names(members: list[zipfile.ZipInfo], targets: dict[str, str]) -> Iterator[str]:
    """Every name, and every place that a link leads to as a name: no way up is needed inside a build."""
    yield from (member.filename for member in members)
    yield from targets.values()


def _check_size(archive: Path, counted: int, entries: int, max_bytes: int) -> None:
    if counted > max_bytes or entries > MAX_ENTRIES:
        message = f"{archive.name} unpacks to more than {max_bytes} bytes or {MAX_ENTRIES} entries"
        raise BadInput("E-archive-too-large", message, where=f"{archive}")


def _unsafe(archive: Path, what: str) -> BadInput:
    hint = "pack the build's folder anew, with relative names and links inside it only"
    return BadInput("E-archive-unsafe", f"not unpacked: {what}", hint=hint, where=f"{archive}")


def single_folder(folder: Path) -> Path:
    """What an archive holds: the one folder that everything lies in, or the unpacked folder itself."""
    entries = list(folder.iterdir())
    return entries[0] if len(entries) == 1 and entries[0].is_dir() and not entries[0].is_symlink() else folder
