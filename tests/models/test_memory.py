"""Bytes per device, told from tensors and flags."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.errors import BadInput
from harness.domain.flags import Flags, FlagValue
from harness.domain.model import Model
from harness.domain.workload import Metric, OutputProfile, ProfileWorkload, Prompt, PromptProfile, Workload
from harness.models.cache import ensure_model
from harness.models.card import load_card, parse_card
from harness.models.gguf_format import MetaValue, TensorSpec
from harness.models.gguf_types import TYPES_BY_NAME
from harness.models.memory import Memory, bytes_needed, context_cells, estimate
from harness.models.memory_compute import Batch, compute_bytes
from harness.models.memory_model import card_shape, file_shape, model_shape
from harness.models.memory_placement import CPU, Asked, place
from harness.models.memory_shape import ModelShape, shape_of
from harness.models.memory_weights import Loading, weights_of

GIB = 1024**3
MIB = 1024**2
DATA = Path(__file__).parents[1] / "data"
FORKS = (Fork.LLAMA_CPP, Fork.IK_LLAMA_CPP)
SMALL_DRAWN = """{
  "format": "shape-card/1", "name": "memory-test",
  "shape": {"rule": "qwen3moe", "layers": 2, "width": 256, "heads": 8, "kv_heads": 2, "head_width": 64,
            "experts": 16, "experts_used": 2, "expert_width": 256},
  "tokenizer": {"merges": 100, "specials": ["<|endoftext|>", "<|im_end|>"]},
  "weights": {"seed": 1, "blocks": "drawn"}
}"""


@lru_cache
def thirty() -> ModelShape:
    """The shape of Qwen3-30B-A3B in Q4_K_M."""
    return card_shape(load_card("qwen3-30b-a3b"), "Q4_K_M")


@lru_cache
def hybrid() -> ModelShape:
    """The shape of Qwen3.6-35B-A3B in Q4_K_M."""
    return card_shape(load_card("qwen3.6-35b-a3b"), "Q4_K_M")


def needed(fork: Fork = Fork.LLAMA_CPP, cells: int = 4096, gpus: tuple[int, ...] = (), **flags: FlagValue) -> Memory:
    """What the 30B model needs."""
    return estimate(thirty(), fork, flags, cells, gpus)


forks = st.sampled_from(FORKS)
fleets = st.lists(st.integers(4, 80).map(lambda gib: gib * GIB), min_size=1, max_size=4).map(tuple)
placements = st.fixed_dictionaries(
    {"ngl": st.integers(0, 60)},
    optional={
        "ot": st.sampled_from(["exps=CPU", "ffn=CPU", r"blk\.(1|2)\.=CUDA0;exps=CPU", "attn=CUDA1"]),
        "ncmoe": st.integers(0, 60),
        "sm": st.sampled_from(["layer", "none", "row", "graph"]),
        "ts": st.sampled_from(["1/1", "3/1", "1/2/3/4"]),
        "mmap": st.sampled_from([0, 1]),
        "nkvo": st.sampled_from([0, 1]),
    },
)


@given(forks, fleets, placements)
def test_no_weight_is_lost_and_none_is_counted_twice(
    fork: Fork, gpus: tuple[int, ...], flags: dict[str, FlagValue]
) -> None:
    """Over all devices, the weights are those of the file."""
    found = estimate(thirty(), fork, flags, 512, gpus)
    spread = found.ram.weights + sum(gpu.weights for gpu in found.gpus)
    assert spread == sum(weight.nbytes for weight in thirty().weights)
    assert found.mapped <= found.ram.weights


@given(forks, fleets, placements)
def test_one_more_layer_on_the_gpus_never_needs_less_of_them(
    fork: Fork, gpus: tuple[int, ...], flags: dict[str, FlagValue]
) -> None:
    """All GPUs together; of several, weights and cache: one more or less of them may have work.

    With each layer, ik_llama.cpp chooses anew whose experts stay in RAM where GPUs share.
    """
    if fork is Fork.IK_LLAMA_CPP and len(gpus) > 1:
        flags = {name: value for name, value in flags.items() if name != "ncmoe"}
    less = estimate(thirty(), fork, flags, 512, gpus)
    more = estimate(thirty(), fork, {**flags, "ngl": int(flags["ngl"]) + 1}, 512, gpus)
    sums = [
        sum(gpu.total if len(gpus) == 1 else gpu.weights + gpu.cache for gpu in found.gpus) for found in (less, more)
    ]
    assert sums[0] <= sums[1]


@given(forks, st.integers(1, 400), st.sampled_from(["f16", "q8_0", "q4_0"]))
def test_the_cache_grows_in_proportion_to_the_context(fork: Fork, steps: int, kind: str) -> None:
    """A state of a recurrent layer does not grow."""
    one = needed(fork, 256, ctk=kind, ctv=kind).ram.cache
    assert needed(fork, 256 * steps, ctk=kind, ctv=kind).ram.cache == one * steps
    states = hybrid().state_bytes * len(hybrid().recurrent_layers)
    single, several = (estimate(hybrid(), fork, {}, 256 * count).ram.cache for count in (1, steps))
    assert several - states == (single - states) * steps


def test_the_cache_of_a_recorded_run_that_ran_out_of_memory_is_told_to_the_byte() -> None:
    """4,000,000 tokens of depth and llama-bench's 512 of prompt: so many bytes CUDA was asked for."""
    recording = DATA / "recordings" / "llama_cpp-b11434.oom.stderr.txt"
    asked = re.search(r"failed to allocate CUDA0 buffer of size (\d+)", recording.read_text(encoding="utf-8"))
    cells = context_cells([Workload(512, 0, 4_000_000)])
    assert asked
    assert needed(cells=cells, gpus=(140 * GIB,), ngl=99).gpus[0].cache == int(asked[1])


