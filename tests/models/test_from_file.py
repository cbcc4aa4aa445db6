"""Cards of real files: same shape again, from files of the real quantizer, splits and headers alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hybrid_model import hybrid_card
from micro_model import micro_card, need_quantizer, write_card_model
from split_model import split

from harness.cli.models import models
from harness.domain.errors import BadInput
from harness.models.cache import ensure_model
from harness.models.card import Card, load_card, parse_card
from harness.models.from_file import card_of, card_text, undrawable
from harness.models.gguf_format import MetaValue, TensorSpec
from harness.models.gguf_types import TYPES_BY_NAME
from harness.models.gguf_writer import header_bytes
from harness.models.inspect import inspect_gguf
from harness.models.make import plan_model
from harness.models.quantize import known_quant

Table = list[tuple[str, tuple[int, ...], str]]


def table_of(path: Path) -> Table:
    return [(tensor.name, tensor.shape, tensor.type) for tensor in inspect_gguf(path).tensors]


def table(tensors: tuple[TensorSpec, ...]) -> Table:
    return [(tensor.name, tensor.shape, tensor.type.name) for tensor in tensors]


def again(path: Path) -> Card:
    """The card of a file, through its text."""
    return parse_card(card_text(card_of(path)), where="again.json")


def header_only(path: Path, metadata: dict[str, MetaValue], tensors: tuple[TensorSpec, ...]) -> Path:
    """A file whose weights are a hole."""
    with path.open("wb") as file:
        file.write(header_bytes(metadata, tensors))
        file.truncate(file.tell() + sum(-(-tensor.nbytes // 32) * 32 for tensor in tensors))
    return path


@pytest.mark.parametrize("quant", ["IQ4_XS", "Q4_K_M", "Q2_K", "IQ3_S"])
def test_a_quantizers_file_is_made_again_with_the_same_table(quant: str, tmp_path: Path) -> None:
    """Names, shapes, types, hyperparameters and the vocabulary's size are those of the file."""
    need_quantizer()
    real = ensure_model("tiny-moe", quant)
    card = again(real)
    made = ensure_model(card, card.own_quant, cache=tmp_path)
    assert card.own_quant == quant
    assert table_of(made) == table_of(real)
    one, other = inspect_gguf(made), inspect_gguf(real)
    assert (one.layers, one.experts, one.experts_used, one.width) == (
        other.layers, other.experts, other.experts_used, other.width,
    )  # fmt: skip
    assert (one.quant, one.tokenizer.size, one.synthetic) == (quant, other.tokenizer.size, True)


@pytest.mark.parametrize("name", ["qwen3-30b-a3b", "qwen3.6-35b-a3b"])
def test_a_header_is_enough(name: str, tmp_path: Path) -> None:
    """A file of 17 GiB whose weights are a hole gives the card of its shape."""
    plan = plan_model(load_card(name), known_quant("Q4_K_M"))
    card = again(header_only(tmp_path / "Big-Model.Q4_K_M.gguf", plan.metadata, plan.tensors))
    again_planned = plan_model(card)
    assert card.name == "big-model.q4_k_m"
    assert table(again_planned.tensors) == table(plan.tensors)
    architecture = str(plan.metadata["general.architecture"].value)
    for key, value in plan.metadata.items():
        if key.startswith(architecture):
            found = again_planned.metadata[key]
            assert found.kind == value.kind
            assert found.value == (pytest.approx(value.value) if value.kind == "f32" else value.value)
    assert len(card_text(card)) < 150_000


def test_any_part_of_a_split_model_gives_the_whole_card(tmp_path: Path) -> None:
    """Tensors of all parts are in the card, and the model is made in one file."""
    whole = write_card_model(micro_card(), tmp_path / "micro.gguf")
    parts = split(whole, tmp_path, 3)
    card = again(parts[1])
    assert card.name == "micro"
    assert table(plan_model(card).tensors) == table_of(whole)
    assert not any(key.startswith("split.") for key in plan_model(card).metadata)


