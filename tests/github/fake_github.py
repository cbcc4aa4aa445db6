"""A FAKE of GitHub's issues interface on loopback: for faults that the real one can't be made to have."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "ghs_fakeTokenThatNobodyMaySee0123456789"  # noqa: S105 - of the fake alone
LABEL = "moe-regression"


@dataclass
class Fault:
    """An answer in place of the right one.

    Attributes:
        status: HTTP's.
        body: Text of the answer.
        headers: Beside the usual.
        done: The request is carried out all the same, and only its answer is lost.
    """

    status: int
    body: str = '{"message": "planted"}'
    headers: dict[str, str] = field(default_factory=dict)
    done: bool = False


@dataclass
class FakeGitHub:
    """One repository."""

    issues: list[dict[str, Any]] = field(default_factory=list)
    seen: list[tuple[str, str]] = field(default_factory=list)
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    page_size: int = 100
    may_label: bool = True
    meeting: threading.Barrier | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    api: str = ""

    def by_number(self, number: int) -> dict[str, Any]:
        return self.issues[number - 1]

    def add(self, **fields: Any) -> dict[str, Any]:
        issue = {"number": len(self.issues) + 1, "state": "open", "state_reason": None, "body": "", **fields}
        self.issues.append(issue)
        return issue

    def calls(self, method: str) -> int:
        return sum(seen == method for seen, _ in self.seen)


class _Server(ThreadingHTTPServer):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.fake = FakeGitHub()


class _Handler(BaseHTTPRequestHandler):
    @property
    def fake(self) -> FakeGitHub:
        assert isinstance(self.server, _Server)
        return self.server.fake

    def do_GET(self) -> None:
        with self.fake.lock:
            self.fake.seen.append(("GET", self.path))
            meet = self.fake.meeting if self.fake.calls("GET") <= 2 else None
        query = parse_qs(urlsplit(self.path).query)
        page = int(query.get("page", ["1"])[0])
        labelled = [issue for issue in self.fake.issues if {"name": query["labels"][0]} in issue["labels"]]
        rows = labelled[(page - 1) * self.fake.page_size : page * self.fake.page_size]
        headers = {}
        if page * self.fake.page_size < len(labelled):
            more = f"{self.fake.api}{urlsplit(self.path).path}?labels={query['labels'][0]}&page={page + 1}"
            headers["Link"] = f'<{more}>; rel="next"'
        if meet:
            meet.wait(10)
        self._answer(200, json.dumps(rows), headers)

    def do_POST(self) -> None:
        with self.fake.lock:
            self.fake.seen.append(("POST", self.path))
            sent = self._sent()
            fault = self._fault()
            issue: dict[str, Any] = {}
            if fault is None or fault.done:
                labels = [{"name": name} for name in sent["labels"]] if self.fake.may_label else []
                issue = self.fake.add(title=sent["title"], body=sent["body"], labels=labels)
        self._answer(201, json.dumps(issue), fault=fault)

    def do_PATCH(self) -> None:
        with self.fake.lock:
            self.fake.seen.append(("PATCH", self.path))
            sent = self._sent()
            fault = self._fault()
            issue = self.fake.by_number(int(self.path.rsplit("/", 1)[1]))
            if fault is None:
                issue.update(sent)
        self._answer(200, json.dumps(issue), fault=fault)

    def _sent(self) -> dict[str, Any]:
        return dict(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _fault(self) -> Fault | None:
        waiting = self.fake.faults.get(self.command, [])
        return waiting.pop(0) if waiting else None

    def _answer(
        self, status: int, body: str, headers: dict[str, str] | None = None, fault: Fault | None = None
    ) -> None:
        fault = fault or (self._fault() if self.command == "GET" else None)
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            fault = Fault(401, '{"message": "Bad credentials"}')
        if fault:
            status, body, headers = fault.status, fault.body, fault.headers
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def fake_github() -> Iterator[FakeGitHub]:
    server = _Server(("127.0.0.1", 0), _Handler)
    fake = server.fake
    fake.api = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