def test_experts_stay_in_ram_and_the_rest_goes_to_the_gpu() -> None:
    """Report 1's placement: attention, norms, router and output are on a card of 4 GB."""
    for flags in ({"ot": "exps=CPU"}, {"ncmoe": 48}):
        found = needed(gpus=(4 * GIB,), ngl=99, **flags)
        assert found.gpus[0].weights < 1.1 * GIB
        assert found.ram.weights > 15 * GIB
        assert needed(Fork.IK_LLAMA_CPP, gpus=(4 * GIB,), ngl=99, **flags).gpus[0].weights == found.gpus[0].weights


@pytest.mark.parametrize("sent", [{"ot": "exps=CPU"}, {"ot": "a=CUDA0;exps=CUDA_Host"}, {"ncmoe": 40}])
def test_ik_maps_no_file_of_which_tensors_are_sent_to_the_cpu(sent: dict[str, FlagValue]) -> None:
    """They lie in pinned memory; seen on an H200, where llama.cpp mapped the file (`docs/explanation/h200.md`)."""
    assert needed(Fork.IK_LLAMA_CPP, gpus=(140 * GIB,), ngl=99, **sent).mapped == 0
    assert needed(Fork.LLAMA_CPP, gpus=(140 * GIB,), ngl=99, **sent).mapped > 10 * GIB
    assert needed(Fork.IK_LLAMA_CPP, gpus=(140 * GIB,), ngl=20).mapped > 5 * GIB


def test_the_forks_count_the_output_layer_differently() -> None:
    """With ngl=1 llama.cpp moves the output layer, ik_llama.cpp the last repeating one."""
    homes = {fork: place(thirty(), Asked.of(fork, {"ngl": 1}, (GIB,))) for fork in FORKS}
    assert (homes[Fork.LLAMA_CPP].output, set(homes[Fork.LLAMA_CPP].layers)) == (0, {CPU})
    assert (homes[Fork.IK_LLAMA_CPP].output, homes[Fork.IK_LLAMA_CPP].layers[-2:]) == (CPU, (CPU, 0))


def test_the_forks_count_cpu_moe_layers_from_different_ends() -> None:
    """llama.cpp keeps the experts of the first layers in RAM, ik_llama.cpp 8337e4cd those of the last ones."""

    def kept(fork: Fork) -> set[int]:
        placed = place(thirty(), Asked.of(fork, {"ngl": 99, "ncmoe": 2}, (40 * GIB,)))
        pairs = zip(thirty().weights, placed.tensors, strict=True)
        return {weight.layer for weight, device in pairs if weight.is_expert and device == CPU}

    assert kept(Fork.LLAMA_CPP) == {0, 1}
    assert kept(Fork.IK_LLAMA_CPP) == {46, 47}


