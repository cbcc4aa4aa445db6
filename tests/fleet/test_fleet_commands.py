"""``moe-harness fleet`` for real: nodes as processes, joined, looked at, measured on and ended; and what goes wrong."""

from __future__ import annotations

import http.server
import json
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from forked import run_forked

from harness.cli.main import entry
from harness.execution.cluster_token import environment_with
from harness.fleet.nodes_here import NodeHere, remember

HOST = "127.0.0.2"
"""Ray takes only 127.0.0.1 for loopback, where nobody can join; this one is reached from this host alone all the same,
but the head listens on all interfaces: its token keeps it."""

MATRIX = """
name = "fleet"

[builds.ik]
fork = "ik_llama.cpp"
wheel = "ik-llama-cpp-python"

[models.tiny]
card = "tiny-moe"
quant = "IQ4_XS"

[node_classes.here]
min_ram_gib = 1

[node_classes.giant]
min_ram_gib = 4000

[[workloads]]
tg = 4

[policy]
blocks = 2
"""


def fleet(folder: Path, *arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**_clean(), "MOE_CONFIG_DIR": str(folder), **environment}
    return run_forked("moe-harness", "fleet", *arguments, stdin=stdin, env=env)


def _clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}


def _free_port() -> int:
    """One above those that Ray keeps for its workers."""
    with socket.create_server((HOST, 0)) as free:
        return int(free.getsockname()[1])


def refusal(done: subprocess.CompletedProcess[str], code: int) -> str:
    """The one message of a command that refused."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.strip().splitlines()
    return line


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A head that measures nothing: the folder of its user's settings, and its address."""
    folder = tmp_path_factory.mktemp("head")
    port = _free_port()
    started = fleet(folder, "up", "--listen", HOST, "--port", str(port), "--no-slot")
    try:
        assert started.returncode == 0, started.stderr
        assert "listens on all interfaces of this host" in started.stderr
        yield folder, f"{HOST}:{port}"
    finally:
        fleet(folder, "down")


