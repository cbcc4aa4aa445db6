"""C structures of the wheels whose layout was verified, and the check that refuses every other.

The C API passes structures by value and has no version in them: a field more or less in a later wheel silently turns
``n_ctx`` into something else. So a layout belongs to one version of one wheel, found in ``VERIFIED``, and is checked
again in each child against what the library writes: how many bytes, and which defaults.

How the layouts were verified is written in the comments of each; pointers that the child never sets are ``c_void_p``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import c_bool, c_float, c_int32, c_size_t, c_uint32, c_void_p
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from .errors import EmbeddedError
from .flags import IK, MAINLINE

Expected: TypeAlias = Mapping[str, int | float]


class _Batch(ctypes.Structure):
    """The common beginning of ``llama_batch``: tokens, their positions, their sequences and whose logits are kept."""

    _fields_: ClassVar = [
        ("n_tokens", c_int32),
        ("token", ctypes.POINTER(c_int32)),
        ("embd", c_void_p),
        ("pos", ctypes.POINTER(c_int32)),
        ("n_seq_id", ctypes.POINTER(c_int32)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(c_int32))),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    ]


class MainlineBatch(_Batch):
    """56 bytes: exactly the common fields."""


class IkBatch(_Batch):
    """72 bytes: three helper fields follow, unused where the arrays are given."""

    _fields_: ClassVar = [("all_pos_0", c_int32), ("all_pos_1", c_int32), ("all_seq_id", c_int32)]


class TensorOverride(ctypes.Structure):
    """A tensor name pattern and the buffer type for what matches; a pair of nulls ends an array of them."""

    _fields_: ClassVar = [("pattern", ctypes.c_char_p), ("buffer_type", c_void_p)]


class MainlineModelParams(ctypes.Structure):
    """``llama_model_params`` of xllamacpp 2026.10.11549.

    Offsets 16 to 32 and 73 to 77 were found by setting one attribute of ``xllamacpp.CommonParams`` at a time and
    comparing the bytes that the library's own ``common_model_params_to_llama`` makes of it.
    """

    _fields_: ClassVar = [
        ("devices", c_void_p),  # 0
        ("tensor_buft_overrides", ctypes.POINTER(TensorOverride)),  # 8
        ("n_gpu_layers", c_int32),  # 16
        ("split_mode", c_int32),  # 20
        ("load_mode", c_int32),  # 24
        ("lazy_mode", c_int32),  # 28
        ("main_gpu", c_int32),  # 32
        ("tensor_split", c_void_p),  # 40
        ("progress_callback", c_void_p),  # 48
        ("progress_callback_user_data", c_void_p),  # 56
        ("kv_overrides", c_void_p),  # 64
        ("vocab_only", c_bool),  # 72
        ("check_tensors", c_bool),  # 73
        ("use_extra_bufts", c_bool),  # 74
        ("no_host", c_bool),  # 75
        ("no_alloc", c_bool),  # 76
        ("load_mtp", c_bool),  # 77
    ]


class MainlineContextParams(ctypes.Structure):
    """``llama_context_params`` of xllamacpp 2026.10.11549.

    Offsets 0 to 8, 12, 20 to 32, 40 to 80, 104, 108 and 136 to 141 were found as in ``MainlineModelParams`` (through
    ``common_context_params_to_llama``); the child sets no other.
    """

    _fields_: ClassVar = [
        ("n_ctx", c_uint32),  # 0
        ("n_batch", c_uint32),  # 4
        ("n_ubatch", c_uint32),  # 8
        ("n_seq_max", c_uint32),  # 12
        ("n_rs_seq", c_uint32),  # 16
        ("n_outputs_max", c_uint32),  # 20
        ("n_outputs_max_per_seq", c_uint32),  # 24
        ("n_threads", c_int32),  # 28
        ("n_threads_batch", c_int32),  # 32
        ("ctx_type", c_int32),  # 36
        ("rope_scaling_type", c_int32),  # 40
        ("pooling_type", c_int32),  # 44
        ("attention_type", c_int32),  # 48
        ("flash_attn_type", c_int32),  # 52
        ("rope_freq_base", c_float),  # 56
        ("rope_freq_scale", c_float),  # 60
        ("yarn_ext_factor", c_float),  # 64
        ("yarn_attn_factor", c_float),  # 68
        ("yarn_beta_fast", c_float),  # 72
        ("yarn_beta_slow", c_float),  # 76
        ("yarn_orig_ctx", c_uint32),  # 80
        ("defrag_thold", c_float),  # 84
        ("cb_eval", c_void_p),  # 88
        ("cb_eval_user_data", c_void_p),  # 96
        ("type_k", c_int32),  # 104
        ("type_v", c_int32),  # 108
        ("_unset", c_void_p * 3),  # 112: the abort callback's pair and one newer field, order unknown, null, never set
        ("embeddings", c_bool),  # 136
        ("offload_kqv", c_bool),  # 137
        ("no_perf", c_bool),  # 138
        ("op_offload", c_bool),  # 139
        ("swa_full", c_bool),  # 140
        ("kv_unified", c_bool),  # 141
        ("samplers", c_void_p),  # 144
        ("n_samplers", c_size_t),  # 152
        ("ctx_other", c_void_p),  # 160
    ]


class IkModelParams(ctypes.Structure):
    """``llama_model_params`` of ik_llama.cpp 55d3c05: the field order of that commit's public header."""

    _fields_: ClassVar = [
        ("devices", c_void_p),
        ("n_gpu_layers", c_int32),
        ("mla", c_int32),
        ("split_mode", c_int32),
        ("main_gpu", c_int32),
        ("max_gpu", c_int32),
        ("ncmoe", c_int32),
        ("type_k", c_int32),
        ("type_v", c_int32),
        ("max_ctx_size", c_uint32),
        ("n_seq_max", c_int32),
        ("n_ubatch", c_int32),
        ("amb", c_int32),
        ("fit_margin", c_int32),
        ("fit", c_bool),
        ("worst_graph_tokens", c_int32),
        ("type_k_first", c_int32),
        ("type_k_last", c_int32),
        ("type_v_first", c_int32),
        ("type_v_last", c_int32),
        ("n_k_first", c_int32),
        ("n_k_last", c_int32),
        ("n_v_first", c_int32),
        ("n_v_last", c_int32),
        ("tensor_split", c_void_p),
        ("rpc_servers", c_void_p),
        ("progress_callback", c_void_p),
        ("progress_callback_user_data", c_void_p),
        ("kv_overrides", c_void_p),
        ("tensor_buft_overrides", ctypes.POINTER(TensorOverride)),
        ("vocab_only", c_bool),
        ("use_mmap", c_bool),
        ("use_mlock", c_bool),
        ("check_tensors", c_bool),
        ("repack_tensors", c_bool),
        ("use_thp", c_bool),
        ("validate_quants", c_bool),
        ("merge_qkv", c_bool),
        ("merge_up_gate_exps", c_bool),
        ("mtp", c_bool),
        ("dry_run", c_bool),
        ("flash_attn", c_bool),
    ]


