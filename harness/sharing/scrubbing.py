"""What a journal says of one machine, taken out of it: folders, host, serial numbers of GPUs. Secrets are refused.

Prompts, answers and flags stay as they are: they decide what is measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from harness.domain.errors import BadInput
from harness.domain.secrets import is_secret_name
from harness.reporting.state import JournalState

_KEPT = frozenset(
    {
        *("case", "cases", "job", "key", "kind", "label", "identity", "workload", "workloads", "outputs", "prompts"),
        *("profile", "asked", "reference", "flags", "content_key", "logits_sha256", "sha256", "t", "event"),
    }
)
"""Keys whose values say nothing of a machine, or decide what is measured."""
_FOLDERS = re.compile(r"(?:file://|~|(?<![\w.:/~-]))/(?:[^\s\"'`<>|:;,()\[\]{}/]+/)+")
"""An absolute path up to its last slash."""
_UUID = re.compile(r"\b(?:GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4,12}){2,4}")
_FEWEST = 4
"""Letters of a host's name below which it is also a word."""


class Scrubber:
    """Makes values of events harmless; one for each bundle, so that a GPU has one name in it.

    Args:
        hosts: Names of the hosts that the events are from.
    """

    def __init__(self, hosts: Iterable[str]) -> None:
        names = sorted({host for host in hosts if len(host) >= _FEWEST}, key=len, reverse=True)
        self._hosts = re.compile("|".join(map(re.escape, names))) if names else None
        self._gpus: dict[str, str] = {}

    def scrub(self, value: Any, key: str = "") -> Any:
        """A JSON value without what only concerns its machine."""
        if key in _KEPT:
            return value
        match value:
            case str():
                return "" if key == "host" else self.text(value)
            case dict():
                return {self.text(name): self.scrub(entry, name) for name, entry in value.items()}
            case list():
                return [self.scrub(entry) for entry in value]
            case _:
                return value

    def text(self, text: str) -> str:
        """A text with bare file names for paths, and ordinals for GPUs."""
        text = _FOLDERS.sub("", text)
        text = _UUID.sub(lambda found: self._gpus.setdefault(found[0], f"gpu-{len(self._gpus)}"), text)
        return self._hosts.sub("a-host", text) if self._hosts else text


def refuse_secrets(state: JournalState, cases: Iterable[str]) -> None:
    """Refuse variables that look like secrets: they are a part of what was measured and can't be left out.

    Raises:
        BadInput: ``E-bundle-secret``.
    """
    arms = (arm for case in cases for arm in state.planned[case].case.arms)
    found = sorted({name for arm in arms for name, value in arm.environment if value and is_secret_name(name)})
    if found:
        message = f"the engines were given {', '.join(found)}, which a bundle would show to whoever reads it"
        hint = "take it out of [environment] of the matrix and run the cases again"
        raise BadInput("E-bundle-secret", message, hint=hint, where=f"{state.path}")
