"""Ask a wheel for contexts, in a process of its own: ``buffer_probe.py FORK MODEL < contexts.json > sizes.json``.

Each context is fields of the library's own parameters. The answer, on the last line, has its KV cache in MiB as the
library prints it, summed over its buffers; ``null`` where the library makes no such context.
"""

from __future__ import annotations

import ctypes
import json
import re
import sys
from typing import Any

from engine_probe import load_library

from harness.engines.embedded.layouts import VERIFIED

_KV = re.compile(r"KV buffer size = +([\d.]+) MiB")


class Library:
    """The calls that both forks share."""

    def __init__(self, fork: str) -> None:
        layout = next(each for each in VERIFIED.values() if each.fork == fork)
        self.api = load_library(layout)
        self.said: list[str] = []
        self.logger = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(
            lambda _level, text, _data: self.said.append(text.decode(errors="replace"))
        )
        self.api.llama_log_set(self.logger, None)
        self.api.llama_backend_init()
        pointer = ctypes.c_void_p
        self.api.llama_model_default_params.restype = layout.model_params.type
        self.api.llama_context_default_params.restype = layout.context_params.type
        self.api.llama_model_load_from_file.restype = pointer
        self.api.llama_model_load_from_file.argtypes = [ctypes.c_char_p, layout.model_params.type]
        self.api.llama_init_from_model.restype = pointer
        self.api.llama_init_from_model.argtypes = [pointer, layout.context_params.type]
        self.api.llama_free.argtypes = [pointer]

    def model(self, path: str, mla: int) -> int:
        """Load a model; ik_llama.cpp prepares its tensors for a kind of latent attention."""
        params = self.api.llama_model_default_params()
        params.n_gpu_layers = 0
        if hasattr(params, "mla"):
            params.mla = mla
        model = self.api.llama_model_load_from_file(path.encode(), params)
        assert model, "".join(self.said)[-2000:]
        return int(model)

    def cache_mib(self, model: int, fields: dict[str, Any]) -> float | None:
        """Make a context, and read what was printed."""
        params = self.api.llama_context_default_params()
        params.n_threads = params.n_threads_batch = 1
        for name, value in fields.items():
            setattr(params, name, value)
        self.said.clear()
        context = self.api.llama_init_from_model(model, params)
        if not context:
            return None
        self.api.llama_free(context)
        return sum(map(float, _KV.findall("".join(self.said))))


if __name__ == "__main__":
    library, sizes = Library(sys.argv[1]), []
    for asked in json.load(sys.stdin):
        loaded = library.model(sys.argv[2], asked.get("mla_attn", 0))
        sizes.append(library.cache_mib(loaded, asked))
    print(json.dumps(sizes))  # noqa: T201
