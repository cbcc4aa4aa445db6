"""Random quantized blocks: sane weights, the same bytes everywhere, in mixtures as the tools make them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from micro_model import child_environment, need_quantizer

from harness.domain.errors import BadInput
from harness.engines.embedded.flags import IK, MAINLINE
from harness.models.blocks import BLOCK_TYPES, BlockShape, draw_blocks
from harness.models.cache import ensure_model
from harness.models.card import Card, load_card
from harness.models.gguf_types import TYPES_BY_NAME
from harness.models.inspect import inspect_gguf
from harness.models.make import plan_model
from harness.models.mixtures import mixed
from harness.models.quantize import known_quant

GIB = 2**30
PROBE = Path(__file__).with_name("engine_probe.py")


def drawn(kind: str, rows: int, row_sd: np.ndarray, seed: int = 7) -> np.ndarray:
    """Weights of rows of 16 blocks, dequantized by the gguf package."""
    shape = BlockShape(kind, TYPES_BY_NAME[kind].block_bytes, 16, rows)
    content = b"".join(draw_blocks(np.random.PCG64(seed), shape, row_sd))
    blocks = np.frombuffer(content, np.uint8).reshape(rows, -1)
    weights: np.ndarray = gguf.quants.dequantize(blocks, getattr(gguf.GGMLQuantizationType, kind))
    return weights


@pytest.mark.parametrize("kind", sorted(BLOCK_TYPES))
def test_weights_have_the_size_asked_for_and_mean_zero(kind: str) -> None:
    weights = drawn(kind, 400, np.full(1, 0.02))
    assert np.isfinite(weights).all()
    assert weights.std() == pytest.approx(0.02, rel=0.03)
    assert abs(weights.mean()) < 0.02 * 0.02


def test_each_row_can_have_its_own_size() -> None:
    sizes = np.where(np.arange(300) < 100, 0.002, 0.02)
    weights = drawn("Q6_K", 300, sizes)
    assert weights[:100].std() == pytest.approx(0.002, rel=0.05)
    assert weights[100:].std() == pytest.approx(0.02, rel=0.05)


def tiny_drawn() -> Card:
    card = load_card("tiny-moe")
    return card.model_copy(update={"weights": card.weights.model_copy(update={"blocks": "drawn"})})


def test_the_same_card_gives_the_same_bytes_and_other_seeds_others(tmp_path: Path) -> None:
    card = tiny_drawn()
    first = ensure_model(card, "Q4_K_M", cache=tmp_path / "a").read_bytes()
    assert ensure_model(card, "Q4_K_M", cache=tmp_path / "b").read_bytes() == first
    other = card.model_copy(update={"weights": card.weights.model_copy(update={"seed": 1})})
    assert ensure_model(other, "Q4_K_M", cache=tmp_path / "c").read_bytes() != first


@pytest.mark.parametrize("quant", ["Q4_K_M", "Q4_K_S", "IQ4_XS", "Q8_0", "Q4_0"])
def test_experts_are_mixed_as_the_quantizer_does(quant: str) -> None:
    need_quantizer()
    real = {tensor.name: tensor.type for tensor in inspect_gguf(ensure_model("tiny-moe", quant)).tensors}
    ours = {tensor.name: tensor.type.name for tensor in mixed(plan_model(load_card("tiny-moe")).tensors, quant, "")}
    # ik_llama.cpp's tool, the one of the wheel, gives the attention of such models more bits than llama.cpp's.
    attention = ("attn_k.", "attn_v.", "attn_output.")
    for name, kind in real.items():
        if not any(word in name for word in attention):
            assert (name, ours[name]) == (name, kind)


@pytest.mark.parametrize(("quant", "size"), [("Q4_K_M", 17.28), ("IQ4_XS", 15.42)])
def test_the_30b_card_has_the_published_shape(quant: str, size: float) -> None:
    """As llama-bench prints it of the published Q4_K_M: 17.28 GiB, 30.53 B.

    The published IQ4_XS has 15.32 GiB, made with an importance matrix; without one the down experts of six layers get
    five bits.
    """
    plan = plan_model(load_card("qwen3-30b-a3b"), known_quant(quant))
    assert plan.nbytes / GIB == pytest.approx(size, abs=0.005)
    assert sum(tensor.parameters for tensor in plan.tensors) / 1e9 == pytest.approx(30.53, abs=0.005)
    assert plan.metadata["general.file_type"].value == known_quant(quant).file_type


def test_a_mixture_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(BadInput, match="E-mixture-unknown") as refused:
        plan_model(load_card("qwen3-30b-a3b"), known_quant("IQ2_KT"))
    assert "Q4_K_M" in str(refused.value)


def test_rows_that_are_not_whole_blocks_are_refused(micro: Card) -> None:
    with pytest.raises(BadInput, match="E-card-not-makeable"):
        plan_model(micro, known_quant("Q4_K_M"))


def ask(fork: str, model: Path, save: Path) -> dict[str, Any]:
    prefill = [300 + (7919 * at) % 970 for at in range(64)]
    prompts = [[300 + (37 * at + 101 * number) % 970 for at in range(12)] for number in range(2)]
    request = {"texts": ["Hello"], "prefill": prefill, "prompts": prompts, "greedy": 32, "save": str(save)}
    ended = subprocess.run(
        [sys.executable, str(PROBE), fork, str(model)],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=child_environment(),
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer | {"logits": np.load(save)}


@pytest.mark.parametrize("quant", ["Q4_K_M", "IQ4_XS"])
def test_both_engines_compute_with_drawn_blocks_as_with_quantized_ones(quant: str, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="moe-harness[local] is not installed")
    model = ensure_model(tiny_drawn(), quant, cache=tmp_path)
    answers = [ask(fork, model, tmp_path / f"{number}.npy") for number, fork in enumerate((MAINLINE, IK))]
    for answer in answers:
        assert np.isfinite(answer["logits"]).all()
        assert answer["logits_sd"] == pytest.approx(3.5, rel=0.15)
        assert all(len(set(tokens)) > len(tokens) // 4 for tokens in answer["greedy"])
    ours, theirs = (answer["logits"].argmax(axis=1) for answer in answers)
    assert (ours == theirs).mean() > 0.8
