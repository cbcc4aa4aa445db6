"""Files that ``llama-perplexity --save-all-logits`` writes: a text's tokens, and distributions at half of them.

Layout, little-endian (read in ``tools/perplexity/perplexity.cpp`` of llama.cpp and ik_llama.cpp 8337e4cd, where it is
the same): ``_logits_``, three 32-bit integers (context, vocabulary, chunks), the tokens of all chunks, then for each
chunk a row for each position from the half of its context to the last but one. A row has two 32-bit floats, a scale
and the smallest log-probability, and for each token a 16-bit number: the log-probability is smallest + scale x number.
It is padded to a multiple of four bytes.

What a row cannot say: log-probabilities more than 16 nats (llama.cpp) or 24 (ik_llama.cpp) below the best are written
as that, and all are rounded to a 65535th of the range, 0.0004 nat at most. The first token of a chunk is evaluated as
the vocabulary's first one where it has one; the file has the text's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from harness.ranking import NO_TOKEN, Table

MAGIC = b"_logits_"
_HEAD = 12
_HEAD_OF_ROW = 4
"""In 16-bit numbers: two 32-bit floats."""
_LARGEST = 1 << 24
"""Above every context and vocabulary that makes sense."""
_AT_ONCE = 1 << 24
"""Bytes of rows that are read at once, about."""


class LogitsFileError(ValueError):
    """A file that is no whole file of logits; the text says why."""


@dataclass(frozen=True, slots=True)
class LogitsFile:
    """What a file says of itself, its rows apart.

    Attributes:
        path: The file.
        n_ctx: Tokens of a chunk.
        n_vocab: Tokens of the vocabulary.
        chunks: How many chunks.
    """

    path: Path
    n_ctx: int
    n_vocab: int
    chunks: int

    @property
    def first(self) -> int:
        """The first position of a chunk that has a row."""
        return self.n_ctx // 2

    @property
    def rows(self) -> int:
        """Rows of a chunk: of the last position there is none, for nothing follows it in the text."""
        return self.n_ctx - 1 - self.first

    @property
    def _row_numbers(self) -> int:
        return 2 * ((self.n_vocab + 1) // 2) + _HEAD_OF_ROW

    @property
    def _start(self) -> int:
        return len(MAGIC) + _HEAD + 4 * self.chunks * self.n_ctx

    @property
    def size(self) -> int:
        """Bytes of a whole file."""
        return self._start + 2 * self.chunks * self.rows * self._row_numbers

    def tokens(self, chunk: int) -> tuple[int, ...]:
        """Token ids of a chunk's text."""
        with self.path.open("rb") as file:
            file.seek(len(MAGIC) + _HEAD + 4 * chunk * self.n_ctx)
            return tuple(np.frombuffer(_exactly(file, 4 * self.n_ctx), "<i4").tolist())

    def tables(self, chunk: int, top: int, last: int | None = None) -> Iterator[Table]:
        """The distributions of a chunk, some positions at a time.

        Args:
            chunk: Which one.
            top: Most probable tokens to keep.
            last: So many of the chunk's last positions; ``None``: all.

        Raises:
            LogitsFileError: The file has become shorter.
        """
        wanted = self.rows if last is None else min(last, self.rows)
        at_once = max(1, _AT_ONCE // (2 * self._row_numbers))
        with self.path.open("rb") as file:
            file.seek(self._start + 2 * self._row_numbers * (chunk * self.rows + self.rows - wanted))
            for done in range(0, wanted, at_once):
                count = min(at_once, wanted - done)
                numbers = np.frombuffer(_exactly(file, 2 * count * self._row_numbers), "<u2")
                yield _table(numbers.reshape(count, self._row_numbers), self.n_vocab, top)


def open_logits(path: Path) -> LogitsFile:
    """Read the head of a file and check that the file is whole.

    Args:
        path: The file.

    Raises:
        LogitsFileError: It is no such file, or not a whole one.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(len(MAGIC) + _HEAD)
        size = os.fstat(file.fileno()).st_size
    if head[: len(MAGIC)] != MAGIC:
        raise LogitsFileError("it does not begin with _logits_: llama-perplexity --save-all-logits writes such files")
    if len(head) < len(MAGIC) + _HEAD:
        raise LogitsFileError("it ends after its head: the text was shorter than two contexts, or the run was ended")
    n_ctx, n_vocab, chunks = np.frombuffer(head[len(MAGIC) :], "<i4").tolist()
    if not (4 <= n_ctx <= _LARGEST and 1 < n_vocab <= _LARGEST and 1 <= chunks <= _LARGEST):  # noqa: PLR2004 - a row
        raise LogitsFileError(f"context {n_ctx}, vocabulary {n_vocab}, {chunks} chunks: these make no sense")
    found = LogitsFile(path, n_ctx, n_vocab, chunks)
    if size != found.size:
        raise LogitsFileError(f"it has {size} bytes, {found.size} are expected: the run did not end well")
    return found


def _table(rows: NDArray[np.uint16], n_vocab: int, top: int) -> Table:
    """The most probable tokens of rows, the lowest id first of equals; none of rows that were not finite."""
    top = min(top, n_vocab)
    heads = np.ascontiguousarray(rows[:, :_HEAD_OF_ROW]).view("<f4")
    finite = np.isfinite(heads).all(axis=1)
    ids = np.full((len(rows), top), NO_TOKEN, np.int32)
    logprobs = np.full((len(rows), top), np.nan, np.float32)
    for at in np.flatnonzero(finite):
        numbers = rows[at, _HEAD_OF_ROW : _HEAD_OF_ROW + n_vocab]
        least = np.partition(numbers, n_vocab - top)[n_vocab - top]
        candidates = np.flatnonzero(numbers >= least)
        best = candidates[np.argsort(-numbers[candidates].astype(np.int64), kind="stable")][:top]
        scale, smallest = heads[at].tolist()
        ids[at], logprobs[at] = best, np.minimum(smallest + scale * numbers[best].astype(np.float64), 0.0)
    return Table(ids, logprobs)


def _exactly(file: BinaryIO, count: int) -> bytes:
    found = file.read(count)
    if len(found) != count:
        raise LogitsFileError("it ends too early")
    return found
