"""``moe-harness ab`` as a person meets it: in a process of its own, in an empty folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pexpect
import pytest
from forked import run_forked

from harness.models.cache import ensure_model

COMMAND = [sys.executable, "-m", "harness.cli", "ab"]
STANDIN = Path(__file__).parent.parent / "standin" / "llama_bench.py"
SMALL = ("-p", "32", "-n", "4", "-r", "2")
_PATIENCE_S = 120

pytestmark = pytest.mark.skipif(
    os.getpriority(os.PRIO_PROCESS, 0) != 0, reason="niced: speed is judged at niceness 0 only, so ab refuses to run"
)


def ab(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_forked("moe-harness", "ab", *arguments, cwd=folder)


def standin(folder: Path, **told: object) -> Path:
    """A build by path, whose program measures as told."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(STANDIN, folder / "llama-bench")
    (folder / "standin.json").write_text(json.dumps({"do": "rows", **told}))
    return folder


def rows(result: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    return {row["workload"]: row for row in json.loads(result.stdout)["results"]}


# ---- real engines ----------------------------------------------------------------------------------------------------


def test_the_two_wheels_are_compared_on_the_tiny_model(tmp_path: Path) -> None:
    """The command of the README, shorter."""
    result = ab(tmp_path, "mainline", "ik", "--minutes", "0.5", "--format", "json", "--", *SMALL)
    told = json.loads(result.stdout)
    assert result.returncode in {0, 1, 3}, result.stderr
    assert [build["fork"] for build in told["builds"]] == ["llama.cpp", "ik_llama.cpp"]
    assert all(build["content_key"] and build["engine"]["package_version"] for build in told["builds"])
    assert told["synthetic"] is True
    assert told["outputs"]["equivalence"] in {"bitwise", "greedy", "near_tie", None}
    assert set(rows(result)) == {"pp32", "tg4"}
    for row in rows(result).values():
        assert row["verdict"] in {"regressed", "improved", "equivalent", "inconclusive"}
        assert row["low"] <= row["ratio"] <= row["high"]
        assert row["baseline"] > 0
        assert row["candidate"] > 0
    assert "burn-in done" in result.stderr
    reports = Path(told["reports"])
    assert (tmp_path / reports / "journal.jsonl").is_file()
    assert (tmp_path / reports / "junit.xml").is_file()


def test_two_flag_sets_of_one_build_are_one_argument_each(tmp_path: Path, tiny_model: Path) -> None:
    arguments = ("ik+rtr=0", "ik+rtr=1", "-m", f"{tiny_model}", "--minutes", "0.3", "--reports", "here")
    result = ab(tmp_path, *arguments, "--", *SMALL)
    assert result.returncode in {0, 1, 3}, result.stderr
    assert "ik+rtr=1" in result.stdout
    assert "changes along with it: mmap 1 -> 0" in result.stdout
    assert "random weights" in result.stdout, "the file says that it was made of a card"
    again = run_forked("moe-harness", "report", "here", "--format", "json", cwd=tmp_path)
    told = {verdict["case"]: verdict for verdict in json.loads(again.stdout)["verdicts"]}
    assert any("ik+rtr=0..ik+rtr=1/pp32" in case for case in told)


# ---- planted slowdowns -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("speeds", "code", "word", "said"),
    [
        ((100.0, 80.0), 1, "regressed", "new is 20.0 % slower, certain"),
        ((80.0, 100.0), 0, "improved", "new is 25.0 % faster, certain"),
        ((100.0, 100.5), 0, "equivalent", "new is as fast as old within 5 %"),
    ],
)
def test_a_planted_change_is_found_in_either_direction(
    tmp_path: Path, speeds: tuple[float, float], code: int, word: str, said: str
) -> None:
    """Swapping the arms turns the verdict round."""
    tiny_model = ensure_model("tiny-moe", "IQ4_XS")
    builds = [str(standin(tmp_path / name, tps=tps)) for name, tps in zip(("old", "new"), speeds, strict=True)]
    result = ab(tmp_path, *builds, "-m", f"{tiny_model}", "--reports", "r", "--", *SMALL)
    assert result.returncode == code, result.stdout + result.stderr
    assert f"pp32: {said}" in result.stdout
    assert "everything is decided" in result.stdout
    listed = ab(tmp_path, *builds, "-m", f"{tiny_model}", "--reports", "s", "--format", "json", "--", *SMALL)
    assert {row["verdict"] for row in rows(listed).values()} == {word}
    assert abs(rows(listed)["tg4"]["ratio"] / (speeds[1] / speeds[0]) - 1) < 1e-3


def test_gain_and_loss_are_told_beside_each_other(tmp_path: Path, tiny_model: Path) -> None:
    old = standin(tmp_path / "old", tps=100.0)
    new = standin(tmp_path / "new", tps=100.0, pp_tps=112.0, tg_tps=64.0)
    result = ab(tmp_path, f"{old}", f"{new}", "-m", f"{tiny_model}", "--", *SMALL)
    assert result.returncode == 1
    assert "mixed: pp32 12.0 % faster; tg4 36.0 % slower" in result.stdout


