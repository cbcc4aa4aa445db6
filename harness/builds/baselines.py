"""Which build is the baseline of which branch, with history: the old one stays at hand.

A baseline is what its name meant when it was set: the catalogue's entry is kept with it, and digests of its files. What
the name means later changes nothing, and files that changed are refused.
"""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from harness.builds.catalogue import CatalogueEntry, catalogued
from harness.builds.contents import changed_since, contents_of
from harness.builds.entry import BuildEntry
from harness.builds.fetching import keep
from harness.builds.state_file import StateFile, config_folder
from harness.domain.errors import BadInput
from harness.domain.suggest import did_you_mean

SIGN = "@"
"""What a word begins with that means the baseline of a branch."""
Branch = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/+-]*$", max_length=200)]


class Change(BaseModel):
    """One change of a baseline.

    Attributes:
        build: Its name in the catalogue when it was set.
        entry: What that name meant then.
        contents: What its files on this machine were then, as of `contents_of`.
        when: When it became the baseline.
        who: The user.
        why: What they said.
        rollback: Whether it went back to an earlier one.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    build: str
    entry: CatalogueEntry
    contents: dict[str, str] = {}
    when: AwareDatetime
    who: str
    why: str = ""
    rollback: bool = False


class BaselinesFile(BaseModel):
    """The whole file: each branch's changes, oldest first."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    branches: dict[Branch, Annotated[tuple[Change, ...], Field(min_length=1)]] = {}


def baselines_file() -> StateFile[BaselinesFile]:
    """Where they are kept."""
    return StateFile(config_folder() / "baselines.json", BaselinesFile, "baselines")


def baselines() -> Mapping[str, tuple[Change, ...]]:
    """The changes of every branch, oldest first.

    Raises:
        BadInput: ``E-baselines-unreadable``.
    """
    return baselines_file().read().branches


def history(branch: str) -> tuple[Change, ...]:
    """The changes of a branch, oldest first; the last one holds.

    Raises:
        BadInput: ``E-no-baseline`` with the nearest branch; ``E-baselines-unreadable``.
    """
    known = baselines()
    if branch not in known:
        raise _no_baseline(branch, known)
    return known[branch]


def set_baseline(branch: str, build: str, why: str = "") -> Change:
    """Make a build the baseline of a branch.

    Args:
        branch: The branch.
        build: A name of the catalogue.
        why: What to remember about it.

    Raises:
        BadInput: ``E-unknown-build``, ``E-bad-name``, ``E-no-change`` where it is the baseline already;
            ``E-baseline-recipe`` where the name is that of a recipe, which comes to another build as its source moves.
        Infrastructure: ``E-baselines-busy``; faults of the disk.
    """
    entry = catalogued(build)
    if entry.build.recipe:
        message = f"'{build}' is a recipe: it comes to another build whenever its source moves"
        hint = f"moe-harness builds make {entry.build.recipe} --name NAME, and make that the baseline"
        raise BadInput("E-baseline-recipe", message, hint=hint)
    contents = contents_of(entry.build)
    change = Change(build=build, entry=entry, contents=contents, when=datetime.now(UTC), who=_user(), why=why)

    def with_change(known: BaselinesFile) -> BaselinesFile:
        earlier = known.branches.get(branch, ())
        if earlier and (earlier[-1].entry.build, earlier[-1].contents) == (entry.build, contents):
            raise BadInput("E-no-change", f"'{build}' is the baseline of {branch} already")
        return _with(known, branch, (*earlier, change))

    baselines_file().change(with_change)
    for variant in entry.build.variants:
        if variant.sha256:
            keep(variant.variant)
    return change


def roll_back(branch: str, why: str = "") -> Change:
    """Make the baseline that a branch had before its baseline again; what was is kept.

    Args:
        branch: The branch.
        why: What to remember about it.

    Raises:
        BadInput: ``E-no-baseline``; ``E-no-earlier-baseline``.
        Infrastructure: ``E-baselines-busy``; faults of the disk.
    """

    def with_change(known: BaselinesFile) -> BaselinesFile:
        if branch not in known.branches:
            raise _no_baseline(branch, known.branches)
        changes = known.branches[branch]
        standing = _standing(changes)
        if len(standing) == 1:
            message = f"'{standing[-1].build}' is the oldest baseline of {branch} that was not taken back"
            raise BadInput("E-no-earlier-baseline", message, hint=f"moe-harness baseline set {branch} BUILD")
        now = {"when": datetime.now(UTC), "who": _user(), "why": why, "rollback": True}
        change = standing[-2].model_copy(update=now)
        return _with(known, branch, (*changes, change))

    return baselines_file().change(with_change).branches[branch][-1]


def entry_of_word(word: str) -> tuple[str, CatalogueEntry]:
    """The name and entry of a build: ``@main`` is the baseline of the branch main, other words are catalogue names.

    Raises:
        BadInput: ``E-no-baseline``, ``E-unknown-build``; ``E-baseline-changed`` where a baseline's files on this
            machine are not what they were when it was set.
    """
    if not word.startswith(SIGN):
        return word, catalogued(word)
    branch = word.removeprefix(SIGN)
    change = history(branch)[-1]
    changed = changed_since(change.contents, change.entry.build)
    if changed:
        message = f"the baseline '{change.build}' of {branch} is not what was set: {', '.join(changed)} changed since"
        hint = f"put the old files back, or take what is there now: moe-harness baseline set {branch} {change.build}"
        raise BadInput("E-baseline-changed", message, hint=hint, where=word)
    return change.build, change.entry


def drift(change: Change) -> str:
    """Why the name of a baseline does not mean that baseline now, in words; empty where it does."""
    if changed_since(change.contents, change.entry.build):
        return "its files changed since"
    try:
        now = catalogued(change.build).build
    except BadInput:
        return f"the catalogue has no '{change.build}' any more"
    if now == change.entry.build:
        return ""
    return f"the name '{change.build}' means another build now, {now.path or now.wheel or now.recipe or 'by variants'}"


def keeping(name: str, build: BuildEntry) -> tuple[str, ...]:
    """Branches whose baseline had this name when it was set, and is another build than that name means from now on.

    Args:
        name: The name in the catalogue.
        build: What it means from now on.
    """
    last = {branch: changes[-1] for branch, changes in baselines().items()}
    return tuple(branch for branch, change in last.items() if change.build == name and change.entry.build != build)


def _standing(changes: tuple[Change, ...]) -> list[Change]:
    """The baselines that were not taken back: each rollback takes the last one away."""
    standing: list[Change] = []
    for change in changes:
        if change.rollback:
            del standing[max(1, len(standing) - 1) :]
        else:
            standing.append(change)
    return standing


def _with(known: BaselinesFile, branch: str, changes: tuple[Change, ...]) -> BaselinesFile:
    try:
        return BaselinesFile(branches={**known.branches, branch: changes})
    except ValueError:
        hint = "letters, digits, '.', '_', '/', '+' and '-', beginning with a letter or digit"
        raise BadInput("E-bad-name", f"'{branch}' can't be a branch's name", hint=hint) from None


def _no_baseline(branch: str, known: Mapping[str, object]) -> BadInput:
    hint = did_you_mean(branch, known) or f"moe-harness baseline set {branch} BUILD"
    return BadInput("E-no-baseline", f"the branch '{branch}' has no baseline", hint=hint)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"
