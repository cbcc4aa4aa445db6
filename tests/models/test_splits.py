"""Models in several files are one model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from engine_questions import ask
from micro_model import micro_content, write_card_model
from split_model import split

from harness.domain.errors import BadInput
from harness.engines.embedded.flags import IK, MAINLINE
from harness.models.card import parse_card
from harness.models.hashing import file_sha256, model_sha256
from harness.models.inspect import inspect_gguf
from harness.models.splits import parts_of, stem_of


@pytest.fixture
def parts(micro_file: Path, tmp_path: Path) -> list[Path]:
    """The micro model in three files."""
    return split(micro_file, tmp_path, 3)


def test_any_part_names_the_whole(parts: list[Path], micro_file: Path) -> None:
    """Figures, tensors and size are those of all files together."""
    whole = inspect_gguf(micro_file)
    for part in parts:
        info = inspect_gguf(part)
        assert info.path == parts[0]
        assert (info.shards, info.size) == (3, sum(each.stat().st_size for each in parts))
        assert (info.parameters, info.quant_mix, info.experts) == (whole.parameters, whole.quant_mix, whole.experts)
        assert [tensor.name for tensor in info.tensors] == [tensor.name for tensor in whole.tensors]
        assert {tensor.part for tensor in info.tensors} == {1, 2, 3}


def test_the_digest_covers_every_part(parts: list[Path], tmp_path: Path) -> None:
    """A byte changed in any part gives another digest; which part was named does not matter."""
    before = model_sha256(parts[0], cache=tmp_path / "c")
    assert model_sha256(parts[2], cache=tmp_path / "c") == before
    raw = bytearray(parts[2].read_bytes())
    raw[-1] ^= 1
    parts[2].write_bytes(raw)
    assert model_sha256(parts[0], cache=tmp_path / "d") != before


def test_one_file_has_its_own_digest(micro_file: Path, tmp_path: Path) -> None:
    """A model in one file keeps the digest that any tool gives for it."""
    assert model_sha256(micro_file, cache=tmp_path) == file_sha256(micro_file, cache=tmp_path)


def test_a_missing_part_is_named(parts: list[Path]) -> None:
    """Two of three files are no model."""
    parts[1].unlink()
    with pytest.raises(BadInput, match=r"E-model-part-missing: .*there is no micro-00002-of-00003.gguf"):
        inspect_gguf(parts[0])


def test_a_part_under_another_number_is_told(parts: list[Path]) -> None:
    """Files that were renamed or mixed up are not loaded."""
    parts[2].write_bytes(parts[1].read_bytes())
    with pytest.raises(BadInput, match=r"E-model-parts: .*it is part 2 of 3, its name says part 3 of 3"):
        inspect_gguf(parts[0])


def test_a_part_under_a_name_of_its_own_is_told(parts: list[Path], tmp_path: Path) -> None:
    """Engines find the others by name."""
    lone = parts[0].rename(tmp_path / "model.gguf")
    with pytest.raises(BadInput, match=r"E-model-parts: .*part 1 of 3, its name says part 1 of 1"):
        inspect_gguf(lone)


def test_parts_of_two_models_are_told(parts: list[Path], tmp_path: Path) -> None:
    """The number of tensors tells that a part is of another model, where all numbers of parts are right."""
    content = micro_content()
    content["shape"]["layers"] = 2
    other = write_card_model(parse_card(json.dumps(content), where="x"), tmp_path / "other.gguf")
    parts[1].write_bytes(split(other, tmp_path, 3)[1].read_bytes())
    with pytest.raises(BadInput, match=r"E-model-parts: .*tensors"):
        inspect_gguf(parts[0])


@pytest.mark.parametrize(
    ("name", "count"),
    [("a-00001-of-00003.gguf", 3), ("a-00004-of-00003.gguf", 1), ("a-00000-of-00003.gguf", 1), ("a.gguf", 1)],
)
def test_parts_by_name(name: str, count: int) -> None:
    """Only numbers that can be a part's are."""
    assert len(parts_of(Path("/m") / name)) == count


def test_the_stem_has_no_number() -> None:
    """Names of models are without the part."""
    assert stem_of(Path("/m/Big-Q4_K_M-00002-of-00003.gguf")) == "Big-Q4_K_M"


@pytest.mark.parametrize("fork", [MAINLINE, IK])
def test_engines_load_what_is_called_a_split_model(fork: str, parts: list[Path], tmp_path: Path) -> None:
    """The first part is what engines are given, in both forks."""
    pytest.importorskip("xllamacpp", reason="moe-harness[local] is not installed")
    assert ask(fork, parts[0], {"prefill": [1, 2, 3]}, tmp_path / "l.npy")["logits"].shape[0] == 3