def test_over_several_gpus_ik_spreads_the_layers_whose_experts_stay() -> None:
    """So many as was said, of each GPU the last of its layers."""
    asked = Asked.of(Fork.IK_LLAMA_CPP, {"ngl": 99, "ncmoe": 7, "ts": "1/1"}, (40 * GIB, 40 * GIB))
    placed = place(thirty(), asked)
    pairs = zip(thirty().weights, placed.tensors, strict=True)
    kept = {weight.layer for weight, device in pairs if weight.is_expert and device == CPU}
    assert len(kept) == 7
    assert {placed.layers[layer] for layer in kept} == {0, 1}
    assert {47, placed.layers.index(1) - 1} <= kept


def test_the_first_override_that_matches_wins() -> None:
    """As in both loaders."""
    first_on_gpu = needed(gpus=(40 * GIB,), ngl=99, ot=r"blk\.0\.=CUDA0;exps=CPU").ram.weights
    assert first_on_gpu < needed(gpus=(40 * GIB,), ngl=99, ot=r"exps=CPU;blk\.0\.=CUDA0").ram.weights


def test_a_pattern_that_matches_no_tensor_is_a_note() -> None:
    """It changes nothing, and says so."""
    found = needed(gpus=(40 * GIB,), ngl=99, ot="experts=CPU")
    assert found.notes == ("ot: 'experts' matches no tensor of qwen3-30b-a3b",)
    assert found.gpus == needed(gpus=(40 * GIB,), ngl=99).gpus


def test_shares_decide_how_layers_are_dealt_out() -> None:
    """Of 48 layers and the output, three quarters go to the first of two GPUs."""
    for fork in FORKS:
        placed = place(thirty(), Asked.of(fork, {"ngl": 99, "ts": "3/1"}, (GIB, GIB)))
        assert 35 <= placed.layers.count(0) <= 37
        assert (placed.layers[0], placed.layers[-1], placed.output) == (0, 1, 1)
    assert set(place(thirty(), Asked.of(Fork.LLAMA_CPP, {"ngl": 99, "sm": "none", "mg": 1}, (GIB, GIB))).layers) == {1}


def test_without_mmap_nothing_of_the_weights_can_be_dropped() -> None:
    """With it, only what llama.cpp keeps rearranged copies of can't."""
    assert needed(Fork.IK_LLAMA_CPP, mmap=0).held == needed(Fork.IK_LLAMA_CPP).ram.total
    assert needed(Fork.IK_LLAMA_CPP).held < GIB
    assert needed(mmap=1).held > 10 * GIB > needed(mmap=1, repack=0).held
    assert needed(mmap=1).ram == needed(mmap=1, repack=0).ram
    assert needed(mmap=1).peak_rss > needed(mmap=1, repack=0).peak_rss + 10 * GIB


def lent(fork: Fork, **more: int) -> int:
    """What a GPU gets copies of where all experts lie in RAM."""
    flags: dict[str, FlagValue] = {"ngl": 99, "ncmoe": 48, **more}
    gpus = (40 * GIB,)
    return weights_of(thirty(), Asked.of(fork, flags, gpus), Loading.of(fork, flags, len(gpus))).lent


def test_a_gpu_gets_copies_of_the_experts_of_one_step() -> None:
    """Of the largest tensor; ik_llama.cpp's fused step needs gate and up of a layer."""
    experts = [weight for weight in thirty().weights if weight.is_expert]
    largest = max(weight.nbytes for weight in experts)
    gates_and_ups: dict[int, int] = {}
    for weight in experts:
        if "_down_" not in weight.spec.name:
            gates_and_ups[weight.layer] = gates_and_ups.get(weight.layer, 0) + weight.nbytes
    assert lent(Fork.LLAMA_CPP) == largest
    assert lent(Fork.IK_LLAMA_CPP, fmoe=1) == max(largest, *gates_and_ups.values())
    assert lent(Fork.IK_LLAMA_CPP, fmoe=0) == largest


ON_A_GPU = json.loads((DATA / "gpu_buffers.json").read_text(encoding="utf-8"))["rows"]


@pytest.mark.parametrize(("place", "printed"), ON_A_GPU)
def test_buffers_of_a_gpu_are_those_that_a_build_printed(
    place: dict[str, int | str], printed: dict[str, float]
) -> None:
    """On an H200: weights and KV to the last figure, work buffers within a tenth."""
    flags = {key: value for key, value in place.items() if key not in ("card", "quant", "fork", "tokens")}
    shape = card_shape(load_card(str(place["card"])), str(place["quant"]))
    found = estimate(shape, Fork(str(place["fork"])), {**flags, "ub": place["tokens"]}, 256, (140 * GIB,)).gpus[0]
    assert found.weights / MIB == pytest.approx(printed["weights"], abs=0.01)
    assert found.cache / MIB == pytest.approx(printed["KV"], abs=0.01)
    assert found.compute / MIB == pytest.approx(printed["compute"], rel=0.1, abs=1.0)


