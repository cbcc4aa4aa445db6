"""The only module that starts processes: each under a supervisor, so that nothing outlives the worker that wanted it.

Use one :class:`Supervisor` a job and run its processes through it one after another::

    with Supervisor() as supervisor:
        result = supervisor.run(ProcessSpec(("llama-bench", "-m", path), env=clean_environment(), timeout_s=600))

The chain is worker -> shim -> supervisor -> engine; ``supervisor.py`` says why. Whatever ends the worker (return,
exception, task cancellation, KILL) or the raylet above it, the engine and everything that it started, daemons included,
is gone within tens of milliseconds; at most a few seconds where a driver takes its time.

Errors, all from the tree in :mod:`harness.domain.errors`:

========================  ====================  =====================================================
slug                      class                 meaning
========================  ====================  =====================================================
E-executable-missing      BadInput              not there, not executable, or not of this machine
E-process-spec            BadInput              a specification that no process can be started from
E-environment-forbidden   BadInput              a Ray variable asked for in an engine's environment
E-working-directory       BadInput              can't be entered
E-process-setup           Infrastructure        cores, niceness or files can't be given as asked
E-supervisor-lost         Infrastructure        the supervisor was killed or does not answer
E-platform                Infrastructure        not Linux
========================  ====================  =====================================================
"""

from __future__ import annotations

import json
import math
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from harness.domain.errors import BadInput, HarnessError, Infrastructure
from harness.execution.supervised_output import LineTail, bounded_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.execution.bubblewrap import Sandbox

POLL_S = 0.05
"""How often a waiting worker runs Python code: cancellation by Ray and Ctrl-C reach it only then."""
MAX_OUTPUT_BYTES = 64 * 1024**2
MAX_STDERR_BYTES = 256 * 1024
_START_PATIENCE_S = 60.0
_END_PATIENCE_S = 30.0
"""Longer than the supervisor's own patience with processes that hang in a driver."""
_BY_SIGNAL = 128
"""A sandbox exits with this and the signal that ended what ran in it, as shells do."""
_PROGRAM = Path(__file__).with_name("supervisor.py")

