"""``junit``: work on JUnit files."""

from __future__ import annotations

from pathlib import Path

import click

from harness.reporting.junit import write_junit
from harness.reporting.junit_merge import merge_junit


@click.group()
def junit() -> None:
    """Work on JUnit files."""


@junit.command()
@click.argument("out", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("inputs", metavar="IN...", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
def merge(out: Path, inputs: tuple[Path, ...]) -> None:
    """Merge the files IN into OUT.

    A case that several files have is written once, in its worst outcome. Properties are kept.
    """
    document = merge_junit(inputs)
    write_junit(document, out)
    click.echo(f"{document.tests} cases, {document.failures} failures, {document.errors} errors: {out}")
