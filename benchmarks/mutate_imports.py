"""Damage real outputs of ``llama-bench`` and its relatives at random and read them: no crash, no row made up.

``python benchmarks/mutate_imports.py --mutants 1000000`` reads a million; ``--seed`` and the number of a mutant make it
again. What is checked of each:

* reading raises nothing, and what is read can be written as JSON;
* no row is made up: its samples stand in the mutant one after another, or its mean does, and so do its token counts; of
  the relatives, which print one time a line, the time or the speed of each sample does;
* what was not touched is read as it was: each row that ends before the first changed character, and each object of JSON
  that still stands anywhere, is there, equal in all fields, or a problem says why not. A Markdown table names its build
  below: there build and settings are left out.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from harness.cli.import_file import row_json
from harness.domain.imported import BENCH, Imported, ImportedBuild, ImportedRow
from harness.domain.measurement import NS
from harness.engines.bench_scan import json_objects
from harness.engines.imported.reading import decoded, read_output

RECORDINGS = Path(__file__).parents[1] / "tests" / "data" / "recordings"
_NAMES = (
    "ik_llama_cpp-8337e4cd.q4k_hybrid.json",
    "ik_llama_cpp-8337e4cd.depths.json",
    "ik_llama_cpp-8337e4cd.short.csv",
    "ik_llama_cpp-8337e4cd.tables.md",
    "llama_cpp-b11434.cpu_fa.json",
    "llama_cpp-b11434.short.csv",
    "llama_cpp-b11434.short.sql",
    "llama_cpp-0c1e570.depths.jsonl",
    "ik_llama_cpp-8337e4cd.sweep.jsonl",
    "ik_llama_cpp-8337e4cd.sweep_memory.stderr.txt",
    "ik_llama_cpp-8337e4cd.batched.txt",
    "llama_cpp-0c1e570.batched.txt",
    "llama_cpp-0c1e570.batched_shared.jsonl",
)
_MOST_CHARS = 3200
"""Long recordings are cut after a row: a few rows of each format say as much, and are read sooner."""
_BYTES_SHARE = 0.03
_TOLD_EVERY = 10_000
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_LIST = re.compile(r"\[([-+.\deE,\s]+)\]")
_WORDS = (
    "nan",
    "-nan",
    "inf",
    "-inf",
    "NaN",
    "null",
    "true",
    '""',
    "1e999",
    "9" * 400,
    "-1",
    "0",
    "1" * 30,
    "0x10",
    "∞",
    "[1]",
    '{"a": 1}',
)
_PIECES = ("{", "}", "[", "]", '"', "'", ",", "|", ";", "\\", "\n", "\r\n", "\0", "\ud800", "﻿", "{" * 60, "[" * 3000)
_FIELDS = (
    "samples_ns",
    "avg_ts",
    "n_prompt",
    "n_gen",
    "n_depth",
    "test",
    "fused_moe",
    "mqkv",
    "repack",
    "t/s",
    "model",
    "n_kv",
    "speed_tg",
    "t_pp",
    "N_KV",
    "T_PP s",
)
_NOISE = (
    "ggml_cuda_init: found 1 CUDA devices:\n",
    '{"event": "log", "n": 1}\n',
    "build: 8337e4cd (1)\n",
    "llama_model_load: error loading model\n",
    "| model | test | t/s |\n|---|---|---|\n",
    "INSERT INTO test (n_prompt, n_gen, avg_ts) VALUES ('",
    "usage: llama-bench [options]\n",
    "main: n_kv_max = 4096, n_batch = 2048, n_ubatch = 512, flash_attn = 1, n_gpu_layers = 99\n",
    "|    PP |     TG |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |\n",
    "failed to decode the batch, n_batch = 384, ret = 1\n",
)


@dataclass(frozen=True, slots=True)
class Base:
    """A text that is damaged.

    Attributes:
        name: Its recording.
        text: The text.
        rows: Its rows, each with the index in the text at which it has ended, and its own text where it is an object.
    """

    name: str
    text: str
    rows: tuple[tuple[ImportedRow, int, str], ...]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A damaged text.

    Attributes:
        text: The text; of bytes that were damaged, as a file of them is read.
        kept: How many of the first characters are as they were.
        how: The kinds of damage.
    """

    text: str
    kept: int
    how: tuple[str, ...]


@cache
def bases() -> tuple[Base, ...]:
    """The recordings."""
    return tuple(_base(name) for name in _NAMES)


