"""Differences of outputs for a person to read, short enough for a terminal and a report viewer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.domain.outputs import Output
from harness.judging.outputs_places import Choice, Place, PromptApart
from harness.judging.outputs_tolerated import Row, Tolerated
from harness.judging.textdiff import end_of, show_divergence, visible

SHOWN_PROMPTS = 3
_MAX_PIECE = 24


def figure(value: float) -> str:
    """A divergence with two digits."""
    return f"{value:.2g}"


def figures_text(rows: Sequence[Row], hard_flips: int, positions: int, hard: float) -> str:
    """The first figure and all that are beyond their limits, e.g. ``mean KLD 0.31 (tolerance 0.0045), p99 1.2 (0.06)``.

    Where none is beyond, the first and the last.
    """
    first, *others = rows
    over = [row for row in others if row.over]
    shown = [first, *(over if over or first.over else others[-1:])]
    told = [f"{row.name} {figure(row.found)} ({_tolerance(row, first=row is first)})" for row in shown]
    flips = [f"{hard_flips} of {positions:,} positions flip above {hard:g} nat"] if hard_flips else []
    return ", ".join([*told, *flips])


def place_text(place: Place) -> str:
    """Where the worst prompt has its first difference, and what it is."""
    return f"worst {place.where}: {_brief(place)}"


def figures_table(
    rows: Sequence[Row], hard_flips: int, tolerable: Tolerated, shown: Mapping[str, str]
) -> Iterator[str]:
    """Figures and limits in columns.

    Args:
        rows: What is judged.
        hard_flips: Positions where another token won although the reference was sure.
        tolerable: The limits.
        shown: What is shown and not judged, by name.
    """
    yield f"  {'':<15}{'found':>10}  {'tolerated':>10}"
    for row in rows:
        limit = "not judged" if row.limit is None else figure(row.limit)
        yield f"  {row.name:<15}{figure(row.found):>10}  {limit:>10}{'  over' if row.over else ''}"
    over = "  over" if hard_flips else ""
    meaning = f"where the baseline leads by more than {tolerable.hard:.3g} nat"
    yield f"  {'hard flips':<15}{hard_flips:>10}  {0:>10}{over}  ({meaning})"
    for name, text in shown.items():
        yield f"  {name:<15}{text:>10}"
    yield f"  tolerated: {tolerable.source}"
    yield from (f"  note: {note}" for note in tolerable.notes)


def prompts_apart(worst: Iterable[PromptApart], pairs: Sequence[tuple[Output, Output]]) -> Iterator[str]:
    """The worst prompts: figures, the place to look at, and the texts that were generated."""
    by_name = {ours.prompt: (ours, theirs) for ours, theirs in pairs}
    for apart in worst:
        yield ""
        flips = f", {apart.hard_flips} hard flips" if apart.hard_flips else ""
        yield f"prompt '{apart.prompt}': mean KLD {figure(apart.mean)}{flips} at {apart.positions:,} positions"
        yield from _place(apart.place)
        ours, theirs = by_name[apart.prompt]
        if ours.tokens != theirs.tokens:
            yield "  generated text"
            yield show_divergence(ours.text, theirs.text)


def texts_apart(pairs: Sequence[tuple[Output, Output]]) -> str:
    """The generated texts of the first prompts whose answers differ."""
    differing = [(ours, theirs) for ours, theirs in pairs if ours.tokens != theirs.tokens]
    shown = [
        f"prompt '{ours.prompt}'\n{show_divergence(ours.text, theirs.text)}"
        for ours, theirs in differing[:SHOWN_PROMPTS]
    ]
    more = len(differing) - len(shown)
    return "\n\n".join([*shown, *([f"and {more} more prompts"] if more > 0 else [])])


def _place(place: Place) -> Iterator[str]:
    lead = "" if place.margin is None else f", the baseline leads by {place.margin:.3g} nat"
    yield f"  {place.kind} token {place.number} of {place.total}: KLD {figure(place.kld)}{lead}"
    if place.before:
        yield f"  after      {end_of(place.before)}"
    ours, theirs = place.reference, place.other
    yield f"- baseline   {_choice(ours)} {ours.reference} (the candidate gives it {ours.other})"
    yield f"+ candidate  {_choice(theirs)} {theirs.other} (the baseline gives it {theirs.reference})"


def _brief(place: Place) -> str:
    ours, theirs = place.reference, place.other
    if place.flipped:
        return f"{_choice(ours)} {ours.reference} became {_choice(theirs)} {theirs.other}"
    return f"{_choice(ours)} {ours.reference} became {ours.other}"


def _choice(choice: Choice) -> str:
    text = visible(choice.text)
    if not text:
        return f"id {choice.token}"
    return f"'{text[:_MAX_PIECE]}{'...' if len(text) > _MAX_PIECE else ''}'"


def _tolerance(row: Row, *, first: bool) -> str:
    """The word once is enough."""
    return f"tolerance {figure(row.limit or 0.0)}" if first else figure(row.limit or 0.0)
