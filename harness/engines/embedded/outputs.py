"""Outputs of an arm: distributions at prompt positions and after an answer's tokens, greedy tokens, digests of logits.

A prompt is evaluated in a cleared context, then tokens are decoded one at a time, always as many as were asked for: a
token that ends generation does not end it here, or two arms would be compared at unlike lengths. What is decoded after
something else than the prompt begins with the prompt again: taking tokens back is not possible in every kind of cache,
and not always told where it is not.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from harness.domain.outputs import Gaps, Ranks
from harness.ranking import NO_TOKEN, Table, gaps, pack

from .bindings import Bindings
from .faults import Fault, not_planted
from .logits import Digest, Reduced, Row, reduce_row, table_of
from .output_plan import BATCH, THREADS, OutputsPlan
from .pieces import Sizes, cut
from .prompts import TokenizedPrompt

_SMALLER = 4
"""A varied prompt is cut into pieces of this part of a ubatch."""
_SHOWN_BEFORE = 24
"""Tokens before a position whose texts are told, so that a person sees where it is."""
_SHOWN_TOP = 2
"""Of the most probable tokens at a position, the ones whose texts are told."""


@dataclass(frozen=True, slots=True)
class _Tables:
    """What an arm is compared by with itself."""

    prefill: Table
    forced: Table

    def gaps(self, other: _Tables) -> Mapping[str, object]:
        """How far another evaluation of the same tokens is away."""
        return {
            "prefill": _gaps_fields(gaps(self.prefill, other.prefill)),
            "forced": _gaps_fields(gaps(self.forced, other.forced)),
        }


@dataclass(slots=True)
class _Evaluation:
    """One evaluation of a prompt and of tokens after it.

    Attributes:
        api: The library with its model.
        context: Its context.
        prompt: The prompt.
        kept: Its last positions whose logits are kept.
        top: Tokens to keep of each.
        fault: What is spoilt on purpose.
        digest: Takes the rows in; ``None``: they were taken in before.
    """

    api: Bindings
    context: int
    prompt: TokenizedPrompt
    kept: int
    top: int
    fault: Fault | None
    digest: Digest | None = None
    planted: list[int] = field(default_factory=list)
    _next: int = 0

    def prefill(self, sizes: Sizes) -> list[Reduced]:
        """Evaluate the prompt in the cleared context; rows of its last positions."""
        length = len(self.prompt.tokens)
        self.api.clear(self.context, data=True)
        self.planted, self._next = [], 0
        gap = self.fault.gap_after(length) if self.fault else 0
        rows = self._part(0, gap, sizes) if gap else []
        if gap:
            self._plant(self.api.move_cell, gap - 1)
            self._next += 1
        rows += self._part(gap, length, sizes)
        for position in self.fault.dropped_positions(length) if self.fault else []:
            self._plant(self.api.remove_cell, position)
        return rows

    def forced(self) -> list[Reduced]:
        """Decode the answer's tokens one at a time; a row after each."""
        return [self._step(token) for token in self.prompt.forced]

    def greedy(self, after_prompt: Reduced, count: int) -> list[Reduced]:
        """Generate tokens; the rows they are chosen from. The last token is chosen, not evaluated."""
        rows = [after_prompt]
        while len(rows) < count:
            rows.append(self._step(rows[-1].best))
        return rows

    def _part(self, start: int, end: int, sizes: Sizes) -> list[Reduced]:
        rows = []
        for piece in cut(start, end, len(self.prompt.tokens) - self.kept, sizes):
            self._decode(self.prompt.tokens[piece.start : piece.end], piece.outputs)
            count = piece.end - piece.start
            rows += [self._row(index) for index in range(count - piece.outputs, count)]
        return rows

    def _plant(self, change: Callable[[int, int], bool], position: int) -> None:
        if self.fault and not change(self.context, position):
            raise not_planted(self.fault, f"the cache of this model refuses it at position {position}")
        self.planted.append(position)

    def _step(self, token: int) -> Reduced:
        self._decode([token], 1)
        return self._row(0)

    def _decode(self, tokens: Sequence[int], outputs: int) -> None:
        status = self.api.decode(self.context, self.api.batch(tokens, self._next, outputs))
        if status:
            raise self.api.decode_failed(status, f"in prompt {self.prompt.name}, at position {self._next}")
        self.api.synchronize(self.context)
        self._next += len(tokens)

    def _row(self, index: int) -> Reduced:
        """The logits of a token of the last batch, reduced where they lie: the library reuses its buffer."""
        address = self.api.logits_address(self.context, index)
        row: Row = np.ctypeslib.as_array((ctypes.c_float * self.api.n_vocab).from_address(address))
        reduced = reduce_row(row, self.top)
        if self.digest:
            self.digest.add(row, reduced)
        return reduced


