"""Planted faults: exactly what is said changes, in every type, and a real engine answers otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import pytest
from engine_questions import ask, log_softmax
from micro_model import micro_content, need_quantizer
from split_model import split

from harness.domain.errors import BadInput, Infrastructure
from harness.engines.embedded.flags import IK, MAINLINE
from harness.models.cache import ensure_model
from harness.models.card import parse_card
from harness.models.corrupting import write_corrupted
from harness.models.corruption_blocks import coarsened, zeroed_columns
from harness.models.corruptions import Kind
from harness.models.gguf_reader import read_header
from harness.models.gguf_types import TYPES_BY_NAME

QUANTS = ("F16", "Q8_0", "Q4_K_M", "IQ4_XS")
PREFILL = [20 + (7919 * at) % 200 for at in range(64)]


@pytest.fixture(scope="module", params=QUANTS)
def quantized(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of two layers, 256 wide, in each quantization."""
    if request.param != "F16":
        need_quantizer()
    return small(request.param, tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same in IQ4_XS."""
    need_quantizer()
    return small("IQ4_XS", tmp_path_factory.mktemp("sound"))


def small(quant: str, cache: Path) -> Path:
    content = micro_content()
    content["shape"] |= {"layers": 2, "width": 256, "heads": 4, "kv_heads": 2, "head_width": 64, "experts": 8}
    content["shape"] |= {"experts_used": 3, "expert_width": 256}
    return ensure_model(parse_card(json.dumps(content), where="small"), quant, cache=cache)


def tensors(path: Path) -> dict[str, np.ndarray]:
    """Raw rows by name, read by the gguf package and not by what wrote them."""
    return {tensor.name: np.array(tensor.data) for tensor in gguf.GGUFReader(path).tensors}


def weights(path: Path, name: str) -> np.ndarray:
    tensor = next(tensor for tensor in gguf.GGUFReader(path).tensors if tensor.name == name)
    found: np.ndarray = gguf.quants.dequantize(np.array(tensor.data), tensor.tensor_type)
    return found


def metadata(path: Path) -> dict[str, object]:
    return {key: entry.value for key, entry in read_header(path).metadata.items()}


@pytest.mark.parametrize("kind", Kind)
def test_nothing_changes_but_what_is_said(kind: Kind, quantized: Path, tmp_path: Path) -> None:
    """Every other tensor has its bytes, every other key its value."""
    copy, corruption = write_corrupted(quantized, tmp_path, kind, seed=5)
    before, after = tensors(quantized), tensors(copy)
    changed = {name for name in before if before[name].tobytes() != after[name].tobytes()}
    assert changed == corruption.tensors
    old, new = metadata(quantized), metadata(copy)
    assert {key for key in new if new[key] != old.get(key)} == set(corruption.metadata)
    assert changed or corruption.metadata
    assert all(name in corruption.what or kind in (Kind.SWAPPED_EXPERTS, Kind.ZEROED_EXPERT) for name in changed)


def test_experts_are_swapped_in_all_their_tensors(quantized: Path, tmp_path: Path) -> None:
    """Gate, up and down of the two have changed places, whatever type each is in."""
    copy, corruption = write_corrupted(quantized, tmp_path, Kind.SWAPPED_EXPERTS, seed=1)
    before, after = tensors(quantized), tensors(copy)
    assert len(corruption.tensors) == 3
    for name, slices in corruption.slices.items():
        one, other = slices.moved
        assert (after[name][one] == before[name][other]).all()
        assert (after[name][other] == before[name][one]).all()


def test_a_zeroed_expert_is_zero(quantized: Path, tmp_path: Path) -> None:
    copy, corruption = write_corrupted(quantized, tmp_path, Kind.ZEROED_EXPERT, seed=1)
    for name, slices in corruption.slices.items():
        (expert,) = slices.filled
        assert not weights(copy, name).reshape(slices.count, -1)[expert].any()


def test_just_one_head_is_zeroed(quantized: Path, tmp_path: Path) -> None:
    """Also where a head is a part of a block: 64 columns of 256."""
    copy, corruption = write_corrupted(quantized, tmp_path, Kind.ZEROED_HEAD, seed=1)
    (name,) = corruption.tensors
    before, after = weights(quantized, name), weights(copy, name)
    zeroed = ~after.any(axis=0)
    assert zeroed.sum() == 64
    assert (after[:, ~zeroed] == before[:, ~zeroed]).all()


@pytest.mark.parametrize("kind", ["Q4_K", "Q5_K", "Q6_K", "IQ4_XS", "Q8_0", "F16"])
@pytest.mark.parametrize("part", range(8))
def test_every_part_of_a_block_can_be_zeroed(kind: str, part: int) -> None:
    """Random blocks: the part's 32 columns are zero after it, no other weight has changed."""
    layout = TYPES_BY_NAME[kind]
    rows = np.random.default_rng(part).integers(0, 0x3C, (5, layout.nbytes((512,))), np.uint8)
    zeroed = zeroed_columns(layout, 256 + 32 * part, 288 + 32 * part)
    dequantized = getattr(gguf.GGMLQuantizationType, kind)
    before = gguf.quants.dequantize(rows.view(np.float16) if kind == "F16" else rows, dequantized)
    changed = zeroed.change(rows)
    after = gguf.quants.dequantize(changed.view(np.float16) if kind == "F16" else changed, dequantized)
    assert (zeroed.first, zeroed.stop) == (256 + 32 * part, 288 + 32 * part)
    assert not after[:, zeroed.first : zeroed.stop].any()
    outside = np.delete(after, np.s_[zeroed.first : zeroed.stop], axis=1)
    assert (outside == np.delete(before, np.s_[zeroed.first : zeroed.stop], axis=1)).all()


def test_a_type_without_small_parts_loses_whole_blocks() -> None:
    """Q3_K's scales are not known here: the whole block around the columns goes, and that is said."""
    zeroed = zeroed_columns(TYPES_BY_NAME["Q3_K"], 300, 310)
    assert (zeroed.first, zeroed.stop) == (256, 512)


@pytest.mark.parametrize("kind", ["F16", "Q8_0", "Q4_0", "IQ4_NL", "IQ4_XS", "Q4_K", "Q5_K", "Q6_K"])
def test_rounding_leaves_four_values(kind: str) -> None:
    """Two bits of a weight are left of each scale: four values, of which the spread is like that before."""
    layout = TYPES_BY_NAME[kind]
    source = np.random.default_rng(3)
    if kind == "F16":
        rows = source.standard_normal((4, 256)).astype(np.float16).view(np.uint8)
    else:
        rows = source.integers(0, 256, (4, layout.nbytes((256,))), np.uint8)
        halves = {"Q6_K": [208], "Q4_K": [0, 2], "Q5_K": [0, 2]}.get(kind, range(0, rows.shape[1], layout.block_bytes))
        for at in halves:
            rows[:, at : at + 2] = np.frombuffer(np.float16(0.01).tobytes(), np.uint8)
    change = coarsened(layout)
    assert change is not None
    typed = getattr(gguf.GGMLQuantizationType, kind)
    before = gguf.quants.dequantize(rows.view(np.float16) if kind == "F16" else rows, typed)
    after = gguf.quants.dequantize(change(rows).view(np.float16) if kind == "F16" else change(rows), typed)
    size = {"Q6_K": 16}.get(kind, 32)
    assert max(len(np.unique(block)) for block in after.reshape(-1, size)) <= 4
    assert np.corrcoef(before.ravel(), after.ravel())[0, 1] > 0.8
    assert (before != after).mean() > 0.5


def test_the_seed_decides_where(tmp_path: Path, sound: Path) -> None:
    said = {write_corrupted(sound, tmp_path, Kind.COARSE_TENSOR, seed)[1].what for seed in (0, 0, 1, 2, 3)}
    assert 2 <= len(said) <= 4


def test_of_a_split_model_only_what_changes_is_copied(tmp_path: Path, micro_file: Path) -> None:
    """The other part is a link: real models have hundreds of gigabytes."""
    parts = split(micro_file, tmp_path, 2)
    copy, _ = write_corrupted(parts[0], tmp_path / "broken", Kind.FEWER_EXPERTS)
    second = copy.with_name(parts[1].name)
    assert copy.name == parts[0].name
    assert second.is_symlink()
    assert metadata(copy)["qwen3moe.expert_used_count"] == 1


def test_a_model_without_experts_is_refused(tmp_path: Path, micro_file: Path) -> None:
    """What can't be planted is said with the kind and the reason; no file is left."""
    once, _ = write_corrupted(micro_file, tmp_path / "one", Kind.FEWER_EXPERTS)
    with pytest.raises(BadInput, match="fewer-experts can't be planted: a token goes through one expert only"):
        write_corrupted(once, tmp_path / "two", Kind.FEWER_EXPERTS)
    assert not (tmp_path / "two").exists()


def test_a_full_disk_is_named_before_anything_is_written(
    tmp_path: Path, micro_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 10})())
    with pytest.raises(Infrastructure) as error:
        write_corrupted(micro_file, tmp_path / "copy", Kind.ROPE_BASE)
    assert error.value.slug == "E-disk-full"
    assert not list((tmp_path / "copy").iterdir())


