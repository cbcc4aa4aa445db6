"""Read a journal back, whatever happened to its writer: what can be read counts, what cannot is named."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from harness.domain.arm import Arm
from harness.domain.choice import Choice, LeftToNight
from harness.domain.errors import BadInput
from harness.domain.failure import Failure
from harness.domain.job import Job
from harness.domain.measurement import ProcessRun
from harness.domain.node import NodeFacts
from harness.domain.policy import Policy
from harness.domain.stopping import JobEnd
from harness.domain.verdict import Verdict
from harness.domain.words import Kind
from harness.reporting.codec import decode, decode_case, plain
from harness.reporting.joining import joined_night
from harness.reporting.journal import JOURNAL_NAME, SCHEMA, PlannedCase, RunInfo
from harness.reporting.state import JobTry, JournalState, Problem
from harness.reporting.whole_plan import Shard, WholePlan

Event: TypeAlias = dict[str, Any]

_TYPES: dict[str, type[str | int]] = {
    "t": str, "case": str, "job": str, "host": str, "why": str, "try": int, "processes": int,
}  # fmt: skip

MOST_PROBLEMS = 100
"""Lines that are named; of a file that is no journal, or a damaged one, each could be one, and more are counted."""
_MAX_SHOWN = 200
_SURROGATE = rb"\ud"
"""An escape that may be half a character: no text that can be written or hashed."""
_BEGINS = b'"event": "run_started"'
"""As the writer spells it; inside of a text its quotation marks would be escaped."""
_OF_SHARD, _PLAN, _HEAD = b'"event": "shard"', b', "plan": ', 100
MERGED = b'"event": "journals_merged"'
"""What the first line of several journals in one file has."""


def read_journal(path: Path) -> JournalState:
    """Read a journal; one that was merged of several is read as one night.

    Args:
        path: The file, or the folder that holds ``journal.jsonl``.

    Raises:
        BadInput: If there is no such file, or a newer harness wrote it.
    """
    file, lines = _lines(path)
    if MERGED in lines[0]:
        return joined_night(_runs(file, lines), file)
    replay = _Replay(file)
    _take_all(replay, 1, lines)
    return replay.state()


def read_begun(path: Path) -> JournalState:
    """Read a journal that has a run, arguments as of `read_journal`.

    Raises:
        BadInput: As of `read_journal`, and ``E-no-journal`` for one without any run.
    """
    state = read_journal(path)
    if state.run is None and not state.planned:
        raise without_run(path)
    return state


def without_run(path: Path) -> BadInput:
    """That a file has no line of a run that could be used."""
    message = "there is no run in it: not a journal, or one whose first lines are lost"
    return BadInput("E-no-journal", message, hint="give a journal.jsonl or its folder", where=f"{path}")


def read_night(paths: Sequence[Path]) -> JournalState:
    """Read one journal, or several as one night.

    Raises:
        BadInput: As of `read_journal` and `joined_night`, and ``E-no-journal`` for one without any run.
    """
    states = [read_begun(path) for path in paths]
    if len(states) == 1:
        return states[0]
    runs = {state.path.resolve(): state for state in states}
    parts = [read_runs(path) if state.joined is not None else (state,) for path, state in runs.items()]
    return joined_night([part for each in parts for part in each], states[0].path)


def read_runs(path: Path) -> tuple[JournalState, ...]:
    """Read a journal run by run: several may have been written to one folder, or put together from several machines.

    Arguments and errors as of `read_journal`, which reads all of it as one state.
    """
    return _runs(*_lines(path))


def begins_run(line: bytes) -> bool:
    """Whether a line of a journal is the first one of a run."""
    return _BEGINS in line


def _runs(file: Path, lines: list[bytes]) -> tuple[JournalState, ...]:
    begins = [number for number, line in enumerate(lines) if begins_run(line)] or [0]
    begins[0] = 0
    states = []
    for start, end in zip(begins, [*begins[1:], len(lines)], strict=True):
        replay = _Replay(file)
        # The last part alone has a tail; of the others the next line follows at once.
        _take_all(replay, start + 1, lines[start:end] if end == len(lines) else [*lines[start:end], b""])
        states.append(replay.state())
    return tuple(states)


def _lines(path: Path) -> tuple[Path, list[bytes]]:
    file = path / JOURNAL_NAME if path.is_dir() else path
    try:
        return file, file.read_bytes().split(b"\n")
    except OSError as error:
        message = f"the journal cannot be read: {error.strerror or error}"
        raise BadInput("E-no-journal", message, hint=f"give a folder with {JOURNAL_NAME}", where=f"{file}") from error


def _take_all(replay: _Replay, first: int, lines: list[bytes]) -> None:
    *whole, tail = lines
    for number, line in enumerate(whole, first):
        replay.line(number, line)
    replay.tail(first + len(whole), tail)


class _Replay:
    """A journal on its way to its state, event by event."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._run: RunInfo | None = None
        self._planned: dict[str, PlannedCase] = {}
        self._jobs: dict[str, JobTry] = {}
        self._verdicts: dict[str, Verdict] = {}
        self._problems: list[Problem] = []
        self._unlisted = 0
        self._left: dict[str, LeftToNight] = {}
        self._choice: Choice | None = None
        self._of: Shard | None = None
        self._started = ""
        self._torn = 0
        self._finished = False
        self._resumed: list[str] = []
        self._set_aside: list[str] = []
        self._handlers: dict[str, Callable[[Event], None]] = {
            "run_started": self._run_started,
            "shard": self._shard,
            "journals_merged": lambda _: None,
            "planned": self._plan,
            "chosen": self._chosen,
            "left_to_night": self._left_to_night,
            "job_submitted": self._job_submitted,
            "job_started": self._job_started,
            "job_waits": self._job_waits,
            "node_set_aside": self._node_set_aside,
            "run_resumed": self._run_resumed,
            "process": self._process,
            "job_finished": self._job_finished,
            "verdict": self._verdict,
            "run_finished": self._run_finished,
        }

    def line(self, number: int, line: bytes) -> None:
        """Take a line that has its end."""
        if wrong := self._fault(number, line):
            self._lose(number, wrong)

    def tail(self, number: int, line: bytes) -> None:
        """Take what comes after the last line break: nothing, a whole event, or the last words of a killed writer."""
        if self._fault(number, line):
            self._torn += 1
            self._lose(number, "the last line is cut short, its writer was killed")

    def _fault(self, number: int, line: bytes) -> str:
        """Take a line; why it can't be used, or nothing."""
        if not line.strip():
            return ""
        try:
            self._take(_parse(line, self._path, number))
        except (ArithmeticError, AttributeError, ValueError, KeyError, TypeError, RecursionError) as error:
            return _short(error)
        return ""

    def _lose(self, number: int, why: str) -> None:
        if len(self._problems) < MOST_PROBLEMS:
            self._problems.append(Problem(number, why))
        else:
            self._unlisted += 1

    def state(self) -> JournalState:
        """What was read."""
        if self._unlisted:
            self._problems.append(Problem(0, f"{self._unlisted} more lines can't be used"))
        missing = (self._run.cases if self._run else 0) - len(self._planned)
        if missing > 0:
            self._problems.append(Problem(0, f"{missing} planned cases have no line: the plan was cut short"))
        return JournalState(
            path=self._path,
            run=self._run,
            planned=self._planned,
            jobs=self._jobs,
            verdicts=self._verdicts,
            problems=tuple(self._problems),
            torn=self._torn,
            finished=self._finished,
            resumed=tuple(self._resumed),
            set_aside=tuple(self._set_aside),
            started=self._started,
            choice=self._choice,
            left=self._left,
            shard=self._of,
        )

    def _take(self, event: Event) -> None:
        _require_types(event)
        handler = self._handlers.get(event["event"])
        if handler is None:
            raise ValueError(f"unknown event {event['event']!r}")
        handler(event)

    def _run_started(self, event: Event) -> None:
        run = decode(RunInfo, event)
        _require_usable(run.policy)
        self._run = run
        self._started = str(event["t"])
        self._finished = False

    def _shard(self, event: Event) -> None:
        self._of = decode(Shard, event)

    def _chosen(self, event: Event) -> None:
        self._choice = decode(Choice, event)

    def _left_to_night(self, event: Event) -> None:
        self._left[event["case"]] = decode(LeftToNight, event)

    def _plan(self, event: Event) -> None:
        """Planning a case again, in a later run into the same folder, takes back what was said of it before."""
        verdict = _verdict_on(event) if event["verdict"] else None
        case = decode_case(event["spec"])
        _require_finite(case.arms)
        self._planned[event["case"]] = PlannedCase(case, event["job"], verdict)
        self._verdicts.pop(event["case"], None)
        self._jobs.pop(event["job"], None)

    def _job_submitted(self, event: Event) -> None:
        job = decode(Job, event["spec"])
        if "timed_alone" not in event["spec"]:  # journals before it: their cases tell
            job = replace(job, timed_alone=any(self._times_one_arm(case) for case in job.cases))
        _require_finite(job.arms)
        if not math.isfinite(job.design.slowdown):
            raise ValueError(f"a planted slowdown of {job.design.slowdown}")
        self._jobs[event["job"]] = replace(self._begun(event), job=job)

    def _times_one_arm(self, case: str) -> bool:
        planned = self._planned.get(case)
        return planned is not None and planned.case.kind is Kind.THROUGHPUT and len(planned.case.arms) == 1

    def _job_started(self, event: Event) -> None:
        node = decode(NodeFacts, event["node"]) if event["node"] else None
        self._jobs[event["job"]] = replace(self._begun(event), host=event["host"], node=node)

    def _job_waits(self, event: Event) -> None:
        self._jobs[event["job"]] = replace(self._try(event), waiting=event["why"])

    def _node_set_aside(self, event: Event) -> None:
        self._set_aside.append(f"{event['host']} was set aside: {event['why']}")

    def _run_resumed(self, event: Event) -> None:
        """What a broken run said of the cases that are asked again is taken back."""
        again = set(event["jobs"])
        self._resumed.append(event["t"])
        self._finished = False
        for case, planned in self._planned.items():
            if planned.job in again:
                self._verdicts.pop(case, None)

    def _process(self, event: Event) -> None:
        known = self._try(event)
        self._jobs[event["job"]] = replace(known, runs=(*known.runs, decode(ProcessRun, event["run"])))

    def _job_finished(self, event: Event) -> None:
        known = self._try(event)
        failure = decode(Failure, event["failure"]) if event["failure"] else None
        lost = max(0, int(event["processes"]) - len(known.runs))
        end = JobEnd(event["end"]) if event.get("end") else None  # journals before it have none
        self._jobs[event["job"]] = replace(known, failure=failure, finished=True, since=event["t"], lost=lost, end=end)

    def _verdict(self, event: Event) -> None:
        if event["case"] not in self._planned:
            raise ValueError(f"a verdict on {event['case']}, which was not planned")
        self._verdicts[event["case"]] = _verdict_on(event)

    def _run_finished(self, event: Event) -> None:
        del event
        self._finished = True

    def _try(self, event: Event) -> JobTry:
        """The try that an event belongs to: a later one (it may end before it starts) begins a new record.

        A late word of an earlier try is refused, not mixed in.
        """
        known = self._jobs.get(event["job"])
        if known is None or event["try"] > known.attempt:
            return self._begun(event)
        if event["try"] < known.attempt:
            raise ValueError(f"{event['job']}: an event of try {event['try']} came during try {known.attempt}")
        return known

    def _begun(self, event: Event) -> JobTry:
        """A try that begins anew; the job, and what came of earlier tries, is kept."""
        attempt, known = int(event["try"]), self._jobs.get(event["job"])
        if known is None:
            return JobTry(attempt, since=event["t"])
        earlier = known.tries_made if attempt > known.attempt else known.earlier
        return JobTry(attempt, known.job, event["t"], earlier=earlier)


