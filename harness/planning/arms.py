"""A matrix's arms: the product of builds, models and axes, less what is excluded, plus what is included.

Per node class, model and build the axes are those of ``[flags]`` and ``[axes]`` with those of every ``[[when]]`` that
holds put over them, in the file's order; a ``[[when]]`` about placement is looked at arm by arm. An ``[[exclude]]``
removes from this product; an ``[[include]]`` adds one arm afterwards, so no exclude takes it away: its flags are put
over the first value of every axis. Two declarations that complete to the same flags are one arm.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import product

from harness.builds.declared import declared_build
from harness.builds.known import KnownSource, KnownSources
from harness.domain.arm import Arm
from harness.domain.build import Build
from harness.domain.flags import Flags, FlagValue
from harness.domain.model import Model
from harness.domain.node import ANY_CLASS, NodeClass
from harness.domain.workload import OutputProfile, Timed
from harness.engines.abilities import beyond
from harness.engines.flags import FlagFault, Unsupported, complete
from harness.models.card import written_quant
from harness.planning.build_facts import with_builds_named
from harness.planning.flag_faults import FlagFaults, PlaceOf
from harness.planning.placement import placement_of, placements_of
from harness.planning.schema import Condition, ExcludeEntry, IncludeEntry, Matrix, ModelEntry, WhenEntry, Where
from harness.planning.size import require_few_arms

Declared = dict[str, FlagValue]


@dataclass(frozen=True, slots=True, eq=False)
class PlannedArm:
    """An arm on a node class, and how it came to be. Compared by identity: there is one object of each.

    Attributes:
        arm: The arm; where the build can't do it, with the flags as declared.
        node_class: Where it is asked for.
        declared: The flags that the matrix says, those of named values among them.
        flags: The same flags completed, for looking up; as declared where the build can't do it.
        unsupported: Why the build can't do it; empty if it can.
        origin: File and key of the include that it comes from; empty for one of the product.
        named: What the values of its named axes are called.
    """

    arm: Arm
    node_class: NodeClass
    declared: Declared
    flags: Mapping[str, FlagValue]
    unsupported: str
    origin: str
    named: Mapping[str, str] = field(default_factory=dict)

    def has(self, name: str, values: Iterable[FlagValue]) -> bool:
        """Whether a flag has one of some values, as declared or as completed (``on`` is 1); or a named axis."""
        places = (self.declared, self.flags, self.named)
        return any((name in found and found[name] == value) for value in values for found in places)

    @property
    def placement(self) -> str:
        """Where it computes."""
        return placement_of(self.arm.build, self.node_class, self.flags)


@dataclass(frozen=True, slots=True)
class Corner:
    """Build, model and class with their axes.

    Attributes:
        build: The build.
        model: The model.
        node_class: The class.
        axes: The values of flags and of named axes.
        late: What is added to the axes of arms of some placements, each with its index in the file.
        shown: Flags that labels show: what has more than one value here, or has one by an include only.
        places: File and key of each axis.
    """

    build: Build
    model: Model
    node_class: NodeClass
    axes: Mapping[str, tuple[FlagValue, ...]]
    late: tuple[tuple[int, WhenEntry], ...]
    shown: tuple[str, ...]
    places: Mapping[str, str]


def builds_of(matrix: Matrix) -> dict[str, Build]:
    """The domain's builds of a matrix, by name.

    Raises:
        BadInput: As `declared_build`, which reads recipes and the catalogue.
    """
    return {name: declared_build(name, entry) for name, entry in matrix.builds.items()}


def declared_model(name: str, entry: ModelEntry) -> Model:
    """The domain's model of an entry."""
    quant = (entry.quant.upper() or written_quant(entry.card)) if entry.card else ""
    return Model(name, entry.card, quant, entry.path, entry.url, entry.sha256)


