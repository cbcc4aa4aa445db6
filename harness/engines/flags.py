"""Complete sets of flags for a build: what is declared, what is left at the table's default, what a build cannot do."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from harness.domain.build import Build, Fork, Tool
from harness.domain.errors import BadInput
from harness.domain.flags import Flags, FlagValue
from harness.domain.patterns import compiled_pattern, gpu_buffers, override_pairs
from harness.domain.suggest import did_you_mean
from harness.engines.flag_spec import NONE, FlagKind, FlagSpec
from harness.engines.flag_table import IK, MAINLINE

_BY_FORK: Mapping[Fork, Mapping[str, FlagSpec]] = MappingProxyType({Fork.LLAMA_CPP: MAINLINE, Fork.IK_LLAMA_CPP: IK})
_PLAIN_V = (None, "f16", "bf16", "f32")
_MMAP_OFF = ("rtr", "mqkv", "muge")
"""The loader of ik_llama.cpp drops mmap where one of these is on, whatever was said and whatever is echoed."""


class FlagFault(BadInput):
    """A value that no flag takes, or two that can't both be.

    Args:
        flags: The flags that it is about, the one to mend first.
    """

    def __init__(
        self, slug: str, message: str, *, hint: str = "", where: str = "", flags: tuple[str, ...] = ()
    ) -> None:
        super().__init__(slug, message, hint=hint, where=where)
        self.flags = flags


class Unsupported(Exception):  # noqa: N818 - reads as what it is at the raise
    """A flag that another build knows and this one does not: the case is ``unsupported``, the matrix is right.

    Args:
        reason: Why, in words for the verdict.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def known_flags() -> frozenset[str]:
    """Canonical names of all flags of all forks."""
    return frozenset(name for table in _BY_FORK.values() for name in table)


def default_of(name: str) -> FlagValue:
    """The value of a flag that is not declared; forks that have it agree on it.

    Raises:
        KeyError: If no fork has it.
    """
    return next(table[name].default for table in _BY_FORK.values() if name in table)


def is_switch(name: str) -> bool:
    """Whether a flag is on or off; no where no fork has it."""
    return any(table[name].kind is FlagKind.SWITCH for table in _BY_FORK.values() if name in table)


def specs(fork: Fork, tool: Tool) -> Mapping[str, FlagSpec]:
    """The flags of one tool of one fork, by canonical name, in the order of the command line.

    Args:
        fork: The fork.
        tool: What measures.
    """
    table = _BY_FORK[fork]
    return {name: spec for name, spec in table.items() if (spec.embedded if tool is Tool.EMBEDDED else spec.spellings)}


def complete(build: Build, declared: Mapping[str, FlagValue], *, options: frozenset[str] | None = None) -> Flags:
    """All flags of a build, each with an explicit, normalised value.

    Args:
        build: The build; its fork and tool decide which flags there are.
        declared: What the matrix says, by canonical name.
        options: Option spellings of the build's ``--help`` where it was read: a flag that this very build does not know
            yet has the value that its absence amounts to.

    Returns:
        The flags; ``mmap`` is 0 where a declared flag switches it off, and ``ub`` not above a declared ``b``.

    Raises:
        FlagFault: ``E-unknown-flag`` for a name no fork knows, ``E-bad-flag-value``, ``E-contradictory-flags``.
        Unsupported: For a flag or value that another fork, tool or build knows and this one does not.
    """
    table = specs(build.fork, build.tool)
    for name in declared:
        _require(name, build, table)
    given = {name: _normalised(table[name], value, build) for name, value in declared.items()}
    for name, value in given.items():
        _require_sayable(table[name], value, build)
    values = {name: _settled(spec, given.get(name), build, options) for name, spec in table.items()}
    values.update(_mmap_switched_off(values, given))
    _require_attention_of_cache(values)
    values["ub"] = _physical_batch(values, given)
    return Flags.of(values)


def _require(name: str, build: Build, table: Mapping[str, FlagSpec]) -> None:
    """Refuse a name that is unknown here, telling apart "nowhere" and "elsewhere"."""
    if name in table:
        return
    if name not in known_flags():
        raise FlagFault("E-unknown-flag", f"no fork has a flag '{name}'", hint=_suggestion(name), flags=(name,))
    raise Unsupported(_elsewhere(name, build))


def _elsewhere(name: str, build: Build) -> str:
    own = _BY_FORK[build.fork].get(name)
    if own is not None:
        return f"{build.tool} of {build.fork} has no '{name}' ({own.meaning}); {_other_tool(build.tool)} has"
    other = next(fork for fork, table in _BY_FORK.items() if name in table)
    return f"{build.fork} has no '{name}' ({_BY_FORK[other][name].meaning}: {other} only)"


def _other_tool(tool: Tool) -> Tool:
    return Tool.LLAMA_BENCH if tool is Tool.EMBEDDED else Tool.EMBEDDED


def _suggestion(name: str) -> str:
    """The nearest flag; a field's or option's own name leads to its canonical one."""
    alias = _aliases().get(name.lstrip("-").replace("-", "_").lower())
    return f"did you mean '{alias}'?" if alias else did_you_mean(name, known_flags())


def _aliases() -> dict[str, str]:
    """Long option names and echoed fields, without dashes, to canonical names."""
    names: dict[str, str] = {}
    for table in _BY_FORK.values():
        for spec in table.values():
            words = [option for spelling in spec.spellings for option in spelling.options]
            words += [echo.field for echo in spec.echoes]
            names.update({word.lstrip("-").replace("-", "_").lower(): spec.name for word in words})
    return names


