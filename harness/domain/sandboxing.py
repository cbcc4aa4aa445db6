"""Which engines run in a sandbox."""

from __future__ import annotations

from enum import StrEnum


class Sandboxing(StrEnum):
    """What a run was asked for."""

    OFF = "off"
    """None: what is declared untrusted, too."""
    AUTO = "auto"
    """Builds that are declared untrusted, and what is compared with them."""
    REQUIRE = "require"
    """All."""
