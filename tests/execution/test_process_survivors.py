"""No process survives, whichever link of the chain worker -> shim -> supervisor -> engine is killed, and how."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

import harness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE_S = 10.0
"""Generous, for a busy machine: 0.05 s is usual."""

ENGINE = """
trap '' TERM HUP INT
(setsid sh -c 'trap "" TERM HUP INT; sleep 1000 & wait; sleep 1000' &)   # a daemon: forked twice, own session, deaf
setsid sleep 1000 &                                                      # a grandchild in its own session
sleep 0.2
echo ready
while :; do sleep 1; done
"""
PROCESSES = 6
"""Shim, supervisor, engine, daemon, the daemon's child, grandchild; the sleep of the engine's loop comes and goes."""

DRIVER = f"""
import os
from harness.execution.process import ProcessSpec, Supervisor, clean_environment
with Supervisor() as supervisor:
    spec = ProcessSpec(("sh", "-c", {ENGINE!r}), env=clean_environment(), timeout_s=120)
    print(*supervisor.pids, flush=True)
    supervisor.run(spec, on_stdout_line=lambda line: print(line, flush=True))
"""


def start_script(
    script: str, folder: Path, *, start_new_session: bool = False, **environment: str
) -> subprocess.Popen[str]:
    """Run a script that imports the harness, wherever it is installed; its stdin and stdout are ours."""
    path = folder / "driver.py"
    path.write_text(script)
    return subprocess.Popen(
        [sys.executable, str(path), str(folder)],
        env=os.environ | {"PYTHONPATH": str(Path(harness.__file__).parents[1])} | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=start_new_session,
    )


def marked(mark: str) -> set[int]:
    """Processes that carry the mark in their arguments or environment; zombies are no survivors."""
    return {process.pid for process in psutil.process_iter() if _carries(process, mark)}


def _carries(process: psutil.Process, mark: str) -> bool:
    try:
        return any(mark in text for text in (*process.cmdline(), *process.environ().values()))
    except psutil.Error:
        return False


def lives(pid: int) -> bool:
    """Whether it runs; a zombie does not, and some hosts' first process takes seconds to bury one."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until_none(list_them: Callable[[], set[int]]) -> None:
    """Wait until the list is empty; fails after PATIENCE_S."""
    begin = time.monotonic()
    while left := list_them():
        if time.monotonic() - begin > PATIENCE_S:
            pytest.fail(f"survivors: {[psutil.Process(pid).cmdline() for pid in left]}")
        time.sleep(0.02)


@dataclass
class Chain:
    """A running chain; the mark is on all of it but the driver."""

    driver: subprocess.Popen[str]
    shim: int
    supervisor: int
    mark: str

    def alive(self) -> set[int]:
        """All of it that runs."""
        return marked(self.mark) - {self.driver.pid}

    @property
    def engine(self) -> int:
        """The process that the driver asked for."""
        return next(child.pid for child in psutil.Process(self.supervisor).children() if child.cmdline()[-1] == ENGINE)


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    folder = tmp_path / "private"
    folder.mkdir()
    driver = start_script(DRIVER, tmp_path, TMPDIR=str(folder))
    assert driver.stdin is not None
    assert driver.stdout is not None
    shim, supervisor = map(int, driver.stdout.readline().split())
    assert driver.stdout.readline() == "ready\n"
    made = Chain(driver, shim, supervisor, str(folder))
    try:
        assert len(made.alive()) >= PROCESSES
        yield made
    finally:
        driver.kill()
        driver.wait()
        driver.stdout.close()
        driver.stdin.close()
        for pid in made.alive():
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV, signal.SIGHUP])
def test_nothing_survives_the_worker(chain: Chain, signum: signal.Signals) -> None:
    chain.driver.send_signal(signum)
    chain.driver.wait(PATIENCE_S)

    wait_until_none(chain.alive)
    assert not list(Path(chain.mark).iterdir()), "the private folder is left"


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("link", ["shim", "supervisor"])
def test_nothing_survives_a_killed_link(chain: Chain, link: str, signum: signal.Signals) -> None:
    os.kill(getattr(chain, link), signum)

    wait_until_none(chain.alive)
    assert chain.driver.wait(PATIENCE_S) == 1


def test_nothing_survives_the_engine(chain: Chain) -> None:
    os.kill(chain.engine, signal.SIGKILL)

    assert chain.driver.wait(PATIENCE_S) == 0
    assert not chain.alive()


def test_nothing_survives_when_the_worker_is_killed_just_after_its_shim(chain: Chain) -> None:
    """The order of Ray, which kills a worker's direct children before the worker."""
    os.kill(chain.shim, signal.SIGKILL)
    chain.driver.kill()
    chain.driver.wait(PATIENCE_S)

    wait_until_none(chain.alive)


def test_ctrl_c_at_a_terminal_is_the_workers_to_answer(tmp_path: Path) -> None:
    """It goes to the whole foreground process group; a worker may want to let the running engine finish."""
    script = f"import signal\nsignal.signal(signal.SIGINT, lambda *_: None)\n{DRIVER}"
    driver = start_script(script, tmp_path, start_new_session=True, TMPDIR=str(tmp_path))
    assert driver.stdout is not None
    with driver:
        pair = list(map(int, driver.stdout.readline().split()))
        driver.stdout.readline()
        os.killpg(driver.pid, signal.SIGINT)
        time.sleep(0.3)
        try:
            assert all(map(lives, [driver.pid, *pair]))
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
    wait_until_none(lambda: marked(str(tmp_path)))


