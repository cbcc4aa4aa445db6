"""A plan cut down to a shard: the cases of some node classes, or one of several equal parts of a class's jobs.

How a class is shared out follows from the matrix and the selection alone, never from the machine, so that all runners
of a class come to the same parts. All cases of a job stay together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness.domain.errors import BadInput
from harness.domain.node import NodeClass
from harness.domain.suggest import did_you_mean
from harness.planning.fit import misfit
from harness.planning.jobs import plan_jobs
from harness.planning.plan import Plan
from harness.planning.planner import narrowed
from harness.reporting.plain_words import count
from harness.reporting.whole_plan import Part, Shard, whole_plan

AUTO = "auto"
_PART = re.compile(r"\s*([^,:\s]+)(?::([0-9]{1,4})/([0-9]{1,4}))?\s*", re.ASCII)
_WHERE = "--moe-shard"


@dataclass(frozen=True, slots=True)
class Sharded:
    """A shard's plan, and what its journal says of the whole.

    Attributes:
        plan: The plan of its cases.
        shard: Of what it is a part.
    """

    plan: Plan
    shard: Shard

    @property
    def headline(self) -> str:
        """In one line."""
        return f"shard {self.shard.text}: {len(self.plan.cases)} of {count(len(self.shard.plan.cases), 'case')}"


def shard_of(plan: Plan, asked: str) -> Sharded:
    """Cut a plan down.

    Args:
        plan: What all shards together have to measure.
        asked: ``CLASS``, ``CLASS:K/N`` or ``auto`` (the classes that this machine is of), several with commas.

    Raises:
        BadInput: ``E-shard-syntax``, ``E-unknown-class``, ``E-shard-not-here``: this machine is not of a class that was
            named, or of none.
    """
    classes = {case.case.node_class.name: case.case.node_class for case in plan.cases}
    parts = tuple(dict.fromkeys(_parts(plan, asked, classes)))
    mine = {case for part in parts for case in _cases_of(plan, part)}
    return Sharded(narrowed(plan, mine), Shard(parts, whole_plan(case.case for case in plan.cases)))


def _parts(plan: Plan, asked: str, classes: dict[str, NodeClass]) -> Iterator[Part]:
    for text in asked.split(","):
        match = _PART.fullmatch(text)
        name, number, of = (match[1], int(match[2] or 1), int(match[3] or 1)) if match else ("", 0, 0)
        if not 1 <= number <= of:
            hint = "e.g. hybrid, hybrid:1/2 for the first of two runners of that class, cpu,hybrid for both, or auto"
            raise BadInput("E-shard-syntax", f"'{text.strip()}' is no part of a plan", hint=hint, where=_WHERE)
        named = _classes_here(plan, classes) if name == AUTO else (_known(name, classes),)
        if name != AUTO:
            _require_here(plan, named[0])
        yield from (Part(each.name, number, of) for each in named)


def _known(name: str, classes: dict[str, NodeClass]) -> NodeClass:
    if name not in classes:
        message = f"no selected case is of node class '{name}'"
        raise BadInput("E-unknown-class", message, hint=did_you_mean(name, classes), where=_WHERE)
    return classes[name]


def _classes_here(plan: Plan, classes: dict[str, NodeClass]) -> tuple[NodeClass, ...]:
    if plan.nodes is None:
        hint = "name the classes, e.g. hybrid: a cluster's nodes are not known when the plan is made"
        raise BadInput("E-shard-syntax", "auto asks what this machine is, and it is a cluster", hint=hint, where=_WHERE)
    nodes = plan.nodes
    found = tuple(each for each in classes.values() if not misfit(each, nodes))
    if not found:
        why = "; ".join(misfit(each, nodes) for each in classes.values())
        hint = "run the shard on another machine, or change [node_classes] of the matrix"
        raise BadInput("E-shard-not-here", f"this machine is of no class of the matrix: {why}", hint=hint, where=_WHERE)
    return found


def _require_here(plan: Plan, node_class: NodeClass) -> None:
    """A shard on the wrong machine would take its cases and measure none: no night may look whole by that."""
    why = "" if plan.nodes is None else misfit(node_class, plan.nodes)
    if why:
        hint = "start this shard on a machine of the class; what it was to measure is missing in the night meanwhile"
        raise BadInput("E-shard-not-here", why, hint=hint, where=_WHERE)


def _cases_of(plan: Plan, part: Part) -> Sequence[str]:
    """Ids of the cases of one part."""
    own = [case.id for case in plan.cases if case.case.node_class.name == part.node_class]
    if part.of == 1:
        return own
    bins = _shared_out(plan, part)
    return [case for case in own if bins.get(case, 0) == part.number - 1]


def _shared_out(plan: Plan, part: Part) -> dict[str, int]:
    """The bin of each case of a class: its jobs by their process starts, the longest first into the emptiest bin.

    What this machine can't run counts like all else, else two unlike machines would come to other jobs.
    """
    cases, every = (
        tuple(replace(case, status=None, reason="") for case in listed) for listed in (plan.cases, plan.every_case)
    )
    jobs = [job for job in plan_jobs(cases, plan.policy, every) if job.node_class.name == part.node_class]
    loads = [0] * part.of
    found: dict[str, int] = {}
    for starts, _, cases_of_job in sorted((-job.process_starts, job.id, job.cases) for job in jobs):
        emptiest = loads.index(min(loads))
        loads[emptiest] -= starts
        found.update(dict.fromkeys(cases_of_job, emptiest))
    return found
