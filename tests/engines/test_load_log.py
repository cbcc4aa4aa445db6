"""What builds say while they load, read from their own logs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.load_facts import Buffer, LoadFacts, Placed, device_word, grouped, numbers, places, ranges
from harness.engines.load_log import read_load_log

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
LINES = (RECORDINGS / "llama_cpp-b11549.load_ot.stderr.txt").read_text("utf-8").splitlines()
EXPERTS = ("ffn_down_exps.weight", "ffn_gate_exps.weight", "ffn_up_exps.weight")


def recorded(name: str) -> LoadFacts:
    return read_load_log((RECORDINGS / f"{name}.stderr.txt").read_text("utf-8"))


def test_ik_tells_overrides_buffers_settings_and_what_was_repacked() -> None:
    """All that its log says at info level."""
    load = recorded("ik_llama_cpp-55d3c05.load_rtr")
    assert load.overrides == (Placed("1", EXPERTS, "CPU"),)
    assert load.buffers == (
        Buffer("weights", "CPU", 21.06),
        Buffer("KV", "CPU", 1.5),
        Buffer("output", "CPU", 0.0),
        Buffer("compute", "CPU", 6.51),
    )
    assert (load.nodes, load.splits, load.splits_of_one, load.repacked) == (227, 1, None, 43)
    assert load.values | {"fa": "1", "fmoe": "1", "ctk": "f16", "ctv": "f16", "amb": "0", "no_fug": "0"} == load.values
    assert [notice.line for notice in load.notices] == [
        "======================================= HAVE_FANCY_SIMD is NOT defined"
    ]


def test_mainline_tells_homes_of_layers_and_repacked_buffers_too() -> None:
    """An override to the CPU can land in another of its buffer types."""
    load = recorded("llama_cpp-b11549.load_ot")
    assert load.overrides == (Placed("1", EXPERTS, "CPU_REPACK"),)
    assert load.homes == (Placed("0-6", (), "CPU"),)
    assert Buffer("weights", "CPU_REPACK", 18.42) in load.buffers
    assert (load.values["mmap"], load.values["fa"], load.repacked, load.nodes) == ("1", "1", 22, 339)
    assert any("preferred buffer type CPU_REPACK" in notice.line for notice in load.notices)


def test_a_gpu_tells_its_layers_its_buffers_and_where_the_experts_lie() -> None:
    """An H200 with all on it, with the experts in RAM, and with three layers."""
    whole, hybrid, partial = (recorded(f"llama_cpp-0c1e570.cuda_{name}") for name in ("gpu", "hybrid", "partial"))
    assert (whole.offloaded, whole.nodes, whole.splits, whole.overrides) == ((49, 49), 3030, 2, ())
    assert whole.homes == (Placed("0-48", (), "CUDA0"),)
    assert {Buffer("weights", "CUDA0", 15626.74), Buffer("KV", "CUDA0", 24.0)} <= set(whole.buffers)
    assert hybrid.overrides == (Placed("0-47", EXPERTS, "CUDA_Host"),)
    assert (hybrid.splits, hybrid.splits_of_one) == (146, 98)
    assert Buffer("weights", "CUDA0", 758.73) in hybrid.buffers
    assert (partial.offloaded, partial.homes) == ((3, 7), (Placed("0-3", (), "CPU"), Placed("4-6", (), "CUDA0")))
    assert {Buffer("KV", "CPU", 0.5), Buffer("KV", "CUDA0", 0.25)} <= set(partial.buffers)
    ik = recorded("ik_llama_cpp-8337e4cd.cuda_tiny")
    assert (whole.values["b"], whole.values["ub"]) == ("64", "64"), "asked were 2048"
    assert (ik.overrides, ik.offloaded, ik.splits) == ((Placed("0-5", EXPERTS, "CUDA_Host"),), (7, 7), 14)
    assert ik.buffers[:2] == (Buffer("weights", "CUDA_Host", 72.62), Buffer("weights", "CUDA0", 4.58))


def test_a_layer_is_at_home_where_its_weights_are() -> None:
    """Its cache can lie elsewhere."""
    load = read_load_log("load_tensors: layer   0 assigned to device CUDA0\nllama_kv_cache: layer   0: dev = CPU\n")
    assert load.homes == (Placed("0", (), "CUDA0"),)


def test_each_kind_of_notice_is_kept_once_with_its_line() -> None:
    """Six layers that do not merge are one notice."""
    load = recorded("ik_llama_cpp-55d3c05.load_muge")
    merged = [notice for notice in load.notices if "did not merge" in notice.line]
    assert [(notice.line, notice.number) for notice in merged] == [
        ("merge_qkv: did not merge Q, K, V in layer 0 because 0, 0, 1", 116)
    ]
    assert (load.values["ctk"], load.values["ctv"]) == ("q8_0", "q8_0")


@pytest.mark.parametrize(
    ("line", "flag", "value"),
    [
        ("llama_init_from_model: flash_attn is not compatible with Grok - forcing off", "fa", "0"),
        ("llama_new_context_with_model: flash_attn requires n_embd_head_k == n_embd_head_v - forcing off", "fa", "0"),
        ("llama_init_from_model: enabling flash_attn since it is required for quantized V cache", "fa", "1"),
        ("sched_reserve: Flash Attention was auto, set to disabled", "fa", "0"),
        ("resolve_fused_ops: Flash Attention not supported, set to disabled", "fa", "0"),
        ("llama_kv_cache_init: changing MLA from 3 to 1", "mla", "1"),
        ("    => changing mla to 3", "mla", "3"),
        ("  => changing split mode to 'layer'", "sm", "layer"),
        ("  => turning off merge_qkv", "mqkv", "0"),
        ("llama_model_loader: mmap is not supported on this platform", "mmap", "0"),
        ("llama_model_load: deferred expert loading disabled because mlock keeps mmap ranges", "defer_experts", "0"),
        ("llama_init: DeepSeek4 has no independent V-cache; ignoring requested V-cache type q8_0", "ctv", "f16"),
        ("sched_reserve: compute buffer allocation failed, retrying without pipeline parallelism", "", ""),
        ("ggml_cuda: op FLASH_ATTN_EXT falling back to CPU", "", ""),
        ("layer 2 is assigned to device CUDA0 but Flash Attention is on CPU (usually missing support)", "", ""),
        (" MLA is only available for LLM_ARCH_DEEPSEEK2 -> turning off MLA", "mla", "0"),
    ],
)
def test_what_a_build_does_otherwise_is_a_notice_about_its_flag(line: str, flag: str, value: str) -> None:
    """Read in the sources of both forks."""
    (notice,) = read_load_log(f"x\n{line}\n").notices
    assert (notice.flag, notice.value, notice.number) == (flag, value, 2)
    assert notice.line == line.strip()


def test_gpu_lines_of_both_forks_and_all_spellings_of_splits() -> None:
    """As people published them: weights of a load add up, of several contexts the largest counts."""
    load = read_load_log(
        "0.00.100.000 I llm_load_tensors: offloaded 48/49 layers to GPU\n"
        "llm_load_tensors:      CUDA0 buffer size = 15000.25 MiB\n"
        "llm_load_tensors:      CUDA0 buffer size =  1000.00 MiB\n"
        "llm_load_tensors:  CUDA_Host buffer size =   100.00 MiB\n"
        "llama_new_context_with_model: n_ctx      = 512\n"
        "llama_kv_cache_init:      CUDA0 KV buffer size =    48.00 MiB\n"
        "llama_new_context_with_model: KV self size  = 48.00 MiB, c^KV (q8_0): 48.00 MiB, kv^T: not used\n"
        "llama_new_context_with_model:      CUDA0 compute buffer size =   300.75 MiB\n"
        "llama_new_context_with_model: graph splits = 98 (with bs=512), 50 (with bs=1)\n"
        "llama_new_context_with_model: n_ctx      = 1024\n"
        "llama_kv_cache_init:      CUDA0 KV buffer size =    96.00 MiB\n"
        "llama_context: flash_attn            = disabled\n"
    )
    assert load.buffers == (
        Buffer("weights", "CUDA0", 16000.25),
        Buffer("weights", "CUDA_Host", 100.0),
        Buffer("KV", "CUDA0", 96.0),
        Buffer("compute", "CUDA0", 300.75),
    )
    assert (load.offloaded, load.splits, load.splits_of_one) == ((48, 49), 98, 50)
    assert (load.values["ctk"], load.values["fa"]) == ("q8_0", "0")
    newer = read_load_log("sched_reserve: graph (pp bs=512, tg bs=1): nodes = 3000 / 3001, splits = 98 / 50, inputs\n")
    assert (newer.nodes, newer.splits, newer.splits_of_one) == (3000, 98, 50)
    old = "Tensor blk.3.ffn_up_exps.weight buffer type overriden to CPU\n"
    sized = "Tensor blk.3.ffn_up_exps.weight (size = 80.50 MiB) buffer type overridden to CPU\n"
    debug = "tensor blk.3.ffn_up_exps.weight (80 MiB q4_K) buffer type overridden to CPU\n"
    one = (Placed("3", ("ffn_up_exps.weight",), "CPU"),)
    assert [read_load_log(text).overrides for text in (old, sized, debug)] == [one, one, one]


def test_devices_with_names_of_several_words_and_commas_in_figures_are_read() -> None:
    """As people published them."""
    load = read_load_log(
        "llm_load_tensors: AMD Radeon RX 7900 XTX (RADV NAVI31) buffer size = 18671.19 MiB\n"
        "llm_load_tensors:        CPU buffer size = 24079,77 MiB\n"
    )
    assert load.buffers == (
        Buffer("weights", "AMD Radeon RX 7900 XTX (RADV NAVI31)", 18671.19),
        Buffer("weights", "CPU", 24079.77),
    )


@pytest.mark.parametrize(
    "piece", ["\n", ": a = 1\n", "Tensor blk.1.a buffer type ", "size = 1 MiB K (", "=" * 50, "\0\ud800"]
)
def test_a_huge_log_does_no_harm(piece: str) -> None:
    """100 MB of anything: what is read of it is bounded."""
    started = time.process_time()
    load = read_load_log(piece * (100_000_000 // len(piece)))
    assert load.unread
    assert time.process_time() - started < 20


@given(st.text() | st.lists(st.sampled_from(LINES)).map("\n".join))
def test_no_text_makes_it_raise(text: str) -> None:
    """Nor is anything told that is not in the text."""
    load = read_load_log(text)
    assert all(f"{notice.line}" in text for notice in load.notices)
    assert all(buffer.device in text for buffer in load.buffers)


@given(
    st.dictionaries(
        st.sampled_from([f"blk.{n}.{t}.weight" for n in range(12) for t in ("a", "b")] + ["output.weight"]),
        st.sampled_from(["CPU", "CUDA0"]),
    )
)
def test_groups_say_what_they_were_made_of(placed: dict[str, str]) -> None:
    """No tensor is lost or added."""
    assert places(grouped(placed)) == placed


@given(st.sets(st.integers(0, 5000)))
def test_ranges_say_the_numbers(found: set[int]) -> None:
    """Sorted and whole."""
    assert numbers(ranges(found)) == sorted(found)


def test_all_that_lies_in_main_memory_has_one_name() -> None:
    """Whatever the buffer type is called."""
    host = ["CPU", "CPU_Mapped", "CPU_REPACK", "CUDA_Host", "Vulkan_Host", "AMX", "BLAS"]
    assert {device_word(name) for name in host} == {"RAM"}
    assert [device_word(name) for name in ("CUDA0", "MTL0_Mapped", "CUDA_Split")] == ["CUDA0", "MTL0", "CUDA"]
