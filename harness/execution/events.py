"""What a running job tells the driver, in order: started, progress, processes, finished."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from harness.domain.failure import Failure
from harness.domain.measurement import ProcessRun
from harness.domain.node import NodeFacts
from harness.domain.stopping import JobEnd


@dataclass(frozen=True, slots=True)
class Started:
    """The job holds its lease.

    Attributes:
        job: Job id.
        attempt: 1 for the first try.
        node: The node's facts.
        host: Its name, for people; never part of an id.
        place: What the executor calls where it runs; it keeps other tries away from there if it is told this.
    """

    job: str
    attempt: int
    node: NodeFacts
    host: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """What the job is doing now, for the live line.

    Attributes:
        job: Job id.
        attempt: Number of the try.
        message: In words.
        preparing: Models and builds are made, fetched or read, or another measurement is waited for: that takes as long
            as it takes, and logs tell of it too.
        waiting: Another measurement is, or was, waited for: a journal keeps that.
    """

    job: str
    attempt: int
    message: str
    preparing: bool = False
    waiting: bool = False


@dataclass(frozen=True, slots=True)
class ProcessDone:
    """One engine process ended, well or not."""

    job: str
    attempt: int
    run: ProcessRun


@dataclass(frozen=True, slots=True)
class Finished:
    """The job is over. Always the last event of a try.

    Attributes:
        job: Job id.
        attempt: Number of the try.
        failure: The job's own, not one of its processes'.
        end: Why no more processes were begun; ``None`` where it, or every arm, failed, or it was stopped.
    """

    job: str
    attempt: int
    failure: Failure | None = None
    end: JobEnd | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """No more tries will be made. Said by the dispatcher, once for each job; executors never say it."""

    job: str
    attempt: int


@dataclass(frozen=True, slots=True)
class NodeSetAside:
    """A node gets no more jobs. Said by the dispatcher.

    Attributes:
        job: The job whose end there decided it.
        attempt: Number of its try.
        host: The node's name, for people.
        why: What failed there, in words.
    """

    job: str
    attempt: int
    host: str
    why: str


JobEvent: TypeAlias = Started | Progress | ProcessDone | Finished | NodeSetAside | Ended
