"""From a matrix to a plan: expand, choose, fit, put into jobs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from harness.builds.known import KnownSources
from harness.domain.node import NodeFacts
from harness.domain.words import Status
from harness.planning.expand import expand_and_warn
from harness.planning.fit import fit
from harness.planning.jobs import plan_jobs
from harness.planning.memory import check_memory
from harness.planning.plan import Plan, PlannedCase
from harness.planning.schema import Matrix
from harness.planning.select import select


def make_plan(
    matrix: Matrix,
    patterns: Iterable[str] = (),
    nodes: Iterable[NodeFacts] | None = None,
    options: Mapping[str, frozenset[str]] | None = None,
    sources: KnownSources | None = None,
) -> Plan:
    """Work a matrix out.

    Args:
        matrix: The matrix.
        patterns: What to choose, as in `select`.
        nodes: Facts of the fleet's nodes; ``None``: not known, every class is taken to fit.
        options: Option spellings of a build's ``--help``, by build, where it was read.
        sources: What is known of the builds' commits and numbers; ``None``: what their folders tell.

    Raises:
        BadInput: As `expand_and_warn` and `select`.
    """
    every_case, warnings = expand_and_warn(matrix, options, sources)
    fleet = None if nodes is None else tuple(nodes)
    if fleet is not None:
        every_case = fit(every_case, fleet)
    every_case = check_memory(every_case, fleet)
    cases = select(every_case, patterns)
    jobs = plan_jobs(cases, matrix.policy, every_case)
    return Plan(matrix.name, cases, jobs, matrix.policy, every_case, fleet, warnings)


def held_against(plan: Plan, nodes: Iterable[NodeFacts]) -> Plan:
    """The plan once the nodes are known that it will run on: what none of them can take is ``not_applicable``.

    Args:
        plan: A plan that was made without nodes.
        nodes: Facts of every node of the fleet.
    """
    fleet = tuple(nodes)
    every_case = check_memory(fit(plan.every_case, fleet), fleet)
    by_id = {case.id: case for case in every_case}
    cases = tuple(by_id[case.id] for case in plan.cases)
    return replace(
        plan, cases=cases, jobs=plan_jobs(cases, plan.policy, every_case), every_case=every_case, nodes=fleet
    )


def decided_beside(plan: Plan, other: Plan) -> dict[str, tuple[str, str]]:
    """What was decided of a plan's cases that is not in another one of them: status and reason by case.

    Args:
        plan: A plan.
        other: The same one before.
    """
    before = {case.id: (case.status, case.reason) for case in other.every_case}
    return {
        case.id: (str(case.status), case.reason)
        for case in plan.every_case
        if case.status is not None and before[case.id] != (case.status, case.reason)
    }


def with_decided(plan: Plan, decided: Mapping[str, Sequence[str]]) -> Plan:
    """The plan with what another process decided of it.

    Args:
        plan: The same plan as there.
        decided: As of `decided_beside`.
    """

    def told(case: PlannedCase) -> PlannedCase:
        found = decided.get(case.id)
        return replace(case, status=Status(found[0]), reason=found[1]) if found else case

    cases, every_case = (tuple(map(told, listed)) for listed in (plan.cases, plan.every_case))
    return replace(plan, cases=cases, jobs=plan_jobs(cases, plan.policy, every_case), every_case=every_case)


def narrowed(plan: Plan, ids: Collection[str]) -> Plan:
    """The plan of fewer cases, e.g. of what ``-k`` left; required output checks stay in the jobs.

    Args:
        plan: The plan.
        ids: Ids of the cases to keep.
    """
    wanted = set(ids)
    cases = tuple(case for case in plan.cases if case.id in wanted)
    return replace(plan, cases=cases, jobs=plan_jobs(cases, plan.policy, plan.every_case))