_PASSED_ON = (
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
)
"""What an engine inherits: not OMP_NUM_THREADS (Ray forces it to 1), LD_LIBRARY_PATH, or what may be a secret."""
_NEEDED_BY_PYTHON = ("PATH", "LD_LIBRARY_PATH", "LANG")


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """One process to run.

    Attributes:
        argv: Program and arguments; a program without a slash is looked up in the PATH of ``env``.
        env: The complete environment, usually from :func:`clean_environment`.
        cwd: Folder to run in; None for the worker's.
        stdin: Text to read; None for nothing.
        timeout_s: Seconds until it is killed.
        cpus: Cores to bind to; None for the worker's.
        nice: Absolute niceness; None for the worker's.
        grace_s: Seconds between TERM and KILL; 0 kills at once.
        max_output_bytes: Limit of each output stream; a process that exceeds it is ended.
        max_stderr_bytes: How much of standard error is kept: its beginning and its end.
        stdout_path: File that keeps all of stdout; None for none.
        stderr_path: File that keeps all of stderr; None for none.
        sandbox: What it runs in; then ``cwd`` is a place inside it, and what it lacks is known at its end only. None
            for none.

    Raises:
        BadInput: E-process-spec.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    timeout_s: float
    cwd: str | None = None
    stdin: str | None = None
    cpus: tuple[int, ...] | None = None
    nice: int | None = None
    grace_s: float = 2.0
    max_output_bytes: int = MAX_OUTPUT_BYTES
    max_stderr_bytes: int = MAX_STDERR_BYTES
    stdout_path: str | None = None
    stderr_path: str | None = None
    sandbox: Sandbox | None = None

    def __post_init__(self) -> None:
        """Refuse what would only fail in the supervisor, where it could not be explained as well."""
        if not self.argv or not self.argv[0]:
            raise BadInput("E-process-spec", "a process needs a program")
        if any("\0" in text for text in (*self.argv, *self.env, *self.env.values(), self.cwd or "")):
            raise BadInput("E-process-spec", "a NUL character in arguments, environment or folder", where=self.argv[0])
        if any("=" in name or not name for name in self.env):
            raise BadInput("E-process-spec", "an environment variable's name is empty or has a '='", where=self.argv[0])
        if not (math.isfinite(self.timeout_s) and self.timeout_s > 0 and math.isfinite(self.grace_s)):
            raise BadInput("E-process-spec", f"timeout of {self.timeout_s} s, expected a positive number")


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a process ended and what it wrote.

    Attributes:
        pid: Its process id.
        exit_code: Its exit code; None where a signal ended it.
        signal: The signal that ended it; None where it exited.
        timed_out: It was ended at its deadline.
        output_limited: It was ended because it wrote too much.
        stopped: It was ended because ``should_stop`` said so.
        started_ns: Start on the host's monotonic clock, comparable between processes.
        wall_ns: From just before its fork to its end.
        user_s: CPU time in user mode, with that of children it waited for.
        system_s: CPU time in the kernel, likewise.
        max_rss_bytes: Peak resident memory; about 12 MB at least, which is the supervisor's before exec.
        involuntary_switches: How often a thread of it lost its core to another.
        major_faults: Page faults that had to be read from a disk.
        survivors: Processes that it left behind, which were killed; 0 for a sandbox, with which the kernel ends all.
        unkillable: Of those, how many did not go away: they hang in the kernel or are another user's.
        stdout: Output, bounded by ``max_output_bytes``.
        stderr: Error output: its head and its tail.
        stdout_bytes: How much was written.
        stderr_bytes: How much was written.
    """

    pid: int
    exit_code: int | None
    signal: int | None
    timed_out: bool
    output_limited: bool
    stopped: bool
    started_ns: int
    wall_ns: int
    user_s: float
    system_s: float
    max_rss_bytes: int
    involuntary_switches: int
    major_faults: int
    survivors: int
    unkillable: int
    stdout: str = field(repr=False)
    stderr: str = field(repr=False)
    stdout_bytes: int
    stderr_bytes: int

    @property
    def ok(self) -> bool:
        """It ended by itself with code 0."""
        return self.exit_code == 0 and not (self.timed_out or self.output_limited or self.stopped)


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of an engine: a short allow-list from ours, what is declared, and nothing else.

    Args:
        extra: Declared variables; they win, and are the only way in for LD_LIBRARY_PATH and OMP_NUM_THREADS.

    Returns:
        A complete environment.

    Raises:
        BadInput: E-environment-forbidden: a Ray variable, which can be the cluster's token.
    """
    declared = dict(extra or {})
    if forbidden := sorted(name for name in declared if name.startswith("RAY_")):
        raise BadInput(
            "E-environment-forbidden",
            f"an engine must not see {', '.join(forbidden)}",
            hint="remove it from the arm's environment",
        )
    inherited = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {"LANG": "C.UTF-8", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"} | inherited | declared


def run_once(spec: ProcessSpec, should_stop: Callable[[], bool] | None = None) -> ProcessResult:
    """Run a single process under a supervisor of its own, e.g. a probe.

    Args:
        spec: The process.
        should_stop: As for :meth:`Supervisor.run`.

    Raises:
        HarnessError: As :meth:`Supervisor.run`.
    """
    with Supervisor() as supervisor:
        return supervisor.run(spec, should_stop=should_stop)


class Supervisor:
    """Runs processes one after another, each with its whole tree under control.

    A context manager; also usable again after an exception, with a new pair behind it. One process at a time.

    Raises:
        Infrastructure: E-platform, E-supervisor-lost.
    """

    def __init__(self) -> None:
        self._pair: _Pair | None = None
        self._busy = threading.Lock()
        self._count = 0

    def __enter__(self) -> Self:
        self._alive_pair()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pids(self) -> tuple[int, int]:
        """Process ids of shim and supervisor."""
        pair = self._alive_pair()
        return pair.shim_pid, pair.supervisor_pid

    def close(self) -> None:
        """Kill whatever runs, end the pair and remove its files. May be called again."""
        pair, self._pair = self._pair, None
        if pair is not None:
            pair.close()

    def run(
        self,
        spec: ProcessSpec,
        *,
        on_stdout_line: Callable[[str], None] | None = None,
        on_started: Callable[[int], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> ProcessResult:
        """Run a process to its end.

        Args:
            spec: What to run.
            on_stdout_line: Called with each line of stdout within about 0.1 s.
            on_started: Called with the process id, e.g. to start telemetry.
            should_stop: Asked every 50 ms; True ends the process, which is a normal result with ``stopped``.

        Returns:
            How it ended; a crash or timeout of the process is a result, not an error.

        Raises:
            BadInput: E-executable-missing, E-working-directory.
            Infrastructure: E-process-setup, E-supervisor-lost.
            BaseException: What a callback, Ray's cancellation or Ctrl-C raised; by then the process is killed.
        """
        if not self._busy.acquire(blocking=False):
            raise RuntimeError("a supervisor runs one process at a time")
        try:
            outcome = self._run(self._alive_pair(), spec, on_stdout_line, on_started, should_stop)
        except BaseException:
            self.close()
            raise
        finally:
            self._busy.release()
        if isinstance(outcome, HarnessError):
            raise outcome
        return outcome

    def _alive_pair(self) -> _Pair:
        if self._pair is None:
            self._pair = _Pair()
        return self._pair

    def _run(
        self,
        pair: _Pair,
        spec: ProcessSpec,
        on_stdout_line: Callable[[str], None] | None,
        on_started: Callable[[int], None] | None,
        should_stop: Callable[[], bool] | None,
    ) -> ProcessResult | HarnessError:
        """As :meth:`run`; a process that could not be started is returned: the pair is sound and is kept."""
        self._count += 1
        with ExitStack() as stack:
            files = stack.enter_context(_Files(pair.work_dir, self._count, spec))
            tail = stack.enter_context(LineTail(files.stdout, on_stdout_line)) if on_stdout_line else None
            pair.send(_request(spec, files))
            give_up = time.monotonic() + spec.timeout_s + spec.grace_s + _END_PATIENCE_S
            stopping = False
            while (reply := pair.receive(POLL_S)) is None or reply["event"] == "started":
                if reply is not None and on_started is not None:
                    on_started(reply["pid"])
                if tail is not None:
                    tail.advance()
                if should_stop is not None and not stopping and should_stop():
                    stopping = True
                    pair.send({"op": "kill"})
                if time.monotonic() > give_up:
                    raise pair.lost("it did not end the process at its deadline")
            if reply["event"] == "failed":
                return _start_error(reply, spec)
            if tail is not None:
                tail.finish()
            return _result(reply, files, spec)


class _Files:
    """The input and output files of one process; those in the private folder are removed on leaving."""

    def __init__(self, work_dir: Path, number: int, spec: ProcessSpec) -> None:
        self.stdout = Path(spec.stdout_path).absolute() if spec.stdout_path else work_dir / f"{number}.stdout"
        self.stderr = Path(spec.stderr_path).absolute() if spec.stderr_path else work_dir / f"{number}.stderr"
        self.stdin = work_dir / f"{number}.stdin" if spec.stdin is not None else None
        self._own = [path for path in (self.stdout, self.stderr, self.stdin) if path and path.parent == work_dir]
        if self.stdin is not None:
            self.stdin.write_text(spec.stdin or "", encoding="utf-8", errors="surrogateescape", newline="")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for path in self._own:
            path.unlink(missing_ok=True)


class _Pair:
    """The shim and the supervisor, the pipes to them, and their private folder.

    Raises:
        Infrastructure: E-platform, E-supervisor-lost.
    """

    def __init__(self) -> None:
        _require_linux()
        self.work_dir = Path(tempfile.mkdtemp(prefix="moe-supervisor-"))
        self._log = self.work_dir / "pair.log"
        self._inbox = b""
        try:
            self._shim, self._keeper = _spawn_in_lasting_thread(_pair_command(self.work_dir), self._log)
        except BaseException:
            shutil.rmtree(self.work_dir, ignore_errors=True)
            raise
        self._poll = select.poll()
        self._poll.register(self._replies, select.POLLIN)
        try:
            self.shim_pid, self.supervisor_pid = self._await_ready()
        except BaseException:
            self.close()
            raise

    @property
    def _requests(self) -> int:
        assert self._shim.stdin is not None  # noqa: S101 - we asked for the pipe
        return self._shim.stdin.fileno()

    @property
    def _replies(self) -> int:
        assert self._shim.stdout is not None  # noqa: S101 - we asked for the pipe
        return self._shim.stdout.fileno()

    def _await_ready(self) -> tuple[int, int]:
        give_up = time.monotonic() + _START_PATIENCE_S
        while (reply := self.receive(POLL_S)) is None:
            if time.monotonic() > give_up:
                raise self.lost(f"it did not start within {_START_PATIENCE_S:.0f} s")
        return int(reply["shim"]), int(reply["pid"])

    def send(self, request: Mapping[str, Any]) -> None:
        """Send a request.

        Raises:
            Infrastructure: E-supervisor-lost.
        """
        data = memoryview(json.dumps(request).encode() + b"\n")
        try:
            while data:
                data = data[os.write(self._requests, data) :]
        except BrokenPipeError:
            raise self.lost("it is gone") from None

    def receive(self, timeout_s: float) -> dict[str, Any] | None:
        """The next reply, or None when there was none within ``timeout_s``.

        Raises:
            Infrastructure: E-supervisor-lost.
        """
        if b"\n" not in self._inbox and self._poll.poll(timeout_s * 1000):
            data = os.read(self._replies, 1 << 16)
            if not data:
                raise self.lost("it was killed or crashed")
            self._inbox += data
        line, end, rest = self._inbox.partition(b"\n")
        if not end:
            return None
        self._inbox = rest
        reply: dict[str, Any] = json.loads(line)
        if reply["event"] == "ending":
            raise self.lost(reply["why"])
        return reply

    def lost(self, why: str) -> Infrastructure:
        """The error for a pair that does not do its work, with what it last said."""
        said = ""
        with suppress(OSError):
            said = bounded_text(self._log, 4096).strip()
        return Infrastructure(
            "E-supervisor-lost", f"the process supervisor failed: {why}{': ' + said if said else ''}", hint="run again"
        )

    def close(self) -> None:
        """End the pair with everything under it, waiting until it is gone, and remove the private folder."""
        # First and alone sufficient: the supervisor kills its tree at the end of its input, even if we are interrupted.
        assert self._shim.stdin is not None  # noqa: S101 - we asked for the pipe
        with suppress(OSError):
            self._shim.stdin.close()
        if not self._gone(_END_PATIENCE_S):
            self._shim.kill()
            self._gone(_END_PATIENCE_S)
        self._keeper.join(_END_PATIENCE_S)  # reaps the shim
        assert self._shim.stdout is not None  # noqa: S101 - we asked for the pipe
        self._shim.stdout.close()
        shutil.rmtree(self.work_dir, ignore_errors=True)

    def _gone(self, patience_s: float) -> bool:
        """Whether both processes let go of the reply pipe, which they hold to their end."""
        give_up = time.monotonic() + patience_s
        while time.monotonic() < give_up:
            if self._poll.poll(POLL_S * 1000) and not os.read(self._replies, 1 << 16):
                return True
        return False


def _require_linux() -> None:
    if sys.platform != "linux":
        raise Infrastructure(
            "E-platform",
            f"running engines needs Linux, this is {sys.platform}",
            hint="plan, compare, lint, report and gate work here; run on a Linux host",
        )


def _pair_command(work_dir: Path) -> list[str]:
    python = sys.executable or shutil.which("python3") or "python3"
    command = [python, "-I", "-S", "-X", "utf8", str(_PROGRAM), str(os.getpid()), str(work_dir)]
    return command + [str(raylet) for raylet in (_parent_raylet(),) if raylet is not None]


def _parent_raylet() -> int | None:
    """The raylet that we are a worker of: with it dies the interest in our results, but not at once we ourselves."""
    parent = os.getppid()
    try:
        name = Path(f"/proc/{parent}/comm").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return parent if name.strip() == "raylet" else None


def _spawn_in_lasting_thread(command: list[str], log: Path) -> tuple[subprocess.Popen[bytes], threading.Thread]:
    """Start the shim from a thread that lasts as long as it does.

    The shim's parent-death signal fires when the *thread* that forked it ends, and the caller's may be one of a pool.
    The thread then sleeps in wait4 and is the one that reaps the shim.

    Raises:
        Infrastructure: E-supervisor-lost.
    """
    outcome: list[subprocess.Popen[bytes] | OSError] = []
    spawned = threading.Event()

    def keep() -> None:
        try:
            outcome.append(_spawn(command, log))
        except OSError as error:
            outcome.append(error)
        finally:
            spawned.set()
        for shim in outcome:
            if isinstance(shim, subprocess.Popen):
                shim.wait()

    keeper = threading.Thread(target=keep, name="moe-supervisor-parent", daemon=True)
    keeper.start()
    spawned.wait()
    shim = outcome[0] if outcome else OSError("no thread to start it")
    if isinstance(shim, OSError):
        raise Infrastructure("E-supervisor-lost", f"the process supervisor can't be started: {shim}")
    return shim, keeper


def _spawn(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as stderr:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            bufsize=0,
            start_new_session=True,
            env={name: os.environ[name] for name in _NEEDED_BY_PYTHON if name in os.environ},
        )


def _request(spec: ProcessSpec, files: _Files) -> dict[str, Any]:
    return {
        "op": "run",
        **_command(spec),
        "cpus": list(spec.cpus) if spec.cpus is not None else None,
        "nice": spec.nice,
        "stdin": str(files.stdin) if files.stdin is not None else None,
        "stdout": str(files.stdout),
        "stderr": str(files.stderr),
        "timeout_s": spec.timeout_s,
        "grace_s": spec.grace_s,
        "max_output_bytes": spec.max_output_bytes,
        "limits": spec.sandbox.limits() if spec.sandbox else {},
        "contained": spec.sandbox is not None,
    }


def _command(spec: ProcessSpec) -> dict[str, Any]:
    """What is executed, with what environment and where: of a sandboxed process it is the sandbox."""
    if spec.sandbox is not None:
        argv = spec.sandbox.wrapped(spec.argv, spec.env, spec.cwd)
        return {"argv": list(argv), "env": dict(spec.sandbox.own_environment), "cwd": "/"}
    cwd = Path(spec.cwd).absolute() if spec.cwd is not None else Path.cwd()
    return {"argv": list(spec.argv), "env": dict(spec.env), "cwd": str(cwd)}


def _start_error(reply: Mapping[str, Any], spec: ProcessSpec) -> HarnessError:
    """The error for a process that never ran."""
    stage, path, reason = reply["stage"], reply["path"], os.strerror(reply["errno"])
    if stage == "exec":
        hint = "check the path, the execute permission and the architecture; a script also needs its interpreter"
        return BadInput("E-executable-missing", f"{path} can't be executed: {reason}", hint=hint)
    if stage == "cwd":
        return BadInput("E-working-directory", f"{path} can't be entered: {reason}", where=spec.argv[0])
    asked = {"affinity": f"cores {spec.cpus}", "nice": f"niceness {spec.nice}", "files": path}.get(stage, stage)
    return Infrastructure("E-process-setup", f"{asked} can't be given to the process: {reason}", where=spec.argv[0])


def _result(reply: Mapping[str, Any], files: _Files, spec: ProcessSpec) -> ProcessResult:
    # A process that wrote too much keeps its beginning: a stream that ends somewhere can still be parsed by line.
    stdout = bounded_text(files.stdout, spec.max_output_bytes, head_bytes=spec.max_output_bytes)
    stderr = bounded_text(files.stderr, min(spec.max_output_bytes, spec.max_stderr_bytes))
    code, signum = _end(reply, spec)
    return ProcessResult(
        pid=reply["pid"],
        exit_code=code,
        signal=signum,
        timed_out=reply["reason"] == "timeout",
        output_limited=reply["reason"] == "output-limit",
        stopped=reply["reason"] == "stopped",
        started_ns=reply["started_ns"],
        wall_ns=reply["wall_ns"],
        user_s=reply["user_s"],
        system_s=reply["system_s"],
        max_rss_bytes=reply["max_rss_bytes"],
        involuntary_switches=reply["involuntary_switches"],
        major_faults=reply["major_faults"],
        survivors=reply["survivors"],
        unkillable=reply["unkillable"],
        stdout=stdout,
        stderr=stderr,
        stdout_bytes=reply["stdout_bytes"],
        stderr_bytes=reply["stderr_bytes"],
    )


def _end(reply: Mapping[str, Any], spec: ProcessSpec) -> tuple[int | None, int | None]:
    """Exit code and signal; a sandbox, which is what exited, tells of a signal by its exit code."""
    code, signum = reply["exit_code"], reply["signal"]
    if spec.sandbox is not None and code is not None and code - _BY_SIGNAL in signal.valid_signals():
        return None, code - _BY_SIGNAL
    return code, signum