def test_nothing_survives_a_worker_whose_fork_holds_the_pipe_open(tmp_path: Path) -> None:
    """The end of the pipe is not enough: a child that the worker forked without exec has inherited it."""
    script = DRIVER.replace(
        "    supervisor.run", "    if os.fork() == 0:\n        time.sleep(1000)\n    supervisor.run"
    )
    driver = start_script(script.replace("import os", "import os, time"), tmp_path, TMPDIR=str(tmp_path))
    assert driver.stdout is not None
    with driver:
        pair = set(map(int, driver.stdout.readline().split()))
        driver.stdout.readline()
        forked = {child.pid for child in psutil.Process(driver.pid).children()} - pair
        assert len(forked) == 1
        driver.kill()
        try:
            wait_until_none(lambda: marked(str(tmp_path)) - forked - {driver.pid})
        finally:
            for pid in forked:
                os.kill(pid, signal.SIGKILL)


def test_the_engine_does_not_survive_shim_and_supervisor_killed_at_once(chain: Chain) -> None:
    """Its daemons do: nobody is left to find them. That takes two aimed kills within a millisecond."""
    engine = chain.engine
    os.kill(chain.supervisor, signal.SIGSTOP)
    os.kill(chain.shim, signal.SIGKILL)
    os.kill(chain.supervisor, signal.SIGKILL)

    wait_until_none(lambda: set(filter(lives, [engine, chain.shim, chain.supervisor])))
    assert chain.driver.wait(PATIENCE_S) == 1


def test_a_frozen_worker_does_not_hold_up_the_deadline(tmp_path: Path) -> None:
    script = DRIVER.replace("timeout_s=120", "timeout_s=1, grace_s=0.1")
    driver = start_script(script, tmp_path, TMPDIR=str(tmp_path))
    assert driver.stdout is not None
    with driver:
        pair = set(map(int, driver.stdout.readline().split()))
        driver.stdout.readline()
        driver.send_signal(signal.SIGSTOP)
        try:
            wait_until_none(lambda: marked(str(tmp_path)) - pair - {driver.pid})
        finally:
            driver.send_signal(signal.SIGCONT)


RAY_SCRIPT = f"""
import json, os, signal, sys, threading, time
from pathlib import Path
import ray
from harness.execution.process import ProcessSpec, Supervisor, clean_environment

folder = Path(sys.argv[1])

def job(name):
    with Supervisor() as supervisor:
        env = clean_environment({{"MOE_TEST_MARK": str(folder / name)}})
        spec = ProcessSpec(("sh", "-c", {ENGINE!r}), env=env, timeout_s=120)
        def ready(_):
            (folder / "part").write_text(json.dumps([os.getpid(), *supervisor.pids]))
            (folder / "part").rename(folder / name)
        supervisor.run(spec, on_stdout_line=ready)

def begin(name):
    ref = ray.remote(num_cpus=0, max_retries=0)(job).remote(name)
    while not (folder / name).exists():
        time.sleep(0.05)
    return ref, json.loads((folder / name).read_text())[0]

def outcome(ref):
    try:
        return repr(ray.get(ref, timeout=30))
    except BaseException as error:
        return type(error).__name__

def report(name, what):
    os.write(1, (json.dumps([name, what]) + "\\n").encode())  # in one piece: a thread of Ray prints too
    sys.stdin.readline()

ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)

ref, worker = begin("kill-worker")
os.kill(worker, signal.SIGKILL)
report("kill-worker", outcome(ref))

ref, _ = begin("force-cancel")
ray.cancel(ref, force=True)
report("force-cancel", outcome(ref))

ref, _ = begin("cancel")
ray.cancel(ref)
report("cancel", outcome(ref))

ref, worker = begin("kill-raylet")
raylet = int(Path(f"/proc/{{worker}}/stat").read_text().rpartition(")")[2].split()[1])
assert Path(f"/proc/{{raylet}}/comm").read_text() == "raylet\\n"
os.kill(raylet, signal.SIGKILL)
report("kill-raylet", "killed")
os._exit(0)
"""


def job_processes(mark: Path, pair: list[int]) -> set[int]:
    """The engine's tree of a Ray task, found by its mark, and the pair above it."""
    return marked(str(mark)) | set(filter(lives, pair))


@pytest.mark.timeout(180)
def test_nothing_survives_in_a_ray_task(tmp_path: Path) -> None:
    """One Ray for all ways to lose a task: its start costs seconds."""
    driver = start_script(RAY_SCRIPT, tmp_path, RAY_TMPDIR="/tmp")  # short: sockets have a limit of 107 characters
    outcomes: dict[str, str] = {}
    assert driver.stdin is not None
    assert driver.stdout is not None
    with driver:
        for line in driver.stdout:
            if '["' not in line:
                continue
            name, outcomes[name] = json.loads(line[line.index('["') :])
            _, *pair = json.loads((tmp_path / name).read_text())
            wait_until_none(partial(job_processes, tmp_path / name, pair))
            driver.stdin.write("\n")
            driver.stdin.flush()

    assert list(outcomes) == ["kill-worker", "force-cancel", "cancel", "kill-raylet"]
    assert outcomes["kill-worker"] == "WorkerCrashedError"
    assert "TaskCancelledError" in outcomes["cancel"]
