"""All answers of a job: each other arm against the first, round by round.

A round is one process of each arm that answered the prompts. What a first round finds wrong is asked again in fresh
processes, and is a finding only where they show it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.domain.arm import Arm
from harness.domain.case import OutputCheck
from harness.domain.job import Job
from harness.domain.measurement import ProcessRun
from harness.domain.node import NodeFacts
from harness.domain.tolerance import Tolerance
from harness.domain.words import Equivalence, Status
from harness.domain.workload import OutputProfile
from harness.judging.outputs import judge_outputs
from harness.judging.outputs_allowed import allowed_of
from harness.judging.outputs_verdict import OutputsVerdict
from harness.judging.quants import limits_of

_ROUNDS = ("at first", "again in fresh processes")
_WORST_FIRST = (Status.ERROR, Status.FAIL, Status.INCONCLUSIVE, Status.PASS)


def outputs_of_job(job: Job, runs: Sequence[ProcessRun], node: NodeFacts | None = None) -> tuple[OutputsVerdict, ...]:
    """What the answers so far say of each arm but the first; empty where none are asked for or some are missing.

    Args:
        job: The job.
        runs: Its processes so far.
        node: Where it runs; unknown: a build that can use GPUs is taken to use some, so that more is advice.
    """
    by_arm = [[run for run in runs if run.step.arm == arm and run.step.outputs] for arm in range(len(job.arms))]
    if job.outputs is None or not all(by_arm):
        return ()
    return compare_arms(job.arms, by_arm, job.output_checks, job.outputs, known=job.tolerances, node=node)


def compare_arms(
    arms: Sequence[Arm],
    runs: Sequence[Sequence[ProcessRun]],
    checks: Sequence[OutputCheck],
    profile: OutputProfile,
    *,
    known: Sequence[Tolerance],
    node: NodeFacts | None,
) -> tuple[OutputsVerdict, ...]:
    """Compare each other arm with the first.

    Args:
        arms: The arms, the reference first.
        runs: Their processes, by arm, in order; those that answered no prompts are passed over.
        checks: What is declared of each other arm; none where nothing is.
        profile: What they were asked.
        known: What calibrations found of the model.
        node: Where they ran.
    """
    reference, *others = arms
    baseline, *candidates = ([run.outputs for run in of_arm if run.step.outputs] for of_arm in runs)
    limits = limits_of(reference.model)
    found = []
    for place, (other, candidate) in enumerate(zip(others, candidates, strict=True)):
        check = checks[place] if len(checks) == len(others) else None
        allowed = allowed_of(reference, other, check, known, node)
        rounds = max(1, min(len(baseline), len(candidate)))
        pairs = zip([*baseline, ()][:rounds], [*candidate, ()][:rounds], strict=True)
        found.append(together([judge_outputs(ours, theirs, profile, limits, allowed) for ours, theirs in pairs]))
    return tuple(found)


def worst_of(found: Sequence[OutputsVerdict], labels: Sequence[str]) -> OutputsVerdict:
    """The verdict that counts for a whole job: one that forbids to judge speed first.

    Args:
        found: One verdict for each other arm.
        labels: Their names.
    """
    named = [replace(each, why=f"{label}: {each.why}") for each, label in zip(found, labels, strict=True)]
    among = named if len(found) > 1 else found
    return min(among, key=lambda each: (each.speed_may_be_judged, _WORST_FIRST.index(each.status)))


def together(rounds: Sequence[OutputsVerdict]) -> OutputsVerdict:
    """One verdict of several rounds: wrong only where every round says so, and then the mildest finding counts."""
    worst = min(rounds, key=lambda each: _WORST_FIRST.index(each.status))
    wrong = [each for each in rounds if each.wrong]
    if len(rounds) == 1 or worst.status is Status.ERROR or not wrong:
        return worst
    told = [f"{_ROUNDS[min(place, 1)]} {_word(each)}, {each.why}" for place, each in enumerate(rounds)]
    if len(wrong) < len(rounds):
        undecided = replace(wrong[0], status=Status.INCONCLUSIVE, equivalence=None, advisory="", repeated=False)
        return replace(undecided, why=f"not repeated: {'; '.join(told)}")
    # By place: equal answers give the same verdict, and one object.
    mildest = min(range(len(rounds)), key=lambda place: _severity(rounds[place]))
    others = [
        f"{_ROUNDS[min(place, 1)]} the same" if rounds[place] == rounds[mildest] else text
        for place, text in enumerate(told)
        if place != mildest
    ]
    return replace(rounds[mildest], why="; ".join([rounds[mildest].why, *others]))


def never_repeated(found: OutputsVerdict, runs: Sequence[Sequence[ProcessRun]]) -> OutputsVerdict:
    """The verdict of a job that was stopped: what was found wrong once, and not asked again, is no finding.

    Args:
        found: What its answers say.
        runs: The processes that gave them, by arm. Journals from before rounds, without distributions, had one only.
    """
    once = min(map(len, runs)) == 1 and any(each.greedy for of_arm in runs for run in of_arm for each in run.outputs)
    if found.status is not Status.FAIL or not once:
        return found
    why = f"not repeated: {_ROUNDS[0]} {_word(found)}, {found.why}; the job was stopped before it was asked again"
    return replace(found, status=Status.INCONCLUSIVE, equivalence=None, repeated=False, why=why)


def _severity(found: OutputsVerdict) -> tuple[bool, bool]:
    """Advice is milder than a finding, different than broken."""
    return not found.advisory, found.equivalence is Equivalence.BROKEN


def _word(found: OutputsVerdict) -> str:
    return str(found.equivalence or found.status)
