"""One file by address and digest: whole or not at all, resumed where it broke off, from ``https://`` or ``file://``.

Models and archives of builds come this way. Plain ``http://`` is for servers on this machine alone. The digest is made
while the bytes are written, and only what has the right one gets its name. What has arrived of a transfer that broke
lies beside it and is gone on with the next time, if the server can.
"""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from harness.domain.errors import BadInput, Infrastructure
from harness.models.address import address_fault, transfer_fault

SILENCE_S = 60.0
_CHUNK = 1 << 20
_RESUMED = "run it again: it goes on from there"
_BUSY = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)


@dataclass(frozen=True)
class Download:
    """A file to be had.

    Attributes:
        url: Where it is.
        sha256: Its digest, in lower-case hexadecimal.
        target: Where it goes; the folder is there, and nobody else writes the same file.
        report: Told the bytes that are there and in all (0 where the server does not say).
        room: Asked for so many bytes before they are written; raises where there is no room.
        silence_s: How long a server may send nothing.
        most_bytes: More than this is refused; None: `room` alone decides.
    """

    url: str
    sha256: str
    target: Path
    report: Callable[[int, int], None] = lambda _done, _total: None
    room: Callable[[int], None] = lambda _: None
    silence_s: float = SILENCE_S
    most_bytes: int | None = None

    @property
    def partial(self) -> Path:
        """Where what has arrived lies."""
        return self.target.with_name(f".{self.target.name}.partial")


def download(wanted: Download) -> None:
    """Fetch a file, check its digest and give it its name.

    Raises:
        BadInput: ``E-bad-address``, ``E-fetch-refused`` (the server does not have it or does not give it),
            ``E-fetch-too-large``, ``E-digest-mismatch``.
        Infrastructure: ``E-fetch-failed``, ``E-fetch-stalled``; what ``room`` raises.
        OSError: Faults of the disk.
    """
    fault = address_fault(wanted.url)
    if fault:
        raise BadInput("E-bad-address", fault, where=wanted.url)
    while True:
        resumed, found = _transfer(wanted)
        if found == wanted.sha256:
            break
        wanted.partial.unlink()
        # What was gone on with may have been of another file: then once more, from the start.
        if not resumed:
            message = f"what came has the digest {found}, expected {wanted.sha256}"
            hint = "another file lies there now, or the digest is of another one: ask who gave it"
            raise BadInput("E-digest-mismatch", message, hint=hint, where=wanted.url)
    wanted.partial.replace(wanted.target)


def _transfer(wanted: Download) -> tuple[bool, str]:
    """Write what is missing; whether something was there already, and the digest of all."""
    have = wanted.partial.stat().st_size if wanted.partial.exists() else 0
    with _source(wanted, have) as (source, start, total):
        _check_size(total, wanted)
        digest = hashlib.sha256()
        with wanted.partial.open("r+b" if start else "wb") as file:
            _read_again(file, start, digest.update)
            wanted.room(max(0, total - start))
            done = start
            wanted.report(done, total)
            while chunk := _chunk(source, wanted):
                digest.update(chunk)
                file.write(chunk)
                done += len(chunk)
                _check_size(done, wanted)
                wanted.report(done, total)
            file.flush()
            os.fsync(file.fileno())
    if total and done != total:
        message = f"the transfer ended after {done} of {total} bytes"
        raise Infrastructure("E-fetch-failed", message, hint=_RESUMED, where=wanted.url)
    return start > 0, digest.hexdigest()


def _check_size(size: int, wanted: Download) -> None:
    """What is too large is not gone on with another time."""
    if wanted.most_bytes is not None and size > wanted.most_bytes:
        wanted.partial.unlink(missing_ok=True)
        message = f"it has more than {wanted.most_bytes} bytes"
        raise BadInput("E-fetch-too-large", message, hint="see that the address is right", where=wanted.url)


def _read_again(file: BinaryIO, size: int, update: Callable[[bytes], None]) -> None:
    left = size
    while left and (chunk := file.read(min(_CHUNK, left))):
        update(chunk)
        left -= len(chunk)
    file.truncate()


