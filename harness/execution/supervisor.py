"""The program between a worker and an engine, so that no engine outlives its worker.

Run as ``python -I -S -X utf8 supervisor.py PARENT_PID WORK_DIR [WATCHED_PID]``; it becomes two processes::

    worker -> shim        own session; the kernel KILLs it when the worker's thread dies; subreaper
              supervisor  own session; the kernel TERMs it when the shim dies; subreaper; kills its whole tree
              engine      own session; the kernel KILLs it when the supervisor dies

Why two: Ray kills a worker's direct child first, with KILL, which nobody can answer. So the direct child is a shim
without duties and its death is only the message. Why both are subreapers: a daemon that forked twice is handed to its
nearest subreaper, where it can be found, and if the supervisor itself is killed the shim inherits the tree and clears
it away.

Parent-death signals follow the *thread* that forked, and are set here inside the launched program, never in a
``preexec_fn``: workers have threads. The supervisor has none, hence its own fork is safe.

Why a watched process: a Ray worker that runs a task can outlive its raylet by minutes (seen with Ray 2.60 and the
raylet of an embedded Ray killed), and nobody wants its result any more. So the supervisor ends with the raylet too.

Protocol, JSON lines. Requests on stdin: ``{"op": "run", "argv", "env", "cwd", "cpus", "nice", "stdin", "stdout",
"stderr", "timeout_s", "grace_s", "max_output_bytes", "limits", "contained"}`` and ``{"op": "kill"}``. Replies on
stdout: ``ready`` (pids), ``started`` (pid), ``failed`` (stage, errno), ``exited``, and ``ending`` (why) as the last.
End of stdin, TERM, INT or HUP, or end of the watched process: kill everything, remove the work folder, exit. The reply
pipe is held by both processes, so its end tells the worker that the whole pair is gone.

Only the standard library and as little of it as possible: the start of the pair is paid once a job.
"""

# pathlib would add a third to the start-up time:
# ruff: noqa: PTH108, PTH106, PTH110, PTH118, PTH123, PTH208

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

TICK_MS = 100
"""How often a running engine's deadline and output size are looked at; its end is noticed at once, through SIGCHLD."""
KILL_PATIENCE_S = 20.0
"""How long to wait for killed processes to go: a driver that gives back tens of GiB of GPU memory takes seconds."""
EXIT_ORPHANED = 3
EXIT_START_FAILED = 127
NS = 1_000_000_000

HANDLED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
RESTORED = (*HANDLED, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGUSR1, signal.SIGUSR2)
"""What an engine gets back as default: ignored signals survive exec, and Python ignores SIGPIPE and SIGXFSZ."""


# ---- what the kernel does for us -------------------------------------------------------------------------------------


