"""The commands by name, each imported when it is asked for: some bring libraries that take seconds to load."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from importlib import import_module
from typing import cast

import click

_NAMED_OTHERWISE = {"import": "import_file"}
"""Commands whose names are words of Python."""


class Commands(MutableMapping[str, click.Command]):
    """What a group of click takes as its commands; of a name, the object of that name in the module of that name.

    Args:
        names: Of the commands.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._found: dict[str, click.Command | None] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> click.Command:
        found = self._found[name]
        if found is None:
            word = _NAMED_OTHERWISE.get(name, name)
            found = cast("click.Command", getattr(import_module(f"harness.cli.{word}"), word))
            self._found[name] = found
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._found[name] = command

    def __delitem__(self, name: str) -> None:
        del self._found[name]
