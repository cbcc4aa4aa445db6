"""The C API as Python objects: what both forks share, and the protocol that loop and outputs are written against."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from ctypes import c_bool, c_char_p, c_int32, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Protocol

from . import flags as flag
from .channel import EngineLog
from .errors import EXIT_DECODE, EXIT_LOAD, EmbeddedError
from .flags import Flags
from .layouts import Layout, TensorOverride

_LOG_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int, c_char_p, c_void_p)
_VOCAB_NONE = 0
_DESCRIPTION_BYTES = 256
ONLY_SEQUENCE = 0
"""All tokens of a context are of one sequence."""
_CPU_FEATURES = (
    "sse3",
    "ssse3",
    "avx",
    "avx_vnni",
    "avx2",
    "avx512",
    "avx512_vbmi",
    "avx512_vnni",
    "avx512_bf16",
    "amx_int8",
    "fma",
    "f16c",
    "bmi2",
    "neon",
    "sve",
    "dotprod",
    "matmul_int8",
)


class Engine(Protocol):
    """One fork's library with a model: all that the measuring loop and the outputs need to know of it."""

    n_vocab: int

    @property
    def decode(self) -> Callable[[int, Any], int]:
        """``llama_decode(context, batch)``: the bare C function, 0 on success."""
        ...

    @property
    def synchronize(self) -> Callable[[int], None]:
        """``llama_synchronize(context)``: the bare C function."""
        ...

    def clear(self, context: int, *, data: bool) -> None:
        """Forget all tokens of a context; ``data`` also zeroes the cells where the fork can."""
        ...

    def batch(self, tokens: Sequence[int], first: int, outputs: int = 1) -> Any:
        """A batch of tokens at consecutive positions from ``first``, logits kept of the last ``outputs``."""
        ...

    def first_token(self) -> int | None:
        """The token a sequence begins with, or ``None`` where the vocabulary adds none."""
        ...

    def decode_failed(self, status: int, what: str) -> EmbeddedError:
        """The error of a ``decode`` that did not return 0."""
        ...


