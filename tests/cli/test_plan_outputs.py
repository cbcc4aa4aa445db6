"""What a plan says of checks of outputs."""

from __future__ import annotations

import json
import re
from pathlib import Path

from click.testing import CliRunner

from harness.cli.plan import plan

MATRIX = """
name = "m"
[builds.ik]
fork = "ik_llama.cpp"
wheel = "ik-llama-cpp-python"
[models.tiny]
card = "tiny-moe"
quant = "IQ4_XS"
[flags]
fa = [0, 1]
[[workloads]]
pp = 32
[[checks]]
kind = "outputs"
name = "same"
factor = "fa"
baseline = 0
candidate = 1
prompts = "standard"
prompts_only = ["empty", "whole-ubatch", "chat"]
n_predict = 8
positions = 50
"""


def test_a_plan_says_how_much_is_evaluated(tmp_path: Path) -> None:
    """At most: the last 50 of each prompt, one token where the text is empty, and 20 forced ones each."""
    (tmp_path / "m.toml").write_text(MATRIX)
    file = str(tmp_path / "m.toml")
    rows = json.loads(CliRunner().invoke(plan, [file, "--format", "json"]).stdout)
    found = {row["kind"]: row["outputs"] for row in rows}
    assert found == {
        "throughput": None,
        "equivalence": {"prompts": 3, "positions": 101, "forced": 60, "generated": 24},
    }
    text = "3 prompts; of each arm up to 101 prompt positions, 60 forced and 24 generated tokens"
    assert f"outputs (1 case): {text}" in re.sub(r"\s+", " ", CliRunner().invoke(plan, [file]).stdout)
    assert f"outputs: {text}" in CliRunner().invoke(plan, [file, "--why", "equivalence"]).stdout
