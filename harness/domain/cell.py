"""Cells: what a spread is measured for and looked up by. Narrow enough to scatter alike, wide enough to come again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

from harness.domain.arm import Arm
from harness.domain.build import Fork, Tool
from harness.domain.flags import FlagValue
from harness.domain.model import Model

PLACEMENT_FLAGS = frozenset(
    {
        *("t", "ngl", "ncmoe", "ot", "sm", "ts", "mg", "dev", "max_gpu", "fit", "fit_margin"),
        *("nkvo", "nopo", "no_host", "numa", "cpu_strict", "poll", "thp"),
    }
)
"""Flags that decide which hardware does the work and where the data lie; others change the work, not its scatter."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One fork's engine, model, placement and workload. Names of builds and their revisions are no part of it.

    Attributes:
        fork: The fork.
        tool: What measures.
        model: Card and quantization, or the model's file name.
        placement: Sorted flags and variables that decide where the work is done.
        workload: The workload's name.
    """

    fork: Fork
    tool: Tool
    model: str
    placement: tuple[tuple[str, FlagValue], ...]
    workload: str

    @property
    def kind(self) -> str:
        """The workload without its sizes: ``pp``, ``tg``, ``tg.d``."""
        return re.sub(r"\d+", "", self.workload)

    @property
    def label(self) -> str:
        """In words, for tables and reasons."""
        return f"{self.workload} of {self.model} on {self.fork}"


def cell_of(arm: Arm, workload: str) -> Cell:
    """The cell that an arm's workload belongs to."""
    placement = {name: value for name, value in arm.flags if name in PLACEMENT_FLAGS}
    return Cell(
        arm.build.fork,
        arm.build.tool,
        _model_word(arm.model),
        tuple(sorted({**placement, **dict(arm.environment)}.items())),
        workload,
    )


def _model_word(model: Model) -> str:
    if model.card:
        return f"{PurePath(model.card).name.removesuffix('.json')} {model.quant}"
    return model.file_name
