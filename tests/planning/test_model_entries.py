"""``[models.X]``: where a model comes from, and what is said of one that can't."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.domain.errors import BadInput
from harness.domain.model import Model
from harness.models.cache import ensure_model
from harness.models.card import load_card
from harness.models.from_file import card_of, card_text
from harness.models.hashing import file_sha256
from harness.models.memory_model import model_shape
from harness.planning.arms import declared_model
from harness.planning.load import load_matrix
from harness.planning.presence import model_missing

ONE, OTHER = "a" * 64, "b" * 64
HEAD = 'name = "m"\n[builds.one]\nfork = "llama.cpp"\nwheel = "xllamacpp"\n[[workloads]]\npp = 8\n[models.x]\n'


def declared(folder: Path, entry: str) -> Model:
    file = folder / "m.toml"
    file.write_text(HEAD + entry)
    return declared_model("x", load_matrix(file).models["x"])


@pytest.mark.parametrize(
    ("entry", "model"),
    [
        (f'path = "/m.gguf"\nsha256 = "{ONE.upper()}"', Model("x", path="/m.gguf", sha256=(ONE,))),
        (f'url = "https://h/m.gguf"\nsha256 = "{ONE}"', Model("x", url="https://h/m.gguf", sha256=(ONE,))),
        (f'url = "file:///m.gguf"\nsha256 = ["{ONE}"]', Model("x", url="file:///m.gguf", sha256=(ONE,))),
        (f'path = "/m-00001-of-00002.gguf"\nsha256 = ["{ONE}", "{OTHER}"]',
         Model("x", path="/m-00001-of-00002.gguf", sha256=(ONE, OTHER))),
        (f'sha256 = "{ONE}"', Model("x", sha256=(ONE,))),
        ('card = "tiny-moe"', Model("x", card="tiny-moe", quant="F16")),
    ],
)  # fmt: skip
def test_the_ways_to_say_a_model(entry: str, model: Model, tmp_path: Path) -> None:
    """By card, path, address, or digest alone."""
    assert declared(tmp_path, entry) == model


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('url = "https://h/m.gguf"', "'url' needs 'sha256'"),
        (f'url = "http://h/m.gguf"\nsha256 = "{ONE}"', "expected https://"),
        (f'card = "tiny-moe"\nsha256 = "{ONE}"', "'sha256' goes with 'path' or 'url'"),
        ('path = "/m.gguf"\nsha256 = "abc"', "expected 64 hexadecimal digits"),
        ('path = "/m.gguf"\nsha256 = []', "expected 64 hexadecimal digits"),
        (f'path = "/m.gguf"\nurl = "https://h/m.gguf"\nsha256 = "{ONE}"', "found 'path' and 'url'"),
        ('quant = "Q8_0"', "found none of them"),
        (f'url = "https://h/m.gguf"\nquant = "Q8_0"\nsha256 = "{ONE}"', "'quant' goes with 'card'"),
    ],
)
def test_what_is_no_model_is_told(entry: str, said: str, tmp_path: Path) -> None:
    """Each fault with what was expected."""
    with pytest.raises(BadInput) as caught:
        declared(tmp_path, entry)
    assert said in str(caught.value)


def test_a_card_of_a_file_has_the_files_quantization(tmp_path: Path) -> None:
    """Limits of output checks go by it, so "F16" would be wrong."""
    pytest.importorskip("ik_llama_cpp", reason="moe-harness[local] is not installed")
    (tmp_path / "c.json").write_text(card_text(card_of(ensure_model("tiny-moe", "Q4_K_M"))))
    assert declared(tmp_path, 'card = "c.json"').quant == "Q4_K_M"


def test_sizes_and_absence_of_what_is_fetched(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model by digest is missing until the cache has it; one by address is fetched until then."""
    digest = file_sha256(tiny_model)
    monkeypatch.setenv("MOE_CACHE_DIR", str(tmp_path / "none"))
    by_digest, by_address = Model("x", sha256=(digest,)), Model("x", url="https://h/m.gguf", sha256=(digest,))
    assert digest in model_missing(by_digest)
    assert model_missing(by_address).endswith("it is fetched from https://h/m.gguf by the first job that needs it")
    assert model_shape(by_address) is None
    monkeypatch.undo()
    assert model_missing(by_digest) == model_missing(by_address) == ""
    shapes = model_shape(by_digest), model_shape(by_address)
    assert [shape.file_bytes for shape in shapes if shape] == [tiny_model.stat().st_size] * 2