class IkContextParams(ctypes.Structure):
    """``llama_context_params`` of ik_llama.cpp 55d3c05: the field order of that commit's public header."""

    _fields_: ClassVar = [
        ("seed", c_uint32),
        ("n_ctx", c_uint32),
        ("n_batch", c_uint32),
        ("n_ubatch", c_uint32),
        ("n_seq_max", c_uint32),
        ("n_threads", c_uint32),
        ("n_threads_batch", c_uint32),
        ("max_extra_alloc", c_int32),
        ("worst_case_tokens", c_int32),
        ("rope_scaling_type", c_int32),
        ("pooling_type", c_int32),
        ("attention_type", c_int32),
        ("rope_freq_base", c_float),
        ("rope_freq_scale", c_float),
        ("yarn_ext_factor", c_float),
        ("yarn_attn_factor", c_float),
        ("yarn_beta_fast", c_float),
        ("yarn_beta_slow", c_float),
        ("yarn_orig_ctx", c_uint32),
        ("defrag_thold", c_float),
        ("cb_eval", c_void_p),
        ("cb_eval_user_data", c_void_p),
        ("type_k", c_int32),
        ("type_v", c_int32),
        ("type_reduce", c_int32),
        ("type_k_first", c_int32),
        ("type_k_last", c_int32),
        ("type_v_first", c_int32),
        ("type_v_last", c_int32),
        ("n_k_first", c_int32),
        ("n_k_last", c_int32),
        ("n_v_first", c_int32),
        ("n_v_last", c_int32),
        ("logits_all", c_bool),
        ("embeddings", c_bool),
        ("offload_kqv", c_bool),
        ("flash_attn", c_bool),
        ("mla_attn", c_int32),
        ("attn_max_batch", c_int32),
        ("fused_moe_up_gate", c_bool),
        ("grouped_expert_routing", c_bool),
        ("fused_up_gate", c_bool),
        ("fused_mmad", c_bool),
        ("rope_cache", c_bool),
        ("graph_reuse", c_bool),
        ("min_experts", c_int32),
        ("thresh_experts", c_float),
        ("only_active_experts", c_bool),
        ("k_cache_hadamard", c_bool),
        ("v_cache_hadamard", c_bool),
        ("split_mode_graph_scheduling", c_bool),
        ("scheduler_async", c_bool),
        ("mtp", c_bool),
        ("mtp_op_type", c_int32),
        ("abort_callback", c_void_p),
        ("abort_callback_data", c_void_p),
        ("offload_policy", c_void_p),
        ("cuda_params", c_void_p),
    ]


