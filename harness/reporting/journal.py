"""Write the journal of a run: one JSON line for each event, appended and handed to the kernel at once.

A line is one ``write`` on a descriptor opened for appending, so several processes of a run may share the file, and a
killed driver loses at most the line that it was writing. ``replay.py`` reads it back.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness.domain.case import Case
from harness.domain.choice import Choice, LeftToNight
from harness.domain.errors import BadInput, Infrastructure
from harness.domain.failure import Failure
from harness.domain.job import Job
from harness.domain.measurement import ProcessRun
from harness.domain.node import NodeFacts
from harness.domain.policy import Policy
from harness.domain.stopping import JobEnd
from harness.domain.verdict import Verdict
from harness.reporting.codec import as_json, case_as_json, json_text
from harness.reporting.whole_plan import Shard

SCHEMA = 1
JOURNAL_NAME = "journal.jsonl"

_USER_ERRNOS = frozenset(
    {
        *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG),
        errno.ELOOP,
    }
)


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What is known of a run when it starts.

    Attributes:
        matrix: The matrix's name.
        executor: The executor's name.
        cases: How many cases the plan has: a plan that was cut short shows.
        versions: Versions of the harness, Python and what matters beside.
        policy: The policy that the cases are judged by.
    """

    matrix: str
    executor: str
    cases: int
    versions: dict[str, str] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """One line of the plan.

    Attributes:
        case: The case.
        job: Id of the job that answers it; empty where planning decided it.
        verdict: Planning's own verdict, e.g. unsupported; ``None`` where it has to be measured.
    """

    case: Case
    job: str = ""
    verdict: Verdict | None = None


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