def produce(api: Bindings, context: int, plan: OutputsPlan, prompt: TokenizedPrompt) -> dict[str, object]:
    """Evaluate one prompt, continue it greedily, and lead it through its answer.

    Returns:
        The fields of the prompt's ``output`` line. Margins are nats; ``null`` in a row that is not finite.

    Raises:
        EmbeddedError: ``E-decode``; ``E-fault``.
    """
    facts = api.context_facts(context)
    sizes = Sizes(facts["n_batch"], facts["n_ubatch"])
    kept = min(plan.positions, len(prompt.tokens))
    digest = Digest()
    first = _Evaluation(api, context, prompt, kept, plan.top, plan.fault, digest)
    prefill = first.prefill(sizes)
    greedy = first.greedy(prefill[-1], plan.n_predict)
    forced = _forced_again(first, sizes) if prompt.forced else []
    tables = _Tables(table_of(prefill), table_of(forced))
    tokens = [row.best for row in greedy]
    return {
        "prompt": prompt.name,
        "tokens": list(prompt.tokens),
        "greedy": tokens,
        "forced": list(prompt.forced),
        "margins": [row.margin for row in greedy],
        "text": api.detokenize(tokens),
        "logits_sha256": digest.hex(),
        "pieces": _texts(api, prompt, kept, tokens, [*prefill, *greedy, *forced]),
        "positions": kept,
        "finite": digest.finite,
        "distinct": len(set(tokens)),
        "ranks": {
            "prefill": _ranks_fields(pack(tables.prefill)),
            "greedy": _ranks_fields(pack(table_of(greedy))),
            "forced": _ranks_fields(pack(tables.forced)) if forced else None,
        },
        # What is not finite cannot be compared with anything.
        "varied": _varied(first, plan, sizes, tables) if digest.finite else [],
        **({"planted": first.planted} if plan.fault else {}),
    }


def _texts(
    api: Bindings, prompt: TokenizedPrompt, kept: int, generated: Sequence[int], rows: Sequence[Reduced]
) -> list[tuple[int, str]]:
    """Texts of the tokens that a person may have to look at, each on its own."""
    shown = {*prompt.tokens[-(kept + _SHOWN_BEFORE) :], *prompt.forced, *generated}
    shown.update(int(token) for row in rows for token in row.ids[:_SHOWN_TOP] if token != NO_TOKEN)
    return [(token, api.detokenize([token])) for token in sorted(shown)]


def _forced_again(first: _Evaluation, sizes: Sizes) -> list[Reduced]:
    """The answer after the prompt, which is evaluated once more; only the answer's rows are new to the digest."""
    digest, first.digest = first.digest, None
    first.prefill(sizes)
    first.digest = digest
    return first.forced()


def _varied(first: _Evaluation, plan: OutputsPlan, sizes: Sizes, tables: _Tables) -> list[dict[str, object]]:
    """The arm against itself, for each harmless change that it can make."""
    first.digest = None
    varied = []
    for variation in plan.variations:
        with _changed(variation, first, sizes) as changed:
            if changed:
                other = _Tables(table_of(first.prefill(changed)), table_of(first.forced()))
                varied.append({"variation": variation, **tables.gaps(other)})
    return varied


@contextmanager
def _changed(variation: str, first: _Evaluation, sizes: Sizes) -> Iterator[Sizes | None]:
    """The sizes to go on with while a change lasts; ``None`` where it cannot be made: one thread has no fewer."""
    if variation == BATCH:
        smaller = max(1, sizes.ubatch // _SMALLER)
        yield Sizes(smaller, smaller)
        return
    threads = first.api.context_facts(first.context)["n_threads"] if variation == THREADS else 1
    if threads == 1:
        yield None
        return
    first.api.set_threads(first.context, threads - 1)
    try:
        yield sizes
    finally:
        first.api.set_threads(first.context, threads)


def _ranks_fields(ranks: Ranks) -> dict[str, object]:
    return {"positions": ranks.positions, "top": ranks.top, "packed": ranks.packed}


def _gaps_fields(found: Gaps) -> dict[str, object]:
    return {"kld": found.kld, "flips": list(found.flips)}
