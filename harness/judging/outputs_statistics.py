"""Figures of two arms' distributions, position by position. The module that needs numpy: loaded once there are some.

Nothing here is compared with a limit, so that no NaN can slip through a comparison: rows that are not finite are
found first and told as faults of their arm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.domain.outputs import Gaps, Output, Ranks, Source, Varied
from harness.domain.tolerance import Figures
from harness.judging.outputs_places import Choice, Place, Positions, PromptApart
from harness.ranking import Table, divergences, unpack, unpack_values

Pair: TypeAlias = tuple[Output, Output]
Floats: TypeAlias = NDArray[np.float32]
Bools: TypeAlias = NDArray[np.bool_]

_P25, _P90, _P99 = 0.25, 0.90, 0.99
_BEFORE_TOKENS = 24
BASELINE, CANDIDATE = "the baseline", "the candidate"


class Unreadable(ValueError):  # noqa: N818 - a finding, not a fault of ours
    """Outputs that are damaged, or do not belong together: nothing can be said of them."""


@dataclass(frozen=True, slots=True)
class Own:
    """An arm against itself under harmless changes.

    Attributes:
        figures: The largest of each figure, by variation.
        largest_flip: The largest margin at which another token won, nats; 0: at none.
    """

    figures: Mapping[str, Figures]
    largest_flip: float = 0.0


@dataclass(frozen=True, slots=True)
class _Stretch:
    """The positions of one kind in one prompt, in both arms."""

    pair: Pair
    kind: Positions
    places: tuple[int, ...]
    ours: Table
    theirs: Table
    kld: Floats

    @property
    def flipped(self) -> Bools:
        found: Bools = self.ours.ids[:, 0] != self.theirs.ids[:, 0]
        return found

    @property
    def identical(self) -> bool:
        return np.array_equal(self.ours.ids, self.theirs.ids) and np.array_equal(
            self.ours.logprobs, self.theirs.logprobs
        )


class Comparison:
    """Two arms' distributions at all positions that both have.

    Args:
        pairs: Answers of reference and other arm to the same prompts.

    Raises:
        Unreadable: A part is damaged, or the arms have unlike positions.
    """

    def __init__(self, pairs: Sequence[Pair]) -> None:
        tables = [(_tables(ours, BASELINE), _tables(theirs, CANDIDATE)) for ours, theirs in pairs]
        kinds = [kind for kind in Positions if _in_both(kind, pairs, tables)]
        self._stretches = [
            _stretch(pair, kind, ours[kind], theirs[kind])
            for pair, (ours, theirs) in zip(pairs, tables, strict=True)
            for kind in kinds
            if kind in ours
        ]
        self._kld = _joined(stretch.kld for stretch in self._stretches)
        self._decoded = _joined(each.kld for each in self._stretches if each.kind is not Positions.PREFILL)

    @property
    def counts(self) -> dict[Positions, int]:
        """How many positions of each kind were compared."""
        return {kind: sum(len(each.kld) for each in self._stretches if each.kind is kind) for kind in Positions}

    @property
    def positions(self) -> int:
        """How many positions were compared."""
        return len(self._kld)

    @property
    def decoded(self) -> int:
        """How many of them were decoded one at a time."""
        return len(self._decoded)

    @property
    def identical(self) -> bool:
        """Whether every kept token and log-probability is the same, to the bit."""
        return all(stretch.identical for stretch in self._stretches)

    @property
    def figures(self) -> Figures:
        """Figures over all positions; there must be some."""
        return _figures(self._kld, self._decoded)

    @property
    def same_top(self) -> float:
        """Share of positions at which both arms hold the same token most probable."""
        return 1.0 - sum(int(each.flipped.sum()) for each in self._stretches) / self.positions

    def hard_flips(self, limit: float) -> int:
        """Positions where the most probable token differs although it led by more than ``limit`` nats.

        Of one token that was kept alone the lead is not known, so it tells nothing.
        """
        return sum(int(_hard(stretch, limit).sum()) for stretch in self._stretches)

    def worst(self, hard: float, maximum: float, most: int) -> tuple[PromptApart, ...]:
        """The prompts that are furthest apart, worst first: by hard flips, then by mean divergence.

        Args:
            hard: Margin from which on a flip is hard, nats.
            maximum: Divergence that no position may exceed, nats.
            most: How many prompts at most.
        """
        by_prompt: dict[str, list[_Stretch]] = {}
        for stretch in self._stretches:
            if len(stretch.kld):
                by_prompt.setdefault(stretch.pair[0].prompt, []).append(stretch)
        found = [_apart(name, stretches, hard, maximum) for name, stretches in by_prompt.items()]
        return tuple(sorted(found, key=lambda each: (-each.hard_flips, -each.mean))[:most])


def not_finite_at(outputs: Sequence[Output], whose: str) -> str:
    """Where a distribution of an arm is NaN or infinite, under one of its variations too; empty if none is.

    Args:
        outputs: Its answers.
        whose: The arm, for messages.

    Raises:
        Unreadable: A part is damaged.
    """
    for output in outputs:
        for kind, table in _tables(output, whose).items():
            bad = int((~np.isfinite(table.logprobs)).any(axis=1).sum())
            if bad:
                return f"prompt '{output.prompt}' has NaN or inf at {bad} of {len(table.ids)} {kind} positions"
        for varied in output.varied:
            for values in (_prefill_values(output, varied), _forced_values(output, varied)):
                bad = int((~np.isfinite(values)).sum())
                if bad:
                    changed = f"evaluated otherwise ({varied.variation})"
                    return f"prompt '{output.prompt}' has NaN or inf at {bad} positions, {changed}"
    return ""


def own_of(outputs: Sequence[Output]) -> Own:
    """How far an arm is from itself, by variation; look at `not_finite_at` first.

    Raises:
        Unreadable: A part is damaged.
    """
    figures, flips = {}, [0.0]
    for variation in dict.fromkeys(str(varied.variation) for output in outputs for varied in output.varied):
        of_it = [(output, each) for output in outputs for each in output.varied if str(each.variation) == variation]
        forced = _joined(_forced_values(*each) for each in of_it)
        prefill = _joined(_prefill_values(*each) for each in of_it)
        together = _joined([prefill, forced])
        if len(together):
            figures[variation] = _figures(together, forced)
        flips += [flip for _, each in of_it for gaps in (each.prefill, each.forced) for flip in gaps.flips]
    return Own(figures, max(flip for flip in flips if np.isfinite(flip)))


# ---- reading ---------------------------------------------------------------------------------------------------------


def _tables(output: Output, whose: str) -> dict[Positions, Table]:
    """What an answer has, unpacked.

    Raises:
        Unreadable: A part is damaged, or has not as many positions as it has tokens.
    """
    parts = (
        (Positions.PREFILL, output.prefill, None),
        (Positions.FORCED, output.forced, len(_forced_at(output))),
        (Positions.GREEDY, output.greedy, len(output.tokens)),
    )
    tables = {}
    for kind, ranks, tokens in parts:
        if ranks is None:
            continue
        where = f"{whose}'s {kind} positions of prompt '{output.prompt}'"
        if (tokens is not None and ranks.positions != tokens) or ranks.positions > _most(output, kind):
            there = len(output.prompt_tokens) if tokens is None else tokens
            raise Unreadable(f"{where}: {ranks.positions} positions for {there} tokens")
        tables[kind] = _table(ranks, where)
    return tables


def _most(output: Output, kind: Positions) -> int:
    counted = {
        Positions.PREFILL: output.prompt_tokens,
        Positions.FORCED: output.forced_tokens,
        Positions.GREEDY: output.tokens,
    }
    return len(counted[kind])


def _forced_at(output: Output) -> Sequence[int]:
    """Which forced token each of the forced positions follows."""
    return output.forced_at or range(len(output.forced_tokens))


def _table(ranks: Ranks, where: str) -> Table:
    if ranks.top < 1 or ranks.positions < 0:
        raise Unreadable(f"{where}: damaged values: {ranks.positions} positions of {ranks.top} tokens")
    try:
        table = unpack(ranks)
    except (ValueError, OverflowError) as damage:
        raise Unreadable(f"{where}: {damage}") from None
    if table.problem:
        raise Unreadable(f"{where}: {table.problem}")
    return table


def _prefill_values(output: Output, varied: Varied) -> Floats:
    return _values(varied.prefill, output.prefill, output.prompt)


def _forced_values(output: Output, varied: Varied) -> Floats:
    return _values(varied.forced, output.forced, output.prompt)


def _values(gaps: Gaps, ranks: Ranks | None, prompt: str) -> Floats:
    """Divergences of an arm from itself, one for each position that it told.

    Raises:
        Unreadable: They are damaged, or not as many.
    """
    try:
        return unpack_values(gaps.kld, ranks.positions if ranks else 0)
    except (ValueError, OverflowError) as damage:
        raise Unreadable(f"an arm's own differences in prompt '{prompt}': {damage}") from None


def _in_both(
    kind: Positions,
    pairs: Sequence[Pair],
    tables: Sequence[tuple[Mapping[Positions, Table], Mapping[Positions, Table]]],
) -> bool:
    """Whether both arms have positions of a kind, at all prompts where either does.

    Raises:
        Unreadable: Some prompts have them in one arm alone; or all, although both arms were read in the same way.
    """
    ours, theirs = ({i for i, both in enumerate(tables) if kind in both[arm]} for arm in (0, 1))
    if not ours or not theirs:
        if (ours or theirs) and all(each.source is Source.EMBEDDED for pair in pairs for each in pair):
            raise Unreadable(f"{CANDIDATE if ours else BASELINE} has lost its {kind} positions")
        return False  # a source that gives none: told in the scope
    alone = sorted(ours ^ theirs)
    if alone:
        raise Unreadable(f"prompt '{pairs[alone[0]][0].prompt}' has {kind} positions in one arm alone")
    return True


def _stretch(pair: Pair, kind: Positions, ours: Table, theirs: Table) -> _Stretch:
    """The positions that both arms have.

    Raises:
        Unreadable: They are not as many although both arms were read in the same way.
    """
    places = [_places(output, kind, len(table.ids)) for output, table in zip(pair, (ours, theirs), strict=True)]
    if kind is Positions.GREEDY:
        until = _until_they_part(pair)
        places = [found[:until] for found in places]
    elif places[0] != places[1] and pair[0].source is pair[1].source is Source.EMBEDDED:
        counts = f"{len(ours.ids)} against {len(theirs.ids)}"
        raise Unreadable(f"prompt '{pair[0].prompt}' has {counts} {kind} positions")
    common = sorted(set(places[0]) & set(places[1]))
    ours, theirs = (_rows(table, found, common) for table, found in zip((ours, theirs), places, strict=True))
    return _Stretch(pair, kind, tuple(common), ours, theirs, divergences(ours, theirs))


def _places(output: Output, kind: Positions, count: int) -> list[int]:
    """Which token of its kind each position belongs to, by index: those of a prompt are its last ones."""
    if kind is Positions.FORCED:
        return list(_forced_at(output))
    first = len(output.prompt_tokens) - count if kind is Positions.PREFILL else 0
    return list(range(first, first + count))


def _rows(table: Table, places: Sequence[int], wanted: Sequence[int]) -> Table:
    at = {place: row for row, place in enumerate(places)}
    rows = [at[place] for place in wanted]
    return Table(table.ids[rows], table.logprobs[rows])


def _until_they_part(pair: Pair) -> int:
    """Positions up to and including the one at which another token was chosen: after it the contexts differ."""
    chosen = zip(pair[0].tokens, pair[1].tokens, strict=True)
    return next((place + 1 for place, (one, other) in enumerate(chosen) if one != other), len(pair[0].tokens))


# ---- figures ---------------------------------------------------------------------------------------------------------


def _joined(parts: Iterable[Floats]) -> Floats:
    return np.concatenate([np.empty(0, np.float32), *parts])


def _figures(kld: Floats, decoded: Floats) -> Figures:
    apart = decoded if len(decoded) else kld
    return Figures(
        mean=float(kld.mean(dtype=np.float64)),
        decode_mean=float(apart.mean(dtype=np.float64)),
        median=float(np.median(kld)),
        p90=float(np.quantile(kld, _P90)),
        decode_p90=float(np.quantile(apart, _P90)),
        p99=float(np.quantile(kld, _P99)),
        maximum=float(kld.max()),
        p25=float(np.quantile(kld, _P25)),
        decode_median=float(np.median(apart)),
    )


def _hard(stretch: _Stretch, limit: float) -> Bools:
    margins = stretch.ours.margins
    found: Bools = stretch.flipped & np.isfinite(margins) & (margins > limit)
    return found


# ---- places ----------------------------------------------------------------------------------------------------------


def _apart(prompt: str, stretches: Sequence[_Stretch], hard: float, maximum: float) -> PromptApart:
    kld = _joined(stretch.kld for stretch in stretches)
    flips = sum(int(_hard(stretch, hard).sum()) for stretch in stretches)
    return PromptApart(prompt, len(kld), float(kld.mean(dtype=np.float64)), flips, _first(stretches, hard, maximum))


def _first(stretches: Sequence[_Stretch], hard: float, maximum: float) -> Place:
    """Where to look: the first hard flip; without one the first position beyond the maximum; else the largest."""
    for wanted in (lambda stretch: _hard(stretch, hard), lambda stretch: stretch.kld > maximum):
        for stretch in stretches:
            found = np.flatnonzero(wanted(stretch))
            if len(found):
                return _place(stretch, int(found[0]))
    furthest = max(stretches, key=lambda stretch: float(stretch.kld.max()))
    return _place(furthest, int(furthest.kld.argmax()))


def _place(stretch: _Stretch, at: int) -> Place:
    ours, theirs = stretch.pair
    number, total, context = _context(stretch, at)
    pieces = {**dict(theirs.pieces), **dict(ours.pieces)}
    margin = float(stretch.ours.margins[at])
    reference, other = (
        Choice(
            token,
            pieces.get(token, ""),
            _probability(stretch.ours, at, token),
            _probability(stretch.theirs, at, token),
        )
        for token in (int(stretch.ours.ids[at, 0]), int(stretch.theirs.ids[at, 0]))
    )
    return Place(
        prompt=ours.prompt,
        kind=stretch.kind,
        number=number,
        total=total,
        kld=float(stretch.kld[at]),
        margin=margin if np.isfinite(margin) else None,
        before="".join(pieces.get(token, f"<{token}>") for token in context[-_BEFORE_TOKENS:]) if pieces else "",
        reference=reference,
        other=other,
    )


def _context(stretch: _Stretch, at: int) -> tuple[int, int, Sequence[int]]:
    """Number of the token at a position, how many there are of its kind, and the tokens before the distribution."""
    output, place = stretch.pair[0], stretch.places[at]
    prompt = output.prompt_tokens
    if stretch.kind is Positions.PREFILL:
        return place + 1, len(prompt), prompt[: place + 1]
    if stretch.kind is Positions.FORCED:
        return place + 1, len(output.forced_tokens), (*prompt, *output.forced_tokens[: place + 1])
    return place + 1, len(output.tokens), (*prompt, *output.tokens[:place])


def _probability(table: Table, at: int, token: int) -> str:
    found = np.flatnonzero(table.ids[at] == token)
    if len(found):
        return f"{100 * float(np.exp(table.logprobs[at, found[0]])):.3g} %"
    return f"< {100 * float(np.exp(table.logprobs[at, -1])):.2g} %"
