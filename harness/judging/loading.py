"""How builds loaded the model: whether they did what they were asked, and in what two arms differ. In words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness.domain.arm import Arm
from harness.domain.flags import FlagValue
from harness.domain.load_facts import RAM, Buffer, LoadFacts, Notice, device_word, grouped, numbers, places
from harness.domain.verdict import Verdict
from harness.domain.words import Status
from harness.judging.evidence import Evidence

FORCED = "E-flag-forced"

_PLACING = frozenset(
    {"ngl", "ot", "ncmoe", "sm", "mg", "ts", "dev", "nkvo", "mmap", "rtr", "repack", "no_host", "lzm", "muge", "mqkv"}
    | {"fit", "fit_margin", "max_gpu", "defer_experts", "mla"}
)
"""Flags that say where things lie, or that move them beside what they say."""
_CPU = "CPU"
_EXPERTS = re.compile(r"ffn_(?:up|down|gate|gate_up)(?:_ch)?exps\.(?:weight|scale|bias)|ffn_\w+_exps\.\w+")
_CUT = frozenset({"b", "ub"})
"""Flags that contexts cut to what a workload fills: worth telling only where they are what is compared."""
_OPEN = frozenset({"auto", "-1", "none", ""})
"""Values that leave it to the build."""
_DIGITS = re.compile(r"\d+")
_TOLERANCE, _TOLERANCE_MIB = 0.1, 300.0
"""How near an estimate of memory is meant to come: the larger of a share and MiB."""
_SAME_SIZE, _SAME_SIZE_MIB = 0.01, 0.5
_MOVED, _MOVED_MIB = 0.02, 64.0
"""From what on the weights of a GPU tell of another placement."""
_MOST_MOVES = 12


@dataclass(frozen=True, slots=True)
class Forced:
    """A flag that amounts to something else than was asked.

    Attributes:
        flag: Its canonical name.
        asked: What was asked.
        done: What the build says it did.
        line: The line that says so; empty where only the value is printed.
    """

    flag: str
    asked: str
    done: str
    line: str

    def __str__(self) -> str:
        why = f" ('{self.line}')" if self.line else ""
        return f"asked {self.flag}={self.asked}, the build did {self.flag}={self.done}{why}"


def load_of(evidence: Evidence, arm: int) -> LoadFacts | None:
    """What an arm's first process that logged said of loading; ``None`` where none did."""
    return next((run.load for run in evidence.runs[arm] if run.load), None)


def forced(arm: Arm, load: LoadFacts) -> tuple[Forced, ...]:
    """The flags that the build did not do as it was asked.

    Args:
        arm: What was asked.
        load: What was done.
    """
    lines = {notice.flag: notice.line for notice in load.notices if notice.flag}
    asked = {name: _plain(value) for name, value in arm.flags}
    return tuple(
        Forced(name, asked[name], done, lines.get(name, ""))
        for name, done in sorted(load.values.items())
        if name in asked and asked[name] not in _OPEN and done not in _OPEN and asked[name] != done
    )


def idle(arm: Arm, load: LoadFacts) -> list[str]:
    """What was asked and left no trace where the build would tell of one, e.g. ``asked rtr=1, no tensor was repacked``.

    Args:
        arm: What was asked.
        load: What was done.
    """
    asked = {name: _plain(value) for name, value in arm.flags}
    # llama.cpp tells of moved tensors where it tells of layers, at debug level; ik_llama.cpp always.
    tells_moves = bool(load.homes) or "fmoe" in load.values
    found = []
    if asked.get("rtr") == "1" and load.buffers and not load.repacked:
        found.append("asked rtr=1, no tensor was repacked")
    moving = [name for name in ("ot", "ncmoe") if asked.get(name, "0") not in _OPEN | {"0"}]
    if moving and tells_moves and not load.overrides:
        found.append(f"asked {' '.join(f'{name}={asked[name]}' for name in moving)}, no tensor was moved")
    return found


def no_contrast(evidence: Evidence) -> Verdict | None:
    """A contrast of flags whose arms amount to the same, because a build did not do what one of them asked."""
    if len(evidence.case.arms) != 2:  # noqa: PLR2004 - baseline and candidate
        return None
    loads = [load_of(evidence, arm) for arm in (0, 1)]
    names = _declared(evidence)
    if not names or None in loads:
        return None
    found = [forced(arm, load) for arm, load in zip(evidence.case.arms, loads, strict=True) if load]
    done = [{name: _plain(value) for name, value in arm.flags} for arm in evidence.case.arms]
    for values, changed in zip(done, found, strict=True):
        values.update({each.flag: each.done for each in changed})
    if any(done[0].get(name) != done[1].get(name) for name in names):
        return None
    told = [f"{evidence.label(arm)} {each}" for arm in (0, 1) for each in found[arm] if each.flag in names]
    if not told:
        return None
    reason = f"unsupported: no contrast in {', '.join(names)}: {'; '.join(told)}"
    return evidence.verdict(Status.UNSUPPORTED, reason, slug=FORCED)


