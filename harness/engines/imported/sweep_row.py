"""One row of ``llama-sweep-bench`` or ``llama-batched-bench``, checked: a prompt, and tokens generated beside it.

Both print a prompt's time and a generation's time in one row, and no build and no model. What they time is not what
``llama-bench`` times (another warm-up, one pass, other tokens), so their workloads have names of their own:
``sweep.pp512.d1024`` is a prompt of 512 tokens behind 1024 others, ``batched.tg128.d512.x4`` are four sequences that
generate 128 tokens each behind 512.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from harness.domain.imported import ImportedRow, ImportProblem
from harness.domain.measurement import NS
from harness.domain.workload import Workload
from harness.engines.imported.bench_row import Place
from harness.engines.imported.fields import Identity
from harness.engines.imported.figures import figure
from harness.engines.rows import wrong_samples

_MOST_TOKENS = 2**31
_COUNT = re.compile("[0-9]{1,12}")
_SINGLE = 1e-6
"""Relative: both programs divide in single precision."""


class Program(StrEnum):
    """Whose row it is."""

    SWEEP = "llama-sweep-bench"
    BATCHED = "llama-batched-bench"

    @property
    def prefix(self) -> str:
        """How names of its workloads begin."""
        return self.removeprefix("llama-").removesuffix("-bench")


@dataclass(frozen=True, slots=True)
class Figure:
    """A printed number.

    Attributes:
        value: What it says.
        half: Half a unit of its last place.
    """

    value: float
    half: float

    @property
    def low(self) -> float:
        """The least that prints so."""
        return max(0.0, self.value - self.half) * (1 - _SINGLE)

    @property
    def high(self) -> float:
        """The most that prints so."""
        return (self.value + self.half) * (1 + _SINGLE)


@dataclass(frozen=True, slots=True)
class SweepRow:
    """A row as it was read.

    Attributes:
        program: Who printed it.
        counts: ``pp``, ``tg``, ``n_kv``, of a batched one ``pl`` too.
        figures: ``t_pp``, ``speed_pp``, ``t_tg``, ``speed_tg``, of a batched one ``t`` and ``speed`` too; in seconds,
            and in tokens per second.
        shared: Whether all sequences had one prompt; ``None``: not said.
        place: Where it stands.
    """

    program: Program
    counts: Mapping[str, int]
    figures: Mapping[str, Figure]
    shared: bool | None
    place: Place


def read_row(
    values: Mapping[str, Any], program: Program, shared: bool | None, place: Place
) -> SweepRow | ImportProblem:
    """Read the numbers of a row. Never raises.

    Args:
        values: By the names that the fields have in JSON; texts, as tables have them, or JSON's numbers.
        program: Whose row it is.
        shared: Whether all sequences had one prompt, where something else than the row says it.
        place: Where it stands.
    """
    batched = program is Program.BATCHED
    counts = {name: _count(values.get(name)) for name in ("pp", "tg", "n_kv", *(["pl"] if batched else []))}
    whole = {name: count for name, count in counts.items() if count is not None}
    if whole.keys() != counts.keys() or not 0 < whole["pp"] + whole["tg"] <= _MOST_TOKENS or not whole.get("pl", 1):
        return ImportProblem("E-unreadable-workload", place.where, "a row whose token counts cannot be read")
    figures = {}
    for name in ("t_pp", "speed_pp", "t_tg", "speed_tg", *(("t", "speed") if batched else ())):
        value = figure(values.get(name))
        if value is None:
            return ImportProblem("E-incomplete-row", place.where, f"no number for {name}")
        figures[name] = Figure(value, 0.5 * 10.0 ** -_decimals(values[name]))
    said = values.get("is_pp_shared")
    return SweepRow(program, whole, figures, bool(said) if said in (0, 1) else shared, place)


def imported(row: SweepRow, identity: Identity) -> Iterator[ImportedRow | ImportProblem]:
    """What a row measured: the prompt, and what was generated; or what is wrong with either.

    Args:
        row: The row.
        identity: What is known of how it was measured.
    """
    sequences, shared = row.counts.get("pl", 1), _is_shared(row)
    if row.program is Program.BATCHED and not _adds_up(row, shared=shared):
        yield ImportProblem("E-inconsistent-row", row.place.where, "counts, times and rates of the row disagree")
        return
    pp, tg, n_kv = (row.counts[name] for name in ("pp", "tg", "n_kv"))
    sweep = row.program is Program.SWEEP
    mark = "".join([".shared" if shared and sequences > 1 else "", f".x{sequences}" if sequences > 1 else ""])
    prompt = Workload(pp, 0, n_kv if sweep else 0)
    generation = Workload(0, tg, n_kv if sweep else pp)
    for load, kind, times in ((prompt, "pp", 1 if shared else sequences), (generation, "tg", sequences)):
        if load.tokens:
            yield _half(row, identity, load, kind, times, f"{row.program.prefix}.{load.name}{mark}")


def _half(  # noqa: PLR0917 - the parts of a record
    row: SweepRow, identity: Identity, load: Workload, kind: str, times: int, name: str
) -> ImportedRow | ImportProblem:
    seconds, speed = row.figures[f"t_{kind}"], row.figures[f"speed_{kind}"]
    tokens = load.tokens * times
    time_ns = _time_ns(tokens, seconds, speed)
    if time_ns is None:
        told = f"{name}: {seconds.value} s and {speed.value} t/s are no measurement"
        return ImportProblem("E-implausible", row.place.where, told, name)
    if not _agree(tokens, seconds, speed):
        told = f"{name}: {tokens} tokens in {seconds.value} s are not {speed.value} t/s"
        return ImportProblem("E-inconsistent-row", row.place.where, told, name)
    # What bounds generation is the steps that follow one another, however many sequences take each.
    whole = Workload(load.n_prompt * times, load.n_gen, load.n_depth)
    if failure := wrong_samples(whole, [time_ns], {}):
        return ImportProblem(failure.slug, row.place.where, failure.message, name)
    return ImportedRow(
        workload=name,
        tokens=tokens,
        settings=identity.settings,
        build=identity.build,
        model=identity.model,
        samples_ns=(time_ns,),
        source=row.place.source,
        place=row.place.place,
        program=row.program.value,
    )


def _time_ns(tokens: int, seconds: Figure, speed: Figure) -> float | None:
    """The time by whichever of the two is printed more exactly; ``None`` where they are none."""
    if not all(math.isfinite(one.value) and one.value >= 0 for one in (seconds, speed)):
        return None
    if not seconds.value and not speed.value:
        return None
    if not seconds.value or (speed.value and speed.half / speed.value < seconds.half / seconds.value):
        return tokens * NS / speed.value
    return seconds.value * NS


def _agree(tokens: int, seconds: Figure, speed: Figure) -> bool:
    return seconds.low * speed.low <= tokens <= seconds.high * speed.high


def _is_shared(row: SweepRow) -> bool:
    """Whether all sequences had one prompt: as it is said, or as its speed counts the tokens."""
    if row.shared is not None or row.program is Program.SWEEP:
        return bool(row.shared)
    seconds, speed, pp = row.figures["t_pp"], row.figures["speed_pp"], row.counts["pp"]
    return row.counts["pl"] > 1 and _agree(pp, seconds, speed) and not _agree(pp * row.counts["pl"], seconds, speed)


def _adds_up(row: SweepRow, *, shared: bool) -> bool:
    """Whether the row's sums are those of its parts: places in the cache, seconds, tokens over them."""
    pp, tg, pl, n_kv = (row.counts[name] for name in ("pp", "tg", "pl", "n_kv"))
    prompts = pp if shared else pl * pp
    if n_kv not in ({pp * pl + pl * tg, pp + pl * tg} if shared else {pl * (pp + tg)}):
        return False
    parts, whole, speed = (row.figures["t_pp"], row.figures["t_tg"]), row.figures["t"], row.figures["speed"]
    if not all(math.isfinite(one.value) for one in (*parts, whole, speed)):
        return True  # each half tells of its own what is wrong with it
    if not sum(one.low for one in parts) <= whole.high or not whole.low <= sum(one.high for one in parts):
        return False
    return any(_agree(tokens, whole, speed) for tokens in (n_kv, prompts + pl * tg))


def _count(value: Any) -> int | None:
    if isinstance(value, str):
        return int(value) if _COUNT.fullmatch(value) else None
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value <= _MOST_TOKENS else None


def _decimals(value: Any) -> int:
    """Places behind the point: of a table's text as they stand there, of JSON's numbers without zeros at the end."""
    if isinstance(value, str):
        return len(value.partition(".")[2])
    exponent = Decimal(repr(value)).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0
