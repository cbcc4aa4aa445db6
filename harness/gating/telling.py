"""What a decision has to tell, in its order, whatever it is printed as: one screen, worst first."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.domain.choice import Choice, LeftToNight, WhyLeft
from harness.gating.cells import Problem
from harness.gating.deciding import Decision
from harness.gating.effects import Judged
from harness.gating.waiving import State, Waiver, waiver_text
from harness.gating.words import Effect, Finding, Weight
from harness.reporting.plain_words import between, change, count

_TOLD = (Effect.BLOCK, Effect.UNDECIDED, Effect.WARN)
_WHY = {
    WhyLeft.PATHS: "no changed path asks for them",
    WhyLeft.TIME: "the budget has no room for them",
    WhyLeft.UNDECIDABLE: "their budget could not decide them",
}
_MOST_PATHS = 3
_MOST_LINES = 5
_MOST_MISSED = 3


@dataclass(frozen=True, slots=True)
class Alike:
    """Cells with the same effect, finding and cause: told once.

    Attributes:
        first: The worst of them.
        more: The others.
    """

    first: Judged
    more: tuple[Judged, ...]


def is_silent(decision: Decision) -> bool:
    """Whether one line says it all: nothing changed, nothing is odd, nobody waives anything."""
    told = [each for each in decision.cells if each.effect in (*_TOLD, Effect.WAIVED) or each.traded]
    return not (told or decision.waivers or decision.problems)


def told_cells(decision: Decision) -> tuple[Alike, ...]:
    """What has an effect, worst first. Cells without a verdict for one and the same cause are told once."""
    groups: dict[tuple[object, ...], list[Judged]] = {}
    for each in decision.of(*_TOLD):
        groups.setdefault(_cause(each), []).append(each)
    return tuple(Alike(cells[0], tuple(cells[1:])) for cells in groups.values())


def other_lines(decision: Decision) -> Iterator[str]:
    """What else there is: trades, shadow findings, all waivers, what was left to the night, odd journals."""
    yield from _at_most(
        [f"accepted: {each.cell.id}: {gist(each)}; {each.traded}" for each in decision.cells if each.traded], "accepted"
    )
    shadow = [each for each in decision.of(Effect.SHADOW) if each.finding is not None]
    if shadow:
        counts = Counter(each.finding for each in shadow if each.finding is not None)
        kinds = ", ".join(f"{number} {finding}" for finding, number in counts.items())
        yield f"in shadow, without effect: {kinds} (--format json has them)"
    yield from map(waiver_line, decision.waivers)
    yield from left_lines(decision.left)
    if decision.choice is not None:
        yield from choice_lines(decision.choice)
    yield from _at_most([problem_line(each) for each in decision.weighing(Weight.TOLD)], "journals")


def _at_most(lines: Sequence[str], about: str) -> Iterator[str]:
    """The first of some lines, and how many more there are: a damaged journal must not fill the screen."""
    yield from lines[:_MOST_LINES]
    if len(lines) > _MOST_LINES:
        yield f"{about}: and {len(lines) - _MOST_LINES} more, --format json has all"


def gist(each: Judged) -> str:
    """A finding in a few words: the change with its bounds where there is one, else the reason's beginning."""
    ratio = each.cell.verdict.estimate
    name = each.cell.case.workload_name
    if ratio is None or ratio.unit != "ratio" or each.cell.verdict.throughput is None:
        return each.reason
    if each.finding is Finding.INCONCLUSIVE:
        return f"{name} not decided: {between(ratio.low, ratio.high)}"
    return f"{name} {change(ratio.value)} ({between(ratio.low, ratio.high)})"


def why_stage(each: Judged) -> str:
    """The stage, with why, as a sentence."""
    return f"stage {each.staged.stage} ({each.staged.why})"


def label_text(each: Judged) -> str:
    """What earlier labels say of this very alert."""
    if each.label is None:
        return f"alert {each.alert}, not labelled" if each.alert else ""
    return f"alert {each.alert}, labelled {'true' if each.label else 'false'}"


def next_commands(each: Judged) -> dict[str, str]:
    """What to do about a cell: commands, by what they are for."""
    case, journal = shlex.quote(each.cell.id), shlex.quote(f"{each.cell.journal}")
    commands = {"why": f"moe-harness explain {case} {journal}", "again": f"moe-harness replay {case} {journal}"}
    if each.finding is Finding.ABSENT:
        commands["go on"] = f"pytest -m moe --matrix=MATRIX --moe-resume={journal}"
    return commands


def waiver_line(waiver: Waiver) -> str:
    """A waiver, and what became of it."""
    what = f"waiver of {', '.join(waiver.entry.cells)} by {waiver_text(waiver.entry)}"
    if waiver.state is State.EXPIRED:
        return f"EXPIRED {what}: not applied" + (f", {count(len(waiver.cases), 'cell')} had it" if waiver.cases else "")
    told = [", ".join(waiver.cases)] if waiver.cases else []
    told += [f"not applied to {each.case}: {each.why}" for each in waiver.missed[:_MOST_MISSED]]
    if len(waiver.missed) > _MOST_MISSED:
        told.append(f"nor to {len(waiver.missed) - _MOST_MISSED} more, --format json has all")
    told += [f"'{pattern}' names no cell of these journals ({hint})" for pattern, hint in waiver.unknown]
    if not waiver.cases and not waiver.missed:
        told = ["unused", *told] if told else ["unused, no finding needs it"]
    return f"{what}: {'; '.join(told)}"


def problem_line(problem: Problem) -> str:
    """A problem as an error is told."""
    place = f"{problem.where}: " if problem.where else ""
    remedy = f" ({problem.hint})" if problem.hint else ""
    return f"{problem.slug}: {place}{problem.message}{remedy}"


def weighty(decision: Decision) -> tuple[Problem, ...]:
    """Problems that decide something."""
    return decision.weighing(Weight.BLOCK, Weight.BAD_INPUT, Weight.UNDECIDED)


def left_lines(left: Sequence[LeftToNight]) -> Iterator[str]:
    """What was left to the night, a line for each cause."""
    counts = Counter(each.why for each in left)
    for why, number in counts.items():
        example = next(each for each in left if each.why is why)
        told = f"{count(number, 'cell')} left to the night: "
        yield told + (_WHY[why] if why is WhyLeft.PATHS else f"{_WHY[why]}, e.g. {example.case}: {example.reason}")


def choice_lines(choice: Choice) -> Iterator[str]:
    """By what the cells were chosen, and what the policy's table of paths does not know."""
    if choice.unlisted:
        shown = ", ".join(choice.unlisted[:_MOST_PATHS])
        more = f" and {len(choice.unlisted) - _MOST_PATHS} more" if len(choice.unlisted) > _MOST_PATHS else ""
        yield f"no [[paths]] of the policy names {shown}{more}"


def _cause(each: Judged) -> tuple[object, ...]:
    """What makes two cells alike: one crash, the outputs of two arms, one reason for having no verdict."""
    finding, verdict = each.finding, each.cell.verdict
    if finding in (Finding.BROKEN, Finding.DIFFERENT):
        return (each.effect, finding, each.cell.arms)
    if finding is Finding.CRASH:
        return (each.effect, finding, verdict.reason.partition(": ")[2])
    if finding is None or not finding.is_missing:
        return (each.cell.id,)
    if finding is Finding.ABSENT:
        return (each.effect, finding, each.cell.journal)
    return (each.effect, finding, verdict.slug, each.cell.case.kind, each.staged.why)
