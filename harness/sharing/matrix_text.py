"""A matrix of some cases of a journal, for whoever wants to change and run it. It counts if it gives the same ids.

Arms are written out as includes, with the flags that their labels show; what a label does not show is set for their
build. What can't be written so (recipes, variants, named axes, prompts, attributions) has no matrix: `replay` runs it
from the journal.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from harness.domain.arm import Arm
from harness.domain.build import Build
from harness.domain.case import Case, ContrastCheck, FloorCheck, MemoryCheck, PitfallCheck
from harness.domain.errors import HarnessError
from harness.domain.flags import FlagValue
from harness.domain.job import Design
from harness.domain.model import Model
from harness.domain.node import ANY_CLASS, NodeClass
from harness.domain.policy import Policy
from harness.domain.workload import Workload
from harness.models.card import packaged_cards
from harness.planning.load import load_matrix
from harness.planning.planner import make_plan

_FACTORS = {"build", "model"}


class _NoMatrix(Exception):  # noqa: N818 - no error: a case that a matrix can't be written for
    """Why."""


def matrix_text(name: str, cases: Sequence[Case], design: Design, policy: Policy) -> str:
    """The matrix as TOML; empty where none gives these cases.

    Args:
        name: What it is called.
        cases: The cases.
        design: How often things are repeated.
        policy: How they are judged.
    """
    try:
        text = "\n".join(_lines(name, cases, design, policy)) + "\n"
    except _NoMatrix:
        return ""
    return text if {case.id for case in cases} <= _ids(text) else ""


def _ids(text: str) -> set[str]:
    """Ids that a matrix expands to, wherever it would run."""
    with tempfile.TemporaryDirectory(prefix="moe-matrix-") as folder:
        path = Path(folder) / "matrix.toml"
        path.write_text(text, encoding="utf-8")
        try:
            return set(make_plan(load_matrix(path)).ids())
        except HarnessError:
            return set()


def _lines(name: str, cases: Sequence[Case], design: Design, policy: Policy) -> Iterator[str]:
    arms = list({(arm.build.name, arm.model.name, arm.label): arm for case in cases for arm in case.arms}.values())
    builds = {arm.build.name: arm.build for arm in arms}
    models = {arm.model.name: arm.model for arm in arms}
    yield f"name = {_value(name)}"
    for build in builds.values():
        yield from _table(f"builds.{build.name}", _build(build))
    for model in models.values():
        yield from _table(f"models.{model.name}", _model(model))
    for node_class in {case.node_class.name: case.node_class for case in cases}.values():
        if node_class.name != ANY_CLASS:
            yield from _table(f"node_classes.{node_class.name}", _node_class(node_class))
    if environment := dict(arms[0].environment):
        yield from _table("environment", environment)
    for build_name, model_name in dict.fromkeys((arm.build.name, arm.model.name) for arm in arms):
        same = _unshown([arm for arm in arms if (arm.build.name, arm.model.name) == (build_name, model_name)])
        yield from _table("[when]", {"build": build_name, "model": model_name, "flags": same})
    # Nothing but the arms that are written out.
    yield from _table("[exclude]", {"build": list(builds)})
    for arm in arms:
        yield from _table("[include]", {"build": arm.build.name, "model": arm.model.name, "flags": _shown(arm)})
    for workload in {case.workload_name: case.workload for case in cases if case.workload}.values():
        yield from _table("[workloads]", _workload(workload))
    yield from _questions(cases)
    yield from _table("policy", _policy(design, policy))


def _questions(cases: Sequence[Case]) -> Iterator[str]:
    """Each question once, with all the workloads that it is asked of."""
    asked: dict[str, tuple[str, dict[str, object], list[str]]] = {}
    for case in cases:
        if found := _question(case):
            table, entry = found
            workloads = asked.setdefault(_value(entry), (table, entry, []))[2]
            workloads += [case.workload_name] if case.workload and case.workload_name not in workloads else []
    names: Counter[object] = Counter()
    for table, entry, workloads in asked.values():
        more: dict[str, object] = {"workloads": workloads} if workloads else {}
        if name := entry.get("name"):
            names[name] += 1
            more |= {"name": f"{name}-{names[name]}"} if names[name] > 1 else {}
        yield from _table(table, {**entry, **more})


def _question(case: Case) -> tuple[str, dict[str, object]] | None:
    """The table that a case comes from, without its workloads; ``None`` where it only measures."""
    match case.check:
        case FloorCheck(tokens_per_second=None, max_ms=None):
            return None
        case FloorCheck() as floor:
            limit = {"tokens_per_second": floor.tokens_per_second} if floor.max_ms is None else {"max_ms": floor.max_ms}
            return "[checks]", {"kind": "floor", **limit, "where": _where(case.arms[0])}
        case MemoryCheck() as memory:
            return "[checks]", {"kind": "memory", "max_rss_mib": memory.max_rss_mib, "where": _where(case.arms[0])}
        case ContrastCheck() as contrast:
            return "[contrasts]", {**_contrast(case, contrast), "expect": str(contrast.expect)}
        case PitfallCheck() as pitfall:
            advice = {"kind": "pitfall", "source": pitfall.source, "instead": pitfall.instead}
            return "[contrasts]", {**_contrast(case, pitfall), **advice}
        case _:
            raise _NoMatrix


def _contrast(case: Case, check: ContrastCheck | PitfallCheck) -> dict[str, object]:
    baseline, candidate = case.arms
    sides = [_side(arm, check.factor) for arm in case.arms]
    # A flag that only one of two forks has says nothing of the other's arms.
    shown = {**_shown(baseline), **_shown(candidate)}
    known = [arm.flags.as_dict() for arm in case.arms]
    shared = {name: value for name, value in shown.items() if all(flags.get(name) == value for flags in known)}
    where = {name: value for name, value in _where(candidate).items() if name not in {check.factor, "flags"}}
    return {
        "name": check.name,
        "factor": check.factor,
        "baseline": sides[0],
        "candidate": sides[1],
        "where": {**where, "flags": shared},
    }


def _side(arm: Arm, factor: str) -> object:
    if factor in _FACTORS:
        return arm.build.name if factor == "build" else arm.model.name
    value = arm.flags.get(factor)
    if value is None:
        raise _NoMatrix
    return value


def _where(arm: Arm) -> dict[str, object]:
    return {"build": arm.build.name, "model": arm.model.name, "flags": _shown(arm)}


def _shown(arm: Arm) -> dict[str, FlagValue]:
    if arm.named:
        raise _NoMatrix
    return {name: value for name, value in arm.flags if name in arm.shown}


def _unshown(arms: Sequence[Arm]) -> dict[str, FlagValue]:
    """Flags that all arms of a build and model have alike; one that follows from another is left to follow."""
    common = [set(arm.flags) for arm in arms]
    shown = {name for arm in arms for name in arm.shown}
    return {name: value for name, value in sorted(set.intersection(*common)) if name not in shown}


def _build(build: Build) -> dict[str, object]:
    if build.recipe or build.variants:
        raise _NoMatrix
    found: dict[str, object] = {"fork": str(build.fork)}
    found |= {"wheel": build.wheel} if build.wheel else {"path": f"builds/{build.name}"}
    if build.source and build.source.commit:
        found["source"] = {"repository": build.source.repository, "commit": build.source.commit}
    return found


def _model(model: Model) -> dict[str, object]:
    digest = {"sha256": list(model.sha256)} if model.sha256 else {}
    if model.card:
        card = model.card if model.card in packaged_cards() else f"cards/{model.name}.json"
        return {"card": card, **({"quant": model.quant} if model.quant else {})}
    if model.path:
        return {"path": f"models/{model.name}/{model.file_name}", **digest}
    return {**({"url": model.url} if model.url else {}), **digest}


def _node_class(node_class: NodeClass) -> dict[str, object]:
    plain = NodeClass(node_class.name)
    pairs = ((field.name, getattr(node_class, field.name), getattr(plain, field.name)) for field in fields(NodeClass))
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value, default in pairs if value != default
    }


def _workload(workload: object) -> dict[str, object]:
    if not isinstance(workload, Workload):
        raise _NoMatrix
    said = {"pp": workload.n_prompt, "tg": workload.n_gen, "depth": workload.n_depth}
    return {name: value for name, value in said.items() if value}


def _policy(design: Design, policy: Policy) -> dict[str, object]:
    found: dict[str, object] = {
        "warmup": design.warmup,
        "repetitions": design.repetitions,
        "burn_in": design.burn_in,
        "blocks": design.blocks,
        "timeout_s": design.timeout_s,
        "alpha": policy.alpha,
        "margin": "auto" if policy.auto_margin else policy.margin,
        "inconclusive": policy.inconclusive,
    }
    return found | ({"minutes": design.minutes} if design.minutes is not None else {})


# ---- TOML ------------------------------------------------------------------------------------------------------------


def _table(name: str, content: Mapping[str, object]) -> Iterator[str]:
    yield ""
    yield f"[{_keys(name)}]"
    yield from (f"{_key(key)} = {_value(value)}" for key, value in content.items())


def _keys(name: str) -> str:
    if name.startswith("["):
        return name
    first, _, rest = name.partition(".")
    return f"{first}.{_key(rest)}" if rest else first


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _text(key)


def _value(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case dict():
            return "{ " + ", ".join(f"{_key(str(key))} = {_value(entry)}" for key, entry in value.items()) + " }"
        case list():
            return _list(value)
        case _:
            return _text(str(value))


def _list(values: Iterable[object]) -> str:
    return f"[{', '.join(map(_value, values))}]"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