class Workshop:
    """Makes the arms of one matrix and keeps what is costly to make: builds, models, completed flags.

    Args:
        matrix: The matrix.
        options: Option spellings of a build's ``--help``, by build, where it was read.
        sources: What is known of the builds' commits and numbers.
    """

    def __init__(
        self, matrix: Matrix, options: Mapping[str, frozenset[str]], sources: KnownSources | None = None
    ) -> None:
        self.builds = builds_of(matrix)
        self._sources = sources or KnownSources()
        self.matrix = with_builds_named(matrix, self.builds, self._sources)
        self._options = options
        self._corners: dict[tuple[str, str, str], Corner] = {}
        self.faults = FlagFaults()
        self.excluding: set[int] = set()
        self.holding: set[int] = set()
        self._completed: dict[tuple[str, tuple[tuple[str, FlagValue], ...]], Flags | FlagFault | str] = {}
        self._arms: dict[tuple[object, ...], tuple[Arm, str]] = {}

    @cached_property
    def models(self) -> dict[str, Model]:
        """The domain's models, by name; a card without a quantization is taken as written."""
        return {name: declared_model(name, entry) for name, entry in self.matrix.models.items()}

    @cached_property
    def node_classes(self) -> tuple[NodeClass, ...]:
        """The classes that are declared, or the one that every node belongs to."""
        declared = self.matrix.node_classes.items()
        return tuple(entry.node_class(name) for name, entry in declared) or (NodeClass(ANY_CLASS),)

    @cached_property
    def bundles(self) -> dict[str, dict[FlagValue, Mapping[str, FlagValue]]]:
        """The named axes: flags by axis and name."""
        return {axis: {bundle.name: bundle.flags for bundle in listed} for axis, listed in self.matrix.axes.items()}

    def spelled_out(self, values: Mapping[str, FlagValue]) -> tuple[Declared, dict[str, str]]:
        """Flags of values of axes, named ones replaced by what they stand for; and the names."""
        if not self.bundles:
            return dict(values), {}
        named = {name: str(value) for name, value in values.items() if name in self.bundles}
        declared = {name: value for name, value in values.items() if name not in named}
        for name, value in named.items():
            declared.update(self.bundles[name][value])
        return declared, named

    @cached_property
    def environment(self) -> tuple[tuple[str, str], ...]:
        """Variables that every engine gets."""
        return tuple(sorted(self.matrix.environment.items()))

    def corner(self, build: Build, model: Model, node_class: NodeClass) -> Corner:
        """The axes of one build, model and class."""
        key = (build.name, model.name, node_class.name)
        if key not in self._corners:
            self._corners[key] = _corner(self, build, model, node_class)
        return self._corners[key]

    def completed(self, build: Build, declared: Declared) -> Flags | FlagFault | str:
        """The complete flags; or what is wrong with them; or why the build can't do them."""
        key = (build.name, tuple(sorted(declared.items())))
        if key not in self._completed:
            try:
                self._completed[key] = complete(build, declared, options=self._options.get(build.name))
            except Unsupported as unsupported:
                self._completed[key] = unsupported.reason
            except FlagFault as fault:
                self._completed[key] = fault
        return self._completed[key]

    def source(self, build: Build) -> KnownSource:
        """What is known of a build's commit and number."""
        return self._sources.of(build, self.matrix.builds[build.name], self.matrix.environment)

    def beyond(self, arm: PlannedArm, asked: Timed | OutputProfile | None) -> str:
        """Why an arm can't do what a case asks of it; empty if it can."""
        build = arm.arm.build
        return arm.unsupported or (beyond(build, asked, self._options.get(build.name)) if asked else "")

    def keep(self, arm: PlannedArm, place_of: PlaceOf) -> PlannedArm:
        """The arm, which nothing excludes: what is wrong with its flags is a problem of the file."""
        if arm.unsupported:
            found = self.completed(arm.arm.build, arm.declared)
            if isinstance(found, FlagFault):
                self.faults.add(found, arm.declared, place_of)
        return arm

    def arm(
        self, corner: Corner, declared: Declared, named: Mapping[str, str] | None = None, origin: str = ""
    ) -> PlannedArm:
        """One arm on one class."""
        build, model = corner.build, corner.model
        names = tuple(sorted(named.items())) if named else ()
        key = (build.name, model.name, corner.shown, names, tuple(declared.items()))
        if key not in self._arms:
            flags = self.completed(build, declared)
            usable = flags if isinstance(flags, Flags) else Flags.of(declared)
            reason = "" if isinstance(flags, Flags) else flags.message if isinstance(flags, FlagFault) else flags
            self._arms[key] = (Arm(build, model, usable, self.environment, corner.shown, names), reason)
        arm, reason = self._arms[key]
        return PlannedArm(arm, corner.node_class, declared, arm.flags.as_dict(), reason, origin, named or {})


