"""Files that people give: too large, endless or too deep, they end in one message, and in little memory."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import bounded
from harness.builds.build_file import read_build_file
from harness.builds.recipe_file import read_recipe
from harness.cli.compare_inputs import read_input
from harness.domain.errors import HarnessError
from harness.gating.changed import read_changed_file
from harness.gating.labels import read_labels
from harness.gating.policy_file import read_policy
from harness.models.card import load_card
from harness.pitfalls.catalogue import read_pitfall
from harness.planning.document import read_document
from harness.planning.node_files import read_nodes
from harness.planning.texts import read_text
from harness.reporting.junit_merge import merge_junit
from harness.running.spread_file import read_spreads
from harness.running.tolerance_file import tolerances_in

HUGE = 130 * 2**20
"""Larger than any file that is read as a whole."""
MOST_MEMORY = 2.2 * bounded.MOST_KEPT_BYTES
"""The largest that is read, and once more while it is put together."""

BY_HAND: dict[str, Callable[[Path], object]] = {
    "matrix": read_document,
    "policy": read_policy,
    "labels": read_labels,
    "recipe": read_recipe,
    "build": read_build_file,
    "pitfall": read_pitfall,
}
"""Files of TOML."""
OF_PROGRAMS: dict[str, Callable[[Path], object]] = {
    "card": load_card,
    "spreads": read_spreads,
    "tolerances": lambda path: tolerances_in(path).read(),
    "node": lambda path: read_nodes([path]),
}
"""Files of JSON."""
OTHERS: dict[str, Callable[[Path], object]] = {
    "changed paths": read_changed_file,
    "measurements": lambda path: read_input(f"{path}"),
    "JUnit": lambda path: merge_junit([path]),
    "text": lambda path: read_text(path, "prompt", missing="E-missing", unreadable="E-unreadable"),
}
KINDS = BY_HAND | OF_PROGRAMS | OTHERS


def _refusal(kind: str, path: Path) -> HarnessError:
    with pytest.raises(HarnessError) as refused:
        KINDS[kind](path)
    return refused.value


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_larger_than_its_kind_is_refused_unread(kind: str, tmp_path: Path) -> None:
    """The message says that it is the size, and no more is taken into memory than the kind may have."""
    file = tmp_path / "huge.json"
    with file.open("wb") as made:
        made.truncate(HUGE)
    tracemalloc.start()
    refused = _refusal(kind, file)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MOST_MEMORY
    assert any(word in refused.message for word in ("MiB", "bytes")), refused


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "JUnit"])
def test_a_file_without_an_end_is_refused(kind: str, tmp_path: Path) -> None:
    """A device has no size: what is read of it is counted."""
    file = tmp_path / "endless.json"
    file.symlink_to("/dev/zero")
    assert any(word in _refusal(kind, file).message for word in ("MiB", "bytes"))


@pytest.mark.parametrize("kind", BY_HAND)
def test_toml_that_lies_too_deep_is_no_traceback(kind: str, tmp_path: Path) -> None:
    """Lists in lists beyond what the parser can follow."""
    file = tmp_path / "deep.toml"
    file.write_text(f"a = {'[' * 50_000}{']' * 50_000}\n")
    assert "too deep" in _refusal(kind, file).message


@pytest.mark.parametrize("kind", BY_HAND)
def test_toml_with_too_many_digits_is_no_traceback(kind: str, tmp_path: Path) -> None:
    """Python refuses to make a number of them, with an error of its own."""
    file = tmp_path / "digits.toml"
    file.write_text(f"a = {'9' * 20_000}\n")
    assert "digits" in _refusal(kind, file).message


@pytest.mark.parametrize("kind", [*OF_PROGRAMS, "measurements"])
def test_json_that_lies_too_deep_is_no_traceback(kind: str, tmp_path: Path) -> None:
    """As of TOML."""
    file = tmp_path / "deep.json"
    file.write_text(f"{'[' * 200_000}{']' * 200_000}")
    _refusal(kind, file)


def test_line_breaks_are_those_of_unix(tmp_path: Path) -> None:
    """As Python's own reading of texts does it."""
    file = tmp_path / "text"
    file.write_bytes(b"a\r\nb\rc\n")
    assert bounded.read_text(file) == file.read_text() == "a\nb\nc\n"


def test_the_largest_file_is_read_whole(tmp_path: Path) -> None:
    """Not one byte less; one more is refused, as the system would refuse it."""
    file = tmp_path / "full"
    file.write_bytes(b"x" * 100)
    assert bounded.read_bytes(file, 100) == b"x" * 100
    with pytest.raises(OSError, match="more than 99 bytes") as refused:
        bounded.read_bytes(file, 99)
    assert refused.value.strerror.startswith(os.strerror(refused.value.errno or 0))
