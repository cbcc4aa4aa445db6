"""What Ray is started with: everything that benchmarks need, and no secret among the arguments."""

from __future__ import annotations

import json
import os
import socket
import stat
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from harness.domain.errors import BadInput
from harness.domain.node import GIB, Gpu
from harness.execution.cluster_token import environment_with, token_environment, token_file
from harness.execution.executors import ray_environment
from harness.execution.node import probe_node
from harness.execution.offers import QUIET_WORKERS
from harness.fleet.command import NodeStart, start_arguments, start_environment
from harness.fleet.nodes_here import NodeHere, end, folder_here, nodes_here, remember
from harness.fleet.offering import offer_of
from harness.fleet.ports import own_address_towards, require_free
from harness.fleet.secret import kept_token, made_token, token_from
from harness.fleet.topology import slowest_link

GPUS = (Gpu("A", 24 * GIB, "570.1", "GPU-a"), Gpu("B", 80 * GIB, "570.1", "GPU-b"))
HOST = replace(probe_node(), ram_bytes=64 * GIB, cgroup_memory_bytes=None, gpus=GPUS)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings of a user who has none, and no word of Ray in the environment."""
    monkeypatch.setenv("MOE_CONFIG_DIR", str(tmp_path / "settings"))
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_a_node_that_measures_has_quiet_workers_and_no_threads_forced() -> None:
    inherited = {"OMP_NUM_THREADS": "1", "PATH": "/bin", "RAY_worker_niceness": "15", "RAY_ADDRESS": "elsewhere:1"}
    found = start_environment(NodeStart("10.0.0.7", visible="GPU-b"), {"RAY_AUTH_MODE": "token"}, inherited)
    assert found["RAY_worker_niceness"] == found["RAY_worker_oom_score_adjustment"] == "0"
    assert found["RAY_memory_monitor_refresh_ms"] == "0"
    assert (found["CUDA_VISIBLE_DEVICES"], found["CUDA_DEVICE_ORDER"]) == ("GPU-b", "PCI_BUS_ID")
    assert (found["RAY_AUTH_MODE"], found["PATH"]) == ("token", "/bin")
    assert {"OMP_NUM_THREADS", "RAY_ADDRESS", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"}.isdisjoint(found)


def test_on_loopback_a_head_listens_there_alone() -> None:
    """Of all addresses of loopback Ray takes only this one for it."""
    variable = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
    assert start_environment(NodeStart("127.0.0.1"), {}, {})[variable] == "0"
    assert variable not in start_environment(NodeStart("127.0.0.2"), {}, {})
    assert ray_environment("127.0.0.1:6379")[variable] == "0"
    assert variable not in ray_environment("127.0.0.2:6379")


def test_arguments_tell_role_resources_and_labels_and_keep_the_dashboard_at_home() -> None:
    head = start_arguments(NodeStart("10.0.0.7", gpus=2, resources={"bench": 1.0}, labels={"moe/gpu": "A", "x": "1"}))
    assert {"--head", "--port=6379", "--block", "--dashboard-host=127.0.0.1", "--num-gpus=2"} <= set(head)
    assert "--labels=moe/gpu=A,x=1" in head
    (resources,) = (word.partition("=")[2] for word in head if word.startswith("--resources="))
    assert json.loads(resources) == {"bench": 1.0}
    member = start_arguments(NodeStart("10.0.0.8", head="10.0.0.7:6379"))
    assert "--address=10.0.0.7:6379" in member
    assert "--head" not in member
    assert NodeStart("fd00::7").address == "[fd00::7]:6379"


def test_the_page_gives_kuberay_what_our_own_nodes_have() -> None:
    """The same slot, the same variables, a token."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "fleet.md").read_text(encoding="utf-8")
    spec = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])["spec"]
    (group,) = spec["workerGroupSpecs"]
    (container,) = group["template"]["spec"]["containers"]
    told = {each["name"]: each["value"] for each in container["env"]}
    quiet = {
        name: value
        for name, value in QUIET_WORKERS.items()
        if name not in {"RAY_DEDUP_LOGS", "RAY_USAGE_STATS_ENABLED"}
    }
    assert quiet.items() <= told.items()
    assert json.loads(json.loads(group["rayStartParams"]["resources"])) == {"bench": 1, "ram_gib": 180}
    assert spec["authOptions"] == {"mode": "token"}


def test_a_token_is_made_once_for_its_owner_alone() -> None:
    file = made_token()
    assert file == token_file() == made_token()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(file.read_text()) == 64
    assert token_environment() == {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(file)}


def test_a_token_that_the_user_named_is_the_users_business(monkeypatch: pytest.MonkeyPatch) -> None:
    made_token()
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "/elsewhere")
    assert token_environment() == {}


