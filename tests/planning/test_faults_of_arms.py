"""Faults of flags, named axes, configurations and the exceptions from their product, each at its key."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning_support import CONFIGURATION, assert_fault


@pytest.mark.parametrize(
    ("text", "slug", "where", "message", "hint"),
    [
        pytest.param(
            "[flags]\nfa = [[0]]",
            "E-matrix-invalid",
            "m.toml: flags.fa",
            "expected a number, a text or a boolean, found a list ([0])",
            "",
            id="list in an axis",
        ),
        pytest.param(
            "[flags]\nfa = []",
            "E-matrix-invalid",
            "m.toml: flags.fa",
            "expected at least one value, found an empty list",
            "",
            id="empty axis",
        ),
        pytest.param(
            "[flags]\nfa = [1, true]",
            "E-matrix-invalid",
            "m.toml: flags.fa",
            "value 1 is listed twice",
            "",
            id="axis with a value twice",
        ),
        pytest.param(
            "[flags]\nfa = nan",
            "E-matrix-invalid",
            "m.toml: flags.fa",
            "expected a finite number, found nan",
            "",
            id="not a number",
        ),
        pytest.param(
            "[[exclude]]",
            "E-matrix-invalid",
            "m.toml: exclude[0]",
            "an empty exclude would remove every arm; say which ones",
            "",
            id="empty exclude",
        ),
        pytest.param(
            "[flags]\nfmo = 1",
            "E-unknown-flag",
            "m.toml: flags.fmo",
            "unknown flag 'fmo'",
            "did you mean 'fmoe'?",
            id="flag",
        ),
        pytest.param(
            "[flags]\nrun-time-repack = 1",
            "E-unknown-flag",
            "m.toml: flags.run-time-repack",
            "unknown flag 'run-time-repack'",
            "did you mean 'rtr'?",
            id="option instead of flag",
        ),
        pytest.param(
            "[[when]]\nfork = 'ik_llama.cpp'\nflags = { rtrr = 1 }",
            "E-unknown-flag",
            "m.toml: when[0].flags.rtrr",
            "unknown flag 'rtrr'",
            "did you mean 'rtr'?",
            id="flag of a when",
        ),
        pytest.param(
            "[[include]]\nbuild = 'mainlin'\nmodel = 'tiny'",
            "E-unknown-build",
            "m.toml: include[0].build",
            "unknown build 'mainlin'",
            "did you mean 'mainline'?",
            id="build",
        ),
        pytest.param(
            "[[exclude]]\nmodel = 'tinny'",
            "E-unknown-model",
            "m.toml: exclude[0].model",
            "unknown model 'tinny'",
            "did you mean 'tiny'?",
            id="model",
        ),
        pytest.param(
            "[[exclude]]\nquant = 'Q4_K_M'",
            "E-unknown-quant",
            "m.toml: exclude[0].quant",
            "unknown quant 'Q4_K_M'",
            "known: IQ4_XS",
            id="quant that no model has",
        ),
        pytest.param(
            "[[exclude]]\nnode_class = 'gpu'",
            "E-unknown-node-class",
            "m.toml: exclude[0].node_class",
            "unknown node class 'gpu'",
            "known: any",
            id="node class",
        ),
        pytest.param(
            CONFIGURATION.replace("ctk", "fmo"),
            "E-unknown-flag",
            "m.toml: configurations.new.fmo",
            "unknown flag 'fmo'",
            "did you mean 'fmoe'?",
            id="flag of a configuration",
        ),
    ],
)
def test_a_fault_of_arms_is_named(  # noqa: PLR0917 - one parameter for each part of the error
    tmp_path: Path, text: str, slug: str, where: str, message: str, hint: str
) -> None:
    """Slug, place, message and hint are exactly right."""
    assert_fault(tmp_path, text, slug, where, message, hint)
