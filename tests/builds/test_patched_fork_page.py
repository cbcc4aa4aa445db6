"""The commands of 'Build a patched fork and its merge base' do what the page says, on the stand-in project."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from build_support import FASTER, change_speed, commit, git, new_repository

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "patched-fork.md").read_text(encoding="utf-8")
MEASURES = "moe-harness ab"
"""Not run here: it takes its minutes."""


def test_every_command_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order, with the page's own files."""
    monkeypatch.setenv("MOE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("MOE_CONFIG_DIR", str(tmp_path / "config"))
    base = new_repository(tmp_path / "ik_llama.cpp")
    git(tmp_path / "ik_llama.cpp", "checkout", "--quiet", "-b", "feature")
    (tmp_path / "ik_llama.cpp" / "NOTES").write_text("a feature\n")
    feature = commit(tmp_path / "ik_llama.cpp", "feature")
    git(tmp_path / "ik_llama.cpp", "checkout", "--quiet", "main")
    change_speed(tmp_path / "ik_llama.cpp", 50)
    commit(tmp_path / "ik_llama.cpp", "main goes on")
    (tmp_path / "faster.patch").write_text(FASTER)
    names = ("base.toml", "patched.toml", "patch.toml")
    for name, text in zip(names, re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL), strict=True):
        (tmp_path / name).write_text(text)
    printed = {}
    commands = re.findall(r"^\$ (.*)$", PAGE, flags=re.MULTILINE)
    assert [command for command in commands if command.startswith(MEASURES)]
    for command in commands:
        if command.startswith(MEASURES):
            continue
        argv = [sys.executable, "-m", "harness.cli", *shlex.split(command)[1:]]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        printed[command] = done.stdout
    shown = printed["moe-harness builds show patched"]
    assert feature in shown
    assert "with changes" in shown
    assert "faster.patch" in shown
    assert "throughput/tiny/before..after/pp512@any" in printed["moe-harness plan patch.toml"]
    history = json.loads((tmp_path / "config" / "baselines.json").read_text())["branches"]["main"]
    assert [change["build"] for change in history] == ["base", "patched", "base"]
    catalogue = json.loads((tmp_path / "config" / "builds.json").read_text())["builds"]
    assert catalogue["base"]["build"]["source"]["commit"] == base
