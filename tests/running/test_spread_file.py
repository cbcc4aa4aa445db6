"""The file of known spreads: whole or refused, never half written, never two writers at once."""

from __future__ import annotations

import json
import multiprocessing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spread_support import EMPTY, NODE, OTHER_NODE, arm, record

from harness.domain.cell import cell_of
from harness.domain.errors import BadInput, HarnessError, Infrastructure
from harness.domain.node import Gpu
from harness.running.spread_file import SpreadFile, change_spreads, read_spreads, spreads_path

CELL = cell_of(arm(), "pp256")


def test_it_lies_in_the_users_state_or_where_one_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """MOE_SPREADS, then an absolute XDG_STATE_HOME, then the home folder."""
    monkeypatch.delenv("MOE_SPREADS", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert spreads_path() == Path("/state/moe-harness/spreads.json")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert spreads_path() == Path.home() / ".local/state/moe-harness/spreads.json"
    monkeypatch.setenv("MOE_SPREADS", "/shared/all.json")
    assert spreads_path() == Path("/shared/all.json")


def test_no_file_is_an_empty_one(tmp_path: Path) -> None:
    """Nothing was calibrated yet: that is no error."""
    assert read_spreads(tmp_path / "none.json") == EMPTY


@given(
    st.floats(1e-6, 1.0),
    st.integers(2, 500),
    st.text(st.characters(codec="utf-8"), max_size=30),
    st.dictionaries(
        st.sampled_from(["ngl", "ot", "ncmoe"]), st.one_of(st.integers(0, 99), st.text("abc=.", max_size=9))
    ),
)
def test_what_is_written_is_read_back(quad_sd: float, quads: int, reason: str, flags: dict[str, int | str]) -> None:
    """Every figure, flag and reason, through JSON."""
    cell = cell_of(arm(**flags), "tg64")
    file = EMPTY.with_record(NODE, cell, record(quad_sd, quads, reason)).with_record(OTHER_NODE, CELL, record(0.02))
    again = SpreadFile.model_validate_json(file.model_dump_json(by_alias=True))
    assert again == file
    assert {type(value) for _, value in again.nodes[NODE.fingerprint].cells[0].cell.placement} <= {int, str}


def test_a_file_is_whole_after_each_change(tmp_path: Path) -> None:
    """Through the disk, with its folder made, and nothing left beside it but the lock."""
    path = tmp_path / "deep" / "spreads.json"
    for quads in (5, 7):
        change_spreads(path, lambda file, quads=quads: file.with_record(NODE, CELL, record(0.01, quads)))  # type: ignore[misc]
    (entry,) = read_spreads(path).nodes[NODE.fingerprint].cells
    assert [one.quads for one in entry.records] == [5, 7]
    assert sorted(file.name for file in path.parent.iterdir()) == ["spreads.json", "spreads.json.lock"]
    facts = json.loads(path.read_text())["nodes"][NODE.fingerprint]["facts"]
    assert facts["cpu_model"] == "Test CPU 9000"


def test_the_oldest_records_go_and_a_fresh_start_forgets(tmp_path: Path) -> None:
    """Ten are kept."""
    file = EMPTY
    for quads in range(2, 20):
        file = file.with_record(NODE, CELL, record(0.01, quads))
    assert [one.quads for one in file.nodes[NODE.fingerprint].cells[0].records] == list(range(10, 20))
    file = file.with_record(NODE, CELL, record(0.01, 99), fresh=True)
    assert [one.quads for one in file.nodes[NODE.fingerprint].cells[0].records] == [99]


def _add(path: Path, number: int) -> None:
    change_spreads(path, lambda file: file.with_record(NODE, cell_of(arm(), f"pp{number}"), record(0.01)))


def test_writers_wait_for_each_other(tmp_path: Path) -> None:
    """Eight processes add a cell each, and none is lost."""
    path = tmp_path / "spreads.json"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_add, args=(path, number)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert len(read_spreads(path).nodes[NODE.fingerprint].cells) == 8


@pytest.mark.parametrize(
    ("text", "slug", "said"),
    [
        ("{", "E-spreads-unreadable", "not JSON"),
        ("[" * 100_000, "E-spreads-unreadable", "not JSON"),
        ("[]", "E-spreads-unreadable", "expected an object"),
        ("{}", "E-spreads-schema", "None"),
        ('{"schema": 2, "nodes": {}}', "E-spreads-schema", "2"),
        ('{"schema": 1, "nodes": {"x": {}}}', "E-spreads-unreadable", "nodes.x.facts"),
        ('{"schema": 1, "surprise": {}}', "E-spreads-unreadable", "surprise"),
        ("\x00\xff", "E-spreads-unreadable", "not JSON"),
    ],
)
def test_what_is_no_such_file_is_refused_and_kept(tmp_path: Path, text: str, slug: str, said: str) -> None:
    """Reading and changing say the file and what is wrong, and leave it alone."""
    path = tmp_path / "spreads.json"
    path.write_text(text, encoding="latin-1")
    for call in (read_spreads, lambda place: change_spreads(place, lambda file: file)):
        with pytest.raises(BadInput) as caught:
            call(path)
        assert caught.value.slug == slug
        assert said in caught.value.message
        assert str(path) in str(caught.value)
    assert path.read_text(encoding="latin-1") == text


@pytest.mark.parametrize("change", [{"quad_sd": 0.0}, {"quads": 1}, {"quad_sd": float("nan")}])
def test_figures_that_cannot_be_are_refused(tmp_path: Path, change: dict[str, float]) -> None:
    """No spread of zero or of one quad comes in by an edited file."""
    path = tmp_path / "spreads.json"
    change_spreads(path, lambda file: file.with_record(NODE, CELL, record(0.01)))
    data = json.loads(path.read_text())
    data["nodes"][NODE.fingerprint]["cells"][0]["records"][0] |= change
    path.write_text(json.dumps(data))
    with pytest.raises(BadInput, match="records"):
        read_spreads(path)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """With the way out."""
    (tmp_path / "file").write_text("")
    with pytest.raises(Infrastructure, match="MOE_SPREADS") as caught:
        change_spreads(tmp_path / "file" / "spreads.json", lambda file: file)
    assert caught.value.slug == "E-spreads-unwritable"
    with pytest.raises(HarnessError):
        read_spreads(tmp_path)


def test_a_node_is_what_decides_its_speed() -> None:
    """Another kernel, driver or core count is another node; the day's load and priority are not."""
    gpu = Gpu("NVIDIA H200", 141 * 1024**3, "550.1", "GPU-1")
    assert replace(NODE, kernel="6.2").fingerprint != NODE.fingerprint
    assert replace(NODE, gpus=(gpu,)).fingerprint != replace(NODE, gpus=(replace(gpu, driver="560"),)).fingerprint
    assert replace(NODE, cores=4).fingerprint != NODE.fingerprint
    assert replace(NODE, niceness=5, ram_bytes=NODE.ram_bytes - 1000).fingerprint == NODE.fingerprint
