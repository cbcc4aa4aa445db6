"""``moe-harness``: one small module per command; errors and exit codes are handled here, once."""

from __future__ import annotations

import errno
import json
import sys
from itertools import pairwise
from typing import Any

import click

from harness import __version__
from harness.cli.commands import Commands
from harness.domain.errors import EXIT_INTERRUPTED, BadInput, HarnessError, Infrastructure
from harness.reporting.clean import clean
from harness.settings import check_settings

COMMANDS = {
    "plan": "List the cases of MATRIX, what each needs, what it can decide, and why some can't run on this machine.",
    "ab": "Measure NEW against OLD on this machine.",
    "lint": "Warn about a command line of llama-bench, -server, -cli, -perplexity, -sweep-bench or -batched-bench.",
    "compare": "Judge the speeds of B against those of A.",
    "import": "Read FILE, what llama-bench, llama-sweep-bench or llama-batched-bench printed, or a journal.",
    "calibrate": "Measure arms against themselves on this machine, and slowdowns that are planted and must be found.",
    "run": "Run MATRIX (a file or a packaged name; matrices/local.toml without it).",
    "reference": 'Keep outputs on record, for checks with a reference: kind = "outputs", reference = true.',
    "report": "Make junit.xml, summary.txt and report.html again from JOURNAL.",
    "journal": "Work on journals.",
    "explain": "Explain CASE of JOURNAL (a journal.jsonl or its folder [moe-reports]).",
    "replay": "Run CASE of JOURNAL (a journal.jsonl or its folder [moe-reports]) again here, or all cases of a bundle.",
    "bundle": "Pack the cases CASE of JOURNAL (a journal.jsonl or its folder [moe-reports]) into one archive.",
    "gate": "Decide from journals whether a change may go in.",
    "alerts": "What the gate found, and what it turned out to be: stages that a policy calls auto go by it.",
    "history": "Keep what nights measured in a database, and tell what changed in them.",
    "models": "Make models of shape cards, look into GGUF files, and see to the cache of models.",
    "fleet": "Start or join a Ray cluster with what benchmarks need, and look after it.",
    "builds": "Keep builds under names, make them of recipes, and say what they are.",
    "baseline": "Remember which build is the baseline of which branch: @BRANCH means it, wherever a build is named.",
    "junit": "Work on JUnit files.",
    "github": "Job summaries, annotations and issues.",
}
"""The beginning of what each says of itself: to list them, none has to be imported."""


class _Listed(click.Group):
    """A group that lists its commands without importing them."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(
    cls=_Listed,
    commands=Commands(COMMANDS),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.version_option(__version__, prog_name="moe-harness")
def cli() -> None:
    """Measure, compare and gate llama.cpp-family builds on MoE models.

    Exit codes: 0 fine, 1 the finding (regressed, broken, missed), 2 usage or bad input, 3 undecided or infrastructure,
    130 Ctrl-C.
    """
    check_settings()


def entry(arguments: list[str] | None = None) -> None:
    """Run the command line and exit. A known error becomes one message and its exit code, never a traceback."""
    try:
        code: Any = cli.main(args=arguments, prog_name="moe-harness", standalone_mode=False)
    except HarnessError as error:
        _tell(error, sys.argv[1:] if arguments is None else arguments)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except OSError as error:
        told = (BadInput if error.errno == errno.ENAMETOOLONG else Infrastructure)("E-os", f"{error}")
        _tell(told, sys.argv[1:] if arguments is None else arguments)
        sys.exit(told.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("moe-harness: interrupted", err=True)
        sys.exit(EXIT_INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _tell(error: HarnessError, arguments: list[str]) -> None:
    """One message; as data too where data was asked for, since whoever reads that does not read the other stream."""
    click.echo(f"moe-harness: {clean(str(error))}", err=True)
    if "--format=json" in arguments or ("--format", "json") in pairwise(arguments):
        click.echo(json.dumps({"error": error.as_json()}, indent=2))
