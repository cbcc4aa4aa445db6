"""One pitfall: a file that says what it is about, where it holds, how to ask for it, and what to use instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, StringConstraints, model_validator

from harness.domain.build import Fork
from harness.domain.flags import FlagValue
from harness.domain.number_range import NumberRange, read_range
from harness.engines.flags import known_flags
from harness.pitfalls.quant_family import FAMILIES
from harness.pitfalls.value_test import ValueTest, read_test

CONFIGURATION = "configuration"
INERT = "inert"
Which: TypeAlias = Literal["safe", "trap"]
SIDES: tuple[Which, Which] = ("safe", "trap")
_OFFER = ("contrast", "unasked")


def _fork(found: Any) -> Fork:
    if found not in list(Fork):
        raise ValueError(f"expected one of {', '.join(Fork)}, found {found!r}")
    return Fork(found)


def _flag_or_option(name: str) -> str:
    """A flag's canonical name, or an option that no table has, by its spelling."""
    if name not in known_flags() and not name.startswith("-"):
        raise ValueError(f"no fork has a flag '{name}'; an option is written as it is spelled, e.g. '--cpu-moe'")
    return name


def _flag(name: str) -> str:
    if name not in known_flags():
        raise ValueError(f"no fork has a flag '{name}'")
    return name


def _quant(word: str) -> str:
    """A family of types, or a type."""
    if word not in FAMILIES and not word.isupper():
        raise ValueError(f"expected a type in capitals, or a family: {', '.join(FAMILIES)}; found {word!r}")
    return word


def _value(found: Any) -> FlagValue:
    if isinstance(found, bool):
        return int(found)
    if not isinstance(found, int | float | str):
        raise ValueError(f"expected a number or a text, found {found!r}")  # noqa: TRY004 - the validator reads it
    return found


Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
AFork = Annotated[Fork, PlainValidator(_fork)]
Numbers = Annotated[NumberRange, PlainValidator(read_range)]
Test = Annotated[ValueTest, PlainValidator(read_test)]
Tests = dict[Annotated[str, AfterValidator(_flag_or_option)], Test]
Value = Annotated[FlagValue, PlainValidator(_value)]
Values = dict[Annotated[str, AfterValidator(_flag)], Value]
Placement = Literal["cpu", "hybrid", "gpu"]
Effect = Literal["slower", "inert", "memory", "wrong-output", "other-output", "fails", "misleading"]


