"""Cells: what several journals say of each case, one verdict each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from harness.domain.case import Case
from harness.domain.choice import LeftToNight
from harness.domain.errors import HarnessError
from harness.domain.verdict import Verdict
from harness.domain.words import Status
from harness.gating.words import Weight
from harness.planning.select import matcher
from harness.reporting.joining import lost_states
from harness.reporting.journal import JOURNAL_NAME
from harness.reporting.outcomes import badness
from harness.reporting.replay import read_begun
from harness.reporting.state import JobTry, JournalState

_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Problem:
    """Something about the input that a reader of the decision has to know.

    Attributes:
        slug: Its stable word.
        where: Journal, or file and key.
        message: What it is.
        weight: What it does to the decision.
        hint: What to do about it.
    """

    slug: str
    where: str
    message: str
    weight: Weight
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A case with its verdict.

    Attributes:
        case: The case.
        verdict: Its verdict.
        journal: The journal that it is from.
        contents: What really ran: content key by arm label.
        tried: Its job, as far as it was seen; ``None`` where planning decided it.
    """

    case: Case
    verdict: Verdict
    journal: Path
    contents: dict[str, str] = field(default_factory=dict)
    tried: JobTry | None = None

    @property
    def id(self) -> str:
        """The case's id."""
        return self.verdict.case

    @property
    def arms(self) -> tuple[str, ...]:
        """Identities of its arms, and its node class: cells that share them are about the same."""
        return (*(arm.identity for arm in self.case.arms), self.case.node_class.name)


@dataclass(frozen=True, slots=True)
class Journals:
    """Several journals, read together.

    Attributes:
        states: Those that could be read.
        cells: One for each planned case, in plan order.
        left: What was left to the night and no journal has.
        problems: What is odd about them.
    """

    states: tuple[JournalState, ...]
    cells: tuple[Cell, ...]
    left: tuple[LeftToNight, ...]
    problems: tuple[Problem, ...]

    @property
    def names(self) -> list[tuple[str, str]]:
        """Ids and names of contrasts of all that is known, for patterns."""
        planned = [(cell.id, cell.case.contrast) for cell in self.cells]
        return planned + [(each.case, each.contrast) for each in self.left]


def read_journals(paths: Sequence[Path]) -> Journals:
    """Read journals; what can't be read is a problem and costs none of the others.

    Raises:
        HarnessError: If none of them can be read: what is wrong with the first.
    """
    states: list[JournalState] = []
    problems: list[Problem] = []
    first: HarnessError | None = None
    seen: set[Path] = set()
    for path in paths:
        file = (path / JOURNAL_NAME if path.is_dir() else path).resolve()
        if file in seen:
            twice = "it is given twice, and counts once"
            problems.append(Problem("E-gate-same-journal", f"{path}", twice, Weight.TOLD))
            continue
        seen.add(file)
        try:
            states.append(read_begun(path))
        except HarnessError as error:
            first = first or error
            problems.append(Problem(error.slug, error.where, error.message, Weight.BAD_INPUT, error.hint))
    if first is not None and not states:
        raise first
    return joined(states, problems)


def joined(states: Sequence[JournalState], problems: Sequence[Problem] = ()) -> Journals:
    """One verdict for each case of several journals; what shards lost between them is an error of its own."""
    told_by = [*states, *lost_states(states)]
    told = [*problems, *(problem for state in told_by for problem in _problems_of(state))]
    cells: dict[str, Cell] = {}
    doubles: dict[str, list[Cell]] = {}
    for state in told_by:
        for cell in _cells_of(state):
            known = cells.get(cell.id)
            if known is None:
                cells[cell.id] = cell
                continue
            doubles.setdefault(cell.id, [known]).append(cell)
            cells[cell.id] = max(known, cell, key=lambda each: badness(each.verdict.status))
    told += _doubles(doubles)
    told += _unlike(states)
    left = {case: each for state in states for case, each in state.left.items() if case not in cells}
    return Journals(tuple(states), tuple(cells.values()), tuple(left.values()), tuple(told))


def named_by(patterns: Iterable[str]) -> Callable[[str, str], bool]:
    """Whether a list of patterns names a cell, by its id and the name of its contrast."""
    listed = list(patterns)
    adding = [matcher(pattern) for pattern in listed if not pattern.startswith("!")]
    removing = [matcher(pattern.removeprefix("!")) for pattern in listed if pattern.startswith("!")]

    def named(case: str, contrast: str) -> bool:
        added = not adding or any(meant(case, contrast) for meant in adding)
        return added and not any(gone(case, contrast) for gone in removing)

    return named


