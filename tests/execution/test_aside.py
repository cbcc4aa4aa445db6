"""Long work beside a generator: what it reports comes through, and it ends with the generator."""

from __future__ import annotations

import errno
import os
import re
import threading
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import pytest
from job_support import job_of, wheel_arm

from harness.domain.errors import BadInput
from harness.domain.halting import Stopped
from harness.domain.stopping import RunWholeSchedule
from harness.execution import preparing
from harness.execution.aside import told_while
from harness.execution.events import Finished, Progress
from harness.execution.hostlock import measurement_lock
from harness.execution.run_job import run_job


def drained(generator: Generator[str, None, str]) -> tuple[list[str], str]:
    told = []
    while True:
        try:
            told.append(next(generator))
        except StopIteration as ended:
            return told, ended.value


def test_what_is_told_comes_while_the_work_goes_on() -> None:
    """Of many reports at once the last; what the work returns is returned."""
    gate = threading.Event()

    def work(report: Callable[[str], None], _: Callable[[], bool]) -> str:
        for number in range(1000):
            report(f"{number}")
        assert gate.wait(30)
        return "done"

    working = told_while(work, lambda: False)
    assert next(working) == "999"
    gate.set()
    assert drained(working)[1] == "done"


def test_what_the_work_raises_is_raised() -> None:
    def work(report: Callable[[str], None], stop: Callable[[], bool]) -> str:
        raise BadInput("E-x", "no")

    with pytest.raises(BadInput, match="E-x"):
        drained(told_while(work, lambda: False))


def test_a_generator_that_is_closed_ends_the_work() -> None:
    """A cancelled task must leave nothing behind that goes on fetching."""
    ended = threading.Event()

    def work(report: Callable[[str], None], stop: Callable[[], bool]) -> str:
        report("begun")
        while not stop():
            time.sleep(0.01)
        ended.set()
        raise Stopped

    working = told_while(work, lambda: False)
    assert next(working) == "begun"
    working.close()
    assert ended.is_set()


def test_a_job_tells_what_it_fetches_and_makes(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before its first process; as preparation, so that logs tell of it too."""
    real = preparing.model_path

    def slowly(*args: object, **said: object) -> Path:
        time.sleep(1)
        return real(*args, **said)  # type: ignore[arg-type] - handed on as it came

    monkeypatch.setattr(preparing, "model_path", slowly)
    monkeypatch.setattr(preparing, "local_build", lambda build, *, report, **_: (report("fetching it"), build)[1])
    events = list(run_job(job_of(wheel_arm(tiny_model)), 1, RunWholeSchedule()))
    told = [event.message for event in events if isinstance(event, Progress) and event.preparing]
    assert told[:2] == ["preparing models", "fetching it"]
    assert [event.failure for event in events if isinstance(event, Finished)] == [None]


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOSPC, "infrastructure"), (errno.ENOENT, "harness")])
def test_what_a_machine_lacks_is_infrastructure(
    number: int, kind: str, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk may be tried elsewhere; a file that we should not have asked for is a fault of ours everywhere."""

    def full(*_: object, **__: object) -> Path:
        raise OSError(number, os.strerror(number), "/var/tmp/x")

    monkeypatch.setattr(preparing, "model_path", full)
    *_, end = run_job(job_of(wheel_arm(tiny_model)), 1, RunWholeSchedule())
    assert isinstance(end, Finished)
    assert end.failure is not None
    assert (end.failure.kind, end.failure.may_be_retried) == (kind, kind == "infrastructure")


def test_a_job_that_waits_for_the_host_says_for_whom(tiny_model: Path) -> None:
    """As what takes long, so that logs tell of it too; once, and no more when the host is free."""
    with ExitStack() as other:
        other.enter_context(measurement_lock(0, "the nightly run"))
        told = []
        for event in run_job(job_of(wheel_arm(tiny_model)), 1, RunWholeSchedule()):
            if isinstance(event, Progress):
                told.append(event)
                if event.preparing:
                    other.close()
    waiting = [event for event in told if event.message.startswith("waiting for the host")]
    assert [event.preparing for event in waiting] == [False, True]
    assert [event.message for event in told if event.waiting][-1].startswith("waited ")
    assert re.search(r"on which measures process \d+ since .* for 'the nightly run'", waiting[1].message)