class Table(BaseModel):
    """A table of a pitfall's file."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class Report(Table):
    """``[[sources]]``: who reported it, and what was said.

    Attributes:
        name: Repository and number, a file of a fork, or a recording of this project's.
        url: Where it is to be read; empty for recordings and for what has no address.
        said: The figures, or what was stated.
    """

    name: Text
    url: Annotated[str, StringConstraints(pattern=r"^(https://\S+)?$")] = ""
    said: Text


class Builds(Table):
    """``[[builds]]``: which builds of a fork it is about.

    Attributes:
        fork: The fork.
        numbers: Build numbers, e.g. ``>=3512, <3572``; left out: as far as is known, all.
        commits: Beginnings of commits that it is about beside them.
        said: Why these.
    """

    fork: AFork
    numbers: Numbers | None = None
    commits: Annotated[list[Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{7,40}$")]], Field()] = []
    said: str = ""

    @model_validator(mode="after")
    def _bounds_are_explained(self) -> Builds:
        if (self.numbers or self.commits) and not self.said:
            raise ValueError("'numbers' and 'commits' need 'said': what changed there")
        return self

    @property
    def described(self) -> str:
        """The builds in words."""
        bounds = f" {self.numbers}" if self.numbers else "" if self.commits else ", all builds"
        commits = f" {', '.join(self.commits)}" if self.commits else ""
        return f"{self.fork}{bounds}{commits}{f' ({self.said})' if self.said else ''}"


class Found(Table):
    """``[[found]]``: a build in which it was looked for.

    Attributes:
        fork: The fork.
        number: The build number.
        verdict: What was found: ``present``, ``gone`` or ``inconclusive``.
        said: The figures.
    """

    fork: AFork
    number: Annotated[int, Field(gt=0)]
    verdict: Literal["present", "gone", "inconclusive"]
    said: Text


class When(Table):
    """``[when]``: conditions beside the builds. A key that is left out is no condition.

    Attributes:
        placement: Where it computes: ``cpu``, ``hybrid``, ``gpu``.
        gpu_code: The build has code for GPUs.
        quants: Types or families of the weights most of the work is done with (experts, where there are some).
        holds: Types or families that some weight of the model has.
        architectures: Architectures of the model.
        grouped_queries: Whether the model has fewer heads of keys than of queries.
        latent_attention: Whether its attention is latent.
        experts: Whether it is a mixture of experts.
        offload: Whether the physical batch has ``reached`` the tokens from which experts in RAM are computed on the
            GPU, or is ``below``.
        mixed_cache: Whether the K and V cache are of different types.
        splits_experts: Whether overrides put ``up`` and ``gate`` of a layer's experts on different devices.
        flags: What other flags have to be.
    """

    placement: Annotated[list[Placement], Field(min_length=1)] | None = None
    gpu_code: bool | None = None
    quants: Annotated[list[Annotated[str, AfterValidator(_quant)]], Field(min_length=1)] | None = None
    holds: Annotated[list[Annotated[str, AfterValidator(_quant)]], Field(min_length=1)] | None = None
    architectures: Annotated[list[Text], Field(min_length=1)] | None = None
    grouped_queries: bool | None = None
    latent_attention: bool | None = None
    experts: bool | None = None
    offload: Literal["below", "reached"] | None = None
    mixed_cache: bool | None = None
    splits_experts: bool | None = None
    flags: Tests = {}


class Contrast(Table):
    """``[contrast]``: how a run asks for it.

    Attributes:
        factor: A flag; or ``configuration`` where several flags are the trap.
        safe: The side without the trap.
        trap: The side with it.
        setting: Flags of both sides, where the matrix does not say them: they make the conditions hold.
        workloads: What suffers, or what is timed to see that nothing changes: prompt processing, token generation.
        ratio: Speed of the trap's side over the other's, as reported: least and largest. Inert flags have none.
    """

    factor: Text
    safe: Value | Values
    trap: Value | Values
    setting: Values = {}
    workloads: Annotated[list[Literal["pp", "tg"]], Field(min_length=1)]
    ratio: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None

    @model_validator(mode="after")
    def _sides_fit_the_factor(self) -> Contrast:
        several = self.factor == CONFIGURATION
        if not several:
            _flag(self.factor)
        if any(isinstance(side, Mapping) != several for side in (self.safe, self.trap)):
            raise ValueError(f"'safe' and 'trap' of {self.factor} are {'tables' if several else 'values'}")
        if self.safe == self.trap:
            raise ValueError("'safe' and 'trap' are the same")
        low, high = self.ratio or (0.5, 0.5)
        if not 0 < low <= high < 1:
            raise ValueError(f"'ratio' is least and largest of a loss, above 0 and below 1, found {self.ratio}")
        return self

    def side(self, which: Which) -> dict[str, FlagValue]:
        """The flags of a side."""
        found = self.safe if which == "safe" else self.trap
        return dict(found) if isinstance(found, dict) else {self.factor: found}


class Pitfall(Table):
    """A documented trap.

    Attributes:
        id: Its name; the file's, too.
        title: What it is, in a line.
        effect: What happens: ``slower``, ``inert``, ``memory``, ``wrong-output``, ``other-output``, ``fails``,
            ``misleading``.
        why: Why that happens.
        instead: What to use.
        builds: Which builds it is about.
        found: Builds in which it was looked for.
        when: Conditions beside the builds.
        trap: What a command line with it says: any of these tables of flags. Empty: no command line shows it.
        remedy: Flags of the line that should be written instead.
        leave_out: Flags, or options, that the line should do without.
        contrast: How a run asks for it; of an inert flag how ``lint --verify`` does: equal to the bit, equally fast.
        unasked: Why no matrix can ask for it.
        sources: Who reported it.
    """

    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    title: Text
    effect: Effect
    why: Text
    instead: Text
    builds: Annotated[list[Builds], Field(min_length=1)]
    found: list[Found] = []
    when: When = When()
    trap: list[Annotated[Tests, Field(min_length=1)]] = []
    remedy: Values = {}
    leave_out: list[Annotated[str, AfterValidator(_flag_or_option)]] = []
    contrast: Contrast | None = None
    unasked: str = ""
    sources: Annotated[list[Report], Field(min_length=1)]

    @model_validator(mode="after")
    def _asked_or_said_why_not(self) -> Pitfall:
        if self.effect == INERT:
            if not self.unasked:
                raise ValueError("no contrast of a matrix finds what is inert: give 'unasked'")
        elif (self.contrast is None) == (not self.unasked):
            raise ValueError(f"needs exactly one of {' and '.join(repr(key) for key in _OFFER)}")
        if self.contrast is not None and self.effect not in ("slower", INERT):
            raise ValueError(f"a contrast finds what is slower, or inert, not what is '{self.effect}': give 'unasked'")
        if self.contrast is not None and (self.contrast.ratio is None) == (self.effect == "slower"):
            raise ValueError("a contrast of what is slower has a 'ratio', and one of what is inert has none")
        strangers = [each.fork for each in self.found if each.fork not in self.forks]
        if strangers:
            raise ValueError(f"it was looked for in {strangers[0]}, which 'builds' does not name")
        return self

    @property
    def forks(self) -> tuple[Fork, ...]:
        """The forks that it is about."""
        return tuple(dict.fromkeys(each.fork for each in self.builds))

    @property
    def source(self) -> str:
        """The first report, as verdicts show it."""
        first = self.sources[0]
        return f"{first.name}: {first.said}"
