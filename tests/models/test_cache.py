"""The node's cache: made once, whole or not at all, whoever dies meanwhile."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from micro_model import child_environment, micro_card, micro_content, need_quantizer

from harness.domain.errors import Infrastructure
from harness.domain.halting import Stopped
from harness.models import cache as module
from harness.models import storage
from harness.models.cache import ModelRequest, Progress, Workshop, ensure, ensure_model, read_sidecar
from harness.models.card import Card
from harness.models.hashing import file_sha256
from harness.models.quantize import CompletedRun, run_to_end, stoppable_run

# A maker in a process of its own: prints each stage once, and holds in stage HOLD until the file GO exists.
MAKER = """
import json, sys, time
from pathlib import Path
from harness.models.cache import ensure_model
from harness.models.quantize import CompletedRun
card, quant, cache, hold, go = sys.argv[1:]
seen = set()
def stage(name):
    if name in seen:
        return
    seen.add(name)
    print(name, flush=True)
    while name == hold and not Path(go).exists():
        time.sleep(0.02)
def run(argv, *, timeout):
    Path(argv[2]).write_bytes(b"half a model")
    stage("running")
    return CompletedRun(1, "")
print(ensure_model(card, quant, cache=Path(cache), run=run, progress=lambda p: stage(p.stage)), flush=True)
"""


class Maker:
    """A maker process, read stage by stage."""

    def __init__(self, folder: Path, quant: str, hold: str = "") -> None:
        card = folder / "micro.json"
        card.write_text(json.dumps(micro_content()))
        self.go = folder / "go"
        command = [sys.executable, "-c", MAKER, str(card), quant, str(folder / "cache"), hold, str(self.go)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=child_environment())

    def line(self) -> str:
        """The next line it prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def rest(self) -> list[str]:
        """All further lines, once it has ended."""
        out, _ = self.process.communicate(timeout=60)
        return out.split()

    def kill(self) -> None:
        """Kill it as the out-of-memory killer would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate(timeout=60)


def files(folder: Path, pattern: str) -> list[str]:
    return sorted(path.name for path in (folder / "cache" / "models").glob(pattern))


def workshop(folder: Path, **more: Any) -> Workshop:
    return Workshop(folder / "cache", **more)


def test_made_once_then_taken(tmp_path: Path, micro: Card) -> None:
    """The second request makes nothing, and the sidecar tells the truth."""
    stages: list[Progress] = []
    first = ensure_model(micro, "F16", cache=tmp_path, progress=stages.append)
    assert {each.stage for each in stages} == {"weights", "hashing"}
    assert max(each.done for each in stages if each.stage == "weights") == stages[0].total
    stages.clear()
    assert ensure_model(micro, "f16", cache=tmp_path, progress=stages.append) == first
    assert not stages
    sidecar = read_sidecar(first)
    assert sidecar is not None
    assert (sidecar.synthetic, sidecar.card, sidecar.quant) == (True, "micro-moe", "F16")
    assert (sidecar.sha256, sidecar.size) == (file_sha256(first, cache=tmp_path), first.stat().st_size)


def test_other_seed_other_file(tmp_path: Path, micro: Card) -> None:
    """Cards that differ anywhere never share a file."""
    assert ensure_model(micro, "F16", cache=tmp_path) != ensure_model(micro_card(seed=9), "F16", cache=tmp_path)


def test_quants_share_the_f16_file(tmp_path: Path, micro: Card) -> None:
    """Two quants draw the weights once, and each quantizer run reads that file."""
    need_quantizer()
    sources: list[str] = []

    def run(argv: Sequence[str], *, timeout: float) -> CompletedRun:
        sources.append(argv[1])
        return run_to_end(argv, timeout=timeout)

    stages: list[str] = []
    shop = workshop(tmp_path, run=run, report=lambda progress: stages.append(progress.stage))
    made = [ensure(ModelRequest(micro, quant), shop) for quant in ("Q8_0", "Q4_0", "Q8_0")]
    assert made[0] == made[2] != made[1]
    assert len(sources) == 2
    assert len(set(sources)) == 1
    assert files(tmp_path, "*.gguf") == sorted([Path(sources[0]).name, *{path.name for path in made}])


def test_second_maker_waits_and_uses_what_the_first_made(tmp_path: Path) -> None:
    """Of two makers at once one draws weights; both get the same whole file."""
    first = Maker(tmp_path, "F16", hold="weights")
    assert first.line() == "weights"
    second = Maker(tmp_path, "F16")
    assert second.line() == "waiting"
    first.go.touch()
    made = second.rest()
    assert made == first.rest()[-1:]
    assert Path(made[0]).stat().st_size == read_sidecar(Path(made[0])).size  # type: ignore[union-attr]


@pytest.mark.parametrize(("quant", "hold"), [("F16", "weights"), ("F16", "hashing"), ("Q8_0", "running")])
def test_killed_maker_leaves_nothing_half_made(tmp_path: Path, micro: Card, quant: str, hold: str) -> None:
    """After kill -9 in any stage nothing counts as present, and the next maker clears up and makes it whole."""
    if quant != "F16":
        need_quantizer()
    maker = Maker(tmp_path, quant, hold=hold)
    while (line := maker.line()) != hold:
        assert line, "the maker ended early"
    maker.kill()
    if hold != "hashing":
        assert len(files(tmp_path, ".*.part")) == 1
    assert not files(tmp_path, f"*-{quant}-*.json")
    made = ensure(ModelRequest(micro, quant), workshop(tmp_path))
    assert not files(tmp_path, ".*.part")
    sidecar = read_sidecar(made)
    assert sidecar is not None
    assert sidecar.sha256 == file_sha256(made, cache=tmp_path / "other")


@pytest.mark.parametrize(("quant", "stage"), [("F16", "weights"), ("Q8_0", "quantizing"), ("Q8_0", "hashing")])
def test_a_maker_that_is_told_to_stop_leaves_nothing_half_made(
    tmp_path: Path, micro: Card, quant: str, stage: str
) -> None:
    """It ends between two pieces of that stage, and the next one makes the model whole."""
    if quant != "F16":
        need_quantizer()
        ensure(ModelRequest(micro), workshop(tmp_path))
    stages: list[str] = []

    def told() -> bool:
        return stage in stages

    with pytest.raises(Stopped):
        ensure(
            ModelRequest(micro, quant),
            workshop(
                tmp_path,
                run=stoppable_run(told),
                report=lambda progress: stages.append(progress.stage),
                should_stop=told,
            ),
        )
    assert stages.count("weights") == (quant == "F16")
    assert not files(tmp_path, ".*.part")
    assert not files(tmp_path, f"*-{quant}-*.gguf")
    assert ensure(ModelRequest(micro, quant), workshop(tmp_path)).exists()


def test_who_waits_for_another_maker_can_be_told_to_stop(tmp_path: Path, micro: Card) -> None:
    maker = Maker(tmp_path, "F16", hold="weights")
    assert maker.line() == "weights"
    with pytest.raises(Stopped):
        ensure(ModelRequest(micro), workshop(tmp_path, should_stop=lambda: True))
    maker.kill()


def test_a_file_is_not_read_to_its_end_for_nobody(tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(bytes(3 << 20))
    asked = iter([False, True])
    with pytest.raises(Stopped):
        file_sha256(file, cache=tmp_path, should_stop=lambda: next(asked))
    assert len(file_sha256(file, cache=tmp_path)) == 64


def test_maker_that_takes_too_long_is_told(tmp_path: Path, micro: Card) -> None:
    """Waiting for another maker ends in an error that says so."""
    maker = Maker(tmp_path, "F16", hold="weights")
    assert maker.line() == "weights"
    with pytest.raises(Infrastructure, match="E-cache-busy"):
        ensure(ModelRequest(micro), workshop(tmp_path, lock_seconds=0.1))
    maker.kill()


def test_a_cut_file_is_made_again(tmp_path: Path, micro: Card) -> None:
    """A cached file whose size is not the sidecar's does not count."""
    made = ensure(ModelRequest(micro), workshop(tmp_path))
    whole = made.read_bytes()
    os.truncate(made, 1000)
    assert ensure(ModelRequest(micro), workshop(tmp_path)).read_bytes() == whole


