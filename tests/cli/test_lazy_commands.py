"""The command line loads what the command needs that is asked for, and no more."""

from __future__ import annotations

import subprocess
import sys

from harness.cli.commands import Commands
from harness.cli.main import COMMANDS, cli

_ASKED = """
import sys
from harness.cli.main import entry
try:
    entry(["baseline", "--help"])
except SystemExit:
    pass
print(*sorted({name.split(".")[0] for name in sys.modules} & {"ray", "ruptures", "scipy", "sqlalchemy"}), "loaded")
"""


def test_a_command_does_not_pay_for_others() -> None:
    done = subprocess.run([sys.executable, "-c", _ASKED], capture_output=True, text=True, check=True)
    assert "Usage: moe-harness baseline" in done.stdout
    assert done.stdout.splitlines()[-1] == "loaded"


def test_every_name_has_its_command() -> None:
    """Also ``import``, whose module can't be called so; and a name that is none stays unknown."""
    assert {name: command.name for name, command in cli.commands.items()} == {name: name for name in cli.commands}
    assert "import" in cli.commands
    assert "nobody" not in cli.commands


def test_the_list_of_commands_loads_none_of_them() -> None:
    """It took as long as all their libraries together."""
    asked = _ASKED.replace('"baseline", ', "").replace('"ray", ', '"pydantic", "rich", "ray", ')
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert "Commands:" in done.stdout
    assert done.stdout.splitlines()[-1] == "loaded"


def test_the_list_of_commands_says_what_they_say() -> None:
    for name, text in COMMANDS.items():
        assert cli.commands[name].get_short_help_str(200).startswith(text.removesuffix(".")), name


def test_names_are_known_before_anything_is_loaded() -> None:
    commands = Commands(["nobody"])
    assert ("nobody" in commands, list(commands), len(commands)) == (True, ["nobody"], 1)
