"""Make text of engines harmless: no control characters that break XML, no escapes that drive a terminal."""

from __future__ import annotations

import re

_ESCAPE_SEQUENCE = re.compile(
    r"\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # operating system command: window titles, links
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # control sequence: colours, cursor
    r"|\x1b[PX^_][^\x1b\n]*\x1b\\"  # strings to the device
    r"|\x1b[ -/]*[0-~]"  # two characters
)
_FORBIDDEN = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"  # not allowed in XML 1.0, or C1 control
    "|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # turns the direction of what is beside it
)


def clean(text: str) -> str:
    """Remove terminal escapes, control characters and lone surrogates; keep tabs and line breaks."""
    if text.isascii() and text.isprintable():  # nearly all texts, and the patterns would look at every character
        return text
    return _FORBIDDEN.sub("", _ESCAPE_SEQUENCE.sub("", text))


def one_line(text: str) -> str:
    """Clean a text and fold it into a single line."""
    return " ".join(clean(text).split())


def capped(text: str, max_bytes: int) -> str:
    """Clean a text and keep its beginning and its end, where errors are, within a number of UTF-8 bytes."""
    cleaned = clean(text)
    raw = cleaned.encode()
    if len(raw) <= max_bytes:
        return cleaned
    note = f"\n[... {len(raw) - max_bytes} bytes left out, the journal has them ...]\n"
    head = max_bytes // 4
    tail = max_bytes - head - len(note)
    return raw[:head].decode(errors="ignore") + note + raw[len(raw) - tail :].decode(errors="ignore")
