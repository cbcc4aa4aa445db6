"""Which rows of two sides are the same question, and in what they differ beside it.

Rows that are alike in everything they say are processes of one *cell*. A cell of the baseline meets a cell of the
candidate where the workload and the model are the same and the *axes* agree: an axis is what both sides say in every
cell and what takes several values inside a side (``-fa 0,1``), for there the file itself tells its rows apart by it.
What is constant inside each side and differs between them is a difference: the contrast, or what confounds it. What
only one side says cannot be compared; where such a column takes several values, each of its cells meets the other
side's. No list of columns is kept anywhere: whatever a row says counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from harness.domain.imported import ImportedBuild, ImportedModel, ImportedRow

_SAME_PARAMETERS = 0.01
_GIB = 2**30
_ROUNDED = 0.006
"""Tables print sizes with two decimals."""
_SHORTEST_COMMIT = 6
_LEFT_OPEN = "auto"

_PLACES_EXPERTS = ("ot", "ncmoe")
_DECIDES = (*_PLACES_EXPERTS, "ngl", "sm", "ts", "b", "ub", "t", "fa", "ctk", "ctv", "mmap", "rtr")
"""Settings by which the same build computes elsewhere or otherwise: silence about one is no agreement."""
_NOT_ASKED = {("ncmoe", "0"), ("rtr", "0")}
"""What a build that does not have the setting does, too."""

BUILD, MODEL, MACHINE = "build", "model", "machine"
FACTORS = (BUILD, MODEL, MACHINE)
"""What rows can differ in beside their settings."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Rows that are alike in all they say, but for when they were measured.

    Attributes:
        rows: Its processes, in order.
        axes: The settings and other columns by which its file tells it from its neighbours, to be shown.
    """

    rows: tuple[ImportedRow, ...]
    axes: tuple[tuple[str, str], ...] = ()

    @property
    def first(self) -> ImportedRow:
        """Any of the rows, for what they have in common."""
        return self.rows[0]

    @property
    def columns(self) -> dict[str, str]:
        """What cells are told apart by: settings, quantization and fork; unknown ones are left out."""
        fork = self.first.build.fork
        found = {**dict(self.first.settings), MODEL: self.first.model.quant, BUILD: fork.value if fork else ""}
        return {name: value for name, value in found.items() if value}

    @property
    def details(self) -> dict[str, str]:
        """What tells cells apart only where the columns do not: they change with every build and file."""
        found = {
            "commit": self.first.build.commit,
            "build number": str(self.first.build.number or ""),
            "backends": self.first.build.backends,
            "file": self.first.model.file,
            **dict(self.first.machine),
        }
        return {name: value for name, value in found.items() if value}


@dataclass(frozen=True, slots=True)
class Alone:
    """A cell that meets no other.

    Attributes:
        cell: The cell.
        is_baseline: Whose it is.
        why: Why nothing of the other side can be compared with it.
    """

    cell: Cell
    is_baseline: bool
    why: str


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that both sides say, and not alike.

    Attributes:
        factor: ``build``, ``model``, ``machine`` or the name of a setting.
        text: In words, baseline first.
        is_open: Whether one side left the choice to the build, so that both may have run alike.
    """

    factor: str
    text: str
    is_open: bool = False


Meeting = tuple[Cell, Cell]


def aligned(baseline: Sequence[ImportedRow], candidate: Sequence[ImportedRow]) -> tuple[list[Meeting], list[Alone]]:
    """Find the cells that can be compared.

    Args:
        baseline: Rows of one side.
        candidate: Rows of the other.

    Returns:
        Pairs of cells, and the cells that have no partner, in the order of the rows.
    """
    ours, theirs = _cells(baseline), _cells(candidate)
    by_case = all(cell.first.case for cell in (*ours, *theirs))
    meetings: list[Meeting] = []
    alone: list[Alone] = []
    for load in dict.fromkeys(cell.first.workload for cell in (*ours, *theirs)):
        here, there = ([cell for cell in side if cell.first.workload == load] for side in (ours, theirs))
        if not here or not there:
            alone += _no_workload(here, there, ours, theirs)
            continue
        for mine, other in _by_case(here, there) if by_case else _by_model(here, there):
            met, lonely = _matched(mine, other) if mine and other else ([], _no_model(mine, other, here, there))
            meetings += met
            alone += lonely
    return meetings, alone


