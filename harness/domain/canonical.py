"""Canonical JSON and the hashes made of it: one way to turn a value into an identity."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import fields
from functools import lru_cache
from typing import Any

_NOT_ID = re.compile(r"[^a-z0-9._=+-]+")
_HASH_CHARS = 16


def canonical_json(value: Any) -> str:
    """JSON that is equal exactly when the values are: sorted keys, no spaces, no NaN.

    Raises:
        ValueError: If the value holds NaN or an infinity.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def fields_of(value: Any) -> dict[str, Any]:
    """A dataclass's fields by name, their values as they are: ``asdict`` copies whatever lies below them, too."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def digest(value: Any) -> str:
    """A short stable hash (16 hexadecimal digits, 64 bits) of a JSON value."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:_HASH_CHARS]


@lru_cache(maxsize=1 << 14)
def id_part(text: str) -> str:
    """Fold a text into the alphabet of case ids, ``[a-z0-9._=+-]``; other runs become one dash."""
    return _NOT_ID.sub("-", text.lower()).strip("-") or "-"
