"""Bundles: what is in them, what never is, and that opening one does no harm."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from explaining_support import DEPTHS, contrast_at, depth_record, written
from judging_support import NODE, arms_runs, contrast, record

from harness.cli.main import cli
from harness.domain.case import Case
from harness.domain.errors import BadInput
from harness.domain.failure import Failure, FailureKind
from harness.domain.measurement import GpuState
from harness.domain.node import Gpu
from harness.reporting.replay import read_journal
from harness.reporting.state import JournalState
from harness.sharing import unpacking
from harness.sharing.bundle import MANIFEST, Extras, pack
from harness.sharing.opened import opened
from harness.sharing.scrubbing import Scrubber
from harness.sharing.unpacking import unpack_bundle

H200 = Path(__file__).parents[1] / "data" / "h200_repack" / "one_quad.jsonl"
UUID = "GPU-4b603387-6ef3-6039-b595-20b1bec43215"


def of_a_machine(folder: Path, environment: tuple[tuple[str, str], ...] = ()) -> tuple[JournalState, Case]:
    """A journal that names its machine wherever one can."""
    case = contrast()
    arms = tuple(
        replace(
            arm,
            build=replace(arm.build, wheel="", path="/home/somebody/llama/bin"),
            model=replace(arm.model, card="", quant="", path="/srv/secret-place/m.gguf"),
            environment=environment,
        )
        for arm in case.arms
    )
    case = replace(case, arms=arms)
    failure = Failure(
        FailureKind.CRASH, "crash in /home/somebody/llama/x.c on a-long-hostname", "E-crash", "at ~/llama/y.c"
    )
    gpu = GpuState(UUID, "1", used=True, samples=1)
    runs = [
        replace(run, failure=failure if run.step.arm else None, conditions=replace(run.conditions, gpus=(gpu,)))
        for run in arms_runs([100] * 4, [80] * 4)
    ]
    found = record(runs, arms=arms)
    found = replace(found, job=replace(found.job, cases=(case.id,)))
    state = written(folder, [case], found)
    text = state.path.read_text().replace('"a-host"', '"a-long-hostname"')
    state.path.write_text(text)
    return read_journal(folder), case


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of one of three cases."""
    folder = tmp_path_factory.mktemp("packed")
    found = depth_record((200.0, 50.0), (200.0, 90.0), blocks=4)
    state = written(folder, [contrast_at(depth) for depth in DEPTHS], found)
    return pack(state, [contrast_at(0).id], folder / "b.tar.gz").path


def test_the_excerpt_is_a_journal_of_the_chosen_cases_with_equal_verdicts(packed: Path) -> None:
    whole = read_journal(packed.parent)
    with opened(packed) as found:
        assert list(found.state.planned) == [contrast_at(0).id]
        assert not found.state.problems
        assert found.state.finished
        (verdict,) = found.state.final_verdicts()
    before = next(each for each in whole.final_verdicts() if each.case == verdict.case)
    assert replace(verdict, seconds=0.0) == replace(before, seconds=0.0)


def test_the_same_journal_gives_the_same_bytes(packed: Path, tmp_path: Path) -> None:
    again = pack(read_journal(packed.parent), [contrast_at(0).id], tmp_path / "other-name.tar.gz").path
    assert again.read_bytes() == packed.read_bytes()


def test_nothing_of_the_machine_is_in_it(tmp_path: Path) -> None:
    state, case = of_a_machine(tmp_path)
    bundle = pack(state, [case.id], tmp_path / "b.tar.gz").path
    content = gzip.decompress(bundle.read_bytes()).decode(errors="replace")
    for word in ("/home", "/srv", "somebody", "secret-place", "a-long-hostname", UUID, "~/"):
        assert word not in content, word
    assert "m.gguf" in content
    assert "gpu-0" in content


def test_real_journals_lose_folders_and_serial_numbers_and_keep_their_verdicts(tmp_path: Path) -> None:
    state = read_journal(H200)
    bundle = pack(state, list(state.planned), tmp_path / "b.tar.gz").path
    assert UUID not in gzip.decompress(bundle.read_bytes()).decode()
    with opened(bundle) as found:
        statuses = [verdict.status for verdict in found.state.final_verdicts()]
    assert statuses == [verdict.status for verdict in state.final_verdicts()]


def test_a_variable_that_looks_like_a_secret_is_refused(tmp_path: Path) -> None:
    state, case = of_a_machine(tmp_path, (("HF_TOKEN", "hf_x"),))
    with pytest.raises(BadInput, match=r"E-bundle-secret.*HF_TOKEN"):
        pack(state, [case.id], tmp_path / "b.tar.gz")
    assert not (tmp_path / "b.tar.gz").exists()


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("error in /home/me/a b/c.so: x", "error in a b/c.so: x"),
        ("at ~/src/x.cpp:12", "at x.cpp:12"),
        ("https://example.org/a/b.tar.gz stays", "https://example.org/a/b.tar.gz stays"),
        ("file:///srv/models/m.gguf", "m.gguf"),
        ("throughput/m/a..b/pp512@any", "throughput/m/a..b/pp512@any"),
        ("-ot exps=CPU and 3/4 of it", "-ot exps=CPU and 3/4 of it"),
    ],
)
def test_folders_go_and_names_and_addresses_stay(text: str, clean: str) -> None:
    assert Scrubber(()).text(text) == clean


