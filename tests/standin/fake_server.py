#!/usr/bin/env python3
"""A stand-in for llama-server, for what a real one cannot be made to do on demand. Marked as such; never shipped.

It answers as ik_llama.cpp's server does, as far as the harness uses it (read in ``examples/server`` of 8337e4cd: events
without token ids, timings in the last one only; completions with probabilities by ``fake_answers.py``, which lies
beside it then). What it does besides is said by ``standin.json`` in its folder: ``{"do": "...", "ms": 1.0}``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_FOLDER = Path(sys.argv[0]).resolve().parent
_TOLD: dict[str, Any] = json.loads((_FOLDER / "standin.json").read_text())
_DO = _TOLD["do"]
_MS = _TOLD.get("ms", 1.0)
_BEGIN = 1
_ASKED = dict(zip(sys.argv, sys.argv[1:], strict=False))
_OPTIONS = "-m -c -np -t -tb --host --port -b -ub -mg -ts -fa -ctk -ctv -sm -ot -ngl --no-mmap -rtr -no-fmoe -ger -amb"
_MORE = "-no-fug -mla -mqkv -muge -ser -gr -no-gr -thp -sas -ncmoe -nkvo --webui -cram --numa --defer-experts --fit"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Health and properties."""
        if self.path == "/health":
            loading = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
            self._send(503, loading) if _DO == "never_ready" else self._send(200, {"status": "ok"})
            return
        model = "/somewhere/else.gguf" if _DO == "foreign" else _ASKED["-m"]
        self._send(
            200, {"model_path": model, "total_slots": 2 if _DO == "two_slots" else 1, "build_info": "b42-abc123"}
        )

    def do_POST(self) -> None:
        """Tokenizing and completions."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            text = body["content"].upper() if _DO == "other_tokenizer" else body["content"]
            ids = [_BEGIN] * body["add_special"] + list(text.encode())
            self._send(200, {"tokens": "none" if _DO == "no_tokenizer" else ids})
        elif self.path == "/detokenize":
            self._detokenize(bytes(body["tokens"]))
        elif _DO == "error_400":
            self._send(400, {"error": {"code": 400, "message": "such requests are not liked"}})
        elif _DO == "too_long":
            self._send(400, {"error": {"code": 400, "message": "the request exceeds the available context size"}})
        elif _DO == "too_long_ik":
            said = "the request exceeds the available context size, try increasing it"
            self._send(500, {"error": {"code": 500, "message": said, "type": "server_error"}})
        elif _DO == "error_500":
            self._send(500, {"error": {"code": 500, "message": "failed to decode the batch", "type": "server_error"}})
        elif self.path == "/v1/completions":
            self._answer(body)
        else:
            self._stream(body)

    def _detokenize(self, text: bytes) -> None:
        """As the real one: an error where it is not valid UTF-8."""
        try:
            self._send(200, {"content": text.decode()})
        except UnicodeDecodeError:
            said = "[json.exception.type_error.316] invalid UTF-8 byte at index 0: 0x80"
            self._send(500, {"error": {"code": 500, "message": said, "type": "server_error"}})

    def _send(self, status: int, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _answer(self, body: dict[str, Any]) -> None:
        """A completion with probabilities, at once, and what goes wrong with it."""
        from fake_answers import ik_answer  # noqa: PLC0415 - beside it only where it is needed

        if _DO == "die_answering" or (_DO == "die_second" and bytes(body["prompt"][1:5]) == b"Good"):
            next(_crash())
        answer = ik_answer(body)
        _spoil(answer)
        if body.get("stream"):
            self._send_chunks(_parts(answer), finish=_DO != "torn")
        else:
            self._send(200, answer)

    def _stream(self, body: dict[str, Any]) -> None:
        self._send_chunks(_pieces(body), finish=_DO != "torn")

    def _send_chunks(self, pieces: Iterator[bytes], *, finish: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        if finish:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True


def _pieces(body: dict[str, Any]) -> Iterator[bytes]:
    """The stream, with what goes wrong in it."""
    prompt, count = len(body["prompt"]), body["n_predict"]
    time.sleep(_MS / 1000)
    for token in range(count - (_DO == "short")):
        if token == 2 and _DO in _MIDDLES:
            yield from _MIDDLES[_DO]()
            return
        yield _event({"content": "x", "stop": False, "id_slot": 0, "multimodal": False})
        time.sleep(_MS / 1000)
    timings = {
        "prompt_n": prompt - (3 if _DO == "cached" else 0),
        "prompt_ms": _MS,
        "predicted_n": count - (_DO == "short"),
        "predicted_ms": _MS * (count - 1),
    }
    yield _event({"content": "", "stop": True, **({} if _DO == "no_timings" else {"timings": timings})})


def _parts(answer: dict[str, Any]) -> Iterator[bytes]:
    """A completion with probabilities as a stream: an event for each listed token, and one with the rest."""
    (choice,) = answer["choices"]
    entries = (choice["logprobs"] or {}).get("content", [])
    for number, entry in enumerate(entries):
        if number == 1 and _DO in _MIDDLES:
            yield from _MIDDLES[_DO]()
            return
        time.sleep(_MS / 1000)
        yield _event({"choices": [{"text": "", "logprobs": {"content": [entry]}, "finish_reason": None}]})
    if _DO == "cut":
        return
    yield _event({**answer, "choices": [{**choice, "text": "", "logprobs": None}]})
    if not entries:
        # As the real one: this was all that it had to send, and it waits for more.
        yield from _hang()
    yield b"data: [DONE]\n\n"


def _spoil(answer: dict[str, Any]) -> None:
    choice = answer["choices"][0]
    if _DO == "no_logprobs":
        choice["logprobs"] = None
    if _DO == "other_prompt":
        answer["usage"]["prompt_tokens"] = 99
    if _DO == "cut_prompt":
        answer["usage"]["prompt_tokens"] -= 2
    for entry in (choice["logprobs"] or {}).get("content", []):
        if _DO == "no_ids":
            del entry["id"]
        if _DO == "few_logprobs":
            del entry["top_logprobs"][3:]
        for ranked in entry["top_logprobs"] if _DO == "nan" else ():
            ranked["logprob"] = None


def _event(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _crash() -> Iterator[bytes]:
    sys.stderr.write("GGML_ASSERT(nrc_x%8==0) failed\n")
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGSEGV)
    yield b""


def _hang() -> Iterator[bytes]:
    time.sleep(3600)
    yield b""


def _ping() -> Iterator[bytes]:
    while True:
        time.sleep(0.05)
        yield b": ping\n\n"


def _close() -> Iterator[bytes]:
    yield b'data: {"content": "x", "st'


_MIDDLES = {
    "die_answering": _crash,
    "hang_answering": _hang,
    "ping": _ping,
    "truncated": _close,
    "torn": _close,
    "error_event": lambda: iter([b'error: {"code": 500, "message": "failed to find free space in the KV cache"}\n\n']),
    "garbage": lambda: iter([b"data: {nonsense\n\n"]),
}


def main() -> int:
    """Behave as told."""
    if "--help" in sys.argv:
        words = f"{_OPTIONS} {_MORE}".split()
        sys.stdout.write("usage: llama-server [options]\n" + "".join(f"  {each} N\n" for each in words))
        return 0
    (_FOLDER / "server.pid").write_text(str(os.getpid()))
    (_FOLDER / "argv.json").write_text(json.dumps(sys.argv))
    if _DO == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if _DO == "die_loading":
        sys.stderr.write("ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed: out of memory\n")
        return 1
    if _DO == "exit_0":
        return 0
    server = ThreadingHTTPServer((_ASKED["--host"], int(_ASKED["--port"])), _Handler)
    server.daemon_threads = True
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
