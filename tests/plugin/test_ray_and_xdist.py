"""Ray starts only for who needs it, stays on loopback, and is shared by xdist's workers."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
from mini_matrix import CASES, endless

from harness.reporting.replay import read_journal

STARTS = 6
"""Process starts of a job of two arms: a burn-in and two blocks of each."""


def test_ray_is_not_even_imported_when_no_selected_case_needs_it(project: pytest.Pytester) -> None:
    """Cases that planning decides need no executor: no Ray, no wait for it."""
    matrix = project.path / "matrices" / "local.toml"
    matrix.write_text(matrix.read_text() + "\n[node_classes.huge]\nmin_ram_gib = 1000000\n")
    project.makeconftest(
        """
        import sys
        def pytest_sessionfinish():
            assert "ray" not in sys.modules
        """
    )
    result = project.runpytest_subprocess("-m", "moe", "-p", "no:cacheprovider")
    assert result.parseoutcomes() == {"skipped": CASES}
    assert result.ret == 0


def test_xdist_shares_one_cluster_and_runs_each_job_once(project: pytest.Pytester) -> None:
    """Two workers, two jobs: every case has one verdict, every step ran once, one journal, one JUnit file."""
    _with_two_jobs(project.path / "matrices" / "local.toml")
    result = project.runpytest_subprocess("-m", "moe", "-n2", "-p", "no:cacheprovider")
    outcomes = result.parseoutcomes()
    assert outcomes.get("passed", 0) + outcomes.get("skipped", 0) == 2 * CASES
    events = Counter(
        line.split('"event": "')[1].split('"')[0]
        for line in (project.path / "moe-reports" / "journal.jsonl").read_text().splitlines()
    )
    assert events["run_started"] == 1
    assert events["planned"] == events["verdict"] == 2 * CASES
    assert events["job_started"] == events["job_finished"] == 2
    assert events["process"] == 2 * STARTS
    state = read_journal(project.path / "moe-reports")
    assert state.problems == ()
    assert (project.path / "moe-reports" / "junit.xml").read_text().count("<testcase") == 2 * CASES


def test_xdist_with_the_local_executor_measures_one_at_a_time(project: pytest.Pytester) -> None:
    """Workers with executors of their own share the host lock: no two engines overlap."""
    _with_two_jobs(project.path / "matrices" / "local.toml")
    result = project.runpytest_subprocess("-m", "moe", "-n2", "--moe-executor=local", "-p", "no:cacheprovider")
    assert sum(result.parseoutcomes().get(word, 0) for word in ("passed", "skipped")) == 2 * CASES
    jobs = [
        line.split('"job": "')[1].split('"')[0]
        for line in (project.path / "moe-reports" / "journal.jsonl").read_text().splitlines()
        if '"event": "process"' in line
    ]
    assert jobs == sorted(jobs, key=jobs.index), "processes of two jobs were interleaved"


def test_workers_that_reach_no_cluster_say_so_for_each_case(project: pytest.Pytester) -> None:
    result = project.runpytest("-m", "moe", "-n", "1", "--ray-address=127.0.0.1:1")
    result.assert_outcomes(errors=CASES)
    shown = result.stdout.str() + result.stderr.str()
    assert shown.count("E-ray-unreachable: ") >= CASES
    for word in ("Traceback", "KeyError", "During handling"):
        assert word not in shown


def test_an_embedded_cluster_listens_on_loopback_only(project: pytest.Pytester) -> None:
    """Every listening socket below the driver is bound to 127.0.0.1 or ::1."""
    matrix = project.path / "matrices" / "local.toml"
    matrix.write_text(endless(matrix.read_text()))
    with (project.path / "log").open("w") as log:
        driver = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-m", "moe", "-p", "no:cacheprovider"],
            cwd=project.path,
            stdout=log,
            stderr=log,
        )
    try:
        _wait_for(project.path / "moe-reports" / "journal.jsonl", '"event": "process"')
        addresses = _listening(psutil.Process(driver.pid))
    finally:
        driver.kill()
        driver.wait()
    assert addresses, "the cluster's sockets were not found"
    assert {address for address in addresses if address not in _LOOPBACK} == set()


_LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


def _listening(process: psutil.Process) -> set[str]:
    found = set()
    for each in [process, *process.children(recursive=True)]:
        try:
            found |= {link.laddr.ip for link in each.net_connections("inet") if link.status == psutil.CONN_LISTEN}
        except psutil.Error:
            continue
    return found


def _wait_for(file: Path, text: str) -> None:
    deadline = time.monotonic() + 120
    while not (file.exists() and text in file.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _with_two_jobs(matrix: Path) -> None:
    """A second job of the same model, and of each no more than it takes to see that they are shared out: one quad."""
    text = matrix.read_text()
    model = text.split('path = "')[1].split('"')[0]
    text = text.replace("[flags]", f'[models.again]\npath = "{model}"\n[flags]')
    matrix.write_text(text.replace("blocks = 4", "blocks = 2"))