def test_weights_and_programs_are_packed_where_asked_only(tmp_path: Path) -> None:
    state, case = of_a_machine(tmp_path / "j")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "llama-bench").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "llama-bench").chmod(0o755)
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    text = state.path.read_text().replace("/home/somebody/llama/bin", str(tmp_path / "bin"))
    state.path.write_text(text.replace("/srv/secret-place/m.gguf", str(tmp_path / "m.gguf")))
    state = read_journal(tmp_path / "j")
    model = case.arms[0].model.name
    small = pack(state, [case.id], tmp_path / "small.tar.gz")
    assert set(small.files) <= {"README.md", "bundle.json", "journal.jsonl", "matrix.toml"}
    large = pack(state, [case.id], tmp_path / "large.tar.gz", Extras(weights=True, builds=True))
    assert f"models/{model}/m.gguf" in large.files
    assert not any("=PATH" in line for line in large.needed)
    with opened(large.path) as found:
        assert Path(found.builds[case.arms[0].build.name], "llama-bench").stat().st_mode & 0o100
        assert Path(found.models[model]).read_bytes() == b"GGUF"


def test_the_command_packs_by_pattern_and_says_what_is_needed(packed: Path, tmp_path: Path) -> None:
    out = tmp_path / "c.tar.gz"
    result = CliRunner().invoke(cli, ["bundle", "tg100", str(packed.parent), "-o", str(out), "--format", "json"])
    assert result.exit_code == 0, result.output
    assert "journal.jsonl" in json.loads(result.output)["files"]


# ---- anybody's archive -----------------------------------------------------------------------------------------------


def archive(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for member, content in members:
            member.size = len(content) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(content))
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname = kind, link
    return found


@pytest.mark.parametrize(
    "evil",
    [
        member("../outside"),
        member("/tmp/outside-absolute"),
        member("a/../../outside"),
        member("link", tarfile.SYMTYPE, "/etc/passwd"),
        member("hard", tarfile.LNKTYPE, "journal.jsonl"),
        member("fifo", tarfile.FIFOTYPE),
        member("device", tarfile.CHRTYPE),
        member("x" * 500),
        member("a\x1b[31m"),
    ],
    ids=lambda found: repr(found.name[:20]),
)
def test_names_that_lead_out_links_and_devices_are_refused(tmp_path: Path, evil: tarfile.TarInfo) -> None:
    path = archive(tmp_path / "evil.tar.gz", (evil, b"x"))
    with pytest.raises(BadInput, match="E-bundle-unsafe"):
        unpack_bundle(path, tmp_path / "in")
    assert not (tmp_path / "outside").exists()
    assert not Path("/tmp/outside-absolute").exists()


def test_a_bomb_is_refused_before_it_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "SMALL_BYTES", 1 << 16)
    path = archive(tmp_path / "bomb.tar.gz", (member("journal.jsonl"), b"\0" * (1 << 24)))
    with pytest.raises(BadInput, match="E-bundle-too-large"):
        unpack_bundle(path, tmp_path / "in")
    assert not list((tmp_path / "in").rglob("*"))


def _cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _other(content: bytes) -> bytes:
    return b"\x1f\x8b" + b"no archive at all" + content[:0]


@pytest.mark.parametrize("damage", [_cut, _other])
def test_a_broken_archive_is_told(packed: Path, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    (tmp_path / "b.tar.gz").write_bytes(damage(packed.read_bytes()))
    with pytest.raises(BadInput, match="E-not-a-bundle"):
        unpack_bundle(tmp_path / "b.tar.gz", tmp_path / "in")


def repacked(packed: Path, to: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    with tarfile.open(packed) as tar:
        content = {found.name: tar.extractfile(found).read() for found in tar}  # type: ignore[union-attr]  # plain files
    change(content)
    return archive(to, *((member(name), text) for name, text in content.items()))


def test_a_changed_file_and_a_newer_schema_are_told(packed: Path, tmp_path: Path) -> None:
    def changed(content: dict[str, bytes]) -> None:
        content["journal.jsonl"] += b"\n"

    with pytest.raises(BadInput, match=r"E-not-a-bundle.*changed after it was packed: journal.jsonl"):
        unpack_bundle(repacked(packed, tmp_path / "a.tar.gz", changed), tmp_path / "a")

    def newer(content: dict[str, bytes]) -> None:
        content[MANIFEST] = content[MANIFEST].replace(b'"schema": 1', b'"schema": 99')

    with pytest.raises(BadInput, match="E-bundle-schema"):
        unpack_bundle(repacked(packed, tmp_path / "b.tar.gz", newer), tmp_path / "b")


def test_a_serial_number_of_a_node_is_an_ordinal() -> None:
    gpu = Gpu("NVIDIA H200", 1, "1", UUID)
    assert Scrubber(()).scrub({"gpus": [{"uuid": gpu.uuid}, {"uuid": gpu.uuid}]}) == {"gpus": [{"uuid": "gpu-0"}] * 2}
    assert NODE.name == ""


def test_names_of_builds_and_models_lead_nowhere_outside_the_bundle(tmp_path: Path) -> None:
    """A journal in it is anybody's, too."""
    state, case = of_a_machine(tmp_path)
    name = case.arms[0].model.name
    bundle = pack(state, [case.id], tmp_path / "b.tar.gz").path

    def outside(content: dict[str, bytes]) -> None:
        text = content["journal.jsonl"].replace(f'"name": "{name}"'.encode(), b'"name": "../../../../../../etc"')
        content["journal.jsonl"] = text.replace(b'"path": "m.gguf"', b'"path": "passwd"')
        manifest = json.loads(content[MANIFEST])
        manifest["files"]["journal.jsonl"] = hashlib.sha256(content["journal.jsonl"]).hexdigest()
        content[MANIFEST] = json.dumps(manifest).encode()

    with opened(repacked(bundle, tmp_path / "evil.tar.gz", outside)) as found:
        assert found.state.planned
        assert found.models == {}