def load_notes(evidence: Evidence) -> list[str]:
    """What the reader of a figure must know: a flag that was declared and not done, a placement nobody declared."""
    told = []
    for index, arm in enumerate(evidence.case.arms):
        load = load_of(evidence, index)
        if load is None:
            continue
        declared = {*arm.shown} - _CUT | {*_declared(evidence)}
        done = [f"{each}" for each in forced(arm, load) if each.flag in declared]
        told += [f"{evidence.label(index)} {text}" for text in (*done, *idle(arm, load))]
    if moved := undeclared_moves(evidence):
        told.append(f"placement differs although nothing declared moves it: {'; '.join(moved)}")
    return told


def undeclared_moves(evidence: Evidence) -> list[str]:
    """How the placement of a pair differs where no flag, model or variable is declared that moves it."""
    arms = evidence.case.arms
    if len(arms) != 2:  # noqa: PLR2004 - baseline and candidate
        return []
    one, other = (load_of(evidence, index) for index in (0, 1))
    declared = (
        arms[0].model != arms[1].model
        or arms[0].environment != arms[1].environment
        or bool(_PLACING & set(arms[0].flags.differing(arms[1].flags)))
    )
    if one is None or other is None or declared:
        return []
    return [*_moves(one, other, by_device=True), *_offloaded(one, other), *_gpu_weights(one, other)]


def load_text(evidence: Evidence) -> str:
    """Everything worth telling of how the arms were loaded, a line each; empty where there is nothing."""
    lines: list[str] = []
    for index, arm in enumerate(evidence.case.arms):
        load = load_of(evidence, index)
        if load is None:
            continue
        done = [f"{each}" for each in forced(arm, load) if each.flag not in _CUT or each.flag in _declared(evidence)]
        told = [*done, *idle(arm, load), *_against_plan(load)]
        lines += [f"{evidence.label(index)}: {text}" for text in told]
    if len(evidence.case.arms) == 2:  # noqa: PLR2004 - baseline and candidate
        one, other = (load_of(evidence, index) for index in (0, 1))
        lines += differences(one, other) if one and other else []
    return "\n".join(lines)


def differences(one: LoadFacts, other: LoadFacts) -> list[str]:
    """In what two processes were loaded unlike, e.g. ``blk.3 experts moved from CUDA0 to CPU``; the first is before.

    Args:
        one: The baseline.
        other: The candidate.
    """
    return [
        *_moves(one, other),
        *_offloaded(one, other),
        *_sizes(one, other),
        *_settings(one, other),
        *_graphs(one, other),
        *_only_in(one, other, "baseline"),
        *_only_in(other, one, "candidate"),
    ]


def _declared(evidence: Evidence) -> tuple[str, ...]:
    """The flags that a pair differs in, where it differs in flags alone."""
    if len(evidence.case.arms) != 2:  # noqa: PLR2004 - baseline and candidate
        return ()
    one, other = evidence.case.arms
    alone = one.build == other.build and one.model == other.model and one.environment == other.environment
    return one.flags.differing(other.flags) if alone else ()


def _plain(value: FlagValue) -> str:
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)


# ---- tensors ---------------------------------------------------------------------------------------------------------


def _moves(one: LoadFacts, other: LoadFacts, *, by_device: bool = False) -> list[str]:
    """Tensors in another place, grouped by from where to where; by device, buffer types of the same memory are one."""
    before, after = places(one.overrides), places(other.overrides)
    moved: dict[tuple[str, str], dict[str, str]] = {}
    for name in {**before, **after}:
        source, target = before.get(name) or _home(one, name), after.get(name) or _home(other, name)
        ends = (_short(source), _short(target)) if by_device else (source, target)
        if ends[0] != ends[1]:
            moved.setdefault(ends, {})[name] = ""
    told = [_move(*ends, names) for ends, names in moved.items()]
    flat = [text for texts in told for text in texts]
    more = len(flat) - _MOST_MOVES
    return [*flat[:_MOST_MOVES], *([f"and {more} more moves"] if more > 0 else [])]


def _move(source: str, target: str, names: Mapping[str, str]) -> list[str]:
    if RAM in (device_word(source), device_word(target)) and device_word(source) != device_word(target):
        # Which of its buffer types matters only between them: a pinned one is asked for and seldom given.
        source, target = _short(source), _short(target)
    if target:
        way = f"moved from {source} to {target}" if source else f"moved to {target}"
    else:
        way = f"moved from {source} back to their layers' device"
    return [f"{_what(group.layers, group.tensors)} {way}" for group in grouped(names)]


def _short(buffer: str) -> str:
    """The device of a buffer type, as people call it; empty where it is not known."""
    return _CPU if buffer and device_word(buffer) == RAM else device_word(buffer)


def _what(layers: str, tensors: tuple[str, ...]) -> str:
    kinds = {tensor.split(".")[0] for tensor in tensors}
    experts = all(map(_EXPERTS.fullmatch, tensors)) and {"ffn_down_exps"} < kinds
    names = "experts" if experts else ", ".join(tensor.removesuffix(".weight") for tensor in tensors)
    return f"blk.{layers} {names}" if layers else names


