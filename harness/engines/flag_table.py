"""The flags of both forks, declared.

Sources: the recorded ``--help`` of llama.cpp b11434 and ik_llama.cpp 8337e4cd (tests/data/recordings), and the
``llama-bench`` sources of those revisions, read for how values are parsed and printed.

Two names mean different things although they sound alike: ``rtr`` (ik_llama.cpp) repacks the model's tensors at load
time and switches mmap off; ``repack`` (llama.cpp) lets the CPU backend use its extra buffer types.
"""

from __future__ import annotations

from dataclasses import replace

from harness.domain.flags import FlagValue
from harness.engines.flag_spec import NONE, Compare, Echo, FlagKind, FlagSpec, Numbers, Spelling

_SHARED_KV = ("f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl")
_IK_KV = (*_SHARED_KV, "q6_0", "q8_KV")


def _number(*fields: str) -> tuple[Echo, ...]:
    return tuple(Echo(field, Compare.NUMBER) for field in fields)


def _switch(
    name: str,
    meaning: str,
    *options: str,
    echo: str = "",
    default: int = 0,
    absent: int = 0,
    embedded: bool = False,
) -> FlagSpec:
    """A flag of 0 and 1 that is said and echoed as it is."""
    return FlagSpec(
        name,
        meaning,
        FlagKind.SWITCH,
        default,
        absent,
        embedded=embedded,
        spellings=(Spelling(options),),
        echoes=_number(echo) if echo else (),
    )


def _integer(
    name: str,
    meaning: str,
    *options: str,
    default: int,
    absent: int | None = None,
    low: int = 0,
    high: int = 1 << 24,
    echo: str = "",
    embedded: bool = False,
) -> FlagSpec:
    """A flag of whole numbers that is said and echoed as it is."""
    return FlagSpec(
        name,
        meaning,
        FlagKind.INTEGER,
        default,
        default if absent is None else absent,
        low=low,
        high=high,
        embedded=embedded,
        spellings=(Spelling(options),),
        echoes=_number(echo) if echo else (),
    )


def _choice(
    name: str,
    meaning: str,
    *options: str,
    choices: tuple[str, ...],
    echo: str = "",
    omitted: FlagValue | None = None,
    embedded: bool = False,
) -> FlagSpec:
    """A flag of words; the first is the default."""
    return FlagSpec(
        name,
        meaning,
        FlagKind.CHOICE,
        choices[0],
        choices[0],
        choices,
        embedded=embedded,
        spellings=(Spelling(options, omitted=omitted),),
        echoes=(Echo(echo, Compare.TEXT),) if echo else (),
    )


def _kv(choices: tuple[str, ...]) -> tuple[FlagSpec, ...]:
    return (
        _choice("ctk", "type of the K cache", "-ctk", "--cache-type-k", choices=choices, echo="type_k", embedded=True),
        _choice("ctv", "type of the V cache", "-ctv", "--cache-type-v", choices=choices, echo="type_v", embedded=True),
    )


_FA = _switch("fa", "flash attention", "-fa", "--flash-attn", echo="flash_attn", default=1, embedded=True)

_BOTH = (
    _integer("b", "logical batch, tokens", "-b", "--batch-size", default=2048, low=1, echo="n_batch", embedded=True),
    _integer(
        "ub", "physical batch, tokens", "-ub", "--ubatch-size", default=512, low=1, echo="n_ubatch", embedded=True
    ),
    _integer(
        "t",
        "compute threads; 0: as many as the slot has",
        "-t",
        "--threads",
        default=0,
        high=1024,
        echo="n_threads",
        embedded=True,
    ),
    _integer("mg", "main GPU, index", "-mg", "--main-gpu", default=0, high=255, echo="main_gpu"),
    FlagSpec(
        "ts",
        "shares of the model by GPU",
        FlagKind.SPLIT,
        NONE,
        NONE,
        spellings=(Spelling(("-ts", "--tensor-split"), words={NONE: "0"}),),
        echoes=(Echo("tensor_split", Compare.SPLIT),),
    ),
    _switch(
        "nkvo", "keep the KV cache in host memory", "-nkvo", "--no-kv-offload", echo="no_kv_offload", embedded=True
    ),
    _switch("embd", "embeddings instead of logits", "-embd", "--embeddings", echo="embeddings"),
    _choice(
        "numa",
        "NUMA strategy",
        "--numa",
        choices=("disabled", "distribute", "isolate", "numactl"),
        omitted="disabled",
    ),
)

