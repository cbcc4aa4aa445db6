"""The two arms of ``ab`` from the words that name them, and in what they differ.

A word is a build, then flags of this arm alone: ``ik``, ``ik+rtr=1``, ``~/llama.cpp/build+fa=0+ub=256``. A build is a
short name, a wheel's name, the path of a ``llama-bench``, a name of the catalogue, or ``@main``: a branch's baseline.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from harness.builds.baselines import SIGN
from harness.builds.catalogue import catalogue_file
from harness.builds.declared import catalogued_build
from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.errors import BadInput
from harness.domain.flags import Flags, FlagValue
from harness.domain.model import Model
from harness.domain.suggest import did_you_mean
from harness.engines.bench import BenchEngine
from harness.engines.embedded_engine import wheels
from harness.engines.flags import Unsupported, complete, is_switch, specs
from harness.execution.builds import Report, check_build, local_build
from harness.execution.inspecting import informed_engine, told_fork
from harness.models.hashing import file_sha256
from harness.planning.bench_line import flag_named, flag_word
from harness.reporting.clean import one_line

_SHORT = {Fork.LLAMA_CPP: "mainline", Fork.IK_LLAMA_CPP: "ik"}
_OWN_FLAGS = re.compile(r"\+(?=[A-Za-z_][\w-]*=)")
_SEPARATORS = re.compile(r"[-_.]+")
_NO_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_SAYS_NOTHING = ("llama-bench", "bin", "build")
"""Ends of a path that all builds share: a build is called after what stands before them."""
_TOLD_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class ArmWord:
    """One argument of the command.

    Attributes:
        place: ``OLD`` or ``NEW``, for errors.
        text: As written.
        build: The part that names the build.
        flags: Flags of this arm alone, by canonical name.
    """

    place: str
    text: str
    build: str
    flags: Mapping[str, FlagValue]

    @property
    def where(self) -> str:
        """The place in errors."""
        return f"{self.place} ({self.text})"


@dataclass(frozen=True, slots=True)
class Difference:
    """In what two arms differ.

    Attributes:
        factors: What the words make different: ``build``, flags.
        consequences: What changes along with that, e.g. ``mmap 1 -> 0``.
    """

    factors: tuple[str, ...]
    consequences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AbArms:
    """Baseline and candidate.

    Attributes:
        arms: The arms.
        names: What they are called in tables: the build, and the flags that its word has.
        options: Option spellings of builds whose ``--help`` was read, by build.
        difference: In what they differ.
    """

    arms: tuple[Arm, Arm]
    names: tuple[str, str]
    options: Mapping[str, frozenset[str]]
    difference: Difference


def read_arm(place: str, text: str) -> ArmWord:
    """Part a word into build and flags.

    Raises:
        BadInput: ``E-unknown-flag``, ``E-several-values``, ``E-bad-flag-value``, with the place.
    """
    build, *rest = _OWN_FLAGS.split(text)
    pieces: list[str] = []
    for piece in rest:
        if pieces and pieces[-1].startswith("ot=") and flag_named(piece.split("=")[0]) is None:
            pieces[-1] += f"+{piece}"  # a plus of the pattern
        else:
            pieces.append(piece)
    if not Path(build).expanduser().exists():
        _require_value(place, text, build)
    for piece in pieces:
        if not piece.startswith("ot="):
            _require_value(place, text, piece)
    try:
        flags = dict(map(flag_word, pieces))
    except BadInput as bad:
        raise _at(bad, f"{place} ({text})") from None
    return ArmWord(place, text, build, flags)


def _require_value(place: str, text: str, piece: str) -> None:
    """``ik+rtr`` switches nothing on by itself: both values are told, so that nobody has to guess."""
    bare = next((word for word in piece.split("+")[1:] if flag_named(word) is not None), "")
    if bare:
        values = "0|1" if is_switch(flag_named(bare) or "") else "VALUE"
        message = f"'{bare}' is a flag without a value"
        raise BadInput("E-bad-flag-value", message, hint=f"write {bare}={values}", where=f"{place} ({text})")


def make_arms(
    words: tuple[ArmWord, ArmWord],
    model: Model,
    common: Mapping[str, FlagValue],
    fork: Fork | None,
    report: Report = lambda _: None,
) -> AbArms:
    """Find the builds and complete the flags.

    Args:
        words: Baseline and candidate.
        model: Of both.
        common: Flags of both, by canonical name; an arm's own go before them.
        fork: Of builds whose ``--help`` tells none.
        report: Told what is made or fetched.

    Raises:
        BadInput: ``E-unknown-build``, ``E-build-missing``, ``E-fork-unknown``, ``E-wrong-fork``,
            ``E-unsupported-flag``, ``E-bad-flag-value``, ``E-no-contrast``, and what engines say of builds.
    """
    builds = _find_builds(words, fork, report)
    options: dict[str, frozenset[str]] = {}
    for word, build in zip(words, builds, strict=True):
        try:
            engine = informed_engine(build)
            engine.locate()
        except BadInput as bad:
            raise _at(bad, word.where) from None
        if isinstance(engine, BenchEngine) and engine.options:
            options[build.name] = engine.options
    shown = tuple(sorted({*common, *words[0].flags, *words[1].flags}))
    old, new = (
        Arm(build, model, _completed(word, other, build, common, options.get(build.name)), shown=shown)
        for word, other, build in zip(words, reversed(words), builds, strict=True)
    )
    difference = _difference(words, common, (old, new))
    return AbArms((old, new), _names(words, builds), options, difference)


def make_arm(word: ArmWord, model: Model, common: Mapping[str, FlagValue], fork: Fork | None) -> Arm:
    """One arm alone, as a calibration needs it; arguments and errors as of `make_arms`."""
    build = _find_build(word)
    build = replace(build, fork=_told_fork(word, build, fork) or fork or build.fork)
    try:
        engine = informed_engine(build)
        engine.locate()
    except BadInput as bad:
        raise _at(bad, word.where) from None
    options = engine.options if isinstance(engine, BenchEngine) and engine.options else None
    shown = tuple(sorted({*common, *word.flags}))
    return Arm(build, model, _completed(word, word, build, common, options), shown=shown)


# ---- builds ----------------------------------------------------------------------------------------------------------


def _find_builds(words: tuple[ArmWord, ArmWord], said: Fork | None, report: Report) -> tuple[Build, Build]:
    old, new = (_find_build(word, report) for word in words)
    if old.path and new.path and old.name == new.name:
        old, new = _told_apart(old, new)
    forks = [_told_fork(word, build, said) for word, build in zip(words, (old, new), strict=True)]
    if said is not None and all(forks):
        _refuse_other_fork(words, (old, new), forks, said)
    old, new = (replace(build, fork=fork or said or build.fork) for build, fork in zip((old, new), forks, strict=True))
    if old.name == new.name and old != new:  # a wheel, and a path that ends in its short name
        old, new = (replace(build, name=f"{build.name}-{build.tool}") for build in (old, new))
    return old, new


def _find_build(word: ArmWord, report: Report = lambda _: None) -> Build:
    """The build of a word; the fork of one by path is asked for later."""
    if word.build.startswith(SIGN):
        return _catalogued(word, report)
    known = _known_builds()
    wheel = known.get(_SEPARATORS.sub("-", word.build).lower()) if "/" not in word.build else None
    if wheel:
        if _holds_a_bench(word.build):
            message = f"'{word.build}' names the wheel {wheel.wheel} and a build that lies here"
            hint = f"write ./{word.build} for what lies here; for the wheel run it in another folder"
            raise BadInput("E-ambiguous-build", message, hint=hint, where=word.where)
        return wheel
    catalogue = catalogue_file().read().builds
    if word.build in catalogue and not _holds_a_bench(word.build):
        return _catalogued(word, report)
    if word.build in catalogue:
        message = f"'{word.build}' names a build of the catalogue and one that lies here"
        hint = f"write ./{word.build} for what lies here"
        raise BadInput("E-ambiguous-build", message, hint=hint, where=word.where)
    if "/" not in word.build and not Path(word.build).exists():
        near = did_you_mean(word.build, [*known, *catalogue])
        hint = f"{near}; or give the path of a llama-bench or of its build folder"
        raise BadInput("E-unknown-build", f"no build is called '{word.build}'", hint=hint, where=word.where)
    path = Path(word.build).expanduser().absolute()
    return Build(_telling_parts(path)[-1], Fork.LLAMA_CPP, path=str(path))


def _catalogued(word: ArmWord, report: Report) -> Build:
    """A build of the catalogue, or a branch's baseline, as files of this machine."""
    try:
        build = local_build(catalogued_build(word.build), report=report)
        check_build(build)
    except BadInput as bad:
        raise _at(bad, word.where) from None
    return build


