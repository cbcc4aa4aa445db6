"""Caches of sliding windows and of latent attention, against what both libraries print."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from attention_models import latent_card, windowed_card
from micro_model import child_environment, write_card_model

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.flags import Flags, FlagValue
from harness.domain.model import Model
from harness.domain.workload import Workload
from harness.models.card import Card
from harness.models.gguf_format import MetaValue
from harness.models.memory import bytes_needed, estimate, keeps_windows
from harness.models.memory_model import card_shape, file_shape
from harness.models.memory_shape import ModelShape, shape_of

MIB = 1 << 20
PROBE = Path(__file__).with_name("buffer_probe.py")
TYPES = {"f16": 1, "q8_0": 8}
CARDS = {
    "window": windowed_card(),
    "pattern": windowed_card(window=1000, **{"attention.sliding_window_pattern": 4}),
    "listed": windowed_card(window=1000, **{"attention.sliding_window_pattern": [True, True, False, True]}),
    "latent": latent_card(),
    "whole": latent_card(absorbed=False),
}


def printed(fork: Fork, model: Path, contexts: list[dict[str, Any]]) -> list[float | None]:
    pytest.importorskip("xllamacpp", reason="moe-harness[local] is not installed")
    ended = subprocess.run(
        [sys.executable, str(PROBE), fork, str(model)],
        input=json.dumps(contexts),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=child_environment(),
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    sizes: list[float | None] = json.loads(ended.stdout.splitlines()[-1])  # ik_llama.cpp prints there too
    return sizes


def told(shape: ModelShape, fork: Fork, flags: dict[str, FlagValue], cells: int, *, windowed: bool = False) -> float:
    return estimate(shape, fork, flags, cells, windowed=windowed).ram.cache / MIB


def shape_with(card: Card, **changes: MetaValue | None) -> ModelShape:
    """A card's shape with other entries of the header."""
    shape = card_shape(card, "F16")
    metadata = {key: value for key, value in {**shape.metadata, **changes}.items() if value is not None}
    weights = shape.weights
    return shape_of("changed", metadata, [each.spec for each in weights], [each.nbytes for each in weights], 1)


@pytest.mark.parametrize("name", ["window", "pattern", "listed"])
def test_windows_are_as_llama_cpp_prints_them(tmp_path: Path, name: str) -> None:
    """The library asked for windows, as its tools ask it, and for all tokens, as a wheel does."""
    model = write_card_model(CARDS[name], tmp_path / "m.gguf")
    asked = list(product((True, False), (512, 4096, 16384), (64, 512)))
    contexts = [
        {"n_ctx": cells, "n_batch": 2048, "n_ubatch": batch, "swa_full": not windowed, "flash_attn_type": 1}
        for windowed, cells, batch in asked
    ]
    found = [
        told(file_shape(model), Fork.LLAMA_CPP, {"ub": batch}, cells, windowed=windowed)
        for windowed, cells, batch in asked
    ]
    assert found == pytest.approx(printed(Fork.LLAMA_CPP, model, contexts), abs=0.011)
    assert found[4] < found[10]


def test_the_last_layer_of_a_period_sees_all_tokens() -> None:
    """On a GPU that has the output and one layer: two heads of 64 values, keys and values of 16 bits."""
    shape = card_shape(CARDS["pattern"], "F16")
    cells, layer = 16384, 2 * 64 * 2 * 2
    one, two = (
        estimate(shape, Fork.LLAMA_CPP, {"ngl": ngl}, cells, (1 << 30,), windowed=True).gpus[0].cache for ngl in (2, 3)
    )
    assert one == layer * cells
    assert two - one == layer * 1536


def test_ik_keeps_every_token_of_layers_with_a_window(tmp_path: Path) -> None:
    """By default, and its llama-bench can't be told otherwise."""
    model = write_card_model(CARDS["window"], tmp_path / "m.gguf")
    contexts = [{"n_ctx": cells, "n_batch": 512, "n_ubatch": 64, "flash_attn": True} for cells in (512, 16384)]
    found = [told(file_shape(model), Fork.IK_LLAMA_CPP, {"ub": 64}, cells) for cells in (512, 16384)]
    assert found == pytest.approx(printed(Fork.IK_LLAMA_CPP, model, contexts), abs=0.011)


@pytest.mark.parametrize("name", ["latent", "whole"])
def test_latent_rows_are_as_ik_prints_them(tmp_path: Path, name: str) -> None:
    """All four kinds, with and without flash attention, both conversions of the model, quantized keys."""
    model = write_card_model(CARDS[name], tmp_path / "m.gguf")
    asked = list(product((0, 1, 2, 3), (0, 1), TYPES))
    contexts = [
        {"n_ctx": 4096, "n_batch": 512, "n_ubatch": 64, "mla_attn": mla, "flash_attn": bool(fa), "type_k": TYPES[kind]}
        for mla, fa, kind in asked
    ]
    shape = file_shape(model)
    found = [told(shape, Fork.IK_LLAMA_CPP, {"mla": mla, "fa": fa, "ctk": kind}, 4096) for mla, fa, kind in asked]
    assert found == pytest.approx(printed(Fork.IK_LLAMA_CPP, model, contexts), abs=0.011)
    assert len(set(found)) > 4


