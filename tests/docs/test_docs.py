"""The documentation is complete, builds, and its commands do what it says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click
import pytest
from error_page import page as error_page
from error_page import told_of_slugs
from flag_page import page
from forked import run_forked
from pitfall_page import page as pitfall_page

from harness.cli.main import cli
from harness.engines.embedded.layouts import VERIFIED
from harness.judging.output_floors import CALIBRATED_SURPLUS, P99_OF_MAXIMUM

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
COMMANDS = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")


def _commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


@pytest.mark.parametrize(("name", "command"), list(_commands(cli, "moe-harness")))
def test_every_command_and_option_is_in_the_reference(name: str, command: click.Command) -> None:
    """Each command has a section, and in it each option."""
    assert f"### `{name}" in COMMANDS
    section = COMMANDS.split(f"### `{name}", 1)[1].split("\n### ")[0]
    options = [
        option for parameter in command.params if isinstance(parameter, click.Option) for option in parameter.opts
    ]
    assert [option for option in options if f"`{option}" not in section] == []


def test_every_pytest_option_is_in_the_reference() -> None:
    """The plugin's options are those of the table."""
    source = (ROOT / "harness" / "pytest_plugin.py").read_text(encoding="utf-8")
    options = re.findall(r'addoption\(\s*"(--[a-z-]+)"', source)
    assert len(options) == 11
    assert [option for option in options if f"`{option}" not in COMMANDS] == []


def test_the_flag_reference_is_the_engines_tables() -> None:
    """The page is generated; ``python tests/docs/flag_page.py > docs/reference/flags.md`` makes it again."""
    assert (DOCS / "reference" / "flags.md").read_text(encoding="utf-8") == page()


def test_the_pitfall_reference_is_of_the_entries() -> None:
    """Generated, too: every pitfall that comes with the package has its section."""
    said = "run: python tests/docs/pitfall_page.py > docs/reference/pitfalls.md"
    assert (DOCS / "reference" / "pitfalls.md").read_text() == pitfall_page(), said


def test_the_reference_of_errors_is_the_codes() -> None:
    """Generated, too: every slug that the code knows has its line, and says something."""
    said = "run: python tests/docs/error_page.py > docs/reference/errors.md"
    assert (DOCS / "reference" / "errors.md").read_text(encoding="utf-8") == error_page(), said
    silent = [slug for slug, told in told_of_slugs().items() if len(re.findall(r"[a-z]{2,}", " ".join(told.says))) < 2]
    assert silent == [], "give them an entry in tests/docs/error_texts.toml"


def test_pages_name_no_slug_that_is_gone() -> None:
    """Decisions and the changelog tell what was; every other page tells what is."""
    pages = [page for page in DOCS.rglob("*.md") if page.parent.name != "decisions"] + [ROOT / "README.md"]
    known = set(told_of_slugs())
    named = {
        slug for page in pages for slug in re.findall(r"`(E-[a-z0-9-]+[a-z0-9])`", page.read_text(encoding="utf-8"))
    }
    assert sorted(named - known) == []


def test_the_extra_installs_the_verified_wheels() -> None:
    """What ``[local]`` pins is what the embedded engines accept."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for distribution, version in VERIFIED:
        assert f'"{distribution}=={version}"' in project


def test_the_documentation_builds_without_warnings(tmp_path: Path) -> None:
    """Dead links and pages outside the navigation are errors."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.timeout(600)  # ten commands, of which four measure
def test_the_tutorials_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command of the tutorial runs in its order, but for the installation and the whole matrix: CI runs those.

    With fewer minutes, and a port of its own.
    """
    shutil.copytree(ROOT / "matrices", tmp_path / "matrices")
    local = tmp_path / "matrices" / "local.toml"
    local.write_text(
        re.sub(r"(?m)^minutes = .*$", "minutes = 0.15", local.read_text(encoding="utf-8")), encoding="utf-8"
    )
    monkeypatch.setenv("MOE_CONFIG_DIR", str(tmp_path / "settings"))
    ran = []
    niced = os.getpriority(os.PRIO_PROCESS, 0) != 0  # then `ab` refuses to measure
    port = str(_free_port())
    try:
        for line in re.findall(r"^\$ (.*)$", (DOCS / "tutorial.md").read_text(encoding="utf-8"), flags=re.MULTILINE):
            if line.startswith("pip ") or line == "pytest -m moe":
                continue
            done = _run(line.replace("--minutes 1", "--minutes 0.2").replace("6379", port), port, tmp_path)
            assert done.returncode in ({0, 2, 3} if niced else {0, 3}), f"{line}\n{done.stdout}\n{done.stderr}"
            assert "Traceback" not in done.stderr
            ran.append(line)
    finally:
        _run("moe-harness fleet down", port, tmp_path)
    assert len(ran) >= 10


def _run(line: str, port: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program, *arguments = shlex.split(line)
    if arguments[:2] == ["fleet", "up"]:
        arguments += ["--port", port]
    return run_forked(program, *arguments, cwd=folder)


def _free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port: int = door.getsockname()[1]
        return port


CHEAPER = {"--build": ["--", "-p", "32", "-n", "4"], "local --minutes": ["--select", "*/ik+fa=0*/tg64@*"]}
"""What is added to a command of the calibration page that has these words: fewer tokens, one cell of the matrix."""


def test_the_calibration_pages_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they stand there, in less time and of less: what they find in it is another test's business."""
    monkeypatch.setenv("MOE_SPREADS", str(tmp_path / "spreads.json"))
    page_text = (DOCS / "how-to" / "calibrate.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\$ moe-harness (.*)$", page_text, flags=re.MULTILINE)
    for command in commands:
        arguments = shlex.split(re.sub(r"--minutes \d+", "--minutes 0.1", command))
        arguments += next((more for words, more in CHEAPER.items() if words in command), [])
        done = run_forked("moe-harness", *arguments, cwd=tmp_path)
        assert done.returncode in {0, 1, 3}, f"{command}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
    assert len(commands) == 3


def test_the_calibration_page_names_the_surpluses_of_the_judge() -> None:
    text = " ".join((DOCS / "how-to" / "calibrate.md").read_text(encoding="utf-8").split())
    said = [f"{name.replace('_', ' ')} {value:g}" for name, value in asdict(CALIBRATED_SURPLUS).items()]
    of_p99 = said.index("p99 2")
    said[of_p99] += f" (and at least {P99_OF_MAXIMUM:g} of the maximum)"
    assert f"times a surplus: {', '.join(said)}." in text


def test_ci_runs_the_readmes_test_command() -> None:
    """The second command of the README, as it stands there."""
    commands = re.findall(r"^\$ (.*)$", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(commands) == 2
    install, tests = commands[1].split(" && ")
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert install.removeprefix("pip install ") in script
    assert tests in script
