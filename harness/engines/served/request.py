"""The request: which server to start, and what to ask it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from harness.engines.embedded.errors import EmbeddedError
from harness.engines.embedded.flags import FORKS
from harness.engines.embedded.output_plan import OutputsPlan, outputs_plan
from harness.engines.embedded.request import ProfilePlan, profile_plans

_KEYS = frozenset({"fork", "argv", "environment", "model", "deadline_s", "repetitions", "profiles", "outputs"})


@dataclass(frozen=True, slots=True)
class Request:
    """One server, to be started once.

    Attributes:
        fork: Whose server it is: ``llama.cpp`` or ``ik_llama.cpp``.
        argv: Program and arguments, but for the address.
        environment: Variables beside this process's own.
        model: The model file; a server that says another is not ours.
        deadline_s: Seconds from now after which nothing is waited for any more.
        repetitions: Warm requests for each profile that wants them.
        profiles: What to ask and time; at most the first is cold.
        outputs: What to ask after that for its content; ``None``: nothing.
    """

    fork: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    model: str
    deadline_s: float
    repetitions: int
    profiles: tuple[ProfilePlan, ...]
    outputs: OutputsPlan | None


def parse_request(text: str) -> Request:
    """Read and check a request.

    Raises:
        EmbeddedError: ``E-request``, naming the key.
    """
    try:
        fields = json.loads(text)
    except ValueError as problem:
        raise _refused("request", f"not JSON: {problem}") from None
    if not isinstance(fields, dict) or fields.keys() - _KEYS:
        raise _refused("request", f"expected an object of {', '.join(sorted(_KEYS))}")
    argv, environment = fields.get("argv"), fields.get("environment", {})
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
        raise _refused("argv", "expected a list of texts")
    if not isinstance(environment, dict) or not all(isinstance(value, str) for value in environment.values()):
        raise _refused("environment", "expected an object of texts")
    deadline, repetitions = fields.get("deadline_s"), fields.get("repetitions", 1)
    if not isinstance(deadline, int | float) or not deadline > 0:
        raise _refused("deadline_s", f"expected seconds, got {deadline!r}")
    if not isinstance(repetitions, int) or repetitions < 1:
        raise _refused("repetitions", f"expected a whole number above 0, got {repetitions!r}")
    fork = str(fields.get("fork"))
    if fork not in FORKS:
        raise _refused("fork", f"expected {' or '.join(sorted(FORKS))}, got {fork!r}")
    profiles, outputs = profile_plans(fields), outputs_plan(fields.get("outputs"))
    if not profiles and outputs is None:
        raise _refused("profiles", "nothing is asked, and no outputs either")
    model = str(fields.get("model"))
    return Request(fork, tuple(argv), environment, model, float(deadline), repetitions, profiles, outputs)


def _refused(where: str, what: str) -> EmbeddedError:
    return EmbeddedError("E-request", f"{where}: {what}")
