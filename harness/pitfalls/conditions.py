"""Is a pitfall about this way of running? Yes, no and why, or: it may be, as far as is known."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness.builds.provenance import commit_differs
from harness.domain.build import Fork
from harness.domain.errors import BadInput
from harness.domain.flags import FlagValue
from harness.domain.patterns import compiled_pattern, override_pairs
from harness.pitfalls.entry import Builds, Pitfall, Tests, When
from harness.pitfalls.facts import MIN_OFFLOAD, Facts, ModelFacts
from harness.pitfalls.quant_family import family_of

Held: TypeAlias = Literal["yes", "no", "unknown"]
_SAMPLE_LAYERS = 256
"""Layers whose experts are looked up in overrides: more than any model has."""
_MOST_NEEDED = 1024
"""The threshold of the models with the fewest experts used, such as DeepSeek: 8 of 256."""
_ELSEWHERE = "(not overridden)"


@dataclass(frozen=True, slots=True)
class Applies:
    """Whether a pitfall is about a way of running.

    Attributes:
        outside: Why it is not; empty: nothing speaks against it.
        unknown: What is not known and would decide.
    """

    outside: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def is_inside(self) -> bool:
        """Whether nothing known speaks against it."""
        return not self.outside


def applies(pitfall: Pitfall, facts: Facts) -> Applies:
    """Hold a pitfall's builds and conditions against what is known; whether the trap is set is another question."""
    if facts.fork not in pitfall.forks:
        return Applies((f"it is about {' and '.join(pitfall.forks)}, this is {facts.fork}",), ())
    outside, unknown = [], []
    for held, said in (_builds(pitfall, facts), *_conditions(pitfall.when, facts)):
        if held == "no":
            outside.append(said)
        elif held == "unknown":
            unknown.append(said)
    return Applies(tuple(outside), tuple(unknown))


def is_set(pitfall: Pitfall, facts: Facts) -> bool:
    """Whether a way of running has the trap: one of its tables of flags is met, and one of those flags was said."""
    return any(
        not facts.said.isdisjoint(tests) and all(_passes(facts.flags.get(name, ()), tests, name) for name in tests)
        for tests in pitfall.trap
    )


def is_gone(pitfall: Pitfall, fork: Fork, number: int | None) -> str:
    """Why the advice is out of date for a build: the last who looked, in it or an older one, did not find the trap.

    Args:
        pitfall: The pitfall.
        fork: The build's fork.
        number: Its number; ``None``: taken to be the newest that anybody looked at.

    Returns:
        What was found, and in which build; empty where nobody looked, or it was found.
    """
    looked = [each for each in pitfall.found if each.fork is fork and (number is None or each.number <= number)]
    newest = max(looked, key=lambda each: each.number, default=None)
    return f"{newest.verdict} in build {newest.number}: {newest.said}" if newest and newest.verdict != "present" else ""


def _builds(pitfall: Pitfall, facts: Facts) -> tuple[Held, str]:
    of_fork = [each for each in pitfall.builds if each.fork is facts.fork]
    held = [_in_range(each, facts) for each in of_fork]
    about = "; ".join(each.described for each in of_fork)
    if "yes" in held:
        return "yes", ""
    if "unknown" in held:
        return "unknown", f"it is about {about}; the number of this build is not known"
    which = f"build {facts.number}" if facts.number is not None else f"commit {facts.commit}"
    return "no", f"it is about {about}; this is {which}"


def _in_range(builds: Builds, facts: Facts) -> Held:
    if builds.numbers is None and not builds.commits:
        return "yes"
    if any(facts.commit and not commit_differs(commit, facts.commit) for commit in builds.commits):
        return "yes"
    if facts.number is None:
        return "unknown" if builds.numbers or not facts.commit else "no"
    return "yes" if builds.numbers and facts.number in builds.numbers else "no"


def _conditions(when: When, facts: Facts) -> Iterator[tuple[Held, str]]:
    if when.placement is not None:
        yield _one_of("placement", when.placement, facts.placement)
    if when.gpu_code is not None:
        yield _equal(when.gpu_code, facts.gpu_code, "builds with code for GPUs", "builds without code for GPUs")
    yield from _of_model(when, facts)
    if when.offload is not None:
        yield _offload(when.offload, facts)
    if when.mixed_cache is not None:
        mixed = _any_pair(facts.flags.get("ctk", ()), facts.flags.get("ctv", ()))
        yield _equal(when.mixed_cache, mixed, "caches of two types", "caches of one type")
    if when.splits_experts is not None:
        split = any(splits_experts(str(value)) for value in facts.flags.get("ot", ()))
        yield _equal(when.splits_experts, split, "experts' up and gate on two devices", "up and gate on one device")
    for name, test in when.flags.items():
        values = facts.flags.get(name, ())
        passed = _passes(values, when.flags, name)
        yield "yes" if passed else "no", f"it needs {name} {test}, this is {_listed(values) or 'without'}"


