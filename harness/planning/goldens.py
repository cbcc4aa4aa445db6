"""Checks against recorded outputs: which arm is held against the record of which."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from harness.domain.canonical import digest, id_part
from harness.domain.case import Case, OutputCheck
from harness.domain.words import Kind
from harness.domain.workload import OutputProfile
from harness.planning.arms import PlannedArm, matches
from harness.planning.content import content_claim
from harness.planning.plan import PlannedCase
from harness.planning.problems import Problem
from harness.planning.schema import OutputsEntry
from harness.planning.source import Source

_MAX_LABEL = 160
"""A file's name has at most 255 bytes on most systems."""


def golden_key(name: str, arm: PlannedArm) -> str:
    """Under which key the outputs of an arm are recorded: parts of it are names of folders and of a file."""
    label = arm.arm.label
    if len(label) > _MAX_LABEL:
        label = f"{label[:_MAX_LABEL]}-{digest([label])[:12]}"
    return f"{id_part(name)}/{id_part(arm.arm.model.name)}/{label}@{id_part(arm.node_class.name)}"


def against_references(
    check: OutputsEntry,
    index: int,
    arms: Sequence[PlannedArm],
    source: Source,
    single: Callable[[PlannedArm, OutputCheck], PlannedCase],
) -> Iterator[PlannedCase | Problem]:
    """The cases of a check with a reference: one for each arm that meets its ``where``.

    Args:
        check: The check.
        index: Its place in the matrix.
        arms: The matrix's arms.
        source: Where its keys were written.
        single: Makes the case of an arm.

    Yields:
        Cases, and what is wrong with the check.
    """
    checked = [arm for arm in arms if matches(check.where, arm)]
    if not checked:
        where = source.at("checks", index, "where")
        yield Problem("E-no-arm", where, "no arm of the matrix meets this condition")
    for arm in checked:
        recorded = _recorded(check, arm, arms)
        if len(recorded) != 1:
            yield _not_one(source.at("checks", index, "reference_arm"), arm, recorded)
            return
        if claim := content_claim((recorded[0].arm, arm.arm)):
            yield Problem("E-synthetic-claim", source.at("checks", index), claim, "record the arm itself")
            return
        key = golden_key(check.reference_name, recorded[0])
        case = single(arm, OutputCheck(check.name, "reference", check.lossy, reference=key))
        yield replace(case, recorded=recorded[0].arm)


def recordings(cases: Sequence[PlannedCase]) -> tuple[PlannedCase, ...]:
    """The cases of what has to be recorded for some cases: each recorded arm against its own reference, once."""
    found: dict[str, PlannedCase] = {}
    for planned in cases:
        check, arm = planned.case.check, planned.recorded
        if isinstance(check, OutputCheck) and arm is not None and check.reference not in found:
            case = Case(Kind.EQUIVALENCE, (arm,), planned.case.workload, planned.case.node_class, check)
            status, reason = (planned.status, planned.reason) if arm == planned.case.arms[0] else (None, "")
            found[check.reference] = PlannedCase(case, planned.origin, status, reason, recorded=arm)
    return tuple(found.values())


def unlike_prompts(cases: Sequence[PlannedCase]) -> Iterator[Problem]:
    """References that two checks want of one arm with other prompts: a record holds the answers to one set of them."""
    first: dict[str, tuple[str, PlannedCase]] = {}
    told: set[tuple[str, str]] = set()
    for planned in cases:
        check = planned.case.check
        if not isinstance(check, OutputCheck) or not check.reference:
            continue
        name, before = first.setdefault(check.reference, (check.name, planned))
        both = (before.origin, planned.origin)
        if _identity(before) != _identity(planned) and both not in told:
            told.add(both)
            named = f"'{check.name}' and '{name}' ({before.origin})"
            message = f"{named} share the reference {check.reference} and ask other things: one would never be recorded"
            yield Problem("E-reference-shared", planned.origin, message, "give each a 'reference' name of its own")


def _identity(planned: PlannedCase) -> str:
    return planned.case.workload.identity if isinstance(planned.case.workload, OutputProfile) else ""


def _recorded(check: OutputsEntry, arm: PlannedArm, arms: Sequence[PlannedArm]) -> list[PlannedArm]:
    """Whose outputs an arm is held against: its own, or those of the one that the check names, of the same model."""
    if check.reference_arm is None:
        return [arm]
    named = check.reference_arm
    return [
        other
        for other in arms
        if other.arm.model == arm.arm.model and other.node_class == arm.node_class and matches(named, other)
    ]


def _not_one(where: str, arm: PlannedArm, found: Sequence[PlannedArm]) -> Problem:
    labels = ", ".join(each.arm.label for each in found)
    if not found:
        message = f"no arm of {arm.arm.model.name} @{arm.node_class.name} meets this condition"
        return Problem("E-no-arm", where, message, "the recorded arm is one of the matrix")
    message = f"{len(found)} arms meet this condition, one is needed: {labels}"
    return Problem("E-ambiguous-reference", where, message, "name its build and each flag that has several values")