def failing(code: int) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize(
    ("code", "slug"),
    [
        (errno.ENOSPC, "E-disk-full"),
        (errno.EDQUOT, "E-disk-full"),
        (errno.EACCES, "E-no-permission"),
        (errno.EROFS, "E-no-permission"),
        (errno.EIO, "E-cache-unusable"),
    ],
)
def test_disk_faults_while_writing(
    tmp_path: Path, micro: Card, monkeypatch: pytest.MonkeyPatch, code: int, slug: str
) -> None:
    """What the disk says becomes an error with path, bytes and remedy, and nothing is left behind."""
    monkeypatch.setattr(module, "write_model", failing(code))
    with pytest.raises(Infrastructure) as caught:
        ensure(ModelRequest(micro), workshop(tmp_path))
    assert caught.value.slug == slug
    assert "micro-moe-F16" in caught.value.where
    assert "bytes were to be written" in caught.value.message
    assert "MOE_CACHE_DIR" in caught.value.hint
    assert not files(tmp_path, ".*.part")
    assert not files(tmp_path, "*.gguf")


def test_too_little_space_is_refused_before_writing(
    tmp_path: Path, micro: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Needed and free bytes are compared first, and both are said."""
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(storage.shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(Infrastructure, match=r"E-disk-full: .*\d+ bytes are needed, 1000 are free"):
        ensure(ModelRequest(micro), workshop(tmp_path))


def test_cache_folder_that_is_a_file(tmp_path: Path, micro: Card) -> None:
    """A cache that can't be a folder is told."""
    (tmp_path / "cache").write_text("in the way")
    with pytest.raises(Infrastructure, match="E-cache-unusable"):
        ensure(ModelRequest(micro), workshop(tmp_path))


def test_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MOE_CACHE_DIR wins, then XDG_CACHE_HOME unless relative, then the home folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MOE_CACHE_DIR", "/chosen")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert storage.cache_root() == Path("/chosen")
    monkeypatch.delenv("MOE_CACHE_DIR")
    assert storage.cache_root() == Path("/xdg/moe-harness")
    for relative in ("relative", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", relative)
        assert storage.cache_root() == tmp_path / ".cache" / "moe-harness"


def test_sidecars_of_other_files_are_none(tmp_path: Path) -> None:
    """A file without a sidecar, or with a foreign one, is not known."""
    assert read_sidecar(tmp_path / "m.gguf") is None
    (tmp_path / "m.json").write_text('{"other": 1}')
    assert read_sidecar(tmp_path / "m.gguf") is None
    (tmp_path / "m.json").write_text("[1]")
    assert read_sidecar(tmp_path / "m.gguf") is None


def test_lock_is_free_after_an_error(tmp_path: Path, micro: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed making does not keep the next one waiting."""
    with monkeypatch.context() as patched:
        patched.setattr(module, "write_model", failing(errno.ENOSPC))
        with pytest.raises(Infrastructure):
            ensure(ModelRequest(micro), workshop(tmp_path))
    assert ensure(ModelRequest(micro), workshop(tmp_path, lock_seconds=0.0)).exists()