_MAINLINE_ONLY = (
    replace(_FA, choices=("auto",), echoes=(Echo("flash_attn", Compare.NUMBER, {"auto": -1}),)),
    *_kv(_SHARED_KV),
    _integer(
        "ngl",
        "layers on the GPU; -1: the library decides",
        "-ngl",
        "--n-gpu-layers",
        default=999,
        low=-1,
        echo="n_gpu_layers",
        embedded=True,
    ),
    _choice(
        "sm", "split over GPUs", "-sm", "--split-mode", choices=("layer", "none", "row", "tensor"), echo="split_mode"
    ),
    FlagSpec(
        "mmap",
        "map the model file instead of reading it",
        FlagKind.SWITCH,
        1,
        1,
        embedded=True,
        spellings=(
            Spelling(("-lm", "--load-mode"), words={0: "none", 1: "mmap"}),
            Spelling(("-mmp", "--mmap")),
        ),
        echoes=(Echo("load_mode", Compare.TEXT, {0: "none", 1: "mmap"}), *_number("use_mmap")),
    ),
    FlagSpec(
        "ot",
        "tensors by name pattern to buffer types",
        FlagKind.OVERRIDES,
        NONE,
        NONE,
        embedded=True,
        spellings=(Spelling(("-ot", "--override-tensor"), omitted=NONE, joiner=";"),),
        echoes=(Echo("tensor_buft_overrides", Compare.OVERRIDES),),
    ),
    _integer("ncmoe", "layers whose experts stay on the CPU", "-ncmoe", "--n-cpu-moe", default=0, echo="n_cpu_moe"),
    _switch(
        "nopo",
        "no offload of single operations to the GPU",
        "-nopo",
        "--no-op-offload",
        echo="no_op_offload",
        embedded=True,
    ),
    _switch(
        "repack",
        "extra CPU buffer types that repack weights; not ik_llama.cpp's run-time repack",
        "--repack",
        echo="repack",
        default=1,
        absent=1,
        embedded=True,
    ),
    _switch("no_host", "no host buffers beside the device's", "--no-host", echo="no_host", embedded=True),
    _choice(
        "lzm",
        "lazy loading of tensors",
        "-lzm",
        "--lazy-mode",
        choices=("auto", "on", "off"),
        echo="lazy_mode",
        embedded=True,
    ),
    FlagSpec(
        "dev",
        "devices, joined by '/'",
        FlagKind.TEXT,
        "auto",
        "auto",
        spellings=(Spelling(("-dev", "--device"), omitted="auto"),),
        echoes=(Echo("devices", Compare.TEXT),),
    ),
    _integer("poll", "polling of idle threads, percent", "--poll", default=50, high=100, echo="poll"),
    _switch("cpu_strict", "strict placement of threads on cores", "--cpu-strict", echo="cpu_strict"),
)