def test_names_paths_and_words_are_left_out(tmp_path: Path) -> None:
    """A card tells the shape, and not who made the model or where it lay."""
    plan = plan_model(micro_card())
    secret = {
        "general.author": MetaValue("string", "somebody"),
        "quantize.imatrix.file": MetaValue("string", "/home/somebody/x"),
    }
    text = card_text(card_of(header_only(tmp_path / "m.gguf", {**plan.metadata, **secret}, plan.tensors)))
    assert "somebody" not in text
    assert "tokenizer.ggml" not in text


@pytest.mark.parametrize("kind", ["IQ2_KT", "IQ4_KS_R4", "TQ2_0", "MXFP4"])
def test_types_that_cannot_be_drawn_are_named(kind: str, tmp_path: Path) -> None:
    """Any type of either fork is in the card; what can't be drawn is told by the command and when making."""
    plan = plan_model(micro_card())
    tensors = (*plan.tensors, TensorSpec("extra.weight", (512, 8), TYPES_BY_NAME[kind]))
    file = header_only(tmp_path / "m.gguf", plan.metadata, tensors)
    assert undrawable(card_of(file)) == (kind,)
    told = CliRunner().invoke(models, ["card", str(file), "-o", str(tmp_path / "card.json")])
    assert f"{kind} can't be drawn" in told.stderr
    with pytest.raises(BadInput, match=f"'extra.weight' has type {kind}"):
        plan_model(load_card(tmp_path / "card.json"))


def test_another_quantization_than_the_tables_is_refused(tmp_path: Path) -> None:
    """A table with types is made with those types or not at all."""
    plan = plan_model(load_card("qwen3-30b-a3b"), known_quant("Q4_K_M"))
    card = again(header_only(tmp_path / "m.gguf", plan.metadata, plan.tensors))
    with pytest.raises(BadInput, match=r"E-card-has-types: .*Q4_K_M.*IQ4_XS"):
        plan_model(card, known_quant("IQ4_XS"))


def test_hybrids_get_their_roles_back(tmp_path: Path) -> None:
    """Rates, biases and norms of a table are set by name as those of a derived shape."""
    first = write_card_model(hybrid_card(), tmp_path / "first.gguf")
    second = write_card_model(again(first), tmp_path / "second.gguf")
    gguf = pytest.importorskip("gguf")
    one, other = ({tensor.name: tensor.data for tensor in gguf.GGUFReader(path).tensors} for path in (first, second))
    for name in ("blk.0.ssm_a", "blk.0.ssm_dt.bias", "blk.3.attn_q_norm.weight", "blk.0.post_attention_norm.weight"):
        assert (one[name] == other[name]).all()
    assert one["blk.0.ssm_a"].min() == -1.0


def test_the_command_writes_what_models_make_reads(tmp_path: Path) -> None:
    """From file to card to file with two commands."""
    file = write_card_model(micro_card(), tmp_path / "micro.gguf")
    run = CliRunner()
    assert run.invoke(models, ["card", str(file), "-o", str(tmp_path / "c.json")]).exit_code == 0
    printed = run.invoke(models, ["card", str(file)]).stdout
    assert json.loads(printed) == json.loads((tmp_path / "c.json").read_text())
    made = run.invoke(
        models,
        ["make", str(tmp_path / "c.json"), "--quant", "F16", "--format", "json"],
        env={"MOE_CACHE_DIR": str(tmp_path / "cache")},
    )
    assert table_of(Path(json.loads(made.stdout)["path"])) == table_of(file)


def test_a_file_without_weights_has_no_shape(tmp_path: Path) -> None:
    """A vocabulary alone is told as that."""
    with pytest.raises(BadInput, match="E-card-no-shape"):
        card_of(header_only(tmp_path / "vocab.gguf", {"general.architecture": MetaValue("string", "llama")}, ()))


def test_where_a_card_cannot_be_written_the_path_is_named(tmp_path: Path) -> None:
    """It is no matter of the cache."""
    file = write_card_model(micro_card(), tmp_path / "micro.gguf")
    output = tmp_path / "nowhere" / "c.json"
    told = CliRunner().invoke(models, ["card", str(file), "-o", str(output)]).exception
    assert isinstance(told, BadInput)
    assert (told.slug, told.where) == ("E-card-unwritable", str(output))
