"""Where a job's arms put the model, as far as their builds say, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.domain.load_facts import LoadFacts, Placed
from harness.domain.measurement import ProcessRun


def placement_data(arms: Sequence[Sequence[ProcessRun]]) -> list[list[str]]:
    """What each arm's first process that told it said of loading.

    Args:
        arms: The processes of each arm.

    Returns:
        Rows of a name and one text for each arm; none where no build said anything.
    """
    loads = [next((run.load for run in runs if run.load), None) or LoadFacts() for runs in arms]
    rows = [[name, *map(text, loads)] for name, text in _TOLD]
    names = sorted({name for load in loads for name in load.values})
    rows += [[name, *(load.values.get(name, "") for load in loads)] for name in names]
    rows += [["said otherwise", *("\n".join(notice.line for notice in load.notices) for load in loads)]]
    return [row for row in rows if any(row[1:])]


def _count(number: int | None) -> str:
    return "" if number is None else f"{number}"


def _splits(load: LoadFacts) -> str:
    one = f" ({load.splits_of_one} for one token)" if load.splits_of_one is not None else ""
    return f"{load.splits}{one}" if load.splits is not None else ""


def _places(groups: Sequence[Placed]) -> str:
    return "\n".join(
        " ".join(filter(None, [f"blk.{group.layers}" if group.layers else "", ", ".join(group.tensors)]))
        + f" on {group.buffer}"
        for group in groups
    )


_TOLD: tuple[tuple[str, Callable[[LoadFacts], str]], ...] = (
    ("layers on GPUs", lambda load: "{} of {}".format(*load.offloaded) if load.offloaded else ""),
    ("layers", lambda load: _places(load.homes)),
    ("tensors put elsewhere", lambda load: _places(load.overrides)),
    ("tensors repacked", lambda load: _count(load.repacked or None)),
    ("graph nodes", lambda load: _count(load.nodes)),
    ("graph splits", _splits),
)
