"""A journal cut to some of its cases: a journal again, without what concerns its machine alone."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from harness.reporting.state import JournalState
from harness.sharing.scrubbing import Scrubber

_OF_JOB = frozenset({"job_submitted", "job_started", "process", "job_finished"})
_NAMES = ("event", "case", "job")
_OF_CASE = frozenset({"planned", "verdict"})


def excerpt(state: JournalState, cases: Collection[str]) -> bytes:
    """The lines that some cases rest on.

    Args:
        state: The journal, read; its file is read again.
        cases: Ids of planned cases.
    """
    scrubber = Scrubber(last.host for last in state.jobs.values())
    lines = (json.dumps(scrubber.scrub(event), sort_keys=True) for event in _events(state, cases))
    return "".join(f"{line}\n" for line in lines).encode()


def _events(state: JournalState, cases: Collection[str]) -> Iterator[dict[str, Any]]:
    jobs = {state.planned[case].job for case in cases} - {""}
    begun: dict[str, Any] | None = None
    planned = False
    finished: dict[str, Any] | None = None
    for event in _read(state):
        match event["event"]:
            case "run_started" if not planned:
                begun = {**event, "cases": len(cases)}
            case "run_finished":
                finished = event
            case word if word in _OF_CASE and event.get("case") in cases:
                if begun:
                    yield begun
                    begun, planned = None, True
                yield event
            case word if word in _OF_JOB and event.get("job") in jobs:
                yield _of_cases(event, cases)
    if finished:
        yield finished


def _of_cases(event: dict[str, Any], cases: Collection[str]) -> dict[str, Any]:
    """A job without the cases that are left out."""
    spec = event.get("spec")
    if event["event"] != "job_submitted" or not isinstance(spec, dict):
        return event
    return {**event, "spec": {**spec, "cases": [case for case in spec.get("cases", ()) if case in cases]}}


def _read(state: JournalState) -> Iterator[dict[str, Any]]:
    """What can be read; the state has told of what can't."""
    for line in state.path.read_bytes().split(b"\n"):
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict) and all(isinstance(event.get(name, ""), str) for name in _NAMES):
            yield {"event": "", **event}
