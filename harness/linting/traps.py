"""Documented pitfalls that a command line has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness.domain.build import Fork, Tool
from harness.domain.flags import FlagValue
from harness.domain.patterns import override_pairs
from harness.engines.flags import specs
from harness.linting.finding import Edit, Finding, Sort
from harness.linting.parsed_line import ParsedLine
from harness.linting.saying import edits_saying, edits_without
from harness.pitfalls.catalogue import packaged_pitfalls
from harness.pitfalls.conditions import applies, is_gone, is_set
from harness.pitfalls.entry import Pitfall
from harness.pitfalls.facts import Facts, ModelFacts
from harness.pitfalls.wording import described_conditions

NEWEST_READ = {Fork.LLAMA_CPP: 11549, Fork.IK_LLAMA_CPP: 4840}
_CPU = "CPU"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known beside the line; ``None`` and empty: not known.

    Attributes:
        number: The build's number.
        commit: The build's commit.
        gpu_code: Whether the build can compute on a GPU.
        placement: Where it computes, if it was said.
        model: The model.
        quant: What the name of the model's file says of its quantization.
        latent: What it says of its attention: whether that is latent.
        own_pitfalls: Pitfalls beside those that come with the package.
    """

    number: int | None = None
    commit: str = ""
    gpu_code: bool | None = None
    placement: str | None = None
    model: ModelFacts | None = None
    quant: str = ""
    latent: bool | None = None
    own_pitfalls: tuple[Pitfall, ...] = ()

    @property
    def pitfalls(self) -> tuple[Pitfall, ...]:
        """All that a line is held against."""
        return (*packaged_pitfalls().values(), *self.own_pitfalls)

    def number_for(self, fork: Fork) -> int:
        """The build's number; where it is not known, that of the newest build whose options were read."""
        return NEWEST_READ[fork] if self.number is None else self.number


def traps(line: ParsedLine, surroundings: Surroundings) -> Iterator[Finding]:
    """The pitfalls whose trap the line sets and whose conditions nothing known speaks against."""
    facts = facts_of(line, surroundings)
    for pitfall in surroundings.pitfalls:
        if (
            not is_set(pitfall, facts)
            or _of_rare_models(pitfall, facts)
            or is_gone(pitfall, line.fork, surroundings.number_for(line.fork))
        ):
            continue
        held = applies(pitfall, facts)
        if held.is_inside:
            yield _finding(pitfall, line, facts, held.unknown)


def _of_rare_models(pitfall: Pitfall, facts: Facts) -> bool:
    """What only some models have is warned of where the model is known."""
    return facts.model is None and bool(pitfall.when.architectures or pitfall.when.holds)


def gone(line: ParsedLine, surroundings: Surroundings) -> Iterator[str]:
    """Pitfalls that the line would have in older builds, with what was found in newer ones."""
    facts = facts_of(line, surroundings)
    for pitfall in surroundings.pitfalls:
        found = is_gone(pitfall, line.fork, surroundings.number_for(line.fork))
        held = applies(pitfall, facts)
        if found and is_set(pitfall, facts) and held.is_inside and not held.unknown:
            yield f"{pitfall.id} ({pitfall.title}): {found}; --build-number says another build"


def facts_of(line: ParsedLine, surroundings: Surroundings) -> Facts:
    """The line's flags, those that it does not say with their defaults, and what is known beside them."""
    defaults = {name: (spec.default,) for name, spec in specs(line.fork, Tool.LLAMA_BENCH).items()}
    return Facts(
        fork=line.fork,
        number=surroundings.number_for(line.fork),
        commit=surroundings.commit,
        placement=surroundings.placement or _placement(line.said, gpu_code=surroundings.gpu_code),
        gpu_code=surroundings.gpu_code,
        model=surroundings.model,
        quant=surroundings.quant,
        latent=surroundings.latent,
        flags={**defaults, **line.said},
        said=frozenset(line.said),
    )


def _placement(said: Mapping[str, tuple[FlagValue, ...]], *, gpu_code: bool | None) -> str | None:
    """Where the flags place it; ``None`` where they leave that to the program."""
    layers = said.get("ngl")
    if gpu_code is False or said.get("dev") == ("none",) or layers == (0,):
        return "cpu"
    overrides = [pair for value in said.get("ot", ()) for pair in override_pairs(str(value))]
    experts = any(value != 0 for value in said.get("ncmoe", ()))
    if experts or any(buffer.upper().startswith(_CPU) for _, buffer in overrides):
        return "hybrid"
    return "gpu" if layers else None


def _finding(pitfall: Pitfall, line: ParsedLine, facts: Facts, unknown: tuple[str, ...]) -> Finding:
    names = {name for tests in pitfall.trap for name in tests if name in facts.said}
    where = [part.text for part in line.parts if part.option and {part.option.flag, *part.option.names} & names]
    return Finding(
        pitfall.id,
        Sort.IGNORED if pitfall.effect == "inert" else Sort.TRAP,
        line.fork,
        ", ".join(where),
        f"{pitfall.title}: {' '.join(pitfall.why.split())} ({_evidence(pitfall, line.fork)})".strip(),
        _applies(pitfall, line.fork),
        pitfall.instead,
        _remedies(pitfall, line),
        tuple(dict.fromkeys(unknown)),
        pitfall,
    )


def _other_patterns(pitfall: Pitfall, line: ParsedLine, better: str) -> Iterator[Edit]:
    """Only the override that is the trap is written otherwise; the others stay."""
    tests = [tests["ot"] for tests in pitfall.trap if "ot" in tests]
    for part in line.parts:
        if part.option is None or part.option.flag != "ot" or part.value is None:
            continue
        joiner = part.option.joiner or ","
        pieces = [better if any(test(piece) for test in tests) else piece for piece in part.value.split(joiner)]
        if pieces != part.value.split(joiner):
            yield Edit(part, (part.name, joiner.join(pieces)))


def _evidence(pitfall: Pitfall, fork: Fork) -> str:
    """The newest build in which it was found, or the first report."""
    found = [each for each in pitfall.found if each.fork is fork and each.verdict == "present"]
    newest = max(found, key=lambda each: each.number, default=None)
    return f"build {newest.number}: {newest.said}" if newest else pitfall.source


def _applies(pitfall: Pitfall, fork: Fork) -> str:
    builds = "; ".join(builds.described for builds in pitfall.builds if builds.fork is fork)
    return "; ".join(filter(None, (builds, *described_conditions(pitfall.when))))


def _remedies(pitfall: Pitfall, line: ParsedLine) -> tuple[Edit, ...]:
    """The edits of its remedy; a flag that the program can't say is none, and then no line is offered."""
    edits = [
        edit
        for name, value in pitfall.remedy.items()
        for edit in (_other_patterns(pitfall, line, str(value)) if name == "ot" else edits_saying(line, name, value))
    ]
    return (*edits, *(edit for name in pitfall.leave_out for edit in edits_without(line, name)))
