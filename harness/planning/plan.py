"""What planning gives: cases with where they came from, and the jobs that answer them."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.domain.arm import Arm
from harness.domain.case import Case
from harness.domain.job import Job
from harness.domain.node import NodeFacts
from harness.domain.words import Status
from harness.planning.schema import Policy


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A case, and what planning already knows about it.

    Attributes:
        case: The case.
        origin: File and key that it comes from.
        status: ``unsupported`` or ``not_applicable`` where it can't run; ``None``: it can.
        reason: Why it can't.
        note: What a reader of its verdict should know, e.g. that the factor forces another flag.
        recorded: Of a check against a reference: the arm whose outputs are recorded.
        id: The case's id, kept because it is looked at often.
    """

    case: Case
    origin: str
    status: Status | None = None
    reason: str = ""
    note: str = ""
    recorded: Arm | None = None
    id: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", self.case.id)


@dataclass(frozen=True, slots=True)
class Plan:
    """A matrix worked out.

    Attributes:
        matrix_name: The matrix's name.
        cases: The cases that were selected, in the matrix's order, also those that can't run.
        jobs: What has to be run for them.
        policy: The matrix's policy.
        every_case: All cases of the matrix, selected or not: required output checks are among them.
        nodes: Facts of the fleet's nodes; ``None``: nothing is known of them.
        warnings: What is odd about the matrix and yet no fault.
    """

    matrix_name: str
    cases: tuple[PlannedCase, ...]
    jobs: tuple[Job, ...]
    policy: Policy
    every_case: tuple[PlannedCase, ...] = field(repr=False, default=())
    nodes: tuple[NodeFacts, ...] | None = field(repr=False, default=None)
    warnings: tuple[str, ...] = ()

    def ids(self) -> tuple[str, ...]:
        """Ids of the selected cases, in order."""
        return tuple(case.id for case in self.cases)
