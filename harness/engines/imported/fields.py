"""The fields of a result row by what they mean: flags by canonical name, build, model, machine.

A field's meaning depends on the fork and on its age. ``repack`` is ik_llama.cpp's run-time repack, and in llama.cpp a
switch of the CPU backend. ``fused_up_gate`` and ``ooae`` always held the values of ``-no-fug`` and ``-no-ooae``. And
from cfb840379 (build 3942) until e61cd0303 (build 4051) mended it, ik_llama.cpp printed the values of seven flags under
one another's names; the tables below are the two orders of its ``get_fields`` against its ``get_values``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from harness.domain.build import Fork, Tool
from harness.domain.errors import BadInput
from harness.domain.imported import ImportedBuild, ImportedModel
from harness.engines.echo import fork_of_row
from harness.engines.flag_spec import NONE, Echo, FlagKind, FlagSpec
from harness.engines.flags import specs
from harness.engines.imported.figures import figure

_SHIFTED_BUILDS = range(3942, 4051)
_RCACHE_SINCE = 3979
_SHIFT = {
    "mqkv": "fused_moe",
    "fused_moe": "grouped_er",
    "grouped_er": "no_fused_up_gate",
    "fused_up_gate": "use_thp",
    "use_thp": "no_ooae",
    "ooae": "mqkv",
}
_SHIFT_WITH_RCACHE = {
    "mqkv": "fused_moe",
    "fused_moe": "grouped_er",
    "grouped_er": "rcache",
    "fused_up_gate": "no_fused_up_gate",
    "ooae": "no_ooae",
    "rcache": "mqkv",
}
_OLD_NAMES = {"fused_up_gate": "no_fused_up_gate", "ooae": "no_ooae"}

_RESULTS = frozenset(
    {
        *("n_prompt", "n_gen", "n_depth", "test", "test_time"),
        *("avg_ns", "stddev_ns", "avg_ts", "stddev_ts", "samples_ns", "samples_ts"),
    }
)
_BACKENDS = {
    "cuda": "CUDA",
    "vulkan": "Vulkan",
    "metal": "Metal",
    "sycl": "SYCL",
    "gpu_blas": "GPU BLAS",
    "blas": "BLAS",
}
"""In the order in which ``llama-bench`` asks for them: the first that is compiled in names the backend."""
_BUILD = frozenset({"build_commit", "build_number", "backends", *_BACKENDS, "kompute", "opencl", "rpc"})
_MODEL = frozenset({"model_filename", "model_type", "model_size", "model_n_params"})
_MACHINE = frozenset({"cpu_info", "gpu_info"})
_NO_SETTING = _RESULTS | _BUILD | _MODEL | _MACHINE

_LABEL = re.compile(r"(?P<architecture>\S+)\s+\S+(?:\s\([A-Z]\w+\))?\s+(?P<quant>.+)")
"""``qwen3moe 30B.A3B Q4_K - Medium``; the size can have a second word in brackets."""
_BITS = re.compile(r"\s*-\s*[\d.]+ bpw$")
_UNKNOWN = ("", "unknown", "n/a")


@dataclass(frozen=True, slots=True)
class Identity:
    """What a row says of how it was measured."""

    settings: tuple[tuple[str, str], ...]
    build: ImportedBuild
    model: ImportedModel
    machine: tuple[tuple[str, str], ...]


def identity_of(row: Mapping[str, Any], fork: Fork | None = None, *, whole: bool = True) -> Identity:
    """Read everything but the result out of a row. Never raises.

    Args:
        row: Values by the names that fields have in JSON.
        fork: The fork, where something else than the row's fields tells it.
        whole: The row has all fields of its build: which there are then tells its age. Tables leave most out, and only
            their build number tells.
    """
    fork = fork or _fork(row)
    build = _build(row, fork)
    fields = _renamed(row, _shift(row, build, whole=whole))
    return Identity(_settings(fields, fork), build, _model(row), _machine(row))


def plain(value: Any) -> str:
    """A value as text, alike in all formats: booleans as 0 and 1, whole numbers without a point."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    return str(value).strip()


def _fork(row: Mapping[str, Any]) -> Fork | None:
    """``repack`` without any mark of llama.cpp is of ik_llama.cpp from before its other marks."""
    return fork_of_row(row) or (Fork.IK_LLAMA_CPP if "repack" in row and "cuda" in row else None)


