"""Several journals as one night: no case missing, none double.

The whole plan that each shard wrote down tells what there should be. What no journal has is an error in the night: it
was lost, and nothing lost may look like a pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from harness.domain.errors import BadInput
from harness.domain.policy import Policy
from harness.domain.verdict import Verdict
from harness.domain.words import Status
from harness.judging.wording import expected_text
from harness.reporting.journal import PlannedCase, RunInfo
from harness.reporting.outcomes import badness
from harness.reporting.plain_words import count
from harness.reporting.state import JobTry, JournalState, Problem
from harness.reporting.whole_plan import WholeCase, WholePlan

LOST = "E-case-lost"
_MOST_NAMED = 5


def joined_night(states: Sequence[JournalState], path: Path) -> JournalState:
    """One state of several runs of one night.

    Args:
        states: The runs.
        path: Where it is said to lie.

    Raises:
        BadInput: As of `require_one_night`.
    """
    require_one_night(states)
    ordered = sorted(states, key=_place)
    taken = _taken(ordered)
    lost = lost_cases(ordered)
    planned = _in_plan_order(ordered, {**taken.planned, **lost})
    # Where shards wrote the whole plan, it has told already what is lost of a plan that was cut short.
    unread = 0 if _whole_plan(ordered) else sum(map(_unread, ordered))
    return JournalState(
        path=path,
        run=_run(ordered, len(planned) + unread),
        planned=planned,
        jobs=taken.jobs,
        verdicts=taken.verdicts,
        problems=tuple(_problem(state, problem, path) for state in ordered for problem in state.problems),
        torn=sum(state.torn for state in ordered),
        finished=all(state.finished for state in ordered) and not lost,
        started=min((state.started for state in ordered if state.started), default=""),
        resumed=tuple(sorted(time for state in ordered for time in state.resumed)),
        set_aside=tuple(dict.fromkeys(aside for state in ordered for aside in state.set_aside)),
        choice=next((state.choice for state in ordered if state.choice), None),
        left={case: left for state in ordered for case, left in state.left.items() if case not in planned},
        joined=(*_told(ordered, taken.doubles), *_told_of_lost(lost)),
    )


def require_one_night(states: Sequence[JournalState]) -> None:
    """Refuse journals that can't be one night.

    Raises:
        BadInput: ``E-merge-other-matrix``, ``E-merge-other-policy``, ``E-merge-other-plan``: the whole plans of shards
            are not the same; ``E-merge-unlike-cases``: journals mean other things by one id.
    """
    begun = [state for state in states if state.run is not None]
    hint = "merge journals of one matrix and one version of it"
    for one, other in pairwise(begun):
        where = f"{_name(one)} and {_name(other)}"
        if one.name != other.name:
            message = f"they are of the matrices '{one.name}' and '{other.name}'"
            raise BadInput("E-merge-other-matrix", message, hint=hint, where=where)
        if one.policy != other.policy:
            message = f"their policies differ: {_differing_policy(one.policy, other.policy)}"
            raise BadInput("E-merge-other-policy", message, hint=hint, where=where)
    of_shards = [(state, state.shard.plan) for state in states if state.shard]
    for (one, mine), (other, theirs) in pairwise(of_shards):
        if differing := sorted({case for case, _ in mine.contents.items() ^ theirs.contents.items()}):
            message = f"their whole plans differ in {count(len(differing), 'case')}: {_listed(differing)}"
            raise BadInput("E-merge-other-plan", message, hint=hint, where=f"{_name(one)} and {_name(other)}")
    if unlike := _unlike_cases(states):
        message = f"{_listed(unlike)}: other arms, workloads or node classes under one id"
        raise BadInput("E-merge-unlike-cases", message, hint=hint, where=f"{_name(states[0])} and others")


def lost_cases(states: Iterable[JournalState]) -> dict[str, PlannedCase]:
    """What the whole plan of shards has and none of their journals, each with the error that it is in the night.

    Args:
        states: Journals of one night.
    """
    listed = list(states)
    plan = _whole_plan(listed)
    if plan is None:
        return {}
    there = {case for state in listed for case in (*state.planned, *state.left)}
    policy = next((state.policy for state in listed if state.run), Policy())
    missing = [case for case in plan.cases if case.id not in there]
    return {each.id: _lost(plan, each, listed, policy) for each in missing}


def lost_states(states: Sequence[JournalState]) -> list[JournalState]:
    """What was lost between journals, as a journal of its own for each matrix and whole plan.

    Shards of unlike plans are not one night: each of them misses what it has not.
    """
    nights: dict[tuple[str, tuple[tuple[str, str], ...]], list[JournalState]] = {}
    for state in states:
        if state.shard:
            nights.setdefault((state.name, tuple(state.shard.plan.contents.items())), []).append(state)
    plain = [state for state in states if state.shard is None]
    found = (
        _lost_state([*night, *(each for each in plain if each.name == name)]) for (name, _), night in nights.items()
    )
    return [state for state in found if state]


def _lost_state(states: Sequence[JournalState]) -> JournalState | None:
    lost = lost_cases(states)
    first = next((state for state in sorted(states, key=_place) if state.shard), None)
    if not lost or first is None or first.run is None:
        return None
    return JournalState(
        path=first.path,
        run=replace(first.run, cases=len(lost)),
        planned=lost,
        jobs={},
        verdicts={},
        problems=(),
        torn=0,
        finished=True,
        started=first.started,
        joined=tuple(_told_of_lost(lost)),
    )


# ---- what is taken of which journal ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Taken:
    """One journal's word on each case.

    Attributes:
        planned: Cases by id; of a journal that is not the first to have a job of that name, with a name of its own.
        jobs: The jobs that they name.
        verdicts: What the journals say of them.
        doubles: Cases that several journals answer.
    """

    planned: dict[str, PlannedCase]
    jobs: dict[str, JobTry]
    verdicts: dict[str, Verdict]
    doubles: list[str]


def _taken(states: Sequence[JournalState]) -> _Taken:
    by_case: dict[str, list[tuple[int, Verdict]]] = {}
    for index, state in enumerate(states):
        for verdict in state.final_verdicts():
            by_case.setdefault(verdict.case, []).append((index, verdict))
    taken = _Taken({}, {}, {}, [])
    owners: dict[str, list[int]] = {}
    for case, found in by_case.items():
        index, _ = max(found, key=lambda each: badness(each[1].status))  # the first of equals
        if sum(verdict.status is not Status.NOT_APPLICABLE for _, verdict in found) > 1:
            taken.doubles.append(case)
        state = states[index]
        planned = state.planned[case]
        if planned.job:
            known = owners.setdefault(planned.job, [])
            if index not in known:
                known.append(index)
            place = known.index(index)
            job = planned.job if place == 0 else f"{planned.job}+{place + 1}"
            if planned.job in state.jobs:
                taken.jobs[job] = state.jobs[planned.job]
            planned = replace(planned, job=job)
        taken.planned[case] = planned
        if case in state.verdicts:
            taken.verdicts[case] = state.verdicts[case]
    return taken


def _in_plan_order(states: Sequence[JournalState], planned: Mapping[str, PlannedCase]) -> dict[str, PlannedCase]:
    plan = _whole_plan(states)
    order = [case.id for case in plan.cases if case.id in planned] if plan else []
    return {case: planned[case] for case in dict.fromkeys((*order, *planned))}


def _whole_plan(states: Iterable[JournalState]) -> WholePlan | None:
    return next((state.shard.plan for state in states if state.shard), None)


def _unread(state: JournalState) -> int:
    return max(0, state.run.cases - len(state.planned)) if state.run else 1


def _place(state: JournalState) -> tuple[str, str, int]:
    """Where a journal stands among others, whatever order they were given in."""
    return (state.started, _name(state), len(state.jobs))


def _run(states: Sequence[JournalState], cases: int) -> RunInfo | None:
    begun = [state.run for state in states if state.run]
    if not begun:
        return None
    versions = {name: ", ".join(sorted(found)) for name, found in _versions(begun).items()}
    executor = "+".join(sorted({run.executor for run in begun}))
    return RunInfo(begun[0].matrix, executor, cases, versions, begun[0].policy)


def _versions(runs: Iterable[RunInfo]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for run in runs:
        for name, version in run.versions.items():
            found.setdefault(name, set()).add(version)
    return found


def _problem(state: JournalState, problem: Problem, path: Path) -> Problem:
    """A line's number says something in its own file alone."""
    if state.path == path:
        return problem
    line = f"line {problem.line}: " if problem.line else ""
    return Problem(0, f"{_name(state)}: {line}{problem.message}")


