"""Builds of the llama.cpp family: which fork, and where its engine comes from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Fork(StrEnum):
    """The two forks whose flags and output schemas are known."""

    LLAMA_CPP = "llama.cpp"
    IK_LLAMA_CPP = "ik_llama.cpp"


class Tool(StrEnum):
    """What measures inside an engine process."""

    EMBEDDED = "embedded"
    LLAMA_BENCH = "llama-bench"


@dataclass(frozen=True, slots=True)
class Build:
    """One build under a name. Exactly one of ``wheel`` and ``path`` is set.

    Attributes:
        name: The matrix's name for it.
        fork: Whose flags and schemas it speaks.
        wheel: Distribution name of a wheel whose library is used in a child process.
        path: ``llama-bench`` or the folder that holds it.
    """

    name: str
    fork: Fork
    wheel: str = ""
    path: str = ""

    @property
    def tool(self) -> Tool:
        """What measures: our loop over the wheel's library, or the build's own ``llama-bench``."""
        return Tool.EMBEDDED if self.wheel else Tool.LLAMA_BENCH
