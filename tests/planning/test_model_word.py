"""A model is named by a file or by a card; a wrong word is told what was probably meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.domain.errors import BadInput
from harness.domain.model import Model
from harness.models.card import load_card
from harness.planning.model_word import model_named


def test_a_file_is_taken_as_it_is(tiny_model: Path) -> None:
    assert model_named(str(tiny_model)) == Model(tiny_model.stem, path=str(tiny_model))


@pytest.mark.parametrize("word", ["", "tiny-moe", "tiny-moe:IQ4_XS", "tiny-moe:iq4_xs"])
def test_a_card_has_a_quantization_that_need_not_be_said(word: str) -> None:
    assert model_named(word) == Model("tiny-moe-iq4_xs", card="tiny-moe", quant="IQ4_XS")


def test_a_card_can_be_a_file(tmp_path: Path) -> None:
    card = tmp_path / "own:card.json"
    card.write_text(load_card("tiny-moe").model_dump_json())
    assert model_named(f"{card}:Q8_0") == Model("tiny-moe-q8_0", card=str(card), quant="Q8_0")
    assert model_named(f"{card}").quant == "IQ4_XS"


@pytest.mark.parametrize(
    ("word", "slug", "said"),
    [
        ("tiny-mo", "E-unknown-card", "did you mean 'tiny-moe'?"),
        ("tiny-moe:Q4_KM", "E-unknown-quant", "did you mean 'Q4_K_M'?"),
        ("{folder}/modle.gguf", "E-model-missing", "did you mean 'model.gguf'?"),
        ("nowhere.gguf", "E-model-missing", "holds no .gguf file"),
        ("{folder}/model.gguf", "E-not-gguf", "GGUF"),
    ],
)
def test_a_wrong_word_is_told(tmp_path: Path, word: str, slug: str, said: str) -> None:
    (tmp_path / "model.gguf").write_bytes(b"no model at all")
    with pytest.raises(BadInput) as caught:
        model_named(word.format(folder=tmp_path))
    assert caught.value.slug == slug
    assert said in str(caught.value)


def test_a_quantization_that_a_card_cannot_be_made_in_is_refused_at_once() -> None:
    with pytest.raises(BadInput, match="E-mixture-unknown"):
        model_named("qwen3-30b-a3b:Q6_K")