def _home(load: LoadFacts, name: str) -> str:
    """The device of a tensor's layer: as printed, or the only one that holds weights; empty where nobody knows."""
    layer = re.match(r"blk\.(\d+)\.", name)
    if layer and load.homes:
        found = (home.buffer for home in load.homes if int(layer[1]) in numbers(home.layers))
        return next(found, "")
    gpus = _on_gpus(load)
    if not gpus:
        return _CPU
    whole = load.offloaded is not None and load.offloaded[0] >= load.offloaded[1]
    return next(iter(gpus)) if len(gpus) == 1 and whole else ""


def _on_gpus(load: LoadFacts) -> dict[str, float]:
    """MiB of weights by GPU."""
    found: dict[str, float] = {}
    for buffer in load.buffers:
        device = device_word(buffer.device)
        if buffer.use == "weights" and device != RAM:
            found[device] = found.get(device, 0.0) + buffer.mib
    return found


def _gpu_weights(one: LoadFacts, other: LoadFacts) -> Iterator[str]:
    before, after = _on_gpus(one), _on_gpus(other)
    for device in {**before, **after}:
        ends = (before.get(device, 0.0), after.get(device, 0.0))
        if abs(ends[1] - ends[0]) > max(_MOVED * max(ends), _MOVED_MIB):
            yield f"weights on {device} {ends[0]:.0f} -> {ends[1]:.0f} MiB"


def _offloaded(one: LoadFacts, other: LoadFacts) -> Iterator[str]:
    if one.offloaded != other.offloaded:
        ends = ("/".join(map(str, load.offloaded)) if load.offloaded else "none" for load in (one, other))
        yield f"layers offloaded {' -> '.join(ends)}"
    homes = [{(home.layers, home.buffer) for home in load.homes} for load in (one, other)]
    if all(homes) and homes[0] != homes[1]:
        told = (", ".join(f"{span} on {device}" for span, device in sorted(found)) for found in homes)
        yield f"layers {' -> '.join(told)}"


# ---- the rest --------------------------------------------------------------------------------------------------------


def _sizes(one: LoadFacts, other: LoadFacts) -> Iterator[str]:
    before, after = ({(b.use, b.device): b.mib for b in load.buffers} for load in (one, other))
    for use, device in {**before, **after}:
        ends = (before.get((use, device), 0.0), after.get((use, device), 0.0))
        if abs(ends[1] - ends[0]) > max(_SAME_SIZE * max(ends), _SAME_SIZE_MIB):
            yield f"{use} in {device} {ends[0]:.1f} -> {ends[1]:.1f} MiB"


def _settings(one: LoadFacts, other: LoadFacts) -> Iterator[str]:
    before, after = one.values, other.values
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            yield f"{name} {before[name]} -> {after[name]}"


def _graphs(one: LoadFacts, other: LoadFacts) -> Iterator[str]:
    pairs = {
        "graph nodes": (one.nodes, other.nodes),
        "graph splits": (_splits(one), _splits(other)),
        "tensors repacked": (one.repacked, other.repacked),
    }
    for what, (before, after) in pairs.items():
        if before != after and None not in (before, after):
            yield f"{what} {before} -> {after}"


def _splits(load: LoadFacts) -> str | None:
    if load.splits is None:
        return None
    return f"{load.splits}" if load.splits_of_one is None else f"{load.splits} ({load.splits_of_one} for one token)"


def _only_in(load: LoadFacts, other: LoadFacts, part: str) -> Iterator[str]:
    known = {_kind(notice) for notice in other.notices}
    yield from (f"only the {part}: {notice.line}" for notice in load.notices if _kind(notice) not in known)


def _kind(notice: Notice) -> str:
    return _DIGITS.sub("#", notice.line)


def _against_plan(load: LoadFacts) -> Iterator[str]:
    """Where printed buffers are far from the estimate.

    Not compared are work buffers in RAM, of which pages are never touched, and weights in RAM beside a GPU's: a mapping
    goes from the first to the last tensor that is needed, over those that are not.
    """
    printed: dict[tuple[str, str], float] = {}
    for buffer in load.buffers:
        key = (planned_device(buffer), buffer.use if buffer.use != "state" else "KV")
        printed[key] = printed.get(key, 0.0) + buffer.mib
    on_gpus = bool(_on_gpus(load))
    for planned in load.planned:
        compared = planned.use in ("weights", "KV", "compute")
        if planned.device == RAM and (planned.use == "compute" or (planned.use == "weights" and on_gpus)):
            compared = False
        found = printed.get((planned.device, planned.use), 0.0)
        if compared and printed and abs(found - planned.mib) > max(_TOLERANCE * planned.mib, _TOLERANCE_MIB):
            yield f"{planned.device}: {planned.use} {found:.0f} MiB, estimated {planned.mib:.0f} MiB"


def planned_device(buffer: Buffer) -> str:
    """The name that an estimate has for a device."""
    device = device_word(buffer.device)
    number = re.search(r"(\d+)$", device)
    return device if device == RAM or not number else f"GPU {number[1]}"
