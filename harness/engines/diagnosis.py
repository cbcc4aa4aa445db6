"""Why an engine process ended as it did, from its exit and what it wrote. Rows are another matter."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from dataclasses import replace

from harness.domain.failure import Failure, FailureKind
from harness.engines.engine import Exit

_DETAIL_CHARS = 4000
_SIGNAL_BASE = 128
_EXIT_NO_LOADER = 127
_EXIT_TIMEOUT = 124
"""What ``timeout`` ends with, where a script of the user's starts the program under it."""
_MEMORY = re.compile(
    r"out of memory|insufficient memory|failed to allocate|unable to allocate|cannot allocate memory|std::bad_alloc"
    r"|failed to (?:create|fit) .*buffer|ErrorOutOfDeviceMemory|not enough (?:memory|space in the)"
    r"|GGML_ASSERT\(ctx->mem_buffer != NULL\)",
    re.IGNORECASE,
)
_MEMORY_WARNING = re.compile(r"pinned memory|falling back|retrying", re.IGNORECASE)
"""Lines of a shortage that the engine gets over."""
_ARGUMENT = re.compile(
    r"invalid (?:parameter for )?argument: *(?P<what>\S+)|unrecognized buffer type (?P<buffer>'[^']*')", re.IGNORECASE
)
_OVERRIDE = re.compile(r"invalid (?:tensor buffer type|buft) override(?: argument)?:? *(?P<what>.+)", re.IGNORECASE)
_FIT_GAVE_UP = re.compile(r".*already set by user, abort.*")
_NO_NUMBER = re.compile(r"std::(?:invalid_argument|out_of_range)[\s\S]{0,200}?what\(\): *(?P<what>sto[a-z]{1,3})\b")
"""ik_llama.cpp catches no number that it can't read; C++ names its function."""
_TOO_MANY_SHARES = re.compile(r"split_arg\.size\(\) <= llama_max_devices\(\)")
_NO_FILE = re.compile(r"failed to open.*no such file|no such file or directory.*gguf", re.IGNORECASE)
_MODEL = re.compile(r"failed to load model.*", re.IGNORECASE)
_MODEL_WHY = re.compile(
    r".*(?:gguf_init_from_\w+: (?!failed)|error loading model|unknown (?:model )?architecture|invalid magic"
    r"|tensor '.*' (?:has|data)).*"
    r"|.*\S.*(?=\n(?:llama_model_load_from_file_impl|llama_load_model_from_file): failed to load model)"
)
_CONTEXT = re.compile(r"failed to create context.*", re.IGNORECASE)
_CONTEXT_WHY = re.compile(r"llama_(?:init_from_model|new_context_with_model): .*")
_SILENT = ", and the build does not say why"
_DECODE = re.compile(r"failed to decode.*", re.IGNORECASE)
_LIBRARY = re.compile(r"error while loading shared libraries: (?P<what>[^:]+):.*")
_NO_GPU_CODE = re.compile(r"no kernel image is available")
_GPU = re.compile(r".*(?:CUDA|ROCm|HIP|Vulkan|SYCL) error.*", re.IGNORECASE)
_ASSERT = re.compile(r".*(?:GGML_ASSERT|GGML_ABORT|terminate called|what\(\):|[Ff]atal error).*")
_COMBINATION = re.compile(r"[^=\n]*is not a supported combination.*")
_STOPPED = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


def process_failure(ended: Exit) -> Failure | None:
    """What went wrong with the process, judged by its end; ``None`` where it exited with 0.

    Args:
        ended: How it ended and what it wrote.

    Returns:
        The failure with the end of standard error as detail.
    """
    if ended.timed_out:
        return _failure(FailureKind.TIMEOUT, "E-timeout", "killed at its deadline", ended)
    if ended.code == _EXIT_TIMEOUT:
        message = "ended with exit code 124, by which timeout says that it ended a program"
        return _failure(FailureKind.TIMEOUT, "E-timeout", message, ended)
    if ended.code == 0 and ended.signal is None:
        return None
    number = signal_of(ended)
    if number in _STOPPED:
        return _failure(FailureKind.INTERRUPTED, "E-interrupted", f"stopped by {signal_name(number)}", ended)
    found = (reader(ended) for reader in _READERS)
    return next((failure for failure in found if failure), None) or _unexplained(ended, number)


def keeps_silent(ended: Exit) -> bool:
    """Whether a process failed at loading without a reason: both forks drop their logs unless told otherwise.

    Args:
        ended: How it ended and what it wrote.
    """
    failure = process_failure(ended)
    return failure is not None and failure.message.endswith(_SILENT)


def tail(text: str) -> str:
    """The end of a text, bounded, for a person to read."""
    return text.strip()[-_DETAIL_CHARS:]


def signal_of(ended: Exit) -> int:
    """The signal that ended the process, also where a shell or wrapper reports it as 128 + number; 0: none did."""
    if ended.signal is not None:
        return ended.signal
    code = ended.code or 0
    return code - _SIGNAL_BASE if _SIGNAL_BASE < code <= _SIGNAL_BASE + signal.NSIG else 0


