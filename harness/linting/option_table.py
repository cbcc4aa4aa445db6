"""The options of each program of each fork: their names, whether a value follows, and which flag they say."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any

from harness.domain.build import Fork, Tool
from harness.domain.flags import FlagValue
from harness.engines.flag_spec import FlagSpec, Spelling
from harness.engines.flags import specs
from harness.engines.server_flags import Said, server_flags
from harness.linting.command_words import Program

ALL_LAYERS = 999
_OTHER_WORDS = {
    "-lm": ("auto", "mlock", "mmap+mlock", "dio"),
    "-ctk": ("f32",),
    "-ctv": ("f32",),
    "-sm": ("attn",),
}
_BENCH_LISTS = {
    "-m": ("-m", "--model"),
    "-p": ("-p", "--n-prompt"),
    "-n": ("-n", "--n-gen"),
    "-pg": ("-pg",),
    "-r": ("-r", "--repetitions"),
    "-o": ("-o", "--output"),
    "-oe": ("-oe", "--output-err"),
}
_BENCH_VALUED: Mapping[Fork, tuple[tuple[str, ...], ...]] = {
    Fork.LLAMA_CPP: (
        *_BENCH_LISTS.values(),
        ("-d", "--n-depth"),
        ("--prio",),
        ("--delay",),
        ("-C", "--cpu-mask"),
        ("-fitt", "--fit-target"),
        ("-fitc", "--fit-ctx"),
        ("-rpc", "--rpc"),
        ("-dio", "--direct-io"),
        ("-hf", "-hfr", "--hf-repo"),
        ("-hff", "--hf-file"),
        ("-hft", "--hf-token"),
    ),
    Fork.IK_LLAMA_CPP: (
        *_BENCH_LISTS.values(),
        ("-gp",),
        ("-w", "--warmup"),
        ("-tgb", "--threads-gen-batch"),
        ("-rpc", "--rpc"),
        ("--print-overrides",),
    ),
}
_BENCH_BARE: Mapping[Fork, tuple[tuple[str, ...], ...]] = {
    Fork.LLAMA_CPP: (
        ("-h", "--help"),
        ("--version",),
        ("-v", "--verbose"),
        ("--progress",),
        ("--no-warmup",),
        ("--list-devices",),
        ("--offline",),
    ),
    Fork.IK_LLAMA_CPP: (("-h", "--help"), ("-v", "--verbose")),
}
_SWEEP_VALUED = (("--sweep-stride",), ("--output-format",))
_BATCHED_VALUED = (("-npp",), ("-ntg",), ("-npl",), ("--output-format",))
_OWN_VALUED: Mapping[tuple[Fork, Program], tuple[tuple[str, ...], ...]] = {
    (Fork.IK_LLAMA_CPP, Program.SWEEP): _SWEEP_VALUED,
    (Fork.LLAMA_CPP, Program.SWEEP): _SWEEP_VALUED,
    (Fork.LLAMA_CPP, Program.BATCHED): _BATCHED_VALUED,
    (Fork.LLAMA_CPP, Program.CLI): (
        ("--server-base",),
        ("--image", "--audio", "--video"),
        ("-o", "--output", "--output-file"),
    ),
}
_OWN_BARE: Mapping[tuple[Fork, Program], tuple[tuple[str, ...], ...]] = {
    (Fork.IK_LLAMA_CPP, Program.SWEEP): (("--sweep-memory",),),
    (Fork.LLAMA_CPP, Program.BATCHED): (("-pps",), ("-tgs",)),
    (Fork.LLAMA_CPP, Program.CLI): (("--verbose-prompt",), ("--display-prompt",)),
}
"""Options that these programs have beside those of their fork's list. A sweep of llama.cpp is one of its branches."""
_BENCH_ALIASES: Mapping[Fork, Mapping[str, tuple[str, ...]]] = {
    Fork.LLAMA_CPP: {},
    Fork.IK_LLAMA_CPP: {
        "-mla": ("--mla-attn",),
        "-amb": ("--attn-max-batch",),
        "-muge": ("--merge-up-gate-exps",),
    },
}
"""Spellings that the parser of ``llama-bench`` takes and its help does not print."""
_NOT_PARSED = frozenset({"--merge-up-gate-experts"})
"""A spelling that the help of ik_llama.cpp's ``llama-bench`` prints and its parser does not take."""
_MORE_WORDS: Mapping[Fork, Mapping[str, Mapping[str, FlagValue]]] = {
    Fork.LLAMA_CPP: {
        "-fa": {"on": 1, "1": 1, "enabled": 1, "true": 1, "off": 0, "0": 0, "disabled": 0, "false": 0, "auto": "auto"},
        "-ngl": {"all": ALL_LAYERS, "auto": -1},
    },
    Fork.IK_LLAMA_CPP: {"-fa": {"on": 1, "1": 1, "auto": 1, "off": 0, "0": 0}},
}
_WITHOUT_VALUE: Mapping[Fork, Mapping[str, tuple[str, FlagValue]]] = {
    Fork.LLAMA_CPP: {"-cmoe": ("ncmoe", ALL_LAYERS)},
    Fork.IK_LLAMA_CPP: {"-cmoe": ("ncmoe", ALL_LAYERS), "-no-fa": ("fa", 0), "-rcache": ("rcache", 1)},
}
"""Options of servers that say a flag and stand in no table, because the harness says it otherwise."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a program.

    Attributes:
        names: All its spellings; the first is shown.
        valued: Whether a value follows.
        flag: The flag that it says; empty where no flag of a matrix means it.
        values: The flag's value of some words; of an option without value, that of the empty word.
        joiner: What the program joins overrides or shares with, where it differs from a flag's own way.
        spec: The flag.
        others: Values that the program takes and that no value of the flag stands for.
    """

    names: tuple[str, ...]
    valued: bool
    flag: str = ""
    values: Mapping[str, FlagValue] = field(default_factory=dict)
    joiner: str = ""
    spec: FlagSpec | None = None
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Removed:
    """An option that a program had.

    Attributes:
        write: What to write in its place; empty: nothing.
        since: The first build that may lack it.
        said: Since when, and why.
    """

    write: str
    since: int
    said: str


