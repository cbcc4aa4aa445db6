"""Small matrices for the tests of planning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.domain.arm import Arm
from harness.domain.errors import BadInput
from harness.domain.node import GIB, Gpu, NodeFacts
from harness.planning.load import load_matrix
from harness.planning.schema import Matrix

BASE = """
name = "test"

[builds.mainline]
fork = "llama.cpp"
wheel = "xllamacpp"

[builds.ik]
fork = "ik_llama.cpp"
wheel = "ik-llama-cpp-python"

[models.tiny]
card = "tiny-moe"
quant = "IQ4_XS"

[[workloads]]
pp = 64

[[workloads]]
tg = 8
"""

CONTRAST = """
[[contrasts]]
name = "c"
factor = "fa"
baseline = 0
candidate = 1
"""

ENVIRONMENT = """
[[contrasts]]
name = "c"
factor = "environment"
baseline = {}
candidate = { B = "1" }
"""

CONFIGURATION = """
[configurations.new]
ctk = "q8_0"
[[contrasts]]
name = "c"
factor = "configuration"
baseline = {}
candidate = "new"
"""

ATTRIBUTION = """
[[contrasts]]
name = "a"
kind = "attribution"
factors = [
  { factor = "build", baseline = "mainline", candidate = "ik" },
  { factor = "configuration", baseline = {}, candidate = { ub = 64, fa = 1 } },
]
"""


def matrix(**changes: Any) -> Matrix:
    """Two builds, one model, two workloads, and what a test adds or replaces."""
    base: dict[str, Any] = {
        "name": "test",
        "builds": {
            "mainline": {"fork": "llama.cpp", "wheel": "xllamacpp"},
            "ik": {"fork": "ik_llama.cpp", "wheel": "ik-llama-cpp-python"},
        },
        "models": {"tiny": {"card": "tiny-moe", "quant": "IQ4_XS"}},
        "workloads": [{"pp": 64}, {"tg": 8}],
    }
    return Matrix.model_validate(base | changes)


def load(tmp_path: Path, text: str) -> Matrix:
    """Load a matrix that is the base with a text after it."""
    file = tmp_path / "m.toml"
    file.write_text(BASE + text, encoding="utf-8")
    return load_matrix(file)


def refusal(tmp_path: Path, text: str) -> BadInput:
    """The error of loading the base with a text after it; its place is shortened to ``m.toml``."""
    with pytest.raises(BadInput) as caught:
        load(tmp_path, text)
    error = caught.value
    folder = f"{tmp_path}/"
    return BadInput(
        error.slug,
        error.message.replace(folder, ""),
        hint=error.hint.replace(folder, ""),
        where=error.where.replace(folder, ""),
    )


def assert_fault(  # noqa: PLR0917 - one parameter for each part of the error
    tmp_path: Path, text: str, slug: str, where: str, message: str, hint: str
) -> None:
    """The one fault of the base with a text after it: slug, place and hint, and how the message begins."""
    error = refusal(tmp_path, text)
    assert (error.slug, error.where, error.hint) == (slug, where, hint)
    assert error.message.startswith(message)


def node(*, gpus: int = 0, vram_gib: float = 24, ram_gib: float = 64, cores: int = 8) -> NodeFacts:
    """A made-up node."""
    return NodeFacts(
        cpu_model="Test CPU",
        cores=cores,
        isa=("avx2",),
        ram_bytes=int(ram_gib * GIB),
        gpus=tuple(Gpu("Test GPU", int(vram_gib * GIB), "1", f"GPU-{index}") for index in range(gpus)),
        kernel="6.1",
        niceness=0,
        governor="unknown",
        cgroup_memory_bytes=None,
        numa_nodes=1,
        swap_bytes=0,
    )


def factors_differing(arm: Arm, other: Arm) -> tuple[str, ...]:
    """What differs between two arms: ``build``, ``model``, ``environment`` and flag names, in that order."""
    pairs = (
        ("build", arm.build, other.build),
        ("model", arm.model, other.model),
        ("environment", arm.environment, other.environment),
    )
    return (*(name for name, mine, theirs in pairs if mine != theirs), *arm.flags.differing(other.flags))
