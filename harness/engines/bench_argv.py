"""Workloads and flags as arguments of ``llama-bench``, per fork."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from harness.domain.build import Fork, Tool
from harness.domain.flags import Flags
from harness.domain.workload import Workload
from harness.engines.engine import Order
from harness.engines.flags import specs

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tests:
    """What one ``llama-bench`` process is told to time.

    Attributes:
        argv: Its arguments.
        printed: Every workload that it will print a row of. llama.cpp times *all* workloads at *all* depths, so there
            can be more than were asked for; those rows are read and dropped.
    """

    argv: tuple[str, ...]
    printed: tuple[Workload, ...]


def threads_of(order: Order) -> int:
    """Compute threads: what the flag says, or the slot's where it leaves that open (0)."""
    return int(order.arm.flags.get("t") or order.threads)


def tests_of(fork: Fork, workloads: Sequence[Workload]) -> Tests:
    """The arguments that time these workloads in one process.

    Args:
        fork: Whose arguments.
        workloads: Such as the fork can time (``untimeable`` is empty for each).
    """
    return _mainline_tests(workloads) if fork is Fork.LLAMA_CPP else _ik_tests(workloads)


def untimeable(fork: Fork, workload: Workload) -> str:
    """Why a fork's ``llama-bench`` cannot time a workload; empty if it can."""
    if workload.tokens <= 0:
        return f"{workload.name or 'a workload'} has no tokens to time"
    if fork is Fork.IK_LLAMA_CPP and workload.n_depth and workload.n_prompt:
        return (
            f"ik_llama.cpp's llama-bench cannot time {workload.name}: at a depth it times token generation only (-gp);"
            " its wheel's embedded engine can"
        )
    return ""


def flags_argv(fork: Fork, flags: Flags, options: frozenset[str] | None) -> tuple[str, ...]:
    """All flags as arguments, in the table's order.

    Args:
        fork: Whose spelling.
        flags: A complete set; threads are said elsewhere.
        options: Spellings that the build's ``--help`` lists; ``None``: not known. Flags that it does not list are left
            out: a complete set made with the same knowledge has the value of their absence.
    """
    values = flags.as_dict()
    argv: list[str] = []
    for name, spec in specs(fork, Tool.LLAMA_BENCH).items():
        spelling = spec.spelling(options)
        if name != "t" and name in values and spelling is not None:
            argv += spelling.argv(values[name])
    return tuple(argv)


def _mainline_tests(workloads: Sequence[Workload]) -> Tests:
    depths = _unique(load.n_depth for load in workloads)
    grid = [load for at in _kinds(workloads) for load in at]
    argv = _lists(*_kinds(workloads))
    if depths != (0,):
        argv = (*argv, "-d", _comma(depths))
    printed = tuple(Workload(load.n_prompt, load.n_gen, depth) for depth in depths for load in grid)
    return Tests(argv, printed)


def _ik_tests(workloads: Sequence[Workload]) -> Tests:
    prompts, generations, both = _kinds([load for load in workloads if not load.n_depth])
    deep = _unique(load for load in workloads if load.n_depth)
    argv = _lists(prompts, generations, both)
    for load in deep:
        argv = (*argv, "-gp", f"{load.n_depth},{load.n_gen}")
    return Tests(argv, (*prompts, *generations, *both, *deep))


def _kinds(workloads: Iterable[Workload]) -> tuple[tuple[Workload, ...], ...]:
    """Workloads without their depth: prompts, generations, and both at once; each once, in order."""
    flat = _unique(Workload(load.n_prompt, load.n_gen) for load in workloads)
    return (
        tuple(load for load in flat if not load.n_gen),
        tuple(load for load in flat if not load.n_prompt),
        tuple(load for load in flat if load.n_prompt and load.n_gen),
    )


def _lists(prompts: Sequence[Workload], generations: Sequence[Workload], both: Sequence[Workload]) -> tuple[str, ...]:
    """``-p`` and ``-n`` are always said (0: none), or ``llama-bench`` adds its default tests."""
    argv = [
        "-p",
        _comma(load.n_prompt for load in prompts) or "0",
        "-n",
        _comma(load.n_gen for load in generations) or "0",
    ]
    for load in both:
        argv += ["-pg", f"{load.n_prompt},{load.n_gen}"]
    return tuple(argv)


def _comma(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _unique(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))
