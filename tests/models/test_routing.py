"""Skewed routers: the lengths that make them, and what engines then choose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_questions import ask
from hypothesis import given
from hypothesis import strategies as st
from micro_model import micro_card, micro_content, write_card_model

from harness.domain.errors import BadInput
from harness.engines.embedded.flags import IK, MAINLINE
from harness.models.cache import ensure_model, read_sidecar
from harness.models.card import Card, load_card, parse_card
from harness.models.make import estimate_routing, plan_model
from harness.models.routing import MOST_OFTEN, row_lengths
from harness.models.weights import router_rows

TOKENS = 1000


def skewed(exponent: float = 1.0) -> Card:
    """The tiny card with a skewed router."""
    content = json.loads(load_card("tiny-moe").model_dump_json())
    content["weights"] |= {"router": "zipf", "router_exponent": exponent}
    return parse_card(json.dumps(content), where="skewed.json")


@given(
    st.integers(16, 300).flatmap(lambda experts: st.tuples(st.just(experts), st.integers(1, int(0.4 * experts)))),
    st.floats(0.1, 4),
)
def test_lengths_follow_the_ranks(sizes: tuple[int, int], exponent: float) -> None:
    """Every expert has a positive length, more popular ones a longer row, whatever sizes and exponent."""
    experts, used = sizes
    order = np.arange(experts, dtype=np.uint64)[::-1]
    lengths = row_lengths(order, used, exponent)
    assert (lengths > 0).all()
    assert (np.diff(lengths) >= 0).all()


def test_few_experts_get_most_choices() -> None:
    """The busiest tenth gets about a third of the choices where a balanced router gives it a tenth."""
    balanced = estimate_routing(plan_model(load_card("tiny-moe")))
    zipf = estimate_routing(plan_model(skewed()))
    assert max(layer.busiest for layer in balanced) < 0.13
    assert min(layer.busiest for layer in zipf) > 0.25
    assert max(max(layer.chosen) / layer.tokens for layer in zipf) < MOST_OFTEN + 0.06
    assert all(sum(layer.chosen) == 4 * layer.tokens for layer in zipf)


def test_layers_have_favourites_of_their_own() -> None:
    """The most popular expert is not the same one in all layers."""
    assert len({int(np.argmax(layer.chosen)) for layer in estimate_routing(plan_model(skewed()))}) > 2


def test_a_larger_exponent_is_more_skewed() -> None:
    """The exponent does what it says."""
    shares = [estimate_routing(plan_model(skewed(exponent)))[0].busiest for exponent in (0.3, 1.0, 2.0)]
    assert shares == sorted(shares)
    assert shares[2] > 1.3 * shares[0]


def test_only_the_router_is_another(tmp_path: Path) -> None:
    """All other weights of a skewed model are the balanced one's."""
    content = micro_content(router="zipf")
    content["shape"]["experts"] = 8
    other = {**content, "weights": {"seed": 1}}
    plans = [plan_model(parse_card(json.dumps(each), where="x")) for each in (content, other)]
    directions = []
    for plan in plans:
        rows = router_rows(plan.routers[0], plan.drawing)
        directions.append(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    assert directions[0] == pytest.approx(directions[1], abs=1e-6)
    files = [write_card_model(plan.card, tmp_path / f"{number}.gguf") for number, plan in enumerate(plans)]
    differing = np.flatnonzero(np.fromfile(files[0], np.uint8)[-4096:] != np.fromfile(files[1], np.uint8)[-4096:])
    assert differing.size == 0


def test_too_few_experts_are_told() -> None:
    """With half of the experts used nothing can be skewed."""
    with pytest.raises(BadInput, match=r"more than 2\.5 experts for each of the 2 used; .* scores 4"):
        plan_model(micro_card(router="zipf"))


def test_an_exponent_goes_with_zipf_only() -> None:
    """An exponent that would do nothing is refused."""
    with pytest.raises(BadInput, match="router_exponent"):
        micro_card(router_exponent=2.0)


@pytest.mark.parametrize("fork", [MAINLINE, IK])
def test_engines_choose_as_estimated(fork: str, tmp_path: Path) -> None:
    """What random tokens really choose in an engine, layer by layer, is what the estimate says."""
    pytest.importorskip("xllamacpp", reason="moe-harness[local] is not installed")
    model = write_card_model(skewed(), tmp_path / "skewed.gguf")
    request: dict[str, Any] = {"prefill": [(7919 * at) % 1270 for at in range(TOKENS)], "routers": 4}
    chosen = ask(fork, model, request, tmp_path / "logits.npy")["chosen"]
    estimates = estimate_routing(plan_model(skewed()))
    assert len(chosen) == len(estimates)
    for found, estimated in zip(chosen, estimates, strict=True):
        shares, expected = np.array(found) / TOKENS, np.array(estimated.chosen) / estimated.tokens
        assert np.corrcoef(shares, expected)[0, 1] > 0.97
        assert np.abs(shares - expected).sum() / 8 < 0.08


def test_the_estimate_stands_beside_the_model(tmp_path: Path) -> None:
    """A made model's sidecar says how often each expert is chosen, and that it is an estimate."""
    made = ensure_model(micro_card(), "F16", cache=tmp_path)
    sidecar = read_sidecar(made)
    assert sidecar is not None
    assert "random inputs" in sidecar.experts_chosen["estimate"]
    counts = sidecar.experts_chosen["counts"]["blk.0.ffn_gate_inp.weight"]
    assert sum(counts) == 2 * sidecar.experts_chosen["tokens"]
