"""Quantizing: names, a missing tool, and how failures are told."""

from __future__ import annotations

import errno
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from micro_model import child_environment, need_quantizer

from harness.domain.errors import BadInput, HarnessError, Infrastructure
from harness.domain.halting import Stopped
from harness.models import quantize as module
from harness.models.inspect import inspect_gguf
from harness.models.quantize import (
    QUANTS,
    CompletedRun,
    Quantizer,
    find_quantizer,
    known_quant,
    quantize,
    run_to_end,
    stoppable_run,
)


def ending(code: int, output: str = "") -> module.Run:
    """A run that ends at once."""

    def run(argv: Sequence[str], *, timeout: float) -> CompletedRun:
        return CompletedRun(code, output)

    return run


def attempt(path: Path, run: module.Run) -> HarnessError:
    path.write_bytes(b"x")
    with pytest.raises(HarnessError) as caught:
        quantize(path, path.with_suffix(".out"), QUANTS["IQ1_S"], quantizer=Quantizer(Path("/tool")), run=run)
    return caught.value


def test_unknown_quant_suggests_the_nearest() -> None:
    """A misspelt quant gets the nearest one; case does not matter."""
    with pytest.raises(BadInput) as caught:
        known_quant("IQ4_SX")
    assert caught.value.slug == "E-unknown-quant"
    assert caught.value.hint in ("did you mean 'IQ4_XS'?", "did you mean 'IQ4_KS'?")
    assert known_quant("q4_k_m").name == "Q4_K_M"


def test_missing_wheel_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the wheel the error says what to install."""
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(BadInput) as caught:
        find_quantizer()
    assert caught.value.slug == "E-quantizer-missing"
    assert "moe-harness[local]" in caught.value.hint


def test_the_tool_lists_every_quant_by_our_number() -> None:
    """Each quant's name and number are those of the tool's own help."""
    need_quantizer()
    listed = run_to_end([str(find_quantizer().executable), "--help"], timeout=20).output
    rows = {
        tuple(word.strip() for word in line.split(":")[0].split("or")[:2])
        for line in listed.splitlines()
        if "or" in line
    }
    assert {(str(quant.file_type), quant.name) for quant in QUANTS.values()} <= rows


def test_finding_it_does_not_load_the_wheel() -> None:
    """The quantizer is found without importing the wheel, whose library must stay out of this process."""
    need_quantizer()
    code = (
        "import sys; from harness.models.quantize import find_quantizer; "
        "print(len(find_quantizer().digest()), *sys.modules)"
    )
    ended = run_to_end(
        ["/usr/bin/env", f"PYTHONPATH={child_environment()['PYTHONPATH']}", sys.executable, "-c", code], timeout=60
    )
    digits, *loaded = ended.output.split()
    assert digits == "64"
    assert "ik_llama_cpp" not in loaded


def test_failures_have_their_own_words(tmp_path: Path) -> None:
    """A refusal blames the request, a crash or a full disk the machine; the tool's last words are kept."""
    source = tmp_path / "m.gguf"
    refused = attempt(source, ending(1, "blah\nthis quantization needs an imatrix"))
    assert (refused.slug, type(refused)) == ("E-quantize-failed", BadInput)
    assert "importance matrix" in refused.hint
    assert "needs an imatrix" in refused.message
    crashed = attempt(source, ending(-6, "terminate called"))
    assert (crashed.slug, type(crashed)) == ("E-quantize-crashed", Infrastructure)


@pytest.mark.parametrize(
    ("said", "code"),
    [("No space left on device", errno.ENOSPC), ("failed to quantize: basic_ios::clear: iostream error", errno.EIO)],
)
def test_disk_faults_are_os_errors(tmp_path: Path, said: str, code: int) -> None:
    """A tool that could not write raises what the disk would, for the cache to translate."""
    source = tmp_path / "m.gguf"
    source.write_bytes(b"x")
    with pytest.raises(OSError, match=re.escape(os.strerror(code))) as caught:
        quantize(source, tmp_path / "o.gguf", QUANTS["Q8_0"], quantizer=Quantizer(Path("/tool")), run=ending(1, said))
    assert caught.value.errno == code


def test_a_tool_that_does_not_start(tmp_path: Path) -> None:
    """A program that can't be started is told with its path."""
    error = attempt(tmp_path / "m.gguf", run_to_end)
    assert (error.slug, error.where) == ("E-quantizer-broken", "/tool")


def test_a_tool_that_hangs_is_killed(tmp_path: Path) -> None:
    """On timeout the child is gone before the error is raised."""
    note = tmp_path / "pid"
    code = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    with pytest.raises(TimeoutError):
        run_to_end([sys.executable, "-c", code], timeout=1.5)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and not note.exists():
        time.sleep(0.05)
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_a_tool_is_killed_where_the_work_is_to_stop(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = f"import os, time; print(os.getpid(), file=open({str(note)!r}, 'w', 1)); time.sleep(600)"
    with pytest.raises(Stopped):
        stoppable_run(lambda: note.exists() and bool(note.read_text()))([sys.executable, "-c", code], timeout=60)
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_real_tool_quantizes_the_same_on_any_number_of_threads(tmp_path: Path, micro_file: Path) -> None:
    """The tool of the wheel makes a readable file that does not depend on the threads."""
    need_quantizer()
    made = []
    for threads in (1, 2):
        target = tmp_path / f"{threads}.gguf"
        quantize(micro_file, target, QUANTS["Q8_0"], quantizer=find_quantizer(), threads=threads)
        made.append(target.read_bytes())
    assert made[0] == made[1]
    assert inspect_gguf(tmp_path / "1.gguf").quant == "Q8_0"
