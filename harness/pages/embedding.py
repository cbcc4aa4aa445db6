"""Data and scripts inside a page, so that nothing in them can end their element or run.

Whatever text goes into the page's data goes through `harmless`: journals hold what engines and forks wrote. Scripts are
allowed by their digest alone, so that no other one would run even if markup came alive.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import zlib
from typing import Any

from harness.reporting.clean import clean

_IN_SCRIPT = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def harmless(value: Any) -> Any:
    """The same JSON value without control characters, escapes and numbers that JSON does not have."""
    match value:
        case str():
            return clean(value)
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {clean(name): harmless(entry) for name, entry in value.items()}
        case list() | tuple():
            return [harmless(entry) for entry in value]
        case _:
            return value


def inline_json(value: Any) -> str:
    """A JSON value as the text of a ``script`` element: no character in it is markup."""
    return json.dumps(harmless(value), allow_nan=False, separators=(",", ":")).translate(_IN_SCRIPT)


def script_source(text: str) -> str:
    """What a content security policy has to say so that exactly this script may run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def packed(text: str) -> str:
    """A text as base64 of its zlib stream, which browsers can unpack: a third of its size."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()