def test_embeddings_that_serve_as_output_lie_on_the_gpu_once_more() -> None:
    """In RAM they are looked up."""
    kept = [weight for weight in thirty().weights if weight.spec.name != "output.weight"]
    specs, sizes = [weight.spec for weight in kept], [weight.nbytes for weight in kept]
    tied = shape_of("tied", thirty().metadata, specs, sizes, sum(sizes))
    embeddings = next(weight.nbytes for weight in kept if weight.spec.name == "token_embd.weight")
    found = estimate(tied, Fork.LLAMA_CPP, {"ngl": 99}, 512, (40 * GIB,))
    assert found.ram.weights == embeddings
    assert found.gpus[0].weights == sum(sizes)


def test_without_flash_attention_llama_cpp_converts_the_scores_on_the_cpu() -> None:
    """The work buffer and half the scores again; measured with a wheel (docs/explanation/memory.md)."""
    batch = Batch(Fork.LLAMA_CPP, 4096, 512, 1, flash=False)
    scores = 4096 * 512 * 4 * thirty().heads
    assert needed(fa=0).ram.compute == compute_bytes(thirty(), batch) + scores // 2


def test_over_several_gpus_llama_cpp_counts_layers_and_ik_their_bytes() -> None:
    """With one layer as large as the three others."""
    specs = [TensorSpec(f"blk.{layer}.ffn_up.weight", (256, 256), TYPES_BY_NAME["F16"]) for layer in range(4)]
    metadata = {"general.architecture": MetaValue("string", "a"), "a.block_count": MetaValue("u32", 4)}
    shape = shape_of("uneven", metadata, specs, [300, 100, 100, 100], 600)
    homes = {fork: place(shape, Asked.of(fork, {"ngl": 4, "ts": "1/1"}, (GIB, GIB))).layers for fork in FORKS}
    assert homes == {Fork.LLAMA_CPP: (CPU, 0, 0, 1), Fork.IK_LLAMA_CPP: (0, 1, 1, 1)}


def test_the_cache_stays_in_ram_where_it_is_told_to() -> None:
    """Then GPUs have none of it."""
    found = needed(gpus=(40 * GIB,), ngl=99, nkvo=1)
    assert (found.gpus[0].cache, found.ram.cache) == (0, needed().ram.cache)


@lru_cache
def printed() -> list[tuple[Memory, Batch, ModelShape, dict[str, Any]]]:
    """What both wheels printed, with what is estimated of the same."""
    recorded = json.loads((DATA / "engine_buffers.json").read_text(encoding="utf-8"))
    tiny, found = json.loads(load_card("tiny-moe").canonical_json()), []
    shapes = {}
    for name, card in recorded["cards"].items():
        tokenizer = {**tiny["tokenizer"], "size": card["vocabulary"]}
        text = json.dumps({**tiny, "name": name, "shape": card["shape"], "tokenizer": tokenizer})
        shapes[name] = card_shape(parse_card(text, where=name), "Q8_0")
    for row in recorded["rows"]:
        flags, fork, cells, shape = row["flags"], Fork(row["fork"]), row["cells"], shapes[row["card"]]
        fused, bound = bool(flags.get("fmoe", 1)), flags.get("amb", 0)
        batch = Batch(fork, cells, flags["ub"], flags["ub"], bool(flags["fa"]), fused, bound)
        found.append((estimate(shape, fork, flags, cells), batch, shape, row))
    return found


def test_caches_are_what_the_libraries_printed() -> None:
    """In all 232 contexts, to the last figure that was printed."""
    assert len(printed()) == 232
    for memory, _, _, row in printed():
        assert memory.ram.cache / MIB == pytest.approx(row["cache"], abs=0.011), row


