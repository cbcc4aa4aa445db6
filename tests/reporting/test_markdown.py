"""Spans and blocks of code, read back by a parser of Markdown that is not ours."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from harness.reporting.clean import clean, one_line
from harness.reporting.markdown import code, fenced

PARSER = MarkdownIt("commonmark").enable("table")
NASTY = st.text(alphabet=st.sampled_from([*"`|\\@#*_<>[](){}!~$:/.- \n\tab1\x1b\u202e"]), max_size=30)


@settings(max_examples=60, deadline=None)
@given(NASTY)
def test_a_span_holds_the_text_and_nothing_else(text: str) -> None:
    """In a cell of a table, too, where a bar would end it."""
    tokens = PARSER.parse(f"| a | b |\n|---|---|\n| {code(text)} | end |\n")
    cells = [token for token in tokens if token.type == "inline"]
    assert [cell.content for cell in cells[:2]] == ["a", "b"]
    assert len(cells) == 4
    assert cells[3].content == "end"
    expected = one_line(text).replace("|", "\N{BROKEN BAR}")
    spans = [(child.type, child.content.strip(" ")) for child in cells[2].children or [] if child.content.strip()]
    assert spans == ([("code_inline", expected.strip(" "))] if expected else [])


@settings(max_examples=60, deadline=None)
@given(NASTY)
def test_a_block_holds_the_text_and_nothing_else(text: str) -> None:
    tokens = PARSER.parse("\n".join(fenced(text)) + "\n\nafter\n")
    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]
    assert tokens[0].content == clean(text) + "\n" or not clean(text)


def test_a_long_text_is_cut_before_it_is_fenced() -> None:
    assert code("x" * 20 + "`", most=10) == "`xxxxxxx...`"
