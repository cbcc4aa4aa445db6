"""What is known of a build that a recipe made: written beside it, last, so that what has it is whole."""

from __future__ import annotations

from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict

from harness.models.storage import read_json

FILE = "made.json"
_LEVELS_UP = 4
_SHOWN_DIGITS = 12


class AppliedPatch(BaseModel):
    """A patch that was applied."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    name: str
    sha256: str


class Provenance(BaseModel):
    """How a build came to be.

    Attributes:
        recipe: The recipe's name.
        fork: The fork.
        repository: Where the source came from.
        wanted: Revision, or the two of a merge base, as the recipe says them.
        commit: The commit that was built; empty for a plain folder.
        changed: Whether the source was something else than the commit: patches, or a folder with changes.
        tree: Hash of all files of the source.
        patches: What was applied.
        offsets: What git said of patches whose lines had moved.
        commands: What was run.
        platform: What it was made on.
        reported: Commit that was compiled in, or its beginning; empty where none was found.
        number: Build number that was compiled in; empty where none was found.
        compiler: Compiler that was compiled in; likewise.
        made: When.
        seconds: How long the commands took.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    recipe: str
    fork: str
    repository: str
    wanted: tuple[str, ...]
    commit: str
    changed: bool
    tree: str
    patches: tuple[AppliedPatch, ...]
    offsets: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    platform: str
    reported: str = ""
    number: str
    compiler: str
    made: AwareDatetime
    seconds: float


def commit_differs(said: str, found: str) -> bool:
    """Whether two commits, each perhaps only its beginning, can't be the same one."""
    length = min(len(said), len(found))
    return length > 0 and said[:length] != found[:length]


def short_commit(told: str) -> str:
    """A commit for tables: its beginning, and what is told beside it (``with changes``)."""
    commit, _, beside = told.partition(" ")
    return " ".join(filter(None, [commit[:_SHOWN_DIGITS], beside]))


def provenance_of(path: Path) -> Provenance | None:
    """What is known of a build by where its program lies; ``None`` where no recipe made it.

    Args:
        path: The program or one of its folders.
    """
    for folder in (path, *path.parents[:_LEVELS_UP]):
        content = read_json(folder / FILE)
        if content is not None:
            try:
                return Provenance.model_validate(content)
            except ValueError:
                return None
    return None