@dataclass(frozen=True, slots=True)
class Structure:
    """One structure as the library fills it.

    Attributes:
        type: The ctypes structure.
        written: Bytes up to the end of the last field that the library writes.
        defaults: Documented default of fields that would move if the layout did.
    """

    type: type[ctypes.Structure]
    written: int
    defaults: Expected = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Layout:
    """A wheel whose C structures are known.

    Attributes:
        fork: Which fork the wheel carries.
        distribution: Name on the package index.
        version: The verified version.
        module: Folder of the wheel below ``site-packages``.
        library: The library inside it, relative to ``module``.
        commit: Source commit by the wheel's documentation; empty where it tells none.
        number: Build number of its source: in its version, or counted in the fork's history.
        model_params: ``llama_model_params``.
        context_params: ``llama_context_params``.
        batch: ``llama_batch``.
    """

    fork: str
    distribution: str
    version: str
    module: str
    library: str
    commit: str
    number: int
    model_params: Structure
    context_params: Structure
    batch: Structure


_XLLAMACPP_2026_10_11549 = Layout(
    fork=MAINLINE,
    distribution="xllamacpp",
    version="2026.10.11549",
    module="xllamacpp",
    library="xllamacpp.abi3.so",
    commit="",
    number=11549,
    model_params=Structure(
        MainlineModelParams,
        written=78,
        defaults={
            "n_gpu_layers": -1,
            "split_mode": 1,
            "load_mode": -1,
            "lazy_mode": 1,
            "main_gpu": 0,
            "vocab_only": 0,
            "check_tensors": 0,
            "use_extra_bufts": 1,
            "no_host": 0,
            "no_alloc": 0,
        },
    ),
    context_params=Structure(
        MainlineContextParams,
        written=168,
        defaults={
            "n_ctx": 512,
            "n_batch": 2048,
            "n_ubatch": 512,
            "n_seq_max": 1,
            "n_outputs_max_per_seq": 1,
            "n_threads": 4,
            "n_threads_batch": 4,
            "rope_scaling_type": -1,
            "pooling_type": -1,
            "attention_type": -1,
            "flash_attn_type": -1,
            "yarn_ext_factor": -1.0,
            "yarn_orig_ctx": 0,
            "defrag_thold": -1.0,
            "type_k": 1,
            "type_v": 1,
            "embeddings": 0,
            "offload_kqv": 1,
            "no_perf": 1,
            "op_offload": 1,
            "swa_full": 1,
            "kv_unified": 0,
            "n_samplers": 0,
        },
    ),
    batch=Structure(MainlineBatch, written=56),
)

_IK_0_1_5 = Layout(
    fork=IK,
    distribution="ik-llama-cpp-python",
    version="0.1.5",
    module="ik_llama_cpp",
    library="lib/libllama.so",
    commit="55d3c05",
    number=4411,
    model_params=Structure(
        IkModelParams,
        written=164,
        defaults={
            "n_gpu_layers": 0,
            "mla": 0,
            "split_mode": 1,
            "type_k": 1,
            "type_v": 1,
            "n_seq_max": 1,
            "n_ubatch": 512,
            "fit": 0,
            "type_k_first": 1,
            "type_v_last": 1,
            "n_k_first": -1,
            "n_v_last": -1,
            "vocab_only": 0,
            "use_mmap": 1,
            "repack_tensors": 0,
            "dry_run": 0,
            "flash_attn": 1,
        },
    ),
    context_params=Structure(
        IkContextParams,
        written=216,
        defaults={
            "seed": 0xFFFFFFFF,
            "n_ctx": 512,
            "n_batch": 2048,
            "n_ubatch": 512,
            "n_seq_max": 1,
            "n_threads": 4,
            "n_threads_batch": 4,
            "max_extra_alloc": 256,
            "rope_scaling_type": -1,
            "yarn_ext_factor": -1.0,
            "defrag_thold": -1.0,
            "type_k": 1,
            "type_v": 1,
            "type_reduce": 1,
            "n_k_first": -1,
            "n_v_last": -1,
            "logits_all": 0,
            "embeddings": 0,
            "offload_kqv": 1,
            "flash_attn": 1,
            "mla_attn": 3,
            "attn_max_batch": 0,
            "fused_moe_up_gate": 1,
            "grouped_expert_routing": 0,
            "fused_up_gate": 1,
            "fused_mmad": 1,
            "rope_cache": 0,
            "graph_reuse": 1,
            "min_experts": -1,
            "only_active_experts": 0,
            "mtp": 0,
            "mtp_op_type": 0,
        },
    ),
    batch=Structure(IkBatch, written=72),
)

