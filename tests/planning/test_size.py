"""A matrix that asks for more than any night can do is refused before it takes the memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.domain.errors import BadInput
from harness.planning import size
from harness.planning.expand import expand
from harness.planning.load import load_matrix

HEAD = 'name = "m"\n[builds.ik]\nfork = "ik_llama.cpp"\npath = "x"\n[models.tiny]\ncard = "tiny-moe"\n'


def _matrix(folder: Path, text: str) -> Path:
    file = folder / "m.toml"
    file.write_text(f"{HEAD}{text}\n[[workloads]]\npp = 8\n[[workloads]]\ntg = 8\n")
    return file


def test_a_product_of_long_axes_is_refused_at_once(tmp_path: Path) -> None:
    """Ten million million combinations: nothing of them is made."""
    many = list(range(16, 16 + 100))
    axes = "\n".join(f"{name} = {many}" for name in ("b", "ub", "amb", "ngl", "t", "ncmoe"))
    with pytest.raises(BadInput, match=r"E-matrix-too-large.*1000000000000 combinations") as refused:
        expand(load_matrix(_matrix(tmp_path, f"[flags]\n{axes}")))
    assert "take values out" in refused.value.hint


def test_too_many_combinations_of_what_is_added_late_are_refused(tmp_path: Path) -> None:
    """What a placement adds counts, too."""
    late = f'[[when]]\nplacement = "cpu"\nflags.ub = {list(range(1, 1001))}\nflags.t = {list(range(1, 201))}\n'
    with pytest.raises(BadInput, match="E-matrix-too-large"):
        expand(load_matrix(_matrix(tmp_path, late)))


def test_cases_are_counted_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few arms can be asked much of; as many as allowed are planned, one more is not."""
    matrix = load_matrix(_matrix(tmp_path, "[flags]\nfa = [0, 1]"))
    monkeypatch.setattr(size, "MOST_CASES", 4)
    assert len(expand(matrix)) == 4
    monkeypatch.setattr(size, "MOST_CASES", 3)
    with pytest.raises(BadInput, match="more than 3 cases"):
        expand(matrix)
