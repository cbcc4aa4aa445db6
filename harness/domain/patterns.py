r"""Patterns of tensor names, as the engines search with them: ``std::regex_search`` with ECMAScript's rules.

Python's ``re`` agrees on what patterns of tensor names are made of. What only Python knows is refused, since the
engines would end with an exception: look-behind, inline flags, named and atomic groups, ``\A``, ``\Z``. Two things
stay different and are harmless for tensor names, which are one line of ASCII: ``$`` also matches before a last newline
in Python, and ``\w`` and ``\d`` know more than ASCII.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from harness.domain.errors import BadInput

_FOREIGN = re.compile(r"\\\\|(\(\?(?![:=!])|\\[AZ]|[*+?}]\+)")
"""What Python's patterns have beyond ECMAScript's; an escaped backslash is stepped over."""


@lru_cache(maxsize=4096)
def compiled_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern for ``search``.

    Raises:
        BadInput: ``E-bad-flag-value``, with the place in the pattern.
    """
    for found in _FOREIGN.finditer(pattern):
        if found[1]:
            said = f"ot: {found[1]!r} at position {found.start()} of '{pattern}' is unknown to the engines' std::regex"
            raise BadInput("E-bad-flag-value", said, hint="its rules are ECMAScript's: (?:...), (?=...), (?!...)")
    try:
        return re.compile(pattern)
    except re.error as wrong:
        said = f"ot: '{pattern}' is no regular expression: {wrong}"
        raise BadInput(
            "E-bad-flag-value", said, hint="brackets come in pairs; a literal one needs a backslash"
        ) from wrong


_GPU_BUFFER = re.compile(
    r"(?:CUDA|ROCm|HIP|MUSA|Vulkan|SYCL|Metal|MTL|OpenCL|CANN|WebGPU|Kompute)(?:(?P<number>\d{1,4})|_\w+|)$"
)


@dataclass(frozen=True, slots=True)
class GpuBuffer:
    """A buffer type of GPUs that an override names.

    Attributes:
        name: As the engines call it, e.g. ``CUDA1``.
        number: Of its device; ``None``: of the host, or of whatever device there is.
    """

    name: str
    number: int | None


def gpu_buffers(overrides: str) -> tuple[GpuBuffer, ...]:
    """The buffer types of GPUs that an ``ot`` flag sends tensors to, each once.

    Args:
        overrides: The flag in its one spelling.
    """
    names = dict.fromkeys(buffer for _, buffer in override_pairs(overrides))
    found = ((name, _GPU_BUFFER.match(name)) for name in names)
    return tuple(
        GpuBuffer(name, int(matched["number"]) if matched["number"] else None) for name, matched in found if matched
    )


def override_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Patterns and buffers of an ``ot`` flag in its one spelling.

    Args:
        text: ``pattern=BUFFER`` pieces joined by ``;``; empty or ``none`` for none.
    """
    if text in ("", "none"):
        return ()
    parts = (piece.rpartition("=") for piece in text.split(";"))
    return tuple((pattern, buffer) for pattern, _, buffer in parts)
