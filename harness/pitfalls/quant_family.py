"""Families of tensor types: traps are about families, files are made of types."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Family: TypeAlias = Literal["k", "iq", "ik", "legacy", "repacked", "float", "other"]

_FAMILIES: tuple[tuple[Family, re.Pattern[str]], ...] = (
    ("repacked", re.compile(r".*_R(4|8|16)$")),
    ("k", re.compile(r"Q[2-6]_K(_[SMLX]+)?$")),
    ("ik", re.compile(r"IQ\d_(K|KS|KSS|KL|KT)$")),
    ("iq", re.compile(r"IQ\d_(XXS|XS|S|M|NL)$")),
    ("legacy", re.compile(r"Q[4-8]_[01]$|Q6_0$")),
    ("float", re.compile(r"B?F(16|32|64)$")),
)
FAMILIES: tuple[str, ...] = (*(name for name, _ in _FAMILIES), "other")


def family_of(quant: str) -> Family:
    """The family of a tensor type or of a mixture: ``k`` of ``Q4_K`` and ``Q4_K_M``, ``iq`` of ``IQ4_XS``."""
    return next((name for name, pattern in _FAMILIES if pattern.match(quant.upper())), "other")
