"""Runs the commands of a workflow's steps as a runner does, in a folder of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from ready_python import STAND_IN

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"


def workflow(name: str) -> dict[str, Any]:
    """A workflow's YAML; its key ``on`` reads as ``True``."""
    return dict(yaml.safe_load((GITHUB / "workflows" / name).read_text(encoding="utf-8")))


def action() -> dict[str, Any]:
    """The composite action."""
    return dict(yaml.safe_load((GITHUB / "actions" / "gate" / "action.yml").read_text(encoding="utf-8")))


def step(steps: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """The step with a name."""
    return next(each for each in steps if each.get("name") == name)


@dataclass(frozen=True)
class Done:
    """What a step left.

    Attributes:
        code: Its exit status.
        log: What the runner would read.
        outputs: What it wrote as outputs.
        summary: What it wrote as summary.
    """

    code: int
    log: str
    outputs: dict[str, str]
    summary: str


@dataclass
class Runner:
    """A machine with a workspace, and with programs that are quick to start.

    Attributes:
        home: Everything of it lies there.
        programs: Folder of its programs.
    """

    home: Path
    programs: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def workspace(self) -> Path:
        return self.home / "workspace"

    @property
    def temp(self) -> Path:
        return self.home / "temp"

    @property
    def calls(self) -> list[list[str]]:
        """Calls of pip and gh."""
        log = self.programs / "log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def answers(self, rules: Mapping[str, Mapping[str, Any]]) -> None:
        """What gh says to arguments that hold a text; and forget its calls."""
        (self.programs / "answers").write_text(json.dumps(rules))
        (self.programs / "log").unlink(missing_ok=True)

    def run(self, what: Mapping[str, Any], **env: str) -> Done:
        """Run a step's script with the variables that its expressions would give."""
        asked = {name: str(value) for name, value in what.get("env", {}).items()}
        unknown = {name for name, value in asked.items() if "${{" in value} - set(env)
        assert not unknown, f"give {unknown}"
        for name in ("output", "summary"):
            (self.home / name).write_text("")
        script = self.home / "script.sh"
        script.write_text(what["run"])
        done = subprocess.run(
            ["/bin/bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.workspace,
            env={
                **{
                    name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "GH_", "MOE_"))
                },
                "PATH": f"{self.programs}:{os.environ['PATH']}",
                "RUNNER_TEMP": str(self.temp),
                "GITHUB_OUTPUT": str(self.home / "output"),
                "GITHUB_STEP_SUMMARY": str(self.home / "summary"),
                "GITHUB_ACTION_PATH": str(GITHUB / "actions" / "gate"),
                "GITHUB_REPOSITORY": "someone/project",
                "GITHUB_SERVER_URL": "https://github.com",
                "GITHUB_RUN_ID": "77",
                **self.env,
                **asked,
                **env,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        pairs = (line.split("=", 1) for line in (self.home / "output").read_text().splitlines())
        return Done(done.returncode, done.stdout, dict(pairs), (self.home / "summary").read_text())  # type: ignore[arg-type]


@contextmanager
def ready_programs(folder: Path) -> Iterator[Path]:
    """Programs that a runner has, served by one process."""
    address = folder / "door"
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("ready_python.py")), str(address)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
    )
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    yield folder
    server.kill()
    server.communicate()


def make_runner(home: Path, address: Path) -> Runner:
    """A fresh machine."""
    programs = home / "programs"
    for each in (programs, home / "workspace", home / "temp"):
        each.mkdir(parents=True)
    text = STAND_IN.format(
        python=sys.executable,
        log=str(programs / "log"),
        answers=str(programs / "answers"),
        address=str(address / "door"),
    )
    (programs / "python3").write_text(text)
    (programs / "python3").chmod(0o755)
    for name in ("python", "pip", "moe-harness", "gh"):
        (programs / name).symlink_to("python3")
    (programs / "answers").write_text("{}")
    return Runner(home, programs)


def checkout(into: Path, *parts: str) -> Path:
    """Parts of this repository, as a checkout has them."""
    for part in parts or (".github",):
        target = into / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, target)
        else:
            shutil.copy(ROOT / part, target)
    return into