def test_the_identity_follows_the_digest_and_not_the_address() -> None:
    """Two mirrors hold one model; two digests are two models."""
    one, moved = Model("x", url="https://a/m.gguf", sha256=(ONE,)), Model("x", url="https://b/m.gguf", sha256=(ONE,))
    assert one.declared == moved.declared
    assert one.declared != Model("x", sha256=(OTHER,)).declared
    assert json.dumps(Model("x", card="c", quant="q").declared) == '{"name": "x", "card": "c", "quant": "q"}'


@pytest.mark.parametrize("quant", ["Q6_K", "iq2_k", "F32"])
def test_a_drawn_card_in_an_unknown_mixture_is_refused(quant: str, tmp_path: Path) -> None:
    """Not only once the first job of a fleet makes it."""
    with pytest.raises(BadInput, match=r"E-mixture-unknown: .*m\.toml: models\.x\.quant: .*can't be drawn"):
        declared(tmp_path, f'card = "qwen3-30b-a3b"\nquant = "{quant}"')


@pytest.mark.parametrize("entry", ['card = "qwen3-30b-a3b"', 'card = "tiny-moe"\nquant = "Q6_K"'])
def test_what_can_be_made_is_planned(entry: str, tmp_path: Path) -> None:
    """Cards as they are written, drawn ones in any known mixture, and what the quantizer makes."""
    assert declared(tmp_path, entry).card
    for quant in ("F16", "Q4_K_M", "q8_0"):
        assert declared(tmp_path, f'card = "qwen3-30b-a3b"\nquant = "{quant}"').quant == quant.upper()


def test_a_card_with_types_of_its_own_in_others_is_refused(tmp_path: Path) -> None:
    """As it is when it is made; its own and none are right."""
    tensors = [{"name": "token_embd.weight", "shape": [256, 300], "type": "Q8_0"}]
    shape = {"rule": "explicit", "metadata": {}, "tensors": tensors}
    card = {**_packaged("tiny-moe"), "shape": shape}
    (tmp_path / "c.json").write_text(json.dumps(card))
    with pytest.raises(BadInput, match=r"E-card-has-types: .*m\.toml: models\.x\.quant: .*\(Q8_0\).*Q4_K_M"):
        declared(tmp_path, 'card = "c.json"\nquant = "Q4_K_M"')
    for quant in ("", '\nquant = "Q8_0"', '\nquant = "F16"'):
        assert declared(tmp_path, f'card = "c.json"{quant}').card


@pytest.mark.parametrize("quant", ["", 'quant = "Q8_0"'])
def test_a_card_with_a_type_that_nothing_draws_is_refused(quant: str, tmp_path: Path) -> None:
    """By the names of tensor and type, and not only once the first job of a fleet makes it."""
    sizes = (("a.weight", "Q8_0"), ("b.weight", "IQ1_S"), ("c.weight", "TQ2_0"))
    tensors = [{"name": name, "shape": [256, 300], "type": kind} for name, kind in sizes]
    card = {**_packaged("tiny-moe"), "shape": {"rule": "explicit", "metadata": {}, "tensors": tensors}}
    (tmp_path / "c.json").write_text(json.dumps(card))
    key = "quant" if quant else "card"
    where, tensor = rf"m\.toml: models\.x\.{key}: tiny-moe", r"tensor 'b\.weight' has type IQ1_S.*\(and 1 more\)"
    said = f"E-card-not-makeable: .*{where}: {tensor}"
    with pytest.raises(BadInput, match=said):
        declared(tmp_path, f'card = "c.json"\n{quant}')


def test_a_broken_card_is_refused_with_its_key_and_the_matrixs(tmp_path: Path) -> None:
    """A card that is not here may be on the nodes; one that is here and broken is broken."""
    content = _packaged("tiny-moe")
    content["weights"]["router"] = "zipff"
    (tmp_path / "c.json").write_text(json.dumps(content))
    with pytest.raises(BadInput, match=r"E-card-invalid: .*m\.toml: models\.x\.card: .*c\.json: weights\.router"):
        declared(tmp_path, 'card = "c.json"')
    (tmp_path / "c.json").write_text(json.dumps(content)[:90])
    with pytest.raises(BadInput, match=r"E-card-json: .*models\.x\.card: .*c\.json: "):
        declared(tmp_path, 'card = "c.json"\nquant = "Q8_0"')
    (tmp_path / "c.json").unlink()
    assert declared(tmp_path, 'card = "c.json"').quant == "F16"


def _packaged(name: str) -> dict[str, Any]:
    content: dict[str, Any] = load_card(name).model_dump(mode="json")
    return content