_IK_ONLY = (
    _FA,
    *_kv(_IK_KV),
    _integer("ngl", "layers on the GPU", "-ngl", "--n-gpu-layers", default=999, echo="n_gpu_layers", embedded=True),
    _choice("sm", "split over GPUs", "-sm", "--split-mode", choices=("layer", "none", "graph"), echo="split_mode"),
    _switch(
        "mmap",
        "map the model file instead of reading it",
        "-mmp",
        "--mmap",
        echo="use_mmap",
        default=1,
        absent=1,
        embedded=True,
    ),
    FlagSpec(
        "ot",
        "tensors by name pattern to buffer types",
        FlagKind.OVERRIDES,
        NONE,
        NONE,
        embedded=True,
        spellings=(Spelling(("-ot", "--override-tensor"), omitted=NONE, joiner=","),),
        echoes=(Echo("override_tensor", Compare.OVERRIDES),),
    ),
    # Its echo is a part of override_tensor's.
    _integer("ncmoe", "layers whose experts stay on the CPU", "--n-cpu-moe", default=0, high=1024),
    _switch(
        "rtr",
        "repack the model's tensors while loading; switches mmap off",
        "-rtr",
        "--run-time-repack",
        echo="repack",
        embedded=True,
    ),
    _switch(
        "fmoe",
        "fused up, gate and activation of experts",
        "-fmoe",
        "--fused-moe",
        echo="fused_moe",
        default=1,
        embedded=True,
    ),
    _switch("ger", "grouped expert routing", "-ger", "--grouped-expert-routing", echo="grouped_er", embedded=True),
    _switch(
        "no_fug",
        "no fused up and gate of dense layers",
        "-no-fug",
        "--no-fused-up-gate",
        echo="no_fused_up_gate",
        embedded=True,
    ),
    _switch(
        "no_ooae",
        "offload all experts, not only the active ones",
        "-no-ooae",
        "--no-offload-only-active-experts",
        echo="no_ooae",
        embedded=True,
    ),
    _integer(
        "amb",
        "bound of the attention's work buffer, MiB; 0: none",
        "-amb",
        "--attention-max-batch",
        default=0,
        echo="attn_max_batch",
        embedded=True,
    ),
    _integer(
        "mla",
        "variant of multi-head latent attention; other architectures ignore it",
        "-mla",
        "--mla-use",
        default=3,
        absent=0,
        high=3,
        echo="mla_attn",
        embedded=True,
    ),
    _switch(
        "mqkv", "merge Q, K and V while loading; switches mmap off", "-mqkv", "--merge-qkv", echo="mqkv", embedded=True
    ),
    _switch(
        "muge",
        "merge up and gate of experts while loading; switches mmap off",
        "-muge",
        "--merge-up-gate-experts",
        echo="muge",
        embedded=True,
    ),
    FlagSpec(
        "ser",
        "smart expert reduction: least experts and threshold",
        FlagKind.EXPERTS,
        "-1,0",
        "-1,0",
        embedded=True,
        spellings=(Spelling(("-ser", "--smart-expert-reduction")),),
        echoes=(Echo("ser", Compare.EXPERTS),),
    ),
    _switch("gr", "reuse of compute graphs", "-gr", "--graph-reuse", echo="reuse", default=1, embedded=True),
    _switch("thp", "transparent huge pages", "-thp", "--transparent-huge-pages", echo="use_thp", embedded=True),
    _switch("rcache", "cache of rotary embeddings", "-rcache", "--rope-cache", echo="rcache", embedded=True),
    _switch("sas", "asynchronous scheduler of split graphs", "-sas", "--scheduler-async", echo="sas"),
    FlagSpec(
        "defer_experts",
        "read experts when they are first used",
        FlagKind.SWITCH,
        0,
        0,
        spellings=(Spelling(("--defer-experts",), bare=True),),
        echoes=_number("defer_experts"),
    ),
    # llama-bench stores the number in a boolean: only zero or not can be compared.
    replace(
        _integer("max_gpu", "GPUs a split graph uses at most; 0: all", "--max-gpu", default=0, high=255),
        echoes=(Echo("max_gpu", Compare.TRUTH),),
    ),
    _switch("fit", "fit the model's placement to free memory; not echoed", "--fit"),
    _integer("fit_margin", "memory left free by fit, MiB; not echoed", "--fit-margin", default=0),
    FlagSpec(
        "cuda",
        "parameters of the CUDA backend",
        FlagKind.TEXT,
        "",
        "",
        spellings=(Spelling(("-cuda", "--cuda-params"), omitted=""),),
        echoes=(Echo("cuda_params", Compare.TEXT),),
    ),
)

_NUMBERS = {
    **dict.fromkeys(("mmap", "lzm", "numa", "poll", "cpu_strict", "thp", "defer_experts", "gr"), Numbers.SAME),
    **dict.fromkeys(("fa", "ctk", "ctv", "ser"), Numbers.CHANGE),
}
"""What is known of the logits; the others may change them. Not here although it was equal to the bit where it was
measured: fused experts and merged weights (``fmoe``, ``muge``, ``mqkv``, ``rcache``), ``rtr`` on some quantizations and
``t`` in one of the forks. That is no promise for other models and devices."""


def _told(specs: tuple[FlagSpec, ...]) -> dict[str, FlagSpec]:
    return {spec.name: replace(spec, numbers=_NUMBERS.get(spec.name, Numbers.MAY)) for spec in specs}


MAINLINE = _told((*_BOTH, *_MAINLINE_ONLY))
"""Flags of llama.cpp by canonical name, in the order of the command line."""
IK = _told((*_BOTH, *_IK_ONLY))
"""Flags of ik_llama.cpp by canonical name, in the order of the command line."""
