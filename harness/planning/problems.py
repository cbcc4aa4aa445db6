"""Problems of a matrix, collected so that a file's faults are reported together and not one a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.domain.errors import BadInput

INVALID = "E-matrix-invalid"


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault.

    Attributes:
        slug: Its stable word.
        where: File and key path, e.g. ``matrices/local.toml: contrasts[1].factr``.
        message: What was expected and what was found.
        hint: What to do about it.
    """

    slug: str
    where: str
    message: str
    hint: str = ""


def report(file: str, problems: Sequence[Problem]) -> BadInput:
    """One error that names every problem.

    Args:
        file: The matrix file.
        problems: At least one. When all have the same slug the error has it too, otherwise ``E-matrix-invalid``.
    """
    if len(problems) == 1:
        only = problems[0]
        return BadInput(only.slug, only.message, hint=only.hint, where=only.where)
    slugs = {problem.slug for problem in problems}
    lines = [f"{len(problems)} problems"]
    for problem in problems:
        slug = "" if len(slugs) == 1 else f"{problem.slug}: "
        lines.append(f"  {slug}{problem.where}: {problem.message}" + (f" ({problem.hint})" if problem.hint else ""))
    return BadInput(slugs.pop() if len(slugs) == 1 else INVALID, "\n".join(lines), where=file)
