"""Outputs of an arm: greedy tokens, margins and digests of the raw logits, at one fixed geometry.

A prompt is evaluated in one batch in a cleared context, then one token is decoded at a time, always ``n_predict`` of
them: a token that ends generation does not end it here, or two arms would be compared at unlike lengths.
"""

from __future__ import annotations

import ctypes
import hashlib
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .bindings import Bindings
from .prompts import TokenizedPrompt
from .request import OutputsPlan

Row: TypeAlias = NDArray[np.float32]


@dataclass(slots=True)
class _Digest:
    """What is kept of the rows of logits that pass by.

    Attributes:
        top: Most probable tokens to keep of each row.
        finite: No row had NaN or infinity.
        ranked: Those tokens, by row.
    """

    top: int
    finite: bool = True
    ranked: list[dict[str, object]] = field(default_factory=list)
    _hash: hashlib._Hash = field(default_factory=hashlib.sha256)

    def add(self, row: Row) -> None:
        self._hash.update(row.tobytes())
        self.finite = self.finite and bool(np.isfinite(row).all())
        if self.top:
            self.ranked.append(_rank(row, self.top))

    def hex(self) -> str:
        return self._hash.hexdigest()


def produce(api: Bindings, context: int, plan: OutputsPlan, prompt: TokenizedPrompt) -> dict[str, object]:
    """Evaluate one prompt and continue it greedily.

    Returns:
        The fields of the prompt's ``output`` line. Margins are nats; ``null`` in a row that is not finite.

    Raises:
        EmbeddedError: ``E-decode``.
    """
    digest = _Digest(plan.top)
    length = len(prompt.tokens)
    kept = min(plan.positions, length)
    api.clear(context, data=True)
    _decode(api, context, api.batch(prompt.tokens, 0, kept), prompt)
    for index in range(length - kept, length):
        digest.add(_row(api, context, index))
    greedy: list[int] = []
    margins: list[float | None] = []
    row = _row(api, context, length - 1)
    for step in range(plan.n_predict):
        token, margin = choose(row)
        greedy.append(token)
        margins.append(margin)
        # The last token is chosen, not evaluated: nothing would be done with its logits.
        if step + 1 < plan.n_predict:
            _decode(api, context, api.batch([token], length + step), prompt)
            row = _row(api, context, 0)
            digest.add(row)
    fields: dict[str, object] = {
        "prompt": prompt.name,
        "tokens": list(prompt.tokens),
        "greedy": greedy,
        "margins": margins,
        "text": api.detokenize(greedy),
        "logits_sha256": digest.hex(),
        "positions": kept,
        "finite": digest.finite,
        "distinct": len(set(greedy)),
    }
    if plan.top:
        fields["top"] = digest.ranked
    return fields


def choose(row: Row) -> tuple[int, float | None]:
    """The most probable token, the lowest id of equals, and how many nats it leads by.

    In a row with NaN or infinity the token is the best of the finite ones (0 if there is none) and the lead ``None``.
    """
    usable = np.where(np.isfinite(row), row, -np.inf)
    best = int(usable.argmax())
    if not np.isfinite(row).all():
        return best, None
    if row.size == 1:
        return best, 0.0
    # The normaliser cancels: a difference of logits is the difference of log-probabilities.
    second = float(np.delete(usable, best).max())
    return best, float(row[best]) - second


def _rank(row: Row, top: int) -> dict[str, object]:
    """The most probable tokens of a row with their log-probabilities in nats; ``null`` in a row that is not finite."""
    if not np.isfinite(row).all():
        return {"ids": None, "logprobs": None, "logsumexp": None}
    values = row.astype(np.float64)
    peak = values.max()
    total = float(peak + np.log(np.exp(values - peak).sum()))
    # A stable sort of the negated row: equal logits keep the order of their ids in every arm.
    ids = np.argsort(-values, kind="stable")[:top]
    return {"ids": ids.tolist(), "logprobs": (values[ids] - total).tolist(), "logsumexp": total}


def _decode(api: Bindings, context: int, batch: object, prompt: TokenizedPrompt) -> None:
    status = api.decode(context, batch)
    if status:
        raise api.decode_failed(status, f"in prompt {prompt.name}")
    api.synchronize(context)


def _row(api: Bindings, context: int, index: int) -> Row:
    """A copy of the logits of a token of the last batch: the library reuses its buffer."""
    address = api.logits_address(context, index)
    row: Row = np.ctypeslib.as_array((ctypes.c_float * api.n_vocab).from_address(address)).copy()
    return row
