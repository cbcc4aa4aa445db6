"""The lines of an embedded child, read: rows, outputs, identity, and whether it said that it was done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from harness.domain.failure import Failure, FailureKind
from harness.domain.measurement import NS
from harness.domain.outputs import Output
from harness.engines.bench_scan import json_lines
from harness.engines.diagnosis import memory_failure, process_failure, tail
from harness.engines.engine import Exit
from harness.engines.output_lines import read_output
from harness.engines.profile_rows import Answer

_EXIT_REFUSED, _EXIT_LOAD, _EXIT_DECODE = 2, 3, 4
"""Exit codes of ``harness.engines.embedded.errors``."""
_KIND_OF_EXIT = {
    _EXIT_REFUSED: FailureKind.REFUSED,
    _EXIT_LOAD: FailureKind.REFUSED,
    _EXIT_DECODE: FailureKind.CRASH,
}
_KIND_OF_SLUG = {
    "E-model-missing": FailureKind.INPUT_MISSING,
    "E-wheel-missing": FailureKind.INPUT_MISSING,
    "E-wheel-library": FailureKind.INPUT_MISSING,
    "E-server-not-ready": FailureKind.TIMEOUT,
    "E-answer-timeout": FailureKind.TIMEOUT,
    "E-server-foreign": FailureKind.HARNESS,
    "E-answer-mismatch": FailureKind.ECHO_MISMATCH,
    "E-logprobs-missing": FailureKind.ECHO_MISMATCH,
}
_LONGEST_LOAD_NS = 1_000_000_000_000_000
_SAID_OF_ITSELF = (
    "package",
    "package_version",
    "build_commit",
    "build_number",
    "library_version",
    "cpu_info",
    "system_info",
    "python",
)


@dataclass(slots=True)
class Events:
    """What a child wrote.

    Attributes:
        hello: Its identity.
        loaded: What it said after loading.
        rows: Workload name and row, in order.
        outputs: Answers to the prompts whose outputs are compared, in order.
        answers: Timed requests, in order.
        failed: The last words of a child that gave up: slug and message.
        server_exit: How the server that it had started ended, where it died: exit code, or minus the signal.
        done: It said that everything was done.
        unreadable: Lines that are an event and not readable as one.
    """

    hello: Mapping[str, Any] = field(default_factory=dict)
    loaded: Mapping[str, Any] = field(default_factory=dict)
    rows: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    failed: tuple[str, str] | None = None
    server_exit: int | None = None
    done: bool = False
    unreadable: int = 0


def read_events(text: str) -> Events:
    """Sort a child's lines. Never raises; lines that are no event are passed over.

    Args:
        text: Standard output.
    """
    events = Events()
    for line in json_lines(text):
        try:
            _take(events, line)
        except (KeyError, TypeError, ValueError, OverflowError):
            events.unreadable += 1
    return events


def child_failure(ended: Exit, events: Events) -> Failure | None:
    """What went wrong with the child as a process: its own words where it had any, else the way it ended.

    Args:
        ended: How it ended.
        events: What it wrote.
    """
    if ended.timed_out or events.failed is None or ended.code == 0:
        return process_failure(ended)
    slug, message = events.failed
    if events.server_exit is not None:
        return _server_failure(message, events.server_exit, ended)
    short = memory_failure(message, ended)
    if short:
        return short
    kind = _KIND_OF_SLUG.get(slug) or _KIND_OF_EXIT.get(ended.code or 0, FailureKind.HARNESS)
    return Failure(kind, message, slug, tail(ended.stderr))


def _server_failure(message: str, returncode: int, ended: Exit) -> Failure:
    """Why a server ended by itself: what it wrote says more than that it did."""
    code, number = (returncode, None) if returncode >= 0 else (None, -returncode)
    died = Exit(code, number, timed_out=False, stdout="", stderr=ended.stderr)
    reason = process_failure(died)
    if reason is None:
        return Failure(FailureKind.CRASH, message, "E-server-died", tail(ended.stderr))
    return replace(reason, message=f"{message}: {reason.message}")


def identity(events: Events) -> dict[str, str]:
    """What the engine said of itself: package, commit, CPU, and the libraries it really mapped with their hashes."""
    said = {name: str(events.hello[name]) for name in _SAID_OF_ITSELF if events.hello.get(name) not in (None, "")}
    libraries = events.hello.get("libraries")
    if libraries:
        said["libraries"] = json.dumps(libraries, sort_keys=True)
    for planted in ("planted_slowdown", "planted_fault"):
        if events.loaded.get(planted):
            said[planted] = str(events.loaded[planted])
    implied = events.loaded.get("implied")
    if implied:
        said["implied"] = json.dumps(implied, sort_keys=True)
    return said


def load_seconds(events: Events) -> float | None:
    """Loading the model, seconds; ``None`` where the child did not get so far."""
    load_ns = events.loaded.get("load_ns")
    return load_ns / NS if isinstance(load_ns, int | float) and 0 <= load_ns <= _LONGEST_LOAD_NS else None


def _take(events: Events, line: Mapping[str, Any]) -> None:
    """Put one line where it belongs.

    Raises:
        KeyError, TypeError, ValueError, OverflowError: The line lacks a part or has one of the wrong type.
    """
    match line.get("event"):
        case "hello":
            events.hello = line
        case "loaded":
            events.loaded = line
        case "row":
            events.rows.append((str(line["workload"]), _mapping(line["row"])))
        case "output":
            events.outputs.append(read_output(line))
        case "answer":
            events.answers.append(_answer(line))
        case "failed":
            events.failed = (str(line["slug"]), str(line["message"]))
            events.server_exit = None if line.get("server_exit") is None else int(line["server_exit"])
        case "done":
            events.done = True
        case _:
            pass


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return value


def _answer(line: Mapping[str, Any]) -> Answer:
    cold = line.get("cold_ns")
    return Answer(
        profile=str(line["profile"]),
        prompt_tokens=int(line["prompt_tokens"]),
        prompt_sha256=str(line["prompt_sha256"]),
        predicted=int(line["predicted"]),
        ttft_ns=int(line["ttft_ns"]),
        prefill_ns=int(line["prefill_ns"]),
        decode_ns=int(line["decode_ns"]),
        cold_ns=None if cold is None else int(cold),
    )
