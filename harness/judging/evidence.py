"""The part of a job's record that one case rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.domain.case import Case
from harness.domain.failure import FailureKind
from harness.domain.measurement import ProcessRun
from harness.domain.policy import Policy
from harness.domain.verdict import ArmSpeed, Effect, Estimate, Verdict
from harness.domain.words import Equivalence, Kind, Pitfall, Status, Throughput
from harness.domain.workload import is_time
from harness.judging.record import JobRecord
from harness.judging.wording import expected_text, node_text


@dataclass(frozen=True, slots=True)
class Evidence:
    """A case with the processes it rests on.

    Attributes:
        case: The case.
        record: The whole job.
        policy: How strictly is judged.
        runs: Per arm of the case, its processes in order.
    """

    case: Case
    record: JobRecord
    policy: Policy
    runs: tuple[tuple[ProcessRun, ...], ...]

    @classmethod
    def of(cls, case: Case, record: JobRecord, policy: Policy) -> Evidence:
        """Pick a case's processes out of its job.

        Outputs rest on those that answered prompts, all else on those of the program that times. A process that was
        stopped with its job says nothing about its arm.
        """
        outputs_only = case.kind is Kind.EQUIVALENCE
        counted = [run for run in record.runs if (run.step.outputs if outputs_only else not run.step.apart)]
        return cls(case, record, policy, _by_arm(case, record, counted))

    @property
    def output_runs(self) -> tuple[tuple[ProcessRun, ...], ...]:
        """Per arm of the case, the processes that answered prompts: speed rests on what they say too."""
        answering = [run for run in self.record.runs if run.step.outputs]
        return _by_arm(self.case, self.record, answering)

    @property
    def all_runs(self) -> tuple[ProcessRun, ...]:
        """The processes of all arms."""
        return tuple(run for runs in self.runs for run in runs)

    def sound_runs(self, arm: int) -> tuple[ProcessRun, ...]:
        """The processes of an arm that are not void."""
        voided = self.record.voided
        return tuple(run for run in self.runs[arm] if run.step.block not in voided)

    @property
    def is_pair(self) -> bool:
        """Whether candidates are compared with baselines."""
        return len(self.case.arms) > 1

    @property
    def times_speed(self) -> bool:
        """Whether the case is about speed."""
        return self.case.kind in (Kind.THROUGHPUT, Kind.PITFALL, Kind.ATTRIBUTION)

    @property
    def candidates(self) -> tuple[int, ...]:
        """The arms that answer for what goes wrong in them; without the others there is no baseline."""
        arms = len(self.case.arms)
        return tuple(range(arms // 2, arms)) if self.is_pair else (0,)

    @property
    def in_ms(self) -> bool:
        """Whether the case's figures are times to the first token."""
        return is_time(self.case.workload)

    @property
    def where(self) -> str:
        """Node and node class, for the end of a reason."""
        return f"on {node_text(self.record.node)} @{self.case.node_class.name}"

    def label(self, arm: int) -> str:
        """An arm's label, with its part in a pair."""
        part = ("baseline ", "candidate ")[arm] if len(self.case.arms) == 2 else ""  # noqa: PLR2004 - a pair
        return part + self.case.arms[arm].label

    def verdict(
        self,
        status: Status,
        reason: str,
        *,
        throughput: Throughput | None = None,
        equivalence: Equivalence | None = None,
        pitfall: Pitfall | None = None,
        estimate: Estimate | None = None,
        arms: Sequence[ArmSpeed] = (),
        effects: Sequence[Effect] = (),
        slug: str = "",
        detail: str = "",
        scope: str = "",
        inert: bool = False,
    ) -> Verdict:
        """A verdict on this case with everything filled in that all verdicts share."""
        return Verdict(
            case=self.case.id,
            status=status,
            reason=f"{reason} {self.where}",
            throughput=throughput,
            equivalence=equivalence,
            pitfall=pitfall,
            estimate=estimate,
            expected=expected_text(self.case.check, self.policy),
            arms=tuple(arms),
            effects=tuple(effects),
            void=self.record.voids if self.times_speed else "",
            contrast=self.case.contrast,
            slug=slug,
            detail=detail,
            node=node_text(self.record.node) if self.record.node else "",
            seconds=sum(run.wall_s for run in self.all_runs),
            synthetic=any(arm.model.synthetic for arm in self.case.arms),
            inert=inert,
            scope=scope,
        )


def _by_arm(case: Case, record: JobRecord, runs: Sequence[ProcessRun]) -> tuple[tuple[ProcessRun, ...], ...]:
    ended = [run for run in runs if not (record.was_stopped and _was_stopped(run))]
    return tuple(tuple(run for run in ended if run.step.arm == arm) for arm in _arm_indices(case, record))


def _was_stopped(run: ProcessRun) -> bool:
    return run.failure is not None and run.failure.kind is FailureKind.INTERRUPTED


def _arm_indices(case: Case, record: JobRecord) -> tuple[int, ...]:
    """Which arms of the job a case is about; arms that the job does not have get an index without processes."""
    wanted = [arm.identity for arm in case.arms]
    present = [arm.identity for arm in record.job.arms]
    if wanted == present:
        return tuple(range(len(wanted)))
    return tuple(present.index(identity) if identity in present else -1 for identity in wanted)