def _base(name: str) -> Base:
    text = decoded((RECORDINGS / name).read_bytes())
    if len(text) > _MOST_CHARS:
        end = text.rfind("\n  },\n" if name.endswith(".json") else "\n", 0, _MOST_CHARS)
        text = text[: end + len("\n  }")] + "\n]\n" if name.endswith(".json") else text[: end + 1]
    return Base(name, text, tuple(_ends(text, name)))


def _ends(text: str, name: str) -> Iterator[tuple[ImportedRow, int, str]]:
    """Rows and where they end: a row is there as soon as the text up to its end is."""
    read = read_output(text, name).rows
    ends = [found.end() for found in re.finditer(r"\}|\n", text)]
    have = [(end, {_plain(row, name) for row in read_output(text[:end], name).rows}) for end in ends]
    objects = [(start, end) for start, end, value in json_objects(text) if value is not None]
    for row in read:
        end = next(end for end, rows in have if _plain(row, name) in rows)
        start = next((start for start, stop in objects if stop == end), None)
        yield row, end, "" if start is None else text[start:end]


# ---- damage ----------------------------------------------------------------------------------------------------------


def mutant(base: Base, rng: random.Random, others: tuple[Base, ...]) -> Mutant:
    """Damage a text in one to three ways."""
    text, kept, how = base.text, len(base.text), []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        name = rng.choice(tuple(_DAMAGES))
        text, start = _DAMAGES[name](text, rng, rng.choice(others).text)
        kept, how = min(kept, start), [*how, name]
    if rng.random() < _BYTES_SHARE:
        return Mutant(_with_broken_bytes(text, rng), 0, (*how, "bytes"))
    return Mutant(text, kept, tuple(how))


Damage = Callable[[str, random.Random, str], tuple[str, int]]


def _span(text: str, rng: random.Random, most: int = 200) -> tuple[int, int]:
    start = rng.randint(0, len(text))
    return start, min(len(text), start + rng.randint(1, most))


def _cut(text: str, rng: random.Random, _: str) -> tuple[str, int]:
    at = rng.randint(0, len(text))
    return text[:at], at


def _delete(text: str, rng: random.Random, _: str) -> tuple[str, int]:
    start, end = _span(text, rng)
    return text[:start] + text[end:], start


def _repeat(text: str, rng: random.Random, _: str) -> tuple[str, int]:
    start, end = _span(text, rng, 2000)
    return text[:end] + text[start:end] + text[end:], end


def _swap_lines(text: str, rng: random.Random, _: str) -> tuple[str, int]:
    lines = text.split("\n")
    first, second = sorted((rng.randrange(len(lines)), rng.randrange(len(lines))))
    lines[first], lines[second] = lines[second], lines[first]
    return "\n".join(lines), sum(len(line) + 1 for line in lines[:first])


def _insert(text: str, rng: random.Random, other: str) -> tuple[str, int]:
    at = rng.randint(0, len(text))
    start, end = _span(other, rng, 1500)
    piece = rng.choice((rng.choice(_PIECES), rng.choice(_NOISE), other[start:end]))
    return text[:at] + piece + text[at:], at


def _between_lines(text: str, rng: random.Random, _: str) -> tuple[str, int]:
    breaks = [found.end() for found in re.finditer("\n", text)] or [0]
    at = rng.choice(breaks)
    return text[:at] + rng.choice(_NOISE) + text[at:], at


def _number(text: str, rng: random.Random, _: str) -> tuple[str, int]:
    found = list(_NUMBER.finditer(text))
    if not found:
        return text, len(text)
    spot = rng.choice(found)
    word = rng.choice((*_WORDS, str(rng.randrange(10**12)), spot.group() + str(rng.randrange(10))))
    return text[: spot.start()] + word + text[spot.end() :], spot.start()


def _character(text: str, rng: random.Random, _: str) -> tuple[str, int]:
    if not text:
        return text, 0
    at = rng.randrange(len(text))
    return text[:at] + chr(rng.randrange(1, 256)) + text[at + 1 :], at


def _field(text: str, rng: random.Random, _: str) -> tuple[str, int]:
    present = [name for name in _FIELDS if name in text]
    if not present:
        return text, len(text)
    old, new = rng.choice(present), rng.choice(_FIELDS)
    return text.replace(old, new), text.index(old)


def _line_ends(text: str, _rng: random.Random, _: str) -> tuple[str, int]:
    return decoded(text.replace("\n", "\r\n").encode("utf-8", "replace")), 0


_DAMAGES: dict[str, Damage] = {
    "cut": _cut,
    "delete": _delete,
    "repeat": _repeat,
    "swap": _swap_lines,
    "insert": _insert,
    "noise": _between_lines,
    "number": _number,
    "character": _character,
    "field": _field,
    "line ends": _line_ends,
}


