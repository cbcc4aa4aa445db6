"""A server on this machine that gives files, and misbehaves where it is told to."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Shelf:
    """What a server gives, and what it was asked.

    Attributes:
        address: Its root, without a slash at the end.
        files: Content by path.
        redirects: Where paths lead to.
        cut: After how many bytes of a path the connection is closed; each is used once.
        silent: Paths of which half is sent and then nothing.
        ranges: Whether it answers requests for the rest of a file.
        sizes: Whether it says how large a file is.
        delay_s: Pause before each answer.
        asked: Path and wanted range of each request.
    """

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    cut: dict[str, int] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    ranges: bool = True
    sizes: bool = True
    delay_s: float = 0.0
    asked: list[tuple[str, str]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)


class _Handler(BaseHTTPRequestHandler):
    shelf: Shelf

    def do_GET(self) -> None:
        shelf, wanted = self.shelf, self.headers.get("Range", "")
        shelf.asked.append((self.path, wanted))
        time.sleep(shelf.delay_s)
        if self.path in shelf.redirects:
            self.send_response(302)
            self.send_header("Location", shelf.redirects[self.path])
            self.end_headers()
        elif self.path not in shelf.files:
            self.send_error(404)
        else:
            self._give(shelf.files[self.path], wanted)

    def _give(self, content: bytes, wanted: str) -> None:
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.shelf.ranges else 0
        if start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if self.shelf.sizes:
            self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        end = self.shelf.cut.pop(self.path, len(content))
        if self.path in self.shelf.silent:
            self.wfile.write(content[start : (start + end) // 2])
            self.wfile.flush()
            self.shelf.closing.wait()
            return
        self.wfile.write(content[start:end])

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[Shelf]:
    """Serve on a free port of the loopback until the block ends."""
    shelf = Shelf()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"shelf": shelf}))
    server.daemon_threads = True
    shelf.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield shelf
    finally:
        shelf.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
