"""Cases to jobs: few process starts, nothing measured twice.

* Two arms that some case compares are one job, and so are the four of an attribution. Every process start of an arm
  measures all workloads that its cases ask for.
* An output check of the same two arms rides in that job (its prompts are answered by the burn-in processes), also
  where the check's own case was not selected: speed is not judged without it. So it does in the job of an attribution,
  where it compares each of the other three arms with the first. Where no speed is compared, the job has no workloads.
* The quantities of a prompt profile have a job of their own: only one request can be the first of a process, and a
  build by path answers requests with another program than it times workloads with.
* An arm that is held against recorded outputs answers in a job that asks it the same prompts anyway, or in one of its
  own.
* Cases of a single arm ride in a job that has their arm anyway, best in one that measures their workload already.
  Other arms get a job of their own.
* A memory limit is about everything that a process does, so its job measures all workloads of the matrix for that
  arm, or all quantities of the profile, whatever else was selected: a verdict must not depend on the selection. Where
  nothing else is measured, one process start is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from harness.domain.arm import Arm
from harness.domain.case import Case, OutputCheck
from harness.domain.golden import ArmReference
from harness.domain.job import Job
from harness.domain.node import NodeClass
from harness.domain.words import Kind
from harness.domain.workload import OutputProfile, ProfileWorkload, Timed
from harness.planning.plan import PlannedCase
from harness.planning.schema import Policy

Key: TypeAlias = tuple[str, ...]


@dataclass(slots=True, eq=False)
class _Draft:
    """A job being put together."""

    arms: tuple[Arm, ...]
    node_class: NodeClass
    profile: str = ""
    workloads: set[Timed] = field(default_factory=set)
    outputs: OutputProfile | None = None
    references: list[ArmReference] = field(default_factory=list)
    cases: list[str] = field(default_factory=list)
    timed: bool = False
    """Some case judges its speed."""
    timed_alone: bool = False
    """Some case judges the speed of one arm."""


def plan_jobs(cases: Sequence[PlannedCase], policy: Policy, every_case: Sequence[PlannedCase] = ()) -> tuple[Job, ...]:
    """The jobs that answer the selected cases; same models stand together.

    Args:
        cases: The selected cases. Those that have a status already can't run and cost nothing.
        policy: Gives the jobs' design.
        every_case: All cases of the matrix: output checks that are required, and the workloads of memory limits, are
            looked up here.
    """
    return _Drafts(policy, every_case or cases).jobs([case for case in cases if case.status is None])


class _Drafts:
    """All drafts of one plan, found by their arms."""

    def __init__(self, policy: Policy, every_case: Sequence[PlannedCase]) -> None:
        self._policy = policy
        self._drafts: dict[Key, _Draft] = {}
        self._by_arm: dict[Key, list[_Draft]] = {}
        self._profiles: dict[Key, OutputProfile] = {}
        self._output_checks: dict[Key, OutputCheck] = {}
        self._order: dict[Timed, int] = {}
        self._timed_workloads: dict[Key, set[Timed]] = {}
        for planned in every_case:
            if planned.status is None:
                self._learn(planned.case)

    def jobs(self, cases: Sequence[PlannedCase]) -> tuple[Job, ...]:
        compared = [planned for planned in cases if len(planned.case.arms) > 1]
        alone = [planned for planned in cases if len(planned.case.arms) == 1]
        by_turns = (
            (self._add_contrast, [each for each in compared if each.case.kind is not Kind.EQUIVALENCE]),
            (self._add_outputs, [each for each in compared if each.case.kind is Kind.EQUIVALENCE]),
            (self._add_reference, [each for each in alone if each.case.kind is Kind.EQUIVALENCE]),
            (self._add_single, [each for each in alone if each.case.kind not in (Kind.EQUIVALENCE, Kind.MEMORY)]),
            (self._add_memory, [each for each in alone if each.case.kind is Kind.MEMORY]),
        )
        for add, turn in by_turns:
            for planned in turn:
                add(planned)
        return tuple(self._job(draft) for draft in _same_model_together(self._drafts.values()))

    def _learn(self, case: Case) -> None:
        """What the whole matrix says about a pair's outputs and an arm's workloads."""
        if isinstance(case.workload, OutputProfile):
            key = self._key(case.arms, case.node_class)
            self._profiles.setdefault(key, case.workload)
            if isinstance(case.check, OutputCheck):
                self._output_checks.setdefault(key, case.check)
        elif case.workload is not None and case.kind is not Kind.MEMORY:
            self._order.setdefault(case.workload, len(self._order))
            for arm in case.arms:
                key = (_profile_of(case), *self._key((arm,), case.node_class))
                self._timed_workloads.setdefault(key, set()).add(case.workload)

    def _add_contrast(self, planned: PlannedCase) -> None:
        case = planned.case
        draft = self._draft(case.arms, case.node_class, _profile_of(case))
        draft.cases.append(planned.id)
        draft.outputs = self._required_outputs(case)
        if case.workload is not None and not isinstance(case.workload, OutputProfile):
            draft.workloads.add(case.workload)
            draft.timed = True

    def _required_outputs(self, case: Case) -> OutputProfile | None:
        """The prompts that all its arms have to answer alike: for an attribution, each other arm against the first."""
        first, *others = case.arms
        profiles = {self._profiles.get(self._key((first, other), case.node_class)) for other in others}
        return profiles.pop() if len(profiles) == 1 else None

    def _add_outputs(self, planned: PlannedCase) -> None:
        case = planned.case
        key = self._key(case.arms, case.node_class)
        if ("", *key) not in self._drafts and isinstance(case.workload, OutputProfile):
            answering = self._answering(case.arms, case.node_class, case.workload)
            if answering:
                answering.cases.append(planned.id)
                return
        draft = self._draft(case.arms, case.node_class)
        draft.cases.append(planned.id)
        draft.outputs = self._profiles.get(key)

    def _answering(self, arms: tuple[Arm, ...], node_class: NodeClass, asked: OutputProfile) -> _Draft | None:
        """A job that has these arms among its own and asks them the same prompts: an attribution's, a profile's."""
        with_all = [self._by_arm.get(self._key((arm,), node_class), []) for arm in arms]
        return next((draft for draft in with_all[0] if draft.outputs == asked and draft in with_all[1]), None)

    def _add_reference(self, planned: PlannedCase) -> None:
        """Outputs of one arm: in a job that asks it the same anyway, or in one of its own."""
        case = planned.case
        asked = self._profiles[self._key(case.arms, case.node_class)]
        riding = self._by_arm.get(self._key(case.arms, case.node_class), [])
        asking = (draft for draft in riding if draft.outputs and draft.outputs.identity == asked.identity)
        draft = next(asking, None) or self._draft(case.arms, case.node_class)
        draft.outputs = draft.outputs or asked
        if isinstance(case.check, OutputCheck):
            draft.references.append(ArmReference(draft.arms.index(case.arms[0]), case.check))
        draft.cases.append(planned.id)

    def _add_single(self, planned: PlannedCase) -> None:
        case = planned.case
        if case.workload is None or isinstance(case.workload, OutputProfile):
            return
        draft = self._ride(case, {case.workload})
        draft.workloads.add(case.workload)
        draft.cases.append(planned.id)
        draft.timed = draft.timed_alone = True

    def _add_memory(self, planned: PlannedCase) -> None:
        case = planned.case
        workloads = self._timed_workloads.get((_profile_of(case), *self._key(case.arms, case.node_class)), set())
        draft = self._ride(case, workloads)
        draft.workloads |= workloads
        draft.cases.append(planned.id)

    def _ride(self, case: Case, workloads: set[Timed]) -> _Draft:
        """A job that has the arm anyway, best one that measures the workloads; otherwise a new one."""
        profile = _profile_of(case)
        riding = self._by_arm.get(self._key(case.arms, case.node_class), [])
        timed = [draft for draft in riding if draft.workloads and draft.profile == profile]
        measuring = (draft for draft in timed if workloads <= draft.workloads)
        return next(measuring, None) or next(iter(timed), None) or self._draft(case.arms, case.node_class, profile)

    def _draft(self, arms: tuple[Arm, ...], node_class: NodeClass, profile: str = "") -> _Draft:
        """The job of some arms, for plain workloads or for one profile."""
        key = (profile, *self._key(arms, node_class))
        if key not in self._drafts:
            draft = self._drafts[key] = _Draft(arms, node_class, profile)
            for arm in dict.fromkeys(arms):
                self._by_arm.setdefault(self._key((arm,), node_class), []).append(draft)
        return self._drafts[key]

    def _key(self, arms: Iterable[Arm], node_class: NodeClass) -> Key:
        return (node_class.name, *[arm.identity for arm in arms])

    def _job(self, draft: _Draft) -> Job:
        design = self._policy.design
        if not draft.timed:
            design = replace(design, burn_in=1 if draft.outputs else 0, blocks=1)
        workloads = tuple(sorted(draft.workloads, key=self._order.__getitem__))
        return Job(
            draft.arms,
            workloads,
            draft.outputs,
            draft.node_class,
            design,
            tuple(draft.cases),
            timed_alone=draft.timed_alone,
            output_checks=self._checks_of(draft) if draft.outputs else (),
            references=tuple(draft.references),
        )

    def _checks_of(self, draft: _Draft) -> tuple[OutputCheck, ...]:
        """What is declared of the outputs of each other arm against the first."""
        first, *others = draft.arms
        keys = (self._key((first, other), draft.node_class) for other in others)
        return tuple(self._output_checks[key] for key in keys if key in self._output_checks)


def _profile_of(case: Case) -> str:
    """The profile whose job a case belongs to; empty for all others."""
    return case.workload.profile.name if isinstance(case.workload, ProfileWorkload) else ""


def _same_model_together(drafts: Iterable[_Draft]) -> list[_Draft]:
    """Stable: models in the order in which they first appear."""
    order: dict[str, int] = {}
    listed = list(drafts)
    for draft in listed:
        order.setdefault(draft.arms[0].model.name, len(order))
    return sorted(listed, key=lambda draft: order[draft.arms[0].model.name])
