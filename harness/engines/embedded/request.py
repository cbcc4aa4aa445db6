"""The request: what a child is asked to do, read from JSON and refused where it is not understood whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import fields as read
from .flags import FORKS, Flags, complete_flags
from .output_plan import OutputsPlan, outputs_plan

_TOP_KEYS = frozenset(
    {"fork", "model", "threads", "flags", "workloads", "repetitions", "seed", "outputs", "n_ctx", "slowdown"}
    | {"profiles", "logs"}
)
_WORKLOAD_KEYS = frozenset({"name", "n_prompt", "n_gen", "n_depth"})
_PROFILE_KEYS = frozenset({"name", "text", "n_predict", "prompt_tokens", "cold", "warm"})
_CONTEXT_STEP = 256


@dataclass(frozen=True, slots=True)
class Workload:
    """What is timed. Figures are tokens.

    Attributes:
        name: The parent's name of it, given back with the row.
        n_prompt: Prompt processing; with ``n_gen`` both are timed together.
        n_gen: Token generation, one token at a time.
        n_depth: In the context before the clock starts.
    """

    name: str
    n_prompt: int
    n_gen: int
    n_depth: int

    @property
    def positions(self) -> int:
        """Context cells that the workload fills."""
        return self.n_depth + self.n_prompt + self.n_gen


@dataclass(frozen=True, slots=True)
class ProfilePlan:
    """Requests of one kind.

    Attributes:
        name: The parent's name of it, given back with each answer.
        text: The prompt.
        n_predict: Tokens to generate.
        prompt_tokens: Tokens of prompt to make of the text; 0: the text as it is.
        cold: Whether the first request of the process is one of these and is timed from the start of the engine.
        warm: Whether further requests are made, ``repetitions`` of them.
    """

    name: str
    text: str
    n_predict: int
    prompt_tokens: int
    cold: bool
    warm: bool


@dataclass(frozen=True, slots=True)
class Request:
    """One arm, to be run once.

    Attributes:
        fork: ``llama.cpp`` or ``ik_llama.cpp``.
        model: The GGUF file.
        threads: For prompts and for generation alike.
        flags: Every flag of the fork, explicit.
        workloads: Measured in this order.
        repetitions: Of each workload; all are reported.
        seed: Of the random tokens.
        outputs: What to produce after the measuring, if anything.
        n_ctx: Context cells; 0 means what workloads and prompts need.
        slowdown: Share of its speed that is taken away on purpose; only a calibration asks for it.
        profiles: Requests to answer before anything else; at most the first is cold.
        logs: Whether the library's log goes to standard error from debug level up.
    """

    fork: str
    model: Path
    threads: int
    flags: Flags
    workloads: tuple[Workload, ...]
    repetitions: int
    seed: int
    outputs: OutputsPlan | None
    n_ctx: int
    slowdown: float = 0.0
    profiles: tuple[ProfilePlan, ...] = ()
    logs: bool = False

    @property
    def cells_needed(self) -> int:
        """Context cells of the largest workload."""
        return max((load.positions for load in self.workloads), default=0)


def round_up_cells(cells: int) -> int:
    """Context cells rounded up to the step both libraries allocate in."""
    return max(1, -(-cells // _CONTEXT_STEP)) * _CONTEXT_STEP


def parse_request(text: str) -> Request:
    """Read and check a request.

    Args:
        text: One JSON object.

    Raises:
        EmbeddedError: ``E-request`` for JSON that is not a request (the message names the key), ``E-flag-unknown`` and
            ``E-flag-value`` for its flags.
    """
    try:
        value = json.loads(text)
    except ValueError as problem:
        raise read.refused("request", f"not JSON: {problem}") from None
    fields = read.an_object("request", value, _TOP_KEYS)
    fork = read.text("fork", fields.get("fork"))
    if fork not in FORKS:
        raise read.refused("fork", f"got {fork!r}, expected one of {', '.join(FORKS)}")
    flags = fields.get("flags", {})
    if not isinstance(flags, dict):
        raise read.refused("flags", "expected an object of flag names and values")
    request = Request(
        fork=fork,
        model=Path(read.text("model", fields.get("model"))),
        threads=read.number("threads", fields.get("threads"), low=1, high=1024),
        flags=complete_flags(fork, flags),
        workloads=tuple(_workload(f"workloads[{i}]", item) for i, item in read.items("workloads", fields)),
        repetitions=read.number("repetitions", fields.get("repetitions", 1), low=1),
        seed=read.number("seed", fields.get("seed", 0), low=0, high=(1 << 63) - 1),
        outputs=outputs_plan(fields.get("outputs")),
        n_ctx=read.number("n_ctx", fields.get("n_ctx", 0), low=0),
        slowdown=read.share("slowdown", fields.get("slowdown", 0)),
        profiles=profile_plans(fields),
        logs=fields.get("logs") is True,
    )
    if not request.workloads and not request.profiles and request.outputs is None:
        raise read.refused("workloads", "nothing to do: neither workloads nor profiles nor outputs are asked for")
    return request


def profile_plans(fields: Mapping[str, object]) -> tuple[ProfilePlan, ...]:
    """The profiles of a request, checked.

    Args:
        fields: The request; its ``profiles`` are read.

    Raises:
        EmbeddedError: ``E-request``, naming the key.
    """
    plans = tuple(_profile(f"profiles[{i}]", item) for i, item in read.items("profiles", fields))
    if any(plan.cold for plan in plans[1:]):
        raise read.refused("profiles", "only the first can be cold: one request is the first of a process")
    return plans


def _workload(where: str, value: object) -> Workload:
    fields = read.an_object(where, value, _WORKLOAD_KEYS)
    load = Workload(
        name=read.text(f"{where}.name", fields.get("name")),
        n_prompt=read.number(f"{where}.n_prompt", fields.get("n_prompt", 0), low=0),
        n_gen=read.number(f"{where}.n_gen", fields.get("n_gen", 0), low=0),
        n_depth=read.number(f"{where}.n_depth", fields.get("n_depth", 0), low=0),
    )
    if not load.n_prompt + load.n_gen:
        raise read.refused(where, "n_prompt and n_gen are both 0: there is nothing to time")
    return load


def _profile(where: str, value: object) -> ProfilePlan:
    fields = read.an_object(where, value, _PROFILE_KEYS)
    return ProfilePlan(
        name=read.text(f"{where}.name", fields.get("name")),
        text=read.text(f"{where}.text", fields.get("text")),
        n_predict=read.number(f"{where}.n_predict", fields.get("n_predict"), low=1),
        prompt_tokens=read.number(f"{where}.prompt_tokens", fields.get("prompt_tokens", 0), low=0),
        cold=fields.get("cold") is True,
        warm=fields.get("warm") is True,
    )
