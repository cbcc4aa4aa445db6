"""The benchmark's tables as Markdown: which cells each needs, and how they are shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from judge_cells import MAX_QUADS, OURS, RIVALS, Cell, Ours, Task, machines
from judge_noise import PROFILES, STATED, adversaries, margin_for, quad_sd, repetition_sd
from judge_ours import KNOWN, STALE, TOO_LARGE, TOO_SMALL, UNKNOWN
from judge_traces import h200_traces, own_traces

CHANGES = (0.01, 0.02, 0.03, 0.05, 0.10)
"""Relative losses; the gain beside each is its mirror image, the inverse ratio."""

HALF = math.log(0.5)
_ONE, _TYPICAL = "quad SD 1.0%", "quad SD 3.4%"


@dataclass(frozen=True, slots=True)
class Effort:
    """How many sessions a cell has.

    Attributes:
        simulated: Cells of the noise profiles.
        targets: Cells of the targets.
        null: Cells where nothing changed and an error rate is wanted.
        seed: Of all.
    """

    simulated: int
    targets: int
    null: int
    seed: int = 1


FULL = Effort(simulated=1000, targets=10_000, null=10_000)
QUICK = Effort(simulated=40, targets=40, null=40)

Measured = Callable[[Task], Cell]
Section = Callable[[Effort, Measured], str]
"""Renders a section; the second argument gives the cell of a task."""


def slower(change: float) -> float:
    """Log ratio of a relative loss."""
    return math.log1p(-change)


def task(machine: str, way: Ours | str, effect: float, sessions: int, effort: Effort) -> Task:
    """A cell with the margin of its machine."""
    return Task(machine, way, effect, margin_for(_sd(machine)), sessions, effort.seed)


def calibration(_: Effort, __: Measured) -> str:
    """The profiles' scatter, measured, beside what was stated for the earlier simulation."""
    rows = [
        (
            profile.name,
            *(f"{100 * value:.1f}" for value in STATED[profile.name]),
            f"{100 * repetition_sd(profile, np.random.default_rng(1)):.2f}",
            f"{100 * _sd(profile.name):.2f}",
            f"{100 * margin_for(_sd(profile.name)):.0f}",
        )
        for profile in PROFILES
    ]
    head = ("profile", "stated: repetitions, %", "quads, %", "measured: repetitions, %", "quads, %", "margin, %")
    return "### The noise profiles\n\n" + _table(head, rows)


def targets(effort: Effort, measured: Measured) -> str:
    """What was to be reached, with what was."""
    rows = [
        row for ours in OURS if ours.alpha == min(o.alpha for o in OURS) for row in _target_rows(ours, effort, measured)
    ]
    head = ("at a quad SD of", "alpha", "spread", "target", "measured", "reached")
    return "### Targets\n\n" + _table(head, rows)


def _target_rows(ours: Ours, effort: Effort, measured: Measured) -> Iterable[tuple[str, ...]]:
    def cell(machine: str, effect: float) -> Cell:
        return measured(task(machine, ours, effect, effort.targets, effort))

    def row(sd: str, words: str, value: str, *, reached: bool) -> tuple[str, ...]:
        return (
            sd,
            f"{ours.alpha:g}",
            ours.knowledge.name.removeprefix("spread "),
            words,
            value,
            "yes" if reached else "**no**",
        )

    for machine, loss, share in ((_ONE, 0.02, 0.95), (_ONE, 0.03, 0.99), (_TYPICAL, 0.05, 0.95)):
        for sign, word in ((1, "loss"), (-1, "gain")):
            seen = cell(machine, sign * slower(loss))
            found = (seen.slower if sign > 0 else seen.faster) / seen.sessions
            sd = machine.removeprefix("quad SD ").replace("%", " %")
            yield row(sd, f"{loss:.0%} {word} found in >= {share:.0%}", f"{found:.2%}", reached=found >= share)
    for effect, limit, words in ((0.0, 20.0, "nothing changed"), (HALF, 8.0, "a loss of half")):
        starts = cell(_ONE, effect).starts
        yield row("1.0 %", f"<= {limit:.0f} process starts, {words}", f"{starts:.1f}", reached=starts <= limit)


def simulated(effort: Effort, measured: Measured) -> str:
    """A table for each noise profile, a row for each way of judging."""
    return "\n\n".join(
        f"### {profile.name.capitalize()}: quad SD {100 * _sd(profile.name):.1f} %\n\n"
        + _table(_HEAD, [_row(profile.name, way, effort, measured) for way in _WAYS])
        for profile in PROFILES
    )


_WAYS: tuple[Ours | str, ...] = (*OURS, *RIVALS)


def _name(way: Ours | str) -> str:
    return f"**{way.name}**" if isinstance(way, Ours) else way


_HEAD = (
    "way of judging",
    "starts, unchanged",
    "starts, 2 % slower",
    "starts, half",
    "unchanged called slower / faster, %",
    "equivalent, %",
    *(f"{change:.0%} slower / faster found, %" for change in CHANGES),
    "wrong way, at worst, %",
)