# ---- what is lost ----------------------------------------------------------------------------------------------------


def _lost(plan: WholePlan, each: WholeCase, states: Sequence[JournalState], policy: Policy) -> PlannedCase:
    case = plan.case(each)
    verdict = Verdict(
        case=each.id,
        status=Status.ERROR,
        reason=f"no journal of this night has it: {_why_lost(plan.class_of(each), states)}",
        expected=expected_text(case.check, policy),
        slug=LOST,
        synthetic=any(arm.model.synthetic for arm in case.arms),
        contrast=case.contrast,
    )
    return PlannedCase(case, verdict=verdict)


def _why_lost(node_class: str, states: Sequence[JournalState]) -> str:
    parts = {part for state in states if state.shard for part in state.shard.parts if part.node_class == node_class}
    if not parts:
        return f"no shard of node class '{node_class}' left a journal"
    if any(part.of == 1 for part in parts):
        return f"the shard of node class '{node_class}' did not plan it, or its plan was cut short"
    there = ", ".join(sorted(f"{part.number}/{part.of}" for part in parts))
    return f"of node class '{node_class}' there is part {there} alone, or a plan was cut short"


# ---- what is told ----------------------------------------------------------------------------------------------------


def _told(states: Sequence[JournalState], doubles: Sequence[str]) -> Iterator[str]:
    of_shards = any(state.shard for state in states)
    for state in states:
        if state.run is not None and not state.finished:
            broken = f"{len(state.undecided)} of {count(len(state.planned), 'case')} have no verdict"
            yield f"{_name(state)} did not come to its end: {broken}"
        if state.shard is None and of_shards:
            yield f"{_name(state)} is no shard of the night's plan"
    if not of_shards and len(states) > 1:
        yield "no journal says of which whole plan it is a part: what is missing is not known"
    if doubles:
        yield f"{count(len(doubles), 'case')} in several journals, of each the worst verdict counts: {_listed(doubles)}"
    for name, found in _versions(state.run for state in states if state.run).items():
        if len(found) > 1:
            yield f"versions of {name} differ: {', '.join(sorted(found))}"


