"""Shape cards: what is accepted, and how faults are told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from micro_model import micro_content

from harness.domain.errors import BadInput
from harness.models.card import load_card, packaged_cards, parse_card


def faulty(change: Any) -> BadInput:
    content = micro_content()
    change(content)
    with pytest.raises(BadInput) as caught:
        parse_card(json.dumps(content), where="my.json")
    return caught.value


def test_packaged_cards_all_load() -> None:
    """Every packaged card is valid and named after its file."""
    assert "tiny-moe" in packaged_cards()
    assert [load_card(name).name for name in packaged_cards()] == list(packaged_cards())


def test_unknown_key_names_file_key_and_nearest() -> None:
    """A misspelt key is named with its file, its place and the right spelling."""
    error = faulty(lambda card: card["shape"].update(leyers=3))
    assert error.slug == "E-card-invalid"
    assert error.where == "my.json: shape.leyers"
    assert "layers" in error.hint


def test_unknown_top_level_key_is_compared_with_top_level_keys() -> None:
    """The nearest key is looked for where the unknown one stands."""
    assert "weights" in faulty(lambda card: card.update(weight=1)).hint


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("layers", 0, "greater than 0"),
        ("layers", "six", "integer"),
        ("kv_heads", 3, "multiple"),
        ("experts_used", 5, "exceeds"),
        ("head_width", 31, "even"),
    ],
)
def test_impossible_shapes_are_refused(key: str, value: Any, said: str) -> None:
    """A shape that no engine could run is refused with the reason."""
    assert said in faulty(lambda card: card["shape"].update({key: value})).message


def test_missing_key_is_named() -> None:
    """A missing key is named."""
    assert faulty(lambda card: card["shape"].pop("width")).where == "my.json: shape.width"


def test_not_json() -> None:
    """A card that is not JSON is told as that."""
    with pytest.raises(BadInput, match=r"E-card-json: x\.json"):
        parse_card("{", where="x.json")


def test_unknown_card_suggests_a_packaged_one() -> None:
    """A misspelt card name gets the nearest packaged one."""
    with pytest.raises(BadInput) as caught:
        load_card("tiny-mo")
    assert (caught.value.slug, caught.value.hint) == ("E-unknown-card", "did you mean 'tiny-moe'?")


def test_card_file_by_path(tmp_path: Path) -> None:
    """A card is loaded from a path; a missing file is named."""
    path = tmp_path / "micro.json"
    path.write_text(json.dumps(micro_content()))
    assert load_card(path).name == "micro-moe"
    with pytest.raises(BadInput, match="E-card-unreadable"):
        load_card(tmp_path / "absent.json")


def test_digest_ignores_formatting_and_written_out_defaults() -> None:
    """Two spellings of one card have one digest; another seed has another."""
    plain = micro_content()
    spelled = micro_content(residual_gain=0.15, logits_sd=3.5, router="balanced")
    one = parse_card(json.dumps(plain), where="a")
    other = parse_card(json.dumps(spelled, indent=3, sort_keys=True), where="b")
    assert one.digest() == other.digest()
    assert parse_card(json.dumps(micro_content(seed=2)), where="c").digest() != one.digest()


def explicit(**tensor: Any) -> str:
    row = {"name": "blk.0.ffn_up_exps.weight", "shape": [256, 8, 4], "type": "IQ4_XS", **tensor}
    content = {**micro_content(), "tokenizer": None}
    metadata = {
        "general.architecture": {"type": "string", "value": "qwen3moe"},
        "a.list": {"type": "f32", "value": [1.5, 2.5]},
    }
    content["shape"] = {"rule": "explicit", "metadata": metadata, "tensors": [row]}
    return json.dumps(content)


def test_explicit_table_keeps_names_shapes_types_and_metadata() -> None:
    """A card with a full tensor table gives that table as its layout."""
    layout = parse_card(explicit(), where="x").shape.layout(0)
    assert [(each.name, each.shape, each.type.name) for each in layout.tensors] == [
        ("blk.0.ffn_up_exps.weight", (256, 8, 4), "IQ4_XS")
    ]
    assert layout.tensors[0].nbytes == 136 * 8 * 4
    assert layout.metadata["a.list"].value == (1.5, 2.5)


@pytest.mark.parametrize(
    ("tensor", "said"),
    [({"type": "IQ9"}, "IQ9"), ({"shape": [100, 2]}, "whole IQ4_XS blocks"), ({"shape": []}, "at least 1")],
)
def test_explicit_table_refuses_what_cannot_be_stored(tensor: dict[str, Any], said: str) -> None:
    """Unknown types and rows that are not whole blocks are refused."""
    with pytest.raises(BadInput, match=said):
        parse_card(explicit(**tensor), where="x")
