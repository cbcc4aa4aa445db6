"""A real small night with secrets in its environment: nothing that it writes, prints or starts shows them."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from mini_matrix import MINI

from harness.cli.main import cli

MARK = f"S3CR3T{secrets.token_hex(8)}"
SECRETS = {
    **dict.fromkeys(("GITHUB_TOKEN", "HF_TOKEN", "RAY_AUTH_TOKEN", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY"), MARK),
    **dict.fromkeys(("http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"), f"http://me:{MARK}@127.0.0.1:9"),
    "MOE_HISTORY": f"postgresql://me:{MARK}@127.0.0.1:9/db?password={MARK}",
}
RUN = ("-m", "pytest", "-m", "moe", "--moe-executor=local", "--junitxml=own.xml", "-p", "no:cacheprovider")


def _shown_by(process: psutil.Process) -> Iterator[str]:
    """What others on the host, or an engine's own code, see of the processes that a run starts."""
    try:
        for child in process.children(recursive=True):
            yield f"command line of {child.pid}: {child.cmdline()}"
            if child.ppid() != process.pid:  # a fork of the driver holds the driver's until it is another program
                yield f"environment of {child.pid}: {child.environ()}"
    except psutil.Error:  # it has ended meanwhile
        return


def _written_in(folder: Path) -> Iterator[tuple[str, bytes]]:
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            yield f"{file}", file.read_bytes()
            if file.name.endswith(".tar.gz"):
                with tarfile.open(file) as packed:
                    yield from ((f"{file}: {m.name}", read.read()) for m in packed if (read := packed.extractfile(m)))


def _commands(case: str) -> list[list[str]]:
    return [
        ["report", "moe-reports"],
        ["explain", case],
        ["gate", "moe-reports", "--format", "json"],
        ["history", "import", "moe-reports"],  # a database that is not there
        ["history", "import", "moe-reports", "--history", "nights.sqlite"],
        ["bundle", case, "-o", "bundle.tar.gz"],
        ["junit", "merge", "merged.xml", "moe-reports/junit.xml"],
        ["github", "summary", "moe-reports"],
    ]


def test_no_secret_of_a_run_is_written_printed_or_handed_on(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Journal, JUnit, page, database and bundle, logs and left-overs, all output, and the children's command lines."""
    matrix = tmp_path / "matrices" / "local.toml"
    matrix.parent.mkdir()
    matrix.write_text(MINI.format(model=tiny_model).replace("blocks = 4", "blocks = 2"))
    for name, value in {**SECRETS, "TMPDIR": f"{tmp_path}", "XDG_STATE_HOME": f"{tmp_path / 'state'}"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.chdir(tmp_path)
    seen: set[str] = set()
    with (tmp_path / "output").open("wb") as output:
        running = subprocess.Popen([sys.executable, *RUN], stdout=output, stderr=output)
        while running.poll() is None:
            seen.update(_shown_by(psutil.Process(running.pid)))
            try:
                running.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
    assert running.returncode == 0, (tmp_path / "output").read_text()
    assert any("harness.engines.embedded" in each for each in seen)
    case = "throughput/tiny/ik+fa=0/pp32@any"
    for number, command in enumerate(_commands(case)):
        ended = CliRunner().invoke(cli, command)
        (tmp_path / f"command-{number}").write_text(f"{ended.output}{ended.exception}")
    written = dict(_written_in(tmp_path))
    for expected in ("journal.jsonl", "junit.xml", "report.html", "nights.sqlite", "bundle.tar.gz", "merged.xml"):
        assert any(expected in name for name in written), expected
    assert [name for name, content in written.items() if MARK.encode() in content] == []
    assert [each for each in seen if MARK in each] == []
    assert MARK in os.environ["MOE_HISTORY"]