def test_work_buffers_are_near_what_the_libraries_printed() -> None:
    """Half within 0.3 %, nine of ten within 5 %, all within 18 %; those of single tokens are below 2 MiB."""
    errors = []
    for _, batch, shape, row in printed():
        if batch.tokens > 1:
            errors.append(abs(compute_bytes(shape, batch) / MIB / row["compute"] - 1))
        else:
            assert row["compute"] < 2
    errors.sort()
    assert errors[len(errors) // 2] < 0.003
    assert errors[len(errors) * 9 // 10] < 0.05
    assert errors[-1] < 0.18


def test_a_cards_plan_is_the_file_that_is_made_of_it(tmp_path: Path) -> None:
    """Same tensors, same bytes: nothing has to be made to know them."""
    (tmp_path / "card.json").write_text(SMALL_DRAWN, encoding="utf-8")
    card = load_card(tmp_path / "card.json")
    planned, made = card_shape(card, "Q4_K_M"), file_shape(ensure_model(card, "Q4_K_M", cache=tmp_path))
    assert [(each.spec, each.nbytes) for each in planned.weights] == [(each.spec, each.nbytes) for each in made.weights]
    for fork in FORKS:
        assert estimate(planned, fork, {}, 512).ram == estimate(made, fork, {}, 512).ram


def test_a_model_that_nothing_is_known_of_is_not_told() -> None:
    """A file of another node, an address, a card that is not there."""
    for model in (Model("far", path="/no/such.gguf"), Model("web", url="https://host/a.gguf"), Model("x", card="none")):
        assert model_shape(model) is None
        assert bytes_needed(Arm(Build("b", Fork.LLAMA_CPP, path="b"), model, Flags()), [Workload(1, 0)]) is None


def test_flags_that_say_nothing_of_memory_do_not_matter() -> None:
    """Threads and fused operations change nothing; the context of the largest workload does."""
    model = Model("q", card="qwen3-30b-a3b", quant="Q4_K_M")

    def of(flags: dict[str, FlagValue], *loads: Workload) -> Memory | None:
        return bytes_needed(Arm(Build("b", Fork.IK_LLAMA_CPP, path="b"), model, Flags.of(flags)), loads)

    assert of({"t": 4}, Workload(512, 0)) == of({"t": 8}, Workload(512, 0), Workload(0, 128))
    assert of({}, Workload(512, 0)) != of({}, Workload(512, 0, 8192))


@pytest.mark.parametrize(
    "flags",
    [
        *({"ngl": 10}, {"ot": "exps=CPU"}, {"ncmoe": 5}, {"sm": "row"}, {"sm": "none", "mg": 1}, {"ts": "1/9"}),
        *({"mmap": 0}, {"ngl": 0, "no_host": 1}, {"nkvo": 1}, {"ctk": "q8_0"}, {"ctv": "q8_0"}, {"b": 64}),
        *({"ub": 64}, {"fa": 0}),
    ],
)
def test_a_flag_that_decides_changes_what_is_told(flags: dict[str, FlagValue]) -> None:
    """What is kept from one arm to the next is kept for all that matters."""
    model, gpus = Model("q", card="qwen3-30b-a3b", quant="Q4_K_M"), (40 * GIB, 20 * GIB)
    base: dict[str, FlagValue] = {"ngl": 99, "ub": 512, "b": 2048}

    def told(said: dict[str, FlagValue]) -> Memory | None:
        arm = Arm(Build("b", Fork.LLAMA_CPP, path="b"), model, Flags.of(said))
        return bytes_needed(arm, [Workload(2048, 0)], gpus)

    assert told({**base, **flags}) == estimate(thirty(), Fork.LLAMA_CPP, {**base, **flags}, 2048, gpus)
    assert told({**base, **flags}) != told(base)


def test_the_context_has_room_for_the_largest_workload() -> None:
    """In steps of 256, one sequence."""
    profile = PromptProfile("chat", "x" * 3000, 24)
    loads = [Workload(512, 16, 1000), ProfileWorkload(profile, Metric.TTFT)]
    assert context_cells(loads) == 1536
    assert context_cells([OutputProfile("o", (Prompt("p", "y" * 900),), 32, 8)]) == 512
    assert context_cells([]) == 256


@pytest.mark.parametrize("pattern", [r"(exps", r"(?<=a)b", r"(?i)exps", r"a\Z", r"x++"])
def test_a_pattern_that_the_engines_do_not_know_is_one_error(pattern: str) -> None:
    """It says which pattern, and what is wrong with it."""
    with pytest.raises(BadInput, match=re.escape(f"'{pattern}'")) as caught:
        needed(gpus=(GIB,), ngl=99, ot=f"{pattern}=CPU")
    assert caught.value.slug == "E-bad-flag-value"
