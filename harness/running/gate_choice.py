"""A plan cut down to what a merge gate has to measure: by changed paths, and by what its minutes can decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness.domain.choice import Choice, LeftToNight, WhyLeft
from harness.domain.job import Job
from harness.gating.cells import named_by
from harness.gating.changed import EVERYTHING, Asked, asked_by, read_changed_file
from harness.gating.choosing import Offer, Spent, spend
from harness.gating.labels import read_labels
from harness.gating.policy import Policy
from harness.gating.policy_file import read_policy
from harness.gating.stages import Stages
from harness.planning.plan import Plan, PlannedCase
from harness.planning.planner import narrowed
from harness.reporting.plain_words import count
from harness.running.forecasts import CaseForecast, forecast_plan
from harness.running.known_spreads import KnownSpreads


@dataclass(frozen=True)
class Chosen:
    """What a merge gate's run measures.

    Attributes:
        plan: The plan of it.
        choice: By what it was chosen.
        left: What was left to the night.
        limits: Minutes of the jobs of a node class of which nobody knows what they take.
        known: What is known of what jobs take.
    """

    plan: Plan
    choice: Choice
    left: tuple[LeftToNight, ...]
    limits: Mapping[str, float]
    known: KnownSpreads

    def limited(self, job: Job) -> Job:
        """A job, with the limit that it shares the budget by."""
        limit = self.limits.get(job.node_class.name)
        if limit is None or not _is_untimed(job, self.known):
            return job
        return replace(job, design=replace(job.design, minutes=limit))

    @property
    def headline(self) -> str:
        """In one line."""
        choice = self.choice
        told = f"gate {choice.policy}: {len(self.plan.cases)} of {count(len(self.plan.every_case), 'case')}"
        if choice.changed is not None:
            told += f" for {len(choice.asking)} of {count(choice.changed, 'changed path')}"
        if choice.budget_minutes is not None and choice.planned_minutes is not None and self.plan.cases:
            told += f", {choice.planned_minutes:.1f} of {choice.budget_minutes:g} min"
        reasons = [
            f"{number} {_SHORT[why]}" for why in WhyLeft if (number := sum(each.why is why for each in self.left))
        ]
        return told + (f"; left to the night: {', '.join(reasons)}" if reasons else "")


_SHORT = {
    WhyLeft.PATHS: "that no changed path asks for",
    WhyLeft.TIME: "for want of time",
    WhyLeft.UNDECIDABLE: "that could not be decided",
}


def choose_for_gate(plan: Plan, file: Path, changed: Path | None, known: KnownSpreads) -> Chosen:
    """Cut a plan down to what a merge gate has to measure.

    Args:
        plan: The whole plan.
        file: The gate's policy.
        changed: The list of changed paths; ``None``: everything is asked for.
        known: What is known of spreads and times where it will run.

    Raises:
        BadInput: What is wrong with the policy, its labels or the list.
    """
    policy = read_policy(file)
    stages = Stages(policy, read_labels(file.parent / policy.labels) if policy.labels else ())
    asked = EVERYTHING if changed is None else asked_by(policy, read_changed_file(changed))
    left = {each.case: each for each in _unasked(plan, asked)}
    plan_asked = _without(plan, left)
    left |= {each.case: each for each in _undecidable(plan_asked, policy, known)}
    plan_decidable = _without(plan, left)
    spent = spend(_offers(plan_decidable, stages, known), policy.budget_minutes)
    left |= {each.case: each for each in _without_room(plan_decidable, spent, policy, known)}
    choice = Choice(
        policy=policy.name,
        digest=policy.digest,
        needed=asked.needed,
        changed=asked.changed,
        asking=asked.asking,
        unlisted=asked.unlisted,
        budget_minutes=policy.budget_minutes,
        planned_minutes=_longest(spent),
    )
    limits = {name: each.limit for name, each in spent.items() if each.limit is not None}
    in_order = tuple(left[planned.id] for planned in plan.cases if planned.id in left)
    return Chosen(_without(plan, left), choice, in_order, limits, known)


def _unasked(plan: Plan, asked: Asked) -> Iterator[LeftToNight]:
    lists = [named_by(patterns) for patterns in asked.patterns]
    for planned in plan.cases:
        if not any(named(planned.id, planned.case.contrast) for named in lists):
            yield _left(planned, WhyLeft.PATHS, "no changed path asks for it")


def _undecidable(plan: Plan, policy: Policy, known: KnownSpreads) -> Iterator[LeftToNight]:
    """Contrasts of speed that would end as inconclusive, whatever is measured, or find large losses only."""
    ahead = forecast_plan(plan, known).cases
    for planned in plan.cases:
        forecast = ahead.get(planned.id)
        if forecast is not None and forecast.spread is not None and (why := _why_undecidable(forecast, policy.finds)):
            yield _left(planned, WhyLeft.UNDECIDABLE, why)


def _why_undecidable(forecast: CaseForecast, finds: float | None) -> str:
    if forecast.quarantine:
        return f"inconclusive whatever is measured: {forecast.quarantine}"
    if finds is None or (forecast.smallest is not None and forecast.smallest <= finds):
        return ""
    found = "no loss up to 90 %" if forecast.smallest is None else f"losses of {100 * forecast.smallest:g} % at best"
    source = forecast.spread.source if forecast.spread else ""
    return f"its budget finds {found}, the policy asks for {100 * finds:g} % (spread: {source})"


def _offers(plan: Plan, stages: Stages, known: KnownSpreads) -> list[Offer]:
    ahead = forecast_plan(plan, known).cases
    planned = {each.id: each for each in plan.cases}
    return [
        Offer(
            job.id,
            job.node_class.name,
            max(_rank(planned[case], stages) for case in job.cases),
            next((ahead[case].minutes for case in job.cases if case in ahead), None),
        )
        for job in plan.jobs
    ]


def _rank(planned: PlannedCase, stages: Stages) -> int:
    return stages.of(planned.id, planned.case.contrast).stage.rank


def _without_room(plan: Plan, spent: Mapping[str, Spent], policy: Policy, known: KnownSpreads) -> Iterator[LeftToNight]:
    planned = {each.id: each for each in plan.cases}
    ahead = forecast_plan(plan, known).cases
    for job in plan.jobs:
        room = spent[job.node_class.name].left.get(job.id)
        if room is None:
            continue
        for case in job.cases:
            minutes = ahead[case].minutes if case in ahead else None
            takes = f"takes up to {minutes:.2g} min" if minutes is not None else "takes nobody knows how long"
            of = f"{room:.2g} of {policy.budget_minutes:g} min are left for it"
            yield _left(planned[case], WhyLeft.TIME, f"its job {takes}, {of}")


def _longest(spent: Mapping[str, Spent]) -> float | None:
    minutes = [each.minutes for each in spent.values()]
    known = [each for each in minutes if each is not None]
    return max(known, default=0.0) if len(known) == len(minutes) else None


def _is_untimed(job: Job, known: KnownSpreads) -> bool:
    return job.design.minutes is None and known.process_seconds(job) is None


def _without(plan: Plan, left: Mapping[str, LeftToNight]) -> Plan:
    return narrowed(plan, [planned.id for planned in plan.cases if planned.id not in left])


def _left(planned: PlannedCase, why: WhyLeft, reason: str) -> LeftToNight:
    return LeftToNight(planned.id, planned.case.contrast, why, reason)
