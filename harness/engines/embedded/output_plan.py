"""Which outputs a child is asked for: the ``outputs`` object of a request."""

from __future__ import annotations

from dataclasses import dataclass

from . import fields as read
from .faults import Fault, fault_of

_OUTPUT_KEYS = frozenset({"prompts", "n_predict", "positions", "forced", "top", "variations", "fault"})
_PROMPT_KEYS = frozenset({"name", "text", "answer", "tokens"})
_LEAST_TOP, _MOST_TOP = 2, 1000
_TOP = 20

BATCH, THREADS = "batch", "threads"
VARIATIONS = (BATCH, THREADS)
"""Harmless changes of how an arm evaluates a prompt; the words of ``harness.domain.outputs.Variation``."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A named prompt.

    Attributes:
        name: The parent's name of it, given back with its output.
        text: What is asked; may be empty.
        answer: What is decoded token by token after it, whatever an arm would have said; may be empty.
        tokens: Tokens of prompt to make of the text; 0: the text as it is.
    """

    name: str
    text: str
    answer: str = ""
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class OutputsPlan:
    """Which outputs are produced.

    Attributes:
        prompts: Evaluated one after the other, each in a cleared context.
        n_predict: Tokens generated greedily for each prompt.
        positions: Of so many of a prompt's last positions, at most, distributions are reported.
        forced: Tokens of the given answer that are decoded, at most.
        top: So many most probable tokens are reported for each position.
        variations: Harmless changes by which the arm is compared with itself.
        fault: What is spoilt on purpose; only a study of what outputs can show asks for it.
    """

    prompts: tuple[Prompt, ...]
    n_predict: int
    positions: int
    forced: int = 0
    top: int = _TOP
    variations: tuple[str, ...] = ()
    fault: Fault | None = None


def outputs_plan(value: object) -> OutputsPlan | None:
    """The plan of a request's ``outputs``; ``None`` where there are none.

    Raises:
        EmbeddedError: ``E-request``, naming the key.
    """
    if value is None:
        return None
    fields = read.an_object("outputs", value, _OUTPUT_KEYS)
    prompts = tuple(_prompt(f"outputs.prompts[{i}]", item) for i, item in read.items("prompts", fields))
    if not prompts:
        raise read.refused("outputs.prompts", "expected at least one prompt")
    return OutputsPlan(
        prompts=prompts,
        n_predict=read.number("outputs.n_predict", fields.get("n_predict"), low=1),
        positions=read.number("outputs.positions", fields.get("positions"), low=1),
        forced=read.number("outputs.forced", fields.get("forced", 0), low=0),
        top=read.number("outputs.top", fields.get("top", _TOP), low=_LEAST_TOP, high=_MOST_TOP),
        variations=tuple(_variation(f"outputs.variations[{i}]", item) for i, item in read.items("variations", fields)),
        fault=fault_of("outputs.fault", fields.get("fault")),
    )


def _prompt(where: str, value: object) -> Prompt:
    fields = read.an_object(where, value, _PROMPT_KEYS)
    return Prompt(
        name=read.text(f"{where}.name", fields.get("name")),
        text=read.any_text(f"{where}.text", fields.get("text")),
        answer=read.any_text(f"{where}.answer", fields.get("answer", "")),
        tokens=read.number(f"{where}.tokens", fields.get("tokens", 0), low=0),
    )


def _variation(where: str, value: object) -> str:
    if value not in VARIATIONS:
        raise read.refused(where, f"unknown variation {value!r}; known: {', '.join(VARIATIONS)}")
    return str(value)