def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    made_token().chmod(0o640)
    with pytest.raises(BadInput, match=r"E-fleet-token: .*others can read the token \(mode 640\)"):
        made_token()
    with pytest.raises(BadInput, match="E-fleet-token"):
        token_environment()
    with pytest.raises(BadInput, match=r"can't be read: No such file"):
        environment_with(tmp_path / "none")


@pytest.mark.parametrize(
    "text", ["", "short", "two lines\nof it that are long enough", "\x1b[31m" + "a" * 40, "a" * 9999]
)
def test_what_is_no_token_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(BadInput, match="E-fleet-token: standard input: expected a token") as refused:
        kept_token(text, "standard input")
    assert text.strip()[:20] not in str(refused.value) or not text
    assert not token_file().exists()


def test_a_handed_token_is_kept(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_text("0123456789abcdef0123456789abcdef\n")
    given.chmod(0o600)
    assert token_from(given).read_text() == "0123456789abcdef0123456789abcdef"
    assert stat.S_IMODE(token_file().stat().st_mode) == 0o600
    given.chmod(0o644)
    with pytest.raises(BadInput, match="others can read"):
        token_from(given)


def test_a_part_of_a_host_can_be_offered() -> None:
    """A slot for each GPU: two nodes of one host, each with its own."""
    offer = offer_of(HOST, {"rack": "b4"}, gpus=[1], ram_gib=32, disk_bytes=99 * GIB, links="nvlink")
    assert (offer.visible, offer.facts.gpus) == ("GPU-b", GPUS[1:])
    assert offer.resources == {"bench": 1.0, "ram_gib": 32.0, "vram_gib": 80.0, "disk_gib": 99.0}
    assert (offer.labels["moe/gpu"], offer.labels["rack"]) == ("B", "b4")
    assert "moe/gpu-links" not in offer.labels
    assert offer_of(HOST, {}, gpus=[]).visible == ""
    assert offer_of(HOST, {}, links="nvlink").labels["moe/gpu-links"] == "nvlink"


def test_more_than_there_is_can_not_be_offered() -> None:
    with pytest.raises(BadInput, match=r"E-fleet-gpus: --gpus: there is no GPU 2 here: there are 0 to 1"):
        offer_of(HOST, {}, gpus=[2])
    with pytest.raises(BadInput, match=r"E-fleet-ram: --ram-gib: 65 GiB are more than the 64 of this host"):
        offer_of(HOST, {}, ram_gib=65)


MATRIX = """\
\t\x1b[4mGPU0\tGPU1\tGPU2\tCPU Affinity\x1b[0m
GPU0\t X \tNV18\tSYS\t0-31
GPU1\tNV18\t X \tPHB\t0-31
GPU2\tSYS\tPHB\t X \t32-63

Legend:
  SYS  = Connection traversing PCIe as well as the SMP interconnect
"""


def test_the_slowest_link_between_gpus_counts() -> None:
    """A matrix as the driver prints it; written by hand."""
    assert slowest_link(MATRIX) == "SYS"
    assert slowest_link("\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tNV18\t X \n") == "nvlink"
    assert slowest_link("GPU0\t X \t0-31\n") == slowest_link("no devices\n") == ""


def test_a_port_that_is_taken_or_needed_otherwise_is_refused() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(BadInput, match=r"E-fleet-listen: .*Address already in use"),
    ):
        require_free("127.0.0.1", server.getsockname()[1])
    with pytest.raises(BadInput, match="Ray needs this port for its workers"):
        require_free("127.0.0.1", 10002)
    with pytest.raises(BadInput, match=r"E-fleet-listen: 203.0.113.1:6379: can't listen there"):
        require_free("203.0.113.1", 6379)
    with pytest.raises(BadInput, match="E-fleet-listen"):
        require_free("gpu box", 6379)


def test_the_own_address_is_the_one_on_the_way() -> None:
    assert own_address_towards("127.0.0.1") == "127.0.0.1"
    with pytest.raises(BadInput, match=r"E-fleet-no-way: nowhere.invalid"):
        own_address_towards("nowhere.invalid")


def test_a_node_that_is_gone_is_forgotten_and_another_process_of_its_number_is_left_alone() -> None:
    """Numbers come again: what is told by its number alone would be somebody else's one day."""
    ours = NodeHere(os.getpid(), 1.0, "127.0.0.1:6379", head=True, log="")
    remember(ours)
    assert list(folder_here().glob("node-*.json"))
    end(ours)
    remember(ours)
    assert nodes_here() == []
    assert not list(folder_here().glob("node-*.json"))
