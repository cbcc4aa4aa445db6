"""The request: which server to start, and what to ask it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from harness.engines.embedded.errors import EmbeddedError
from harness.engines.embedded.request import ProfilePlan, profile_plans

_KEYS = frozenset({"argv", "environment", "model", "deadline_s", "repetitions", "profiles"})


@dataclass(frozen=True, slots=True)
class Request:
    """One server, to be started once.

    Attributes:
        argv: Program and arguments, but for the address.
        environment: Variables beside this process's own.
        model: The model file; a server that says another is not ours.
        deadline_s: Seconds from now after which nothing is waited for any more.
        repetitions: Warm requests for each profile that wants them.
        profiles: What to ask; at most the first is cold.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    model: str
    deadline_s: float
    repetitions: int
    profiles: tuple[ProfilePlan, ...]


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
    profiles = profile_plans(fields)
    if not profiles:
        raise _refused("profiles", "nothing is asked")
    return Request(tuple(argv), environment, str(fields.get("model")), float(deadline), repetitions, profiles)


def _refused(where: str, what: str) -> EmbeddedError:
    return EmbeddedError("E-request", f"{where}: {what}")