def differences(baseline: Cell, candidate: Cell) -> tuple[Difference, ...]:
    """Everything that both cells say and not alike."""
    ours, theirs = baseline.first, candidate.first
    forks = {name for name, _ in ours.settings if says_fork(ours, name) and says_fork(theirs, name)}
    said = ({name: value for name, value in row.settings if name not in forks} for row in (ours, theirs))
    return (
        *_build_difference(ours.build, theirs.build),
        *_model_difference(ours.model, theirs.model),
        *_listed(MACHINE, dict(ours.machine), dict(theirs.machine)),
        *_listed("", *said),
    )


def says_fork(row: ImportedRow, column: str) -> bool:
    """Whether a column that the author added only says again which fork the build is of."""
    return row.build.fork is not None and dict(row.settings).get(column) == row.build.fork


def stated_once(baseline: Cell, candidate: Cell) -> tuple[str, ...]:
    """Names of the settings that only one of the cells says anything about, those that decide most first."""
    names = dict(baseline.first.settings).keys() ^ dict(candidate.first.settings).keys()
    first = Unknown.of(baseline, candidate).names
    return tuple(sorted(names, key=lambda name: (first.index(name) if name in first else len(first), name)))


@dataclass(frozen=True, slots=True)
class Unknown:
    """What decides where or how one side computed and the other keeps silent about.

    Silence is no default: tables leave out what ``-ot`` was.

    Attributes:
        by_baseline: What only the baseline says.
        by_candidate: What only the candidate says.
    """

    by_baseline: tuple[str, ...]
    by_candidate: tuple[str, ...]

    @classmethod
    def of(cls, baseline: Cell, candidate: Cell) -> Unknown:
        """What two cells that meet leave open."""
        return cls(_deciding(baseline, candidate), _deciding(candidate, baseline))

    @property
    def names(self) -> tuple[str, ...]:
        """All of it."""
        return (*self.by_baseline, *self.by_candidate)

    def __str__(self) -> str:
        """Who says it and what nobody knows, in words."""
        sides = (("baseline", self.by_baseline, "candidate"), ("candidate", self.by_candidate, "baseline"))
        told = []
        for sayer, names, silent in sides:
            experts = f" (where experts computed is not known of the {silent})" if {*_PLACES_EXPERTS} & {*names} else ""
            told += [f"only the {sayer} says {', '.join(names)}{experts}"] if names else []
        return "; ".join(told)


def _deciding(cell: Cell, silent: Cell) -> tuple[str, ...]:
    said = {name for name, _ in set(cell.first.settings) - _NOT_ASKED} - dict(silent.first.settings).keys()
    of_model = ["type of the model"] if cell.first.model.quant and not silent.first.model.quant else []
    return (*(name for name in _DECIDES if name in said), *of_model)


def build_word(build: ImportedBuild) -> str:
    """A build in a few words."""
    number = f"({build.number})" if build.number else ""
    parts = [build.fork or "", build.commit, number, build.backends]
    return " ".join(part for part in parts if part) or "a build"


def model_word(model: ImportedModel) -> str:
    """A model in a few words."""
    size = f"{model.n_params / 1e9:.2f} B" if model.n_params else ""
    parts = [model.architecture, size, model.quant]
    return " ".join(part for part in parts if part) or model.file or "a model"


# ---- cells -----------------------------------------------------------------------------------------------------------


def _cells(rows: Iterable[ImportedRow]) -> list[Cell]:
    groups: dict[object, list[ImportedRow]] = {}
    for row in rows:
        key = (row.workload, row.settings, row.build, row.model, row.machine, row.case)
        groups.setdefault(key, []).append(row)
    return [Cell(tuple(group)) for group in groups.values()]


