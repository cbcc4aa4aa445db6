"""``moe-harness gate``: from journals to one decision."""

from __future__ import annotations

import json
import sys
from datetime import UTC, date, datetime
from pathlib import Path

import click

from harness.cli.gate_inputs import labels_of, policy_of
from harness.gating.as_json import as_json
from harness.gating.cells import read_journals
from harness.gating.changed import MAX_BYTES, Asked, asked_by, read_changed, read_changed_file
from harness.gating.deciding import decide
from harness.gating.page import page
from harness.gating.policy import Policy
from harness.gating.screen import screen

_STDIN = "-"


def today() -> date:
    """The day by which waivers expire, UTC."""
    return datetime.now(UTC).date()


@click.command()
@click.argument("journals", metavar="JOURNAL...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--policy", "file", type=click.Path(path_type=Path), help="The policy; without it every cell blocks.")
@click.option("--changed", metavar="FILE", help="Changed paths, as git diff --name-only lists them; - reads them here.")
@click.option("--format", "form", type=click.Choice(["table", "json", "markdown"]), default="table", show_default=True)
@click.pass_context
def gate(context: click.Context, journals: tuple[Path, ...], file: Path | None, changed: str | None, form: str) -> None:
    """Decide from journals whether a change may go in: several are shards of one night, or runs of a merge gate.

    Each JOURNAL is a journal.jsonl or its folder. With --changed and no journal: whether anything has to be run.

    Exit codes: 0 go or not needed, 1 blocked, 2 bad input, 3 undecided.
    """
    policy = policy_of(file)
    asked = _asked(policy, changed)
    if not journals and asked is None:
        raise click.UsageError("give a JOURNAL, or --changed to ask whether anything has to be run")
    decision = decide(
        policy,
        read_journals(journals),
        today=today(),
        labels=labels_of(policy, file),
        asked=asked,
        file=f"{file or ''}",
    )
    if form == "json":
        click.echo(json.dumps(as_json(decision), indent=2))
    else:
        click.echo(page(decision) if form == "markdown" else screen(decision), nl=False)
    context.exit(decision.exit_code)


def _asked(policy: Policy, changed: str | None) -> Asked | None:
    if changed is None:
        return None
    if changed == _STDIN:
        return asked_by(policy, read_changed(sys.stdin.buffer.read(MAX_BYTES + 1), "standard input"))
    return asked_by(policy, read_changed_file(Path(changed)))
