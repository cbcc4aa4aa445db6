"""The flags of both forks as ``llama-server`` spells them: other words than ``llama-bench``'s for the same meaning.

``llama-perplexity`` shares their argument parsers, and their words.

Sources: the ``--help`` of llama.cpp b11549's argument parser (tests/data/recordings), and ``common/common.cpp`` of
ik_llama.cpp 8337e4cd, read for how values are parsed. Every value is said, unless it can only be said by leaving the
option out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from harness.domain.build import Fork
from harness.domain.flags import Flags, FlagValue
from harness.engines.flag_spec import NONE

_OPTION = r"-{1,2}[A-Za-z][\w-]*"
_OPTION_LINE = re.compile(rf"^[ \t]*({_OPTION}(?:,?[ \t]+{_OPTION})*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Said:
    """One way to say a flag.

    Attributes:
        option: The option that takes the value; empty where ``words`` say everything.
        words: Complete arguments of some values; an empty tuple: left out.
        table: Characters of the value that the server writes otherwise, such as the joiner of overrides.
        refused: Values that the server changes or ignores, with the reason.
        for_gpus: The option exists only in builds that can use a GPU; in others it would say nothing, and is left out.
    """

    option: str = ""
    words: Mapping[FlagValue, tuple[str, ...]] = field(default_factory=dict)
    table: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[FlagValue, str] = field(default_factory=dict)
    for_gpus: bool = False

    @property
    def options(self) -> frozenset[str]:
        """Spellings that the build has to know."""
        first = {words[0] for words in self.words.values() if words}
        return frozenset({self.option} if self.option else first)

    def argv(self, value: FlagValue) -> tuple[str, ...]:
        """The arguments that say a value."""
        if value in self.words:
            return self.words[value]
        text = str(value)
        for ours, theirs in self.table.items():
            text = text.replace(ours, theirs)
        return (self.option, text)


def server_help_options(help_text: str) -> frozenset[str]:
    """The spellings of all options that a server's ``--help`` lists.

    Args:
        help_text: What it printed; llama.cpp lists options at the margin, ik_llama.cpp indents them.
    """
    lines = _OPTION_LINE.finditer(help_text)
    return frozenset(option for line in lines for option in re.findall(_OPTION, line.group(1)))


def server_flags(fork: Fork) -> Mapping[str, tuple[Said, ...]]:
    """The flags that a fork's server takes, by canonical name, with the ways to say each, newest first."""
    return _TABLES[fork]


def server_argv(fork: Fork, flags: Flags, options: frozenset[str] | None) -> tuple[str, ...]:
    """All flags but the threads as arguments of a server, in the table's order.

    Args:
        fork: Whose spelling.
        flags: A complete set that ``unsayable`` has nothing against.
        options: Spellings that the build's ``--help`` lists; ``None``: not known, the newest are taken.
    """
    values = flags.as_dict()
    argv: list[str] = []
    for name, ways in _TABLES[fork].items():
        said = _known(ways, options) if name in values else None
        if said is not None:
            argv += said.argv(values[name])
    return tuple(argv)


def unsayable(fork: Fork, flags: Flags, options: frozenset[str] | None, program: str = "llama-server") -> str:
    """Why a program can't be started with some flags; empty if it can.

    Args:
        fork: Whose server.
        flags: A complete set.
        options: Spellings that the build's ``--help`` lists; ``None``: not known.
        program: Its name.
    """
    problems = (_problem(fork, name, value, options, program) for name, value in flags if name != "t")
    return "; ".join(filter(None, problems))


def _problem(fork: Fork, name: str, value: FlagValue, options: frozenset[str] | None, program: str) -> str:
    ways = _TABLES[fork].get(name)
    if ways is None:
        return f"{program} of {fork} has no '{name}'"
    said = _known(ways, options)
    if said is None:
        silent = ways[0].for_gpus or ways[0].words.get(value) == ()
        return "" if silent else f"this {program} does not know {' or '.join(sorted(ways[0].options))}"
    refused = said.refused.get(value)
    return f"{name}={value}: {refused}" if refused else ""


def _known(ways: tuple[Said, ...], options: frozenset[str] | None) -> Said | None:
    return next((said for said in ways if options is None or said.options <= options), None)


