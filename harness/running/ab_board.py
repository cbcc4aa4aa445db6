"""What is known while ``ab`` runs: per workload the speeds, the ratio and the rule's word so far, and what runs now."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from harness.domain.job import Job
from harness.domain.measurement import ProcessRun, Step
from harness.domain.policy import Policy
from harness.domain.stopping import JobEnd
from harness.domain.verdict import ArmSpeed
from harness.execution.events import Finished, JobEvent, ProcessDone, Progress, Started
from harness.judging.quads import QuadSet, quads_of
from harness.judging.samples import Implausible, NothingKept, arm_speed, process_medians
from harness.judging.sequential import Decision, Limits, decide
from harness.judging.throughput import limits_of
from harness.judging.voids import voided_blocks

_WAITING = "waiting for the host"
_KEPT_WAITING_S = 1.0
QUAD_PROCESSES = 4


class Phase(StrEnum):
    """Where the run is."""

    WAITING = "waiting"
    PREPARING = "preparing"
    MEASURING = "measuring"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Row:
    """One workload so far.

    Attributes:
        workload: Its name.
        arms: Speeds of baseline and candidate; ``None`` before their first process.
        decision: What the quads say; the first decision stands.
        limits: How strictly it is decided.
        log_ratios: Of its whole quads: natural log of candidate speed over baseline speed.
    """

    workload: str
    arms: tuple[ArmSpeed | None, ArmSpeed | None]
    decision: Decision
    limits: Limits
    log_ratios: tuple[float, ...]

    @property
    def quads(self) -> int:
        """Quads that the decision rests on."""
        return self.decision.ratio.n if self.decision.ratio else 0


class Board:
    """Takes the events of the one job.

    Args:
        job: The job.
        names: What its arms are called.
        policy: How strictly is judged.
        clock: Seconds, monotonic; replaced in tests.
    """

    def __init__(
        self, job: Job, names: tuple[str, str], policy: Policy, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.job = job
        self.names = names
        self._policy = policy
        self.phase = Phase.PREPARING
        self.doing = ""
        self.preparing = False
        self.node: Started | None = None
        self.end: JobEnd | None = None
        self.runs: tuple[ProcessRun, ...] = ()
        self.rows: tuple[Row, ...] = ()
        self._clock = clock
        self._phase_began = clock()
        self._began: float | None = None
        self._ended: float | None = None
        self._steps: tuple[Step, ...] = tuple(job.schedule())
        self._judge()

    def take(self, event: JobEvent | None) -> bool:
        """Take an event in; whether it ended a quad or the job."""
        waiting = isinstance(event, Progress) and event.message.startswith(_WAITING)
        if event is not None:
            self.preparing = isinstance(event, Progress) and event.preparing and not waiting
        if isinstance(event, Started):
            self.node, self.runs = event, ()
        elif isinstance(event, Progress):
            self.doing = event.message
            self._step_into(Phase.WAITING if waiting else self._phase_of_work())
        elif isinstance(event, ProcessDone):
            self._began = self._began if self._began is not None else self._clock() - event.run.wall_s
            self._step_into(Phase.MEASURING)
            self.runs = (*self.runs, event.run)
            self._judge()
            return self._ends_quad(event.run)
        elif isinstance(event, Finished):
            self.phase, self.end, self._ended = Phase.ENDED, event.end, self._clock()
            return True
        return False

    @property
    def seconds(self) -> float:
        """Seconds of measuring so far: what the budget counts."""
        if self._began is None:
            return 0.0
        return (self._ended or self._clock()) - self._began

    @property
    def quads(self) -> int:
        """Whole quads measured so far."""
        return sum(run.step.scored for run in self.runs) // QUAD_PROCESSES

    @property
    def next_step(self) -> Step | None:
        """What runs now, or would next."""
        return self._steps[len(self.runs)] if len(self.runs) < len(self._steps) else None

    @property
    def quad_seconds(self) -> float | None:
        """Seconds that a quad takes, guessed from the last processes; ``None`` before each arm had one."""
        if len(self.runs) < len(self.names):
            return None
        last = self.runs[-QUAD_PROCESSES:]
        return QUAD_PROCESSES * sum(run.wall_s for run in last) / len(last)

    @property
    def is_kept_waiting(self) -> bool:
        """Whether another measurement on this host is waited for: taking a free host takes no time."""
        return self.phase is Phase.WAITING and self._clock() - self._phase_began > _KEPT_WAITING_S

    def _step_into(self, phase: Phase) -> None:
        if phase is not self.phase:
            self.phase, self._phase_began = phase, self._clock()

    def _phase_of_work(self) -> Phase:
        return Phase.MEASURING if self.runs else Phase.PREPARING

    def _ends_quad(self, run: ProcessRun) -> bool:
        following = self.next_step
        quad = run.step.block // 2
        return run.step.scored and (following is None or following.block // 2 != quad)

    def _judge(self) -> None:
        self.rows = tuple(self._row(workload.name) for workload in self.job.workloads)

    def _row(self, workload: str) -> Row:
        limits = limits_of(self._policy, self.job, workload)
        runs = tuple(tuple(run for run in self.runs if run.step.arm == arm) for arm in range(len(self.names)))
        try:
            speeds = [
                arm_speed(name, list(process_medians(own, workload).values()))
                for name, own in zip(self.names, runs, strict=True)
            ]
            found = quads_of(runs[0], runs[1], workload, voided_blocks(self.runs))
        except (Implausible, NothingKept):  # the verdict will tell
            speeds, found = [None, None], QuadSet((), (0, 0), (0, 0))
        known = found.borne_out(self.job.spread_of(workload))
        decision = decide(found.log_ratios, limits, known, found.insides)
        return Row(workload, (speeds[0], speeds[1]), decision, limits, found.log_ratios)
