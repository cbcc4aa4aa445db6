"""What keeps a gate from passing for the wrong reason: typing errors, missing cells, other runs, nothing measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from harness.domain.case import AttributionCheck, Check, ContrastCheck, Expectation, FloorCheck
from harness.domain.choice import WhyLeft
from harness.gating.cells import Journals, Problem, named_by, naming_none
from harness.gating.changed import Asked
from harness.gating.effects import Effects, Judged
from harness.gating.policy import Policy
from harness.gating.words import Stage, Weight
from harness.planning.select import nearest
from harness.reporting.plain_words import count
from harness.reporting.state import JournalState


def pattern_problems(policy: Policy, journals: Journals, file: str) -> Iterator[Problem]:
    """Patterns of rows that name nothing: a typing error must not end as a green gate."""
    names = journals.names
    rows = [(f"cells[{number}]", row.cells) for number, row in enumerate(policy.cells)]
    if any(state.choice is not None for state in journals.states):
        rows += [(f"paths[{number}]", row.cells) for number, row in enumerate(policy.paths)]
    for row, patterns in rows:
        for pattern in naming_none(patterns, names):
            yield Problem(
                "E-gate-no-such-cell",
                f"{file or 'default policy'}: {row}.cells",
                f"'{pattern}' names no cell of these journals",
                Weight.BAD_INPUT,
                nearest(pattern, names),
            )


def too_few(policy: Policy, effects: Effects, journals: Journals, file: str) -> Iterator[Problem]:
    """Rows that count on more cells than there are: what is not even planned is absent, too.

    What nobody asked for is not missing; what the minutes had no room for is, where the row says how many it counts on.
    """
    late = [(each.case, each.contrast) for each in journals.left if each.why is not WhyLeft.PATHS]
    for number, row in enumerate(policy.cells):
        named = named_by(row.cells)
        known = sum(named(*name) for name in journals.names)
        without_room = sum(named(*name) for name in late) if "at_least" in row.model_fields_set else 0
        found = known - without_room
        if not known or found >= row.at_least:
            continue
        action = row.absent or policy.missing.absent
        may_block = effects.may_block(row)
        weight = {"warn": Weight.TOLD, "block": Weight.BLOCK, "undecided": Weight.UNDECIDED}[action]
        told = f", {without_room} left to the night" if without_room else ""
        hint = "give it more budget_minutes" if without_room else "a journal is missing, or the matrix lost cases"
        yield Problem(
            "E-gate-cells-absent",
            f"{file}: cells[{number}].at_least",
            f"{found} of {row.at_least} cells are in these journals{told}",
            weight if may_block else Weight.TOLD,
            hint,
        )


def other_choice(policy: Policy, states: Sequence[JournalState], asked: Asked | None, file: str) -> Iterator[Problem]:
    """A run that left cells out is believed only if it did so for this policy and this change."""
    for state in states:
        choice = state.choice
        if choice is None:
            continue
        if file and choice.digest != policy.digest:
            message = f"its cells were chosen by another policy than this one ('{choice.policy}')"
            hint = "run it with --moe-gate and this file"
            yield Problem("E-gate-other-policy", f"{state.path}", message, Weight.UNDECIDED, hint)
        if asked is not None and (choice.changed is None or set(choice.asking) != set(asked.asking)):
            if choice.changed is None:
                continue  # it was asked for everything
            message = "its cells were chosen by another list of changed paths than this one"
            hint = "run it with --moe-changed and this list"
            yield Problem("E-gate-other-changes", f"{state.path}", message, Weight.UNDECIDED, hint)


def none_may_block(effects: Effects, cells: Sequence[Judged], journals: Journals) -> Iterator[Problem]:
    """Kinds of questions that may block and of which the minutes had room for none: nothing is decided of them."""
    answered = {_question(each.cell.id, each.cell.case.contrast) for each in cells if _blocks(each)}
    left = [
        each
        for each in journals.left
        if each.why is not WhyLeft.PATHS and effects.could_block(each.case, each.contrast) and cells
    ]
    counts = Counter(_question(each.case, each.contrast) for each in left)
    for question, number in counts.items():
        if question not in answered:
            message = f"of the {question} that were asked for and may block, all {number} were left to the night"
            hint = "give it more budget_minutes, calibrate, or ask for less"
            yield Problem("E-gate-none-may-block", "", message, Weight.UNDECIDED, hint)


def none_can_fail(policy: Policy, cells: Sequence[Judged]) -> Iterator[Problem]:
    """Speeds without a floor, and contrasts that only inform, pass whatever was measured: they decide nothing."""
    blocking = [each for each in cells if _blocks(each)]
    limited = policy.limits.memory_growth is not None or policy.limits.outputs is not None
    if blocking and not limited and not any(_can_fail(each.cell.case.check) for each in blocking):
        message = f"none of the {count(len(blocking), 'cell')} that may block has a check that could fail"
        hint = "speeds without a floor and contrasts with expect = 'report' only inform: give the matrix a check"
        yield Problem("E-gate-none-can-fail", "", message, Weight.UNDECIDED, hint)


def _blocks(each: Judged) -> bool:
    return each.staged.stage is Stage.BLOCK


def _question(case: str, contrast: str) -> str:
    """The kind of question that a cell asks, in words: its kind, and whether it is about one arm or a contrast."""
    kind = case.partition("/")[0]
    return f"{kind} cells" if not contrast else f"{kind} contrasts"


def _can_fail(check: Check) -> bool:
    match check:
        case FloorCheck():
            return check.least_tps is not None
        case ContrastCheck() | AttributionCheck():
            return check.expect is not Expectation.REPORT
        case _:
            return True


def is_unneeded(journals: Journals, asked: Asked | None) -> bool:
    """Whether no changed path asks for a cell: all journals say so, or the paths do where there is no journal."""
    if journals.cells or any(problem.weight is not Weight.TOLD for problem in journals.problems):
        return False
    if not journals.states:
        return asked is not None and not asked.needed
    return all(state.choice is not None and not state.choice.needed for state in journals.states)


def nothing_measured(journals: Journals, asked: Asked | None) -> Problem:
    """That nothing was measured; it is no pass."""
    if not journals.states and asked is not None:
        message = f"cells are asked for by {count(len(asked.asking), 'changed path')}, and there is no journal"
        return Problem("E-gate-nothing-measured", "", message, Weight.UNDECIDED, "run them, and give the journals")
    hint = "see the reasons below" if journals.cells or journals.left else "was anything run?"
    return Problem("E-gate-nothing-measured", "", "nothing was measured at all", Weight.UNDECIDED, hint)
