"""A host taken for longer than one measurement: for a command, or for the whole job of a CI runner.

Who measures takes the host first and the measurement lock after it; under a hold of its own it takes the latter alone.
So a hold that is killed sets the host free, and what measures under it still is not disturbed: the next one has the
host and waits for the measurement.

The lock is the kernel's, on an open file, and ends with the last process that has the file. A hold hands it on: to the
command that it becomes, or to a keeper, a process that waits for the end of another one.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness import settings
from harness.domain.errors import BadInput, Infrastructure
from harness.execution.lock_files import lock_dir, open_shared, text_of

_LOCK_NAME = "moe-host.lock"
_HOLDER_NAME = "moe-host.holder"
_POLL_S = 0.1
_RELEASE_S = 10.0


@dataclass(frozen=True, slots=True)
class Hold:
    """A host that is taken.

    Attributes:
        descriptor: The open file that has the lock.
        token: What those who measure under it name it by, in the environment.
    """

    descriptor: int
    token: str

    @property
    def environment(self) -> Mapping[str, str]:
        """What tells a process that it measures under this hold."""
        return {settings.HOST_HOLD: self.token}


@dataclass(frozen=True, slots=True)
class Holder:
    """Who said last that it holds the host.

    Attributes:
        pid: The process that has the lock.
        since: Unix time, seconds.
        purpose: What for.
        token: Its hold's.
    """

    pid: int
    since: float
    purpose: str
    token: str

    @property
    def text(self) -> str:
        """It in words."""
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        return f"process {self.pid} since {since} for {self.purpose[:200]!r}"


def take_host(timeout_s: float, purpose: str) -> Hold:
    """Take this host.

    Args:
        timeout_s: Seconds to wait for it; 0 tries once.
        purpose: What for; shown to those who wait.

    Raises:
        Infrastructure: E-host-busy, with who holds it; E-host-lock: the lock can't be made.
    """
    descriptor = _opened()
    give_up = time.monotonic() + timeout_s
    while not _locked(descriptor):
        if time.monotonic() >= give_up:
            os.close(descriptor)
            raise busy(timeout_s)
        time.sleep(_POLL_S)
    hold = Hold(descriptor, secrets.token_hex(8))
    tell(hold, os.getpid(), purpose)
    return hold


def host_for_measuring(timeout_s: float) -> int | None:
    """Take this host for one measurement, unless a hold that we run under has it.

    Returns:
        The descriptor to close afterwards; ``None`` under a hold.

    Raises:
        Infrastructure: As of `take_host`.
    """
    descriptor = _opened()
    give_up = time.monotonic() + timeout_s
    while not _locked(descriptor):
        if is_ours():
            os.close(descriptor)
            return None
        if time.monotonic() >= give_up:
            os.close(descriptor)
            raise busy(timeout_s)
        time.sleep(_POLL_S)
    return descriptor


def is_held() -> bool:
    """Whether anybody has this host."""
    descriptor = _opened()
    try:
        return not _locked(descriptor)
    finally:
        os.close(descriptor)


def is_ours() -> bool:
    """Whether the holder that is told of is the one that we run under."""
    token, found = settings.host_hold(), holder()
    return bool(token) and found is not None and found.token == token


def holder() -> Holder | None:
    """Who said last that it holds the host; it may be gone."""
    try:
        said = json.loads(text_of(lock_dir() / _HOLDER_NAME))
        return Holder(int(said["pid"]), float(said["since"]), str(said["purpose"]), str(said["token"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def tell(hold: Hold, pid: int, purpose: str) -> None:
    """Say who has the lock; without it nobody could measure under the hold.

    Raises:
        Infrastructure: E-host-lock.
    """
    text = json.dumps({"pid": pid, "since": time.time(), "purpose": purpose, "token": hold.token})
    try:
        with os.fdopen(open_shared(lock_dir() / _HOLDER_NAME), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        os.close(hold.descriptor)
        raise _cannot(error) from error


def keep(hold: Hold, owner: int, purpose: str) -> int:
    """Hand a hold to a keeper that goes on when this process ends, until the owner does.

    Args:
        hold: The hold.
        owner: Process id; its end is the hold's.
        purpose: What for.

    Returns:
        The keeper's process id.

    Raises:
        Infrastructure: ``E-host-lock``: it does not start.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, str(hold.descriptor), str(owner), hold.token],
        pass_fds=(hold.descriptor,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
    tell(hold, process.pid, purpose)
    os.close(hold.descriptor)
    if process.stdout is None or not process.stdout.read(1):
        raise Infrastructure(
            "E-host-lock", "the process that keeps the host's lock does not start", where=f"{lock_dir()}"
        )
    return process.pid


def release() -> bool:
    """End the keeper of the hold that we run under.

    Returns:
        Whether there was one: it may have ended with its owner.

    Raises:
        BadInput: ``E-no-hold``: we run under none, as far as the environment tells.
        Infrastructure: ``E-host-busy``: it does not end.
    """
    if not settings.host_hold():
        message = f"this is no process under a hold: {settings.HOST_HOLD} is not set"
        raise BadInput("E-no-hold", message, hint="release in the job that `fleet hold` was called for")
    found = holder()
    if found is None or not is_ours() or not _is_keeper(found):
        return False
    try:
        waits = os.pidfd_open(found.pid)
        if _is_keeper(found):  # still: the descriptor is of this very process
            signal.pidfd_send_signal(waits, signal.SIGTERM)
        select.select([waits], [], [], _RELEASE_S)
        os.close(waits)
    except ProcessLookupError:
        return False
    except PermissionError as error:
        raise Infrastructure("E-host-busy", f"its keeper can't be ended: {error}", where=found.text) from error
    return True


def busy(waited_s: float) -> Infrastructure:
    """The error of a host that another one has."""
    found = holder()
    return Infrastructure(
        "E-host-busy",
        f"this host is taken: {found.text if found else 'by an unknown process'}; waited {waited_s:.0f} s",
        hint="run again when it is done",
        where=str(lock_dir() / _LOCK_NAME),
    )


def _is_keeper(found: Holder) -> bool:
    """By its command line: ids of processes are used again."""
    with suppress(OSError):
        return found.token.encode() in Path(f"/proc/{found.pid}/cmdline").read_bytes().split(b"\0")
    return False


def _opened() -> int:
    try:
        lock_dir().mkdir(parents=True, exist_ok=True)
        return open_shared(lock_dir() / _LOCK_NAME)
    except OSError as error:
        raise _cannot(error) from error


def _locked(descriptor: int) -> bool:
    import fcntl  # noqa: PLC0415 - Linux has it, and this module is imported elsewhere too

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        os.close(descriptor)
        raise _cannot(error) from error
    return True


def _cannot(error: OSError) -> Infrastructure:
    return Infrastructure(
        "E-host-lock",
        f"the host's lock can't be made: {error}",
        hint="set MOE_LOCK_DIR to a folder that all users of this host can write",
        where=str(lock_dir()),
    )


def _main(owner: int) -> None:
    """The keeper: the lock ends with it."""
    try:
        waits = os.pidfd_open(owner)
    except ProcessLookupError:
        return
    os.write(1, b"+")
    select.select([waits], [], [])


if __name__ == "__main__":
    _main(int(sys.argv[2]))
