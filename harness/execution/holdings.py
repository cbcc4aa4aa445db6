"""Which models a machine holds: on its disk, and in its memory as the kernel tells."""

from __future__ import annotations

from collections.abc import Mapping

from harness.domain.model import Model
from harness.execution.page_cache import resident_share
from harness.models.here import files_here

_IN_MEMORY = 0.5
"""Share of a model's bytes from which on most of its load is spared."""


def held_here(models: Mapping[str, Model]) -> tuple[str, ...]:
    """Names of those that lie on this machine, those last that are in its page cache: they go last, too.

    Args:
        models: By name.
    """
    on_disk: list[str] = []
    in_memory: list[str] = []
    for name, model in models.items():
        if files := files_here(model):
            try:
                resident = (resident_share(files) or 0.0) >= _IN_MEMORY
            except OSError:
                continue  # it went meanwhile
            (in_memory if resident else on_disk).append(name)
    return (*on_disk, *in_memory)
