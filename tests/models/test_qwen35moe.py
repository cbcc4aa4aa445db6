"""Hybrids of delta nets and attention: the layout, and that both forks run it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_questions import ask, log_softmax
from hybrid_model import hybrid_card
from micro_model import write_card_model

from harness.domain.errors import BadInput
from harness.engines.embedded.flags import IK, MAINLINE
from harness.models.card import load_card
from harness.models.make import plan_model, write_model
from harness.models.quantize import known_quant

PREFILL = [300 + (7919 * at) % 970 for at in range(64)]
REQUEST = {"texts": ["Hello"], "prefill": PREFILL, "prompts": [PREFILL[:12]], "greedy": 32}


def test_the_packaged_card_has_the_published_shape() -> None:
    """35 billion weights: 40 layers of which ten attend, and the sizes of a 4-bit file."""
    plan = plan_model(load_card("qwen3.6-35b-a3b"), known_quant("IQ4_XS"))
    names = [tensor.name for tensor in plan.tensors]
    attends = [int(found[1]) for name in names if (found := re.fullmatch(r"blk\.(\d+)\.attn_q\.weight", name))]
    assert attends == list(range(3, 40, 4))
    assert sum(name.endswith("ssm_out.weight") for name in names) == 30
    assert sum(tensor.parameters for tensor in plan.tensors) == pytest.approx(34.66e9, rel=1e-3)
    assert plan.nbytes / 2**30 == pytest.approx(17.6, abs=0.1)


def test_quantizers_give_the_fused_projection_the_bits_of_values() -> None:
    """llama-quantize counts attn_qkv among the values."""
    plan = plan_model(load_card("qwen3.6-35b-a3b"), known_quant("IQ4_XS"))
    types = {tensor.name: tensor.type.name for tensor in plan.tensors}
    assert types["blk.0.attn_qkv.weight"] == types["blk.3.attn_v.weight"] == "Q5_K"
    assert types["blk.0.ssm_out.weight"] == types["blk.9.ffn_down_shexp.weight"] == "IQ4_XS"
    assert types["blk.0.ssm_conv1d.weight"] == types["blk.0.ffn_gate_inp.weight"] == "F32"


@pytest.mark.parametrize(("key", "value"), [("kv_heads", 3), ("delta_key_heads", 3), ("rope_width", 65)])
def test_impossible_shapes_are_refused(key: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads that do not divide and a rope wider than its head are told."""
    monkeypatch.setitem(__import__("hybrid_model")._SMALLER, key, value)
    with pytest.raises(BadInput, match=key):
        hybrid_card()


@pytest.fixture(scope="module", params=["F16", "IQ4_XS"])
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What both forks say of one file."""
    pytest.importorskip("xllamacpp", reason="moe-harness[local] is not installed")
    folder: Path = tmp_path_factory.mktemp("hybrid")
    model = folder / "hybrid.gguf"
    if request.param == "F16":
        write_card_model(hybrid_card(), model)
    else:
        with model.open("wb") as file:
            write_model(file, plan_model(hybrid_card(), known_quant(request.param)))
    return {fork: ask(fork, model, REQUEST, folder / f"{fork}.npy") for fork in (MAINLINE, IK)}


def test_both_forks_run_it_alike(answers: dict[str, dict[str, Any]]) -> None:
    """The model loads in both wheels, the logits have the promised spread, and they agree."""
    logits = {fork: answers[fork]["logits"] for fork in (MAINLINE, IK)}
    for fork in (MAINLINE, IK):
        assert np.isfinite(logits[fork]).all()
        assert answers[fork]["logits_sd"] == pytest.approx(3.5, abs=0.1)
        assert len(set(answers[fork]["greedy"][0])) > 10
    mainline, ik = (log_softmax(logits[fork]) for fork in (MAINLINE, IK))
    assert (np.exp(mainline) * (mainline - ik)).sum(axis=1).mean() < 0.05
