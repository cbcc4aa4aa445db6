"""Quantize a model file with the ``llama-quantize`` of the ik_llama.cpp wheel.

The only place of ``harness.models`` that starts a process, and only through a `Run`, which callers may replace.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from harness.domain.errors import BadInput, Infrastructure
from harness.domain.halting import ShouldStop, go_on, never
from harness.domain.suggest import did_you_mean

UNQUANTIZED = "F16"

_TAIL_CHARACTERS = 800
_SECONDS_PER_GIBIBYTE = 1800.0
_LEAST_SECONDS = 300.0
_STREAM_FAULT = "iostream error"
# With less than this left on the disk, that is the reason for a stream fault.
_FULL_DISK_BYTES = 1 << 20
_POLL_S = 0.1
_WHEEL = "ik_llama_cpp"


@dataclass(frozen=True)
class Quant:
    """A mixture of tensor types that ``llama-quantize`` makes.

    Attributes:
        name: As the tool spells it.
        file_type: Its number, in the tool's arguments and in ``general.file_type``.
        bits: Nominal bits per weight, from the tool's help or the block sizes; for estimates of disk space only.
    """

    name: str
    file_type: int
    bits: float


QUANTS: dict[str, Quant] = {
    row[0]: Quant(*row)
    for row in (
        ("F32", 0, 32.0),
        ("F16", 1, 16.0),
        ("BF16", 32, 16.0),
        ("Q4_0", 2, 4.5),
        ("Q4_1", 3, 5.0),
        ("Q5_0", 8, 5.5),
        ("Q5_1", 9, 6.0),
        ("Q6_0", 135, 6.5),
        ("Q8_0", 7, 8.5),
        ("MXFP4", 38, 4.25),
        ("Q2_K", 10, 3.4),
        ("Q2_K_S", 21, 2.9),
        ("Q3_K_S", 11, 3.5),
        ("Q3_K_M", 12, 4.0),
        ("Q3_K_L", 13, 4.3),
        ("Q4_K_S", 14, 4.6),
        ("Q4_K_M", 15, 4.9),
        ("Q5_K_S", 16, 5.6),
        ("Q5_K_M", 17, 5.7),
        ("Q6_K", 18, 6.6),
        ("IQ1_S", 24, 1.6),
        ("IQ1_M", 31, 1.8),
        ("IQ2_XXS", 19, 2.1),
        ("IQ2_XS", 20, 2.4),
        ("IQ2_S", 28, 2.5),
        ("IQ2_M", 29, 2.7),
        ("IQ3_XXS", 23, 3.1),
        ("IQ3_XS", 22, 3.3),
        ("IQ3_S", 26, 3.5),
        ("IQ3_M", 27, 3.7),
        ("IQ4_NL", 25, 4.5),
        ("IQ4_XS", 30, 4.3),
        ("IQ1_KT", 156, 1.8),
        ("IQ2_KT", 151, 2.2),
        ("IQ3_KT", 152, 3.2),
        ("IQ4_KT", 153, 4.1),
        ("IQ2_KS", 147, 2.2),
        ("IQ2_KL", 155, 2.7),
        ("IQ2_K", 138, 2.4),
        ("IQ3_KS", 154, 3.2),
        ("IQ3_K", 139, 3.5),
        ("IQ3_KL", 146, 4.0),
        ("IQ4_KSS", 148, 4.1),
        ("IQ4_KS", 145, 4.3),
        ("IQ4_K", 140, 4.5),
        ("IQ5_KS", 150, 5.3),
        ("IQ5_K", 141, 5.5),
        ("IQ6_K", 142, 6.6),
        ("Q8_KV", 149, 8.1),
        ("IQ4_XS_R8", 230, 4.3),
        ("IQ4_NL_R4", 225, 4.5),
        ("Q4_0_R8", 202, 4.5),
        ("Q4_K_R4", 214, 4.6),
        ("Q6_K_R4", 218, 6.6),
        ("Q8_0_R8", 207, 8.5),
    )
}
QUANT_OF_FILE_TYPE: dict[int, str] = {quant.file_type: quant.name for quant in QUANTS.values()}


@dataclass(frozen=True)
class CompletedRun:
    """How a started program ended.

    Attributes:
        returncode: Exit code, negative for a signal.
        output: What it printed, both streams together.
    """

    returncode: int
    output: str


class Run(Protocol):
    """Starts a program and waits for it; must kill it when interrupted or out of time."""

    def __call__(self, argv: Sequence[str], *, timeout: float) -> CompletedRun:
        """Run to the end.

        Args:
            argv: Program and arguments.
            timeout: Seconds it may take.

        Raises:
            TimeoutError: It took longer.
            OSError: It could not be started.
            Stopped: It was told to stop.
        """
        ...


def stoppable_run(should_stop: ShouldStop) -> Run:
    """A `Run` that can be told to stop; the child is killed then, on timeout and on any exception, Ctrl-C included."""

    def run(argv: Sequence[str], *, timeout: float) -> CompletedRun:
        give_up = time.monotonic() + timeout
        with subprocess.Popen(  # the wheel's own tool, an argv list
            list(argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        ) as child:
            try:
                while True:
                    go_on(should_stop)
                    try:
                        output, _ = child.communicate(timeout=_POLL_S)
                    except subprocess.TimeoutExpired as late:
                        if time.monotonic() > give_up:
                            raise TimeoutError(f"no end after {timeout:.0f} s") from late
                    else:
                        return CompletedRun(child.returncode, output.decode("utf-8", "replace"))
            except BaseException:
                child.kill()
                raise

    return run


def run_to_end(argv: Sequence[str], *, timeout: float) -> CompletedRun:
    """The `Run` used where none is given; nobody stops it but Ctrl-C."""
    return stoppable_run(never)(argv, timeout=timeout)


def known_quant(name: str) -> Quant:
    """Look a quant up, in any case.

    Raises:
        BadInput: ``E-unknown-quant`` with the nearest name.
    """
    quant = QUANTS.get(name.upper())
    if quant is None:
        raise BadInput("E-unknown-quant", f"no quant is named '{name}'", hint=did_you_mean(name, QUANTS))
    return quant


@dataclass(frozen=True)
class Quantizer:
    """A ``llama-quantize`` and what it loads.

    Attributes:
        executable: The program.
        libraries: Libraries that came with it; they hold the code that does the work.
    """

    executable: Path
    libraries: tuple[Path, ...] = ()

    def digest(self) -> str:
        """SHA-256 of the program and its libraries, in hexadecimal."""
        return _digest((self.executable, *self.libraries))


def find_quantizer() -> Quantizer:
    """Find the quantizer of the installed wheel, without importing the wheel (which would load its library).

    Raises:
        BadInput: ``E-quantizer-missing``.
    """
    spec = find_spec(_WHEEL)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        executable = Path(folder) / "bin" / "llama-quantize"
        if executable.is_file():
            bundled = Path(folder).parent / "ik_llama_cpp_python.libs"
            return Quantizer(executable, tuple(sorted(bundled.glob("*.so*"))))
    raise BadInput(
        "E-quantizer-missing",
        "quantizing needs the llama-quantize of the wheel ik-llama-cpp-python, which is not installed",
        hint="pip install 'moe-harness[local]', or ask for the quant F16",
    )


def quantize(
    source: Path,
    target: Path,
    quant: Quant,
    *,
    quantizer: Quantizer,
    threads: int = 1,
    run: Run = run_to_end,
) -> None:
    """Quantize a file.

    Args:
        source: An F16 file.
        target: Written anew; left behind half-made on errors, for the caller to remove.
        quant: The mixture.
        quantizer: From `find_quantizer`.
        threads: Cores the caller has reserved.
        run: Starts the program.

    Raises:
        OSError: The file could not be written.
        BadInput: ``E-quantize-failed``: the tool refused, such as a quant that needs an importance matrix.
        Infrastructure: ``E-quantize-timeout``, ``E-quantize-crashed`` or ``E-quantizer-broken``.
    """
    argv = [str(quantizer.executable), str(source), str(target), quant.name, str(max(1, threads))]
    limit = max(_LEAST_SECONDS, source.stat().st_size / 2**30 * _SECONDS_PER_GIBIBYTE)
    try:
        ended = run(argv, timeout=limit)
    except TimeoutError as late:
        raise Infrastructure("E-quantize-timeout", f"{quant.name}: {late}", where=str(source)) from late
    except OSError as failure:
        raise Infrastructure(
            "E-quantizer-broken", f"can't be started: {failure.strerror}", where=str(quantizer.executable)
        ) from failure
    if ended.returncode == 0:
        return
    tail = ended.output[-_TAIL_CHARACTERS:].strip()
    _raise_disk_fault(ended.output, target)
    if ended.returncode < 0:
        raise Infrastructure(
            "E-quantize-crashed", f"{quant.name}: signal {-ended.returncode}: {tail}", where=str(source)
        )
    hint = "this quant needs an importance matrix; take another" if "imatrix" in tail or "importance" in tail else ""
    raise BadInput(
        "E-quantize-failed", f"{quant.name}: exit code {ended.returncode}: {tail}", where=str(source), hint=hint
    )


def _raise_disk_fault(output: str, target: Path) -> None:
    """Raise what the disk did, where that is why the tool failed; it says no more than that a stream failed."""
    full = os.strerror(errno.ENOSPC) in output or shutil.disk_usage(target.parent).free < _FULL_DISK_BYTES
    if full or _STREAM_FAULT in output:
        code = errno.ENOSPC if full else errno.EIO
        raise OSError(code, os.strerror(code), str(target))


@lru_cache(maxsize=8)
def _digest(files: tuple[Path, ...]) -> str:
    content = hashlib.sha256()
    for file in files:
        content.update(hashlib.sha256(file.read_bytes()).digest())
    return content.hexdigest()
