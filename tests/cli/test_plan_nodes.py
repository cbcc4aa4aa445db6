"""``moe-harness plan --nodes``: a matrix held against nodes that are elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli import plan as command
from harness.domain.errors import BadInput
from harness.domain.node import GIB, NodeFacts
from harness.running import options

TEXT = """
name = "desk"
[builds.ik]
fork = "ik_llama.cpp"
path = "/builds/ik"
[models.q]
card = "qwen3-30b-a3b"
quant = "Q4_K_M"
[node_classes.card]
min_gpus = 1
min_vram_gib = 15.0
[node_classes.cpu]
min_ram_gib = 20.0
[flags]
ngl = 99
[[include]]
build = "ik"
model = "q"
node_class = "card"
flags = { ot = "exps=CPU" }
[[workloads]]
pp = 512
"""
WHOLE = "throughput/q/ik+ot=none/pp512@card"
HYBRID = "throughput/q/ik+ot=exps=cpu/pp512@card"
MIB = 1 << 20


def facts(ram_gib: int, *cards: tuple[str, int]) -> dict[str, Any]:
    gpus = [{"name": name, "vram_bytes": mib * MIB} for name, mib in cards]
    return {"cpu_model": "CPU", "cores": 8, "isa": ["avx2"], "ram_bytes": ram_gib * GIB, "gpus": gpus}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A matrix and four described nodes, on a machine that has nothing of all that."""
    here = NodeFacts("CPU", 1, (), GIB, (), "6.1", 0, "unknown", None, 1, 0)
    monkeypatch.setattr(options, "probe_node", lambda: here)
    (tmp_path / "desk.toml").write_text(TEXT)
    nodes = tmp_path / "nodes"
    nodes.mkdir()
    fleet = {
        "h200": facts(128, ("NVIDIA H200", 143771)),
        "home": facts(64, ("NVIDIA GeForce RTX 4080", 16376)),
        "rtx4090": facts(64, ("NVIDIA GeForce RTX 4090", 24564)),
        "box": facts(32),
    }
    for name, content in fleet.items():
        (nodes / f"{name}.json").write_text(json.dumps(content))
    return tmp_path


def invoke(folder: Path, *arguments: str, nodes: tuple[str, ...] = ("nodes",)) -> Result:
    given = [word for name in nodes for word in ("--nodes", str(folder / name))]
    return CliRunner().invoke(command.plan, [str(folder / "desk.toml"), *given, *arguments], catch_exceptions=False)


def rows(folder: Path, **changes: Any) -> dict[str, dict[str, Any]]:
    found = json.loads(invoke(folder, "--format", "json", **changes).stdout)
    return {row["id"]: {**row, "nodes": {node["node"]: node for node in row["nodes"]}} for row in found}


def test_each_case_is_held_against_each_node(folder: Path) -> None:
    """17 GiB of weights on a card of 16 GiB, with its experts in RAM, and where there is no GPU at all."""
    found = rows(folder)
    assert {name: node["fits"] for name, node in found[WHOLE]["nodes"].items()} == {
        "box": False,
        "h200": True,
        "home": False,
        "rtx4090": True,
    }
    assert found[HYBRID]["nodes"]["home"]["fits"] is True
    assert found[WHOLE]["status"] is None
    assert found[WHOLE]["nodes"]["box"]["of_class"] is False
    assert found[WHOLE]["nodes"]["box"]["reason"] == "not of class card: needs 1 GPU with 15 GiB, node has none"


