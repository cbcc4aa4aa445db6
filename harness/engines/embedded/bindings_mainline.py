"""Mainline llama.cpp, as carried by the xllamacpp wheel."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from ctypes import c_bool, c_char_p, c_int32, c_void_p
from typing import Any

from . import flags as flag
from .bindings import ONLY_SEQUENCE, Bindings
from .flags import Flags

_LOAD_NONE, _LOAD_MMAP = 0, 1
_BUILD_NUMBER = "_Z18llama_build_numberv"
"""C++ name of ``llama_build_number()``."""


class MainlineApi(Bindings):
    """Mainline's own functions and parameters."""

    def build(self) -> tuple[str, int]:
        """Commit and build number of the library; xllamacpp compiles with the commit ``unknown``."""
        commit = c_char_p.in_dll(self._lib, "LLAMA_COMMIT").value or b"unknown"
        return commit.decode("utf-8", errors="replace"), int(getattr(self._lib, _BUILD_NUMBER)())

    def version(self) -> str:
        """What ``llama_version`` says."""
        return (self._lib.llama_version() or b"").decode("utf-8", errors="replace")

    def clear(self, context: int, *, data: bool) -> None:
        """Forget all tokens of a context; ``data`` also zeroes the cells."""
        self._lib.llama_memory_clear(self._lib.llama_get_memory(context), data)

    def remove_cell(self, context: int, position: int) -> bool:
        """Forget the token at a position."""
        memory = self._lib.llama_get_memory(context)
        return bool(self._lib.llama_memory_seq_rm(memory, ONLY_SEQUENCE, position, position + 1))

    def move_cell(self, context: int, position: int) -> bool:
        """Give the token at a position the next one."""
        memory = self._lib.llama_get_memory(context)
        if not self._lib.llama_memory_can_shift(memory):
            return False
        self._lib.llama_memory_seq_add(memory, ONLY_SEQUENCE, position, position + 1, 1)
        return True

    def row_fields(self, flags: Flags) -> dict[str, object]:
        """Fields of llama-bench's row that say how the model was run."""
        load_mode = self._lib.llama_load_mode_name(_load_mode(flags))
        return {
            "backends": "CPU",
            "cpu_mask": "0x0",
            "cpu_strict": False,
            "poll": 50,
            "n_cpu_moe": 0,
            "split_mode": "layer",
            "main_gpu": 0,
            "no_kv_offload": bool(flags["nkvo"]),
            "flash_attn": flag.number(flags, "fa"),
            "devices": "auto",
            "tensor_split": "0.00",
            "tensor_buft_overrides": flag.text(flags, "ot") or "none",
            "load_mode": (load_mode or b"").decode("utf-8", errors="replace"),
            "lazy_mode": flag.text(flags, "lzm"),
            "embeddings": False,
            "no_op_offload": flag.number(flags, "nopo"),
            "no_host": bool(flags["no_host"]),
            "repack": bool(flags["repack"]),
            "fit_target": 0,
            "fit_min_ctx": 0,
        }

    def implied(self, flags: Flags) -> dict[str, str]:  # noqa: ARG002 - the other fork needs them
        """Mainline takes every flag as given."""
        return {}

    def _set_model_params(self, params: Any, flags: Flags) -> None:
        params.load_mode = _load_mode(flags)
        params.lazy_mode = flag.LAZY_MODES[flag.text(flags, "lzm")]
        params.use_extra_bufts = bool(flags["repack"])
        params.no_host = bool(flags["no_host"])

    def _set_context_params(self, params: Any, flags: Flags) -> None:
        params.flash_attn_type = flag.number(flags, "fa")
        params.op_offload = not flags["nopo"]

    def _tokenize_function(self) -> Callable[..., int]:
        function: Callable[..., int] = self._lib.llama_tokenize
        return function

    def _own_signatures(self, tokenize: tuple[Any, ...]) -> Mapping[str, tuple[Any, Iterable[Any]]]:  # noqa: ARG002
        return {
            "llama_version": (c_char_p, ()),
            _BUILD_NUMBER: (ctypes.c_int, ()),
            "llama_get_memory": (c_void_p, (c_void_p,)),
            "llama_memory_clear": (None, (c_void_p, c_bool)),
            "llama_memory_can_shift": (c_bool, (c_void_p,)),
            "llama_memory_seq_rm": (c_bool, (c_void_p, c_int32, c_int32, c_int32)),
            "llama_memory_seq_add": (None, (c_void_p, c_int32, c_int32, c_int32, c_int32)),
            "llama_load_mode_name": (c_char_p, (c_int32,)),
        }


def _load_mode(flags: Flags) -> int:
    return _LOAD_MMAP if flags["mmap"] else _LOAD_NONE
