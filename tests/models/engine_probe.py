"""Ask a wheel about a model, in a process of its own: ``engine_probe.py FORK MODEL < request.json > answer.json``.

The request: ``texts`` to tokenize; ``prefill``: token ids whose logits are wanted (float32 rows saved to ``save``);
``prompts``: lists of token ids to continue greedily up to ``greedy`` tokens; ``routers``: how many experts a token goes
through, where it is wanted which. The answer: ``tokens``, ``logits_sd``, ``greedy``, ``pp`` and ``tg`` (tokens per
second, for orientation only), ``chosen``: for each layer, how many tokens chose each expert.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from harness.engines.embedded.flags import IK
from harness.engines.embedded.layouts import VERIFIED, Layout

CONTEXT = 1024


def load_library(layout: Layout) -> ctypes.CDLL:
    spec = importlib.util.find_spec(layout.module)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return ctypes.CDLL(str(Path(spec.submodule_search_locations[0]) / layout.library))


class Engine:
    """The few calls that both forks share."""

    def __init__(self, fork: str, model: str, *, routers: bool = False) -> None:
        layout = next(each for each in VERIFIED.values() if each.fork == fork)
        self.api = load_library(layout)
        self.quiet = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)
        self.api.llama_log_set(self.quiet, None)
        self.api.llama_backend_init()
        self._declare(layout)
        self.model = self.api.llama_model_load_from_file(model.encode(), self._model_params())
        assert self.model, "the model does not load"
        context = self.api.llama_context_default_params()
        context.n_ctx = CONTEXT
        context.n_batch = context.n_ubatch = CONTEXT
        context.n_threads = context.n_threads_batch = 1
        self.scores: dict[int, np.ndarray] = {}
        if routers:
            self.watching = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_bool, ctypes.c_void_p)(
                self._watch
            )
            context.cb_eval = ctypes.cast(self.watching, ctypes.c_void_p)
        if hasattr(context, "n_outputs_max"):
            context.n_outputs_max = CONTEXT
            context.n_outputs_max_per_seq = CONTEXT
        self.context = self.api.llama_init_from_model(self.model, context)
        assert self.context, "no context"
        self.vocabulary = self.api.llama_model_get_vocab(self.model)
        # ik's llama_tokenize takes the model where mainline's takes the vocabulary.
        self.tokenizing = self.model if layout.fork == IK else self.vocabulary
        self.size = self.api.llama_vocab_n_tokens(self.vocabulary)
        self.batch = self.api.llama_batch_init(CONTEXT, 0, 1)

    def _declare(self, layout: Layout) -> None:
        pointer = ctypes.c_void_p
        results: dict[str, Any] = {
            "llama_model_default_params": layout.model_params.type,
            "llama_context_default_params": layout.context_params.type,
            "llama_model_load_from_file": pointer,
            "llama_init_from_model": pointer,
            "llama_model_get_vocab": pointer,
            "llama_batch_init": layout.batch.type,
            "llama_get_logits_ith": ctypes.POINTER(ctypes.c_float),
            "ggml_get_name": ctypes.c_char_p,
            "ggml_get_data": pointer,
            "ggml_nelements": ctypes.c_int64,
        }
        for name, result in results.items():
            getattr(self.api, name).restype = result
        arguments: dict[str, list[Any]] = {
            "llama_model_load_from_file": [ctypes.c_char_p, layout.model_params.type],
            "llama_init_from_model": [pointer, layout.context_params.type],
            "llama_model_get_vocab": [pointer],
            "llama_vocab_n_tokens": [pointer],
            "llama_decode": [pointer, layout.batch.type],
            **{name: [pointer] for name in ("ggml_get_name", "ggml_get_data", "ggml_nelements")},
            "llama_get_logits_ith": [pointer, ctypes.c_int32],
            "llama_tokenize": [
                pointer, ctypes.c_char_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_bool, ctypes.c_bool,
            ],
        }  # fmt: skip
        for name, types in arguments.items():
            getattr(self.api, name).argtypes = types

    def _watch(self, tensor: int, asked: bool, _: int) -> bool:
        """Called for every node of the graph: keep the scores of routers."""
        word, _, layer = self.api.ggml_get_name(tensor).decode().partition("-")
        if word != "ffn_moe_logits":
            return not asked
        if not asked:
            count = self.api.ggml_nelements(tensor)
            values = ctypes.cast(self.api.ggml_get_data(tensor), ctypes.POINTER(ctypes.c_float))
            self.scores[int(layer)] = np.ctypeslib.as_array(values, (count,)).copy()
        return True

    def chosen(self, tokens: int, used: int) -> list[list[int]]:
        """How many tokens of the last prefill chose each expert, layer by layer."""
        found = []
        for layer in sorted(self.scores):
            scores = self.scores[layer].reshape(tokens, -1)
            best = np.argpartition(scores, -used, axis=1)[:, -used:]
            found.append(np.bincount(best.ravel(), minlength=scores.shape[1]).tolist())
        return found

    def _model_params(self) -> Any:
        params = self.api.llama_model_default_params()
        params.n_gpu_layers = 0
        return params

    def tokenize(self, text: str) -> list[int]:
        """Token ids, special tokens recognised."""
        raw = text.encode()
        room = (ctypes.c_int32 * (len(raw) + 8))()
        count = self.api.llama_tokenize(self.tokenizing, raw, len(raw), room, len(room), False, True)
        assert count >= 0, text
        return list(room[:count])

    def decode(self, tokens: list[int], start: int, *, every: bool = False) -> np.ndarray:
        """Logits after the last token, or after every one: shape (rows, vocabulary)."""
        batch = self.batch
        batch.n_tokens = len(tokens)
        for at, token in enumerate(tokens):
            batch.token[at], batch.pos[at], batch.n_seq_id[at] = token, start + at, 1
            batch.seq_id[at][0] = 0
            batch.logits[at] = every or at == len(tokens) - 1
        code = self.api.llama_decode(self.context, batch)
        assert code == 0, code
        wanted = range(len(tokens)) if every else [len(tokens) - 1]
        rows = [np.ctypeslib.as_array(self.api.llama_get_logits_ith(self.context, at), (self.size,)) for at in wanted]
        return np.stack(rows).copy()

    def clear(self) -> None:
        """Forget all tokens."""
        if hasattr(self.api, "llama_kv_cache_clear"):
            self.api.llama_kv_cache_clear.argtypes = [ctypes.c_void_p]
            self.api.llama_kv_cache_clear(self.context)
            return
        self.api.llama_get_memory.restype = ctypes.c_void_p
        self.api.llama_get_memory.argtypes = [ctypes.c_void_p]
        self.api.llama_memory_clear.argtypes = [ctypes.c_void_p, ctypes.c_bool]
        self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)


def answer(engine: Engine, request: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {"tokens": [engine.tokenize(text) for text in request.get("texts", [])]}
    if prefill := request.get("prefill"):
        began = time.perf_counter()
        logits = engine.decode(prefill, 0, every=True)
        result["pp"] = len(prefill) / (time.perf_counter() - began)
        result["logits_sd"] = float(logits.std(axis=1).mean())
        if request.get("routers"):
            result["chosen"] = engine.chosen(len(prefill), request["routers"])
        if request.get("save"):
            np.save(request["save"], logits)
        engine.clear()
    result["greedy"] = []
    for prompt in request.get("prompts", []):
        token = int(engine.decode(prompt, 0)[0].argmax())
        text = [token]
        began = time.perf_counter()
        while len(text) < request["greedy"]:
            token = int(engine.decode([token], len(prompt) + len(text) - 1)[0].argmax())
            text.append(token)
        result["tg"] = len(text) / (time.perf_counter() - began)
        result["greedy"].append(text)
        engine.clear()
    return result


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(json.dumps(answer(Engine(sys.argv[1], sys.argv[2], routers=bool(asked.get("routers"))), asked)))  # noqa: T201