@pytest.mark.parametrize("fork", [MAINLINE, IK])
def test_a_real_engine_answers_otherwise(fork: str, sound: Path, tmp_path: Path) -> None:
    """Both engines load each copy, and their distributions are not those of the sound file."""
    pytest.importorskip("xllamacpp", reason="moe-harness[local] is not installed")
    expected = log_softmax(ask(fork, sound, {"prefill": PREFILL}, tmp_path / "sound.npy")["logits"])
    for kind in Kind:
        copy, corruption = write_corrupted(sound, tmp_path, kind, seed=2)
        if kind is not Kind.NAN_ROW:
            found = log_softmax(ask(fork, copy, {"prefill": PREFILL}, tmp_path / "broken.npy")["logits"])
            assert (np.exp(expected) * (expected - found)).sum(axis=1).mean() > 1e-4, corruption.what


def test_a_nan_row_makes_nan_in_a_real_engine(tmp_path: Path) -> None:
    """Mainline answers an F16 model; what it answers is not finite."""
    pytest.importorskip("xllamacpp", reason="moe-harness[local] is not installed")
    copy, _ = write_corrupted(small("F16", tmp_path), tmp_path / "copy", Kind.NAN_ROW, seed=1)
    assert not np.isfinite(ask(MAINLINE, copy, {"prefill": PREFILL}, tmp_path / "nan.npy")["logits"]).all()


def test_quantized_activations_swallow_nan(sound: Path, tmp_path: Path) -> None:
    """All logits are finite and far from right: no check for NaN finds this, only distributions do."""
    pytest.importorskip("xllamacpp", reason="moe-harness[local] is not installed")
    expected = log_softmax(ask(MAINLINE, sound, {"prefill": PREFILL}, tmp_path / "sound.npy")["logits"])
    copy, _ = write_corrupted(sound, tmp_path, Kind.NAN_ROW, seed=4)
    logits = ask(MAINLINE, copy, {"prefill": PREFILL}, tmp_path / "nan.npy")["logits"]
    assert np.isfinite(logits).all()
    assert (np.exp(expected) * (expected - log_softmax(logits))).sum(axis=1).mean() > 1