@pytest.mark.parametrize("name", ["latent", "whole"])
def test_latent_rows_are_as_llama_cpp_prints_them(tmp_path: Path, name: str) -> None:
    """One row a token where the file has heads' own widths, whole heads where it was converted before that."""
    model = write_card_model(CARDS[name], tmp_path / "m.gguf")
    contexts = [{"n_ctx": cells, "n_batch": 512, "n_ubatch": 64, "flash_attn_type": 1} for cells in (512, 4096)]
    found = [told(file_shape(model), Fork.LLAMA_CPP, {"ub": 64}, cells) for cells in (512, 4096)]
    assert found == pytest.approx(printed(Fork.LLAMA_CPP, model, contexts), abs=0.011)
    assert found[1] == {"latent": 9.0, "whole": 20.0}[name]


def test_only_llama_cpps_own_tools_keep_windows() -> None:
    """A deep context costs a build by path less than a wheel."""
    tool, wheel = Build("b", Fork.LLAMA_CPP, path="b"), Build("w", Fork.LLAMA_CPP, wheel="xllamacpp")
    assert keeps_windows(tool)
    assert not keeps_windows(wheel)
    assert not keeps_windows(Build("i", Fork.IK_LLAMA_CPP, path="b"))


def test_an_arm_is_told_by_its_tool_and_its_kind_of_latent_attention(tmp_path: Path) -> None:
    """What is kept from one arm to the next is kept for all that matters."""
    windowed, latent = (write_card_model(CARDS[name], tmp_path / f"{name}.gguf") for name in ("window", "latent"))

    def cache(build: Build, model: Path, **flags: FlagValue) -> int:
        found = bytes_needed(Arm(build, Model("m", path=str(model)), Flags.of(flags)), [Workload(512, 0, 8192)])
        assert found is not None
        return found.ram.cache

    tool, wheel = Build("b", Fork.LLAMA_CPP, path="b"), Build("w", Fork.LLAMA_CPP, wheel="xllamacpp")
    ik = Build("i", Fork.IK_LLAMA_CPP, path="b")
    assert cache(tool, windowed) < cache(wheel, windowed) == cache(ik, windowed)
    assert cache(ik, latent, mla=3) < cache(ik, latent, mla=1, fa=0) < cache(ik, latent, mla=0)


def test_layers_with_a_window_have_a_mask_of_their_own() -> None:
    """Half a byte more a token and cell: at 16,384 tokens the same again as the other layers' mask."""
    shape = card_shape(CARDS["window"], "F16")
    plain = shape_with(CARDS["window"], **{"gpt-oss.attention.sliding_window": None})
    masks = (
        estimate(shape, Fork.LLAMA_CPP, {}, 16384).ram.compute - estimate(plain, Fork.LLAMA_CPP, {}, 16384).ram.compute
    )
    assert masks == 16384 * 512 * 2


def test_what_is_not_known_is_a_note_and_no_number() -> None:
    """Other architectures, layers of other widths, a pattern of another number of layers."""
    number, text = MetaValue("u32", 64), MetaValue("string", "glm-dsa")
    window, latent = CARDS["window"], CARDS["latent"]
    glm = {key.replace("deepseek2.", "glm-dsa."): value for key, value in card_shape(latent, "F16").metadata.items()}
    odd = {
        "attention.key_length_swa": shape_with(window, **{"gpt-oss.attention.key_length_swa": number}),
        "nextn_predict_layers": shape_with(latent, **{"deepseek2.nextn_predict_layers": number}),
        "attention.kv_lora_rank": shape_with(latent, **{**glm, "general.architecture": text}),
        "attention.sliding_window_pattern": shape_with(
            window, **{"gpt-oss.attention.sliding_window_pattern": MetaValue("bool", (True, False))}
        ),
    }
    for key, shape in odd.items():
        found = estimate(shape, Fork.LLAMA_CPP, {}, 4096, windowed=True)
        assert (found.ram.cache, found.ram.compute) == (0, 0), key
        assert f"{key}: only its weights are counted" in found.notes[0]


def test_work_buffers_of_latent_attention_are_said_not_to_be_counted() -> None:
    """They depend on how either fork unfolds the rows."""
    shape = card_shape(CARDS["latent"], "F16")
    for fork, more in ((Fork.LLAMA_CPP, ""), (Fork.IK_LLAMA_CPP, " and what the fork adds to its tensors")):
        found = estimate(shape, fork, {}, 4096)
        assert found.notes == (f"deepseek2 has latent attention: its work buffers{more} are not counted",)
        assert (found.ram.compute, found.ram.cache > 0) == (0, True)
