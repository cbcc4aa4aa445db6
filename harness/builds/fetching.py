"""Archives of builds, fetched by digest into the node's cache: once, whole, and never what was not asked for."""

from __future__ import annotations

import hashlib
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from filelock import FileLock, Timeout

from harness.builds.unpacking import single_folder, unpack
from harness.domain.build import Variant
from harness.domain.errors import BadInput, Infrastructure
from harness.models.storage import cache_root, disk_errors, make_folder, require_space

LOCK_SECONDS = 3600.0
_SILENCE_S = 60.0
_CHUNK = 1 << 20
_MAX_ARCHIVE_BYTES = 16 * 1024**3
_BROKEN = (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError)
_UNPACKED = 3
"""What an archive of programs grows to, about, for the question whether there is space."""


def fetched(variant: Variant, *, cache: Path | None = None, report: Callable[[str], None] = lambda _: None) -> Path:
    """The unpacked folder of a variant's archive, fetched first where the cache has none.

    Who wants the same archive waits for who fetches it.

    Args:
        variant: One with ``url`` and ``sha256``.
        cache: Root of the cache; `cache_root()` when None.
        report: Told what is going on.

    Raises:
        BadInput: ``E-archive-missing``, ``E-digest-mismatch``, what `unpack` refuses.
        Infrastructure: ``E-fetch-failed``, ``E-cache-busy``, faults of the disk.
    """
    folder = place_of(variant, cache)
    if folder.is_dir():
        return single_folder(folder)
    with turn(folder, report):
        if not folder.is_dir():
            report(f"fetching {variant.url}")
            _fetch(variant, folder)
    return single_folder(folder)


def place_of(variant: Variant, cache: Path | None = None) -> Path:
    """Where a variant's archive is unpacked, whether it is there or not."""
    return (cache or cache_root()) / "builds" / "fetched" / variant.sha256


@contextmanager
def turn(place: Path, report: Callable[[str], None], *, seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Hold the lock of a place in the cache.

    Args:
        place: What is to be made; its folder is made if it is not there.
        report: Told when somebody else has to be waited for.
        seconds: How long they are waited for.

    Raises:
        Infrastructure: ``E-cache-busy``; faults of the disk.
    """
    make_folder(place.parent)
    lock = FileLock(place.with_name(f"{place.name}.lock"))
    with disk_errors(place):
        try:
            lock.acquire(timeout=0)
        except Timeout:
            report(f"waiting for another process that makes {place.name}")
            try:
                lock.acquire(timeout=seconds)
            except Timeout as busy:
                message = f"another process has been making it for more than {seconds:.0f} s"
                hint = "see what that process does"
                raise Infrastructure("E-cache-busy", message, hint=hint, where=f"{place}") from busy
    try:
        yield
    finally:
        lock.release()


def _fetch(variant: Variant, folder: Path) -> None:
    """Fetch, check, unpack beside the place, and only then give it the name."""
    archive, unpacked = (folder.with_name(f".{folder.name}.{end}") for end in ("archive", "unpacked"))
    try:
        shutil.rmtree(unpacked, ignore_errors=True)
        with disk_errors(archive):
            _download(variant, archive)
            require_space(folder.parent, _UNPACKED * archive.stat().st_size)
            unpacked.mkdir()
            unpack(archive, unpacked)
            unpacked.replace(folder)
    finally:
        archive.unlink(missing_ok=True)
        shutil.rmtree(unpacked, ignore_errors=True)


def _download(variant: Variant, archive: Path) -> None:
    digest = hashlib.sha256()
    with _opened(variant.url) as source, archive.open("wb") as target:
        while chunk := _read(source, variant.url):
            digest.update(chunk)
            target.write(chunk)
            if target.tell() > _MAX_ARCHIVE_BYTES:
                message = f"the archive has more than {_MAX_ARCHIVE_BYTES} bytes"
                raise BadInput("E-archive-too-large", message, where=variant.url)
    if digest.hexdigest() != variant.sha256:
        message = f"what came has the digest {digest.hexdigest()}, expected {variant.sha256}"
        hint = "the file there is another one, or came damaged: ask who gave the digest"
        raise BadInput("E-digest-mismatch", message, hint=hint, where=variant.url)


@contextmanager
def _opened(url: str) -> Iterator[Any]:
    """A local file, or what a server sends over TLS all the way."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        try:
            file = Path(unquote(parts.path)).open("rb")  # noqa: SIM115 - entered below
        except OSError as failure:
            raise BadInput("E-archive-missing", f"no archive: {failure.strerror}", where=url) from failure
        with file:
            yield file
        return
    opener = urllib.request.build_opener(_OnlyTls)
    try:
        with opener.open(url, timeout=_SILENCE_S) as answer:
            yield answer
    except urllib.error.HTTPError as refused:
        raise Infrastructure("E-fetch-failed", f"the server said {refused.code} {refused.reason}", where=url) from None
    except _BROKEN as failure:
        raise Infrastructure("E-fetch-failed", f"it can't be fetched: {failure}", where=url) from failure


def _read(source: Any, url: str) -> bytes:
    try:
        chunk: bytes = source.read(_CHUNK)
    except _BROKEN as failure:
        raise Infrastructure("E-fetch-failed", f"the transfer broke: {failure!r}", where=url) from failure
    return chunk


class _OnlyTls(urllib.request.HTTPRedirectHandler):
    """Follows redirections to ``https://`` alone: the digest protects the bytes, not what a request gives away."""

    def redirect_request(  # noqa: PLR0917 - the base class's signature
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        """As the base class does, for other addresses an error."""
        if urlsplit(newurl).scheme != "https":
            raise urllib.error.URLError(f"it redirects to {newurl}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
