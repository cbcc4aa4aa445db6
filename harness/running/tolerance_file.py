"""The file of known tolerances: what calibrations found of outputs on which node, kept for later runs.

It lies beside the file of known spreads, for one user or for everybody who shares one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from harness.builds.state_file import StateFile
from harness.domain.node import NodeFacts
from harness.domain.tolerance import ContrastClass, Figures
from harness.running.spread_file import spreads_path


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Found(_Entry):
    """What one calibration found for one kind of contrast of one model.

    Attributes:
        content: What the model is, by `harness.running.model_content`.
        model: Its name, for people.
        contrast: The class of contrast.
        backends: What computed, sorted; one where both arms had the same.
        when: When it was found.
        pairs: Pairs of processes that were compared.
        positions: Positions of each.
        decoded: How many of these were decoded one at a time; ``None`` in files of older versions.
        seen: The largest of each figure.
        tolerated: What follows from it.
    """

    content: str
    model: str
    contrast: ContrastClass
    backends: tuple[str, ...]
    when: AwareDatetime
    pairs: Annotated[int, Field(ge=1)]
    positions: Annotated[int, Field(ge=1)]
    decoded: Annotated[int, Field(ge=0)] | None = None
    seen: Figures
    tolerated: Figures

    @property
    def place(self) -> tuple[str, ContrastClass, tuple[str, ...]]:
        """What it is of: a later one of the same takes its place."""
        return self.content, self.contrast, self.backends


class NodeTolerances(_Entry):
    """A node: its facts, readable, and what was found on it."""

    facts: NodeFacts
    found: tuple[Found, ...] = ()


class ToleranceFile(_Entry):
    """The whole file; nodes by their fingerprint."""

    schema_version: Annotated[Literal[1], Field(alias="schema")] = 1
    nodes: dict[str, NodeTolerances] = {}

    def with_found(self, node: NodeFacts, found: tuple[Found, ...]) -> ToleranceFile:
        """A new file in which these stand in the place of earlier ones of the same."""
        known = self.nodes.get(node.fingerprint, NodeTolerances(facts=node))
        places = {each.place for each in found}
        others = tuple(each for each in known.found if each.place not in places)
        changed = NodeTolerances(facts=node, found=(*others, *found))
        return self.model_copy(update={"nodes": {**self.nodes, node.fingerprint: changed}})


def tolerances_path() -> Path:
    """Beside the known spreads: ``spreads.json`` has ``spreads.outputs.json``.

    Raises:
        BadInput: ``E-bad-setting``.
    """
    return beside(spreads_path())


def beside(spreads: Path) -> Path:
    """The file of known tolerances that belongs to a file of known spreads."""
    return spreads.with_suffix(".outputs.json")


def tolerances_in(path: Path) -> StateFile[ToleranceFile]:
    """The file at a path; reading and changing it may raise `BadInput` and `Infrastructure`, ``E-tolerances-...``."""
    return StateFile(path, ToleranceFile, "tolerances")
