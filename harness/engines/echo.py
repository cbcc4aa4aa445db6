"""The echo check: does a result row repeat what was asked for?

A difference is an error. Agreement proves nothing: ``-rtr 1`` rows of ik_llama.cpp echo ``use_mmap: true`` although the
loader drops mmap (recorded); complete flag sets say ``mmap`` off there, so the two agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from harness.domain.build import Fork, Tool
from harness.domain.flags import FlagValue
from harness.engines.bench_argv import threads_of
from harness.engines.engine import Order
from harness.engines.flag_spec import NONE, Compare, Echo, FlagSpec, overrides_of
from harness.engines.flags import specs

_MARKS = {
    Fork.LLAMA_CPP: ("tensor_buft_overrides", "backends", "n_depth"),
    Fork.IK_LLAMA_CPP: ("fused_moe", "mla_attn", "attn_max_batch"),
}
"""Fields that only one fork's rows ever had."""

_SHIFTED = frozenset({"mqkv", "fmoe", "ger", "no_fug", "thp", "no_ooae", "rcache"})
"""Flags whose fields hold other flags' values in ik_llama.cpp from cfb840379 (2025-10-31) until e61cd0303 mended it."""


def fork_of_row(row: Mapping[str, Any]) -> Fork | None:
    """The fork whose ``llama-bench`` prints such rows; ``None`` where the row does not tell."""
    forks = [fork for fork, marks in _MARKS.items() if any(mark in row for mark in marks)]
    return forks[0] if len(forks) == 1 else None


def echo_differences(order: Order, row: Mapping[str, Any]) -> tuple[str, ...]:
    """Each difference between what was asked for and what the row repeats, e.g. ``fused_moe: asked 1, echoed False``.

    Args:
        order: What was asked for.
        row: The row as printed.
    """
    asked = _asked(order)
    found = [_difference(spec, asked[name], row) for name, spec in _table(order).items()]
    return tuple(difference for difference in [_model_difference(order, row), *found] if difference)


def not_echoed(order: Order, row: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the flags that the row says nothing about: nothing checks those."""
    # ik_llama.cpp echoes the layers of ncmoe as overrides, and there they are compared.
    elsewhere = {"ncmoe"} if "override_tensor" in row else set()
    silent = (name for name, spec in _table(order).items() if _echo_of(spec, row) is None)
    return tuple(name for name in silent if name not in elsewhere)


def _table(order: Order) -> dict[str, FlagSpec]:
    build = order.arm.build
    asked = _asked(order)
    return {name: spec for name, spec in specs(build.fork, build.tool).items() if name in asked}


def _asked(order: Order) -> dict[str, FlagValue]:
    """The flags, with the threads as passed and, in ik_llama.cpp, layers of ``ncmoe`` spelled out in the overrides."""
    values = {**order.arm.flags.as_dict(), "t": threads_of(order)}
    build = order.arm.build
    if build.fork is Fork.IK_LLAMA_CPP and build.tool is Tool.LLAMA_BENCH:
        layers = tuple(_ik_expert_override(layer) for layer in range(int(values.get("ncmoe", 0))))
        values["ot"] = ";".join((*overrides_of(values.get("ot", NONE)), *layers)) or NONE
    return values


def _ik_expert_override(layer: int) -> str:
    """What ``--n-cpu-moe`` makes of one layer (read in the source of 8337e4cd)."""
    return rf"blk\.{layer}\.(ffn_(up|down|gate)_exps\.weight)=CPU"


def _shifted(name: str, row: Mapping[str, Any]) -> bool:
    """Whether a field holds another flag's value: rows of those builds have ``mqkv``, not yet ``no_fused_up_gate``."""
    return name in _SHIFTED and "mqkv" in row and "no_fused_up_gate" not in row


def _difference(spec: FlagSpec, asked: FlagValue, row: Mapping[str, Any]) -> str:
    echo = _echo_of(spec, row)
    if echo is None:
        return ""
    expected, echoed = echo.words.get(asked, asked), row[echo.field]
    try:
        agree = _COMPARE[echo.compare](expected, echoed)
    except (TypeError, ValueError, OverflowError):
        agree = False
    return "" if agree else f"{echo.field}: asked {spec.name}={asked}, echoed {echoed!r}"


def _echo_of(spec: FlagSpec, row: Mapping[str, Any]) -> Echo | None:
    """The newest field that the row has; none where the row's fields are shifted."""
    echoes = () if _shifted(spec.name, row) else spec.echoes
    return next((echo for echo in echoes if echo.field in row), None)


def _model_difference(order: Order, row: Mapping[str, Any]) -> str:
    """Paths outside ASCII are not compared: ``llama-bench`` prints them wrongly."""
    asked, echoed = str(order.model), row.get("model_filename")
    if echoed is None or echoed == asked or not asked.isascii():
        return ""
    return f"model_filename: asked {asked!r}, echoed {echoed!r}"


def _same_number(asked: FlagValue, echoed: Any) -> bool:
    return float(asked) == float(echoed)


def _same_truth(asked: FlagValue, echoed: Any) -> bool:
    return bool(float(asked)) == bool(float(echoed))


def _same_text(asked: FlagValue, echoed: Any) -> bool:
    return isinstance(echoed, str) and str(asked) == echoed


def _same_overrides(asked: FlagValue, echoed: Any) -> bool:
    """The joiner is ``;`` in llama.cpp and ``,`` in ik_llama.cpp; a comma inside a pattern is folded on both sides."""
    folded = NONE if echoed == "" else str(echoed).replace(",", ";")
    return str(asked).replace(",", ";") == folded


def _same_split(asked: FlagValue, echoed: Any) -> bool:
    """``none`` is echoed as ``0.00``; shares of zero at the end are not printed."""
    return _shares("0" if asked == NONE else str(asked)) == _shares(str(echoed))


def _shares(text: str) -> list[float]:
    shares = [round(float(part), 2) for part in text.split("/")]
    while len(shares) > 1 and shares[-1] == 0:
        shares.pop()
    return shares


def _same_experts(asked: FlagValue, echoed: Any) -> bool:
    mine, theirs = ([float(part) for part in str(value).split(",")] for value in (asked, echoed))
    return len(mine) == len(theirs) and all(map(math.isclose, mine, theirs))


_COMPARE: Mapping[Compare, Callable[[FlagValue, Any], bool]] = MappingProxyType(
    {
        Compare.NUMBER: _same_number,
        Compare.TRUTH: _same_truth,
        Compare.TEXT: _same_text,
        Compare.OVERRIDES: _same_overrides,
        Compare.SPLIT: _same_split,
        Compare.EXPERTS: _same_experts,
    }
)