def _chunk(source: Any, wanted: Download) -> bytes:
    try:
        # What has come and no more: of a slow server a whole chunk takes long, and nobody hears of it meanwhile.
        chunk: bytes = source.read1(_CHUNK)
    except TimeoutError as silent:
        raise _stalled(wanted) from silent
    except (HTTPException, OSError) as failure:
        message = f"the transfer broke: {failure!r}"
        raise Infrastructure("E-fetch-failed", message, hint=_RESUMED, where=wanted.url) from failure
    return chunk


@contextmanager
def _source(wanted: Download, have: int) -> Iterator[tuple[Any, int, int]]:
    """What to read from, where in the file that begins, and how many bytes the file has; 0 where unknown."""
    parts = urlsplit(wanted.url)
    if parts.scheme == "file":
        with _local(Path(unquote(parts.path)), wanted.url) as file:
            yield file, 0, os.fstat(file.fileno()).st_size
        return
    with _answer(wanted, have) as answer:
        length = int(answer.headers.get("Content-Length") or 0)
        start = have if answer.status == HTTPStatus.PARTIAL_CONTENT and _starts_at(answer, have) else 0
        yield answer, start, start + length if length else 0


def _local(path: Path, url: str) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as failure:
        raise BadInput("E-fetch-refused", f"no file: {failure.strerror}", where=url) from failure


def _starts_at(answer: Any, have: int) -> bool:
    return str(answer.headers.get("Content-Range", "")).startswith(f"bytes {have}-")


def _answer(wanted: Download, have: int) -> Any:
    request = urllib.request.Request(wanted.url, headers={"Range": f"bytes={have}-"} if have else {})  # noqa: S310
    local = urlsplit(wanted.url).scheme == "http"
    handlers: list[urllib.request.BaseHandler] = [_CheckedRedirects()]
    if local:
        handlers.append(urllib.request.ProxyHandler({}))
    try:
        return urllib.request.build_opener(*handlers).open(request, timeout=wanted.silence_s)
    except urllib.error.HTTPError as refused:
        if have and refused.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            wanted.partial.unlink()
            return _answer(wanted, 0)
        raise _refusal(refused, wanted.url) from None
    except urllib.error.URLError as failure:
        if isinstance(failure.reason, TimeoutError):
            raise _stalled(wanted) from failure
        message = f"it can't be fetched: {failure.reason}"
        raise Infrastructure("E-fetch-failed", message, where=wanted.url) from failure
    except TimeoutError as silent:
        raise _stalled(wanted) from silent
    except (HTTPException, OSError, ValueError) as failure:  # the last of an address that a redirect misspells
        raise Infrastructure("E-fetch-failed", f"it can't be fetched: {failure!r}", where=wanted.url) from failure


def _refusal(refused: urllib.error.HTTPError, url: str) -> BadInput | Infrastructure:
    message = f"the server said {refused.code} {refused.reason}"
    if HTTPStatus.BAD_REQUEST <= refused.code < HTTPStatus.INTERNAL_SERVER_ERROR and refused.code not in _BUSY:
        hint = "check the address; what needs a login is fetched by hand and given by 'path'"
        return BadInput("E-fetch-refused", message, hint=hint, where=url)
    return Infrastructure("E-fetch-failed", message, where=url)


def _stalled(wanted: Download) -> Infrastructure:
    message = f"the server sent nothing for {wanted.silence_s:g} s"
    return Infrastructure("E-fetch-stalled", message, hint=_RESUMED, where=wanted.url)


class _CheckedRedirects(urllib.request.HTTPRedirectHandler):
    """Goes only where a matrix could have pointed to, and never from TLS to plain HTTP."""

    def redirect_request(  # noqa: PLR0917 - the base class's signature
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        """As the base class does; for other addresses an error."""
        downgraded = urlsplit(req.full_url).scheme == "https" and urlsplit(newurl).scheme != "https"
        fault = "from https to http" if downgraded else transfer_fault(newurl)
        if fault:
            place = urlsplit(newurl)  # without what may be a signature
            raise urllib.error.URLError(f"it redirects to {place.scheme}://{place.hostname or ''}{place.path}: {fault}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
