"""Files that describe nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from planning_support import node

from harness.domain.errors import BadInput
from harness.domain.node import GIB, NodeFacts
from harness.execution.node import probe_node
from harness.planning.node_files import described, read_nodes
from harness.reporting.codec import encode

LEAST: dict[str, Any] = {"cpu_model": "CPU", "cores": 8, "isa": ["avx2"], "ram_bytes": 32 * GIB, "gpus": []}
GPU: dict[str, Any] = {"name": "NVIDIA GeForce RTX 4080", "vram_bytes": 16376 << 20}


def write(folder: Path, content: Any, name: str = "box.json") -> Path:
    file = folder / name
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


def refused(*paths: Path) -> BadInput:
    with pytest.raises(BadInput) as caught:
        read_nodes(paths)
    return caught.value


def test_a_description_of_this_machine_is_read_as_this_machine(tmp_path: Path) -> None:
    """Every fact of it, and the name that it was given."""
    here = probe_node()
    (read,) = read_nodes([write(tmp_path, described(here, "desk"))])
    assert read.name == "desk"
    assert {**encode(read), "name": ""} == encode(here)


def test_a_node_of_a_journal_is_a_description(tmp_path: Path) -> None:
    """Same keys, same facts; the name is the file's where the journal has none."""
    recorded = {key: value for key, value in encode(node(gpus=2)).items() if key != "name"}
    (read,) = read_nodes([write(tmp_path, recorded, "rig.json")])
    assert read.name == "rig"
    assert read.fingerprint == node(gpus=2).fingerprint


def test_by_hand_only_what_decides_is_needed(tmp_path: Path) -> None:
    """The rest is as where it can't be read."""
    (read,) = read_nodes([write(tmp_path, {**LEAST, "gpus": [GPU]})])
    assert (read.gpus[0].vendor, read.gpus[0].arch, read.os, read.numa_nodes) == ("nvidia", "", "", 1)
    assert read.usable_ram_bytes == 32 * GIB


def test_files_folders_and_lists_are_read_in_order(tmp_path: Path) -> None:
    """A folder's files by name."""
    folder = tmp_path / "fleet"
    folder.mkdir()
    for name in ("b.json", "a.json"):
        write(folder, LEAST, name)
    listed = write(tmp_path, [{**LEAST, "name": "x"}, {**LEAST, "name": "w"}])
    names = [read.name for read in read_nodes([listed, folder])]
    assert names == ["x", "w", "a", "b"]


@pytest.mark.parametrize(
    ("changes", "where", "said"),
    [
        ({"cors": 8}, "cors", "unknown key"),
        ({"cores": None}, "cores", "the key is missing"),
        ({"cores": 0}, "cores", "expected greater than or equal to 1, found 0"),
        ({"cores": True}, "cores", "expected a whole number, found True"),
        ({"cores": "8"}, "cores", "expected a whole number, found '8'"),
        ({"ram_bytes": 32768}, "ram_bytes", "expected bytes (a GiB is 1073741824), found 32768"),
        ({"isa": ["avx512"]}, "isa", "unknown instruction set 'avx512' (did you mean 'avx512f'?)"),
        ({"gpus": [{"name": "RTX"}]}, "gpus[0].vram_bytes", "the key is missing"),
        ({"gpus": [{**GPU, "vram": 1}]}, "gpus[0].vram", "unknown key"),
        ({"gpus": [{**GPU, "vram_bytes": 16376}]}, "gpus[0].vram_bytes", "expected bytes"),
        ({"gpus": [{**GPU, "arch": "89"}]}, "gpus[0].arch", "expected a compute capability such as '8.9', found '89'"),
        ({"cpu_model": "a\u001b[2J"}, "cpu_model", "it has characters that can't be printed"),
        ({"name": "my box"}, "name", "expected at most 60 letters, digits, "),
    ],
)
def test_a_wrong_fact_is_named_by_file_and_key(tmp_path: Path, changes: dict[str, Any], where: str, said: str) -> None:
    """With what was expected, and what was found."""
    content = {key: value for key, value in {**LEAST, **changes}.items() if value is not None}
    error = refused(write(tmp_path, content))
    assert (error.slug, error.where) == ("E-node-invalid", f"{tmp_path / 'box.json'}: {where}")
    assert said in error.message


def test_unknown_keys_have_the_nearest_one_in_the_hint(tmp_path: Path) -> None:
    """Of a GPU, a GPU's."""
    assert refused(write(tmp_path, {**LEAST, "cors": 8})).hint == "did you mean 'cores'?"
    assert "'vram_bytes'" in refused(write(tmp_path, {**LEAST, "gpus": [{**GPU, "vram_byte": 1}]})).hint


def test_all_faults_of_a_node_are_told_together(tmp_path: Path) -> None:
    """The first one's place in front, in a list with its number."""
    listed = [{**LEAST, "name": "fine"}, {"name": "bad", "cores": 0}]
    error = refused(write(tmp_path, listed))
    assert error.where.endswith("box.json: [1].cpu_model")
    for key in ("cores: expected", "isa: the key is missing", "ram_bytes: ", "gpus: "):
        assert key in error.message


@pytest.mark.parametrize(
    "content", ["", "{", "[1, ", '{"cores": 1, "cores": 2}', "[" * 100_000, r'"x\ud800"', "NaN", "[]"]
)
def test_what_is_no_description_is_one_error(tmp_path: Path, content: str) -> None:
    """Never a traceback, whatever the file holds."""
    assert refused(write(tmp_path, content)).slug == "E-node-invalid"


def test_a_key_that_comes_twice_is_refused(tmp_path: Path) -> None:
    """Readers of JSON take the last one, and nobody notices."""
    text = json.dumps(LEAST)[:-1] + ', "cores": 64}'
    assert "the key 'cores' is there twice" in refused(write(tmp_path, text)).message


def test_two_nodes_of_one_name_are_refused_with_both_files(tmp_path: Path) -> None:
    """Also where one is named by its file."""
    first, second = write(tmp_path, LEAST), write(tmp_path, {**LEAST, "name": "box"}, "other.json")
    error = refused(first, second)
    assert (error.slug, error.exit_code) == ("E-node-twice", 2)
    assert "'box'" in error.message
    assert str(first) in error.message
    assert str(second) in error.message


def test_what_can_not_be_read_is_named_with_its_neighbour(tmp_path: Path) -> None:
    """No such file, an empty folder, bytes that are no text, a list of nodes without names."""
    write(tmp_path, LEAST, "home16.json")
    assert (refused(tmp_path / "home61.json").slug, refused(tmp_path / "home61.json").hint) == (
        "E-node-unreadable",
        "did you mean 'home16.json'?",
    )
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "holds no .json file" in refused(empty).message
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    assert refused(tmp_path / "bytes.json").slug == "E-node-invalid"
    assert refused(write(tmp_path, [LEAST, LEAST])).where.endswith("[0].name")
    assert "rename the file" in refused(write(tmp_path, LEAST, "my box.json")).hint


def test_facts_are_frozen_values(tmp_path: Path) -> None:
    """Two readings are equal, as plans are compared and cached by them."""
    file = write(tmp_path, {**LEAST, "gpus": [GPU]})
    first, second = read_nodes([file]), read_nodes([file])
    assert first == second
    assert isinstance(hash(first[0]), int)
    assert isinstance(first[0], NodeFacts)
