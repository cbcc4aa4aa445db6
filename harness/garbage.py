"""When Python looks for garbage: not while many objects are made that all stay, where the search takes longer."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def not_looked_for() -> Iterator[None]:
    """No search inside; afterwards as before."""
    searching = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searching:
            gc.enable()


@contextmanager
def what_is_made_stays() -> Iterator[None]:
    """No search inside, and none afterwards through what is there by then, until the next time that this is said."""
    gc.unfreeze()
    with not_looked_for():
        yield
    gc.freeze()
