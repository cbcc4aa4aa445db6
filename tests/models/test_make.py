"""Making files from cards: same bytes everywhere, and of the sizes that were promised."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from micro_model import micro_card, micro_content, write_card_model

from harness.domain.errors import BadInput
from harness.models.cache import ensure_model, read_sidecar
from harness.models.card import parse_card
from harness.models.gguf_reader import read_header
from harness.models.inspect import inspect_gguf
from harness.models.make import MAKER_VERSION, plan_model

gguf = pytest.importorskip("gguf", reason="moe-harness[local] is not installed")

# If this fails, the bytes of made models have changed: raise MAKER_VERSION, so that no node mixes old files with new.
TINY_F16_SHA256 = {1: "f987defdf83d1be343ac4484d93c59fce6b09a776d886c4c9441e3eb1cbd7f02"}


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def arrays(path: Path) -> dict[str, np.ndarray]:
    return {tensor.name: np.array(tensor.data, np.float64) for tensor in gguf.GGUFReader(path).tensors}


def test_same_card_same_bytes(tmp_path: Path, micro_file: Path) -> None:
    """Two makings of a card agree byte for byte; another seed differs."""
    assert sha256(write_card_model(micro_card(), tmp_path / "again.gguf")) == sha256(micro_file)
    assert sha256(write_card_model(micro_card(seed=2), tmp_path / "other.gguf")) != sha256(micro_file)


def test_tiny_moe_has_the_known_hash_and_is_small(tiny_f16: Path) -> None:
    """The bytes are those of every other machine and version of numpy, under 100 MB."""
    assert sha256(tiny_f16) == TINY_F16_SHA256[MAKER_VERSION]
    sidecar = read_sidecar(tiny_f16)
    assert sidecar is not None
    assert sidecar.sha256 == TINY_F16_SHA256[MAKER_VERSION]
    assert tiny_f16.stat().st_size < 100e6


def test_the_digest_is_made_while_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has just been written is not read again, and its digest is the file's."""

    def reading(*_: object) -> None:
        pytest.fail("the file was read again")

    with monkeypatch.context() as patched:
        patched.setattr(hashlib, "file_digest", reading)
        made = ensure_model(micro_card(), "F16", cache=tmp_path)
    sidecar = read_sidecar(made)
    assert sidecar is not None
    assert sidecar.sha256 == sha256(made)


def test_planned_size_is_the_file_size(micro_file: Path) -> None:
    """The bytes announced before writing are those written."""
    assert plan_model(micro_card()).nbytes == micro_file.stat().st_size


def test_another_reader_sees_the_same_file(micro_file: Path) -> None:
    """The gguf package reads the same metadata keys, tensors, shapes and types as our own reader."""
    theirs, ours = gguf.GGUFReader(micro_file), read_header(micro_file)
    assert [key for key in theirs.fields if not key.startswith("GGUF.")] == list(ours.metadata)
    assert [
        (
            each.name,
            tuple(int(extent) for extent in each.shape),
            each.tensor_type.name,
            int(each.n_bytes),
            each.data_offset,
        )
        for each in theirs.tensors
    ] == [
        (placed.spec.name, placed.spec.shape, placed.spec.type.name, placed.spec.nbytes, placed.offset)
        for placed in ours.tensors
    ]
    assert theirs.fields["tokenizer.ggml.tokens"].contents() == list(ours.metadata["tokenizer.ggml.tokens"].value)


def test_weights_have_the_promised_sizes(tmp_path: Path) -> None:
    """Standard deviations follow the recipe: logits, residual gain, attention; norms are constant."""
    card = micro_card(logits_sd=2.0, attention_sd=4.0)
    found = arrays(write_card_model(card, tmp_path / "m.gguf"))
    assert found["token_embd.weight"].std() == pytest.approx(1.0, rel=0.03)
    assert found["output.weight"][:276].std() == pytest.approx(2.0 / 8, rel=0.03)
    assert found["output.weight"][276:].std() == pytest.approx(0.2 / 8, rel=0.2)
    assert found["blk.0.attn_output.weight"].std() == pytest.approx(0.15 / 8, rel=0.05)
    assert np.all(found["blk.0.attn_q_norm.weight"] == 2.0)
    assert np.all(found["output_norm.weight"] == 1.0)


def test_tensors_are_drawn_independently(micro_file: Path) -> None:
    """No two tensors of one shape share their weights."""
    found = arrays(micro_file)
    up, gate = found["blk.0.ffn_up_exps.weight"], found["blk.0.ffn_gate_exps.weight"]
    assert abs(np.corrcoef(up.ravel(), gate.ravel())[0, 1]) < 0.05


def test_routers_are_balanced(tiny_f16: Path) -> None:
    """Over all tokens as inputs, each expert of each layer is chosen about equally often (fair: 160 times)."""
    found = arrays(tiny_f16)
    inputs = found["token_embd.weight"]
    for layer in range(6):
        router = found[f"blk.{layer}.ffn_gate_inp.weight"]
        assert np.linalg.norm(router, axis=1) == pytest.approx(1.0, rel=1e-5)
        chosen = np.argsort(inputs @ router.T, axis=1)[:, -4:]
        uses = np.bincount(chosen.ravel(), minlength=32)
        assert uses.min() > 100
        assert uses.max() < 230


@pytest.mark.parametrize(("kind", "bytes_"), [("Q4_K", 144), ("IQ4_XS", 136)])
def test_tables_of_quantized_tensors_are_drawn(kind: str, bytes_: int, tmp_path: Path) -> None:
    """What a real file's header gives can be made again, type by type."""
    content = micro_content()
    content["shape"] = {"rule": "explicit", "metadata": {}, "tensors": [{"name": "x", "shape": [256], "type": kind}]}
    made = write_card_model(parse_card(json.dumps(content), where="x"), tmp_path / "x.gguf")
    assert inspect_gguf(made).quant_mix == {kind: bytes_}


def test_types_that_cannot_be_drawn_are_named() -> None:
    """The error says which tensor, and which types can be drawn."""
    content = micro_content()
    content["shape"] = {
        "rule": "explicit",
        "metadata": {},
        "tensors": [{"name": "x", "shape": [256], "type": "IQ2_KT"}],
    }
    with pytest.raises(BadInput, match="tensor 'x' has type IQ2_KT") as refused:
        plan_model(parse_card(json.dumps(content), where="x"))
    assert "Q4_K" in str(refused.value)


def test_impossible_vocabulary_is_told() -> None:
    """A recipe that asks for more merges than the text gives names the card."""
    content = micro_content()
    content["tokenizer"]["merges"] = 10**6
    with pytest.raises(BadInput, match="micro-moe: tokenizer"):
        plan_model(parse_card(json.dumps(content), where="x"))