def test_a_device_that_is_too_small_is_told_with_all_figures(folder: Path) -> None:
    """What is needed, what there is, what stays free of it, and what is missing: they add up."""
    home = rows(folder)[WHOLE]["nodes"]["home"]
    (gpu,) = (device for device in home["devices"] if device["device"] == "gpu0")
    assert (gpu["has"], gpu["reserve"]) == (16376 * MIB, GIB)
    assert gpu["short"] == gpu["needs"] + gpu["reserve"] - gpu["has"] > 0
    assert gpu["needs"] == sum(gpu["parts"].values())
    short = -(-gpu["short"] // MIB)
    said = f"NVIDIA GeForce RTX 4080 of node 'home' has 16376 MiB, 1024 of it kept free: {short} MiB short"
    assert said in home["reason"]


def test_what_fits_nowhere_names_the_nearest_node(folder: Path) -> None:
    """A card of the class comes before a node without one."""
    found = rows(folder, nodes=("nodes/box.json", "nodes/home.json"))
    assert (found[WHOLE]["status"], found[WHOLE]["nearest"]) == ("not_applicable", "home")
    assert found[HYBRID]["nearest"] is None
    assert next(row for case, row in found.items() if case.endswith("@cpu"))["nearest"] is None


def test_the_table_has_a_column_for_each_node(folder: Path) -> None:
    """And sums up on which ones the cases fit."""
    lines = invoke(folder).stdout.splitlines()
    assert lines[0].split() == ["case", "box", "h200", "home", "rtx4090", "finds"]
    whole = next(line for line in lines if WHOLE in line)
    assert "not its class" in whole
    assert " of 15352, " in whole
    assert " short" in whole
    assert "fitting, of 3 that a build can run: box 1, h200 3, home 2, rtx4090 3" in lines
    assert any(line.startswith("box (2 cases): not of class card") for line in lines)


def test_many_nodes_share_one_column(folder: Path) -> None:
    """Their number, and which."""
    for number in range(4):
        (folder / "nodes" / f"more{number}.json").write_text(json.dumps(facts(64, ("GPU", 24564))))
    lines = invoke(folder).stdout.splitlines()
    assert lines[0].split() == ["case", "fits", "on", "finds"]
    assert "6 of 8: h200, more0, more1, more2, more3, rtx4090" in next(line for line in lines if WHOLE in line)


def test_why_tells_each_node_and_what_the_class_promises(folder: Path) -> None:
    """The least node of the class has 15 GiB of GPU memory: too little, which decides nothing."""
    lines = invoke(folder, "--why", WHOLE).stdout.splitlines()
    assert lines[1] == "  can run"
    assert any(line.startswith("  least node of class card: ik+ot=none: gpu0 ") and "short" in line for line in lines)
    assert not any(line.startswith("  least node of class card: ik+ot=none: ram") for line in lines)
    assert "  node h200: fits" in lines
    assert any(line.startswith("  node home: does not fit: ik+ot=none needs ") for line in lines)


def test_a_model_whose_tensors_are_not_here_is_not_known_and_not_refused(folder: Path) -> None:
    """A file that lies on the nodes alone; what tells it is said."""
    text = TEXT.replace('card = "qwen3-30b-a3b"\nquant = "Q4_K_M"', 'path = "/far/model.gguf"')
    (folder / "desk.toml").write_text(text)
    row = rows(folder)[WHOLE]
    assert (row["nodes"]["home"]["fits"], row["nodes"]["box"]["fits"], row["nearest"]) == (None, False, None)
    assert "moe-harness models card" in row["nodes"]["home"]["reason"]
    assert row["reason"] == ""
    lines = invoke(folder).stdout.splitlines()
    (closing,) = (line for line in lines if "that a build can run" in line)
    assert closing == "known to fit, of 3 that a build can run: " + ", ".join(
        f"{name} 0" + (f" (not known: {number})" if number else "")
        for name, number in (("box", 1), ("h200", 3), ("home", 3), ("rtx4090", 3))
    )
    assert "packaged" not in row["nodes"]["home"]["reason"]


def test_a_packaged_card_of_the_models_name_is_named(folder: Path) -> None:
    """As files of it are called; it is for the user to say that it is of that shape."""
    text = TEXT.replace('card = "qwen3-30b-a3b"\nquant = "Q4_K_M"', 'path = "/far/Qwen3-30B-A3B-Q4_K_M.gguf"')
    (folder / "desk.toml").write_text(text)
    reason = rows(folder)[WHOLE]["nodes"]["home"]["reason"]
    assert 'the packaged card of that name: card = "qwen3-30b-a3b"' in reason


def test_what_this_machine_describes_of_itself_is_read_again(folder: Path) -> None:
    """Nothing else is printed."""
    printed = CliRunner().invoke(command.plan, ["--describe-node"], catch_exceptions=False).stdout
    (folder / "here.json").write_text(printed)
    assert list(rows(folder, nodes=("here.json",))[WHOLE]["nodes"]) == [json.loads(printed)["name"]]


def test_a_bad_description_is_one_error(folder: Path) -> None:
    """Before anything is planned."""
    (folder / "nodes" / "bad.json").write_text("{")
    with pytest.raises(BadInput, match="E-node-invalid"):
        invoke(folder)
