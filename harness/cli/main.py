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

_COMMANDS = (
    "plan",
    "ab",
    "lint",
    "compare",
    "import",
    "calibrate",
    "run",
    "reference",
    "report",
    "journal",
    "explain",
    "replay",
    "bundle",
    "gate",
    "alerts",
    "history",
    "models",
    "fleet",
    "builds",
    "baseline",
    "junit",
    "github",
)


@click.group(
    commands=Commands(_COMMANDS),
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
