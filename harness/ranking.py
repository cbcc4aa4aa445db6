"""Distributions of the next token, cut to their most probable tokens: packed as text, and how far two are apart.

The one place for these figures, below engines and judging: the embedded child compares an arm with itself by the same
function by which the judge compares two arms.

A divergence is that of two coarser distributions: one cell for each token that the reference kept, one for all others.
Where the other arm did not keep such a token, it gets the probability that makes the divergence least. So a divergence
here is never above the one of all tokens: what is large here is large.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.domain.outputs import Gaps, Ranks

Floats: TypeAlias = NDArray[np.float32]
Ids: TypeAlias = NDArray[np.int32]
Doubles: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

NO_TOKEN = -1
"""Id in a row whose logits held NaN or infinity; its log-probabilities are NaN."""
_LEAST = 1e-9
"""A cell is never taken as emptier: log-probabilities are kept with seven digits."""
_MOST = 1.01
"""More than the kept tokens of a distribution add up to, but for what a file of logits rounds."""
_AT_ONCE = 256
"""Positions compared at once: bounds the memory."""


@dataclass(frozen=True, slots=True)
class Table:
    """Unpacked ``Ranks``.

    Attributes:
        ids: Token ids, most probable first, shape (positions, top).
        logprobs: Their natural log-probabilities, same shape.
    """

    ids: Ids
    logprobs: Floats

    @property
    def margins(self) -> Floats:
        """Gap between the two most probable tokens in nats, shape (positions,); infinite where only one was kept."""
        if self.logprobs.shape[1] == 1:
            return np.full(len(self.logprobs), np.inf, np.float32)
        gap: Floats = self.logprobs[:, 0] - self.logprobs[:, 1]
        return gap

    @property
    def problem(self) -> str:
        """Why its rows are no distributions; empty where they are, or are not finite.

        A divergence from what adds up to more than one can be nothing at all, however wrong it is.
        """
        finite = np.isfinite(self.logprobs).all(axis=1)
        ids = np.sort(self.ids[finite], axis=1)
        if (ids[:, 1:] == ids[:, :-1]).any():
            return "a token is ranked twice at one position"
        with np.errstate(over="ignore"):
            most = float(np.exp(self.logprobs[finite].astype(np.float64)).sum(axis=1).max(initial=0.0))
        return f"the probabilities at one position add up to {most:.3g}" if most > _MOST else ""


def pack(table: Table) -> Ranks:
    """Pack a table; values are kept as 32-bit floats."""
    positions, top = table.ids.shape
    raw = table.ids.astype("<i4").tobytes() + table.logprobs.astype("<f4").tobytes()
    return Ranks(positions, top, _text(raw))


def unpack(ranks: Ranks) -> Table:
    """The table that was packed.

    Raises:
        ValueError: The text is damaged or of another shape than it says.
    """
    shape = (ranks.positions, ranks.top)
    raw = _raw(ranks.packed, 8 * ranks.positions * ranks.top)
    half = len(raw) // 2
    ids = np.frombuffer(raw[:half], "<i4").reshape(shape).astype(np.int32)
    return Table(ids, np.frombuffer(raw[half:], "<f4").reshape(shape).astype(np.float32))


def pack_values(values: Floats) -> str:
    """Pack a list of 32-bit floats."""
    return _text(values.astype("<f4").tobytes())


def unpack_values(text: str, count: int | None = None) -> Floats:
    """The values that were packed.

    Args:
        text: Them, packed.
        count: How many there have to be; ``None``: nobody knows.

    Raises:
        ValueError: The text is damaged, or there are not as many.
    """
    return np.frombuffer(_raw(text, None if count is None else 4 * count), "<f4").astype(np.float32)


def divergences(reference: Table, other: Table) -> Floats:
    """Kullback-Leibler divergence of another arm from the reference at each position, nats.

    Args:
        reference: The reference's distributions.
        other: The other arm's at the same positions, of any number of kept tokens.

    Returns:
        Shape (positions,); infinite where either was not finite.

    Raises:
        ValueError: The positions are not as many.
    """
    if len(reference.ids) != len(other.ids):
        raise ValueError(f"{len(reference.ids)} positions against {len(other.ids)}")
    found = np.empty(len(reference.ids), np.float32)
    for at in range(0, len(found), _AT_ONCE):
        part = slice(at, at + _AT_ONCE)
        found[part] = _divergences(
            Table(reference.ids[part], reference.logprobs[part]), Table(other.ids[part], other.logprobs[part])
        )
    return found


def flipped_margins(reference: Table, other: Table) -> Floats:
    """The reference's margins, nats, at the positions where the most probable token differs."""
    flipped: Floats = reference.margins[reference.ids[:, 0] != other.ids[:, 0]]
    return flipped