def _with_broken_bytes(text: str, rng: random.Random) -> str:
    """As a file whose bytes are damaged, or in another encoding, is read."""
    content = bytearray(text.encode(rng.choice(("utf-8", "utf-16", "cp1252")), "replace"))
    for _ in range(rng.randint(0, 3)):
        content[rng.randrange(len(content)) if content else 0 :][:1] = b""
        content.insert(rng.randrange(len(content) + 1), rng.randrange(256))
    return decoded(bytes(content))


# ---- what must hold --------------------------------------------------------------------------------------------------


def fault(base: Base, damaged: Mutant) -> str:
    """What is wrong with how a mutant is read; empty where nothing is."""
    try:
        read = read_output(damaged.text, base.name)
        for row in read.rows:
            json.dumps(row_json(row), allow_nan=False)
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return f"raised {error!r}"
    invented = next((row for row in read.rows if not _stands_in(row, damaged.text)), None)
    if invented is not None:
        return f"made up {invented}"
    return _changed(base, damaged, read)


def _stands_in(row: ImportedRow, text: str) -> bool:
    """Whether what was measured is in the text: the samples one after another, or the mean."""
    if not all(count in text for count in re.findall(r"\d+", row.workload)):
        return False
    if row.summary is not None:
        return any(float(found) == row.summary.mean_tps for found in _NUMBER.findall(text))
    if row.program != BENCH:
        numbers = [number for found in _NUMBER.findall(text) if (number := float(found)) > 0]
        times = {time for number in numbers for time in (number * NS, row.tokens * NS / number)}
        return times.issuperset(row.samples_ns)
    wanted = [float(value) for value in row.samples_ns]
    return any(_numbers(found) == wanted for found in _LIST.findall(text))


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return []


def _changed(base: Base, damaged: Mutant, read: Imported) -> str:
    """Which row that stands there untouched is not as it was, without a word about it."""
    present = [_plain(row, base.name) for row in read.rows]
    for row, end, text in base.rows:
        whole = end <= damaged.kept or (text != "" and text in damaged.text)
        if whole and not read.problems and not any(_holds(one, _plain(row, base.name)) for one in present):
            return f"lost or changed {row}"
    return ""


def _holds(found: ImportedRow, row: ImportedRow) -> bool:
    """Whether a row is there: as it is, or, of the relatives, with repetitions that the damage put beside its own."""
    if row.program == BENCH or found.samples_ns == row.samples_ns:
        return found == row
    own = len(row.samples_ns)
    starts = range(len(found.samples_ns) - own + 1)
    return any(found.samples_ns[start : start + own] == row.samples_ns for start in starts) and (
        replace(found, samples_ns=row.samples_ns) == row
    )


def _plain(row: ImportedRow, name: str) -> ImportedRow:
    build = ImportedBuild() if name.endswith(".md") else row.build
    return replace(row, source="", place="", build=build, settings=() if name.endswith(".md") else row.settings)


# ---- the campaign ----------------------------------------------------------------------------------------------------


def campaign(mutants: int, seed: int, seconds: float = float("inf")) -> tuple[int, list[str], Counter[str]]:
    """Read mutants until so many, or for so long.

    Args:
        mutants: How many.
        seed: Of the damage; the number of a mutant and the seed make it again.
        seconds: Most time.

    Returns:
        How many were read, what was wrong with them, and how many rows and problems there were.
    """
    texts, faults, seen = bases(), list[str](), Counter[str]()
    started, number = time.monotonic(), 0
    while number < mutants and time.monotonic() - started < seconds:
        rng = random.Random(f"{seed}/{number}")  # noqa: S311 - damage, not secrets
        base = rng.choice(texts)
        damaged = mutant(base, rng, texts)
        if wrong := fault(base, damaged):
            faults.append(f"mutant {number} of {base.name} ({', '.join(damaged.how)}): {wrong[:400]}")
        seen.update(damaged.how)
        number += 1
        if number % _TOLD_EVERY == 0:
            print(f"{number} mutants, {len(faults)} faults", file=sys.stderr, flush=True)  # noqa: T201 - it takes hours
    return number, faults, seen


def main(arguments: list[str]) -> int:
    """Run a campaign and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--mutants", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    asked = parser.parse_args(arguments)
    read, faults, seen = campaign(asked.mutants, asked.seed, asked.seconds)
    print(f"{read} mutants, {len(faults)} faults; damage: {dict(sorted(seen.items()))}")  # noqa: T201 - its result
    print("\n".join(faults[:20]))  # noqa: T201
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
