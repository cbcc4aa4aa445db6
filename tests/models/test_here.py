"""Whether a model lies on this machine: nothing is made, fetched or hashed to know it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.domain.model import Model
from harness.execution import holdings
from harness.models.cache import read_sidecar
from harness.models.hashing import file_sha256
from harness.models.here import files_here

DIGEST = "a" * 64


def test_a_model_is_found_by_path_card_and_digest(tiny_model: Path, tmp_path: Path) -> None:
    """A made one by its own digest, too: whichever of equal files."""
    made = read_sidecar(tiny_model)
    assert made is not None
    assert files_here(Model("by path", path=str(tiny_model))) == (tiny_model,)
    assert files_here(Model("by card", card="tiny-moe", quant=made.quant)) == (tiny_model,)
    (found,) = files_here(Model("by digest", sha256=(made.sha256,)))
    assert file_sha256(found) == made.sha256


@pytest.mark.parametrize(
    "model",
    [
        Model("no file", path="/nowhere/model.gguf"),
        Model("no such card", card="no-such-card", quant="Q4_K_M"),
        Model("no such quant", card="tiny-moe", quant="Q9_X"),
        Model("never fetched", url="https://host.invalid/model.gguf", sha256=(DIGEST,)),
    ],
    ids=lambda model: model.name,
)
def test_what_does_not_lie_here_or_is_wrong_is_none(model: Model) -> None:
    """Its job says what is wrong."""
    assert files_here(model) == ()


def test_what_is_in_memory_stands_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not there is not told; what the kernel does not tell of is on the disk."""
    shares = {"warm": 0.9, "cold": 0.1, "unknown": None}
    files = {name: tmp_path / f"{name}.gguf" for name in shares}
    for file in files.values():
        file.write_text(json.dumps({}))
    monkeypatch.setattr(holdings, "resident_share", lambda found: shares[found[0].stem])
    models = {name: Model(name, path=str(file)) for name, file in {**files, "gone": tmp_path / "gone"}.items()}
    assert holdings.held_here(models) == ("cold", "unknown", "warm")
