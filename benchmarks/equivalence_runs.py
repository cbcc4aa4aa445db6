"""Runs the engines of the benchmark of output equivalence, and keeps what they said so that it can be judged again."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from equivalence_plan import Net, Way, profile

from harness.domain.workload import OutputProfile
from harness.engines.embedded_engine import EmbeddedEngine
from harness.engines.engine import Exit, Order, Report
from harness.models.cache import ensure_model
from harness.models.corrupting import write_corrupted

_TIMEOUT_S = 600.0
_STDERR = 2000


@dataclass(frozen=True, slots=True)
class Kept:
    """Where the answers of one network in one quantization lie.

    Attributes:
        root: The benchmark's folder.
        net: The network.
        quant: Its quantization.
    """

    root: Path
    net: Net
    quant: str

    def path(self, way: Way) -> Path:
        """The file of one way of running."""
        return self.root / "answers" / self.net.name / self.quant / f"{way.name}.json.gz"

    def report(self, way: Way) -> tuple[Report, OutputProfile] | None:
        """What the engine said, read as the product reads it, and what it was asked; ``None``: not run yet."""
        if not self.path(way).exists():
            return None
        with gzip.open(self.path(way), "rt", encoding="utf-8") as file:
            said = json.load(file)
        asked = profile(self.net, said.get("prompts", way.prompts))
        ended = Exit(said["code"], said["signal"], timed_out=said["timed_out"], stdout=said["stdout"], stderr="")
        return EmbeddedEngine(way.arm(self.net.name, self.quant).build).read(
            _order(self, way, Path(), asked), ended
        ), asked

    def what(self, way: Way) -> str:
        """What was planted, in words."""
        with gzip.open(self.path(way), "rt", encoding="utf-8") as file:
            return str(json.load(file)["what"])


def run_all(kept: Kept, ways: Iterable[Way], goes_on: Callable[[], bool]) -> int:
    """Run what has not been run; returns how many processes were started."""
    missing = [way for way in ways if not kept.path(way).exists()]
    started = 0
    for way, model, what in _with_models(kept, missing):
        if not goes_on():
            break
        _run(kept, way, model, what)
        started += 1
    return started


def _with_models(kept: Kept, ways: list[Way]) -> Iterator[tuple[Way, Path, str]]:
    """Each way with its model file; a broken one lasts as long as the ways that it is for."""
    if not ways:
        return
    cache = kept.root / "cache"
    sound = ensure_model(kept.net.card(), kept.quant, cache=cache)
    for kind in dict.fromkeys(way.kind for way in ways):
        mine = [way for way in ways if way.kind is kind]
        if kind is None:
            yield from ((way, sound, json.dumps(way.fault) if way.fault else "") for way in mine)
            continue
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            broken, corruption = write_corrupted(sound, Path(folder), kind, kept.net.seed)
            yield from ((way, broken, corruption.what) for way in mine)


def _order(kept: Kept, way: Way, model: Path, asked: OutputProfile) -> Order:
    arm = way.arm(kept.net.name, kept.quant)
    threads = arm.flags.get("t")
    return Order(arm, model, (), 1, asked, threads if isinstance(threads, int) else 1)


def _run(kept: Kept, way: Way, model: Path, what: str) -> None:
    order = _order(kept, way, model, profile(kept.net, way.prompts))
    command = EmbeddedEngine(order.arm.build).command(order)
    request = json.loads(command.stdin)
    if way.fault:
        request["outputs"]["fault"] = dict(way.fault)
    said = _start(replace(command, stdin=json.dumps(request)).argv, json.dumps(request), command.environment)
    target = kept.path(way)
    target.parent.mkdir(parents=True, exist_ok=True)
    half = target.with_suffix(".part")
    with gzip.open(half, "wt", encoding="utf-8", compresslevel=3) as file:
        json.dump({**said, "what": what, "prompts": way.prompts}, file)
    shutil.move(half, target)


def _start(argv: tuple[str, ...], stdin: str, environment: dict[str, str]) -> dict[str, object]:
    try:
        done = subprocess.run(
            argv, input=stdin, capture_output=True, text=True, errors="replace", check=False, timeout=_TIMEOUT_S,
            env={**os.environ, **environment},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"code": None, "signal": 9, "timed_out": True, "stdout": "", "stderr": ""}
    by_signal = done.returncode < 0
    return {
        "code": None if by_signal else done.returncode,
        "signal": -done.returncode if by_signal else None,
        "timed_out": False,
        "stdout": done.stdout,
        "stderr": done.stderr[-_STDERR:],
    }
