"""Estimated against measured peak memory: prints the table of ``docs/explanation/memory.md``.

Two models of random weights with the widths of real ones and few layers are made in a temporary cache, one at a time,
loaded by the engines of both wheels under different flags, and removed again. What is compared is the peak resident
memory of the child above that of an empty engine, a child that loads a model of one small layer.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from harness.domain.build import Build, Fork
from harness.domain.flags import FlagValue
from harness.domain.workload import Workload
from harness.engines.flags import complete, embedded_request_flags
from harness.models.cache import ensure_model
from harness.models.card import Card, load_card
from harness.models.memory import context_cells, estimate
from harness.models.memory_model import card_shape

_MIB = 1024**2
_WHEELS = {Fork.LLAMA_CPP: "xllamacpp", Fork.IK_LLAMA_CPP: "ik-llama-cpp-python"}
_MODELS = (("qwen3-30b-a3b", 2, "Q4_K_M"), ("qwen3.6-35b-a3b", 4, "IQ4_XS"))
_EMPTY = {"layers": 1, "width": 64, "heads": 1, "kv_heads": 1, "experts": 2, "experts_used": 1, "expert_width": 32}
_Run: TypeAlias = tuple[Mapping[str, FlagValue], Workload]
_SHALLOW, _DEEP, _LONG = Workload(512, 4), Workload(512, 4, 1536), Workload(2048, 4)
_RUNS: tuple[_Run, ...] = (({}, _SHALLOW), ({"ub": 2048}, _LONG), ({"fa": 0}, _DEEP))
_MORE: Mapping[Fork, tuple[_Run, ...]] = {
    Fork.LLAMA_CPP: (({"mmap": 0}, _SHALLOW), ({"repack": 0}, _SHALLOW), ({"ctk": "q8_0", "ctv": "q8_0"}, _DEEP)),
    Fork.IK_LLAMA_CPP: (({"mmap": 0}, _SHALLOW), ({"rtr": 1}, _SHALLOW), ({"fmoe": 0, "ub": 2048}, _LONG)),
}
"""Asked of the first model only."""


@dataclass(frozen=True)
class Outcome:
    """One process.

    Attributes:
        model: Card and quantization.
        fork: Whose wheel.
        flags: Flags that are not at their defaults.
        workload: What it did.
        estimated: MiB above an empty engine.
        measured: The same.
    """

    model: str
    fork: Fork
    flags: Mapping[str, FlagValue]
    workload: Workload
    estimated: float
    measured: float

    @property
    def error(self) -> float:
        """MiB that the estimate is above what was measured."""
        return self.estimated - self.measured

    @property
    def line(self) -> str:
        """It as a row of a Markdown table."""
        said = " ".join(f"{name}={value}" for name, value in self.flags.items()) or "defaults"
        share = 100 * self.error / self.measured
        figures = f"{self.estimated:.0f} | {self.measured:.0f} | {self.error:+.0f} | {share:+.1f} %"
        return f"| {self.model} | {self.fork} | {said} | {self.workload.name} | {figures} |"


def outcomes(cache: Path) -> Iterator[Outcome]:
    """Run everything.

    Args:
        cache: Folder for the models; the caller removes it.
    """
    empty = _with_layers(load_card("tiny-moe"), **_EMPTY)
    bases = {fork: _peak(fork, ensure_model(empty, "F16", cache=cache), {}, Workload(1, 0)) for fork in Fork}
    for name, layers, quant in _MODELS:
        card = _with_layers(load_card(name), layers=layers)
        file, shape = ensure_model(card, quant, cache=cache), card_shape(card, quant)
        for fork in Fork:
            for flags, load in (*_RUNS, *(_MORE[fork] if name == _MODELS[0][0] else ())):
                full = complete(Build("b", fork, wheel=_WHEELS[fork]), flags).as_dict()
                needed = estimate(shape, fork, full, context_cells([load]))
                measured = _peak(fork, file, flags, load) - bases[fork]
                model = f"{name}, {layers} layers, {quant}"
                yield Outcome(model, fork, flags, load, needed.peak_rss / _MIB, measured / _MIB)
        file.unlink()


def _with_layers(card: Card, **shape: int) -> Card:
    return card.model_copy(update={"shape": card.shape.model_copy(update=shape)})


def _peak(fork: Fork, model: Path, flags: Mapping[str, FlagValue], load: Workload) -> int:
    """Peak resident bytes of a child."""
    full = complete(Build("b", fork, wheel=_WHEELS[fork]), flags)
    workload = {"name": "w", "n_prompt": load.n_prompt, "n_gen": load.n_gen, "n_depth": load.n_depth}
    request: dict[str, Any] = {"fork": fork, "model": str(model), "threads": 1, "workloads": [workload]}
    request["flags"] = embedded_request_flags(full)
    argv = (sys.executable, "-P", "-m", "harness.engines.embedded")
    done = subprocess.run(argv, input=json.dumps(request), capture_output=True, text=True, check=True)
    return int(
        next(event["peak_rss_bytes"] for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "done")
    )


if __name__ == "__main__":
    print("| model | fork | flags | workload | estimate, MiB | measured, MiB | error | |")  # noqa: T201
    print("|---|---|---|---|---|---|---|---|")  # noqa: T201
    with tempfile.TemporaryDirectory() as folder:
        for outcome in outcomes(Path(folder)):
            print(outcome.line, flush=True)  # noqa: T201
