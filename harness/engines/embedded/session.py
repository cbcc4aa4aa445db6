"""One child from request to last line: open the wheel, load, measure, produce, tell the peak."""

from __future__ import annotations

import importlib
import os
import platform
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from .bindings_ik import IkApi
from .bindings_mainline import MainlineApi
from .channel import Channel, EngineLog
from .flags import IK, MAINLINE
from .library import mapped_libraries, open_verified
from .loop import measure
from .output_plan import OutputsPlan
from .plant import Slowed
from .profiles import ColdClock, fit_profile
from .prompts import TokenizedPrompt, cells_needed, tokenize_prompts
from .request import Request, round_up_cells
from .rows import asked_or_found, host_cpu, make_row, utc_now

if TYPE_CHECKING:
    from .bindings import Bindings, Engine

_APIS: Mapping[str, type[Bindings]] = {MAINLINE: MainlineApi, IK: IkApi}


def run(request: Request, channel: Channel) -> None:
    """Do what a request asks and write a line for each thing done.

    Raises:
        EmbeddedError: Whatever ends the child early; lines written before it stand.
    """
    if request.profiles:
        _answers()
    clock = ColdClock()
    library, layout = open_verified(request.fork)
    api = _APIS[request.fork](library, layout, EngineLog(sys.stderr, debug=request.logs))
    try:
        with clock.paused():
            channel.emit("hello", _identity(api))
        _serve(api, request, channel, clock)
        channel.emit("done", {"peak_rss_bytes": peak_rss()})
    finally:
        api.close()


def _identity(api: Bindings) -> dict[str, object]:
    layout = api.layout
    commit, build_number = api.build()
    return {
        "fork": layout.fork,
        "package": layout.distribution,
        "package_version": layout.version,
        "build_commit": commit,
        "build_number": build_number,
        "library_version": api.version(),
        "libraries": mapped_libraries(),
        "system_info": api.system_info().strip(),
        "cpu_features": api.cpu_features(),
        "cpu_info": host_cpu(),
        "python": platform.python_version(),
        "pid": os.getpid(),
    }


def _answers() -> ModuleType:
    """The module that answers requests. numpy takes longer to import than a small model to load: only where needed."""
    # Its threads are of no use here, and would be there while something is timed.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    return importlib.import_module(".answers", __package__)


def _serve(api: Bindings, request: Request, channel: Channel, clock: ColdClock) -> None:
    """Load, answer, measure, produce: one model and one context for all of it (``Bindings.open_context`` says why)."""
    start = time.perf_counter_ns()
    api.load(request.model, request.flags)
    loaded = time.perf_counter_ns()
    plan = request.outputs
    prompts = tokenize_prompts(api, plan, request.n_ctx) if plan else []
    profiles = [fit_profile(api, profile) for profile in request.profiles]
    cells = max(request.cells_needed, cells_needed(prompts), *(profile.cells for profile in profiles))
    tokenized = time.perf_counter_ns()
    context = api.open_context(request.n_ctx or round_up_cells(cells), request.threads, request.flags)
    made = time.perf_counter_ns()
    facts = api.context_facts(context)
    with clock.paused():
        channel.emit(
            "loaded",
            {
                "load_ns": loaded - start,
                "context_ns": made - tokenized,
                **facts,
                **api.model_facts(),
                "flags": dict(request.flags),
                "implied": api.implied(request.flags),
                **({"planted_slowdown": request.slowdown} if request.slowdown else {}),
                **({"planted_fault": str(plan.fault)} if plan and plan.fault else {}),
            },
        )
    timed = Slowed(api, request.slowdown) if request.slowdown else api
    if profiles:
        # Before anything else warms the library up.
        answers = _answers()
        responder = answers.Responder(api, timed, context, facts["n_batch"])
        answers.answer_all(responder, profiles, request.repetitions, clock, channel)
    _measure_all(api, timed, context, request, channel)
    if plan:
        _produce_all(api, context, plan, prompts, channel)


def _measure_all(api: Bindings, timed: Engine, context: int, request: Request, channel: Channel) -> None:
    """Measure every workload, each repetition in the cleared context."""
    facts = api.context_facts(context)
    common = _common_fields(api, request, facts)
    for load in request.workloads:
        started = utc_now()
        samples = measure(
            timed, context, load, batch_size=facts["n_batch"], repetitions=request.repetitions, seed=request.seed
        )
        channel.emit("row", {"workload": load.name, "row": make_row(request, load, samples, common, started)})


def _common_fields(api: Bindings, request: Request, facts: Mapping[str, int]) -> dict[str, object]:
    commit, build_number = api.build()
    model = api.model_facts()
    n_batch = asked_or_found(int(request.flags["b"]), facts["n_batch"], facts["n_ctx"])
    n_ubatch = asked_or_found(int(request.flags["ub"]), facts["n_ubatch"], facts["n_batch"])
    return {
        "build_commit": commit,
        "build_number": build_number,
        "cpu_info": host_cpu(),
        "gpu_info": "",
        "model_filename": str(request.model),
        "model_type": model["model_desc"],
        "model_size": model["model_size"],
        "model_n_params": model["n_params"],
        "n_batch": n_batch,
        "n_ubatch": n_ubatch,
        "n_threads": facts["n_threads"],
        "type_k": str(request.flags["ctk"]),
        "type_v": str(request.flags["ctv"]),
        "n_gpu_layers": int(request.flags["ngl"]),
        **api.row_fields(request.flags),
    }


def _produce_all(
    api: Bindings, context: int, plan: OutputsPlan, prompts: list[TokenizedPrompt], channel: Channel
) -> None:
    """Outputs come after the measuring: a child that produces them times what a child without them times."""
    # numpy takes longer to import than a small model to load, and starts threads: only now, and only if needed.
    outputs = importlib.import_module(".outputs", __package__)
    for prompt in prompts:
        channel.emit("output", outputs.produce(api, context, plan, prompt))


def peak_rss(status: Path = Path("/proc/self/status")) -> int:
    """Largest resident memory of this process so far, in bytes (``VmHWM``)."""
    found = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(encoding="ascii", errors="replace"), re.MULTILINE)
    return int(found.group(1)) * 1024 if found else 0
