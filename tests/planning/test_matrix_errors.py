"""Every fault of a matrix is named with file, key, what was expected and what was probably meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from planning_support import ATTRIBUTION, BASE, CONTRAST, assert_fault, load, refusal

from harness.domain.errors import BadInput
from harness.planning.expand import expand
from harness.planning.load import find_matrix, load_matrix


@pytest.mark.parametrize(
    ("text", "slug", "where", "message", "hint"),
    [
        pytest.param(
            "[polcy]\nblocks = 2",
            "E-matrix-invalid",
            "m.toml: polcy",
            "unknown key 'polcy'",
            "did you mean 'policy'?",
            id="key of the file",
        ),
    ],
)
def test_a_fault_of_the_file_is_named(  # noqa: PLR0917 - one parameter for each part of the error
    tmp_path: Path, text: str, slug: str, where: str, message: str, hint: str
) -> None:
    """Slug, place, message and hint are exactly right."""
    assert_fault(tmp_path, text, slug, where, message, hint)


def test_the_base_itself_is_good(tmp_path: Path) -> None:
    """The faults above come from what the tests add."""
    assert load(tmp_path, CONTRAST + "[flags]\nfa = [0, 1]").name == "test"


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    """A wrong key does not hide an unknown flag, and both are in one error."""
    error = refusal(tmp_path, "[flags]\nfmo = 1\n[policy]\nblock = 2\nmargin = 'x'")
    assert error.slug == "E-matrix-invalid"
    assert error.where == "m.toml"
    lines = error.message.splitlines()
    assert lines[0] == "3 problems"
    assert sorted(line.split("(")[0].strip() for line in lines[1:]) == [
        "E-matrix-invalid: m.toml: policy.block: unknown key 'block'",
        'E-matrix-invalid: m.toml: policy.margin: expected "auto" or a number above 0 and below 1, found a text',
        "E-unknown-flag: m.toml: flags.fmo: unknown flag 'fmo'",
    ]


def test_faults_of_one_kind_keep_their_slug(tmp_path: Path) -> None:
    """Two unknown flags are an E-unknown-flag, not a general error."""
    error = refusal(tmp_path, "[flags]\nfmo = 1\nrtrr = 1")
    assert error.slug == "E-unknown-flag"
    assert "m.toml: flags.fmo" in error.message
    assert "m.toml: flags.rtrr" in error.message


def test_a_syntax_error_has_its_line(tmp_path: Path) -> None:
    """What TOML can't read is E-matrix-syntax with the line."""
    file = tmp_path / "m.toml"
    file.write_text('name = "x"\nflags = on\n')
    with pytest.raises(BadInput, match=r"line 2") as caught:
        load_matrix(file)
    assert caught.value.slug == "E-matrix-syntax"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("x = " + "[" * 5000 + "]" * 5000, "too deep", id="lists"),
        pytest.param("x" + ".x" * 50 + " = 1", "16 deep", id="tables"),
        pytest.param("x = " + "9" * 6000, "4300 digits", id="number"),
    ],
)
def test_what_is_beyond_the_parser_is_a_syntax_error(tmp_path: Path, text: str, reason: str) -> None:
    """Limits of the parser are an error of the file, not a traceback."""
    error = refusal(tmp_path, text)
    assert error.slug == "E-matrix-syntax"
    assert reason in error.message


@pytest.mark.parametrize("name", ["a" * 300, "a" * 300 + "/b", "a\0b", "a/" * 3000])
def test_what_can_be_no_file_is_a_missing_matrix(tmp_path: Path, name: str) -> None:
    """Neither on the command line nor in ``extends`` does an impossible path end in a traceback."""
    with pytest.raises(BadInput, match="E-matrix-missing"):
        find_matrix(name)
    file = tmp_path / "m.toml"
    file.write_text(f"extends = {json.dumps(name)}")
    with pytest.raises(BadInput, match="E-matrix-extends"):
        load_matrix(file)


def test_a_matrix_that_asks_nothing_is_refused(tmp_path: Path) -> None:
    """Nothing to run is no success."""
    file = tmp_path / "m.toml"
    file.write_text(BASE.partition("[[workloads]]")[0])
    with pytest.raises(BadInput, match=r"E-no-workload: .*m\.toml: workloads: "):
        expand(load_matrix(file))


def test_the_error_leads_to_exit_code_2(tmp_path: Path) -> None:
    """A bad matrix is the user's to mend."""
    assert refusal(tmp_path, "[polcy]").exit_code == 2


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 give an error, not a traceback."""
    file = tmp_path / "m.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="E-matrix-unreadable"):
        load_matrix(file)


def test_a_key_of_a_factor_is_named_with_its_neighbours(tmp_path: Path) -> None:
    """The unknown key and the missing one are both said, with the place inside the list."""
    error = refusal(tmp_path, ATTRIBUTION.replace('factor = "build"', 'factr = "build"'))
    assert "contrasts[0].factors[0].factr: unknown key 'factr' (did you mean 'factor'?)" in error.message
    assert "contrasts[0].factors[0].factor: the key is missing" in error.message