def _value(option: str, *, left_out: FlagValue | None = None, **table: str) -> tuple[Said, ...]:
    words = {} if left_out is None else {left_out: ()}
    return (Said(option, words, table=table),)


def _switch(on: str, off: str) -> Said:
    """A pair of options without a value; an empty one is said by leaving the other out."""
    return Said(words={1: (on,) if on else (), 0: (off,) if off else ()})


_OVERRIDES = Said("-ot", {NONE: ()}, {";": ","})
_SHARES = Said("-ts", {NONE: ()}, {"/": ","})
_NO_COMPLETIONS = Said(words={0: ()}, refused={1: "a server of embeddings completes no prompts"})
_FLASH = Said("-fa", {0: ("-fa", "off"), 1: ("-fa", "on")})

_COMMON: Mapping[str, tuple[Said, ...]] = {
    "b": _value("-b"),
    "ub": _value("-ub"),
    "mg": _value("-mg"),
    "ts": (_SHARES,),
    "embd": (_NO_COMPLETIONS,),
    "numa": _value("--numa", left_out="disabled"),
    "fa": (_FLASH,),
    "ctk": _value("-ctk"),
    "ctv": _value("-ctv"),
    "sm": _value("-sm"),
    "ot": (_OVERRIDES,),
    "ncmoe": _value("-ncmoe", left_out=0),
}
_MAINLINE: Mapping[str, tuple[Said, ...]] = {
    **_COMMON,
    "nkvo": (_switch("-nkvo", "-kvo"),),
    "ngl": (Said("-ngl", {-1: ("-ngl", "auto")}),),
    "mmap": (
        Said(words={1: ("-lm", "mmap"), 0: ("-lm", "none")}),
        _switch("--mmap", "--no-mmap"),
    ),
    "nopo": (_switch("--no-op-offload", "--op-offload"),),
    "repack": (_switch("--repack", "--no-repack"),),
    "no_host": (_switch("--no-host", ""),),
    "lzm": _value("-lzm", left_out="auto"),
    "dev": (Said("-dev", {"auto": ()}, {"/": ","}),),
    "poll": _value("--poll"),
    "cpu_strict": _value("--cpu-strict"),
}
_OF_GPUS: Mapping[str, tuple[Said, ...]] = {
    "ngl": _value("-ngl"),
    "sm": _value("-sm"),
    "ts": (_SHARES,),
    "mg": _value("-mg"),
    "max_gpu": _value("--max-gpu", left_out=0),
    "no_ooae": (_switch("-no-ooae", ""),),
}
_RAISED = "the server raises it to 128"
_IK: Mapping[str, tuple[Said, ...]] = {
    **_COMMON,
    "nkvo": (_switch("-nkvo", ""),),
    **{name: (replace(way, for_gpus=True),) for name, (way,) in _OF_GPUS.items()},
    "mmap": (_switch("", "--no-mmap"),),
    "rtr": (_switch("-rtr", ""),),
    "fmoe": (_switch("", "-no-fmoe"), _switch("-fmoe", "")),
    "ger": (_switch("-ger", ""),),
    "no_fug": (_switch("-no-fug", ""),),
    "amb": (Said("-amb", refused=dict.fromkeys(range(1, 128), _RAISED)),),
    "mla": _value("-mla"),
    "mqkv": (_switch("-mqkv", ""),),
    "muge": (_switch("-muge", ""),),
    "ser": _value("-ser", left_out="-1,0"),
    "gr": (_switch("-gr", "-no-gr"),),
    "thp": (_switch("-thp", ""),),
    "rcache": (Said(words={0: ()}, refused={1: "the server takes it and ignores it"}),),
    "sas": (_switch("-sas", ""),),
    "defer_experts": (_switch("--defer-experts", ""),),
    "fit": (_switch("--fit", ""),),
    "fit_margin": _value("--fit-margin", left_out=0),
    "cuda": _value("-cuda", left_out=""),
}
_TABLES: Mapping[Fork, Mapping[str, tuple[Said, ...]]] = MappingProxyType(
    {Fork.LLAMA_CPP: _MAINLINE, Fork.IK_LLAMA_CPP: _IK}
)