@cache
def options_of(fork: Fork, program: Program) -> Mapping[str, Option]:
    """All options by each of their spellings."""
    listed = [*(_bench(fork) if program is Program.BENCH else _common(fork))]
    listed += [Option(names, valued=True) for names in _OWN_VALUED.get((fork, program), ())]
    listed += [Option(names, valued=False) for names in _OWN_BARE.get((fork, program), ())]
    return {name: option for option in listed for name in option.names}


@cache
def removed_options(fork: Fork, program: Program) -> Mapping[str, Removed]:
    """Options that the newest build that was read does not have any more."""
    if program is Program.BENCH:
        return {}
    return {name: Removed(**entry) for name, entry in _file(fork).get("removed", {}).items()}


def _bench(fork: Fork) -> Iterable[Option]:
    for spec in specs(fork, Tool.LLAMA_BENCH).values():
        option = _of_spelling(spec, spec.spellings[0])
        names = [name for name in option.names if fork is Fork.LLAMA_CPP or name not in _NOT_PARSED]
        yield replace(option, names=(*names, *_BENCH_ALIASES[fork].get(names[0], ())))
    yield from (Option(names, valued=True) for names in _BENCH_VALUED[fork])
    yield from (Option(names, valued=False) for names in _BENCH_BARE[fork])


def _of_spelling(spec: FlagSpec, spelling: Spelling) -> Option:
    values: dict[str, FlagValue] = {"": 1} if spelling.bare else {word: value for value, word in spelling.words.items()}
    others = _OTHER_WORDS.get(spelling.options[0], ())
    return Option(spelling.options, not spelling.bare, spec.name, values, spelling.joiner, spec, others)


def _common(fork: Fork) -> Iterable[Option]:
    """The options of the parser's list, with the flags that the table of servers says by them."""
    told = _told(fork)
    for key, valued in (("valued", True), ("bare", False)):
        for names in (tuple(text.split()) for text in _file(fork)[key]):
            found = next((told[name] for name in names if name in told), None)
            others = next((_OTHER_WORDS[name] for name in names if name in _OTHER_WORDS), ())
            yield Option(names, valued, *found, others) if found else Option(names, valued)


def _told(fork: Fork) -> dict[str, tuple[str, Mapping[str, FlagValue], str, FlagSpec | None]]:
    """Flag, words of values, joiner and specification by the spelling that the table of servers uses."""
    table = specs(fork, Tool.LLAMA_BENCH)
    told: dict[str, tuple[str, Mapping[str, FlagValue], str, FlagSpec | None]] = {}
    for flag, ways in server_flags(fork).items():
        for said in ways:
            for option, words in _words_of(said).items():
                more = _MORE_WORDS[fork].get(option, {})
                told[option] = (flag, {**words, **more}, said.table.get(";", said.table.get("/", "")), table.get(flag))
    for option, (flag, value) in _WITHOUT_VALUE[fork].items():
        told[option] = (flag, {"": value}, "", table.get(flag))
    return told


def _words_of(said: Said) -> dict[str, dict[str, FlagValue]]:
    """The options of one way to say a flag, each with the words of values; the empty word where none follows."""
    found: dict[str, dict[str, FlagValue]] = {said.option: {}} if said.option else {}
    for value, words in said.words.items():
        if words:
            found.setdefault(words[0], {})[words[1] if len(words) > 1 else ""] = value
    return found


@cache
def _file(fork: Fork) -> dict[str, Any]:
    text = (resources.files("harness.linting") / "options" / f"{fork}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
