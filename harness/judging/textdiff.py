"""A difference of two texts that a person can read: what they share, then what each says, then word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile

_BEFORE = 60
_AFTER = 120
_WORDS_BEFORE, _WORDS_AFTER = 12, 60
"""Words, and what is between them, of the common beginning that are shown, and that are compared after it."""
_MOST = 320
"""Characters of a word diff."""
_SHARED_RUN = 16
"""Words that both have in a row are shown up to this many; of more, the two ends."""
_WORD = re.compile(r"\w+|\s+|[^\w\s]")


def show_divergence(baseline: str, candidate: str) -> str:
    """Show two texts around the first character at which they part.

    Control characters are written as escapes, so that a difference in white space shows.

    Args:
        baseline: The reference text.
        candidate: The other text.

    Returns:
        Four lines: the end of the common beginning, how each text goes on, and a word diff: words of the reference
        alone in ``[-...-]``, of the other alone in ``{+...+}``.
    """
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(baseline, candidate, strict=False)))
    return "\n".join(
        (
            f"  both say   {end_of(baseline[:shared])}",
            f"- baseline   {_go_on(baseline, shared)}",
            f"+ candidate  {_go_on(candidate, shared)}",
            f"  words      {word_diff(baseline, candidate)}",
        )
    )


def word_diff(baseline: str, candidate: str) -> str:
    """Two texts in one line from the first word on that differs: ``the quick [-brown-]{+red+} fox``.

    Args:
        baseline: The reference text.
        candidate: The other text.
    """
    ours, theirs = _WORD.findall(baseline), _WORD.findall(candidate)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs, strict=False)))
    start = max(0, shared - _WORDS_BEFORE)
    told = "".join(_marked(ours[start : shared + _WORDS_AFTER], theirs[start : shared + _WORDS_AFTER]))
    cut = max(len(ours), len(theirs)) > shared + _WORDS_AFTER or len(told) > _MOST
    return ("..." if start else "") + told[:_MOST].strip(" ") + ("..." if cut else "")


def end_of(text: str, length: int = _BEFORE) -> str:
    """The end of a text, in one line."""
    return f"{'...' if len(text) > length else ''}{visible(text[max(0, len(text) - length) :])}"


def visible(text: str) -> str:
    """A text in one line: whatever cannot be printed is an escape."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _marked(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[str]:
    # A space that both have is nothing that they have in common.
    matcher = SequenceMatcher(str.isspace, ours, theirs, autojunk=False)
    for tag, start, end, other_start, other_end in matcher.get_opcodes():
        if tag == "equal":
            yield _run(ours[start:end])
            continue
        if end > start:
            yield f"[-{_words(ours[start:end])}-]"
        if other_end > other_start:
            yield f"{{+{_words(theirs[other_start:other_end])}+}}"


def _run(words: Sequence[str]) -> str:
    if len(words) <= _SHARED_RUN:
        return _words(words)
    half = _SHARED_RUN // 2
    return f"{_words(words[:half])}...{_words(words[-half:])}"


def _words(words: Sequence[str]) -> str:
    return visible("".join(words))


def _go_on(text: str, start: int) -> str:
    rest = text[start : start + _AFTER]
    return (visible(rest) or "(ends)") + ("..." if len(text) > start + _AFTER else "")