def test_a_fleet_is_started_joined_seen_measured_on_and_ended(head: tuple[Path, str], tmp_path: Path) -> None:
    """One node joins with the token from standard input. A case that no node can take is told before any is run."""
    folder, address = head
    token = (folder / "fleet" / "token").read_text()
    member = tmp_path / "member"
    joined = fleet(
        member, "join", address, "--token-file", "-", "--label", "rack=b4", "--own-address", HOST, stdin=token
    )
    assert joined.returncode == 0, joined.stderr
    try:
        assert stat.S_IMODE((member / "fleet" / "token").stat().st_mode) == 0o600
        assert not any(token in " ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))
        assert not [path for path in (*folder.rglob("*.log"), *member.rglob("*.log")) if token in path.read_text()]

        seen = fleet(member, "status", "--format", "json")
        assert seen.returncode == 0, seen.stderr
        status = json.loads(seen.stdout)
        by_state = {node["state"]: node for node in status["nodes"]}
        assert (set(by_state), status["slots"], status["free_slots"]) == ({"ready", "no slot"}, 1, 1)
        ready = by_state["ready"]
        assert (ready["facts"]["niceness"], ready["labels"]["rack"], ready["labels"]["moe/gpu"]) == (0, "b4", "none")
        assert ready["resources"]["ram_gib"] == ready["facts"]["ram_bytes"] // 1024**3

        _measure(tmp_path, address, member)
        here = fleet(member, "down")
        assert (here.returncode, here.stdout) == (0, f"ended: 1 node ({address})\n")
        gone = json.loads(fleet(folder, "status", "--address", address, "--format", "json").stdout)
        assert sorted(node["state"] for node in gone["nodes"]) == ["gone", "no slot"]
    finally:
        fleet(member, "down")


def _measure(folder: Path, address: str, settings: Path) -> None:
    matrix = folder / "fleet.toml"
    matrix.write_text(MATRIX)
    command = [sys.executable, "-m", "pytest", "-m", "moe", f"--matrix={matrix}", f"--ray-address={address}", "-q"]
    run = subprocess.run(
        [*command, "-p", "no:cacheprovider", f"--moe-reports={folder / 'reports'}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**_clean(), "MOE_CONFIG_DIR": str(settings)},
    )
    assert run.returncode == 0, run.stdout + run.stderr
    lines = [json.loads(line) for line in (folder / "reports" / "journal.jsonl").read_text().splitlines()]
    verdicts = {line["case"].partition("@")[2]: line["verdict"] for line in lines if line["event"] == "verdict"}
    decided = [line for line in lines if line["event"] == "planned" and "giant" in json.dumps(line)]
    assert verdicts["here"]["status"] == "pass", verdicts
    assert "needs 4000 GiB of RAM, node has" in json.dumps(decided)
    assert sum(line["event"] == "job_submitted" for line in lines) == 1


def test_a_wrong_token_is_said_at_once(head: tuple[Path, str], tmp_path: Path) -> None:
    said = refusal(fleet(tmp_path, "join", head[1], "--token-file", "-", stdin="0123456789abcdef" * 4), 2)
    assert f"E-ray-token: fleet join {head[1]}: the cluster does not take our token" in said


def test_other_versions_than_the_clusters_are_said_at_once(head: tuple[Path, str]) -> None:
    """A fake: no second Ray is installed here, so what this process says of itself is planted."""
    folder, address = head
    told = (
        "import ray, platform, sys; ray.__version__ = '2.61.0'; platform.python_version = lambda: '3.13.1';"
        "from harness.cli.main import entry; entry(sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", told, "fleet", "join", address, "--own-address", HOST],
        capture_output=True,
        text=True,
        check=False,
        env={**_clean(), "MOE_CONFIG_DIR": str(folder), **environment_with(folder / "fleet" / "token")},
    )
    said = refusal(done, 2)
    assert "E-ray-version" in said
    assert "here are Ray 2.61.0 on Python 3.13.1" in said


def test_what_is_no_ray_is_said_within_seconds(head: tuple[Path, str], tmp_path: Path) -> None:
    """A web server, a server that says nothing, a port where nobody is, a host that does not exist."""
    folder, _ = head
    web = http.server.HTTPServer((HOST, 0), http.server.BaseHTTPRequestHandler)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    with socket.create_server((HOST, 0)) as mute, socket.create_server((HOST, 0)) as closed:
        nobody = closed.getsockname()[1]
        closed.close()
        told = {
            f"{HOST}:{web.server_port}": (3, "E-not-ray: ", "another kind of server answers"),
            f"{HOST}:{mute.getsockname()[1]}": (3, "E-not-ray: ", "a server listens and is mute"),
            f"{HOST}:{nobody}": (3, "E-ray-unreachable: ", "Connection refused"),
            "nowhere.invalid:6379": (3, "E-ray-unreachable: ", "not known"),
            "127.0.0.1:6379": (2, "E-fleet-loopback: ", "--listen ADDRESS"),
            "http://x:1": (2, "E-ray-address: ", "HOST:PORT"),
        }
        for address, (code, slug, words) in told.items():
            said = refusal(fleet(folder, "join", address), code)
            assert slug in said
            assert words in said
    web.shutdown()
    web.server_close()


def test_a_start_that_fails_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    said = refusal(fleet(tmp_path, "up", "--port", str(_free_port()), "--temp-dir", "/proc/nowhere"), 3)
    assert "E-fleet-start: ray start: it ended at once: " in said
    assert "No such file or directory: '/proc/nowhere'" in said
    assert not list(tmp_path.rglob("node-*.json"))


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        (("up", "--label", "rack=b 4"), "E-fleet-label: --label rack=b 4: its value"),
        (("up", "--gpus", "one"), "E-fleet-gpus: --gpus: expected numbers"),
        (("up", "--temp-dir", "here"), "E-fleet-temp-dir: --temp-dir: expected an absolute path"),
        (("join", "10.0.0.7:6379"), "the token can't be read"),
        (("status",), "E-fleet-none: fleet status: no node of a cluster was started on this host"),
    ],
)
def test_what_the_user_got_wrong_is_one_message(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    slug: str,
) -> None:
    """Before anything of Ray is begun."""
    monkeypatch.setenv("MOE_CONFIG_DIR", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        entry(["fleet", *arguments])
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert ended.value.code == 2
    assert slug in line


def test_a_second_head_of_one_user_on_one_host_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both would offer the whole host; this process stands for the first."""
    monkeypatch.setenv("MOE_CONFIG_DIR", str(tmp_path))
    remember(NodeHere(os.getpid(), psutil.Process().create_time(), "127.0.0.1:7391", True, ""))
    with pytest.raises(SystemExit) as ended:
        entry(["fleet", "up", "--port", "7399"])
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert ended.value.code == 2
    assert "E-fleet-head-here: 127.0.0.1:7391: a head of yours runs on this host" in line