def _about(name: str, bad: BadInput) -> FlagFault:
    """What is wrong with a value is a fault of its flag."""
    return FlagFault(bad.slug, bad.message, hint=bad.hint, flags=(name,))


def _normalised(spec: FlagSpec, value: FlagValue, build: Build) -> FlagValue:
    """The value in its one spelling.

    Raises:
        FlagFault: ``E-bad-flag-value`` where no fork's flag of the name takes it.
        Unsupported: Where another fork's does.
    """
    try:
        return spec.normalised(value)
    except BadInput as bad:
        others = [fork for fork, table in _BY_FORK.items() if fork is not build.fork and spec.name in table]
        for fork in others:
            if _takes(_BY_FORK[fork][spec.name], value):
                raise Unsupported(f"{build.fork} has no {spec.name}={value} ({fork} has)") from None
        raise _about(spec.name, bad) from bad


def _takes(spec: FlagSpec, value: FlagValue) -> bool:
    try:
        spec.normalised(value)
    except BadInput:
        return False
    return True


def _require_sayable(spec: FlagSpec, value: FlagValue, build: Build) -> None:
    """Values that the flag has, but not with this tool or build.

    Both forks' ``llama-bench`` split overrides at commas, so no pattern can hold one; the embedded engine does not. The
    embedded engine takes 0 and 1 only where ``llama-bench`` knows further words.

    Raises:
        FlagFault: ``E-bad-flag-value`` for a pattern that is no regular expression of the engines.
        Unsupported: With the reason.
    """
    if spec.kind is FlagKind.SWITCH and build.tool is Tool.EMBEDDED and value in spec.choices:
        raise Unsupported(f"the embedded engine takes {spec.name} 0 or 1, not '{value}': it must know what it measures")
    if spec.kind is FlagKind.OVERRIDES:
        try:
            for pattern, _ in override_pairs(str(value)):
                compiled_pattern(pattern)
        except BadInput as bad:
            raise _about(spec.name, bad) from bad
    if spec.kind is FlagKind.OVERRIDES and not build.has_gpu_code and (buffers := gpu_buffers(str(value))):
        raise Unsupported(f"{build.name} has no code for GPUs, so no buffer {buffers[0].name} for {spec.name}={value}")
    if spec.kind is FlagKind.OVERRIDES and build.tool is Tool.LLAMA_BENCH and "," in str(value):
        raise Unsupported(
            f"llama-bench splits '{spec.name}' at commas, so a pattern cannot hold one: {value!r};"
            " write the pattern without (e.g. '[0-9]|1[0-9]' for a range)"
        )


def _settled(spec: FlagSpec, given: FlagValue | None, build: Build, options: frozenset[str] | None) -> FlagValue:
    """The value of one flag: declared, the default, or what a build that lacks the flag does."""
    known = build.tool is Tool.EMBEDDED or spec.spelling(options) is not None
    if known:
        return spec.default if given is None else given
    if given is not None and given != spec.absent:
        raise Unsupported(f"build '{build.name}' does not know {spec.spellings[0].options[0]} ({spec.meaning})")
    return spec.absent


def _mmap_switched_off(values: Mapping[str, FlagValue], given: Mapping[str, FlagValue]) -> dict[str, FlagValue]:
    """``mmap`` as the loader will really have it.

    Raises:
        FlagFault: ``E-contradictory-flags`` where mmap is declared on together with a flag that switches it off.
    """
    causes = [name for name in _MMAP_OFF if values.get(name) == 1]
    if not causes:
        return {}
    if given.get("mmap") == 1:
        raise FlagFault(
            "E-contradictory-flags",
            f"mmap=1 with {' and '.join(f'{name}=1' for name in causes)}: ik_llama.cpp's loader switches mmap off",
            hint="declare mmap=0, or leave it out",
            flags=("mmap", *causes),
        )
    return {"mmap": 0}


def _require_attention_of_cache(values: Mapping[str, FlagValue]) -> None:
    """Both forks make no context with a quantized V cache and without flash attention.

    Raises:
        FlagFault: ``E-contradictory-flags``.
    """
    if values.get("fa") == 0 and values.get("ctv") not in _PLAIN_V:
        raise FlagFault(
            "E-contradictory-flags",
            f"fa=0 with ctv={values['ctv']}: both forks need flash attention for a quantized V cache",
            hint='exclude the pair, or give ctv = "f16" where fa = 0',
            flags=("ctv", "fa"),
        )


def _physical_batch(values: Mapping[str, FlagValue], given: Mapping[str, FlagValue]) -> FlagValue:
    """``ub`` as it will really be: both forks lower it to ``b`` without a word, and echo what was asked.

    Raises:
        Unsupported: Where they would lower a declared one.
    """
    batch, physical = int(values["b"]), int(values["ub"])
    if physical > batch and "ub" in given:
        raise Unsupported(f"ub={physical} with b={batch} would run as ub={batch}: declare b={physical} too")
    return min(batch, physical)


def embedded_request_flags(flags: Flags) -> dict[str, FlagValue]:
    """The flags as the embedded child takes them: without the threads, which the request says beside them.

    Args:
        flags: A complete set.
    """
    return {name: "" if (name, value) == ("ot", NONE) else value for name, value in flags if name != "t"}
