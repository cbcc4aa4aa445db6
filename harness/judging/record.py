"""What is known of one job when its cases are judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from harness.domain.failure import Failure, FailureKind
from harness.domain.job import Job
from harness.domain.measurement import ProcessRun
from harness.domain.node import NodeFacts
from harness.domain.stopping import JobEnd
from harness.judging.voids import voided_blocks, voids_text


@dataclass(frozen=True)
class JobRecord:
    """The measurements of a job's last try. All its cases ask what is void: no slots, so that it is found out once.

    Attributes:
        job: The job.
        runs: Its engine processes, in the order in which they ended. Tries are never mixed: a retry starts afresh.
        failure: The job's own failure (e.g. node lost), not one of its processes'.
        node: The node it ran on; ``None`` where it never started.
        tries: How many tries were made, the last one included.
        end: Why no more processes were begun; ``None`` where it failed, was stopped, or an old journal does not say.
    """

    job: Job
    runs: tuple[ProcessRun, ...]
    failure: Failure | None = None
    node: NodeFacts | None = None
    tries: int = 1
    end: JobEnd | None = None

    @cached_property
    def voided(self) -> Mapping[int, str]:
        """The blocks that count for nothing, and why, as of `voided_blocks`."""
        return voided_blocks(self.runs)

    @cached_property
    def voids(self) -> str:
        """How much is void and why, as of `voids_text`."""
        return voids_text(self.runs) if self.voided else ""

    @property
    def was_stopped(self) -> bool:
        """Whether somebody ended the job before its end: what it measured until then counts."""
        return self.failure is not None and self.failure.kind is FailureKind.INTERRUPTED