def _by_case(ours: list[Cell], theirs: list[Cell]) -> list[tuple[list[Cell], list[Cell]]]:
    groups: dict[str, tuple[list[Cell], list[Cell]]] = {}
    for side, cells in enumerate((ours, theirs)):
        for cell in cells:
            groups.setdefault(cell.first.case, ([], []))[side].append(cell)
    return list(groups.values())


def _by_model(ours: list[Cell], theirs: list[Cell]) -> list[tuple[list[Cell], list[Cell]]]:
    """Cells of the same model, whatever its quantization and file."""
    groups: dict[ImportedModel, tuple[list[Cell], list[Cell]]] = {}
    for side, cells in enumerate((ours, theirs)):
        for cell in cells:
            model = cell.first.model
            known = next((other for other in groups if _same_model(model, other)), model)
            groups.setdefault(known, ([], []))[side].append(cell)
    return list(groups.values())


def _same_model(ours: ImportedModel, theirs: ImportedModel) -> bool:
    if ours.architecture and theirs.architecture and ours.architecture != theirs.architecture:
        return False
    most = max(ours.n_params, theirs.n_params)
    return not ours.n_params or not theirs.n_params or abs(ours.n_params - theirs.n_params) <= _SAME_PARAMETERS * most


# ---- who meets whom --------------------------------------------------------------------------------------------------


def _matched(ours: list[Cell], theirs: list[Cell]) -> tuple[list[Meeting], list[Alone]]:
    axes = _axes(ours, theirs)
    groups: dict[tuple[str, ...], tuple[list[Cell], list[Cell]]] = {}
    for side, cells in enumerate((ours, theirs)):
        for cell in cells:
            groups.setdefault(_key(cell, axes), ([], []))[side].append(cell)
    meetings: list[Meeting] = []
    alone: list[Alone] = []
    for key, (here, there) in groups.items():
        shown = tuple(zip(axes, key, strict=True))
        meetings += product(_with_axes(here, shown), _with_axes(there, shown))
        if not here or not there:
            wanted = ", ".join(f"{name}={value}" for name, value in shown)
            why = f"the {_other(bool(here))} has no row with {wanted}"
            alone += [Alone(cell, bool(here), why) for cell in _with_axes([*here, *there], shown)]
    return meetings, alone


def _axes(ours: list[Cell], theirs: list[Cell]) -> list[str]:
    """Names of the columns on which partners have to agree."""
    columns = _varying([cell.columns for cell in ours], [cell.columns for cell in theirs])
    groups = ({tuple(cell.columns[name] for name in columns) for cell in side} for side in (ours, theirs))
    if [len(group) for group in groups] == [len(ours), len(theirs)]:
        return columns
    details = _varying([cell.details for cell in ours], [cell.details for cell in theirs])
    return columns + [name for name in details if _values(ours, name) & _values(theirs, name)]


def _varying(ours: Sequence[Mapping[str, str]], theirs: Sequence[Mapping[str, str]]) -> list[str]:
    everywhere = set.intersection(*(set(said) for said in (*ours, *theirs)))
    return [
        name for name in sorted(everywhere) if any(len({said[name] for said in side}) > 1 for side in (ours, theirs))
    ]


def _values(cells: list[Cell], name: str) -> set[str]:
    return {cell.details[name] for cell in cells}


def _key(cell: Cell, axes: Sequence[str]) -> tuple[str, ...]:
    said = {**cell.details, **cell.columns}
    return tuple(said[name] for name in axes)


def _with_axes(
    cells: list[Cell], shown: tuple[tuple[str, str], ...] = (), among: Sequence[Cell] | None = None
) -> list[Cell]:
    """The cells with what to show of them: the axes, and what else tells them from their neighbours.

    Args:
        cells: The cells.
        shown: Axes that they have in common.
        among: Their neighbours; by default each other's.
    """
    said = [{**cell.details, **cell.columns} for cell in (cells if among is None else among)]
    names = sorted({name for one in said for name in one if len({other.get(name) for other in said}) > 1})
    told = [{**cell.details, **cell.columns} for cell in cells]
    return [
        Cell(cell.rows, (*shown, *((name, one[name]) for name in names if name in one and name not in dict(shown))))
        for cell, one in zip(cells, told, strict=True)
    ]