def _holds_a_bench(path: str) -> bool:
    try:
        BenchEngine(Build("here", Fork.LLAMA_CPP, path=path)).locate()
    except BadInput:
        return False
    return True


def _known_builds() -> dict[str, Build]:
    """Builds of wheels by the names they go by: the short one and the wheel's."""
    known = {}
    for wheel, fork in wheels().items():
        build = Build(_SHORT[Fork(fork)], Fork(fork), wheel=wheel)
        known.update({build.name: build, _SEPARATORS.sub("-", wheel).lower(): build})
    return known


def _told_fork(word: ArmWord, build: Build, said: Fork | None) -> Fork | None:
    """The fork that a build tells; ``None`` where it tells none and one was said."""
    if build.wheel:
        return build.fork
    try:
        told, text = told_fork(build)
    except BadInput as bad:
        raise _at(bad, word.where) from None
    if told or said:
        return told
    tail = one_line(text)[-_TOLD_CHARACTERS:]
    raise BadInput(
        "E-fork-unknown",
        f"its --help does not tell of which fork it is; it printed: {tail or 'nothing'}",
        hint=f"say it: --fork {' or --fork '.join(Fork)}",
        where=word.where,
    )


def _refuse_other_fork(
    words: Sequence[ArmWord], builds: Sequence[Build], forks: Sequence[Fork | None], said: Fork
) -> None:
    """``--fork`` is for builds that tell none: where each tells, it must not say otherwise."""
    for word, build, fork in zip(words, builds, forks, strict=True):
        if build.path and fork is not said:
            message = f"it is a llama-bench of {fork}, --fork says {said}"
            hint = "leave --fork out: it is for builds whose --help tells no fork"
            raise BadInput("E-wrong-fork", message, hint=hint, where=word.where)


