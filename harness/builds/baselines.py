"""Which build is the baseline of which branch, with history: the old one stays at hand."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from harness.builds.catalogue import catalogued
from harness.builds.state_file import StateFile, config_folder
from harness.domain.errors import BadInput
from harness.domain.suggest import did_you_mean

SIGN = "@"
"""What a word begins with that means the baseline of a branch."""
Branch = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/+-]*$", max_length=200)]


class Change(BaseModel):
    """One change of a baseline.

    Attributes:
        build: Its name in the catalogue.
        when: When it became the baseline.
        who: The user.
        why: What they said.
        rollback: Whether it went back to an earlier one.
    """

    model_config = ConfigDict(frozen=True)

    build: str
    when: AwareDatetime
    who: str
    why: str = ""
    rollback: bool = False


class BaselinesFile(BaseModel):
    """The whole file: each branch's changes, oldest first."""

    model_config = ConfigDict(frozen=True)

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
        BadInput: ``E-unknown-build``, ``E-bad-name``, ``E-no-change`` where it is the baseline already.
        Infrastructure: ``E-baselines-busy``; faults of the disk.
    """
    catalogued(build)
    change = Change(build=build, when=datetime.now(UTC), who=_user(), why=why)

    def with_change(known: BaselinesFile) -> BaselinesFile:
        earlier = known.branches.get(branch, ())
        if earlier and earlier[-1].build == build:
            raise BadInput("E-no-change", f"'{build}' is the baseline of {branch} already")
        return _with(known, branch, (*earlier, change))

    baselines_file().change(with_change)
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
            message = f"'{standing[-1]}' is the oldest baseline of {branch} that was not taken back"
            raise BadInput("E-no-earlier-baseline", message, hint=f"moe-harness baseline set {branch} BUILD")
        change = Change(build=standing[-2], when=datetime.now(UTC), who=_user(), why=why, rollback=True)
        return _with(known, branch, (*changes, change))

    return baselines_file().change(with_change).branches[branch][-1]


def build_of_word(word: str) -> str:
    """The catalogue's name of a build: ``@main`` is the baseline of the branch main, other words are names.

    Raises:
        BadInput: ``E-no-baseline``.
    """
    return history(word.removeprefix(SIGN))[-1].build if word.startswith(SIGN) else word


def _standing(changes: tuple[Change, ...]) -> list[str]:
    """The baselines that were not taken back: each rollback takes the last one away."""
    standing: list[str] = []
    for change in changes:
        if change.rollback:
            del standing[max(1, len(standing) - 1) :]
        else:
            standing.append(change.build)
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
