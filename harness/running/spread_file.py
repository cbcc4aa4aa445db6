"""The file of known spreads: what calibrations found on which node, kept for the runs that come after them.

One JSON file for each user, or for everybody who shares one with ``MOE_SPREADS``. It is read whole, changed under a
lock beside it and replaced in one step, so that readers need no lock and a killed writer leaves the old file.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

from filelock import FileLock, Timeout
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from harness import bounded, settings
from harness.domain.cell import Cell
from harness.domain.errors import BadInput, Infrastructure
from harness.domain.node import NodeFacts

SCHEMA = 1
_LOCK_WAIT_S = 30.0
_MAX_RECORDS = 10
"""Of one cell; the oldest go first."""

_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Record(_Entry):
    """What one calibration found for one cell.

    Attributes:
        when: Its time.
        quads: Quads of an arm against itself.
        quad_sd: Their standard deviation, log scale.
        process_s: Mean wall time of a process start.
        start_s: Of it, what is no repetition of any workload: start, load, context, depth.
        load_s: Of that, loading the model, where the engine says.
        repetition_s: Mean time of one repetition of the workload.
        quarantine: Why the cell is not judged on this node; empty if it is.
    """

    when: AwareDatetime
    quads: Annotated[int, Field(ge=2)]
    quad_sd: _Positive
    process_s: _NotNegative
    start_s: _NotNegative
    load_s: _NotNegative | None
    repetition_s: _NotNegative
    quarantine: str = ""


class CellEntry(_Entry):
    """A cell with its records, oldest first."""

    cell: Cell
    records: Annotated[tuple[Record, ...], Field(min_length=1)]


class NodeEntry(_Entry):
    """A node: its facts, readable, and its cells."""

    facts: NodeFacts
    cells: tuple[CellEntry, ...]


class SpreadFile(_Entry):
    """The whole file; nodes by their fingerprint."""

    schema_version: Annotated[Literal[1], Field(alias="schema")] = 1
    nodes: dict[str, NodeEntry] = {}

    def with_record(self, node: NodeFacts, cell: Cell, record: Record, *, fresh: bool = False) -> SpreadFile:
        """A new file with one more record; ``fresh`` forgets the cell's earlier ones."""
        known = self.nodes.get(node.fingerprint, NodeEntry(facts=node, cells=()))
        earlier = () if fresh else next((entry.records for entry in known.cells if entry.cell == cell), ())
        entry = CellEntry(cell=cell, records=(*earlier, record)[-_MAX_RECORDS:])
        others = tuple(other for other in known.cells if other.cell != cell)
        changed = NodeEntry(facts=node, cells=(*others, entry))
        return self.model_copy(update={"nodes": {**self.nodes, node.fingerprint: changed}})


def spreads_path() -> Path:
    """``MOE_SPREADS``, else ``moe-harness/spreads.json`` in ``XDG_STATE_HOME`` or ``~/.local/state``.

    Raises:
        BadInput: ``E-bad-setting``.
    """
    if chosen := settings.spreads_file():
        return chosen
    base = os.environ.get("XDG_STATE_HOME", "")
    # The XDG rule: a relative path there is to be ignored.
    state = Path(base) if base.startswith("/") else Path.home() / ".local" / "state"
    return state / "moe-harness" / "spreads.json"


def read_spreads(path: Path) -> SpreadFile:
    """Read the file; one that is not there is empty.

    Args:
        path: The file.

    Raises:
        BadInput: ``E-spreads-schema`` where another version of the harness wrote it, ``E-spreads-unreadable`` where it
            is no such file.
        Infrastructure: ``E-spreads-unreadable`` where the system does not let us.
    """
    try:
        data = json.loads(bounded.read_bytes(path, bounded.MOST_KEPT_BYTES))
    except FileNotFoundError:
        return SpreadFile()
    except OSError as error:
        raise Infrastructure("E-spreads-unreadable", f"{error.strerror}", where=f"{path}") from error
    except (RecursionError, ValueError) as error:
        raise _unreadable(path, f"not JSON: {error}") from error
    if not isinstance(data, dict):
        raise _unreadable(path, "expected an object")
    if data.get("schema") != SCHEMA:
        message = f"this version reads schema {SCHEMA}, the file says {data.get('schema')!r}"
        hint = f"use the version that wrote it, or let {settings.SPREADS} name another file"
        raise BadInput("E-spreads-schema", message, hint=hint, where=f"{path}")
    try:
        return SpreadFile.model_validate_json(json.dumps(data))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise _unreadable(path, f"{place}: {first['msg']}") from error


def change_spreads(path: Path, change: Callable[[SpreadFile], SpreadFile]) -> SpreadFile:
    """Change the file under its lock, in one step for whoever reads it.

    Args:
        path: The file; made with its folder if it is not there.
        change: From the file as it is to what it becomes.

    Raises:
        BadInput: As `read_spreads`.
        Infrastructure: ``E-spreads-busy`` where somebody holds the lock, ``E-spreads-unwritable``.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock", timeout=_LOCK_WAIT_S):
            changed = change(read_spreads(path))
            _replace(path, changed.model_dump_json(by_alias=True, indent=1) + "\n")
            return changed
    except Timeout:
        message = f"another process held the lock for {_LOCK_WAIT_S:.0f} s"
        raise Infrastructure("E-spreads-busy", message, where=f"{path}.lock") from None
    except OSError as error:
        hint = f"let {settings.SPREADS} name a file that can be written"
        raise Infrastructure("E-spreads-unwritable", f"{error.strerror}", hint=hint, where=f"{path}") from error


def _replace(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with fresh.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        with suppress(OSError):
            fresh.unlink()


def _unreadable(path: Path, what: str) -> BadInput:
    hint = "move it away; `moe-harness calibrate` makes a new one"
    return BadInput("E-spreads-unreadable", f"no file of known spreads, {what}", hint=hint, where=f"{path}")
