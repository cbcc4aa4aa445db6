"""The learned vocabulary."""

from __future__ import annotations

import pytest

from harness.models.tokenizer import TokenKind, build_vocabulary, byte_alphabet, learn_merges

TEXT = "low lower lowest, new newer newest; " * 3


def test_alphabet_is_a_bijection_on_bytes() -> None:
    """Each byte has one printable character of its own; a space has the well-known one."""
    alphabet = byte_alphabet()
    assert len(set(alphabet)) == 256
    assert all(not character.isspace() for character in alphabet)
    assert (alphabet[ord("a")], alphabet[ord(" ")], alphabet[ord("\n")]) == ("a", "Ġ", "Ċ")


def test_merges_follow_frequency_and_break_ties_by_text() -> None:
    """The most frequent pair comes first; the same text gives the same merges."""
    assert learn_merges("ab ab ab cd", 2) == (("a", "b"), ("Ġ", "ab"))
    assert learn_merges(TEXT, 10) == learn_merges(TEXT, 10)


def test_merges_build_on_earlier_tokens() -> None:
    """Both sides of each merge exist before it, and no token is made twice."""
    known = set(byte_alphabet())
    for left, right in learn_merges(TEXT, 12):
        assert {left, right} <= known
        assert left + right not in known
        known.add(left + right)


def test_too_short_a_text_is_told() -> None:
    """A text with too few pairs says how many merges it gives."""
    with pytest.raises(ValueError, match="gives 1 merges, 5"):
        learn_merges("ab", 5)


def test_other_alphabets_are_refused() -> None:
    """The training text must be ASCII, since pre-tokens are found by an ASCII rule."""
    with pytest.raises(ValueError, match="ASCII"):
        learn_merges("größe", 1)


def test_vocabulary_is_numbered_bytes_merges_specials_padding() -> None:
    """Ids are in that order, with matching kinds."""
    vocabulary = build_vocabulary(TEXT, 5, ("<|endoftext|>", "<|im_end|>"), size=270)
    assert len(vocabulary.tokens) == len(set(vocabulary.tokens)) == 270
    assert vocabulary.tokens[261:263] == ("<|endoftext|>", "<|im_end|>")
    assert vocabulary.kinds[260:264] == (TokenKind.NORMAL, TokenKind.CONTROL, TokenKind.CONTROL, TokenKind.UNUSED)
    with pytest.raises(ValueError, match="do not fit"):
        build_vocabulary(TEXT, 5, ("<|endoftext|>", "<|im_end|>"), size=262)