def _shift(row: Mapping[str, Any], build: ImportedBuild, *, whole: bool) -> Mapping[str, str]:
    """Which field's value stands under which name."""
    if build.fork is not Fork.IK_LLAMA_CPP:
        return {}
    if whole:
        shifted, with_rcache = "mqkv" in row and "no_fused_up_gate" not in row, "rcache" in row
    else:
        shifted, with_rcache = build.number in _SHIFTED_BUILDS, build.number >= _RCACHE_SINCE
    if not shifted:
        return _OLD_NAMES
    return _SHIFT_WITH_RCACHE if with_rcache else _SHIFT


def _renamed(row: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in row.items()}


def _settings(fields: Mapping[str, Any], fork: Fork | None) -> tuple[tuple[str, str], ...]:
    """Flags by canonical name; what no flag of the fork explains keeps the name of its field."""
    found: dict[str, str] = {}
    explained: set[str] = set()
    for name, spec in specs(fork or Fork.LLAMA_CPP, Tool.LLAMA_BENCH).items():
        echoes = [echo for echo in spec.echoes if echo.field in fields]
        explained.update(echo.field for echo in echoes)
        found.update((name, _canonical(spec, echo, fields[echo.field])) for echo in echoes[:1])
    rest = fields.keys() - explained - _NO_SETTING
    found.update((name, plain(fields[name])) for name in rest)
    return tuple(sorted((name, value) for name, value in found.items() if not _is_unknown(value)))


def _canonical(spec: FlagSpec, echo: Echo, value: Any) -> str:
    """The one way to write the value of a flag, whichever fork and format printed it."""
    text = plain(value)
    words = {str(printed): str(meant) for meant, printed in echo.words.items()}
    if text in words:
        return words[text]
    if spec.kind is FlagKind.SPLIT:
        text = _without_zeros(text)
    try:
        return str(spec.normalised(_numbers_shortened(text) if spec.kind is FlagKind.EXPERTS else text))
    except BadInput:
        return text


def _without_zeros(shares: str) -> str:
    """``0.00`` is no split; shares of zero at the end are not printed by both forks alike."""
    return re.sub(r"(?:(?:^|/)0+(?:\.0+)?)+$", "", shares) or NONE


def _numbers_shortened(text: str) -> str:
    return re.sub(r"(\.\d*?)0+(?=,|$)", r"\1", text).replace(".,", ",").removesuffix(".")


def _is_unknown(value: str) -> bool:
    return value.lower() in _UNKNOWN


def _text(row: Mapping[str, Any], name: str) -> str:
    value = plain(row.get(name, ""))
    return "" if _is_unknown(value) else " ".join(value.split())


def _number(row: Mapping[str, Any], name: str) -> float:
    """A count; 0 where there is none."""
    value = figure(row.get(name)) or 0.0
    return value if 0 < value < float("inf") else 0.0


def _build(row: Mapping[str, Any], fork: Fork | None) -> ImportedBuild:
    backends = _text(row, "backends")
    if not backends and "cuda" in row:
        backends = next((name for field, name in _BACKENDS.items() if plain(row.get(field, "")) == "1"), "CPU")
    return ImportedBuild(fork, _text(row, "build_commit"), int(_number(row, "build_number")), backends)


def _model(row: Mapping[str, Any]) -> ImportedModel:
    label = _text(row, "model_type")
    file = PurePosixPath(_text(row, "model_filename").replace("\\", "/")).name
    known = ImportedModel(file, "", label, _number(row, "model_size"), _number(row, "model_n_params"))
    if parts := _LABEL.fullmatch(label):
        quant = _BITS.sub("", parts["quant"].removeprefix("(guessed)").removeprefix("mostly ").strip())
        return replace(known, architecture=parts["architecture"], quant=quant)
    return known


def _machine(row: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """CPU and GPUs. llama.cpp names accelerators of the CPU behind it, and joins GPUs otherwise than ik_llama.cpp."""
    return tuple(sorted(_machine_facts(_text(row, "cpu_info"), _text(row, "gpu_info"))))


def _machine_facts(cpu: str, gpu: str) -> Iterator[tuple[str, str]]:
    if cpu:
        yield "cpu", cpu.partition(", ")[0]
    if gpu:
        yield "gpu", ", ".join(sorted(re.split(r"\s*[,/]\s*", gpu)))