def _require_types(event: Event) -> None:
    """What handlers use as it stands, without decoding it, is of the type that the writer gave it."""
    for name, kind in _TYPES.items():
        found = event.get(name, kind())
        if not isinstance(found, kind) or isinstance(found, bool):
            raise TypeError(f"'{name}' is {found!r}: no {'number' if kind is int else 'text'}")


def _verdict_on(event: Event) -> Verdict:
    """A verdict, which has to be on the case that its line names."""
    verdict = decode(Verdict, event["verdict"])
    if verdict.case != event["case"]:
        raise ValueError(f"a verdict on {verdict.case} in a line on {event['case']}")
    return verdict


def _require_usable(policy: Policy) -> None:
    """What a matrix could not have said is no policy that anything was judged by."""
    if not (0 < policy.alpha < 1 and 0 < policy.margin < 1 and 0 < policy.ceiling_tps < math.inf):
        raise ValueError(f"no policy: alpha {policy.alpha}, margin {policy.margin}, ceiling {policy.ceiling_tps}")


def _require_finite(arms: Sequence[Arm]) -> None:
    """No engine was run with such a flag, and an arm that has one has no identity."""
    for arm in arms:
        for name, value in arm.flags:
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"the flag {name} of {arm.build.name} is {value}: no finite number")


def _parse(line: bytes, path: Path, number: int) -> Event:
    event = _shard_event(line) if _OF_SHARD in line[:_HEAD] else json.loads(line)
    if _SURROGATE in line.lower():
        event = plain(event)
    schema = event.get("schema") if isinstance(event, dict) else None
    if not isinstance(schema, int) or isinstance(schema, bool):
        raise TypeError("not an event: no schema")
    if schema > SCHEMA:
        raise BadInput(
            "E-journal-schema",
            f"schema {schema} is newer than {SCHEMA}, which this harness reads",
            hint="read it with the version that wrote it, or a newer one",
            where=f"{path}: line {number}",
        )
    return dict(event)


def _shard_event(line: bytes) -> Any:
    """A line with a whole plan: shards of a night all have the same, of megabytes, which is read once."""
    head, _, plan = line.rstrip().partition(_PLAN)
    return {**json.loads(head + b"}"), "plan": _whole_plan(plan.removesuffix(b"}"))}


@lru_cache(maxsize=2)
def _whole_plan(text: bytes) -> WholePlan:
    return decode(WholePlan, json.loads(text))


def _short(error: Exception) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "..."
