"""Faults of flags' values, each at the key where the flag is set.

Whether values can be is known only of an arm: its build, and all its flags. What a person has to mend is a key of the
file: one of ``[flags]``, of a ``[[when]]``, of a named value, of an ``[[include]]`` or of a configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from harness.domain.flags import FlagValue
from harness.engines.flags import FlagFault
from harness.planning.problems import Problem

PlaceOf: TypeAlias = Callable[[str], str]
"""File and key where a flag of an arm is set; empty where another arm is at fault, which is told by itself."""


class FlagFaults:
    """The faults of one matrix: each once, however many arms have it."""

    def __init__(self) -> None:
        self._problems: dict[tuple[object, ...], Problem] = {}

    def __bool__(self) -> bool:
        return bool(self._problems)

    def problems(self) -> list[Problem]:
        """All that were found, in the order of the arms."""
        return list(self._problems.values())

    def add(self, fault: FlagFault, declared: Mapping[str, FlagValue], place_of: PlaceOf) -> None:
        """Note what is wrong with an arm.

        Args:
            fault: What is wrong.
            declared: The arm's flags.
            place_of: Where they are set.
        """
        places = {name: place for name in fault.flags if name in declared and (place := place_of(name))}
        if not places:
            return
        first, *others = places
        message = fault.message + "".join(f"; {name} is set at {places[name]}" for name in others)
        key = (fault.slug, places[first], *(declared[name] for name in places))
        self._problems.setdefault(key, Problem(fault.slug, places[first], message, fault.hint))
