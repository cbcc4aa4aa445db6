"""Engines that are not trusted: what a hostile one gets without a sandbox, and that it gets nothing of it in one."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from job_support import ANY, QUICK, job_of, wheel_arm
from sandbox_support import Booty, laid_out, require_sandbox_here

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.errors import BadInput
from harness.domain.job import Job
from harness.domain.measurement import ProcessRun
from harness.domain.model import Model
from harness.domain.sandboxing import Sandboxing
from harness.domain.stopping import RunWholeSchedule
from harness.domain.workload import Metric, ProfileWorkload, PromptProfile
from harness.engines.flags import complete
from harness.execution import sandbox
from harness.execution.bubblewrap import Sandbox
from harness.execution.builds import recognised
from harness.execution.events import Finished, ProcessDone
from harness.execution.inspecting import informed_engine, known_options, told_source
from harness.execution.process import ProcessResult, ProcessSpec, Supervisor, clean_environment
from harness.execution.run_job import run_job
from harness.execution.sandbox import Found, sandbox_for, sandbox_here

SERVER = Path(__file__).parent.parent / "standin" / "wheel_server.py"
EVERYTHING = {
    *("read-TOKEN", "read-JOURNAL", "read-KEY", "write-JOURNAL", "write-MODEL", "write-TOKEN", "write-build"),
    *("environment", "network", "trace", "signal", "processes", "home"),
}
"""Not namespaces of its own: whether a process may make them outside is the host's business."""


@pytest.fixture(scope="module")
def supervisor() -> Iterator[Supervisor]:
    with Supervisor() as shared:
        yield shared


def boxed(build: Build, model: Path, argv: tuple[str, ...]) -> Sandbox:
    files = [Path(build.path)] if build.path else [Path(sys.executable)]
    return sandbox_for(build, argv, clean_environment(), files=files, model=[model])


def gotten(result: ProcessResult) -> set[str]:
    return {line.removeprefix("got ") for line in result.stderr.splitlines() if line.startswith("got ")}


def run(job: Job) -> tuple[list[ProcessRun], Finished]:
    events = list(run_job(job, 1, RunWholeSchedule()))
    assert isinstance(events[-1], Finished)
    return [event.run for event in events if isinstance(event, ProcessDone)], events[-1]


def hostile_arm(booty: Booty) -> Arm:
    return Arm(booty.build, Model("tiny", path=str(booty.model)), complete(booty.build, {"t": 1}))


def attack(supervisor: Supervisor, booty: Booty, *, inside: bool) -> ProcessResult:
    argv = (str(booty.program),)
    box = boxed(booty.build, booty.model, argv) if inside else None
    environment = clean_environment() if inside else {**clean_environment(), "PLANTED_SECRET": "s3cret"}
    return supervisor.run(ProcessSpec(argv, environment, 60.0, sandbox=box, grace_s=0.0))


def test_a_hostile_engine_gets_everything_without_a_sandbox(tmp_path: Path, supervisor: Supervisor) -> None:
    """The control: each attempt works where nothing is in its way, so that the other tests can fail."""
    with laid_out(tmp_path, trusted=True) as booty:
        before = booty.contents()
        assert gotten(attack(supervisor, booty, inside=False)) >= EVERYTHING
        assert booty.calls() == 1
        after = booty.contents()
    assert {name for name in before if before[name] != after[name]} == {"token", "journal.jsonl", "m.gguf", "beside"}


