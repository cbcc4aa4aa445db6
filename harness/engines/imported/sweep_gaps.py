"""Which rows of ``llama-sweep-bench`` or ``llama-batched-bench`` are not there, by those that are.

A sweep goes through the whole context in even steps; batched rows are all combinations of what was asked. So a table
that was cut, or a program that ended early, shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise, product
from math import prod

from harness.engines.imported.sweep_row import Program, SweepRow

_MOST_NAMED = 5
_MOST_COMBINATIONS = 10_000
"""More are no list that somebody asked for, but a damaged file: they are counted and not gone through."""


def missing(rows: Sequence[SweepRow], context: int | None) -> Iterator[tuple[str, bool]]:
    """What is missing, in words, and whether it was lost: else it was never run, for want of context.

    Args:
        rows: The rows of one process, in order.
        context: Tokens of its context; ``None``: not known.
    """
    if not rows:
        return
    yield from _sweep(rows, context) if rows[0].program is Program.SWEEP else _batched(rows, context)


def _sweep(rows: Sequence[SweepRow], context: int | None) -> Iterator[tuple[str, bool]]:
    places = [row.counts["n_kv"] for row in rows]
    step = min((after - before for before, after in pairwise(places)), default=rows[0].counts["pp"])
    if step <= 0:
        return
    gaps = [range(before + step, after, step) for before, after in pairwise([-step, *places])]
    if count := sum(map(len, gaps)):
        yield f"the sweep lacks n_kv = {_listed(chain.from_iterable(gaps), count)}", True
    if context is not None and places[-1] + step < context:
        yield f"the sweep ends behind n_kv = {places[-1]} of a context of {context}", True


def _batched(rows: Sequence[SweepRow], context: int | None) -> Iterator[tuple[str, bool]]:
    have = {tuple(row.counts[name] for name in ("pp", "tg", "pl")) for row in rows}
    lists = [sorted({key[index] for key in have}) for index in range(3)]
    if (count := prod(map(len, lists))) > _MOST_COMBINATIONS:
        yield f"{count - len(have)} of {count} combinations are missing", True
        return
    absent = [key for key in product(*lists) if key not in have]
    # A prompt that all sequences share needs least: what does not even fit so was never run.
    beyond = [key for key in absent if context is not None and key[0] + key[1] * key[2] > context]
    lost = [key for key in absent if key not in beyond]
    if beyond:
        yield f"not run, they do not fit a context of {context}: {_combinations(beyond)}", False
    if lost:
        yield f"rows are missing, or did not fit the context: {_combinations(lost)}", True


def _combinations(keys: Sequence[tuple[int, ...]]) -> str:
    return _listed((f"PP {pp} TG {tg} B {pl}" for pp, tg, pl in keys), len(keys))


def _listed(items: Iterable[object], count: int) -> str:
    """The first of them, and how many more there are; none is made that is not named."""
    more = count - _MOST_NAMED
    return ", ".join(map(str, islice(items, _MOST_NAMED))) + (f" and {more} more" if more > 0 else "")