VERIFIED: dict[tuple[str, str], Layout] = {
    (layout.distribution, layout.version): layout for layout in (_XLLAMACPP_2026_10_11549, _IK_0_1_5)
}
"""Layouts by distribution and version: the only wheels that are ever called."""

DISTRIBUTIONS: Mapping[str, str] = {MAINLINE: "xllamacpp", IK: "ik-llama-cpp-python"}
"""The wheel of each fork on the package index."""


def verified_versions(fork: str) -> list[str]:
    """Versions of a fork's wheel whose layout is known."""
    return sorted(version for distribution, version in VERIFIED if distribution == DISTRIBUTIONS[fork])


def install_command(fork: str) -> str:
    """What to type to get a verified wheel of a fork."""
    versions = verified_versions(fork)
    pin = f"=={versions[-1]}" if versions else ""
    return f"pip install '{DISTRIBUTIONS[fork]}{pin}'"


def find_layout(fork: str, version: str) -> Layout:
    """The layout of an installed wheel.

    Args:
        fork: Which fork.
        version: The installed version of its wheel.

    Raises:
        EmbeddedError: ``E-wheel-unverified``: calling it would be a guess.
    """
    distribution = DISTRIBUTIONS[fork]
    layout = VERIFIED.get((distribution, version))
    if layout is None:
        known = ", ".join(verified_versions(fork)) or "none"
        raise EmbeddedError(
            "E-wheel-unverified",
            f"{distribution} {version} is installed, but the C structures are verified for {known} only; "
            f"{install_command(fork)}",
        )
    return layout


_CANARY = 256
"""Bytes kept free behind a structure, to see a library write more than the layout has."""
_FILLS = (0xAA, 0x55)
"""Two patterns: a byte that the library sets to one of them still differs from the other."""


def check_layout(library: ctypes.CDLL, layout: Layout) -> None:
    """Compare a layout with what the library writes: extent of each structure and its defaults.

    Raises:
        EmbeddedError: ``E-wheel-layout``, naming structure, field, found and expected.
    """
    _check_structure(library, "llama_model_default_params", (), layout.model_params)
    _check_structure(library, "llama_context_default_params", (), layout.context_params)
    # One token, no embeddings, one sequence: some bytes are leaked once per process, which is cheaper than trusting
    # llama_batch_free with a structure that is still under suspicion.
    _check_structure(library, "llama_batch_init", (1, 0, 1), layout.batch)


def _check_structure(library: ctypes.CDLL, function: str, arguments: tuple[int, ...], structure: Structure) -> None:
    # Structures over 16 bytes are returned through a hidden first pointer (System V ABI), so the function can be
    # called as one that fills a buffer: a larger one than the layout says does no harm here.
    address = ctypes.cast(getattr(library, function), c_void_p).value
    prototype = ctypes.CFUNCTYPE(c_void_p, c_void_p, *([c_int32] * len(arguments)))
    fill_in = prototype(address or 0)
    size = ctypes.sizeof(structure.type) + _CANARY
    buffer = (ctypes.c_ubyte * size)()
    written = 0
    for fill in _FILLS:
        ctypes.memset(buffer, fill, size)
        fill_in(ctypes.addressof(buffer), *arguments)
        written = max(written, 1 + max((i for i in range(size) if buffer[i] != fill), default=-1))
    if written != structure.written:
        raise _broken(f"{function} writes {written} bytes, expected {structure.written}")
    values = structure.type.from_buffer(buffer)
    for name, expected in structure.defaults.items():
        found = getattr(values, name)
        if found != expected:
            raise _broken(f"{function}: {name} is {found}, its documented default is {expected}")


def _broken(what: str) -> EmbeddedError:
    return EmbeddedError(
        "E-wheel-layout",
        f"{what}: the library is not the one whose layout was verified; reinstall the wheel, "
        "unset library path overrides",
    )
