"""``python -m harness.cli``."""

from harness.cli.main import entry

entry()
