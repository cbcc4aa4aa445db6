"""Names inside a matrix: each must be declared or known, and the error says what was probably meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from harness.builds.baselines import SIGN
from harness.builds.choosing import as_variant
from harness.builds.declared import declared_build
from harness.builds.entry import ORIGINS
from harness.builds.known import KnownSources
from harness.domain.build import Build, Fork
from harness.domain.canonical import id_part
from harness.domain.errors import BadInput
from harness.domain.flags import FlagValue
from harness.domain.node import ANY_CLASS, ISA_WORDS
from harness.domain.suggest import did_you_mean
from harness.engines.flags import complete, known_flags
from harness.engines.registry import engine_for
from harness.models.card import load_card, packaged_cards
from harness.models.fetched import part_addresses
from harness.models.makeable import require_makeable
from harness.models.quantize import QUANTS, UNQUANTIZED
from harness.pitfalls.catalogue import pitfall_named
from harness.planning.arms import declared_model
from harness.planning.build_facts import asked_builds
from harness.planning.configuration import Configuration
from harness.planning.placement import DECIDING, PLACEMENTS
from harness.planning.problems import INVALID, Problem
from harness.planning.profiles import load_profile, names_of
from harness.planning.prompt_sets import output_profile
from harness.planning.same_content import same_build, same_model
from harness.planning.schema import (
    Condition,
    ContrastEntry,
    FactorEntry,
    FloorEntry,
    Matrix,
    ModelEntry,
    OutputsEntry,
    WhenEntry,
    Where,
)
from harness.planning.source import KeyPath
from harness.planning.values import AtKey, Side, variables_of

NAMED_FACTORS = ("build", "model", "configuration", "environment")
"""The factors that are not flags."""

_DECLARING: Mapping[str | int, str] = {
    "builds": "build",
    "models": "model",
    "node_classes": "node_class",
    "configurations": "configuration",
    "axes": "axis",
}
"""What the keys of a section are."""
_ANY_BUILD = Build("any", Fork.IK_LLAMA_CPP, wheel="any")
_CONDITION_KEYS = ("fork", "build", "model", "quant", "node_class", "placement")


def reference_problems(matrix: Matrix, sources: KnownSources, faulty: Iterable[KeyPath] = ()) -> list[Problem]:
    """All names that nothing answers to, and names that are taken twice.

    Args:
        matrix: The matrix.
        sources: What is known of the builds' commits and numbers.
        faulty: Keys that it lacks because they are faulty: what they would have declared is not missed.
    """
    return list(_References(matrix, sources, faulty).problems())


def _declared_by(key: KeyPath) -> str:
    """What a key declares; empty where nothing in the matrix asks for it."""
    section, *path = key or ("",)
    if section == "workloads":
        return "workload"
    if section == "models" and path[1:] == ["quant"]:
        return "quant"
    return _DECLARING.get(section, "") if len(path) == 1 else ""


def _flag_hint(name: str) -> str:
    """What the engines' tables say to a name: they know options and fields that mean a flag, too."""
    try:
        complete(_ANY_BUILD, {name: 0})
    except BadInput as unknown:
        return unknown.hint
    return ""


def _side_text(side: Side | None) -> str:
    """A side as a person wrote it."""
    if not isinstance(side, Configuration):
        return repr(side)
    settings = {**side.flags, **({"environment": dict(side.environment)} if side.environment else {})}
    return "{ " + ", ".join(f"{name} = {value!r}" for name, value in settings.items()) + " }" if settings else "{}"


