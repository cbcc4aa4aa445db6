"""The request: which program to run, and over what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from harness.engines.embedded import fields as read
from harness.engines.embedded.output_plan import OutputsPlan, outputs_plan

_KEYS = frozenset({"argv", "environment", "deadline_s", "batch", "outputs"})


@dataclass(frozen=True, slots=True)
class Request:
    """A program, to be run once for each prompt, or a few times where a text turns out to be too short.

    Attributes:
        argv: Program and arguments, but for text, context, batch and file of logits.
        environment: Variables beside this process's own.
        deadline_s: Seconds from now after which nothing is waited for any more.
        batch: Tokens handed over at once.
        outputs: The prompts.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    deadline_s: float
    batch: int
    outputs: OutputsPlan


def parse_request(text: str) -> Request:
    """Read and check a request.

    Raises:
        EmbeddedError: ``E-request``, naming the key.
    """
    try:
        value = json.loads(text)
    except ValueError as problem:
        raise read.refused("request", f"not JSON: {problem}") from None
    fields = read.an_object("request", value, _KEYS)
    argv = [read.text(f"argv[{index}]", word) for index, word in read.items("argv", fields)]
    if not argv:
        raise read.refused("argv", "expected a list of texts")
    said = fields.get("environment", {})
    if not isinstance(said, dict):
        raise read.refused("environment", "expected an object of texts")
    environment = {name: read.any_text(f"environment.{name}", word) for name, word in said.items()}
    deadline = fields.get("deadline_s")
    if not isinstance(deadline, int | float) or not deadline > 0:
        raise read.refused("deadline_s", f"expected seconds, got {deadline!r}")
    outputs = outputs_plan(fields.get("outputs"))
    if outputs is None:
        raise read.refused("outputs", "nothing is asked")
    batch = read.number("batch", fields.get("batch"), low=1)
    return Request(tuple(argv), environment, float(deadline), batch, outputs)
