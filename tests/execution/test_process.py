"""Running processes under a supervisor: results, limits, errors and what the process gets to see."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from harness.domain.errors import BadInput, Infrastructure
from harness.execution import process as module
from harness.execution.process import ProcessSpec, Supervisor, clean_environment, run_once

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STUBBORN = "trap '' TERM; while :; do sleep 0.05; done"


@pytest.fixture(scope="module")
def supervisor() -> Iterator[Supervisor]:
    with Supervisor() as shared:
        yield shared


def shell(script: str, **options: object) -> ProcessSpec:
    settings: dict[str, object] = {"env": clean_environment(), "timeout_s": 20.0} | options
    return ProcessSpec(("sh", "-c", script), **settings)  # type: ignore[arg-type]


def test_result_of_a_process_has_code_output_and_cost(supervisor: Supervisor) -> None:
    result = supervisor.run(shell("cat; echo oops >&2; exit 3", stdin="a\r\nb"))

    assert (result.exit_code, result.signal, result.ok) == (3, None, False)
    assert (result.stdout, result.stderr) == ("a\r\nb", "oops\n")
    assert (result.stdout_bytes, result.stderr_bytes, result.survivors) == (4, 5, 0)
    assert 0 < result.wall_ns < 10 * 10**9
    assert result.max_rss_bytes > 0


def test_wall_time_is_that_of_the_process_and_not_of_our_polling(supervisor: Supervisor) -> None:
    results = [supervisor.run(shell("sleep 0.02")) for _ in range(5)]

    assert 0.02e9 <= min(result.wall_ns for result in results) < 0.045e9
    starts = [result.started_ns for result in results]
    assert starts == sorted(starts)
    assert starts[-1] < time.monotonic_ns()


def test_peak_memory_is_that_of_the_process(supervisor: Supervisor) -> None:
    hog = (sys.executable, "-I", "-S", "-c", "x = b'x' * 100_000_000")

    result = supervisor.run(ProcessSpec(hog, env={}, timeout_s=20))

    assert 100e6 < result.max_rss_bytes < 140e6


def test_a_process_that_a_signal_ends_has_no_exit_code(supervisor: Supervisor) -> None:
    result = supervisor.run(shell("kill -SEGV $$"))

    assert (result.exit_code, result.signal, result.ok) == (None, signal.SIGSEGV, False)


def test_deadline_ends_a_process_that_ignores_term(supervisor: Supervisor) -> None:
    result = supervisor.run(shell(STUBBORN, timeout_s=0.3, grace_s=0.2))

    assert result.timed_out
    assert result.signal == signal.SIGKILL
    assert 0.5e9 <= result.wall_ns < 2e9


def test_deadline_lets_a_process_end_itself_on_term(supervisor: Supervisor) -> None:
    result = supervisor.run(shell("trap 'echo bye; exit 7' TERM; while :; do sleep 0.05; done", timeout_s=0.3))

    assert (result.timed_out, result.exit_code, result.stdout, result.ok) == (True, 7, "bye\n", False)


def test_grace_of_zero_kills_at_once(supervisor: Supervisor) -> None:
    result = supervisor.run(shell("trap 'exit 7' TERM; while :; do sleep 0.05; done", timeout_s=0.2, grace_s=0.0))

    assert (result.timed_out, result.signal) == (True, signal.SIGKILL)


def test_a_process_that_floods_its_output_is_ended(supervisor: Supervisor) -> None:
    result = supervisor.run(shell("yes", max_output_bytes=1000, grace_s=0.0))

    assert result.output_limited
    assert not result.ok
    assert result.stdout.startswith("y\n" * 500)
    assert "bytes left out" in result.stdout
    assert len(result.stdout) < 1100
    assert result.stdout_bytes > 1000


def test_long_error_output_keeps_head_and_tail(supervisor: Supervisor) -> None:
    result = supervisor.run(shell("{ echo first; head -c 400000 /dev/zero | tr '\\0' x; echo last; } >&2"))

    assert result.ok
    assert result.stderr.startswith("first\n")
    assert result.stderr.endswith("last\n")
    assert len(result.stderr) < module.MAX_STDERR_BYTES + 100 < result.stderr_bytes


def test_output_is_kept_where_asked(supervisor: Supervisor, tmp_path: Path) -> None:
    kept = tmp_path / "log"

    result = supervisor.run(shell("echo out; echo err >&2", stderr_path=str(kept)))

    assert kept.read_text() == result.stderr == "err\n"


def test_lines_arrive_while_the_process_runs(supervisor: Supervisor) -> None:
    seen: list[tuple[str, float]] = []

    result = supervisor.run(
        shell("printf 'one\\ntw'; sleep 0.5; printf 'o\\nthree'"),
        on_stdout_line=lambda line: seen.append((line, time.monotonic())),
    )

    assert [line for line, _ in seen] == ["one", "two", "three"]
    assert (time.monotonic() - seen[0][1]) > 0.3
    assert result.stdout == "one\ntwo\nthree"


def test_started_process_is_announced(supervisor: Supervisor) -> None:
    pids: list[int] = []

    result = supervisor.run(shell("true"), on_started=pids.append)

    assert pids == [result.pid]


def test_should_stop_ends_the_process_as_a_normal_result(supervisor: Supervisor) -> None:
    begin = time.monotonic()

    result = supervisor.run(shell(STUBBORN, grace_s=0.1), should_stop=lambda: time.monotonic() - begin > 0.2)

    assert (result.stopped, result.timed_out, result.signal) == (True, False, signal.SIGKILL)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_kills_the_process_before_it_propagates(error: type[BaseException]) -> None:
    pids: list[int] = []

    def fail(_: str) -> None:
        raise error

    with Supervisor() as own:
        pair = own.pids
        with pytest.raises(error):
            own.run(shell(f"echo go; {STUBBORN}"), on_started=pids.append, on_stdout_line=fail)
        assert not any(map(psutil.pid_exists, (*pids, *pair)))
        assert own.run(shell("echo again")).stdout == "again\n"


def test_ctrl_c_interrupts_the_wait() -> None:
    begin = time.monotonic()

    with Supervisor() as own, pytest.raises(KeyboardInterrupt):
        own.run(shell("sleep 20"), on_started=lambda _: os.kill(os.getpid(), signal.SIGINT))

    assert time.monotonic() - begin < 5


def test_daemons_left_behind_are_killed_and_counted(supervisor: Supervisor) -> None:
    result = supervisor.run(shell("(setsid sh -c 'trap \"\" TERM HUP; echo $$; exec sleep 1000' &); sleep 0.3"))

    assert result.ok
    assert (result.survivors, result.unkillable) == (1, 0)
    assert not psutil.pid_exists(int(result.stdout))


def test_a_fork_chain_does_not_get_away(supervisor: Supervisor) -> None:
    """Each link forks the next and dies, so that no list of processes is ever up to date."""
    chain = "import os, time\nfor _ in range(5000):\n    if os.fork(): os._exit(0)\n    os.setsid(); time.sleep(0.002)"

    result = supervisor.run(ProcessSpec((sys.executable, "-I", "-S", "-c", chain), env={}, timeout_s=20))

    assert result.exit_code == 0
    assert result.survivors >= 1
    assert not [pid for pid in psutil.pids() if _has_argument(pid, chain)]


def _has_argument(pid: int, argument: str) -> bool:
    try:
        return argument in psutil.Process(pid).cmdline()
    except psutil.Error:
        return False


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (None, "No such file or directory"),
        (("#!/bin/sh\n", 0o644), "Permission denied"),
        (("\x7fno elf", 0o755), "Exec format error"),
        (("#!/no/such/interpreter\n", 0o755), "No such file or directory"),
    ],
)
def test_what_cannot_be_executed_is_a_typed_error(
    supervisor: Supervisor, tmp_path: Path, make: tuple[str, int] | None, reason: str
) -> None:
    program = tmp_path / "engine"
    if make:
        program.write_text(make[0])
        program.chmod(make[1])
    before = supervisor.pids

    with pytest.raises(BadInput) as caught:
        supervisor.run(ProcessSpec((str(program),), env={}, timeout_s=5))

    assert caught.value.slug == "E-executable-missing"
    assert str(program) in caught.value.message
    assert reason in caught.value.message
    assert supervisor.pids == before


def test_program_is_looked_up_in_the_path_of_the_given_environment(supervisor: Supervisor, tmp_path: Path) -> None:
    program = tmp_path / "moe-test-engine"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)

    result = supervisor.run(
        ProcessSpec(("moe-test-engine",), env=clean_environment({"PATH": f"{tmp_path}:/bin"}), timeout_s=5)
    )

    assert result.stdout == "found\n"


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        ({"cwd": "/no/such/folder"}, "E-working-directory"),
        ({"cpus": (4095,)}, "E-process-setup"),
        ({"stdout_path": "/no/such/folder/log"}, "E-process-setup"),
    ],
)
def test_what_cannot_be_given_to_a_process_is_a_typed_error(
    supervisor: Supervisor, options: dict[str, object], slug: str
) -> None:
    with pytest.raises((BadInput, Infrastructure)) as caught:
        supervisor.run(shell("true", **options))

    assert caught.value.slug == slug


@pytest.mark.parametrize(
    "wrong",
    [
        {"argv": ()},
        {"argv": ("a\0b",)},
        {"env": {"A=B": ""}},
        {"env": {"A": "\0"}},
        {"timeout_s": 0.0},
        {"timeout_s": float("inf")},
        {"timeout_s": float("nan")},
    ],
)
def test_impossible_specifications_are_refused(wrong: dict[str, object]) -> None:
    settings: dict[str, object] = {"argv": ("true",), "env": {}, "timeout_s": 1.0} | wrong

    with pytest.raises(BadInput, match="E-process-spec"):
        ProcessSpec(**settings)  # type: ignore[arg-type]


def test_process_gets_cores_niceness_folder_and_environment_as_declared(supervisor: Supervisor, tmp_path: Path) -> None:
    tell = (
        "import os, json; print(json.dumps([sorted(os.sched_getaffinity(0)), os.nice(0), os.getcwd(), "
        "dict(os.environ), os.getsid(0) == os.getpid()]))"
    )
    core = min(os.sched_getaffinity(0))
    spec = ProcessSpec(
        (sys.executable, "-I", "-S", "-c", tell),
        env={"A": "ü\udcff"},
        timeout_s=20,
        cpus=(core,),
        nice=7,
        cwd=str(tmp_path),
    )

    cores, niceness, folder, environment, leads_session = json.loads(supervisor.run(spec).stdout)

    assert (cores, niceness, folder, leads_session) == ([core], 7, str(tmp_path), True)
    assert {"A": "ü\udcff"}.items() <= environment.items()
    assert not {"PATH", "HOME"} & environment.keys()


def test_process_inherits_no_descriptor_and_no_ignored_signal() -> None:
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        with Supervisor() as own:
            descriptors = own.run(shell("ls /proc/$$/fd")).stdout.split()
            # Not by a shell: while it forks, all its signals are blocked for a moment.
            status = own.run(ProcessSpec(("cat", "/proc/self/status"), env=clean_environment(), timeout_s=20)).stdout
    finally:
        signal.signal(signal.SIGINT, previous)
        os.close(read)
        os.close(write)

    assert descriptors == ["0", "1", "2"]
    masks = dict(re.findall(r"^(Sig\w+):\s*(\w+)$", status, re.MULTILINE))
    assert (int(masks["SigIgn"], 16), int(masks["SigBlk"], 16)) == (0, 0)


def test_clean_environment_is_an_allow_list(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "RAY_AUTH_TOKEN", "AWS_SECRET_ACCESS_KEY", "LD_LIBRARY_PATH", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    clean = clean_environment({"LD_LIBRARY_PATH": "/opt/build"})

    assert clean["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert clean["CUDA_VISIBLE_DEVICES"] == ""
    assert clean["LD_LIBRARY_PATH"] == "/opt/build"
    assert not {"OMP_NUM_THREADS", "RAY_AUTH_TOKEN", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN"} & clean.keys()


def test_clean_environment_refuses_the_cluster_token() -> None:
    with pytest.raises(BadInput, match="E-environment-forbidden"):
        clean_environment({"RAY_AUTH_TOKEN": "secret"})


def test_private_folder_is_private_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    with Supervisor() as own:
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        own.run(shell("echo x", stdin="y"))
        assert [path.name for path in folder.iterdir()] == ["pair.log"]

    assert not list(tmp_path.iterdir())


def test_the_pair_outlives_the_thread_that_made_it() -> None:
    """A parent-death signal follows the thread that forked, and pools end their threads."""
    made: list[Supervisor] = []
    thread = threading.Thread(target=lambda: made.append(Supervisor().__enter__()))
    thread.start()
    thread.join()
    time.sleep(0.1)

    with made[0] as own:
        assert own.run(shell("echo alive")).stdout == "alive\n"


def test_a_killed_supervisor_is_an_infrastructure_error_and_the_next_run_has_another() -> None:
    with Supervisor() as own:
        pair = own.pids
        with pytest.raises(Infrastructure, match="E-supervisor-lost"):
            own.run(shell("sleep 20"), on_started=lambda _: os.kill(pair[1], signal.SIGKILL))
        assert own.run(shell("echo again")).stdout == "again\n"
        assert own.pids != pair


def test_a_pair_that_died_between_two_runs_is_reported() -> None:
    with Supervisor() as own:
        os.kill(own.pids[0], signal.SIGKILL)
        time.sleep(0.3)
        with pytest.raises(Infrastructure, match="E-supervisor-lost"):
            own.run(shell("true"))


def test_a_supervisor_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "supervisor.py"
    broken.write_text("raise SystemExit('no such luck')")
    monkeypatch.setattr(module, "_PROGRAM", broken)

    with pytest.raises(Infrastructure, match=r"E-supervisor-lost.*no such luck"):
        Supervisor().__enter__()


def test_one_process_at_a_time() -> None:
    def again(_: int) -> None:
        own.run(shell("true"))

    with Supervisor() as own, pytest.raises(RuntimeError):
        own.run(shell("sleep 20"), on_started=again)


def test_run_once_and_a_second_close() -> None:
    assert run_once(shell("echo once")).stdout == "once\n"
    supervisor = Supervisor()
    supervisor.close()
    supervisor.close()


def test_other_platforms_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    with pytest.raises(Infrastructure, match="E-platform"):
        Supervisor().__enter__()
