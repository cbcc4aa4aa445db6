"""A matrix of which one build's recipe fails: its cases err by name, the others are judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.domain.words import Status
from harness.reporting.replay import read_journal

STANDIN = Path(__file__).parents[1] / "standin" / "llama_bench.py"
MATRIX = """
name = "recipes"
[builds.good]
recipe = "../good.toml"
[builds.bad]
recipe = "../bad.toml"
[models.tiny]
path = "{model}"
[[workloads]]
pp = 32
[[checks]]
kind = "floor"
tokens_per_second = 1.0
[policy]
warmup = 0
repetitions = 2
blocks = 4
burn_in = 1
"""
RECIPE = """
name = "{name}"
fork = "ik_llama.cpp"
repository = "sources"
build = [["mkdir", "bin"], ["cp", "{{source}}/llama-bench", "{{source}}/standin.json", "bin"], ["{last}"]]
"""


def test_the_cases_of_a_failing_recipe_err_by_name(
    pytester: pytest.Pytester,
    tiny_model: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The log's place is in the reason."""
    monkeypatch.setenv("MOE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    (pytester.mkdir("matrices") / "local.toml").write_text(MATRIX.format(model=tiny_model))
    sources = pytester.mkdir("sources")
    (sources / "llama-bench").write_text(STANDIN.read_text())
    (sources / "llama-bench").chmod(0o755)
    (sources / "standin.json").write_text('{"do": "rows", "tps": 100.0}')
    for name, last in (("good", "true"), ("bad", "false")):
        (pytester.path / f"{name}.toml").write_text(RECIPE.format(name=name, last=last))
    pytester.runpytest_subprocess("-m", "moe", "--moe-executor=local", "-p", "no:cacheprovider")
    verdicts = read_journal(pytester.path / "moe-reports").final_verdicts()
    by_build = {verdict.case.split("/")[2]: verdict for verdict in verdicts}
    assert by_build["good"].status in (Status.PASS, Status.NOT_JUDGED), "not judged where the tests run nicely"
    assert by_build["bad"].status is Status.ERROR
    assert "E-build-failed" in by_build["bad"].reason
    assert "/builds/logs/bad-" in by_build["bad"].reason
