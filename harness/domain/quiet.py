"""What is done against noise before it is tested away."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PageCache(StrEnum):
    """In which state of the page cache a process finds its model."""

    WARM = "warm"
    COLD = "cold"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class Quiet:
    """The measures of a job; all of them by default, fewer to see what each is worth, or to time a cold start.

    Attributes:
        pinned: Engines are bound to cores of one NUMA node, one to a physical core, as far as these reach.
        spare_core: Threads of an arm that does not say how many leave a physical core free.
        page_cache: ``warm``: the model is read before a process where the cache lacks parts of it and memory allows;
            ``cold``: it is dropped from the cache before every process; ``left``: as it is.
    """

    pinned: bool = True
    spare_core: bool = True
    page_cache: PageCache = PageCache.WARM
