"""A broken night is gone on with: what is whole is kept, the rest is run again, one journal tells all."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from mini_matrix import CASES

from harness.reporting.replay import read_journal

_PATIENCE_S = 120.0
_RUN = (sys.executable, "-m", "harness.cli", "run", "--executor=local")


def _two_jobs(project: pytest.Pytester) -> Path:
    """The mini matrix with its model twice: two jobs, of which the first can be whole."""
    matrix = project.path / "matrices" / "local.toml"
    model = matrix.read_text().split('path = "')[1].split('"')[0]
    text = matrix.read_text().replace("blocks = 4", "blocks = 2")
    matrix.write_text(text.replace("[flags]", f'[models.again]\npath = "{model}"\n[flags]'))
    return matrix


def _start(project: pytest.Pytester, *arguments: str) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "pytest", "-m", "moe", "--moe-executor=local", "-p", "no:cacheprovider", *arguments]
    out = (project.path / "driver.log").open("w")
    return subprocess.Popen(line, cwd=project.path, stdout=out, stderr=out, text=True)


def _events(reports: Path) -> list[dict[str, Any]]:
    found = []
    for line in (reports / "journal.jsonl").read_text().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def _kill_in_the_second_job(driver: subprocess.Popen[str], project: pytest.Pytester, tries: int) -> None:
    """Once that many tries of it have measured something."""
    journal = project.path / "moe-reports" / "journal.jsonl"
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        assert driver.poll() is None, (project.path / "driver.log").read_text()
        assert time.monotonic() < deadline
        if journal.exists():
            seen = {(event["job"], event["try"]) for event in _events(journal.parent) if event["event"] == "process"}
            if len(seen) > tries:
                break
        time.sleep(0.05)
    driver.send_signal(signal.SIGKILL)
    driver.wait()


def test_a_killed_run_is_resumed_twice_and_measures_nothing_twice(project: pytest.Pytester) -> None:
    """Kill -9 in the second job, a torn last line, kill -9 again, and then to the end; a changed matrix is refused."""
    matrix, reports = _two_jobs(project), project.path / "moe-reports"
    _kill_in_the_second_job(_start(project), project, 1)
    with (reports / "journal.jsonl").open("ab") as file:
        file.write(b'{"schema": 1, "event": "process", "t": "2026-')
    before = {event["case"]: event["verdict"] for event in _events(reports) if event["event"] == "verdict"}
    assert len(before) == CASES
    _kill_in_the_second_job(_start(project, "--moe-resume=moe-reports"), project, 2)

    whole = matrix.read_text()
    matrix.write_text(
        whole.replace("max_rss_mib = 4096.0", "max_rss_mib = 4000.0").replace("n_predict = 4", "n_predict = 5")
    )
    refused = project.runpytest("-m", "moe", "--moe-executor=local", "--moe-resume=moe-reports")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    shown = refused.stdout.str() + refused.stderr.str()
    assert "E-resume-other-plan" in shown
    assert "has another check" in shown
    assert "Traceback" not in shown
    matrix.write_text(whole)

    elsewhere = project.path / "rest"
    done = subprocess.run(
        [*_RUN, f"--reports={elsewhere}", f"--resume={reports}", "--", "-p", "no:cacheprovider"],
        cwd=project.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"{CASES} of {2 * CASES} cases are whole and kept, 1 job is run again" in done.stdout
    state, events = read_journal(elsewhere), _events(elsewhere)
    final = state.final_verdicts()
    assert (len(final), len(state.resumed), state.finished) == (2 * CASES, 2, True)
    assert {verdict.status for verdict in final} <= {"pass", "inconclusive"}
    assert done.returncode == (3 if any(verdict.status == "inconclusive" for verdict in final) else 0), done.stdout
    started = Counter((event["job"], event["try"]) for event in events if event["event"] == "job_started")
    first, second = (job for job, last in state.jobs.items())
    assert started == {(first, 1): 1, (second, 1): 1, (second, 2): 1, (second, 3): 1}
    after = [event for event in events if event["event"] == "verdict" and event["case"] in before]
    assert {event["case"]: event["verdict"] for event in after} == before
    assert len(after) == CASES
    suite = ET.parse(elsewhere / "junit.xml").getroot()  # noqa: S314 - our own
    assert len(suite.findall(".//testcase")) == 2 * CASES
    tries = [prop.get("value") for prop in suite.iter("property") if prop.get("name") == "try"]
    assert Counter(text.split(" ")[1] for text in tries if text) == {"1": CASES, "2": CASES, "3": CASES}
    assert "was tried 3 times" in (elsewhere / "summary.txt").read_text()


def test_a_run_that_broke_before_its_plan_was_written_begins_anew(project: pytest.Pytester) -> None:
    """Nothing was measured; the torn journal is kept beside the new one. A journal that is not there is refused."""
    reports = project.path / "moe-reports"
    reports.mkdir()
    (reports / "journal.jsonl").write_text('{"schema": 1, "event": "run_sta')
    select = "--moe-select=throughput/*tg4@any"
    done = project.runpytest("-m", "moe", "--moe-executor=local", select, "--moe-resume=moe-reports")
    assert done.parseoutcomes().get("passed", 0) > 0
    assert len(list(reports.glob("journal-*.jsonl"))) == 1
    assert read_journal(reports).finished
    missing = project.runpytest("-m", "moe", "--moe-executor=local", "--moe-resume=nowhere")
    assert missing.ret == pytest.ExitCode.USAGE_ERROR
    missing.stderr.fnmatch_lines(["*E-no-journal*"])