def _of_model(when: When, facts: Facts) -> Iterator[tuple[Held, str]]:
    model = facts.model
    if when.quants is not None and model is None and facts.quant:
        yield _of_types(when.quants, (facts.quant,), "weights")
        when = when.model_copy(update={"quants": None})
    if when.latent_attention is not None and model is None and facts.latent is not None:
        yield _of_attention(when.latent_attention, facts.latent)
        when = when.model_copy(update={"latent_attention": None})
    asked: list[tuple[object, str, Callable[[ModelFacts], tuple[Held, str]]]] = [
        (when.quants, "quantization", lambda found: _of_types(when.quants or (), found.main, "weights")),
        (when.holds, "quantization", lambda found: _of_types(when.holds or (), found.all, "some weights")),
        (
            when.architectures,
            "architecture",
            lambda found: _one_of("architecture", when.architectures or (), found.architecture),
        ),
        (
            when.grouped_queries,
            "attention",
            lambda found: _equal(
                bool(when.grouped_queries), found.grouped_queries, "grouped queries", "a head of keys for each query"
            ),
        ),
        (
            when.latent_attention,
            "attention",
            lambda found: _of_attention(bool(when.latent_attention), found.latent_attention),
        ),
        (
            when.experts,
            "experts",
            lambda found: _equal(bool(when.experts), found.experts > 0, "mixtures of experts", "dense models"),
        ),
    ]
    for condition, what, holds in asked:
        if condition is None:
            continue
        yield holds(model) if model else ("unknown", f"it depends on the model's {what}, which is not known")


def _one_of(what: str, wanted: Iterable[str], found: str | None) -> tuple[Held, str]:
    words = " or ".join(wanted)
    if found is None:
        return "unknown", f"it is about {what} {words}, which is not known here"
    return "yes" if found in wanted else "no", f"it is about {what} {words}, this is {found}"


def _equal(wanted: bool, found: bool | None, if_true: str, if_false: str) -> tuple[Held, str]:
    about = if_true if wanted else if_false
    if found is None:
        return "unknown", f"it is about {about}, which is not known here"
    return "yes" if found is wanted else "no", f"it is about {about}"


def _of_attention(wanted: bool, found: bool) -> tuple[Held, str]:
    return _equal(wanted, found, "latent attention", "attention that is not latent")


def _of_types(wanted: Collection[str], types: Collection[str], whose: str) -> tuple[Held, str]:
    held = any(kind in wanted or family_of(kind) in wanted for kind in types)
    return (
        "yes" if held else "no",
        f"it is about {whose} of {' or '.join(wanted)}, these are {', '.join(sorted(types))}",
    )


def _offload(wanted: Literal["below", "reached"], facts: Facts) -> tuple[Held, str]:
    """Tokens of a physical batch against those from which experts in RAM are computed on the GPU."""
    threshold = MIN_OFFLOAD if facts.fork is Fork.LLAMA_CPP else facts.model.offload_threshold if facts.model else None
    sizes = [value for value in facts.flags.get("ub", ()) if isinstance(value, int)]
    if threshold is None and all(size < _MOST_NEEDED for size in sizes):
        return "unknown", "it depends on how many experts are used, which is not known"
    threshold = threshold or _MOST_NEEDED
    held = any((size < threshold) == (wanted == "below") for size in sizes)
    side = f"below {threshold}" if wanted == "below" else f"from {threshold} on"
    return "yes" if held else "no", f"it is about ub {side}, this is {_listed(sizes)}"


def _any_pair(first: Sequence[FlagValue], second: Sequence[FlagValue]) -> bool:
    return any(one != other for one in first for other in second)


def _passes(values: Sequence[FlagValue], tests: Tests | Mapping[str, Callable[[FlagValue], bool]], name: str) -> bool:
    return any(tests[name](value) for value in values)


def _listed(values: Iterable[FlagValue]) -> str:
    return ", ".join(map(str, values))


def splits_experts(overrides: str) -> bool:
    """Whether overrides put ``up`` and ``gate`` of any layer's experts on different devices.

    Args:
        overrides: An ``ot`` value in its one spelling; the first pattern that is found in a name decides, as in the
            engines. One that is no pattern splits nothing: the engines end.
    """
    try:
        pairs = [(compiled_pattern(pattern), buffer) for pattern, buffer in override_pairs(overrides)]
    except BadInput:
        return False

    def device(name: str) -> str:
        return next((buffer for pattern, buffer in pairs if pattern.search(name)), _ELSEWHERE)

    names = (f"blk.{layer}.ffn_{{}}_exps.weight" for layer in range(_SAMPLE_LAYERS if pairs else 0))
    return any(device(name.format("up")) != device(name.format("gate")) for name in names)
