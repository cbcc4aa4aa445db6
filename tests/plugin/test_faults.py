"""Whatever dies in the middle of a run: no process stays, and the journal accounts for every planned case."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from mini_matrix import CASES, endless

from harness.domain.words import Status
from harness.execution.executors import NAMES
from harness.reporting.projections import write_projections
from harness.reporting.replay import read_journal

_PATIENCE_S = 90.0


@pytest.fixture
def start(project: pytest.Pytester) -> Iterator[Callable[..., Driver]]:
    """Starts a driver of which nothing stays, also where the test fails: it would hold up all that come after."""
    started: list[Driver] = []

    def begin(executor: str, blocks: int = 60) -> Driver:
        started.append(Driver(project.path, executor, blocks))
        return started[-1]

    yield begin
    for driver in started:
        driver.process.kill()
        driver.process.wait()


class Driver:
    """A real ``pytest -m moe`` in a process of its own, on a project's long matrix."""

    def __init__(self, project: Path, executor: str, blocks: int) -> None:
        self.reports = project / "moe-reports"
        matrix = project / "matrices" / "local.toml"
        matrix.write_text(endless(matrix.read_text(), blocks))
        command = [sys.executable, "-m", "pytest", "-m", "moe", f"--moe-executor={executor}", "-p", "no:cacheprovider"]
        self.log = project / "driver.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, cwd=project, stdout=log, stderr=log, start_new_session=True)

    def wait_for_runs(self, count: int) -> None:
        """Wait until the journal has that many finished engine processes."""
        deadline = time.monotonic() + _PATIENCE_S
        journal = self.reports / "journal.jsonl"
        while not journal.exists() or journal.read_text().count('"event": "process"') < count:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    def below(self) -> list[psutil.Process]:
        """Every process below the driver."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def engine(self) -> psutil.Process:
        """The running engine."""
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            for process in self.below():
                if "harness.engines.embedded" in _command(process):
                    return process
            time.sleep(0.01)
        pytest.fail("no engine ran")


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def assert_all_gone(processes: list[psutil.Process]) -> None:
    """Every one of them ends soon."""
    _, alive = psutil.wait_procs(processes, timeout=_PATIENCE_S)
    left = [f"{process.pid} {_command(process)[:150]}" for process in alive if process.is_running()]
    assert left == []


def assert_accounted_for(reports: Path) -> None:
    """JUnit is made again from the journal with every planned case; what never finished is an error."""
    state = read_journal(reports)
    verdicts = state.final_verdicts()
    assert len(verdicts) == len(state.planned) == CASES
    write_projections(state, reports)
    junit = (reports / "junit.xml").read_text()
    assert junit.count("<testcase") == CASES


@pytest.mark.parametrize(
    ("executor", "how"), [("local", signal.SIGKILL), ("local", signal.SIGHUP), ("ray", signal.SIGKILL)]
)
def test_a_killed_driver_leaves_no_process_and_a_whole_journal(
    start: Callable[..., Driver], executor: str, how: signal.Signals
) -> None:
    """Kill the driver while an engine measures."""
    driver = start(executor)
    driver.wait_for_runs(3)
    driver.engine()
    below = driver.below()
    driver.process.send_signal(how)
    driver.process.wait(_PATIENCE_S)
    assert_all_gone(below)
    assert_accounted_for(driver.reports)
    statuses = {verdict.status for verdict in read_journal(driver.reports).final_verdicts()}
    assert statuses == {Status.ERROR}, "a case that never finished must be an error"


@pytest.mark.parametrize("executor", NAMES)
def test_sigterm_ends_as_ctrl_c_does(start: Callable[..., Driver], executor: str) -> None:
    """CI systems cancel with TERM."""
    driver = start(executor)
    driver.wait_for_runs(3)
    below = driver.below()
    driver.process.terminate()
    assert driver.process.wait(_PATIENCE_S) == pytest.ExitCode.INTERRUPTED, driver.log.read_text()
    assert_all_gone(below)
    assert (driver.reports / "junit.xml").is_file()
    assert_accounted_for(driver.reports)
    assert "Traceback" not in driver.log.read_text()


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("executor", NAMES)
def test_ctrl_c_ends_at_once_and_reports_what_was_measured(
    start: Callable[..., Driver], executor: str, times: int
) -> None:
    """SIGINT, also from an impatient user: pytest's own exit code, JUnit written, nothing left."""
    driver = start(executor)
    driver.wait_for_runs(3)
    below = driver.below()
    for _ in range(times):
        os.killpg(driver.process.pid, signal.SIGINT)
        time.sleep(0.3)
    assert driver.process.wait(_PATIENCE_S) == pytest.ExitCode.INTERRUPTED, driver.log.read_text()
    assert_all_gone(below)
    assert (driver.reports / "junit.xml").is_file()
    assert_accounted_for(driver.reports)
    assert "Traceback" not in driver.log.read_text()


def test_a_killed_engine_is_a_finding_and_the_run_goes_on(start: Callable[..., Driver]) -> None:
    """An engine is killed with -9: its arm fails and names the signal, the other arm's cases are measured."""
    driver = start("local", blocks=8)
    driver.wait_for_runs(3)
    victim = driver.engine()
    victim.kill()
    driver.process.wait(_PATIENCE_S)
    assert_accounted_for(driver.reports)
    verdicts = read_journal(driver.reports).final_verdicts()
    assert "SIGKILL" in " ".join(verdict.reason for verdict in verdicts)
    assert any(verdict.status is Status.PASS for verdict in verdicts)
    assert any(verdict.status is not Status.PASS for verdict in verdicts)
