"""Finding and loading a matrix."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.builds.known import KnownSources
from harness.domain.errors import BadInput
from harness.domain.suggest import did_you_mean
from harness.planning.document import (
    CHECKOUT_FOLDER,
    PITFALLS,
    SUFFIX,
    Document,
    is_file,
    packaged_folders,
    read_document,
    shown,
)
from harness.planning.explain import schema_problems
from harness.planning.problems import report
from harness.planning.references import reference_problems
from harness.planning.schema import Matrix

DEFAULT_NAME = "local"


def load_matrix(path: str | Path, sources: KnownSources | None = None) -> Matrix:
    """Load a matrix and check every name in it. Paths in it are resolved against the file that says them.

    Args:
        path: The file.
        sources: What is known of the builds' commits and numbers; ``None``: what their folders tell.

    Raises:
        BadInput: With every problem of the file: ``E-matrix-invalid`` or, where all are of one kind, its own slug
            such as ``E-unknown-flag``; or what `read_document` raises.
    """
    document = read_document(_existing(Path(path)))
    known = sources or KnownSources()
    try:
        matrix = Matrix.model_validate(document.data)
    except ValidationError as invalid:
        problems = schema_problems(invalid, document.source)
        pruned = _without_faulty_keys(document, invalid)
        if pruned is not None:
            problems += reference_problems(pruned, known, [error["loc"] for error in invalid.errors(include_url=False)])
        raise report(document.source.file, problems) from invalid
    matrix._source = document.source  # noqa: SLF001 - set once, here; the file cannot say it
    unknown = reference_problems(matrix, known)
    if unknown:
        raise report(document.source.file, unknown)
    return matrix


def find_matrix(name_or_path: str | Path | None = None) -> Path:
    """Find a matrix file.

    Args:
        name_or_path: A path; or the bare name of a matrix in ``./matrices`` or in the package; or ``None`` for
            ``local``.

    Raises:
        BadInput: ``E-matrix-missing``, with the nearest name.
    """
    wanted = str(name_or_path) if name_or_path is not None else DEFAULT_NAME
    path = Path(wanted)
    if is_file(path):
        return path
    if _is_bare(wanted):
        for folder in matrix_folders():
            found = folder / f"{wanted}{SUFFIX}"
            if is_file(found):
                return found
    raise _missing(path)


def matrix_folders() -> tuple[Path, ...]:
    """Where bare names are looked for: the current checkout's ``matrices``, then the packaged copies."""
    return (Path(CHECKOUT_FOLDER), *packaged_folders())


def _is_bare(wanted: str) -> bool:
    return "/" not in wanted.removeprefix(PITFALLS) and not wanted.endswith(SUFFIX)


def _existing(path: Path) -> Path:
    if is_file(path):
        return path
    raise _missing(path)


def _missing(path: Path) -> BadInput:
    beside = _names_in([path.parent])
    known = beside if beside and not _is_bare(str(path)) else _names_in(matrix_folders())
    hint = did_you_mean(path.name.removesuffix(SUFFIX), known)
    return BadInput("E-matrix-missing", "there is no such matrix", hint=hint, where=shown(path))


def _names_in(folders: Sequence[Path]) -> set[str]:
    try:
        return {file.stem for folder in folders if folder.is_dir() for file in folder.glob(f"*{SUFFIX}")}
    except (OSError, ValueError):  # a name that no folder can have
        return set()


def _without_faulty_keys(document: Document, invalid: ValidationError) -> Matrix | None:
    """The matrix without the keys that the schema refuses, so that the rest can be checked in the same run.

    Returns:
        ``None`` where nothing valid remains.
    """
    data = copy.deepcopy(document.data)
    for error in invalid.errors(include_url=False, include_context=False, include_input=False):
        _delete(data, error["loc"])
    try:
        matrix = Matrix.model_validate(data)
    except ValidationError:
        return None
    matrix._source = document.source  # noqa: SLF001 - as above
    return matrix


def _delete(data: Any, location: tuple[str | int, ...]) -> None:
    """Delete the key at a place; a list keeps its entries, so that their numbers stay right."""
    *parents, last = location
    for part in parents:
        held = isinstance(data, dict) and part in data
        if held or (isinstance(data, list) and isinstance(part, int)):
            data = data[part]
    if isinstance(data, dict):
        data.pop(last, None)
