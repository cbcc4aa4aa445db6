"""Which rows of ``llama-sweep-bench`` or ``llama-batched-bench`` are not there, by those that are.

A sweep goes through the whole context in even steps; batched rows are all combinations of what was asked. So a table
that was cut, or a program that ended early, shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

from harness.engines.imported.sweep_row import Program, SweepRow

_MOST_NAMED = 5


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
    gaps = [place for before, after in pairwise([-step, *places]) for place in range(before + step, after, step)]
    if gaps:
        yield f"the sweep lacks n_kv = {_listed(gaps)}", True
    if context is not None and places[-1] + step < context:
        yield f"the sweep ends behind n_kv = {places[-1]} of a context of {context}", True


def _batched(rows: Sequence[SweepRow], context: int | None) -> Iterator[tuple[str, bool]]:
    have = {tuple(row.counts[name] for name in ("pp", "tg", "pl")): row for row in rows}
    asked = product(*(sorted({key[index] for key in have}) for index in range(3)))
    absent = [key for key in asked if key not in have]
    # A prompt that all sequences share needs least: what does not even fit so was never run.
    beyond = [key for key in absent if context is not None and key[0] + key[1] * key[2] > context]
    lost = [key for key in absent if key not in beyond]
    if beyond:
        yield f"not run, they do not fit a context of {context}: {_combinations(beyond)}", False
    if lost:
        yield f"rows are missing, or did not fit the context: {_combinations(lost)}", True


def _combinations(keys: Sequence[tuple[int, ...]]) -> str:
    return _listed([f"PP {pp} TG {tg} B {pl}" for pp, tg, pl in keys])


def _listed(items: Sequence[object]) -> str:
    more = len(items) - _MOST_NAMED
    return ", ".join(map(str, items[:_MOST_NAMED])) + (f" and {more} more" if more > 0 else "")
