"""Addresses that models and builds may be fetched from, and digests that they are held against."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from harness.domain.secrets import secret_in_address

DIGEST = re.compile(r"[0-9A-Fa-f]{64}")
"""SHA-256 in hexadecimal."""
LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost")


def address_fault(url: str) -> str:
    """What is wrong with an address; empty if nothing is. Plain ``http://`` is for servers on this machine alone."""
    return secret_in_address(url) or transfer_fault(url)


def transfer_fault(url: str) -> str:
    """As `address_fault`, of an address that stands in no report: a redirect's may be signed."""
    if not url.isascii() or any(letter.isspace() for letter in url):
        return "an address has no spaces and no letters beyond ASCII: write them as %XX"
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError as wrong:
        return str(wrong)
    if parts.username or parts.password:
        return "it has a name or password in it"
    if parts.scheme == "file":
        return "" if parts.path.startswith("/") and not parts.netloc else "expected file:///and/an/absolute/path"
    plain = parts.scheme == "http" and host in LOCAL_HOSTS
    return "" if host and (parts.scheme == "https" or plain) else "expected https://host/path or file:///path"