def _row(machine: str, way: Ours | str, effort: Effort, measured: Measured) -> tuple[str, ...]:
    def cell(effect: float) -> Cell:
        return measured(task(machine, way, effect, effort.simulated, effort))

    null, losses, gains = cell(0.0), [cell(slower(c)) for c in CHANGES], [cell(-slower(c)) for c in CHANGES]
    wrong = max(*(loss.faster for loss in losses), *(gain.slower for gain in gains))
    found = [f"{_share(a.slower, a)} / {_share(b.faster, b)}" for a, b in zip(losses, gains, strict=True)]
    equivalent = _share(null.equivalent, null) if isinstance(way, Ours) else ""
    starts = [f"{each.starts:.0f}" for each in (null, cell(slower(0.02)), cell(HALF))]
    return _name(way), *starts, _both(null), equivalent, *found, _share(wrong, null)


_COMPARED = (
    Ours(1e-3, UNKNOWN),
    Ours(1e-3, KNOWN),
    Ours(1e-3, STALE),
    "mean of five, 5%",
    "Welch .05, five repetitions",
    "pytest-benchmark mean:5%",
    "benchmatrix, 6 pairs, 5 %",
)


def recorded(effort: Effort, measured: Measured) -> str:
    """Machines that were recorded, series of a machine taken together."""
    groups: dict[str, list[str]] = {}
    for trace in (*h200_traces(), *own_traces()):
        groups.setdefault(trace.name.split(",")[0], []).append(trace.name)
    rows = [_recorded_row(group, names, way, effort, measured) for group, names in groups.items() for way in _COMPARED]
    head = (
        "machine (quad SD of its series, %)",
        "way of judging",
        "starts, unchanged",
        "unchanged called slower / faster, %",
        "equivalent, %",
        *(f"{change:.0%} slower / faster found, %" for change in (0.02, 0.05, 0.10)),
    )
    return "### Recorded machines\n\n" + _table(head, rows)


def _recorded_row(
    group: str, names: Sequence[str], way: Ours | str, effort: Effort, measured: Measured
) -> tuple[str, ...]:
    def cell(effect: float) -> Cell:
        return _joined([measured(task(name, way, effect, effort.simulated, effort)) for name in names])

    null = cell(0.0)
    pairs = [(cell(slower(change)), cell(-slower(change))) for change in (0.02, 0.05, 0.10)]
    found = [f"{_share(loss.slower, loss)} / {_share(gain.faster, gain)}" for loss, gain in pairs]
    equivalent = _share(null.equivalent, null) if isinstance(way, Ours) else ""
    machine = f"{group} ({', '.join(f'{100 * _sd(name):.1f}' for name in names)})"
    return machine, _name(way), f"{null.starts:.0f}", _both(null), equivalent, *found


def _joined(cells: Sequence[Cell]) -> Cell:
    sessions = sum(cell.sessions for cell in cells)
    starts = sum(cell.starts * cell.sessions for cell in cells) / sessions
    called = [sum(getattr(cell, name) for cell in cells) for name in ("slower", "faster", "equivalent")]
    return Cell(called[0], called[1], called[2], starts, sessions)


def broken(effort: Effort, measured: Measured) -> str:
    """Machines that break the noise model, nothing changed on any."""
    rows = [_broken_row(source.name, effort, measured) for source in adversaries()]
    settings = [f"alpha {alpha:g}, {told.name}" for alpha, told in _BROKEN]
    head = ("machine", "quad SD, %", *settings, "equivalent, %", f"{_MARGIN:.0%} loss called equivalent, %")
    return "### Machines that break the noise model\n\n" + _table(head, rows)


_MARGIN = 0.02
"""Narrow, so that cases stay open for long and can go wrong."""

_BROKEN = ((1e-2, UNKNOWN), (1e-2, KNOWN), (1e-2, TOO_SMALL), (1e-2, TOO_LARGE), (1e-3, UNKNOWN), (1e-3, KNOWN))


def _broken_row(machine: str, effort: Effort, measured: Measured) -> tuple[str, ...]:
    def cell(ours: Ours, effect: float = 0.0) -> Cell:
        return measured(Task(machine, ours, effect, _MARGIN, effort.null, effort.seed))

    settings = [Ours(alpha, told) for alpha, told in _BROKEN]
    null = cell(settings[0])
    loss = cell(settings[0], slower(_MARGIN))
    called = [_both(cell(ours)) + ("" if _is_held(cell(ours), ours.alpha) else " **!**") for ours in settings]
    ends = (_share(null.equivalent, null), _share(loss.equivalent, loss))
    return machine, f"{100 * _sd(machine):.2f}", *called, *ends


def _is_held(cell: Cell, alpha: float) -> bool:
    """Whether so many errors could have come from alpha: within three standard errors."""
    wanted = alpha * cell.sessions
    return cell.slower + cell.faster <= wanted + 3 * math.sqrt(wanted)


_SDS: dict[str, float] = {}


def _sd(machine: str) -> float:
    if machine not in _SDS:
        _SDS[machine] = quad_sd(machines()[machine], np.random.default_rng(1))
    return _SDS[machine]


def _both(cell: Cell) -> str:
    return f"{_share(cell.slower, cell)} / {_share(cell.faster, cell)}"


def _share(count: int, cell: Cell) -> str:
    percent = 100 * count / cell.sessions
    if count in {0, cell.sessions}:
        return f"{percent:.0f}"
    return f"{percent:.2f}" if percent < 1 else f"{percent:.1f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


SECTIONS: tuple[Section, ...] = (targets, calibration, simulated, recorded, broken)
LIMIT_WORDS = f"at most {MAX_QUADS} quads a case"
