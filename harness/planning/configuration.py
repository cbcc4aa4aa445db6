"""Configurations: several flags and variables that belong together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.domain.flags import FlagValue


@dataclass(frozen=True, slots=True)
class Configuration:
    """Settings that are changed together.

    Attributes:
        flags: Flags by canonical name.
        environment: Variables of the engine.
    """

    flags: Mapping[str, FlagValue] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """All flags and variables that it sets."""
        return frozenset(self.flags) | frozenset(self.environment)
