"""``import``: any output as rows and problems."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli.main import cli, entry

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
HYBRID = RECORDINGS / "ik_llama_cpp-8337e4cd.q4k_hybrid.json"


def imported(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["import", *arguments], input=stdin)


def data(*arguments: str) -> Any:
    return json.loads(imported(*arguments, "--format", "json").stdout)


def test_rows_are_normalised_with_raw_samples() -> None:
    """Flags by one name, whole ns, what the row says of build and model."""
    result = imported(f"{HYBRID}", "--format", "json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert (found["format"], found["problems"]) == ("json", [])
    first = found["rows"][0]
    raw = json.loads(HYBRID.read_text("utf-8"))[0]
    assert first["samples_ns"] == raw["samples_ns"]
    assert all(isinstance(value, int) for value in first["samples_ns"])
    assert (first["workload"], first["tokens"], first["summary"]) == ("pp512", 512, None)
    assert first["settings"] | {"ot": "exps=CPU", "rtr": "0", "fmoe": "1", "fa": "1"} == first["settings"]
    assert (first["build"]["fork"], first["model"]["quant"]) == ("ik_llama.cpp", "Q4_K - Medium")
    assert first["where"] == f"{HYBRID}, row 1 (line 2)"


@pytest.mark.parametrize(
    ("name", "form", "rows"),
    [
        ("llama_cpp-0c1e570.depths.jsonl", "json", 8),
        ("llama_cpp-b11434.short.csv", "csv", 2),
        ("llama_cpp-b11434.short.sql", "sql", 2),
        ("ik_llama_cpp-8337e4cd.tables.md", "markdown", 8),
    ],
)
def test_every_format_is_told(name: str, form: str, rows: int) -> None:
    """Where there are no samples, mean and deviation, and how many repetitions are assumed."""
    found = data(f"{RECORDINGS / name}")
    assert (found["format"], len(found["rows"])) == (form, rows)
    for row in found["rows"]:
        assert bool(row["samples_ns"]) == (row["summary"] is None)
        assert row["summary"] is None or row["summary"]["assumed_repetitions"] == 5


def test_what_is_lost_is_named_and_ends_with_one(tmp_path: Path) -> None:
    """A crash in the middle: whole rows stay, the rest has slug, place and what was lost."""
    file = tmp_path / "cut.json"
    text = HYBRID.read_text("utf-8")
    file.write_text("warning: noise\n" + text[: text.index('"test_time"', text.index('"n_prompt": 2048'))], "utf-8")
    result = imported(f"{file}", "--format", "json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert [row["workload"] for row in found["rows"]] == ["pp512"]
    assert [(problem["slug"], problem["row_lost"]) for problem in found["problems"]] == [
        ("E-damaged-row", True),
        ("E-incomplete-output", False),
    ]
    assert found["problems"][0]["where"].startswith(f"{file}, line ")
    table = imported(f"{file}")
    assert table.exit_code == 1
    assert "lost: E-damaged-row" in table.stdout
    assert table.stdout.splitlines()[-1] == "1 row, 2 lost"


def test_rows_that_were_promised_are_asked_for() -> None:
    """What is missing is lost; what is there beside it is a note."""
    result = imported(f"{HYBRID}", "--expect", "pp512", "--expect", "tg128", "--format", "json")
    assert result.exit_code == 1
    problems = json.loads(result.stdout)["problems"]
    assert [(problem["slug"], problem["workload"]) for problem in problems] == [
        ("E-rows-missing", "tg128"),
        ("E-unexpected-row", "pp2048"),
        ("E-unexpected-row", "tg64"),
    ]
    assert (
        imported(f"{HYBRID}", *(part for name in ("pp512", "pp2048", "tg64") for part in ("--expect", name))).exit_code
        == 0
    )


@pytest.mark.parametrize(
    ("name", "slug", "said"),
    [
        ("ik_llama_cpp-8337e4cd.badflag.txt", "E-usage-text", "it refused an argument"),
        ("llama_cpp-b11434.bad.json", "E-nothing-readable", "it failed before the first"),
        ("llama_cpp-b11434.oom.stderr.txt", "E-nothing-readable", "no row of llama-bench"),
        ("none.json", "E-no-input", "No such file"),
    ],
)
def test_what_holds_no_row_is_bad_input(capsys: pytest.CaptureFixture[str], name: str, slug: str, said: str) -> None:
    """As data too where data was asked for."""
    with pytest.raises(SystemExit) as ended:
        entry(["import", f"{RECORDINGS / name}", "--format", "json"])
    assert ended.value.code == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["slug"] == slug
    assert said in error["message"]


def test_standard_input_is_read() -> None:
    """A pipe is a file."""
    result = imported("-", stdin=HYBRID.read_text("utf-8"))
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "3 rows"