def test_a_hostile_engine_gets_nothing_in_a_sandbox(
    tmp_path: Path, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of its attempts works, nothing is changed, nothing of it lives on."""
    require_sandbox_here()
    monkeypatch.setenv("PLANTED_SECRET", "s3cret")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "s3cret")
    with laid_out(tmp_path, trusted=False) as booty:
        before = booty.contents()
        result = attack(supervisor, booty, inside=True)
        assert result.ok, result.stderr
        assert gotten(result) == set()
        assert booty.contents() == before
        assert booty.calls() == 0
        assert booty.left() == []
        assert booty.victim.poll() is None


def test_a_hostile_engine_that_floods_its_output_is_ended_in_a_sandbox(tmp_path: Path, supervisor: Supervisor) -> None:
    """The limit of output holds there, too, and its children go with it."""
    require_sandbox_here()
    with laid_out(tmp_path, trusted=False, flood=True) as booty:
        argv = (str(booty.program),)
        box = boxed(booty.build, booty.model, argv)
        result = supervisor.run(ProcessSpec(argv, {}, 60.0, sandbox=box, max_output_bytes=100_000, grace_s=0.0))
        assert result.output_limited
        assert booty.left() == []


@pytest.mark.parametrize("killed", ["supervisor", "shim"])
def test_nothing_outlives_its_supervision_from_inside_a_sandbox(tmp_path: Path, killed: str) -> None:
    """Whoever of the chain above is killed, the whole sandbox is gone."""
    require_sandbox_here()
    name = f"inside-{os.getpid()}-{tmp_path.name}"
    build = Build("b", Fork.IK_LLAMA_CPP, path=str(tmp_path / "llama-bench"), trusted=False)
    argv = ("bash", "-c", f"(setsid bash -c 'exec -a {name} sleep 600' &); echo up; exec -a {name} sleep 600")
    box = boxed(build, tmp_path / "none", argv)

    def here() -> list[psutil.Process]:
        every = psutil.process_iter(["cmdline", "status"])
        return [p for p in every if (p.info["cmdline"] or [""])[0] == name and p.info["status"] != psutil.STATUS_ZOMBIE]

    def kill(line: str) -> None:
        assert line == "up"
        give_up = time.monotonic() + 30
        while len(here()) < 2 and time.monotonic() < give_up:
            time.sleep(0.01)
        assert len(here()) == 2
        shim, above = pair.pids
        os.kill(above if killed == "supervisor" else shim, signal.SIGKILL)

    with Supervisor() as pair, pytest.raises(Exception, match="E-supervisor-lost"):
        pair.run(ProcessSpec(argv, clean_environment(), 60.0, sandbox=box), on_stdout_line=kill)
    give_up = time.monotonic() + 30
    while here() and time.monotonic() < give_up:
        time.sleep(0.02)
    assert here() == []


def test_a_sandboxed_process_is_measured_like_any_other(tmp_path: Path, supervisor: Supervisor) -> None:
    """Input, output, signal, memory and CPU time are those of what ran inside."""
    require_sandbox_here()
    build = Build("b", Fork.IK_LLAMA_CPP, wheel="ik-llama-cpp-python", trusted=False)
    code = (
        "import os,sys; x = b'x' * 100_000_000; print(sys.stdin.read(), flush=True); sum(range(3_000_000)); os.abort()"
    )
    argv = (sys.executable, "-I", "-S", "-c", code)
    box = boxed(build, tmp_path / "none", argv)

    result = supervisor.run(ProcessSpec(argv, clean_environment(), 60.0, stdin="hello", sandbox=box))

    assert (result.exit_code, result.signal, result.stdout) == (None, signal.SIGABRT, "hello\n")
    assert 100e6 < result.max_rss_bytes < 150e6
    assert result.user_s > 0.02


def test_a_job_of_an_untrusted_build_is_measured_in_a_sandbox_and_says_so(tmp_path: Path, tiny_model: Path) -> None:
    """The whole way of a job, from the build's --help to its rows, gives a hostile engine nothing."""
    require_sandbox_here()
    with laid_out(tmp_path, trusted=False, model_of=tiny_model) as booty:
        before = booty.contents()
        runs, finished = run(job_of(hostile_arm(booty)))
        assert finished.failure is None
        assert [(each.failure, len(each.samples)) for each in runs] == [(None, 2)] * 2
        assert {each.conditions.sandbox for each in runs} == {_version()}
        assert informed_engine(booty.build).locate()
        assert set(known_options([booty.build])) == {"hostile"}
        told_source(booty.build)
        recognised(booty.build)
        assert booty.contents() == before
        assert booty.calls() == 0
        assert booty.left() == []


def test_an_untrusted_build_is_not_sandboxed_where_that_is_switched_off(tmp_path: Path, tiny_model: Path) -> None:
    """And then it gets all: the option does what it says."""
    with laid_out(tmp_path, trusted=False, model_of=tiny_model) as booty:
        runs, finished = run(dataclasses.replace(job_of(hostile_arm(booty)), sandboxing=Sandboxing.OFF))
        assert finished.failure is None
        assert {each.conditions.sandbox for each in runs} == {""}
        assert booty.calls() >= 1


def test_both_arms_run_in_a_sandbox_where_one_has_to(tiny_model: Path) -> None:
    """A real wheel, untrusted, against itself with another flag, trusted: the arms differ in nothing else."""
    require_sandbox_here()
    trusted = wheel_arm(tiny_model, t=1)
    other = wheel_arm(tiny_model, t=1, fa=0)
    untrusted = dataclasses.replace(other, build=dataclasses.replace(other.build, trusted=False))

    runs, finished = run(job_of(trusted, untrusted))

    assert finished.failure is None
    assert [each.failure for each in runs] == [None] * len(runs)
    assert {(each.step.arm, each.conditions.sandbox) for each in runs} == {(0, _version()), (1, _version())}
    assert all(each.max_rss_bytes > 50e6 for each in runs)


def test_an_arm_is_the_same_whether_it_is_trusted_or_not(tmp_path: Path) -> None:
    """Trust is about us, not about what is measured."""
    arm = wheel_arm(tmp_path / "m.gguf")
    untrusted = dataclasses.replace(arm, build=dataclasses.replace(arm.build, trusted=False))
    assert arm.identity == untrusted.identity
    assert [job_of(each).sandboxed for each in (arm, untrusted)] == [False, True]
    assert dataclasses.replace(job_of(arm), sandboxing=Sandboxing.REQUIRE).sandboxed
    assert job_of(arm).id == job_of(untrusted).id


def test_untrusted_builds_are_refused_where_there_is_no_sandbox(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of them is executed, neither in a job nor to know more of them; trusted ones run as ever."""
    lacking = Found(None, "bubblewrap (bwrap) is not installed")
    monkeypatch.setattr(sandbox, "sandbox_here", lambda: lacking)
    with laid_out(tmp_path, trusted=False) as booty:
        runs, finished = run(job_of(hostile_arm(booty)))
        assert runs == []
        assert finished.failure is not None
        assert finished.failure.slug == "E-no-sandbox"
        assert "bwrap" in finished.failure.message
        assert known_options([booty.build]) == {}
        assert told_source(booty.build).commit == ""
        with pytest.raises(BadInput, match="E-no-sandbox"):
            informed_engine(booty.build)
        assert booty.calls() == 0
    runs, finished = run(job_of(wheel_arm(tiny_model)))
    assert finished.failure is None


def test_a_folder_that_holds_more_than_a_build_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that lies in the user's home folder would show all of it."""
    require_sandbox_here()
    monkeypatch.setenv("HOME", str(tmp_path))
    build = Build("b", Fork.IK_LLAMA_CPP, path=str(tmp_path / "llama-bench"), trusted=False)
    with pytest.raises(BadInput, match="E-sandbox-place"):
        boxed(build, tmp_path / "m.gguf", ("llama-bench",))


def test_loopback_works_inside_a_sandbox(tmp_path: Path, supervisor: Supervisor) -> None:
    """A server and who asks it meet there; the host's loopback is another one."""
    require_sandbox_here()
    code = "import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname())"
    code += "; print('met')"
    argv = (sys.executable, "-I", "-S", "-c", code)
    build = Build("b", Fork.IK_LLAMA_CPP, wheel="ik-llama-cpp-python", trusted=False)
    box = boxed(build, tmp_path / "none", argv)
    assert supervisor.run(ProcessSpec(argv, clean_environment(), 60.0, sandbox=box)).stdout == "met\n"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        knock = (*argv[:-1], f"import socket; socket.create_connection(('127.0.0.1', {listener.getsockname()[1]}))")
        assert "refused" in supervisor.run(ProcessSpec(knock, clean_environment(), 60.0, sandbox=box)).stderr


def test_a_real_server_answers_inside_a_sandbox(tmp_path: Path, tiny_model: Path) -> None:
    """llama.cpp's own, started and asked by a child of ours, all in one sandbox."""
    require_sandbox_here()
    program = tmp_path / "llama-server"
    program.write_text(f"#!{sys.executable}\n{SERVER.read_text()}")
    program.chmod(0o755)
    build = Build("served", Fork.LLAMA_CPP, path=str(tmp_path))
    arm = Arm(build, Model("tiny", path=str(tiny_model)), complete(build, {"t": 1}))
    asked = tuple(
        ProfileWorkload(PromptProfile("chat", "Hello", 4), each) for each in Metric if each is not Metric.PEAK
    )
    job = Job((arm,), asked, None, ANY, QUICK, cases=(), sandboxing=Sandboxing.REQUIRE)

    runs, finished = run(job)

    assert finished.failure is None
    assert [(each.failure, len(each.samples)) for each in runs] == [(None, len(asked))] * 2
    assert {each.conditions.sandbox for each in runs} == {_version()}


def test_our_folders_are_empty_inside_even_where_they_lie_in_the_systems(supervisor: Supervisor) -> None:
    """Such as a checkout in /usr/src/app: what is inside sees /usr, but not that."""
    require_sandbox_here()
    tool = sandbox_here().tool
    assert tool is not None
    listing = ProcessSpec(("ls", "/usr/share"), clean_environment(), 60.0)
    seen = [
        supervisor.run(dataclasses.replace(listing, sandbox=Sandbox(tool, (), hidden, (), 1 << 20))).stdout
        for hidden in ((), ("/usr/share",))
    ]
    assert [bool(each) for each in seen] == [True, False]


def _version() -> str:
    tool = sandbox_here().tool
    assert tool is not None
    return tool.version