class _References:
    """Looks every name of one matrix up."""

    def __init__(self, matrix: Matrix, sources: KnownSources, faulty: Iterable[KeyPath]) -> None:
        self._matrix = matrix
        self._sources = sources
        self._faulty = frozenset(_declared_by(key) for key in faulty)
        quants = {entry.quant.upper() for entry in matrix.models.values() if entry.quant}
        self._is_time = {each.name: each.is_time for entry in matrix.workloads for each in names_of(entry)}
        self._builds_by_name: dict[str, Build] = {}
        self._unsaid: set[tuple[str, str]] = set()
        self._known: dict[str, frozenset[str]] = {
            "fork": frozenset(Fork),
            "build": frozenset(matrix.builds),
            "model": frozenset(matrix.models),
            "quant": frozenset(quants),
            "node_class": frozenset(matrix.node_classes or (ANY_CLASS,)),
            "flag": frozenset(known_flags()),
            "workload": frozenset(self._is_time),
            "contrast": frozenset(entry.name for entry in matrix.contrasts),
            "configuration": frozenset(matrix.configurations),
            "placement": frozenset(PLACEMENTS),
        }

    def problems(self) -> Iterator[Problem]:
        yield from self._builds()
        yield from self._models()
        yield from self._node_classes()
        yield from self._flags(self._matrix.flags, "flags")
        yield from self._axes()
        for name, configuration in self._matrix.configurations.items():
            yield from self._flags(configuration.flags, "configurations", name)
        for section in ("when", "include", "exclude"):
            for index, entry in enumerate(getattr(self._matrix, section)):
                if isinstance(entry, Condition):
                    yield from self._condition(entry, section, index)
                else:
                    yield from self._include(index)
                if isinstance(entry, WhenEntry):
                    yield from self._flags(entry.flags, section, index, "flags")
                    yield from self._places_itself(entry, section, index)
                else:
                    yield from self._flags_or_axes(entry.flags, section, index, "flags")
        for index, contrast in enumerate(self._matrix.contrasts):
            if contrast.pitfall:
                yield from self._pitfall(contrast.pitfall, "contrasts", index, "pitfall")
            else:
                yield from self._factors(contrast, "contrasts", index)
            yield from self._where(contrast.where, "contrasts", index, "where")
            yield from self._each("workload", contrast.workloads, "contrasts", index, "workloads")
        for index, workload in enumerate(self._matrix.workloads):
            yield from self._where(workload.where, "workloads", index, "where")
            if workload.profile:
                yield from self._profile(index)
        yield from self._checks()
        yield from self._trades()
        yield from self._taken_twice()

    def _trades(self) -> Iterator[Problem]:
        """A trade about workloads that the matrix does not have would never be made, and nobody would notice."""
        for index, trade in enumerate(() if "workload" in self._faulty else self._matrix.policy.trades):
            for key, pattern in (("gain", trade.gain), ("loss", trade.loss)):
                if not any(fnmatchcase(name, pattern) for name in self._known["workload"]):
                    yield self._unknown("workload", pattern, self._known["workload"], "policy", "trades", index, key)

    def _builds(self) -> Iterator[Problem]:
        """A wheel must be one that an engine knows, and of the fork; whether it is installed is the node's business.

        Recipes and names of the catalogue are looked up here, on the machine of whoever plans.
        """
        for name, entry in self._matrix.builds.items():
            key = next(origin for origin in ORIGINS if getattr(entry, origin))
            try:
                build = self._builds_by_name[name] = declared_build(name, entry)
                for each in [as_variant(build, variant) for variant in build.variants] or [build]:
                    if each.wheel:
                        engine_for(each)
            except BadInput as bad:
                yield Problem(bad.slug, self._at("builds", name, key), bad.message, bad.hint)

    def _node_classes(self) -> Iterator[Problem]:
        """A misspelt instruction set would make its cases not applicable for ever, and nobody would notice."""
        for name, entry in self._matrix.node_classes.items():
            for word in entry.isa:
                if word not in ISA_WORDS:
                    message = f"unknown instruction set '{word}'"
                    yield Problem(
                        INVALID, self._at("node_classes", name, "isa"), message, did_you_mean(word, ISA_WORDS)
                    )

    def _models(self) -> Iterator[Problem]:
        cards = packaged_cards()
        for name, entry in self._matrix.models.items():
            is_name = entry.card and not entry.card.endswith(".json")
            if is_name and entry.card not in cards:
                yield self._unknown("card", entry.card, cards, "models", name, "card")
            elif entry.card:
                yield from self._card(name, entry.card, entry.quant.upper())
            if entry.url:
                yield from self._address(name, entry)
            if entry.quant and entry.quant.upper() not in QUANTS:
                yield self._unknown("quant", entry.quant, QUANTS, "models", name, "quant")

    def _address(self, name: str, entry: ModelEntry) -> Iterator[Problem]:
        """An address that says how many parts the model has, with as many digests."""
        try:
            part_addresses(entry.url, entry.sha256)
        except BadInput as bad:
            key = "sha256" if bad.slug == "E-model-digests" else "url"
            yield Problem(bad.slug, self._at("models", name, key), bad.message, bad.hint)

    def _card(self, name: str, card: str, quant: str) -> Iterator[Problem]:
        """A card that is here must be whole and makeable; one that is not may lie on the nodes."""
        key = "card"
        try:
            found = load_card(card)
            key = "quant" if quant else "card"
            if quant in QUANTS or not quant:
                require_makeable(found, quant or UNQUANTIZED)
        except BadInput as bad:
            if not isinstance(bad.__cause__, OSError):
                yield Problem(bad.slug, self._at("models", name, key), f"{bad.where}: {bad.message}", bad.hint)

    def _include(self, index: int) -> Iterator[Problem]:
        entry = self._matrix.include[index]
        yield from self._each("build", [entry.build], "include", index, "build")
        yield from self._each("model", [entry.model], "include", index, "model")
        yield from self._each("node_class", entry.node_class or (), "include", index, "node_class")

    def _profile(self, index: int) -> Iterator[Problem]:
        try:
            load_profile(self._matrix.workloads[index])
        except BadInput as bad:
            yield Problem(bad.slug, self._at("workloads", index, "profile"), bad.message, bad.hint)

    def _threshold(self, check: FloorEntry, index: int) -> Iterator[Problem]:
        """Times have a limit in ms, speeds a floor: the other one would never apply."""
        for name in check.workloads:
            if name in self._is_time and self._is_time[name] != (check.max_ms is not None):
                key, said = ("max_ms", "a time") if self._is_time[name] else ("tokens_per_second", "a speed")
                yield Problem(INVALID, self._at("checks", index, "workloads"), f"'{name}' is {said}: give '{key}'")

    def _checks(self) -> Iterator[Problem]:
        for index, check in enumerate(self._matrix.checks):
            yield from self._where(check.where, "checks", index, "where")
            if check.kind == "floor":
                yield from self._each("workload", check.workloads, "checks", index, "workloads")
                yield from self._threshold(check, index)
            elif check.kind == "outputs":
                yield from self._each("contrast", check.contrasts, "checks", index, "contrasts")
                yield from self._prompts(check, "checks", index)
                if check.reference_arm:
                    yield from self._where(check.reference_arm, "checks", index, "reference_arm")
                if check.factor:
                    yield from self._factor(check, "checks", index)

    def _prompts(self, check: OutputsEntry, *path: str | int) -> Iterator[Problem]:
        try:
            output_profile(check)
        except BadInput as bad:
            said = f"{bad.where}: {bad.message}" if bad.where else bad.message
            yield Problem(bad.slug, self._at(*path, "prompts"), said, bad.hint)

    def _pitfall(self, named: str, *path: str | int) -> Iterator[Problem]:
        """A pitfall that there is, and that a run can ask for."""
        try:
            pitfall = pitfall_named(named)
        except BadInput as bad:
            yield Problem(
                bad.slug, self._at(*path), f"{bad.where}: {bad.message}" if bad.where else bad.message, bad.hint
            )
            return
        if pitfall.contrast is None or pitfall.unasked:
            message = f"no contrast can ask for '{pitfall.id}': {pitfall.unasked}"
            yield Problem("E-pitfall-not-asked", self._at(*path), message)

    def _factors(self, entry: ContrastEntry, *path: str | int) -> Iterator[Problem]:
        """The one factor, or the two of an attribution: each sound, and two that verdicts can tell apart."""
        if entry.kind != "attribution":
            yield from self._factor(entry, *path)
            return
        for index, factor in enumerate(entry.factors):
            yield from self._factor(factor, *path, "factors", index)
        if len({factor.word for factor in entry.factors}) < len(entry.factors):
            message = f"both factors are called '{entry.factors[0].word}'"
            yield Problem("E-duplicate-name", self._at(*path, "factors"), message, "give each a 'name' of its own")

    def _factor(self, entry: ContrastEntry | FactorEntry | OutputsEntry, *path: str | int) -> Iterator[Problem]:
        factor = entry.factor
        choices = self._known["flag"] | set(NAMED_FACTORS) | self._matrix.axes.keys()
        if factor not in choices and "axis" in self._faulty:
            return
        if factor not in choices:
            yield self._unknown("flag", factor, choices, *path, "factor")
            return
        if entry.baseline == entry.candidate:
            message = f"baseline and candidate are the same: {factor} = {_side_text(entry.baseline)}"
            yield Problem("E-no-contrast", self._at(*path, "candidate"), message, "name two different ones")
        elif same := self._same(factor, str(entry.baseline), str(entry.candidate)):
            message = f"'{entry.baseline}' and '{entry.candidate}' are one {factor}: both are {same}"
            yield Problem("E-no-contrast", self._at(*path, "candidate"), message, "name two different ones")
        for key, side in (("baseline", entry.baseline), ("candidate", entry.candidate)):
            if side is not None:
                yield from self._side(factor, side, *path, key)

    def _same(self, factor: str, baseline: str, candidate: str) -> str:
        """What both sides are, where they are builds or models of two names and one content."""
        builds, models = self._builds_by_name, self._matrix.models
        if factor == "build" and baseline in builds and candidate in builds:
            return same_build(builds[baseline], builds[candidate])
        if factor == "model" and baseline in models and candidate in models:
            return same_model(*(declared_model(name, models[name]) for name in (baseline, candidate)))
        return ""

    def _side(self, factor: str, side: Side, *path: str | int) -> Iterator[Problem]:
        if factor == "environment":
            yield from self._variables(side, *path)
        elif factor == "configuration":
            yield from self._configuration(side, *path)
        elif isinstance(side, Configuration):
            message = f"expected a name or a value, found a table ({_side_text(side)})"
            yield Problem(INVALID, self._at(*path), message, 'several flags at once are factor = "configuration"')
        elif factor in ("build", "model"):
            yield from self._each(factor, [str(side)], *path)
        elif factor in self._matrix.axes:
            yield from self._axis_values(factor, [side], *path)

    def _variables(self, side: Side, *path: str | int) -> Iterator[Problem]:
        if not isinstance(side, Configuration) or side.environment:
            message = f"expected a table of environment variables, found {_side_text(side)}"
            yield Problem(INVALID, self._at(*path), message)
            return
        try:
            variables_of(side.flags)
        except AtKey as wrong:
            yield Problem(INVALID, self._at(*path, *wrong.path), str(wrong))

    def _configuration(self, side: Side, *path: str | int) -> Iterator[Problem]:
        if isinstance(side, Configuration):
            yield from self._flags(side.flags, *path)
        elif isinstance(side, str):
            yield from self._each("configuration", [side], *path)
        else:
            message = f"expected the name of a configuration or a table of flags, found {side!r}"
            yield Problem(INVALID, self._at(*path), message)

    def _where(self, where: Where, *path: str | int) -> Iterator[Problem]:
        yield from self._condition(where, *path)
        yield from self._flags_or_axes(where.flags, *path, "flags")

    def _condition(self, condition: Condition, *path: str | int) -> Iterator[Problem]:
        for key in _CONDITION_KEYS:
            names = getattr(condition, key) or ()
            yield from self._each(key, [name.upper() for name in names] if key == "quant" else names, *path, key)
        for key, what in (("build_number", "number"), ("commit", "commit")):
            if getattr(condition, key) is not None:
                yield from self._unsaid_sources(condition, what, *path, key)

    def _unsaid_sources(self, condition: Condition, what: str, *path: str | int) -> Iterator[Problem]:
        """What is not known of a build can't be a condition: it is said, and not guessed."""
        for build in asked_builds(condition, self._builds_by_name):
            known = self._sources.of(build, self._matrix.builds[build.name], self._matrix.environment)
            if not getattr(known, what) and (build.name, what) not in self._unsaid:
                self._unsaid.add((build.name, what))
                message = f"the {what} of build '{build.name}' is not known, so nobody can tell whether this holds"
                hint = f"say it: [builds.{build.name}.source] {what} = ...; or name other builds in 'build'"
                yield Problem(f"E-unknown-build-{what}", self._at(*path), message, hint)

    def _axes(self) -> Iterator[Problem]:
        """Axes that have a name of their own, and whose flags nothing else sets."""
        taken = self._known["flag"] | set(NAMED_FACTORS)
        setters = {name: ("", self._at("flags", name)) for name in self._matrix.flags}
        for index, entry in enumerate(self._matrix.when):
            setters.update({name: ("", self._at("when", index, "flags", name)) for name in entry.flags})
        for index, include in enumerate(self._matrix.include):
            setters.update({name: ("", self._at("include", index, "flags", name)) for name in include.flags})
        for axis, listed in self._matrix.axes.items():
            if axis in taken:
                message = f"'{axis}' is a flag's name already" if axis not in NAMED_FACTORS else f"'{axis}' is taken"
                yield Problem("E-duplicate-name", self._at("axes", axis), message, "call the axis something else")
            for index, bundle in enumerate(listed):
                yield from self._flags(bundle.flags, "axes", axis, index, "flags")
                for name in bundle.flags:
                    here = self._at("axes", axis, index, "flags", name)
                    owner, place = setters.setdefault(name, (axis, here))
                    if owner != axis:
                        message = f"'{name}' is set both here and at {place}"
                        hint = "let one of them set it"
                        yield Problem("E-contradictory-flags", here, message, hint)

    def _places_itself(self, entry: WhenEntry, *path: str | int) -> Iterator[Problem]:
        """Flags that decide where an arm computes can't be added by where it computes."""
        deciding = [name for name in entry.flags if name in DECIDING] if entry.placement else []
        if deciding:
            message = f"'{deciding[0]}' decides the placement, so it can't depend on it"
            yield Problem("E-contradictory-flags", self._at(*path, "flags", deciding[0]), message)

    def _flags_or_axes(
        self, flags: Mapping[str, FlagValue | tuple[FlagValue, ...]], *path: str | int
    ) -> Iterator[Problem]:
        """Flags, or named axes with the names of their values."""
        axes = self._matrix.axes
        yield from self._flags([name for name in flags if name not in axes], *path)
        for name in axes.keys() & flags.keys():
            found = flags[name]
            yield from self._axis_values(name, found if isinstance(found, tuple) else (found,), *path, name)

    def _axis_values(self, axis: str, values: Iterable[FlagValue], *path: str | int) -> Iterator[Problem]:
        known = {bundle.name for bundle in self._matrix.axes[axis]}
        for value in values:
            if value not in known:
                message = f"axis '{axis}' has no value {value!r}"
                yield Problem("E-bad-flag-value", self._at(*path), message, did_you_mean(str(value), known))

    def _flags(self, names: Iterable[str], *path: str | int) -> Iterator[Problem]:
        for name in names:
            if name not in self._known["flag"] and "axis" not in self._faulty:
                message = f"unknown flag '{name}'"
                hint = "it is one of [axes]: no flag of its own" if name in self._matrix.axes else _flag_hint(name)
                yield Problem("E-unknown-flag", self._at(*path, name), message, hint)

    def _each(self, what: str, names: Iterable[str], *path: str | int) -> Iterator[Problem]:
        for name in names if what not in self._faulty else ():
            if name not in self._known[what]:
                yield self._unknown(what, name, self._known[what], *path)

    def _unknown(self, what: str, name: str, choices: Iterable[str], *path: str | int) -> Problem:
        words = what.replace("_", " ")
        hint = did_you_mean(name, choices) or f"this matrix declares no {words}"
        if what == "build" and name.startswith(SIGN):
            hint = f'declare the baseline as a build of this matrix: [builds.before] catalogue = "{name}"'
        return Problem(f"E-unknown-{what.replace('_', '-')}", self._at(*path), f"unknown {words} '{name}'", hint)

    def _taken_twice(self) -> Iterator[Problem]:
        """Names that the ids of cases could not tell apart."""
        matrix = self._matrix
        lists: dict[str, list[tuple[str | int, str]]] = {
            "builds": [(name, name) for name in matrix.builds],
            "axes": [(name, name) for name in matrix.axes],
            "models": [(name, name) for name in matrix.models],
            "node_classes": [(name, name) for name in matrix.node_classes],
            "contrasts": [(index, entry.name) for index, entry in enumerate(matrix.contrasts)],
            "workloads": [
                (index, each.name) for index, entry in enumerate(matrix.workloads) for each in names_of(entry)
            ],
            "checks": [(index, check.name) for index, check in enumerate(matrix.checks) if check.kind == "outputs"],
        }
        for section, entries in lists.items():
            counts = Counter(id_part(name) for _, name in entries)
            seen: set[str] = set()
            for key, name in entries:
                if counts[id_part(name)] > 1 and id_part(name) in seen:
                    message = f"'{name}' is declared twice (in ids, upper and lower case, '_' and '-' are the same)"
                    yield Problem("E-duplicate-name", self._at(section, key), message)
                seen.add(id_part(name))

    def _at(self, *path: str | int) -> str:
        return self._matrix.source.at(*path)