def _told_apart(old: Build, new: Build) -> tuple[Build, Build]:
    """Two builds by path under names that differ where the paths do, from behind."""
    parts = [_telling_parts(Path(build.path)) for build in (old, new)]
    pairs = zip_longest(*map(reversed, parts), fillvalue="")
    depth = next((depth for depth, (mine, theirs) in enumerate(pairs) if mine != theirs), 0)
    names = ["-".join(dict.fromkeys((each[max(0, len(each) - 1 - depth)], each[-1]))) for each in parts]
    return replace(old, name=names[0]), replace(new, name=names[1])


def _telling_parts(path: Path) -> list[str]:
    parts = [_NO_NAME.sub("-", part).strip("-.") or "-" for part in path.parts[1:]]
    while len(parts) > 1 and parts[-1] in _SAYS_NOTHING:
        parts.pop()
    return parts or ["build"]


def _names(words: Sequence[ArmWord], builds: Sequence[Build]) -> tuple[str, str]:
    old, new = (
        "+".join([build.name, *(f"{name}={value}" for name, value in sorted(word.flags.items()))])
        for word, build in zip(words, builds, strict=True)
    )
    return old, new


# ---- flags -----------------------------------------------------------------------------------------------------------


def _completed(
    word: ArmWord, other: ArmWord, build: Build, common: Mapping[str, FlagValue], options: frozenset[str] | None
) -> Flags:
    try:
        return complete(build, {**common, **word.flags}, options=options)
    except Unsupported as unsupported:
        foreign = [name for name in common if name not in specs(build.fork, build.tool) and name not in word.flags]
        remedies = [f"say it with the build that has it: {other.text}+{name}={common[name]}" for name in foreign[:1]]
        raise BadInput("E-unsupported-flag", unsupported.reason, hint="".join(remedies), where=word.where) from None
    except BadInput as bad:
        raise _at(bad, word.where) from None


def _difference(words: Sequence[ArmWord], common: Mapping[str, FlagValue], arms: tuple[Arm, Arm]) -> Difference:
    """What the words make different, and what follows from it.

    Raises:
        BadInput: ``E-no-contrast`` where nothing is.
    """
    old, new = (arm.flags.as_dict() for arm in arms)
    builds_differ = arms[0].build != arms[1].build
    both = [name for name in old if name in new and old[name] != new[name]]
    said = words[0].flags.keys() | words[1].flags.keys()
    own = [name for word, arm in zip(words, arms, strict=True) for name in _changed_alone(word, common, arm, arms)]
    flags = sorted({name for name in both if name in said} | set(own))
    factors = (*(["build"] if builds_differ else []), *flags)
    if not factors or (builds_differ and not flags and not both and _same_bytes(arms)):
        raise _no_contrast(words, builds_differ=builds_differ)
    consequences = tuple(f"{name} {old[name]} -> {new[name]}" for name in both if name not in flags)
    return Difference(factors, consequences)


def _changed_alone(word: ArmWord, common: Mapping[str, FlagValue], arm: Arm, arms: tuple[Arm, Arm]) -> list[str]:
    """Flags of an arm's own that the other build does not have and that are not as they would be unsaid."""
    other = arms[1] if arm is arms[0] else arms[0]
    alone = [name for name in word.flags if other.flags.get(name) is None]
    unsaid = (
        complete(arm.build, {name: value for name, value in common.items() if name not in alone}) if alone else None
    )
    return [name for name in alone if unsaid and unsaid.get(name) != arm.flags.get(name)]


def _same_bytes(arms: tuple[Arm, Arm]) -> bool:
    """Whether two builds are one program under two names."""
    engines = [informed_engine(arm.build) for arm in arms]
    if any(engine.opaque() for engine in engines):
        return False
    old, new = ({file_sha256(file) for file in engine.locate()} for engine in engines)
    return old == new


def _no_contrast(words: Sequence[ArmWord], *, builds_differ: bool) -> BadInput:
    same = "are the same bytes" if builds_differ else "run the same build"
    return BadInput(
        "E-no-contrast",
        f"{words[0].text} and {words[1].text} {same} with the same flags",
        hint="an arm against itself is what `moe-harness calibrate` measures; otherwise let a build or a flag differ,"
        f" e.g. {words[0].build}+fa=0 {words[1].build}+fa=1",
    )


def _at(bad: BadInput, where: str) -> BadInput:
    return BadInput(bad.slug, bad.message, hint=bad.hint, where=where)
