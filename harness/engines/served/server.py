"""The server as a process and as a partner: started on a free port of the loopback interface, waited for, ended."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self

from harness.engines.embedded.errors import EmbeddedError

from .errors import ServerDied, error_answer, foreign_server, never_ready, too_slow, truncated
from .stream import ErrorEvent, StreamedAnswer, StreamProblem, error_of, events, gathered, read_answer

_HOST = "127.0.0.1"
_POLL_S = 0.01
_PROBE_S = 5.0
_DEATH_S = 2.0
"""A server that dies closes its connections a moment before its end can be seen."""
_ENDING_S = 10.0
_LONGEST_LINE = 1 << 24
_OK, _LOADING = 200, 503
_JSON = {"Content-Type": "application/json"}
_STREAM = "text/event-stream"
_NO_TEXT, _UNREADABLE = "UTF-8", "\ufffd"


class Server:
    """A server that lives as long as the ``with`` block.

    Args:
        argv: Program and arguments, but for the address.
        environment: Variables beside this process's own.
        deadline_s: Seconds from now after which nothing is waited for any more.

    Attributes:
        started: When it was started, on the clock of ``time.perf_counter_ns``.
        pid: Its process id.
    """

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], deadline_s: float) -> None:
        self._deadline = time.monotonic() + deadline_s
        self._deadline_s = deadline_s
        self._port = _free_port()
        address = ("--host", _HOST, "--port", str(self._port))
        self.started = time.perf_counter_ns()
        # Standard output is standard error here: the lines of this process are written elsewhere (``Channel``).
        self._process = subprocess.Popen(
            [*argv, *address], env={**os.environ, **environment}, stdin=subprocess.DEVNULL, close_fds=True
        )
        self.pid = self._process.pid
        _leave_its_cores()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def wait_until_ready(self) -> None:
        """Ask until it says that the model is loaded.

        Raises:
            EmbeddedError: ``E-server-died``, ``E-server-not-ready``.
        """
        last = "it does not listen"
        while time.monotonic() < self._deadline:
            self._require_life("before it was ready")
            try:
                status, body = self._exchange("GET", "/health", None, min(_PROBE_S, self._left()))
            except (OSError, http.client.HTTPException, StreamProblem, ErrorEvent):
                status, body = 0, None
            if status == _OK:
                # Whoever answers may not be ours: then ours could not listen, and has ended or is about to.
                self._require_life("although somebody answers on its port")
                return
            last = f"it says {error_of(body)[1]!r}" if status else last
            time.sleep(_POLL_S)
        raise never_ready(self._deadline_s, last)

    def properties(self, model: str) -> Mapping[str, Any]:
        """What it says of itself.

        Raises:
            EmbeddedError: ``E-server-foreign``: it has another model.
        """
        found = self._json("GET", "/props", None, "when asked for its properties")
        said = found.get("model_path", model)
        if said != model:
            raise foreign_server(f"its model is {said}")
        return found

    def tokenize(self, text: str, *, special: bool = True, named: bool = True) -> list[int]:
        """Token ids of a text.

        Args:
            text: The text.
            special: Whether the special tokens that begin a sequence are among them.
            named: Whether names of special tokens in the text stand for them; ik_llama.cpp's server always does so.

        Raises:
            EmbeddedError: Whatever goes wrong.
        """
        body = {"content": text, "add_special": special, "parse_special": named, "with_pieces": False}
        found = self._json("POST", "/tokenize", body, "when asked to tokenize")
        tokens = found.get("tokens")
        if not isinstance(tokens, list) or not all(isinstance(token, int) for token in tokens):
            raise error_answer("when asked to tokenize", 500, f"no token ids in {str(found)[:60]}")
        return tokens

    def detokenize(self, tokens: Sequence[int]) -> str:
        """Text of token ids, for a person to read.

        ik_llama.cpp's server (8337e4cd) makes an error of text that is not valid UTF-8: it is then asked for in halves.

        Raises:
            EmbeddedError: Whatever else goes wrong.
        """
        try:
            found = self._json("POST", "/detokenize", {"tokens": list(tokens)}, "when asked for the text of tokens")
        except EmbeddedError as error:
            if _NO_TEXT not in str(error):
                raise
            middle = len(tokens) // 2
            return self.detokenize(tokens[:middle]) + self.detokenize(tokens[middle:]) if middle else _UNREADABLE
        return str(found.get("content", ""))

    def ask(self, path: str, body: Mapping[str, Any], doing: str) -> Mapping[str, Any]:
        """Send a request and wait for the whole answer; a stream is gathered.

        Args:
            path: Where to.
            body: The request.
            doing: Which one it is, for messages.

        Raises:
            EmbeddedError: Whatever goes wrong.
        """
        return self._json("POST", path, body, doing)

    def complete(self, body: Mapping[str, Any], doing: str) -> tuple[int, StreamedAnswer]:
        """Send a request for a streamed completion.

        Args:
            body: The request.
            doing: Which one it is, for messages.

        Returns:
            When it was sent, and the answer, both on the clock of ``time.perf_counter_ns``.

        Raises:
            EmbeddedError: Whatever goes wrong.
        """
        payload = json.dumps(body).encode()
        connection = http.client.HTTPConnection(_HOST, self._port, timeout=self._left())
        try:
            with self._named(doing):
                connection.connect()
                sent = time.perf_counter_ns()
                connection.request("POST", "/completion", payload, _JSON)
                response = connection.getresponse()
                if response.status != _OK:
                    raise error_answer(doing, response.status, error_of(_decoded(response.read()))[1])
                return sent, read_answer(events(self._lines(response)), time.perf_counter_ns)
        finally:
            connection.close()

    def _json(self, method: str, path: str, body: Mapping[str, Any] | None, doing: str) -> Mapping[str, Any]:
        with self._named(doing):
            status, found = self._exchange(method, path, body, self._left())
        if status != _OK:
            raise error_answer(doing, status, error_of(found)[1])
        if not isinstance(found, dict):
            raise truncated(doing, f"it is no JSON object: {str(found)[:60]!r}")
        return found

    def _exchange(self, method: str, path: str, body: Mapping[str, Any] | None, timeout_s: float) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(_HOST, self._port, timeout=timeout_s)
        try:
            connection.request(method, path, None if body is None else json.dumps(body).encode(), _JSON)
            response = connection.getresponse()
            if response.status == _OK and response.headers.get_content_type() == _STREAM:
                return response.status, gathered(events(self._lines(response)))
            return response.status, _decoded(response.read())
        finally:
            connection.close()

    def _lines(self, response: http.client.HTTPResponse) -> Iterator[bytes]:
        """Lines until the end or the deadline: a connection waits for each anew."""
        while line := response.readline(_LONGEST_LINE):
            yield line
            if time.monotonic() > self._deadline:
                raise TimeoutError("it still goes on")

    @contextmanager
    def _named(self, doing: str) -> Iterator[None]:
        """Whatever goes wrong on the way to an answer, by its name."""
        try:
            yield
        except ErrorEvent as error:
            raise error_answer(doing, error.status, error.said) from None
        except TimeoutError as error:
            raise too_slow(doing, f"{error}") from None
        except (StreamProblem, OSError, http.client.HTTPException) as problem:
            self._require_life(doing, _DEATH_S)
            raise truncated(doing, str(problem) or type(problem).__name__) from None

    def _left(self) -> float:
        """Seconds up to the deadline, a little at least: the socket then says that it is over."""
        return max(0.001, self._deadline - time.monotonic())

    def _require_life(self, doing: str, wait_s: float = 0.0) -> None:
        with suppress(subprocess.TimeoutExpired):
            raise ServerDied(doing, self._process.wait(wait_s))


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data.decode("utf-8", "replace")


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind((_HOST, 0))
        port: int = taken.getsockname()[1]
        return port


def _leave_its_cores() -> None:
    """Move this process off the cores that the server is bound to, onto others of whoever started us, if it has any.

    Reading an answer takes little time, but with spinning threads each of them can make all wait.
    """
    with suppress(OSError):
        others = os.sched_getaffinity(os.getppid()) - os.sched_getaffinity(0)
        if others:
            os.sched_setaffinity(0, others)