def naming_none(patterns: Iterable[str], names: Sequence[tuple[str, str]]) -> list[str]:
    """The patterns that add cells and name none of these; none where no cell is known at all."""
    adding = [(pattern, matcher(pattern)) for pattern in patterns if not pattern.startswith("!")]
    return [pattern for pattern, meant in adding if names and not any(meant(*name) for name in names)]


def _cells_of(state: JournalState) -> Iterator[Cell]:
    contents = state.content_keys()
    for verdict in state.final_verdicts():
        planned = state.planned[verdict.case]
        yield Cell(planned.case, verdict, state.path, contents[verdict.case], state.jobs.get(planned.job))


def _problems_of(state: JournalState) -> Iterator[Problem]:
    where = f"{state.path}"
    if state.run is None:
        lost = "it does not say how its run started, so how much was planned is not known"
        hint = "give a journal.jsonl that is whole, or its folder"
        yield Problem("E-gate-no-start", where, lost, Weight.UNDECIDED, hint)
    elif len(state.planned) < state.run.cases:
        lost = f"{state.run.cases - len(state.planned)} of {state.run.cases} planned cases have no line"
        yield Problem("E-gate-plan-cut", where, lost, Weight.UNDECIDED, "run it again: what is missing is not known")
    for lost_line in state.problems:
        if lost_line.line:
            yield Problem("E-gate-lost-line", f"{where}: line {lost_line.line}", lost_line.message, Weight.TOLD)
    for told in state.joined or ():
        yield Problem("E-gate-shards", where, told, Weight.TOLD)
    if state.run is not None and not state.finished:
        message = "the run did not come to its end: what it had not decided is absent"
        yield Problem("E-gate-unfinished", where, message, Weight.TOLD)


def _doubles(doubles: dict[str, list[Cell]]) -> Iterator[Problem]:
    """Cases that several journals answer; one that could not answer on its node says nothing."""
    answered = {
        case: real
        for case, cells in doubles.items()
        if len(real := [cell for cell in cells if cell.verdict.status is not Status.NOT_APPLICABLE]) > 1
    }
    unlike = [case for case, cells in answered.items() if len({cell.case.key for cell in cells}) > 1]
    alike = [case for case in answered if case not in unlike]
    if unlike:
        message = f"{_listed(unlike)} not the same in all journals: other flags, builds or models under one id"
        yield Problem("E-gate-unlike-cells", "", message, Weight.UNDECIDED, "give journals of one plan")
    if alike:
        message = f"{_listed(alike)} in several journals; of each the worst verdict counts"
        yield Problem("E-gate-double", "", message, Weight.TOLD, "leave older journals out")


def _unlike(states: Sequence[JournalState]) -> Iterator[Problem]:
    """Journals that do not belong to one night: judged by other policies, or arms that mean something else."""
    begun = [state for state in states if state.run is not None]
    for one, other in combinations(begun, 2):
        where = f"{one.path} and {other.path}"
        if one.policy != other.policy:
            message = f"they are judged by other policies: {_difference(one, other)}"
            yield Problem("E-gate-unlike-policies", where, message, Weight.UNDECIDED, "give journals of one matrix")
        if one.name == other.name and (labels := _unlike_arms(one, other)):
            message = f"{_listed(labels)} something else in each: other flags, builds or models under one name"
            yield Problem("E-gate-unlike-arms", where, message, Weight.UNDECIDED, "give journals of one night")


def _difference(one: JournalState, other: JournalState) -> str:
    names = ("alpha", "margin", "ceiling_tps", "inconclusive", "auto_margin", "trades")
    differ = [name for name in names if getattr(one.policy, name) != getattr(other.policy, name)]
    return ", ".join(
        f"{name} {getattr(one.policy, name)} and {getattr(other.policy, name)}" if name != "trades" else "their trades"
        for name in differ
    )


def _unlike_arms(one: JournalState, other: JournalState) -> list[str]:
    ours, theirs = _identities(one), _identities(other)
    return sorted(
        f"{label} of {model}"
        for label, model in ours.keys() & theirs.keys()
        if ours[label, model].isdisjoint(theirs[label, model])
    )


def _identities(state: JournalState) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for planned in state.planned.values():
        for arm in planned.case.arms:
            found.setdefault((arm.label, arm.model.name), set()).add(arm.identity)
    return found


def _listed(names: Sequence[str]) -> str:
    """Some names with their verb."""
    shown = ", ".join(names[:_MOST_NAMED])
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{shown}{more} {'is' if len(names) == 1 else 'are'}"
