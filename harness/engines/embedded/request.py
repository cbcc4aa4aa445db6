"""The request: what a child is asked to do, read from JSON and refused where it is not understood whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .errors import EmbeddedError
from .flags import FORKS, Flags, complete_flags

_TOP_KEYS = frozenset(
    {"fork", "model", "threads", "flags", "workloads", "repetitions", "seed", "outputs", "n_ctx", "slowdown"}
    | {"profiles"}
)
_WORKLOAD_KEYS = frozenset({"name", "n_prompt", "n_gen", "n_depth"})
_OUTPUT_KEYS = frozenset({"prompts", "n_predict", "positions", "top"})
_PROMPT_KEYS = frozenset({"name", "text"})
_PROFILE_KEYS = frozenset({"name", "text", "n_predict", "prompt_tokens", "cold", "warm"})
_CONTEXT_STEP = 256
_LIMIT = 1 << 24
"""Above every number that makes sense, below what overflows a C int."""


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
class Prompt:
    """A named prompt text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class OutputsPlan:
    """Which outputs are produced.

    Attributes:
        prompts: Evaluated one after the other, each in a cleared context.
        n_predict: Tokens generated greedily for each prompt.
        positions: At most so many of a prompt's last positions enter the digest.
        top: So many most probable tokens are reported for each position; 0 reports none.
    """

    prompts: tuple[Prompt, ...]
    n_predict: int
    positions: int
    top: int


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
        raise _refused("request", f"not JSON: {problem}") from None
    fields = _object("request", value, _TOP_KEYS)
    fork = _text("fork", fields.get("fork"))
    if fork not in FORKS:
        raise _refused("fork", f"got {fork!r}, expected one of {', '.join(FORKS)}")
    flags = fields.get("flags", {})
    if not isinstance(flags, dict):
        raise _refused("flags", "expected an object of flag names and values")
    request = Request(
        fork=fork,
        model=Path(_text("model", fields.get("model"))),
        threads=_number("threads", fields.get("threads"), low=1, high=1024),
        flags=complete_flags(fork, flags),
        workloads=tuple(_workload(f"workloads[{i}]", item) for i, item in _items("workloads", fields)),
        repetitions=_number("repetitions", fields.get("repetitions", 1), low=1),
        seed=_number("seed", fields.get("seed", 0), low=0, high=(1 << 63) - 1),
        outputs=_outputs(fields.get("outputs")),
        n_ctx=_number("n_ctx", fields.get("n_ctx", 0), low=0),
        slowdown=_share("slowdown", fields.get("slowdown", 0)),
        profiles=profile_plans(fields),
    )
    if not request.workloads and not request.profiles and request.outputs is None:
        raise _refused("workloads", "nothing to do: neither workloads nor profiles nor outputs are asked for")
    return request


def profile_plans(fields: Mapping[str, object]) -> tuple[ProfilePlan, ...]:
    """The profiles of a request, checked.

    Args:
        fields: The request; its ``profiles`` are read.

    Raises:
        EmbeddedError: ``E-request``, naming the key.
    """
    plans = tuple(_profile(f"profiles[{i}]", item) for i, item in _items("profiles", fields))
    if any(plan.cold for plan in plans[1:]):
        raise _refused("profiles", "only the first can be cold: one request is the first of a process")
    return plans


def _refused(where: str, what: str) -> EmbeddedError:
    return EmbeddedError("E-request", f"{where}: {what}")


def _object(where: str, value: object, keys: frozenset[str]) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _refused(where, f"expected an object, got {type(value).__name__}")
    unknown = sorted(value.keys() - keys)
    if unknown:
        raise _refused(where, f"unknown key {', '.join(unknown)}; known: {', '.join(sorted(keys))}")
    return value


def _items(where: str, fields: Mapping[str, object]) -> list[tuple[int, object]]:
    value = fields.get(where, [])
    if not isinstance(value, list):
        raise _refused(where, "expected a list")
    return list(enumerate(value))


def _text(where: str, value: object) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise _refused(where, f"expected a text, got {value!r}")
    return value


def _number(where: str, value: object, *, low: int, high: int = _LIMIT) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise _refused(where, f"expected a whole number from {low} to {high}, got {value!r}")
    return value


def _share(where: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1:
        raise _refused(where, f"expected a number from 0 to below 1, got {value!r}")
    return float(value)


def _workload(where: str, value: object) -> Workload:
    fields = _object(where, value, _WORKLOAD_KEYS)
    load = Workload(
        name=_text(f"{where}.name", fields.get("name")),
        n_prompt=_number(f"{where}.n_prompt", fields.get("n_prompt", 0), low=0),
        n_gen=_number(f"{where}.n_gen", fields.get("n_gen", 0), low=0),
        n_depth=_number(f"{where}.n_depth", fields.get("n_depth", 0), low=0),
    )
    if not load.n_prompt + load.n_gen:
        raise _refused(where, "n_prompt and n_gen are both 0: there is nothing to time")
    return load


def _profile(where: str, value: object) -> ProfilePlan:
    fields = _object(where, value, _PROFILE_KEYS)
    return ProfilePlan(
        name=_text(f"{where}.name", fields.get("name")),
        text=_text(f"{where}.text", fields.get("text")),
        n_predict=_number(f"{where}.n_predict", fields.get("n_predict"), low=1),
        prompt_tokens=_number(f"{where}.prompt_tokens", fields.get("prompt_tokens", 0), low=0),
        cold=fields.get("cold") is True,
        warm=fields.get("warm") is True,
    )


def _outputs(value: object) -> OutputsPlan | None:
    if value is None:
        return None
    fields = _object("outputs", value, _OUTPUT_KEYS)
    prompts = tuple(_prompt(f"outputs.prompts[{i}]", item) for i, item in _items("prompts", fields))
    if not prompts:
        raise _refused("outputs.prompts", "expected at least one prompt")
    return OutputsPlan(
        prompts=prompts,
        n_predict=_number("outputs.n_predict", fields.get("n_predict"), low=1),
        positions=_number("outputs.positions", fields.get("positions"), low=1),
        top=_number("outputs.top", fields.get("top", 0), low=0, high=1000),
    )


def _prompt(where: str, value: object) -> Prompt:
    fields = _object(where, value, _PROMPT_KEYS)
    return Prompt(name=_text(f"{where}.name", fields.get("name")), text=_text(f"{where}.text", fields.get("text")))
