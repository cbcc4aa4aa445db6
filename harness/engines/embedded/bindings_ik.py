"""ik_llama.cpp, as carried by the ik-llama-cpp-python wheel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from ctypes import c_bool, c_int32, c_void_p
from typing import Any

from . import flags as flag
from .bindings import ONLY_SEQUENCE, Bindings
from .flags import Flags

_DROP_MMAP = ("rtr", "mqkv", "muge")
"""Flags that rewrite tensors while loading, which a read-only map does not allow."""


class IkApi(Bindings):
    """ik's own functions and parameters."""

    def clear(self, context: int, *, data: bool) -> None:  # noqa: ARG002 - this fork has one way to clear
        """Forget all tokens of a context."""
        self._lib.llama_kv_cache_clear(context)

    def remove_cell(self, context: int, position: int) -> bool:
        """Forget the token at a position."""
        return bool(self._lib.llama_kv_cache_seq_rm(context, ONLY_SEQUENCE, position, position + 1))

    def move_cell(self, context: int, position: int) -> bool:
        """Give the token at a position the next one."""
        self._lib.llama_kv_cache_seq_add(context, ONLY_SEQUENCE, position, position + 1, 1)
        return True

    def row_fields(self, flags: Flags) -> dict[str, object]:
        """Fields of llama-bench's row that say how the model was run."""
        least, threshold = flag.parse_expert_reduction(flag.text(flags, "ser"))
        return {
            "cuda": False,
            "vulkan": False,
            "metal": False,
            "sycl": False,
            "rpc": "0",
            "gpu_blas": False,
            "blas": False,
            "split_mode": "layer",
            "main_gpu": 0,
            "no_kv_offload": bool(flags["nkvo"]),
            "flash_attn": bool(flags["fa"]),
            "mla_attn": flag.number(flags, "mla"),
            "attn_max_batch": flag.number(flags, "amb"),
            "ser": f"{least},{threshold:g}",
            "reuse": bool(flags["gr"]),
            "tensor_split": "0.00",
            "use_mmap": bool(flags["mmap"]) and not self.implied(flags),
            "embeddings": False,
            "repack": bool(flags["rtr"]),
            "mqkv": bool(flags["mqkv"]),
            "muge": bool(flags["muge"]),
            "defer_experts": False,
            "fused_moe": bool(flags["fmoe"]),
            "grouped_er": bool(flags["ger"]),
            "no_fused_up_gate": bool(flags["no_fug"]),
            "use_thp": bool(flags["thp"]),
            "no_ooae": bool(flags["no_ooae"]),
            "rcache": bool(flags["rcache"]),
            "sas": False,
            "max_gpu": 0,
            "cuda_params": "",
            "override_tensor": flag.text(flags, "ot").replace(";", ","),
        }

    def implied(self, flags: Flags) -> dict[str, str]:
        """``mmap`` where a flag that rewrites tensors switches it off; llama-bench does that too, silently."""
        causes = [name for name in _DROP_MMAP if flags[name]]
        return {"mmap": f"0 because of {', '.join(causes)}"} if flags["mmap"] and causes else {}

    def _set_model_params(self, params: Any, flags: Flags) -> None:
        params.use_mmap = bool(flags["mmap"]) and not self.implied(flags)
        params.repack_tensors = bool(flags["rtr"])
        params.use_thp = bool(flags["thp"])
        params.merge_qkv = bool(flags["mqkv"])
        params.merge_up_gate_exps = bool(flags["muge"])
        params.mla = flag.number(flags, "mla")
        params.type_k = self._cache_type(flag.text(flags, "ctk"))
        params.type_v = self._cache_type(flag.text(flags, "ctv"))
        params.flash_attn = bool(flags["fa"])

    def _set_context_params(self, params: Any, flags: Flags) -> None:
        params.flash_attn = bool(flags["fa"])
        params.mla_attn = flag.number(flags, "mla")
        params.attn_max_batch = flag.number(flags, "amb")
        params.fused_moe_up_gate = bool(flags["fmoe"])
        params.grouped_expert_routing = bool(flags["ger"])
        params.rope_cache = bool(flags["rcache"])
        params.graph_reuse = bool(flags["gr"])
        params.fused_up_gate = not flags["no_fug"]
        params.only_active_experts = not flags["no_ooae"]
        params.min_experts, params.thresh_experts = flag.parse_expert_reduction(flag.text(flags, "ser"))

    def _tokenize_function(self) -> Callable[..., int]:
        # This fork's llama_tokenize takes a model; the function of the same shape as mainline's has its own name.
        function: Callable[..., int] = self._lib.llama_vocab_tokenize
        return function

    def _own_signatures(self, tokenize: tuple[Any, ...]) -> Mapping[str, tuple[Any, Iterable[Any]]]:
        return {
            "llama_kv_cache_clear": (None, (c_void_p,)),
            "llama_kv_cache_seq_rm": (c_bool, (c_void_p, c_int32, c_int32, c_int32)),
            "llama_kv_cache_seq_add": (None, (c_void_p, c_int32, c_int32, c_int32, c_int32)),
            "llama_vocab_tokenize": (c_int32, tokenize),
        }