class JournalWriter:
    """Appends events to ``FOLDER/journal.jsonl``. A context manager; safe to use from several threads.

    Args:
        folder: The folder of the run's reports; made if it is not there.
        clock: Gives the time of each event.

    Raises:
        BadInput: If the file cannot be opened there.
        Infrastructure: If the disk does not let it.
    """

    def __init__(self, folder: Path, *, clock: Callable[[], datetime] = utc_now) -> None:
        self.path = folder / JOURNAL_NAME
        self._clock = clock
        self._lock = threading.Lock()
        self._processes: dict[tuple[str, int], int] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # Without following a link: a checkout may come from anybody, and could have the plan appended to any file.
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self._descriptor = os.open(self.path, flags, 0o644)
        except OSError as error:
            raise write_trouble(error, self.path) from error
        self._torn = self._ends_torn()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Bring the file to the disk and close it. May be called twice."""
        with self._lock:
            if self._descriptor < 0:
                return
            descriptor, self._descriptor = self._descriptor, -1
        try:
            self._put_back(descriptor)
            os.fsync(descriptor)
        except OSError as error:
            raise write_trouble(error, self.path) from error
        finally:
            os.close(descriptor)

    def run_started(self, info: RunInfo) -> None:
        """A run begins. The lines of its plan come next."""
        self._append("run_started", **as_json(info))

    def shard(self, shard: Shard) -> None:
        """Of which part of which whole plan this run is."""
        self._append("shard", **as_json(shard))

    def planned(self, planned: PlannedCase) -> None:
        """One case of the plan, complete: it can be judged again from here."""
        case = planned.case
        self._append(
            "planned",
            case=case.id,
            job=planned.job,
            key=case.key,
            kind=str(case.kind),
            workload=case.workload_name,
            node_class=case.node_class.name,
            arms=[{"label": arm.label, "identity": arm.identity} for arm in case.arms],
            synthetic=any(arm.model.synthetic for arm in case.arms),
            spec=case_as_json(case),
            verdict=as_json(planned.verdict) if planned.verdict else None,
        )

    def chosen(self, choice: Choice) -> None:
        """By what a merge gate's run chose its cases."""
        self._append("chosen", **as_json(choice))

    def left_to_night(self, left: LeftToNight) -> None:
        """A case that the run left out of its plan, and why."""
        self._append("left_to_night", **as_json(left))

    def job_submitted(self, job: Job, attempt: int = 1) -> None:
        """A try of a job was handed to the executor."""
        self._append("job_submitted", job=job.id, **{"try": attempt}, spec=as_json(job))

    def job_started(self, job: str, attempt: int, node: NodeFacts | None, host: str) -> None:
        """A try holds its lease on a node."""
        self._append("job_started", job=job, **{"try": attempt}, host=host, node=as_json(node) if node else None)

    def job_waits(self, job: str, attempt: int, why: str) -> None:
        """A try waits, or has waited, for another measurement on its host."""
        self._append("job_waits", job=job, **{"try": attempt}, why=why)

    def node_set_aside(self, job: str, attempt: int, host: str, why: str) -> None:
        """A node gets no more jobs: it fails everything. The try is the one that decided it."""
        self._append("node_set_aside", job=job, **{"try": attempt}, host=host, why=why)

    def run_resumed(self, executor: str, versions: dict[str, str], jobs: Sequence[str]) -> None:
        """A broken run is gone on with: these jobs are run again, all others are whole."""
        self._append("run_resumed", executor=executor, versions=versions, jobs=list(jobs))

    def process(self, job: str, attempt: int, run: ProcessRun) -> None:
        """An engine process ended."""
        self._processes[job, attempt] = self._processes.get((job, attempt), 0) + 1
        self._append("process", job=job, **{"try": attempt}, run=as_json(run))

    def job_finished(self, job: str, attempt: int, failure: Failure | None, end: JobEnd | None = None) -> None:
        """A try is over; ``failure`` is the job's own, ``end`` why it ended where it went well.

        The number of its processes makes lost lines show.
        """
        processes = self._processes.pop((job, attempt), 0)
        told = as_json(failure) if failure else None
        self._append("job_finished", job=job, **{"try": attempt}, processes=processes, failure=told, end=end)

    def verdict(self, verdict: Verdict) -> None:
        """A case was judged; the last verdict on a case counts."""
        self._append("verdict", case=verdict.case, verdict=as_json(verdict))

    def run_finished(self) -> None:
        """The run came to its end by itself."""
        self._append("run_finished")

    def _append(self, event: str, **fields: Any) -> None:
        time = self._clock().astimezone(UTC).isoformat(timespec="microseconds")
        line = json_text({"schema": SCHEMA, "event": event, "t": time, **fields})
        with self._lock:
            self._write(line.encode() + b"\n")

    def _write(self, line: bytes) -> None:
        """Write a line whole. After a torn one, ours or a killed driver's, a line break comes first to contain it."""
        rest = b"\n" + line if self._torn else line
        try:
            while rest:
                self._torn = True
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            raise write_trouble(error, self.path) from error
        self._torn = False

    def _put_back(self, descriptor: int) -> None:
        """Write the journal once more where it was deleted during the run: while it is open nothing is lost."""
        if self.path.exists():
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(descriptor, "rb", closefd=False) as kept, self.path.open("xb") as file:
            kept.seek(0)
            shutil.copyfileobj(kept, file)

    def _ends_torn(self) -> bool:
        size = os.fstat(self._descriptor).st_size
        return size > 0 and os.pread(self._descriptor, 1, size - 1) != b"\n"


def write_trouble(error: OSError, path: Path) -> BadInput | Infrastructure:
    """The error for a journal that the operating system does not let us write."""
    what = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror or str(error)
    if error.errno in _USER_ERRNOS:
        message = f"the journal cannot be written: {what}"
        return BadInput(
            "E-journal-unwritable", message, hint="choose another folder with --moe-reports", where=f"{path}"
        )
    return Infrastructure(
        "E-journal-write",
        f"the journal could not be written: {what}",
        hint="free space on the disk; lines written before are kept, `report` reads them",
        where=f"{path}",
    )
