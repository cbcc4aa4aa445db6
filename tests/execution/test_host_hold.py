"""A host is taken for a command or a CI runner's job: real processes, killed ones too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forked import run_forked

from harness.domain.errors import Infrastructure
from harness.execution.host_hold import Hold, holder, is_held, keep, release, take_host
from harness.execution.hostlock import measurement_lock

_FLEET = (sys.executable, "-m", "harness.cli", "fleet")
_PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MOE_LOCK_DIR", str(tmp_path))
    monkeypatch.delenv("MOE_HOST_HOLD", raising=False)
    return tmp_path


@pytest.fixture
def owner() -> Iterator[subprocess.Popen[bytes]]:
    """Some process: a runner's worker, say."""
    with subprocess.Popen(["/bin/sleep", "600"]) as process:
        yield process
        process.kill()


def _fleet(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return run_forked("moe-harness", "fleet", *arguments, env=os.environ | env)


def _until(happened: Callable[[], bool]) -> None:
    give_up = time.monotonic() + _PATIENCE_S
    while not happened():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def _is_free() -> bool:
    return not is_held()


def _measures() -> bool:
    try:
        with measurement_lock(0, "ours"):
            return True
    except Infrastructure as error:
        if error.slug != "E-host-busy":
            raise
        return False


def test_a_command_has_the_host_until_it_ends(tmp_path: Path) -> None:
    """Its exit code is the command's; who measures meanwhile waits, what it measures itself does not."""
    inside = "from harness.execution.hostlock import measurement_lock\nwith measurement_lock(0, 'x'): print('measured')"
    script = f'"$0" -c "$1" && touch {tmp_path}/began && read line && exit 7'
    line = [*_FLEET, "lock", "--", "sh", "-c", script, sys.executable, inside]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as command:
        _until((tmp_path / "began").exists)
        with pytest.raises(Infrastructure, match=f"E-host-busy.*process {command.pid}.*sh -c"):
            take_host(0, "other")
        assert not _measures()
        out, _ = command.communicate("\n")
    assert (command.returncode, out) == (7, "measured\n")
    assert _measures()


def test_a_killed_command_leaves_the_host_free(tmp_path: Path) -> None:
    line = [*_FLEET, "lock", "--", "sh", "-c", f"touch {tmp_path}/began; exec sleep 600"]
    with subprocess.Popen(line) as command:
        _until((tmp_path / "began").exists)
        assert is_held()
        command.kill()
        command.wait()
    assert _measures()


def test_a_hook_holds_the_host_until_its_job_ends(owner: subprocess.Popen[bytes]) -> None:
    """The hook is over at once, the job is killed, and nobody says that it is over."""
    hook = _fleet("hold", "--for", str(owner.pid))
    assert hook.returncode == 0, hook.stderr
    name, token = hook.stdout.strip().split("=")
    assert not _measures()
    assert f"the job of process {owner.pid}" in _fleet("lock", "--", "true").stderr

    assert _fleet("lock", "--", "sh", "-c", "exit 5", **{name: token}).returncode == 5
    assert _fleet("hold", "--for", str(owner.pid), **{name: token}).stdout == hook.stdout

    owner.kill()
    owner.wait()
    _until(_measures)
    assert _fleet("release", **{name: token}).stdout == "nothing to release: the hold has ended by itself\n"


def _kept(owner: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> tuple[Hold, int]:
    hold = take_host(0, "a job")
    keeper = keep(hold, owner.pid, "a job")
    monkeypatch.setenv("MOE_HOST_HOLD", hold.token)
    return hold, keeper


def test_a_job_measures_under_its_own_hold_one_thing_at_a_time(
    owner: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    _kept(owner, monkeypatch)
    with measurement_lock(0, "first"):
        assert not _measures()
    assert _measures()
    monkeypatch.delenv("MOE_HOST_HOLD")
    assert not _measures()


def test_a_hold_is_released_before_its_owner_ends(
    owner: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    _kept(owner, monkeypatch)
    assert release()
    _until(_is_free)
    assert owner.poll() is None
    assert not release()


def test_a_killed_keeper_disturbs_no_measurement(
    owner: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host is free for the next one, who waits for what is measured still."""
    _, keeper = _kept(owner, monkeypatch)
    with measurement_lock(0, "ours"):
        os.kill(keeper, signal.SIGKILL)
        _until(_is_free)
        monkeypatch.delenv("MOE_HOST_HOLD")
        assert not _measures()
    assert _measures()


def test_a_stranger_with_the_keepers_id_is_not_killed(
    owner: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """Ids of processes are used again: planted in what the holder says."""
    _, keeper = _kept(owner, monkeypatch)
    said = folder / "moe-host.holder"
    said.write_text(said.read_text().replace(f'"pid": {keeper}', f'"pid": {owner.pid}'))
    assert not release()
    assert owner.poll() is None


@pytest.mark.parametrize("content", ["", "nonsense", "[]", "{}", '{"pid": "x"}'])
def test_a_damaged_holder_file_is_nobody(folder: Path, content: str) -> None:
    (folder / "moe-host.holder").write_text(content)
    assert holder() is None
    assert _measures()


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        (("hold", "--for", "4194305"), "E-no-process"),
        (("lock", "--", "/no/such/command"), "E-no-command"),
        (("release",), "E-no-hold"),
    ],
)
def test_bad_input_is_said(arguments: tuple[str, ...], slug: str) -> None:
    done = _fleet(*arguments)
    assert done.returncode == 2
    assert slug in done.stderr
    assert not is_held()
