"""Archives from elsewhere: only what stays inside its folder is unpacked, and not without limit."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from harness.builds.unpacking import single_folder, unpack
from harness.domain.errors import BadInput


def tar_of(path: Path, *members: tuple[str, str, str]) -> Path:
    """A tar of files (name, "", content) and links (name, "->" or "=>", target)."""
    with tarfile.open(path, "w:gz") as tar:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.mode = 0o755
            if kind:
                info.type = tarfile.SYMTYPE if kind == "->" else tarfile.LNKTYPE
                info.linkname = content
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content.encode()))
    return path


def zip_of(path: Path, *members: tuple[str, str, str]) -> Path:
    """The same as a zip."""
    with zipfile.ZipFile(path, "w") as packed:
        for name, kind, content in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = (0o120777 if kind else 0o100755) << 16
            packed.writestr(info, content)
    return path


@pytest.fixture(params=[tar_of, zip_of])
def pack(request: pytest.FixtureRequest) -> object:
    return request.param


def test_files_links_and_modes_come_out(tmp_path: Path, pack: type) -> None:
    archive = pack(
        tmp_path / "a",
        ("build/bin/llama-bench", "", "#!/bin/sh\n"),
        ("build/lib/libllama.so.1", "", "library"),
        ("build/lib/libllama.so", "->", "libllama.so.1"),
    )
    folder = tmp_path / "out"
    folder.mkdir()
    unpack(archive, folder)
    root = single_folder(folder)
    assert root == folder / "build"
    assert (root / "bin" / "llama-bench").stat().st_mode & 0o777 == 0o755
    assert (root / "lib" / "libllama.so").read_text() == "library"


@pytest.mark.parametrize(
    "member",
    [
        pytest.param(("../outside", "", "x"), id="up"),
        pytest.param(("/absolute", "", "x"), id="absolute"),
        pytest.param(("a/../../outside", "", "x"), id="up below"),
        pytest.param(("link", "->", "/etc/passwd"), id="absolute link"),
        pytest.param(("a/link", "->", "../../outside"), id="link up"),
    ],
)
def test_what_leads_outside_is_refused(tmp_path: Path, pack: type, member: tuple[str, str, str]) -> None:
    """Nothing of such an archive is unpacked: not even what came before."""
    archive = pack(tmp_path / "a", ("first", "", "x"), member)
    folder = tmp_path / "deep" / "out"
    folder.mkdir(parents=True)
    with pytest.raises(BadInput) as refused:
        unpack(archive, folder)
    assert refused.value.slug == "E-archive-unsafe"
    assert list(folder.iterdir()) == []
    assert not (tmp_path / "deep" / "outside").exists()


def test_a_hard_link_to_outside_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    archive = tar_of(tmp_path / "a", ("link", "=>", "../secret"))
    (tmp_path / "out").mkdir()
    with pytest.raises(BadInput, match="E-archive-unsafe"):
        unpack(archive, tmp_path / "out")


def test_a_file_through_a_link_is_refused(tmp_path: Path) -> None:
    """A link to a folder outside, then a file in it: each name alone looks harmless."""
    (tmp_path / "target").mkdir()
    archive = tar_of(tmp_path / "a", ("d", "->", str(tmp_path / "target")), ("d/file", "", "x"))
    (tmp_path / "out").mkdir()
    with pytest.raises(BadInput, match="E-archive-unsafe"):
        unpack(archive, tmp_path / "out")
    assert list((tmp_path / "target").iterdir()) == []


def test_an_archive_that_unpacks_to_too_much_is_refused_before_it_does(tmp_path: Path, pack: type) -> None:
    archive = pack(tmp_path / "a", ("zeros", "", "0" * 4096))
    (tmp_path / "out").mkdir()
    with pytest.raises(BadInput, match="E-archive-too-large"):
        unpack(archive, tmp_path / "out", max_bytes=4095)
    assert list((tmp_path / "out").iterdir()) == []
    unpack(archive, tmp_path / "out", max_bytes=4096)


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08\x00broken"])
def test_what_is_no_archive_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    (tmp_path / "out").mkdir()
    with pytest.raises(BadInput, match="E-archive-unreadable"):
        unpack(tmp_path / "a", tmp_path / "out")


def test_a_truncated_archive_is_told(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "a", ("file", "", "".join(str(number) for number in range(20_000))))
    archive.write_bytes(archive.read_bytes()[:-2000])
    (tmp_path / "out").mkdir()
    with pytest.raises(BadInput, match="E-archive-unreadable"):
        unpack(archive, tmp_path / "out")
