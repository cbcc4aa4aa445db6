"""Bring the issues on GitHub in line with a night, also when two runs do so at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from harness.github.api import GitHub, UnclearOutcome
from harness.github.issue_plan import Act, Step, first_of, plan_issues
from harness.github.issue_text import duplicate_body
from harness.github.night import Night

LABEL = "moe-regression"
_TRIES = 3
_FIELDS = {
    Act.UPDATE: {},
    Act.REOPEN: {"state": "open", "state_reason": "reopened"},
    Act.CLOSE: {"state": "closed", "state_reason": "completed"},
    Act.DUPLICATE: {"state": "closed", "state_reason": "not_planned"},
}


def update_issues(
    night: Night, github: GitHub, *, label: str, run: str, most_new: int, tell: Callable[[Step], None]
) -> list[Step]:
    """Open, update, reopen and close. Done twice it does nothing the second time.

    Args:
        night: What was measured.
        github: The repository.
        label: What our issues are found by: only who may write to the repository can set it.
        run: Markdown that names the run.
        most_new: As of `plan_issues`.
        tell: Called with each step once it is done: an error later takes nothing back.

    Raises:
        BadInput: If GitHub refuses.
        Infrastructure: If it does not answer.
    """
    done: list[Step] = []

    def finish(step: Step) -> None:
        done.append(step)
        tell(step)

    for step in plan_issues(night, github.issues(label), run, most_new):
        finish(_do(step, github, label))
    opened = [step for step in done if step.act is Act.OPEN]
    if opened:
        _yield_to_earlier(opened, github, label, finish)
    return done


def _do(step: Step, github: GitHub, label: str) -> Step:
    if step.act is Act.OPEN:
        return replace(step, number=_open(step, github, label))
    if step.act in _FIELDS:
        github.edit_issue(step.number, body=step.body, **_FIELDS[step.act])
    return step


def _open(step: Step, github: GitHub, label: str) -> int:
    """Open one. Where no answer came, look whether it is there before it is asked for again."""
    for _ in range(_TRIES - 1):
        try:
            return github.open_issue(step.title, step.body, label)
        except UnclearOutcome:
            there = first_of(step.key, github.issues(label))
            if there:
                return there.number
    return github.open_issue(step.title, step.body, label)


def _yield_to_earlier(opened: list[Step], github: GitHub, label: str, finish: Callable[[Step], None]) -> None:
    """Another run may have opened the same in the meantime: the lowest number stays, each run closes its own."""
    now = github.issues(label)
    for step in opened:
        first = first_of(step.key, now)
        if first and first.number < step.number:
            duplicate = replace(step, act=Act.DUPLICATE, body=duplicate_body(first.number))
            finish(_do(duplicate, github, label))
