"""What keeps a gate from passing for the wrong reason: typing errors, missing cells, other runs, nothing measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.domain.choice import WhyLeft
from harness.gating.cells import Journals, Problem, named_by
from harness.gating.changed import Asked
from harness.gating.effects import Effects, Judged
from harness.gating.policy import Policy
from harness.gating.words import Stage, Weight
from harness.planning.select import matcher, nearest
from harness.reporting.plain_words import count
from harness.reporting.state import JournalState


def pattern_problems(policy: Policy, journals: Journals, file: str) -> Iterator[Problem]:
    """Patterns of rows that name nothing: a typing error must not end as a green gate."""
    names = journals.names
    if not names:
        return
    rows = [(f"cells[{number}]", row.cells) for number, row in enumerate(policy.cells)]
    if any(state.choice is not None for state in journals.states):
        rows += [(f"paths[{number}]", row.cells) for number, row in enumerate(policy.paths)]
    for row, patterns in rows:
        for pattern in patterns:
            meant = matcher(pattern.removeprefix("!"))
            if not pattern.startswith("!") and not any(meant(*name) for name in names):
                yield Problem(
                    "E-gate-no-such-cell",
                    f"{file or 'default policy'}: {row}.cells",
                    f"'{pattern}' names no cell of these journals",
                    Weight.BAD_INPUT,
                    nearest(pattern, names),
                )


def too_few(policy: Policy, cells: Sequence[Judged], journals: Journals, file: str) -> Iterator[Problem]:
    """Rows that count on more cells than there are: what is not even planned is absent, too."""
    for number, row in enumerate(policy.cells):
        named = named_by(row.cells)
        found = sum(named(*name) for name in journals.names)
        if not 0 < found < row.at_least:
            continue
        action = row.absent or policy.missing.absent
        may_block = any(each.staged.row is row and each.staged.stage is Stage.BLOCK for each in cells)
        weight = {"warn": Weight.TOLD, "block": Weight.BLOCK, "undecided": Weight.UNDECIDED}[action]
        yield Problem(
            "E-gate-cells-absent",
            f"{file}: cells[{number}].at_least",
            f"{found} of {row.at_least} cells are in these journals",
            weight if may_block else Weight.TOLD,
            "a journal is missing, or the matrix lost cases",
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
    """A budget that had room for no cell that could block has gated nothing."""
    left = [
        each.case
        for each in journals.left
        if each.why is not WhyLeft.PATHS and effects.stage_of(each.case, each.contrast) is Stage.BLOCK
    ]
    if cells and left and not any(each.staged.stage is Stage.BLOCK for each in cells):
        message = f"of the cells that were asked for and may block, all {len(left)} were left to the night"
        hint = "give it more budget_minutes, or less to ask for"
        yield Problem("E-gate-none-may-block", "", message, Weight.UNDECIDED, hint)


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