def prctl(option: int, value: int) -> None:
    """Call ``prctl(2)``.

    Raises:
        OSError: The kernel refused.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")


def die_with(parent: int, signum: int) -> None:
    """Have the kernel send ``signum`` when the parent dies; exit now where it died before we could ask."""
    prctl(PR_SET_PDEATHSIG, signum)
    if os.getppid() != parent:
        os._exit(EXIT_ORPHANED)


# ---- the process tree ------------------------------------------------------------------------------------------------


def listed_children(pid: int) -> list[int]:
    """Children of all threads of ``pid`` from ``/proc/PID/task/*/children``; empty where it is gone."""
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def scanned_children() -> dict[int, list[int]]:
    """Children by parent from every ``/proc/*/stat``: slower, for kernels without ``CONFIG_PROC_CHILDREN``."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            # The command name may hold spaces and parentheses; state and parent follow its last ")".
            parent = int(file.read().rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(int(name))
    return children


def descendants(root: int) -> set[int]:
    """All live and zombie descendants of ``root``, itself not included."""
    if os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        return _walk(root, listed_children)
    table = scanned_children()
    return _walk(root, lambda pid: table.get(pid, []))


def _walk(root: int, children: Callable[[int], list[int]]) -> set[int]:
    found: set[int] = set()
    stack = [root]
    while stack:
        new = [child for child in children(stack.pop()) if child not in found]
        found.update(new)
        stack += new
    return found


def signal_all(pids: Iterable[int], signum: int) -> None:
    """Send a signal to each; those that are gone, or are another user's, are passed over."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signum)


# ---- one engine ------------------------------------------------------------------------------------------------------


class StartFailedError(Exception):
    """The engine never ran.

    Args:
        stage: ``files``, ``setup``, ``limits``, ``affinity``, ``nice``, ``cwd`` or ``exec``.
        number: The errno.
        path: What could not be opened, entered or executed.
    """

    def __init__(self, stage: str, number: int, path: str) -> None:
        super().__init__(stage, number, path)
        self.stage, self.number, self.path = stage, number, path


class Engine:
    """A started engine: its deadline, its output files and, in the end, its status."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.started_ns = time.monotonic_ns()
        self.pid, self.outputs = start(request)
        self.deadline_ns = self.started_ns + int(request["timeout_s"] * NS)
        self.grace_ns = int(request["grace_s"] * NS)
        self.max_output_bytes = int(request["max_output_bytes"])
        self.contained = bool(request["contained"])
        self.reason = ""
        self.kill_at_ns = 0
        self.status: int | None = None
        self.usage: Any = None
        self.inside: list[Any] = []
        self.ended_ns = 0

    def stop(self, reason: str) -> None:
        """Ask the engine's process group to end; ``tick`` kills it when the grace is over. The first reason counts."""
        if self.reason:
            return
        self.reason = reason
        self.kill_at_ns = time.monotonic_ns() + self.grace_ns
        if self.grace_ns > 0:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGTERM)

    def tick(self) -> None:
        """Hold the engine to its deadline and its output limit."""
        now = time.monotonic_ns()
        if now >= self.deadline_ns:
            self.stop("timeout")
        elif max(self.sizes()) > self.max_output_bytes:
            self.stop("output-limit")
        if self.reason and now >= self.kill_at_ns:
            signal_all({self.pid, *descendants(self.pid)}, signal.SIGKILL)

    def wait_ms(self) -> int:
        """Milliseconds until there is something to look at."""
        due = self.kill_at_ns if self.reason else self.deadline_ns
        return max(1, min(TICK_MS, (due - time.monotonic_ns()) // 1_000_000 + 1))

    def sizes(self) -> list[int]:
        """Bytes written to stdout and stderr."""
        return [os.fstat(fd).st_size for fd in self.outputs]

    def report(self, survivors: int, unkillable: int) -> dict[str, Any]:
        """The ``exited`` reply; releases the output files. Times in ns and s, memory in bytes."""
        stdout_bytes, stderr_bytes = self.sizes()
        for fd in self.outputs:
            os.close(fd)
        code = os.waitstatus_to_exitcode(self.status or 0)
        used = [self.usage, *self.inside]
        return {
            "event": "exited",
            "pid": self.pid,
            "exit_code": code if code >= 0 else None,
            "signal": -code if code < 0 else None,
            "reason": self.reason,
            "started_ns": self.started_ns,
            "wall_ns": self.ended_ns - self.started_ns,
            "user_s": sum(usage.ru_utime for usage in used),
            "system_s": sum(usage.ru_stime for usage in used),
            "max_rss_bytes": max(usage.ru_maxrss for usage in used) * 1024,
            "involuntary_switches": sum(usage.ru_nivcsw for usage in used),
            "major_faults": sum(usage.ru_majflt for usage in used),
            "survivors": 0 if self.contained else survivors,
            "unkillable": unkillable,
            "stdout_bytes": stdout_bytes,
            "stderr_bytes": stderr_bytes,
        }


def start(request: dict[str, Any]) -> tuple[int, tuple[int, int]]:
    """Start an engine.

    Returns:
        Its pid, and descriptors of its stdout and stderr files.

    Raises:
        StartFailedError: It never ran.
    """
    files = open_files(request)
    ack_read, ack_write = os.pipe()
    # Until the child has put its signals back, a TERM must not run our handler there: it would write to our wake pipe.
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    supervisor = os.getpid()
    pid = os.fork()
    if pid == 0:
        become_engine(request, files, ack_write, supervisor)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)
    os.close(ack_write)
    os.close(files[0])
    with os.fdopen(ack_read, "rb") as ack:
        trouble = ack.read()  # ends when exec closes the other end
    if trouble:
        os.close(files[1])
        os.close(files[2])
        os.waitpid(pid, 0)
        stage, number = trouble.decode().split()
        raise StartFailedError(stage, int(number), str(request["cwd"]) if stage == "cwd" else request["argv"][0])
    return pid, (files[1], files[2])


def open_files(request: dict[str, Any]) -> list[int]:
    """Open stdin, stdout and stderr of the engine, in this order.

    Raises:
        StartFailedError: One could not be opened.
    """
    write = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    opened: list[int] = []
    for name, flags in (("stdin", os.O_RDONLY), ("stdout", write), ("stderr", write)):
        path = request[name] or os.devnull
        try:
            opened.append(os.open(path, flags, 0o600))
        except OSError as error:
            for fd in opened:
                os.close(fd)
            raise StartFailedError("files", error.errno or 0, path) from None
    return opened


def become_engine(request: dict[str, Any], files: list[int], ack: int, supervisor: int) -> NoReturn:
    """Turn this forked child into the engine; where that fails, tell stage and errno through ``ack``."""
    stage = "setup"
    try:
        os.setsid()
        die_with(supervisor, signal.SIGKILL)
        for target, fd in enumerate(files):
            os.dup2(fd, target)
        for signum in RESTORED:
            signal.signal(signum, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        stage = "limits"
        for name, value in request["limits"].items():
            resource.setrlimit(getattr(resource, name), (value, value))
        stage = "affinity"
        if request["cpus"] is not None:
            os.sched_setaffinity(0, request["cpus"])
        stage = "nice"
        if request["nice"] is not None:
            os.setpriority(os.PRIO_PROCESS, 0, request["nice"])
        stage = "cwd"
        if request["cwd"] is not None:
            os.chdir(request["cwd"])
        stage = "exec"
        os.execvpe(request["argv"][0], request["argv"], request["env"])  # noqa: S606 - no shell is the point
    except OSError as error:
        os.write(ack, f"{stage} {error.errno}".encode())
    except BaseException:  # noqa: BLE001 - nothing may return into the supervisor's code from this fork
        os.write(ack, f"{stage} {errno.EINVAL}".encode())
    finally:
        os._exit(EXIT_START_FAILED)


# ---- the supervisor --------------------------------------------------------------------------------------------------


class Supervisor:
    """Serves requests one after another until its worker is gone, or the watched process if there is one."""

    def __init__(self, watched: int | None = None) -> None:
        self.engine: Engine | None = None
        self.inbox = b""
        self.ending = ""
        self.poll = select.poll()
        self.readers: dict[int, Callable[[int], None]] = {
            0: self._read_requests,
            self._wake_on_signals(): self._read_signals,
        }
        if watched is not None:
            self._watch(watched)
        for fd in self.readers:
            self.poll.register(fd, select.POLLIN)

    def _watch(self, pid: int) -> None:
        why = f"process {pid}, which it was told to watch, is gone"
        try:
            self.readers[os.pidfd_open(pid)] = lambda _fd: self._end(why)
        except ProcessLookupError:
            self._end(why)
        except OSError:
            pass  # a kernel before 5.3 or a strict sandbox: the worker's own end still counts

    def _end(self, why: str) -> None:
        self.ending = self.ending or why

    @staticmethod
    def _wake_on_signals() -> int:
        """Have each handled signal write its number to a pipe; returns the end to read."""
        read, write = os.pipe()
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for signum in HANDLED:
            signal.signal(signum, lambda *_: None)
        return read

    def serve(self) -> None:
        """Work until stdin ends or a signal says so; then nothing of the tree is left."""
        while not self.ending:
            ready = self.poll.poll(self.engine.wait_ms() if self.engine else None)
            for fd, _ in ready:
                self.readers[fd](fd)
            self._reap()
            if self.engine:
                self.engine.tick()
                self._finish()
        self.kill_tree()
        self.reply({"event": "ending", "why": self.ending})

    def _read_signals(self, fd: int) -> None:
        for number in os.read(fd, 4096):
            if number != signal.SIGCHLD:
                self._end(f"it got {signal.Signals(number).name}")

    def _read_requests(self, fd: int) -> None:
        data = os.read(fd, 1 << 16)
        if not data:
            self._end("its worker closed the pipe")
        *lines, self.inbox = (self.inbox + data).split(b"\n")
        for line in lines:
            self._handle(json.loads(line))

    def _handle(self, request: dict[str, Any]) -> None:
        if request["op"] == "kill":
            if self.engine:
                self.engine.stop("stopped")
            return
        try:
            self.engine = Engine(request)
        except StartFailedError as error:
            self.reply({"event": "failed", "stage": error.stage, "errno": error.number, "path": error.path})
        else:
            self.reply({"event": "started", "pid": self.engine.pid, "started_ns": self.engine.started_ns})

    def _reap(self) -> None:
        """Take the status of every dead child, adopted ones included, and remember the engine's."""
        with suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return
                if self.engine and pid == self.engine.pid:
                    self.engine.status, self.engine.usage, self.engine.ended_ns = status, usage, time.monotonic_ns()
                elif self.engine and self.engine.contained:
                    # A sandbox's first process, which the engine is a child of, can end after the one that we started.
                    self.engine.inside.append(usage)

    def _finish(self) -> None:
        engine = self.engine
        if engine is None or engine.status is None:
            return
        killed, left = self.kill_tree()
        self.engine = None
        self.reply(engine.report(killed, left))

    def kill_tree(self) -> tuple[int, int]:
        """Kill and reap every descendant.

        One pass is not enough: what forks meanwhile, or loses its parent, turns up as a child of ours in the next.

        Returns:
            How many there were, and how many are still there (uninterruptible in the kernel, or another user's).
        """
        seen: set[int] = set()
        pause_s = 0.001
        give_up = time.monotonic() + KILL_PATIENCE_S
        while (left := descendants(os.getpid())) and time.monotonic() < give_up:
            seen |= left
            signal_all(left, signal.SIGKILL)
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, 0.05)
            self._reap()
        return len(seen), len(left)

    def reply(self, message: dict[str, Any]) -> None:
        """Send one reply; a worker that no longer listens is a worker that is gone."""
        try:
            os.write(1, json.dumps(message).encode() + b"\n")
        except BrokenPipeError:
            self._end("its worker no longer listens")


# ---- the pair --------------------------------------------------------------------------------------------------------


def supervise(shim: int, work_dir: str, watched: int | None) -> NoReturn:
    """Be the supervisor until the worker is gone, then remove its files."""
    os.setsid()
    supervisor = Supervisor(watched)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    die_with(shim, signal.SIGTERM)  # after the handlers: before them TERM would have ended us by default
    supervisor.reply({"event": "ready", "pid": os.getpid(), "shim": shim})
    supervisor.serve()
    remove_files(work_dir)
    os._exit(0)


def remove_files(work_dir: str) -> None:
    """Remove the flat folder of output files: a worker that was killed can't."""
    with suppress(OSError):
        for name in os.listdir(work_dir):
            os.unlink(os.path.join(work_dir, name))
        os.rmdir(work_dir)


def guard(supervisor: int) -> int:
    """Be the shim: wait for the supervisor, clear away what it left if it was killed, and return its exit code."""
    code = 0
    while True:
        try:
            pid, status = os.waitpid(-1, 0)
        except ChildProcessError:
            return code
        if pid == supervisor:
            code = os.waitstatus_to_exitcode(status) & 0xFF
        # Children come to the shim only from a supervisor that is dead or dying.
        signal_all(descendants(os.getpid()) - {supervisor}, signal.SIGKILL)


def main(argv: list[str]) -> int:
    """Start the pair.

    Args:
        argv: Program, pid of the worker, work folder, and perhaps the pid of a process to watch.

    Returns:
        The exit code of the supervisor.
    """
    worker, work_dir = int(argv[1]), argv[2]
    watched = int(argv[3]) if len(argv) > 3 else None  # noqa: PLR2004 - the optional third argument
    die_with(worker, signal.SIGKILL)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    shim = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            supervise(shim, work_dir, watched)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            raise
        finally:
            os._exit(1)
    return guard(pid)


if __name__ == "__main__":
    os._exit(main(sys.argv))  # nothing to flush, and the worker waits for our end
