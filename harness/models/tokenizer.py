"""A real byte-level BPE tokenizer from a short text: 256 byte tokens, learned merges, special tokens.

Engines see a ``gpt2`` vocabulary with the ``qwen2`` pre-tokenizer, which both forks know; they tokenize any text with
it, since every byte has a token. The training is the textbook one (count adjacent pairs inside pre-tokens, merge the
most frequent, repeat) with ties broken by the pair itself, so that the same text gives the same merges everywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

from harness.models.gguf_format import MetaValue

Pair = tuple[str, str]
Symbols = tuple[str, ...]
Word = tuple[Symbols, int]
"""A pre-token as symbols, and how often it occurs."""

# Pre-tokens as the qwen2 rule splits ASCII text; the training text is ASCII (checked), so that no Unicode classes are
# needed.
_PRE_TOKENS = re.compile(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]| ?[^\sA-Za-z0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class TokenKind(IntEnum):
    """Token types of GGUF that are used here."""

    NORMAL = 1
    CONTROL = 3
    UNUSED = 5


@dataclass(frozen=True)
class Vocabulary:
    """Tokens, their kinds and the merges.

    Attributes:
        tokens: Text of each token id, bytes written in the GPT-2 alphabet.
        kinds: Kind of each token id.
        merges: Pairs in the order they are applied, each as ``left right``.
    """

    tokens: tuple[str, ...]
    kinds: tuple[TokenKind, ...]
    merges: tuple[str, ...]

    def metadata(self, pre: str) -> dict[str, MetaValue]:
        """The ``tokenizer.*`` entries of a GGUF file.

        Args:
            pre: Name of the pre-tokenizer.
        """
        ids = {token: number for number, token in enumerate(self.tokens)}
        return {
            "tokenizer.ggml.model": MetaValue("string", "gpt2"),
            "tokenizer.ggml.pre": MetaValue("string", pre),
            "tokenizer.ggml.tokens": MetaValue("string", self.tokens),
            "tokenizer.ggml.token_type": MetaValue("i32", tuple(int(kind) for kind in self.kinds)),
            "tokenizer.ggml.merges": MetaValue("string", self.merges),
            "tokenizer.ggml.bos_token_id": MetaValue("u32", ids["<|endoftext|>"]),
            "tokenizer.ggml.eos_token_id": MetaValue("u32", ids["<|im_end|>"]),
            "tokenizer.ggml.padding_token_id": MetaValue("u32", ids["<|endoftext|>"]),
            "tokenizer.ggml.add_bos_token": MetaValue("bool", False),
            "tokenizer.chat_template": MetaValue("string", _CHAT_TEMPLATE),
        }


def byte_alphabet() -> tuple[str, ...]:
    """The printable character that stands for each byte in GPT-2 vocabularies.

    Printable bytes of Latin-1 stand for themselves; the others get the characters from U+0100 on, in order of the byte.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    substitutes = iter(range(0x100, 0x200))
    return tuple(chr(byte) if byte in printable else chr(next(substitutes)) for byte in range(256))


def build_vocabulary(text: str, merges: int, specials: tuple[str, ...], size: int | None = None) -> Vocabulary:
    """Train on a text and number the tokens: bytes, merges, specials, then padding.

    Args:
        text: ASCII training text.
        merges: How many merges to learn.
        specials: Control tokens; must hold ``<|endoftext|>`` and ``<|im_end|>``.
        size: Vocabulary size to pad to with unused tokens; no padding when None.

    Raises:
        ValueError: The text is not ASCII, or too short for so many merges, or the size is too small.
    """
    learned = learn_merges(text, merges)
    tokens = [*byte_alphabet(), *(left + right for left, right in learned)]
    kinds = [TokenKind.NORMAL] * len(tokens) + [TokenKind.CONTROL] * len(specials)
    tokens += specials
    padding = (size or len(tokens)) - len(tokens)
    if padding < 0:
        raise ValueError(f"{len(tokens)} tokens do not fit a vocabulary of {size}")
    tokens += [f"[unused{number}]" for number in range(padding)]
    kinds += [TokenKind.UNUSED] * padding
    return Vocabulary(tuple(tokens), tuple(kinds), tuple(f"{left} {right}" for left, right in learned))


def learn_merges(text: str, count: int) -> tuple[Pair, ...]:
    """Learn byte-pair merges.

    Raises:
        ValueError: The text is not ASCII or gives fewer merges.
    """
    if not text.isascii():
        raise ValueError("the training text must be ASCII")
    words = _counted_words(text)
    pairs = _counted_pairs(words)
    merges: list[Pair] = []
    known = set(byte_alphabet())
    while len(merges) < count:
        pair = _most_frequent(pairs, known)
        if pair is None:
            raise ValueError(f"the training text gives {len(merges)} merges, {count} were asked for")
        merges.append(pair)
        known.add(pair[0] + pair[1])
        before = [word for word in words if pair in _pairs_of(word[0])]
        after = [(_merged(symbols, pair), weight) for symbols, weight in before]
        pairs.subtract(_counted_pairs(before))
        pairs.update(_counted_pairs(after))
        words = [word for word in words if word not in before] + after
    return tuple(merges)


def _counted_words(text: str) -> list[Word]:
    alphabet = byte_alphabet()
    counts = Counter(_PRE_TOKENS.findall(text))
    return [(tuple(alphabet[byte] for byte in word.encode()), weight) for word, weight in sorted(counts.items())]


def _pairs_of(symbols: Symbols) -> list[Pair]:
    return list(pairwise(symbols))


def _counted_pairs(words: list[Word]) -> Counter[Pair]:
    pairs: Counter[Pair] = Counter()
    for symbols, weight in words:
        for pair in _pairs_of(symbols):
            pairs[pair] += weight
    return pairs


def _most_frequent(pairs: Counter[Pair], known: set[str]) -> Pair | None:
    """The most frequent pair whose token does not exist yet; the smallest one on a tie."""
    fresh = ((-weight, pair) for pair, weight in pairs.items() if weight > 0 and pair[0] + pair[1] not in known)
    return min(fresh, default=(0, None))[1]


def _merged(symbols: Symbols, pair: Pair) -> Symbols:
    joined: list[str] = []
    at = 0
    while at < len(symbols):
        if symbols[at : at + 2] == pair:
            joined.append(pair[0] + pair[1])
            at += 2
        else:
            joined.append(symbols[at])
            at += 1
    return tuple(joined)