def signal_name(number: int) -> str:
    """E.g. ``SIGSEGV``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _failure(kind: FailureKind, slug: str, message: str, ended: Exit) -> Failure:
    return Failure(kind, message, slug, tail(ended.stderr))


def memory_failure(text: str, ended: Exit) -> Failure | None:
    """A failure where a text tells of a shortage of memory that the engine did not get over.

    Args:
        text: Logs or an error message.
        ended: The process that they are of.
    """
    for line in text.splitlines():
        if _MEMORY.search(line) and not _MEMORY_WARNING.search(line):
            return _failure(FailureKind.OUT_OF_MEMORY, "E-out-of-memory", f"out of memory: {line.strip()}", ended)
    return None


def _memory(ended: Exit) -> Failure | None:
    """ik_llama.cpp tells of it on standard output; that llama.cpp fitted nothing before is a mere warning."""
    found = memory_failure(ended.stderr, ended) or memory_failure(ended.stdout, ended)
    gave_up = _FIT_GAVE_UP.search(ended.stderr)
    if found and gave_up:
        return replace(found, message=f"{found.message}; nothing was fitted: {gave_up.group().strip()}")
    return found


def _argument(ended: Exit) -> Failure | None:
    """A refused buffer type is printed on standard output by llama.cpp, all else on standard error."""
    if _TOO_MANY_SHARES.search(ended.stderr):
        message = "the build refused the argument -ts: more shares than it can have devices"
        return _failure(FailureKind.REFUSED, "E-argument-refused", message, ended)
    if number := _NO_NUMBER.search(ended.stderr):
        message = f"the build refused an argument that it cannot read as a number ({number['what']})"
        return _failure(FailureKind.REFUSED, "E-argument-refused", message, ended)
    said = _OVERRIDE.search(ended.stderr) or _ARGUMENT.search(ended.stdout) or _ARGUMENT.search(ended.stderr)
    if not said:
        return None
    what = next(part for part in said.groups() if part)
    return _failure(FailureKind.REFUSED, "E-argument-refused", f"the build refused the argument {what}", ended)


def _model(ended: Exit) -> Failure | None:
    said = _MODEL.search(ended.stderr)
    if not said:
        return None
    if _NO_FILE.search(ended.stderr):
        return _failure(FailureKind.INPUT_MISSING, "E-model-missing", f"no such file: {said.group()}", ended)
    why = _MODEL_WHY.search(ended.stderr)
    reason = why.group().strip() if why else said.group() + _SILENT
    return _failure(FailureKind.REFUSED, "E-model-refused", reason, ended)


def _context(ended: Exit) -> Failure | None:
    """The last of the lines that name the step is the one that gave up."""
    said = _CONTEXT.search(ended.stderr)
    if not said:
        return None
    why = _CONTEXT_WHY.findall(ended.stderr)
    reason = f"failed to create context: {why[-1].strip()}" if why else said.group() + _SILENT
    return _failure(FailureKind.REFUSED, "E-context-refused", reason, ended)


def _library(ended: Exit) -> Failure | None:
    said = _LIBRARY.search(ended.stderr)
    if not said or ended.code != _EXIT_NO_LOADER:
        return None
    return _failure(FailureKind.INPUT_MISSING, "E-library-missing", f"shared library {said['what']} not found", ended)


def _no_gpu_code(ended: Exit) -> Failure | None:
    """The build is whole and the GPU too: they are not for each other."""
    if not _NO_GPU_CODE.search(ended.stderr):
        return None
    message = "the build has no code for this GPU (no kernel image is available): compile for its architecture"
    return _failure(FailureKind.REFUSED, "E-gpu-code-missing", message, ended)


def _by_line(pattern: re.Pattern[str], kind: FailureKind, slug: str) -> Callable[[Exit], Failure | None]:
    def reader(ended: Exit) -> Failure | None:
        said = pattern.search(ended.stderr)
        return _failure(kind, slug, said.group().strip(), ended) if said else None

    return reader


_READERS = (
    _memory,
    _argument,
    _by_line(_COMBINATION, FailureKind.REFUSED, "E-argument-refused"),
    _library,
    _model,
    _context,
    _no_gpu_code,
    _by_line(_DECODE, FailureKind.CRASH, "E-decode-failed"),
    _by_line(_GPU, FailureKind.CRASH, "E-gpu-error"),
)
"""In order: what is asked first decides. A shortage of memory is also a failed load, context or GPU call."""


def _unexplained(ended: Exit, number: int) -> Failure:
    if number == signal.SIGKILL:
        message = "killed by SIGKILL before its deadline (perhaps by the kernel's memory killer)"
        return _failure(FailureKind.CRASH, "E-killed", message, ended)
    why = _ASSERT.search(ended.stderr)
    said = f": {why.group().strip()}" if why else ""
    if number == signal.SIGILL:
        said += " (the build was made for instructions that this CPU lacks)"
    if number:
        return _failure(FailureKind.CRASH, "E-crash", f"crashed with {signal_name(number)}{said}", ended)
    return _failure(FailureKind.CRASH, "E-exit-code", f"ended with exit code {ended.code}{said}", ended)
