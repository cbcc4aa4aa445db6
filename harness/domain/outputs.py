"""Outputs: what an arm answered, and the probabilities that it gave, position by position.

A position is a place in a token sequence after which the arm gave a distribution of the next token. *Prefill* positions
lie in the prompt; *forced* ones follow the tokens of a given answer, decoded one at a time, so that two arms stand in
the same context whatever they would have said; *greedy* ones follow the tokens that the arm chose itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Variation(StrEnum):
    """A harmless change of how an arm evaluates a prompt: how far it drives the outputs is the arm's own noise."""

    BATCH = "batch"
    """The prompt in pieces of a quarter of the ubatch."""
    THREADS = "threads"
    """Another number of threads."""


class Source(StrEnum):
    """What an arm's outputs were read from, which decides what can be known of them."""

    EMBEDDED = "embedded"
    """A wheel's library: everything."""
    SERVER = "server"
    """``llama-server``: what it generates. No prompt positions, no hashes, and forced positions at some tokens only."""
    PERPLEXITY = "perplexity"
    """``llama-perplexity``'s file of logits: prompt positions alone. Nothing is generated: ``tokens`` is empty."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """The most probable tokens at successive positions. ``ranking`` packs and unpacks them.

    Attributes:
        positions: How many positions.
        top: Tokens kept at each.
        packed: Ids and natural log-probabilities, as text.
    """

    positions: int
    top: int
    packed: str


@dataclass(frozen=True, slots=True)
class Gaps:
    """How far the distributions of two runs are apart at successive positions.

    Attributes:
        kld: Kullback-Leibler divergences in nats, packed by ``ranking``.
        flips: Where the most probable token differs: the reference's margin in nats, one entry for each such position.
    """

    kld: str
    flips: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Varied:
    """An arm against itself under a harmless change, in one process.

    Attributes:
        variation: What was changed.
        prefill: At the prompt's positions.
        forced: At the forced ones.
    """

    variation: Variation
    prefill: Gaps
    forced: Gaps


@dataclass(frozen=True, slots=True)
class Output:
    """What one arm answered to one prompt.

    Attributes:
        prompt: The prompt's name.
        prompt_tokens: Its token ids.
        tokens: Greedily generated ids, after the prompt alone.
        margins: Per generated token, gap to the runner-up's log-probability, in nats; ``None``: not known.
        text: The generated text, shown only.
        logits_sha256: Hash over the raw 32-bit logits; empty where the engine gives none.
        finite: No NaN and no infinity was among the logits.
        forced_tokens: Token ids of the given answer, decoded one at a time after the prompt.
        prefill: Distributions at the prompt's last positions; ``None``: the source gives none.
        forced: Distributions after the forced tokens.
        forced_at: Which forced token each of those follows, by its index; empty: they follow all of them, in order.
        greedy: Distributions that the generated tokens were chosen from, one each.
        varied: The arm against itself, where that was asked for.
        pieces: Texts of token ids, for a person to read: of what it answered, of the end of the prompt, and of the two
            most probable tokens at each position, as far as the source tells.
        source: What it was read from.
    """

    prompt: str
    prompt_tokens: tuple[int, ...]
    tokens: tuple[int, ...]
    margins: tuple[float, ...] | None
    text: str
    logits_sha256: str
    finite: bool
    forced_tokens: tuple[int, ...] = ()
    prefill: Ranks | None = None
    forced: Ranks | None = None
    greedy: Ranks | None = None
    varied: tuple[Varied, ...] = ()
    pieces: tuple[tuple[int, str], ...] = ()
    forced_at: tuple[int, ...] = ()
    source: Source = Source.EMBEDDED
