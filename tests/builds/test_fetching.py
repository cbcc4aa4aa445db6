"""Archives fetched by digest: once, whole, and nothing else."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from model_server import Shelf, serving
from test_unpacking import tar_of

from harness.builds import fetching
from harness.builds.fetching import fetched, in_cache, keep, note_use
from harness.domain.build import Variant
from harness.domain.errors import BadInput, HarnessError, Infrastructure
from harness.domain.halting import Stopped
from harness.models.shelf import held, held_models, make_room, named, remove
from harness.models.turns import lock_of
from harness.models.usage import cache_held
from harness.settings import CACHE_GIB

FILES = (("b/llama-bench", "", "#!/bin/sh\n"), ("b/libllama.so", "", "x"))


@pytest.fixture
def variant(tmp_path: Path) -> Variant:
    """A variant whose archive is a file of this machine."""
    return variant_of(tar_of(tmp_path / "my build.tar.gz", *FILES))


def variant_of(archive: Path) -> Variant:
    return Variant(url=archive.as_uri(), sha256=hashlib.sha256(archive.read_bytes()).hexdigest())


@pytest.fixture
def server() -> Iterator[Shelf]:
    """A server on this machine."""
    with serving() as shelf:
        yield shelf


def served(server: Shelf, tmp_path: Path, content: str = "#!/bin/sh\n") -> Variant:
    """A variant whose archive the server has; another content is another archive."""
    name = f"b{len(server.files)}.tar.gz"
    archive = tar_of(tmp_path / name, ("b/llama-bench", "", content), ("b/libllama.so", "", "x"))
    server.files[f"/{name}"] = archive.read_bytes()
    return Variant(url=f"{server.address}/{name}", sha256=variant_of(archive).sha256)


def leftovers(tmp_path: Path) -> list[str]:
    """What lies in the cache beside whole archives and locks."""
    folder = tmp_path / "cache" / "builds" / "fetched"
    return [path.name for path in folder.glob("*") if path.name.startswith(".")]


def test_fetching_that_is_told_to_stop_leaves_no_build(variant: Variant) -> None:
    with pytest.raises(Stopped):
        fetched(variant, should_stop=lambda: True)
    assert in_cache(variant) is None
    assert fetched(variant).is_dir()


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


def test_two_jobs_fetch_it_once(server: Shelf, tmp_path: Path) -> None:
    """The second one waits, and takes what the first one fetched."""
    wanted = served(server, tmp_path)
    server.delay_s = 0.3
    told: list[str] = []
    folders: list[Path] = []

    def job() -> None:
        folders.append(fetched(wanted, report=told.append))

    threads = [threading.Thread(target=job) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.asked) == 1
    assert len(folders) == 2
    assert len(set(folders)) == 1
    assert any("waiting for another process" in text for text in told)


def test_a_transfer_that_broke_is_gone_on_with(server: Shelf, tmp_path: Path) -> None:
    """What has arrived is listed as unfinished, and only the rest is asked for."""
    wanted = served(server, tmp_path)
    server.cut["/b0.tar.gz"] = 50
    with pytest.raises(Infrastructure, match=r"E-fetch-failed.*after 50 of"):
        fetched(wanted)
    assert [(each.kind, each.size) for each in held(tmp_path / "cache")] == [("unfinished", 50)]
    assert in_cache(wanted) is None
    assert fetched(wanted) == in_cache(wanted)
    assert [asked for _, asked in server.asked] == ["", "bytes=50-"]
    assert leftovers(tmp_path) == []


def test_an_archive_above_all_sense_is_not_fetched(
    variant: Variant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "_MAX_ARCHIVE_BYTES", 20)
    with pytest.raises(BadInput, match=r"E-fetch-too-large.*more than 20 bytes"):
        fetched(variant)
    assert leftovers(tmp_path) == []


class TestQuota:
    """Fetched builds share quota and eviction with models."""

    @pytest.fixture
    def builds(self, server: Shelf, tmp_path: Path) -> tuple[Variant, Variant]:
        """Two of them in the cache, the first one wanted longest ago."""
        pair = (served(server, tmp_path, "1" * 100_000), served(server, tmp_path, "2" * 100_000))
        for each in pair:
            fetched(each)
            time.sleep(0.01)
        return pair

    @pytest.fixture(autouse=True)
    def _quota(self, builds: tuple[Variant, Variant], monkeypatch: pytest.MonkeyPatch) -> None:
        assert builds
        monkeypatch.setenv(CACHE_GIB, f"{250_000 / 1024**3:.9f}")

    def test_they_are_listed_with_their_size(self, builds: tuple[Variant, Variant], tmp_path: Path) -> None:
        """Under the names of their archives; a model they are not."""
        rows = [(each.name, each.kind, each.size, each.sha256) for each in held(tmp_path / "cache")]
        digests = [(each.sha256,) for each in builds]
        expected = [("b0.tar.gz", "build", 100_001, digests[0]), ("b1.tar.gz", "build", 100_001, digests[1])]
        assert rows == expected
        assert held_models(tmp_path / "cache") == ()

    def test_what_was_wanted_longest_ago_makes_room(self, builds: tuple[Variant, Variant], tmp_path: Path) -> None:
        fetched(builds[0])
        make_room(tmp_path / "cache", 100_000)
        assert [each.name for each in held(tmp_path / "cache")] == ["b0.tar.gz"]
        assert in_cache(builds[1]) is None

    def test_what_a_baseline_is_stays(self, builds: tuple[Variant, Variant], tmp_path: Path) -> None:
        """Also where it was wanted longest ago; whoever removes it by name knows."""
        keep(builds[0])
        make_room(tmp_path / "cache", 100_000)
        assert [(each.name, each.kept) for each in held(tmp_path / "cache")] == [("b0.tar.gz", True)]
        with pytest.raises(Infrastructure, match=r"E-cache-full.*b0\.tar\.gz .*a baseline"):
            make_room(tmp_path / "cache", 200_000)

    def test_what_a_job_uses_stays(self, builds: tuple[Variant, Variant], tmp_path: Path) -> None:
        """By its archive, and by the path that `ab` has of it."""
        with cache_held():
            note_use(str(fetched(builds[0])))
            note_use(str(in_cache(builds[1])))
            with pytest.raises(Infrastructure, match=r"E-cache-full.*b0\.tar\.gz .*in use"):
                make_room(tmp_path / "cache", 100_000)
        make_room(tmp_path / "cache", 200_000)
        assert held(tmp_path / "cache") == ()

    def test_the_next_build_makes_room_for_itself(
        self, builds: tuple[Variant, Variant], server: Shelf, tmp_path: Path
    ) -> None:
        """With what it is unpacked to; what was removed is fetched again."""
        fetched(served(server, tmp_path, secrets.token_hex(50_000)))
        assert [each.name for each in held(tmp_path / "cache")] == ["b2.tar.gz"]
        assert fetched(builds[0]).is_dir()

    def test_one_is_removed_by_name(self, builds: tuple[Variant, Variant], tmp_path: Path) -> None:
        assert remove(named(held(tmp_path / "cache"), "b0"))
        assert [in_cache(each) is None for each in builds] == [True, False]


def test_what_a_killed_process_left_is_no_hindrance(tmp_path: Path, variant: Variant) -> None:
    """Half an archive, half an unpacked folder, and a folder without its record."""
    folder = tmp_path / "cache" / "builds" / "fetched"
    for left in (folder / f".{variant.sha256}.unfinished" / "unpacked" / "b", folder / variant.sha256):
        left.mkdir(parents=True)
        (left / "rubbish").write_text("")
    (folder / f".{variant.sha256}.unfinished" / ".archive.partial").write_text("half")
    assert {each.kind for each in held(tmp_path / "cache")} == {"unfinished"}
    assert sorted(path.name for path in fetched(variant).iterdir()) == ["libllama.so", "llama-bench"]
    assert leftovers(tmp_path) == []


def test_what_a_killed_process_left_is_removed(tmp_path: Path, variant: Variant) -> None:
    work = tmp_path / "cache" / "builds" / "fetched" / f".{variant.sha256}.unfinished"
    (work / "unpacked").mkdir(parents=True)
    (work / "unpacked" / "rubbish").write_text("")
    (left,) = held(tmp_path / "cache")
    assert left.record == lock_of(work.with_name(variant.sha256))
    assert remove(left)
    assert leftovers(tmp_path) == []


def test_an_archive_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"E-fetch-refused: file:///none\.tar"):
        fetched(Variant(url="file:///none.tar", sha256="0" * 64))


def test_a_server_that_is_not_there_is_the_networks_fault() -> None:
    """Infrastructure: nothing is said about the build."""
    with pytest.raises(HarnessError) as failed:
        fetched(Variant(url="https://127.0.0.1:9/a.tar", sha256="0" * 64))
    assert failed.value.slug == "E-fetch-failed"
    assert isinstance(failed.value, Infrastructure)