def test_a_candidate_that_crashes_is_a_finding(tmp_path: Path, tiny_model: Path) -> None:
    old, new = standin(tmp_path / "old"), standin(tmp_path / "new", do="crash", crash_after=0)
    result = ab(tmp_path, f"{old}", f"{new}", "-m", f"{tiny_model}", "--format", "json", "--", *SMALL)
    assert result.returncode == 1
    assert {(row["verdict"], row["status"]) for row in rows(result).values()} == {("not_comparable", "fail")}
    swapped = ab(tmp_path, f"{new}", f"{old}", "-m", f"{tiny_model}", "--", *SMALL)
    assert swapped.returncode == 3, "without a baseline nothing is known of the candidate"
    assert "no baseline" in swapped.stdout
    for told in (result, swapped):
        assert "everything is decided" not in told.stdout
    assert json.loads(result.stdout)["end"] == "failed"
    assert "no speed could be compared" in swapped.stdout


def test_markdown_is_for_a_page(tmp_path: Path, tiny_model: Path) -> None:
    builds = [str(standin(tmp_path / name, tps=tps)) for name, tps in (("old", 100.0), ("new", 80.0))]
    result = ab(tmp_path, *builds, "-m", f"{tiny_model}", "--format", "markdown", "--", *SMALL)
    lines = result.stdout.splitlines()
    assert lines[0].startswith("- `old old ")
    assert lines[1].startswith("- `new new ")
    assert re.fullmatch(r"- `on tiny\S*.*; margin 5 %, alpha 0.001`", lines[2])
    table = lines[lines.index("") + 1 :]
    assert table[0].startswith("| workload | `old` t/s | `new` t/s |")
    assert table[2].startswith("| `pp32` | ")
    assert table[2].endswith("| regressed |")
    assert "- `tg4: new is 20.0 % slower, certain" in result.stdout


def test_in_one_stream_it_says_once_what_is_compared(tmp_path: Path, tiny_model: Path) -> None:
    """As after ``2>&1``: the lines while it ran have said it already."""
    builds = [str(standin(tmp_path / name, tps=tps)) for name, tps in (("old", 100.0), ("new", 50.0))]
    arguments = [*COMMAND, *builds, "-m", f"{tiny_model}", "--", *SMALL]
    both = subprocess.run(
        arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120
    )
    assert both.stdout.count("alpha 0.001") == 1
    assert "rests on:" in both.stdout
    assert "alpha 0.001" in ab(tmp_path, *builds, "-m", f"{tiny_model}", "--", *SMALL).stdout


# ---- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ik",), "E-one-build: there is only ik: ab compares two (e.g. ik ik+fa=0)"),
        (("ik", "--", "-fa", "1"), "E-one-build"),
        (("ik", "ik"), "E-no-contrast"),
        (("mainlin", "ik"), "did you mean 'mainline'?"),
        (("mainline", "ik", "-m", "nowhere.gguf"), "E-model-missing"),
        (("mainline", "ik", "-m", "tiny-mo"), "did you mean 'tiny-moe'?"),
        (("mainline", "ik", "--", "-fmo", "1"), "did you mean '-fmoe'?"),
        (("mainline", "ik", "--", "-fmoe", "1"), "say it with the build that has it: ik+fmoe=1"),
        (("mainline", "ik", "fa=0,1"), "E-several-values"),
        (("mainline", "ik", "--threads", "2", "--", "-t", "1"), "two numbers of threads"),
        (("mainline", "ik", "-m", "tiny-moe", "--", "-m", "other.gguf"), "two models"),
        (("mainline", "ik", "--", "-p", "0", "-n", "0"), "E-no-workload"),
        (("{standin}", "{standin}+rtr=1", "--", "-d", "64"), "E-unsupported-workload"),
        (("{standin}", "ik", "--check-outputs"), "E-no-outputs"),
        (("mainline", "ik", "--minutes", "0"), "--minutes"),
        (("mainline", "ik", "--margin", "2"), "--margin"),
    ],
)
def test_bad_input_is_2_with_one_message_and_no_journal(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    program = standin(tmp_path / "build")
    result = ab(tmp_path, *(each.format(standin=program) for each in arguments))
    assert result.returncode == 2, result.stdout
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "moe-reports").exists()


def test_a_niced_run_is_refused_before_it_measures(tmp_path: Path) -> None:
    command = ["nice", "-n", "1", *COMMAND, "mainline", "ik"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=_PATIENCE_S)
    assert result.returncode == 2
    assert "E-niceness: this runs at niceness 1" in result.stderr


def test_bad_input_is_data_where_data_was_asked_for(tmp_path: Path) -> None:
    result = ab(tmp_path, "ik", "ik", "--format", "json")
    assert result.returncode == 2
    assert json.loads(result.stdout)["error"]["slug"] == "E-no-contrast"


# ---- terminals -------------------------------------------------------------------------------------------------------


