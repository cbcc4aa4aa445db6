"""What the tests of the engines share: recordings, builds, orders and a stand-in for a compiled program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.flags import Flags, FlagValue
from harness.domain.model import Model
from harness.domain.workload import OutputProfile, Prompt, Workload
from harness.engines.engine import Exit, Order

RECORDINGS = Path(__file__).parent.parent / "data" / "recordings"
PRODUCERS = {Fork.LLAMA_CPP: "llama_cpp-b11434", Fork.IK_LLAMA_CPP: "ik_llama_cpp-8337e4cd"}
MODEL = Path("models/q3-48l-q4k.gguf")
PROFILE = OutputProfile("greedy4", (Prompt("short", "Once"),), 4, 8)
PP512, PP2048, TG64 = Workload(512, 0), Workload(2048, 0), Workload(0, 64)


def recording(fork: Fork, what: str) -> str:
    """A recorded output of a fork."""
    return (RECORDINGS / f"{PRODUCERS[fork]}.{what}").read_text(encoding="utf-8")


def path_build(fork: Fork, path: str = "/opt/build") -> Build:
    """A build with a llama-bench."""
    return Build("b", fork, path=path)


def wheel_build(fork: Fork) -> Build:
    """A build of the fork's wheel."""
    return Build("w", fork, wheel={Fork.LLAMA_CPP: "xllamacpp", Fork.IK_LLAMA_CPP: "ik-llama-cpp-python"}[fork])


def order(
    build: Build,
    workloads: Sequence[Workload],
    *,
    flags: Flags | Mapping[str, FlagValue] | None = None,
    repetitions: int = 5,
    outputs: OutputProfile | None = None,
    model: Path = MODEL,
    environment: tuple[tuple[str, str], ...] = (),
    threads: int = 16,
) -> Order:
    """An order, by default of 16 threads."""
    chosen = flags if isinstance(flags, Flags) else Flags.of(flags or {})
    arm = Arm(build, Model("m", path=str(model)), chosen, environment)
    return Order(arm, model, tuple(workloads), repetitions, outputs, threads)


def ended(
    stdout: str = "", stderr: str = "", *, code: int | None = 0, signal: int | None = None, timed_out: bool = False
) -> Exit:
    """The end of a process; by default a clean one."""
    return Exit(code if signal is None else None, signal, timed_out, stdout, stderr)


def fake_program(path: Path, *, content: bytes = b"\x7fELF rest") -> Path:
    """A file that looks like a compiled program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o755)
    return path
