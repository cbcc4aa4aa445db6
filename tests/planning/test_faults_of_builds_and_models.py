"""Faults of ``[builds]``, ``[models]``, ``[node_classes]`` and ``[environment]``, each at its key."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning_support import assert_fault


@pytest.mark.parametrize(
    ("text", "slug", "where", "message", "hint"),
    [
        pytest.param(
            "[builds.x]\nfork = 'ik_lama.cpp'\nwheel = 'w'",
            "E-matrix-invalid",
            "m.toml: builds.x.fork",
            "expected 'llama.cpp' or 'ik_llama.cpp', found 'ik_lama.cpp'",
            "did you mean 'ik_llama.cpp'?",
            id="fork",
        ),
        pytest.param(
            "[builds.x]\nfork = 'llama.cpp'",
            "E-matrix-invalid",
            "m.toml: builds.x",
            "needs exactly one of 'wheel', 'path', 'variants', 'recipe' and 'catalogue', found none",
            "",
            id="build from nowhere",
        ),
        pytest.param(
            "[models.x]\ncard = 'tiny-moe'\npath = 'x.gguf'",
            "E-matrix-invalid",
            "m.toml: models.x",
            "needs exactly one of 'card', 'path' and 'url', or only 'sha256'; found 'card' and 'path'",
            "",
            id="model from two places",
        ),
        pytest.param(
            "[models.x]\npath = 'x.gguf'\nquant = 'F16'",
            "E-matrix-invalid",
            "m.toml: models.x",
            "'quant' goes with 'card'; a file has the quantization that it has",
            "",
            id="quant of a file",
        ),
        pytest.param(
            "[builds.'a..b']\nfork = 'llama.cpp'\nwheel = 'w'",
            "E-matrix-invalid",
            "m.toml: builds.a..b",
            "a name is made of letters and digits, with single '.', '_' or '-' between them",
            "",
            id="name that would break ids",
        ),
        pytest.param(
            "[models.x]\ncard = 'tiny-mo'",
            "E-unknown-card",
            "m.toml: models.x.card",
            "unknown card 'tiny-mo'",
            "did you mean 'tiny-moe'?",
            id="card",
        ),
        pytest.param(
            "[models.x]\ncard = 'tiny-moe'\nquant = 'IQ4_XZ'",
            "E-unknown-quant",
            "m.toml: models.x.quant",
            "unknown quant 'IQ4_XZ'",
            "did you mean 'IQ4_XS'?",
            id="quant",
        ),
        pytest.param(
            "[builds.IK]\nfork = 'llama.cpp'\nwheel = 'xllamacpp'",
            "E-duplicate-name",
            "m.toml: builds.IK",
            "'IK' is declared twice (in ids, upper and lower case, '_' and '-' are the same)",
            "",
            id="names that fold to one",
        ),
        pytest.param(
            "[builds.other]\nfork = 'llama.cpp'\nwheel = 'xlamacpp'",
            "E-unknown-wheel",
            "m.toml: builds.other.wheel",
            "no engine is known for the wheel 'xlamacpp'",
            "did you mean 'xllamacpp'?",
            id="wheel",
        ),
        pytest.param(
            "[builds.other]\nfork = 'ik_llama.cpp'\nwheel = 'xllamacpp'",
            "E-wrong-fork",
            "m.toml: builds.other.wheel",
            "the wheel 'xllamacpp' is of llama.cpp",
            'write fork = "llama.cpp"',
            id="wheel of the other fork",
        ),
        pytest.param(
            "[node_classes.c]\nisa = ['avx3']",
            "E-matrix-invalid",
            "m.toml: node_classes.c.isa",
            "unknown instruction set 'avx3'",
            "did you mean 'avx'?",
            id="instruction set",
        ),
        pytest.param(
            '[environment]\n"A=B" = "1"',
            "E-matrix-invalid",
            'm.toml: environment."A=B"',
            "the name of a variable is letters",
            "",
            id="name of a variable",
        ),
        pytest.param(
            '[environment]\nA = "1\\u0000"',
            "E-matrix-invalid",
            "m.toml: environment.A",
            "a variable can't hold a null character",
            "",
            id="null character",
        ),
        pytest.param(
            "[builds.other]\nfork = 'llama.cpp'\npath = \"a\\u0000b\"",
            "E-matrix-invalid",
            "m.toml: builds.other.path",
            "a path can't hold a null character",
            "",
            id="path with a null character",
        ),
        pytest.param(
            f"[models.other]\npath = '{'a' * 300}'",
            "E-matrix-invalid",
            "m.toml: models.other.path",
            "a path has at most 4095 bytes, and 255 between slashes",
            "",
            id="long path",
        ),
    ],
)
def test_a_fault_of_builds_and_models_is_named(  # noqa: PLR0917 - one parameter for each part of the error
    tmp_path: Path, text: str, slug: str, where: str, message: str, hint: str
) -> None:
    """Slug, place, message and hint are exactly right."""
    assert_fault(tmp_path, text, slug, where, message, hint)
