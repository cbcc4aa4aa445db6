"""Data and scripts inside a page, so that nothing in them can end their element or run.

Whatever text goes into the page's data goes through `harmless`: journals hold what engines and forks wrote. Scripts are
allowed by their digest alone, so that no other one would run even if markup came alive.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import zlib
from typing import Any

from harness.reporting.clean import clean

_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))
_LEVEL = 5
"""Of packing: higher ones take half as long again for one percent."""
_ESCAPED = re.compile(r"\\[bfu]")
"""How it writes control characters, but for line breaks and tabs."""
_IN_SCRIPT = str.maketrans({each: f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"})


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
    """A JSON value as the text of a ``script`` element: no character in it is markup.

    Nearly all values are harmless as they are, which shows in the text of the whole: only others are looked through.
    """
    try:
        text = _ENCODER.encode(value)
    except ValueError:  # a number that JSON does not have
        text = ""
    if not text or _ESCAPED.search(text) or clean(text) != text:
        text = _ENCODER.encode(harmless(value))
    return text.translate(_IN_SCRIPT)


def script_source(text: str) -> str:
    """What a content security policy has to say so that exactly this script may run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def packed(text: str) -> str:
    """A text as base64 of its zlib stream, which browsers can unpack: a third of its size."""
    return base64.b64encode(zlib.compress(text.encode(), _LEVEL)).decode()
