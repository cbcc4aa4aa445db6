"""What looks like a secret by its name: it is refused where it would stand in every journal and report."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

_SECRET = re.compile(
    r"token(?!s|i[sz])|secret|passw|credential|signature|api_?key|private_?key|access_?key|(?:^|[_-])(?:auth|sig)(?:$|[_-])",
    re.IGNORECASE,
)
_WEB = ("http", "https")
_NAME_OR_PASSWORD = "a name or password in an address would stand in every report"  # noqa: S105 - the words alone


def is_secret_name(name: str) -> bool:
    """Whether a variable or a part of an address with this name holds a secret; numbers of tokens are none."""
    return bool(_SECRET.search(name))


def secret_in_address(address: str) -> str:
    """What secret an address holds, in words without it; empty if none. Of ``ssh`` the user's name is none.

    Args:
        address: Of a file or a repository; what is no address holds none.
    """
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    if parts.password or (parts.username and parts.scheme in _WEB):
        return _NAME_OR_PASSWORD
    named = next((name for name, _ in parse_qsl(parts.query, keep_blank_values=True) if is_secret_name(name)), "")
    return f"the '{named[:40]}' of an address would stand in every report" if named else ""