def expand_arms(workshop: Workshop) -> list[PlannedArm]:
    """All arms of a matrix, models outermost, in the file's order.

    Raises:
        BadInput: ``E-matrix-too-large``.
    """
    corners = [workshop.corner(build, model, node_class) for model, node_class, build in _places_of_arms(workshop)]
    require_few_arms(sum(map(_combinations, corners)), workshop.matrix.source.file)
    unique: dict[tuple[str, str, str, Flags], PlannedArm] = {}
    for arm in (*_grid(workshop), *_included(workshop)):
        key = (arm.node_class.name, arm.arm.model.name, arm.arm.build.name, arm.arm.flags)
        unique.setdefault(key, arm)
    return list(unique.values())


def holds(condition: Condition, build: Build, model: Model, node_class: NodeClass) -> bool:
    """Whether a condition holds, its flags and placement apart. Those on facts of builds name builds by now."""
    asked = (
        (condition.fork, build.fork.value),
        (condition.build, build.name),
        (condition.model, model.name),
        (condition.node_class, node_class.name),
    )
    if any(names is not None and found not in names for names, found in asked):
        return False
    return condition.quant is None or model.quant in {quant.upper() for quant in condition.quant}


def matches(where: Where, arm: PlannedArm) -> bool:
    """Whether an arm meets a condition with its flags; a flag that the arm does not have is not met."""
    return (
        holds(where, arm.arm.build, arm.arm.model, arm.node_class)
        and is_placed(where, arm)
        and all(arm.has(name, values) for name, values in where.flags.items())
    )


def is_placed(condition: Condition, arm: PlannedArm) -> bool:
    """Whether an arm computes where a condition asks for."""
    return condition.placement is None or arm.placement in condition.placement


def _places_of_arms(workshop: Workshop) -> Iterator[tuple[Model, NodeClass, Build]]:
    return product(workshop.models.values(), workshop.node_classes, workshop.builds.values())


def _combinations(corner: Corner) -> int:
    """Of a corner's axes, with the longest of what is put over them late."""
    late = (math.prod(map(len, entry.flags.values())) for _, entry in corner.late)
    return math.prod(map(len, corner.axes.values())) * max(late, default=1)


def _grid(workshop: Workshop) -> Iterator[PlannedArm]:
    excludes = workshop.matrix.exclude
    for model, node_class, build in _places_of_arms(workshop):
        corner = workshop.corner(build, model, node_class)
        rules = [(index, rule) for index, rule in enumerate(excludes) if holds(rule, build, model, node_class)]
        for declared, named, late in _declarations(workshop, corner):
            arm = workshop.arm(corner, declared, named)
            excluding = [index for index, rule in rules if _excludes(rule, arm)]
            workshop.excluding.update(excluding)
            if not excluding:
                yield workshop.keep(arm, partial(_place, workshop, corner, named, late))


def _place(workshop: Workshop, corner: Corner, named: Mapping[str, str], over: Mapping[str, str], flag: str) -> str:
    """Where a flag of an arm is set: by what is put over the axes, by a named value, by an axis."""
    if flag in over or flag in corner.places:
        return over.get(flag) or corner.places[flag]
    for axis, value in named.items():
        names = list(workshop.bundles[axis])
        if flag in workshop.bundles[axis][value]:
            return workshop.matrix.source.at("axes", axis, names.index(value), "flags", flag)
    return ""


def _excludes(rule: ExcludeEntry, arm: PlannedArm) -> bool:
    return is_placed(rule, arm) and all(arm.has(*wanted) for wanted in rule.flags.items())