# ---- who meets nobody ------------------------------------------------------------------------------------------------


def _no_workload(here: list[Cell], there: list[Cell], ours: list[Cell], theirs: list[Cell]) -> list[Alone]:
    other, mine = theirs if here else ours, (here or there)[0].first
    known = ", ".join(dict.fromkeys(cell.first.workload for cell in other)) or "nothing that can be used"
    programs = {cell.first.program for cell in other}
    why = f"the {_other(bool(here))} has no {mine.workload}, it has {known}"
    if programs and mine.program not in programs:
        timed = ", ".join(sorted(programs))
        why = f"timed by {mine.program}, the {_other(bool(here))} by {timed}: these time other things, no contrast"
    return [Alone(cell, bool(here), why) for cell in _with_axes(here or there, among=ours if here else theirs)]


def _no_model(mine: list[Cell], other: list[Cell], here: list[Cell], there: list[Cell]) -> list[Alone]:
    is_baseline = bool(mine)
    cells, rest = (mine, there) if is_baseline else (other, here)
    if cells[0].first.case:
        why = f"the {_other(is_baseline)} has not measured this arm"
    else:
        known = ", ".join(dict.fromkeys(model_word(cell.first.model) for cell in rest))
        why = f"another model: {model_word(cells[0].first.model)}, the {_other(is_baseline)} has {known}"
    return [Alone(cell, is_baseline, why) for cell in _with_axes(cells, among=here if is_baseline else there)]


def _other(is_baseline: bool) -> str:
    return "candidate" if is_baseline else "baseline"


# ---- differences -----------------------------------------------------------------------------------------------------


def _build_difference(ours: ImportedBuild, theirs: ImportedBuild) -> Iterator[Difference]:
    pairs = [(ours.fork, theirs.fork), (ours.number, theirs.number), (ours.backends, theirs.backends)]
    if _commits_differ(ours.commit, theirs.commit) or any(a and b and a != b for a, b in pairs):
        yield Difference(BUILD, f"build differs ({build_word(ours)} v {build_word(theirs)})")
    elif ours.content and theirs.content and ours.content != theirs.content:
        yield Difference(BUILD, f"what ran differs (content {ours.content[:12]} v {theirs.content[:12]})")


def _commits_differ(ours: str, theirs: str) -> bool:
    """Commits are shortened to unlike lengths."""
    if min(len(ours), len(theirs)) < _SHORTEST_COMMIT:
        return bool(ours and theirs and ours != theirs)
    return not (ours.startswith(theirs) or theirs.startswith(ours))


def _model_difference(ours: ImportedModel, theirs: ImportedModel) -> Iterator[Difference]:
    words = [(ours.quant, theirs.quant), (ours.file, theirs.file)]
    shown = [f"{a} v {b}" for a, b in words if a and b and a != b]
    if not shown and ours.size_bytes and theirs.size_bytes and _sizes_differ(ours.size_bytes, theirs.size_bytes):
        shown = [f"{ours.size_bytes / _GIB:.2f} v {theirs.size_bytes / _GIB:.2f} GiB"]
    if shown:
        yield Difference(MODEL, f"model file differs ({', '.join(shown)})")


def _sizes_differ(ours: float, theirs: float) -> bool:
    unit = _GIB if min(ours, theirs) >= _GIB else _GIB / 1024
    return abs(ours - theirs) > _ROUNDED * unit


def _listed(factor: str, ours: Mapping[str, str], theirs: Mapping[str, str]) -> Iterator[Difference]:
    for name in sorted(ours.keys() & theirs.keys()):
        if ours[name] != theirs[name]:
            is_open = _LEFT_OPEN in {ours[name], theirs[name]}
            yield Difference(factor or name, f"{name} differs ({ours[name]} v {theirs[name]})", is_open)