def _told_of_lost(lost: Mapping[str, PlannedCase]) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for case, planned in lost.items():
        by_reason.setdefault(planned.verdict.reason if planned.verdict else "", []).append(case)
    for reason, cases in by_reason.items():
        yield f"{count(len(cases), 'case')} lost, {reason}: {_listed(cases)}"


def _unlike_cases(states: Sequence[JournalState]) -> list[str]:
    seen: dict[str, str] = {}
    unlike = []
    for state in states:
        for case, planned in state.planned.items():
            if seen.setdefault(case, key := planned.case.key) != key:
                unlike.append(case)
    return list(dict.fromkeys(unlike))


def _differing_policy(one: Policy, other: Policy) -> str:
    return ", ".join(
        f"{name} {getattr(one, name)} and {getattr(other, name)}"
        for name in one.__dataclass_fields__
        if getattr(one, name) != getattr(other, name)
    )


def _name(state: JournalState) -> str:
    """Where a run is known by, whichever file it is in."""
    what = f"shard {state.shard.text}" if state.shard else "the run"
    hosts = sorted({last.host for last in state.jobs.values() if last.host})
    where = f" on {', '.join(hosts[:_MOST_NAMED])}" if hosts else ""
    return f"{what}{where} begun {state.started or 'nobody knows when'}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    return f"{shown} and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else shown
