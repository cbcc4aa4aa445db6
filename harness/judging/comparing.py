"""Two sides of measurements that somebody else made: row by row slower, faster, alike, unknown, or not comparable.

The two positions are the contrast: whatever lies on the right is compared with what lies on the left. What the rows
themselves say decides which rows are the same question (``comparing_cells``) and in what they differ beside it; how far
their processes can be trusted is in ``comparing_evidence``.

Inside the margin on both sides (two one-sided tests at 0.05) a row is *equivalent*; otherwise, different from 1 at
``alpha``, *regressed* or *improved*; otherwise *inconclusive*. This is one look at data that are all there: no
sequential rule, and no correction for the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from harness.domain.canonical import id_part
from harness.domain.imported import ImportedRow, ImportProblem
from harness.domain.spread import Spread
from harness.domain.verdict import Estimate
from harness.domain.words import Throughput
from harness.judging.comparing_cells import (
    BUILD,
    FACTORS,
    MACHINE,
    Alone,
    Cell,
    Difference,
    Meeting,
    Unknown,
    aligned,
    build_word,
    differences,
    model_word,
    stated_once,
)
from harness.judging.comparing_evidence import Evidence
from harness.judging.comparing_processes import Reduction
from harness.judging.comparing_sessions import movement, relative, with_controls
from harness.judging.effects import ASSUMED, Component, Effect, bounded_exp, p_text

DEFAULT_PROCESS_SPREAD = 0.035
"""Standard deviation between processes of an ordinary machine (3.4 % in the project's noise model, rounded up)."""
_EQUIVALENCE_ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Settings:
    """How strictly is judged, and what is known beforehand.

    Attributes:
        alpha: Two-sided error rate of "different", for each row; the interval holds 1 - alpha.
        margin: Relative change that is still equivalent.
        process_spread: Standard deviation of one process's speed, relative, where the files do not tell.
        spread_source: Where that is from, in words.
        known: Spreads of workloads that are known better.
        factor: What is meant to differ: ``build``, ``model``, ``machine`` or a setting; empty: found from the rows.
    """

    alpha: float = 0.01
    margin: float = 0.05
    process_spread: float = DEFAULT_PROCESS_SPREAD
    spread_source: str = "the default, an ordinary machine's"
    known: tuple[Spread, ...] = ()
    factor: str = ""

    def spread_of(self, workload: str) -> tuple[Component, str]:
        """Variance of one process's log speed, and where it is from."""
        known = next((spread for spread in self.known if spread.workload == workload), None)
        if known:
            return Component(known.quad_sd**2, known.df), known.source
        return Component(self.process_spread**2, ASSUMED), self.spread_source


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two positions.

    Attributes:
        rows: Rows that can be used, in the order of files and rows.
        problems: What in its files could not be used.
    """

    rows: tuple[ImportedRow, ...]
    problems: tuple[ImportProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is said of one row of the baseline and one of the candidate.

    Attributes:
        case: Id made of what the rows say; empty for a row that could not be read.
        workload: The workload's name; empty where a broken row does not tell.
        settings: What tells the row from its neighbours, for tables.
        baseline: Speed of the baseline, tokens per second; ``None`` where it has no such row.
        candidate: Speed of the candidate.
        ratio: Candidate over baseline with interval and p-value; ``None`` where it is not judged.
        verdict: The word.
        why: The deciding figure in words, or why there is none.
        notes: What has to be known beside it.
        said_once: Names of settings that only one side says anything about.
        is_relative: Whether the ratio is not that of the two speeds, but relative to baselines beside them.
    """

    case: str
    workload: str
    settings: str
    baseline: float | None
    candidate: float | None
    ratio: Estimate | None
    verdict: Throughput
    why: str
    notes: tuple[str, ...] = ()
    said_once: tuple[str, ...] = ()
    is_relative: bool = False

    @property
    def reason(self) -> str:
        """Everything in one line."""
        return "; ".join([self.why, *self.all_notes()])

    def all_notes(self, most_listed: int | None = None) -> list[str]:
        """The notes, with the settings that only one side says.

        Args:
            most_listed: How many of these to name; all by default.
        """
        if not self.said_once:
            return [*self.notes]
        listed = ", ".join(self.said_once[:most_listed])
        left = len(self.said_once[most_listed:]) if most_listed else 0
        more = f" and {left} more, see --format json" if left else ""
        return [*self.notes, f"said by one side only, so not compared: {listed}{more}"]


def compare_sides(baseline: Side, candidate: Side, settings: Settings) -> list[Comparison]:
    """Judge everything that two sides have in common, and name the rest.

    Args:
        baseline: The left position.
        candidate: The right one.
        settings: How strictly is judged.

    Returns:
        A comparison for each pair of cells that meet, then what cannot be compared, each row once.
    """
    ours, theirs = ([row for row in side.rows if not _is_control(row)] for side in (baseline, candidate))
    meetings, alone = aligned(ours, theirs)
    judged = [_judged(meeting, (baseline, candidate), settings) for meeting in meetings]
    lost = [problem for side in (baseline, candidate) for problem in side.problems if problem.row_lost]
    return [*judged, *map(_alone, alone), *map(_lost, lost)]


def _judged(meeting: Meeting, sides: tuple[Side, Side], settings: Settings) -> Comparison:
    beside = with_controls(meeting, [side.rows for side in sides])
    lost = sum(len(cell.rows) for cell in meeting)
    meeting, controls = beside or (meeting, [])
    lost -= sum(len(cell.rows) for cell in meeting)
    ours, theirs = meeting
    found = differences(ours, theirs)
    contrast = _contrast(found, settings)
    reduction = Reduction.of((*ours.rows, *theirs.rows))
    blank = Comparison(
        case=_case(ours, theirs, contrast),
        workload=ours.first.workload,
        settings=_shown(ours, theirs, contrast),
        baseline=_speed(ours, reduction),
        candidate=_speed(theirs, reduction),
        ratio=None,
        verdict=Throughput.NOT_COMPARABLE,
        why="",
    )
    machines = [difference.text for difference in found if difference.factor == MACHINE]
    if machines and settings.factor != MACHINE:
        return replace(blank, why=f"no comparable baseline: another machine, {', '.join(machines)}")
    evidence = _evidence(meeting, controls, reduction, settings)
    if evidence is None:
        return replace(blank, why="a process has no repetition left after its warm-up")
    notes = [*_session_notes(meeting, controls, reduction, lost), *_contrast_notes(found, settings)]
    told = replace(blank, said_once=stated_once(ours, theirs), is_relative=bool(controls))
    unknown = Unknown.of(ours, theirs)
    if unknown.names:
        notes.append(f"perhaps confounded: {unknown}: this may be what differs")
    return _claimed(_decided(told, evidence, notes, settings), unknown)


def _claimed(judged: Comparison, unknown: Unknown) -> Comparison:
    """A verdict with what may be behind it instead of the contrast, in its own line: people quote that one alone."""
    if not unknown.names or judged.verdict is Throughput.INCONCLUSIVE:
        return judged
    return replace(judged, why=f"{judged.why}; perhaps confounded: one side only says {', '.join(unknown.names)}")


def _evidence(
    meeting: Meeting, controls: list[list[ImportedRow]], reduction: Reduction, settings: Settings
) -> Evidence | None:
    """The processes of both cells, relative to their controls where they have some."""
    rows = [cell.rows for cell in meeting]
    spread, source = settings.spread_of(meeting[0].first.workload)
    if controls:
        sides = [relative(side, others, reduction) for side, others in zip(rows, controls, strict=True)]
        spread, source = spread.scaled(2), f"{source}; of a process and its baseline"
    else:
        sides = [[process for row in side if (process := reduction.process(row))] for side in rows]
    if [len(side) for side in sides] != [len(side) for side in rows]:
        return None
    return Evidence(tuple(sides[0]), tuple(sides[1]), reduction, spread, source)


def _decided(blank: Comparison, evidence: Evidence, beside: Sequence[str], settings: Settings) -> Comparison:
    effect = evidence.effect()
    p = effect.p_two_sided()
    low, high = effect.interval(settings.alpha)
    word = _word(effect, p, settings)
    return replace(
        blank,
        ratio=Estimate(effect.ratio, low, high, evidence.count, "ratio", p),
        verdict=word,
        why=_why(effect, p, word, settings),
        notes=(*evidence.notes(settings.alpha), *beside),
    )


def _word(effect: Effect, p: float, settings: Settings) -> Throughput:
    if effect.is_within(settings.margin, _EQUIVALENCE_ALPHA):
        return Throughput.EQUIVALENT
    if p < settings.alpha:
        return Throughput.IMPROVED if effect.mean > 0 else Throughput.REGRESSED
    return Throughput.INCONCLUSIVE


def _why(effect: Effect, p: float, word: Throughput, settings: Settings) -> str:
    figure, margin = f"{100 * (effect.ratio - 1):+.1f} %, {p_text(p)}", f"{100 * settings.margin:.3g} %"
    if word is Throughput.EQUIVALENT:
        certain = ", though a change is certain" if p < settings.alpha else ""
        return f"{figure}, inside the margin of {margin} on both sides{certain}"
    if word is Throughput.INCONCLUSIVE:
        return f"{figure}, neither different at {settings.alpha:g} nor shown to be inside the margin of {margin}"
    return f"{figure}, different at {settings.alpha:g}"


def _alone(entry: Alone) -> Comparison:
    cell = entry.cell
    speed = _speed(cell, Reduction.of(cell.rows))
    return Comparison(
        case=_case(cell, cell, frozenset()),
        workload=cell.first.workload,
        settings=_shown(cell, cell, frozenset()),
        baseline=speed if entry.is_baseline else None,
        candidate=None if entry.is_baseline else speed,
        ratio=None,
        verdict=Throughput.NOT_COMPARABLE,
        why=f"{entry.why} ({cell.first.where})",
    )


def _lost(problem: ImportProblem) -> Comparison:
    return Comparison("", problem.workload, "", None, None, None, Throughput.NOT_COMPARABLE, f"{problem}")


def _speed(cell: Cell, reduction: Reduction) -> float | None:
    """The geometric mean of the processes, of which the ratio is made too."""
    found = [process.log_tps for row in cell.rows if (process := reduction.process(row))]
    return bounded_exp(fmean(found)) if found else None


# ---- what has to be known beside the figure --------------------------------------------------------------------------


def _contrast_notes(found: Sequence[Difference], settings: Settings) -> list[str]:
    """What the contrast is, and what differs beside it."""
    if not found:
        return ["nothing that the rows say differs: only their position is the contrast"]
    factors = _contrast(found, settings)
    contrast = [difference.text for difference in found if difference.factor in factors]
    beside = [difference for difference in found if difference.factor not in factors]
    sure = [difference.text for difference in beside if not difference.is_open]
    unsure = [difference.text for difference in beside if difference.is_open]
    notes = [f"contrast: {', '.join(contrast)}"] if contrast else []
    if len(factors) > 1:
        notes = [f"confounded: {', '.join(contrast)}, all at once"]
    if settings.factor and not contrast:
        notes = [f"the rows do not say that the declared {settings.factor} differs"]
    if sure:
        notes.append(f"confounded: {', '.join(sure)}")
    if unsure:
        notes.append(f"perhaps confounded: {', '.join(unsure)}; auto leaves the choice to the build")
    return notes


def _contrast(found: Sequence[Difference], settings: Settings) -> frozenset[str]:
    """What is meant to differ: as declared; else the build where it differs; else everything that surely does."""
    if settings.factor:
        return frozenset({settings.factor})
    sure = frozenset(difference.factor for difference in found if not difference.is_open)
    factors = sure or frozenset(difference.factor for difference in found)
    return frozenset({BUILD}) if BUILD in factors else factors


def _session_notes(meeting: Meeting, controls: list[list[ImportedRow]], reduction: Reduction, lost: int) -> list[str]:
    """Of two journals of ours: what the ratio is relative to."""
    if not all(cell.first.case for cell in meeting):
        return []
    if not controls:
        lacking = "no baseline arm of the same bytes was measured beside it in both"
        return [f"two sessions: what changed on the machine between them is a part of the ratio, for {lacking}"]
    moved = f"{100 * (movement(controls, reduction) - 1):+.1f} %"
    told = (
        f"two sessions: the ratio is relative to the baseline arm beside it, the same bytes both times, moved {moved}"
    )
    processes = f"{lost} process{'' if lost == 1 else 'es'} left out"
    return [told, *([f"{processes}: no baseline was measured beside it in its block"] if lost else [])]


def _is_control(row: ImportedRow) -> bool:
    """A baseline arm in a journal of ours: it is there for the arm beside it."""
    return bool(row.case) and row.control == row.case


# ---- names -----------------------------------------------------------------------------------------------------------


def _case(ours: Cell, theirs: Cell, contrast: frozenset[str]) -> str:
    """An id like those of our own cases, of the class ``imported``."""
    if ours.first.case:
        return ours.first.case
    models = dict.fromkeys(id_part(model_word(cell.first.model)) for cell in (ours, theirs))
    arms = dict.fromkeys("+".join([_arm(cell), *_setting_words(cell, contrast)]) for cell in (ours, theirs))
    return f"throughput/{'..'.join(models)}/{'..'.join(arms)}/{id_part(ours.first.workload)}@imported"


def _arm(cell: Cell) -> str:
    build = cell.first.build
    return id_part(" ".join(part for part in (build.fork, build.commit) if part) or build_word(build))


def _setting_words(cell: Cell, contrast: frozenset[str]) -> list[str]:
    """What tells a row from its neighbours, then what is meant to differ from the row that it meets."""
    differing = [(name, value) for name, value in cell.first.settings if name in contrast]
    shown = dict.fromkeys((*cell.axes, *differing))
    return [f"{id_part(name)}={id_part(value)}" for name, value in shown if name not in FACTORS]


def _shown(ours: Cell, theirs: Cell, contrast: frozenset[str]) -> str:
    if ours.first.label:
        return ours.first.label
    axes = [f"{name}={value}" for name, value in dict.fromkeys((*ours.axes, *theirs.axes))]
    said = dict(theirs.first.settings)
    differing = [
        f"{name}={value}:{said[name]}"
        for name, value in ours.first.settings
        if name in contrast & said.keys() and said[name] != value
    ]
    return " ".join([*axes, *differing])
