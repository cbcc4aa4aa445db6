"""Archives fetched by digest: once, whole, and nothing else."""

from __future__ import annotations

import hashlib
import threading
import urllib.request
from pathlib import Path

import pytest
from test_unpacking import tar_of

from harness.builds import fetching
from harness.builds.fetching import fetched
from harness.domain.build import Variant
from harness.domain.errors import BadInput, HarnessError, Infrastructure

FILES = (("b/llama-bench", "", "#!/bin/sh\n"), ("b/libllama.so", "", "x"))


@pytest.fixture
def variant(tmp_path: Path) -> Variant:
    """A variant whose archive is a file of this machine."""
    return variant_of(tar_of(tmp_path / "my build.tar.gz", *FILES))


def variant_of(archive: Path) -> Variant:
    return Variant(url=archive.as_uri(), sha256=hashlib.sha256(archive.read_bytes()).hexdigest())


def leftovers(tmp_path: Path) -> list[str]:
    """What lies in the cache beside whole archives and locks."""
    folder = tmp_path / "cache" / "builds" / "fetched"
    return [path.name for path in folder.glob("*") if path.name.startswith(".")]


def test_an_archive_is_unpacked_into_the_cache(tmp_path: Path, variant: Variant) -> None:
    folder = fetched(variant)
    assert folder == tmp_path / "cache" / "builds" / "fetched" / variant.sha256 / "b"
    assert sorted(path.name for path in folder.iterdir()) == ["libllama.so", "llama-bench"]
    assert leftovers(tmp_path) == []


def test_what_is_in_the_cache_is_not_fetched_again(tmp_path: Path, variant: Variant) -> None:
    """By its digest: the same archive at another place is the same build."""
    folder = fetched(variant)
    (tmp_path / "my build.tar.gz").unlink()
    assert fetched(variant) == folder
    assert fetched(Variant(url="https://example.org/a.tar", sha256=variant.sha256)) == folder


def test_another_archive_than_was_meant_is_refused(tmp_path: Path, variant: Variant) -> None:
    """Both digests are named, and nothing of it is kept."""
    tar_of(tmp_path / "my build.tar.gz", ("b/llama-bench", "", "another"))
    with pytest.raises(BadInput) as refused:
        fetched(variant)
    assert refused.value.slug == "E-digest-mismatch"
    assert variant.sha256 in refused.value.message
    assert leftovers(tmp_path) == []
    assert not (tmp_path / "cache" / "builds" / "fetched" / variant.sha256).exists()


def test_two_jobs_fetch_it_once(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one waits, and takes what the first one fetched."""
    opened = []
    first_opened = threading.Event()
    original = fetching._opened

    def slowly(url: str) -> object:
        opened.append(url)
        first_opened.set()
        threading.Event().wait(0.3)
        return original(url)

    monkeypatch.setattr(fetching, "_opened", slowly)
    told: list[str] = []
    folders: list[Path] = []

    def job() -> None:
        folders.append(fetched(variant, report=told.append))

    threads = [threading.Thread(target=job) for _ in range(2)]
    threads[0].start()
    first_opened.wait()
    threads[1].start()
    for thread in threads:
        thread.join()
    assert len(opened) == 1
    assert len(folders) == 2
    assert len(set(folders)) == 1
    assert any("waiting for another process" in text for text in told)


def test_a_place_that_nobody_gives_free_is_told(tmp_path: Path) -> None:
    """Not waited for without end."""
    with (
        fetching.turn(tmp_path / "x", lambda _: None),
        pytest.raises(Infrastructure, match="E-cache-busy"),
        fetching.turn(tmp_path / "x", lambda _: None, seconds=0.1),
    ):
        pass


def test_what_a_killed_process_left_is_no_hindrance(tmp_path: Path, variant: Variant) -> None:
    """Half an archive and half an unpacked folder."""
    folder = tmp_path / "cache" / "builds" / "fetched"
    (folder / f".{variant.sha256}.unpacked" / "b").mkdir(parents=True)
    (folder / f".{variant.sha256}.unpacked" / "b" / "rubbish").write_text("")
    (folder / f".{variant.sha256}.archive").write_text("half")
    assert sorted(path.name for path in fetched(variant).iterdir()) == ["libllama.so", "llama-bench"]
    assert leftovers(tmp_path) == []


def test_an_archive_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"E-archive-missing: file:///none\.tar"):
        fetched(Variant(url="file:///none.tar", sha256="0" * 64))


def test_a_server_that_is_not_there_is_the_networks_fault() -> None:
    """Infrastructure: nothing is said about the build."""
    with pytest.raises(HarnessError) as failed:
        fetched(Variant(url="https://127.0.0.1:9/a.tar", sha256="0" * 64))
    assert failed.value.slug == "E-fetch-failed"
    assert isinstance(failed.value, Infrastructure)


def test_a_redirection_out_of_tls_is_refused() -> None:
    """What a request gives away is not protected by the digest."""
    handler = fetching._OnlyTls()
    request = urllib.request.Request("https://example.org/a")
    with pytest.raises(urllib.error.URLError, match="not https"):
        handler.redirect_request(request, None, 302, "Found", {}, "http://example.org/b")
    again = handler.redirect_request(request, None, 302, "Found", {}, "https://example.org/b")
    assert again.full_url == "https://example.org/b"
