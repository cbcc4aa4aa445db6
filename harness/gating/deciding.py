"""The decision: every cell's effect, and what follows from all of them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from harness.domain.choice import Choice, LeftToNight
from harness.domain.errors import EXIT_BAD_INPUT, EXIT_FINDING, EXIT_OK, EXIT_UNDECIDED
from harness.domain.words import Status
from harness.gating.cells import Journals, Problem
from harness.gating.changed import Asked
from harness.gating.effects import Effects, Judged
from harness.gating.guards import (
    is_unneeded,
    none_can_fail,
    none_may_block,
    nothing_measured,
    other_choice,
    pattern_problems,
    too_few,
)
from harness.gating.labels import Label
from harness.gating.policy import Policy
from harness.gating.waiving import Waiver
from harness.gating.words import Effect, Finding, Outcome, Stage, Weight
from harness.reporting.plain_words import count
from harness.reporting.state import JournalState

_MEASURED = (Status.PASS, Status.FAIL, Status.INCONCLUSIVE, Status.NOT_JUDGED)
_ORDER = tuple(Effect)
_FINDINGS = tuple(Finding)


@dataclass(frozen=True, slots=True)
class Decision:
    """What the gate says.

    Attributes:
        outcome: In one word.
        exit_code: Of the command.
        policy: The policy's name.
        file: Its file; empty for the default.
        states: The journals.
        cells: All cells, worst first.
        waivers: All waivers.
        left: What was left to the night.
        problems: What is odd about the input, worst first.
        choice: By what a merge gate's run chose its cases.
    """

    outcome: Outcome
    exit_code: int
    policy: str
    file: str
    states: tuple[JournalState, ...]
    cells: tuple[Judged, ...]
    waivers: tuple[Waiver, ...]
    left: tuple[LeftToNight, ...]
    problems: tuple[Problem, ...]
    choice: Choice | None = None

    def of(self, *effects: Effect) -> tuple[Judged, ...]:
        """The cells that have one of some effects."""
        return tuple(each for each in self.cells if each.effect in effects)

    def weighing(self, *weights: Weight) -> tuple[Problem, ...]:
        """The problems of some weights."""
        return tuple(problem for problem in self.problems if problem.weight in weights)


def decide(
    policy: Policy,
    journals: Journals,
    *,
    today: date,
    labels: Sequence[Label] = (),
    asked: Asked | None = None,
    file: str = "",
) -> Decision:
    """Decide.

    Args:
        policy: The policy.
        journals: What was measured.
        today: For waivers.
        labels: What earlier alerts turned out to be, oldest first.
        asked: What the changed paths ask for; ``None``: they were not told.
        file: The policy's file; empty for the default.
    """
    effects = Effects(policy, journals, labels, today)
    cells = [effects.of(cell) for cell in journals.cells]
    told = (state.choice for state in journals.states if state.choice is not None)
    choice = next(told, _asked_here(policy, asked) if asked is not None and not journals.states else None)
    problems = [
        *journals.problems,
        *pattern_problems(policy, journals, file),
        *too_few(policy, effects, journals, file),
        *other_choice(policy, journals.states, asked, file),
        *none_may_block(effects, cells, journals),
        *none_can_fail(policy, cells),
    ]
    unneeded = is_unneeded(journals, asked)
    if not unneeded and not any(cell.verdict.status in _MEASURED for cell in journals.cells):
        problems.append(nothing_measured(journals, asked))
    problems.sort(key=lambda problem: list(Weight).index(problem.weight))
    outcome, exit_code = _outcome(cells, problems, unneeded=unneeded)
    return Decision(
        outcome=outcome,
        exit_code=exit_code,
        policy=policy.name,
        file=file,
        states=journals.states,
        cells=tuple(sorted(cells, key=_worst_first)),
        waivers=effects.waivers,
        left=journals.left,
        problems=tuple(problems),
        choice=choice,
    )


def headline(decision: Decision) -> str:
    """The decision in one line."""
    if decision.outcome is Outcome.NOT_NEEDED:
        return f"not needed: {_unneeded_text(decision)}"
    parts = [f"{count(len(decision.cells), 'cell')} of {count(len(decision.states), 'journal')}"]
    counts = Counter(each.effect for each in decision.cells)
    words = {
        Effect.BLOCK: "blocking",
        Effect.UNDECIDED: "undecided",
        Effect.WARN: "to be warned of",
        Effect.WAIVED: "waived",
        Effect.SHADOW: "with findings in shadow",
    }
    parts += [f"{counts[effect]} {word}" for effect, word in words.items() if counts[effect]]
    if decision.cells and not any(counts[effect] for effect in words):
        parts.append("nothing found")
    blocking = sum(each.staged.stage is Stage.BLOCK for each in decision.cells)
    if decision.outcome is Outcome.GO and not blocking:
        parts.append("none of them may block")
    if decision.left:
        parts.append(f"{len(decision.left)} left to the night")
    wrong = len(decision.weighing(Weight.BLOCK, Weight.UNDECIDED, Weight.BAD_INPUT))
    parts += [count(wrong, "problem")] if wrong else []
    return f"{decision.outcome}: {', '.join(parts)}"


def _outcome(cells: Sequence[Judged], problems: Sequence[Problem], *, unneeded: bool) -> tuple[Outcome, int]:
    effects = {each.effect for each in cells}
    weights = {problem.weight for problem in problems}
    if Effect.BLOCK in effects or Weight.BLOCK in weights:
        return Outcome.BLOCKED, EXIT_FINDING
    if Weight.BAD_INPUT in weights:
        return Outcome.UNDECIDED, EXIT_BAD_INPUT
    if Effect.UNDECIDED in effects or Weight.UNDECIDED in weights:
        return Outcome.UNDECIDED, EXIT_UNDECIDED
    return (Outcome.NOT_NEEDED if unneeded else Outcome.GO), EXIT_OK


def _worst_first(each: Judged) -> tuple[int, int, float, str]:
    """By effect, then by finding, then the largest loss."""
    finding = _FINDINGS.index(each.finding) if each.finding is not None else len(_FINDINGS)
    ratio = each.cell.verdict.estimate
    value = ratio.value if ratio is not None and ratio.unit == "ratio" else 1.0
    return (_ORDER.index(each.effect), finding, value, each.cell.id)


def _unneeded_text(decision: Decision) -> str:
    choice = decision.choice
    if choice is None or choice.changed is None:
        return "no cell is asked for"
    unlisted = f", {len(choice.unlisted)} of them in no [[paths]] of the policy" if choice.unlisted else ""
    return f"no cell is asked for by {count(choice.changed, 'changed path')}{unlisted}"


def _asked_here(policy: Policy, asked: Asked) -> Choice:
    """What would be chosen by, where nothing was run yet."""
    minutes = policy.budget_minutes
    return Choice(policy.name, policy.digest, asked.needed, asked.changed, asked.asking, asked.unlisted, minutes)