def _declarations(workshop: Workshop, corner: Corner) -> Iterator[tuple[Declared, dict[str, str], Mapping[str, str]]]:
    """Flags of every combination of the axes, the names of its named values, and where late flags are set."""
    for values in product(*corner.axes.values()):
        declared, named = workshop.spelled_out(dict(zip(corner.axes, values, strict=True)))
        for more, places in _late(workshop, corner, declared) if corner.late else (({}, {}),):
            yield {**declared, **more}, named, places


def _late(workshop: Workshop, corner: Corner, declared: Declared) -> Iterator[tuple[Declared, dict[str, str]]]:
    """Combinations of what is added where an arm of these flags computes, and where it is set."""
    flags = workshop.completed(corner.build, declared)
    known = flags.as_dict() if isinstance(flags, Flags) else declared
    placement = placement_of(corner.build, corner.node_class, known)
    axes: dict[str, tuple[FlagValue, ...]] = {}
    places: dict[str, str] = {}
    for index, entry in corner.late:
        if entry.placement and placement in entry.placement:
            workshop.holding.add(index)
            axes.update(entry.flags)
            places.update(_places(workshop.matrix, entry.flags, "when", index, "flags"))
    for values in product(*axes.values()):
        yield dict(zip(axes, values, strict=True)), places


def _places(matrix: Matrix, names: Iterable[str], *path: str | int) -> dict[str, str]:
    """File and key of each of some names of a table."""
    return {name: matrix.source.at(*path, name) for name in names}


def _corner(workshop: Workshop, build: Build, model: Model, node_class: NodeClass) -> Corner:
    matrix = workshop.matrix
    named = {name: tuple(bundle.name for bundle in listed) for name, listed in matrix.axes.items()}
    axes: dict[str, tuple[FlagValue, ...]] = {**_threads(matrix), **matrix.flags, **named}
    places = _places(matrix, matrix.flags, "flags")
    if "t" not in places:
        places["t"] = matrix.source.at("policy", "threads")
    possible = frozenset(placements_of(build, node_class))
    late: list[tuple[int, WhenEntry]] = []
    values: dict[str, set[FlagValue]] = defaultdict(set)
    for index, entry in enumerate(matrix.when):
        if not holds(entry, build, model, node_class) or possible.isdisjoint(entry.placement or possible):
            continue
        if entry.placement is None:
            workshop.holding.add(index)
            axes.update(entry.flags)
            places.update(_places(matrix, entry.flags, "when", index, "flags"))
            continue
        late.append((index, entry))
        for name, axis in entry.flags.items():
            values[name].update(axis)
    for name, axis in axes.items():
        values[name].update(axis)
    shown: set[str] = set()
    for include in matrix.include:
        if (include.build, include.model) == (build.name, model.name) and _is_for(include, node_class):
            for name, value in include.flags.items():
                values[name].add(value)
            shown |= include.flags.keys() - axes.keys()
    shown |= {name for name, seen in values.items() if len(seen) > 1}
    return Corner(build, model, node_class, axes, tuple(late), tuple(sorted(shown)), places)


def _threads(matrix: Matrix) -> dict[str, tuple[FlagValue, ...]]:
    """The policy's threads as the flag that says them, so that they are part of every arm's identity."""
    threads = matrix.policy.threads
    return {} if threads == "auto" else {"t": (threads,)}


def _included(workshop: Workshop) -> Iterator[PlannedArm]:
    for index, entry in enumerate(workshop.matrix.include):
        origin = workshop.matrix.source.at("include", index)
        own = _places(workshop.matrix, entry.flags, "include", index, "flags")
        for node_class in workshop.node_classes:
            if _is_for(entry, node_class):
                corner = workshop.corner(workshop.builds[entry.build], workshop.models[entry.model], node_class)
                first: Declared = {name: values[0] for name, values in corner.axes.items()}
                declared, named = workshop.spelled_out({**first, **entry.flags})
                arm = workshop.arm(corner, declared, named, origin)
                yield workshop.keep(arm, partial(_place, workshop, corner, named, own))


def _is_for(include: IncludeEntry, node_class: NodeClass) -> bool:
    return include.node_class is None or node_class.name in include.node_class
