"""Matrices and policies that anything was done to: each is planned, or refused with what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.errors import BadInput
from harness.gating.policy_file import read_policy
from harness.planning.expand import expand_and_warn
from harness.planning.load import load_matrix

ROOT = Path(__file__).parents[2]
MATRICES = [(ROOT / "matrices" / name).read_text() for name in ("local.toml", "patched-build.toml")]
POLICY = (ROOT / ".github" / "gate" / "policy.toml").read_text()
EXAMPLES = 25

Edit: TypeAlias = tuple[float, int, str]
VALUES = ["1", "-1", "0.0", "nan", "true", '""', "[]", "{}", "[[]]", "[{}]", "1979-05-27", '"x"', '"\\u0000"', "1e400"]
PIECES = ["\n", "=", ".", "#", "'", '"', "[", "]", "[[checks]]\n", "[flags]\n", "\x00", "\u202e", "é", "9" * 30]
EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12), st.sampled_from(PIECES)), max_size=2)
LINES = st.lists(st.tuples(st.floats(0, 1), st.sampled_from(["", *VALUES])), max_size=3)


def edited(text: str, lines: list[tuple[float, str]], edits: list[Edit]) -> bytes:
    """Some values of keys replaced, or their lines left out; and some characters anywhere."""
    listed = text.splitlines()
    keys = [number for number, line in enumerate(listed) if "=" in line and not line.startswith("#")]
    for share, value in lines:
        at = keys[min(int(share * len(keys)), len(keys) - 1)]
        listed[at] = f"{listed[at].partition('=')[0]}= {value}" if value else ""
    text = "\n".join(listed)
    for share, gone, piece in edits:
        at = int(share * len(text))
        text = text[:at] + piece + text[at + gone :]
    return text.encode()


@settings(max_examples=EXAMPLES)
@given(st.sampled_from(MATRICES), LINES, EDITS)
def test_whatever_was_done_to_a_matrix_it_is_planned_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str, lines: list[tuple[float, str]], edits: list[Edit]
) -> None:
    """The refusal names the file, and every case that is planned has an id."""
    file = tmp_path_factory.getbasetemp() / "any.toml"
    file.write_bytes(edited(text, lines, edits))
    try:
        planned, _ = expand_and_warn(load_matrix(file))
        found = [case.id for case in planned]
    except BadInput as refused:
        found = [f"{refused}"] if file.name in f"{refused}" else []
    assert len(set(found)) == len(found) > 0


@settings(max_examples=2 * EXAMPLES)
@given(LINES, EDITS)
def test_whatever_was_done_to_a_policy_it_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[float, str]], edits: list[Edit]
) -> None:
    """With the file's name."""
    file = tmp_path_factory.getbasetemp() / "policy.toml"
    file.write_bytes(edited(POLICY, lines, edits))
    try:
        told = f"{file}: {read_policy(file).name}"
    except BadInput as refused:
        told = f"{refused}"
    assert file.name in told
