"""A plan held against described nodes: ``moe-harness plan --nodes``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from harness.planning.places import Place, nearest_of
from harness.planning.rooms import RAM, RESERVE, Fit, Room

_MIB = 1024**2
_MOST_COLUMNS = 6
"""More nodes than that are named in one column."""


def place_data(places: Sequence[Place]) -> dict[str, Any]:
    """What a row of the plan has more: each node, and the nearest one where none fits."""
    nearest = nearest_of(places)
    return {"nodes": [_place(place) for place in places], "nearest": nearest.node.name if nearest else None}


def _place(place: Place) -> dict[str, Any]:
    return {
        "node": place.node.name,
        "fits": place.fits,
        "of_class": place.of_class,
        "reason": place.reason,
        "devices": rooms_data(place.rooms),
    }


def rooms_data(rooms: Sequence[Room]) -> list[dict[str, Any]]:
    """Each arm on each device, in bytes."""
    return [
        {
            "arm": room.arm.label,
            "device": room.device,
            "needs": room.need.total,
            "held": room.held,
            "has": room.has,
            "reserve": RESERVE,
            "short": room.short,
            "parts": room.need.parts,
        }
        for room in rooms
    ]


def promise_data(fit: Fit | None) -> list[dict[str, Any]] | None:
    """What a case needs on the least node of its class; ``None`` where the class says nothing of memory."""
    return None if fit is None or not fit.known else rooms_data(fit.rooms)


def headers(names: Sequence[str]) -> tuple[str, ...]:
    """Columns of the table for nodes."""
    return tuple(names) if len(names) <= _MOST_COLUMNS else ("fits on",)


def cells(row: dict[str, Any], columns: Sequence[str]) -> tuple[str, ...]:
    """A row's cells of these columns."""
    nodes = row["nodes"]
    if not nodes:
        return ("",) * len(columns)
    if len(nodes) <= _MOST_COLUMNS:
        return tuple(map(_cell, nodes))
    fitting = [node["node"] for node in nodes if node["fits"]]
    unknown = sum(node["fits"] is None for node in nodes)
    said = f"{len(fitting)} of {len(nodes)}" + (f": {', '.join(fitting)}" if fitting else "")
    near = f", nearest {row['nearest']}" if row["nearest"] else ""
    return (said + (f", not known of {unknown}" if unknown else "") + near,)


def _cell(node: dict[str, Any]) -> str:
    if not node["devices"]:
        return "not known" if node["fits"] is None else "no variant" if node["of_class"] else "not its class"
    on_gpus = [found for found in node["devices"] if found["device"] != RAM]
    in_ram = [found for found in node["devices"] if found["device"] == RAM]
    tightest = [max(found, key=_tightness) for found in (on_gpus, in_ram) if found]
    return "\n".join(_against(found) for found in tightest) + ("\nnot all known" if node["fits"] is None else "")


def _tightness(found: dict[str, Any]) -> tuple[int, float]:
    return found["short"], found["needs"] - found["has"]


def _against(found: dict[str, Any], unit: str = "") -> str:
    """What an arm needs of a device, of what that has for it."""
    usable = max(0, found["has"] - found["reserve"])
    outcome = f", {_mib(found['short'], up=True)} short" if found["short"] else ", rereads" * (found["needs"] > usable)
    return f"{found['device']} {_mib(found['needs'])} of {_mib(usable)}{unit}{outcome}"


def closing_lines(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> Iterator[str]:
    """What the cells mean, how many cases each node is for, and why nodes are not for some."""
    listed = [node for row in rows for node in row["nodes"]]
    yield f"nodes: MiB needed of those that there are, {RESERVE // _MIB} on each device kept free"
    counts = Counter(node["node"] for node in listed if node["fits"])
    total = sum(bool(row["nodes"]) for row in rows)
    unknown = Counter(node["node"] for node in listed if node["fits"] is None)
    told = (f"{name} {counts[name]}" + (f" (not known: {unknown[name]})" if unknown[name] else "") for name in names)
    yield f"{'known to fit' if unknown else 'fitting'}, of {total} that a build can run: {', '.join(told)}"
    reasons = Counter((node["node"], node["reason"]) for node in listed if node["reason"] and not node["devices"])
    for (name, reason), number in reasons.items():
        yield f"{name} ({number} case{'s' if number != 1 else ''}): {reason}"


def why_places(row: dict[str, Any]) -> Iterator[str]:
    """All that is known of a case on each node."""
    for node in row.get("nodes", ()):
        word = {True: "fits", False: "does not fit", None: "not known"}[node["fits"]]
        yield f"  node {node['node']}: {word}" + (f": {node['reason']}" if node["reason"] else "")
        for found in node["devices"]:
            yield f"    {found['arm']}: {_against(found, ' MiB')}"
    if row.get("nearest"):
        yield f"  nearest node: {row['nearest']}"


def why_promise(row: dict[str, Any], class_name: str) -> Iterator[str]:
    """A case on the least node that its class allows."""
    for found in row["least"] or ():
        yield f"  least node of class {class_name}: {found['arm']}: {_against(found, ' MiB')}"


def _mib(size: int, *, up: bool = False) -> str:
    return str(-(-size // _MIB)) if up else f"{size / _MIB:.0f}"