class Bindings(ABC):
    """What both forks share: same names, same signatures.

    Attributes:
        layout: The wheel's verified structures.
        n_vocab: Number of tokens; 0 until a model is loaded.
    """

    def __init__(self, library: ctypes.CDLL, layout: Layout, log: EngineLog) -> None:
        self.layout = layout
        self.n_vocab = 0
        self._lib = library
        self._log = log
        # The library keeps bare pointers: what they point to must live as long as the process.
        self._log_callback = _LOG_CALLBACK(log)
        self._overrides: ctypes.Array[TensorOverride] | None = None
        self._model = 0
        self._vocab = 0
        self._declare()
        library.llama_log_set(self._log_callback, None)
        library.llama_backend_init()

    def close(self) -> None:
        """Take the log callback back: the library may log from its destructors, after Python is gone."""
        self._lib.llama_log_set(_LOG_CALLBACK(), None)

    # --- identity

    def build(self) -> tuple[str, int]:
        """Commit and build number as far as the library or the wheel's documentation tells."""
        return self.layout.commit or "unknown", 0

    def version(self) -> str:
        """The version that the library itself reports; empty where it has none."""
        return ""

    def system_info(self) -> str:
        """The library's own line on the instruction sets it was compiled for."""
        return _decoded(self._lib.llama_print_system_info())

    def cpu_features(self) -> dict[str, bool]:
        """The same by name, for the features that the fork knows of."""
        found: dict[str, bool] = {}
        for name in _CPU_FEATURES:
            has = getattr(self._lib, f"ggml_cpu_has_{name}", None)
            if has is not None:
                found[name] = bool(has())
        return found

    # --- model and context

    def load(self, path: Path, flags: Flags) -> None:
        """Load the model.

        Raises:
            EmbeddedError: ``E-model-missing``, ``E-flag-value`` (an unknown buffer type) or ``E-load``.
        """
        if not path.is_file():
            raise EmbeddedError("E-model-missing", f"model: {path} is not a file", exit_code=EXIT_LOAD)
        params = self._lib.llama_model_default_params()
        self._overrides = self._make_overrides(flag.text(flags, "ot"))
        if self._overrides is not None:
            params.tensor_buft_overrides = ctypes.cast(self._overrides, ctypes.POINTER(TensorOverride))
        params.n_gpu_layers = flag.number(flags, "ngl")
        self._set_model_params(params, flags)
        self._model = self._lib.llama_model_load_from_file(str(path).encode(), params) or 0
        if not self._model:
            raise self._load_failed("E-load", f"the library could not load {path} with {dict(flags)}")
        self._vocab = self._lib.llama_model_get_vocab(self._model)
        self.n_vocab = int(self._lib.llama_vocab_n_tokens(self._vocab))
        if self.n_vocab <= 0:
            raise self._load_failed("E-tokenize", f"{path} has no vocabulary: there are no tokens to run")

    def model_facts(self) -> dict[str, object]:
        """Description, parameters, bytes and vocabulary size of the loaded model, as the library says."""
        text = ctypes.create_string_buffer(_DESCRIPTION_BYTES)
        self._lib.llama_model_desc(self._model, text, _DESCRIPTION_BYTES)
        return {
            "model_desc": _decoded(text.value),
            "n_params": int(self._lib.llama_model_n_params(self._model)),
            "model_size": int(self._lib.llama_model_size(self._model)),
            "n_vocab": self.n_vocab,
        }

    def open_context(self, cells: int, threads: int, flags: Flags) -> int:
        """Make the context; returns its address.

        Only once for a model: ik rearranges merged expert weights (flag ``muge``) each time a context is made, and the
        second time scrambles them.

        Args:
            cells: Tokens it has room for.
            threads: For prompts and for generation alike.
            flags: Every flag of the fork.

        Raises:
            EmbeddedError: ``E-context``, with what the library logged.
        """
        params = self._lib.llama_context_default_params()
        params.n_ctx = cells
        params.n_batch = flag.number(flags, "b")
        params.n_ubatch = flag.number(flags, "ub")
        params.n_threads = threads
        params.n_threads_batch = threads
        params.type_k = self._cache_type(flag.text(flags, "ctk"))
        params.type_v = self._cache_type(flag.text(flags, "ctv"))
        params.offload_kqv = not flag.number(flags, "nkvo")
        self._set_context_params(params, flags)
        context = self._lib.llama_init_from_model(self._model, params) or 0
        if not context:
            raise self._load_failed("E-context", f"the library made no context of {cells} cells with {dict(flags)}")
        return int(context)

    def context_facts(self, context: int) -> dict[str, int]:
        """Cells, batch sizes and threads that the library says a context has."""
        return {
            name: int(getattr(self._lib, f"llama_{name}")(context))
            for name in ("n_ctx", "n_batch", "n_ubatch", "n_threads", "n_threads_batch")
        }

    def trained_cells(self) -> int:
        """Context length that the model file declares; 0 where it declares none."""
        return int(self._lib.llama_n_ctx_train(self._model))

    # --- tokens

    def first_token(self) -> int | None:
        """The token a sequence begins with, or ``None`` where the vocabulary adds none."""
        if not self._lib.llama_vocab_get_add_bos(self._vocab):
            return None
        token = int(self._lib.llama_vocab_bos(self._vocab))
        return token if 0 <= token < self.n_vocab else None

    def tokenize(self, text: str, *, special: bool = True) -> list[int]:
        """Token ids of a text; special names in it are plain text.

        Args:
            text: The text; an empty one may have no token.
            special: Whether the special tokens that the vocabulary adds are among them.

        Raises:
            EmbeddedError: ``E-tokenize``: the model has no tokenizer, or the text gives no token.
        """
        if self._lib.llama_vocab_type(self._vocab) == _VOCAB_NONE:
            raise self._load_failed("E-tokenize", "the model has no tokenizer: prompts cannot be evaluated")
        data = text.encode()
        # No tokenizer makes more tokens than bytes, but for the few special ones around them.
        room = len(data) + 8
        tokens = (c_int32 * room)()
        count = int(self._tokenize_function()(self._vocab, data, len(data), tokens, room, special, False))
        if count < (1 if text else 0):
            raise self._load_failed("E-tokenize", f"the tokenizer returned {count} for {text[:60]!r}")
        return list(tokens[:count])

    def detokenize(self, tokens: Sequence[int]) -> str:
        """Text of token ids, special tokens written out; bytes that are not UTF-8 become the replacement character."""
        ids = (c_int32 * len(tokens))(*tokens)
        room = 64 * len(tokens) + 64
        for _ in range(2):
            text = ctypes.create_string_buffer(room)
            count = int(self._lib.llama_detokenize(self._vocab, ids, len(tokens), text, room, False, True))
            if count >= 0:
                return text.raw[:count].decode("utf-8", errors="replace")
            room = -count
        return ""

    # --- running

    @property
    def decode(self) -> Callable[[int, Any], int]:
        """``llama_decode(context, batch)``: the bare C function, 0 on success."""
        function: Callable[[int, Any], int] = self._lib.llama_decode
        return function

    @property
    def synchronize(self) -> Callable[[int], None]:
        """``llama_synchronize(context)``: the bare C function."""
        function: Callable[[int], None] = self._lib.llama_synchronize
        return function

    def batch(self, tokens: Sequence[int], first: int, outputs: int = 1) -> Any:
        """A batch of tokens at consecutive positions from ``first``, logits kept of the last ``outputs``."""
        count = len(tokens)
        sequence = ctypes.pointer(c_int32(ONLY_SEQUENCE))
        # ctypes structures keep alive what is assigned to their pointer fields.
        return self.layout.batch.type(
            count,
            (c_int32 * count)(*tokens),
            None,
            (c_int32 * count)(*range(first, first + count)),
            (c_int32 * count)(*([1] * count)),
            (ctypes.POINTER(c_int32) * count)(*([sequence] * count)),
            (ctypes.c_int8 * count)(*([0] * (count - outputs) + [1] * outputs)),
        )

    def logits_address(self, context: int, index: int) -> int:
        """Address of the logits of the batch's token ``index`` (``n_vocab`` floats of 4 bytes).

        Raises:
            EmbeddedError: ``E-decode``: the library kept none.
        """
        address = self._lib.llama_get_logits_ith(context, index)
        if not address:
            raise EmbeddedError("E-decode", f"no logits were kept at token {index}", exit_code=EXIT_DECODE)
        return int(address)

    def decode_failed(self, status: int, what: str) -> EmbeddedError:
        """The error of a ``decode`` that did not return 0."""
        return EmbeddedError(
            "E-decode", self._with_log(f"llama_decode returned {status}: {what}"), exit_code=EXIT_DECODE
        )

    def set_threads(self, context: int, threads: int) -> None:
        """Go on with another number of threads, for prompts and for generation alike."""
        self._lib.llama_set_n_threads(context, threads, threads)

    # --- what the forks do differently

    @abstractmethod
    def clear(self, context: int, *, data: bool) -> None:
        """Forget all tokens of a context; ``data`` also zeroes the cells where the fork can."""

    @abstractmethod
    def remove_cell(self, context: int, position: int) -> bool:
        """Forget the token at a position; false where the fork's cache of this model cannot."""

    @abstractmethod
    def move_cell(self, context: int, position: int) -> bool:
        """Give the token at a position the next one; false where the fork's cache of this model cannot."""

    @abstractmethod
    def row_fields(self, flags: Flags) -> dict[str, object]:
        """Fields of the fork's llama-bench row that say how the model was run."""

    @abstractmethod
    def implied(self, flags: Flags) -> dict[str, str]:
        """Flags that another flag overrides, with the reason."""

    @abstractmethod
    def _set_model_params(self, params: Any, flags: Flags) -> None:
        """Set what only this fork's model parameters have."""

    @abstractmethod
    def _set_context_params(self, params: Any, flags: Flags) -> None:
        """Set what only this fork's context parameters have."""

    @abstractmethod
    def _tokenize_function(self) -> Callable[..., int]:
        """The tokenizer function that takes a vocabulary."""

    # --- helpers

    def _declare(self) -> None:
        lib, layout = self._lib, self.layout
        model_params, context_params = layout.model_params.type, layout.context_params.type
        tokens = ctypes.POINTER(c_int32)
        tokenize = (c_void_p, c_char_p, c_int32, tokens, c_int32, c_bool, c_bool)
        signatures: Mapping[str, tuple[Any, Iterable[Any]]] = {
            "llama_log_set": (None, (_LOG_CALLBACK, c_void_p)),
            "llama_backend_init": (None, ()),
            "llama_print_system_info": (c_char_p, ()),
            "llama_model_default_params": (model_params, ()),
            "llama_context_default_params": (context_params, ()),
            "llama_model_load_from_file": (c_void_p, (c_char_p, model_params)),
            "llama_init_from_model": (c_void_p, (c_void_p, context_params)),
            "llama_model_get_vocab": (c_void_p, (c_void_p,)),
            "llama_model_desc": (c_int32, (c_void_p, c_char_p, ctypes.c_size_t)),
            "llama_model_n_params": (c_uint64, (c_void_p,)),
            "llama_model_size": (c_uint64, (c_void_p,)),
            "llama_n_ctx_train": (c_int32, (c_void_p,)),
            "llama_vocab_n_tokens": (c_int32, (c_void_p,)),
            "llama_vocab_type": (c_int32, (c_void_p,)),
            "llama_vocab_get_add_bos": (c_bool, (c_void_p,)),
            "llama_vocab_bos": (c_int32, (c_void_p,)),
            "llama_n_ctx": (c_uint32, (c_void_p,)),
            "llama_n_batch": (c_uint32, (c_void_p,)),
            "llama_n_ubatch": (c_uint32, (c_void_p,)),
            "llama_n_threads": (c_int32, (c_void_p,)),
            "llama_n_threads_batch": (c_int32, (c_void_p,)),
            "llama_decode": (c_int32, (c_void_p, layout.batch.type)),
            "llama_synchronize": (None, (c_void_p,)),
            "llama_set_n_threads": (None, (c_void_p, c_int32, c_int32)),
            "llama_get_logits_ith": (c_void_p, (c_void_p, c_int32)),
            "llama_tokenize": (c_int32, tokenize),
            "llama_detokenize": (c_int32, (c_void_p, tokens, c_int32, c_char_p, c_int32, c_bool, c_bool)),
            "ggml_type_name": (c_char_p, (c_int32,)),
            "ggml_backend_cpu_buffer_type": (c_void_p, ()),
            "ggml_backend_buft_name": (c_char_p, (c_void_p,)),
            **self._own_signatures(tokenize),
        }
        for name, (result, arguments) in signatures.items():
            function = getattr(lib, name)
            function.restype, function.argtypes = result, list(arguments)

    @abstractmethod
    def _own_signatures(self, tokenize: tuple[Any, ...]) -> Mapping[str, tuple[Any, Iterable[Any]]]:
        """Result and argument types of the functions that only this fork has."""

    def _make_overrides(self, text: str) -> ctypes.Array[TensorOverride] | None:
        pairs = flag.parse_overrides(text)
        if not pairs:
            return None
        buffer_type = self._lib.ggml_backend_cpu_buffer_type()
        known = _decoded(self._lib.ggml_backend_buft_name(buffer_type))
        for _, name in pairs:
            if name != known:
                raise EmbeddedError("E-flag-value", f"flags.ot: no buffer type {name!r}; this wheel has {known}")
        array = (TensorOverride * (len(pairs) + 1))()
        for entry, (pattern, _) in zip(array, pairs, strict=False):
            entry.pattern, entry.buffer_type = pattern.encode(), buffer_type
        return array

    def _cache_type(self, name: str) -> int:
        number = flag.KV_TYPES[self.layout.fork][name]
        found = self.type_name(number)
        if found != name:
            raise EmbeddedError("E-wheel-layout", f"type {number} is {found!r} in the library, expected {name!r}")
        return number

    def type_name(self, number: int) -> str:
        """Name of a ``ggml_type``, as the library says."""
        return _decoded(self._lib.ggml_type_name(number))

    def _load_failed(self, slug: str, message: str) -> EmbeddedError:
        return EmbeddedError(slug, self._with_log(message), exit_code=EXIT_LOAD)

    def _with_log(self, message: str) -> str:
        errors = self._log.last_errors()
        return f"{message}; it logged: {errors}" if errors else message


def _decoded(text: bytes | None) -> str:
    return (text or b"").decode("utf-8", errors="replace")