def gaps(reference: Table, other: Table) -> Gaps:
    """Both figures of two runs, packed."""
    flips = tuple(float(margin) for margin in flipped_margins(reference, other))
    return Gaps(pack_values(divergences(reference, other)), flips)


def _divergences(reference: Table, other: Table) -> Floats:
    p = np.exp(reference.logprobs.astype(np.float64))
    theirs = np.exp(other.logprobs.astype(np.float64))
    matches = reference.ids[:, :, None] == other.ids[:, None, :]
    matched = matches.any(axis=2)
    q = np.where(matches, theirs[:, None, :], 0.0).sum(axis=2)
    rest_p = np.clip(1.0 - p.sum(axis=1), _LEAST, None)
    q = np.clip(np.where(matched, q, _nearest(p, q, matched, rest_p, theirs)), _LEAST, None)
    rest_q = np.clip(1.0 - q.sum(axis=1), _LEAST, None)
    kld = (p * np.log(np.clip(p, _LEAST, None) / q)).sum(axis=1) + rest_p * np.log(rest_p / rest_q)
    return np.where(np.isfinite(kld), np.clip(kld, 0.0, None), np.inf).astype(np.float32)


def _nearest(p: Doubles, q: Doubles, matched: Bools, rest_p: Doubles, theirs: Doubles) -> Doubles:
    """Probabilities for tokens that the other arm did not keep: of all that it can have given, the nearest to ``p``.

    They are in proportion to ``p``, none above the last that was kept, together no more than what all kept ones leave.
    """
    least_kept = theirs[:, -1:]
    tail = np.clip(1.0 - theirs.sum(axis=1), 0.0, None)
    unshared = np.clip(theirs.sum(axis=1) - q.sum(axis=1), 0.0, None)
    capped, scaled = np.zeros_like(matched), p
    for _ in range(p.shape[1] + 1):
        spent = least_kept[:, 0] * capped.sum(axis=1)
        free = np.where(matched | capped, 0.0, p).sum(axis=1)
        by_all = (tail + unshared - spent) / (free + rest_p)
        by_tail = (tail - spent) / np.clip(free, _LEAST, None)
        scaled = p * np.clip(np.minimum(by_all, by_tail), 0.0, None)[:, None]
        above = ~matched & ~capped & (scaled > least_kept)
        if not above.any():
            break
        capped |= above
    nearest: Doubles = np.where(capped, least_kept, scaled)
    return nearest


def _text(raw: bytes) -> str:
    # Base 85 would save a sixteenth, and take forty times as long to read.
    return base64.b64encode(zlib.compress(raw)).decode("ascii")


def _raw(text: str, size: int | None = None) -> bytes:
    """The bytes of a packed text, never more than it says: a journal comes from anywhere."""
    opener = zlib.decompressobj()
    try:
        packed = base64.b64decode(text, validate=True)
        raw = opener.decompress(packed, 0 if size is None else size + 1)
    except (ValueError, binascii.Error, zlib.error) as problem:
        raise ValueError(f"damaged values: {problem}") from None
    if size is not None and len(raw) != size:
        raise ValueError(f"damaged values: {len(raw)} bytes instead of {size}")
    return raw