def plain(child: pexpect.spawn[str]) -> str:
    """What was shown since the last expectation, without what drives the terminal."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", str(child.before))


def spawned(folder: Path, *arguments: str, width: int = 100, **variables: str) -> pexpect.spawn[str]:
    environment = {**os.environ, "TERM": "xterm-256color", **variables}
    for name in ("NO_COLOR", "COLUMNS", "FORCE_COLOR"):
        if name not in variables:
            environment.pop(name, None)
    return pexpect.spawn(
        COMMAND[0],
        [*COMMAND[1:], *arguments],
        cwd=str(folder),
        dimensions=(30, width),
        encoding="utf-8",
        timeout=_PATIENCE_S,
        env=environment,  # type: ignore[arg-type]  # a mapping like os.environ
    )


@pytest.mark.parametrize("width", [100, 44])
def test_on_a_terminal_the_table_lives(tmp_path: Path, tiny_model: Path, width: int) -> None:
    """It is drawn over itself, no line is longer than the terminal is wide, and the end stands there once."""
    builds = [str(standin(tmp_path / name, tps=tps)) for name, tps in (("old", 100.0), ("new", 80.0))]
    child = spawned(tmp_path, *builds, "-m", f"{tiny_model}", "--", *SMALL, width=width)
    child.expect(r"quad \d, process \d of 4")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 1
    shown = str(child.before)
    assert "\x1b[2K" in shown, "the live table is erased"
    assert "\x1b[1;31m" in shown, "a loss is red"
    assert shown.count("new is 20.0 % slower, certain") == 2
    table = [line.rstrip() for line in plain(child).splitlines() if line.startswith(("pp32 ", "tg4 "))]
    assert len(table) >= 2
    assert max(map(len, table)) <= width


def test_no_color_is_respected(tmp_path: Path, tiny_model: Path) -> None:
    builds = [str(standin(tmp_path / name, tps=tps)) for name, tps in (("old", 100.0), ("new", 80.0))]
    child = spawned(tmp_path, *builds, "-m", f"{tiny_model}", "--", *SMALL, NO_COLOR="1")
    child.expect(pexpect.EOF)
    child.close()
    assert "slower, certain" in str(child.before)
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", str(child.before))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_with_what_was_measured(tmp_path: Path, number: signal.Signals) -> None:
    """Judged, shown, kept; 130."""
    endless = ("ik+fa=0", "ik+fa=1", "--margin", "0.0001", "--alpha", "1e-300", "--reports", "r")
    child = spawned(tmp_path, *endless, "--", *SMALL)
    child.expect("quad 3")
    child.kill(number)
    child.expect(pexpect.EOF)
    child.close()
    shown = plain(child)
    assert child.exitstatus == 130, shown
    assert "you stopped it" in shown
    assert "pp32: not decided: ik+fa=1" in shown
    journal = (tmp_path / "r" / "journal.jsonl").read_text()
    assert '"event": "verdict"' in journal
    assert '"event": "run_finished"' not in journal


@pytest.mark.parametrize(
    ("made", "number"), [(".tiny-moe-F16-*.part", signal.SIGINT), (".tiny-moe-IQ4_XS-*.part", signal.SIGTERM)]
)
def test_it_is_ended_while_the_model_is_made(tmp_path: Path, made: str, number: signal.Signals) -> None:
    """Between two pieces of the weights, or with the quantizer: the model is not made first, nor left half-made."""
    cache = tmp_path / "cache" / "models"
    child = spawned(tmp_path, "mainline", "ik", "--reports", "r", "--", *SMALL, MOE_CACHE_DIR=f"{cache.parent}")
    deadline = time.monotonic() + _PATIENCE_S
    while not list(cache.glob(made)):
        assert time.monotonic() < deadline
        assert child.isalive()
        time.sleep(0.02)
    child.kill(number)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130, plain(child)
    assert "you stopped it" in plain(child)
    assert not list(cache.glob("*IQ4_XS*.gguf"))
    assert not list(cache.glob(".*.part"))
    journal = (tmp_path / "r" / "journal.jsonl").read_text()
    assert "E-interrupted" in journal
    assert '"event": "verdict"' in journal


def test_another_measurement_on_the_host_is_waited_for_and_named(tmp_path: Path, tiny_model: Path) -> None:
    hold = (
        "import time; from pathlib import Path; from harness.execution.hostlock import measurement_lock\n"
        "with measurement_lock(0, 'the nightly run'):\n    Path('held').touch(); time.sleep(3600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", hold], cwd=tmp_path)
    try:
        while not (tmp_path / "held").exists():
            time.sleep(0.05)
        builds = [str(standin(tmp_path / name, tps=tps)) for name, tps in (("old", 100.0), ("new", 80.0))]
        child = spawned(tmp_path, *builds, "-m", f"{tiny_model}", "--", *SMALL)
        child.expect(rf"waiting for the host.*process {holder.pid}")
    finally:
        holder.kill()
        holder.wait()
    child.expect("slower, certain")
    child.expect(pexpect.EOF)
    child.close()
