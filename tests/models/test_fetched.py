"""Models by address or digest: fetched once, checked, found again, held while they are used."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from micro_model import child_environment, micro_card, need_quantizer, write_card_model
from model_server import Shelf, serving
from split_model import split

from harness.domain.errors import BadInput, HarnessError, Infrastructure
from harness.domain.halting import Stopped
from harness.domain.model import Model
from harness.models import shelf as cache_shelf
from harness.models.cache import ensure_model
from harness.models.fetched import Fetching, fetch_model
from harness.models.inspect import inspect_gguf
from harness.models.request import model_path
from harness.models.shelf import held_models
from harness.models.turns import lock_of
from harness.models.usage import cache_held
from harness.settings import CACHE_GIB


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of this node."""
    root = tmp_path / "cache"
    monkeypatch.setenv("MOE_CACHE_DIR", str(root))
    return root


@pytest.fixture
def server(micro_file: Path) -> Iterator[Shelf]:
    """A server with the micro model."""
    with serving() as shelf:
        shelf.files["/to/Micro-Q4.gguf"] = micro_file.read_bytes()
        yield shelf


@pytest.fixture
def remote(server: Shelf, micro_file: Path) -> Model:
    """The micro model by address."""
    return Model("m", url=f"{server.address}/to/Micro-Q4.gguf", sha256=(digest(micro_file),))


def other_models(folder: Path, count: int) -> list[Model]:
    """Further models by address, as large as the micro one."""
    files = [write_card_model(micro_card(seed=10 + number), folder / f"o{number}.gguf") for number in range(count)]
    return [Model(file.stem, url=file.as_uri(), sha256=(digest(file),)) for file in files]


def test_it_is_fetched_once_and_keeps_its_name(cache: Path, server: Shelf, remote: Model) -> None:
    """The second one who asks finds it, and engines see the name that its maker gave it."""
    path = model_path(remote)
    assert path.name == remote.file_name == "Micro-Q4.gguf"
    assert inspect_gguf(path).layers == 1
    assert model_path(remote) == path
    assert len(server.asked) == 1
    assert path.is_relative_to(cache)


def test_two_processes_never_fetch_the_same_file_twice(cache: Path, server: Shelf, remote: Model) -> None:
    """Who comes second waits for the first, and takes what it fetched."""
    server.delay_s = 1.0
    code = (
        "import sys\nfrom harness.domain.model import Model\nfrom harness.models.request import model_path\n"
        "print(model_path(Model('m', url=sys.argv[1], sha256=(sys.argv[2],))))"
    )
    argv = [sys.executable, "-c", code, remote.url, remote.sha256[0]]
    environment = {**child_environment(), "MOE_CACHE_DIR": str(cache)}
    started = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(3)]
    said = {process.communicate(timeout=60)[0] for process in started}
    assert [process.returncode for process in started] == [0, 0, 0]
    assert len(said) == 1
    assert len(server.asked) == 1


def test_the_same_bytes_elsewhere_are_the_same_model(server: Shelf, remote: Model, cache: Path) -> None:
    """The digest names the model, the address only where it may be had."""
    path = model_path(remote)
    moved = Model("n", url=f"{server.address}/gone.gguf", sha256=remote.sha256)
    assert model_path(moved) == path
    assert model_path(Model("o", sha256=remote.sha256)) == path
    assert cache.exists()


def test_a_made_model_is_found_by_its_digest(cache: Path) -> None:
    """What was made of a card is in the cache by its content too."""
    made = ensure_model(micro_card(), "F16")
    assert model_path(Model("m", sha256=(digest(made),))) == made
    assert made.is_relative_to(cache)


@pytest.mark.usefixtures("cache")
def test_a_digest_that_nobody_has_is_told() -> None:
    """Without an address nothing can be fetched."""
    with pytest.raises(BadInput, match="E-model-not-cached"):
        model_path(Model("m", sha256=("a" * 64,)))


@pytest.mark.usefixtures("cache")
def test_all_parts_of_a_split_model_are_fetched(server: Shelf, micro_file: Path, tmp_path: Path) -> None:
    """The address of the first part and a digest for each bring the whole model."""
    parts = split(micro_file, tmp_path, 3, name="big")
    server.files |= {f"/{part.name}": part.read_bytes() for part in parts}
    model = Model("m", url=f"{server.address}/{parts[0].name}", sha256=tuple(map(digest, parts)))
    path = model_path(model)
    assert inspect_gguf(path).shards == 3
    assert path.name == "big-00001-of-00003.gguf"
    with pytest.raises(BadInput, match=r"E-model-digests: .*3 files, 1 digests"):
        model_path(Model("m", url=model.url, sha256=model.sha256[:1]))


@pytest.mark.usefixtures("cache")
def test_a_split_model_goes_on_with_the_part_that_broke(server: Shelf, micro_file: Path, tmp_path: Path) -> None:
    """Parts that are whole are not fetched again."""
    parts = split(micro_file, tmp_path, 2, name="big")
    server.files |= {f"/{part.name}": part.read_bytes() for part in parts}
    server.cut[f"/{parts[1].name}"] = 1000
    model = Model("m", url=f"{server.address}/{parts[0].name}", sha256=tuple(map(digest, parts)))
    with pytest.raises(Infrastructure, match="E-fetch-failed"):
        model_path(model)
    model_path(model)
    assert [path for path, _ in server.asked] == [f"/{parts[0].name}", f"/{parts[1].name}", f"/{parts[1].name}"]


def test_fetching_that_is_told_to_stop_is_gone_on_with(server: Shelf, micro_file: Path, tmp_path: Path) -> None:
    """Between two pieces; what had come is not fetched again."""
    url, sha256 = f"{server.address}/to/Micro-Q4.gguf", (digest(micro_file),)
    came: list[int] = []
    server.silent.add("/to/Micro-Q4.gguf")

    def report(_: str, done: int, __: int) -> None:
        came.append(done)

    with pytest.raises(Stopped):
        fetch_model(url, sha256, Fetching(tmp_path, report, should_stop=lambda: bool(came)))
    assert [each.kind for each in held_models(tmp_path)] == ["unfinished"]
    server.silent.clear()
    assert fetch_model(url, sha256, Fetching(tmp_path))[0].read_bytes() == micro_file.read_bytes()
    (_, first), (_, second) = server.asked
    assert not first
    assert second.startswith("bytes=")


def test_what_is_no_model_is_refused(cache: Path, tmp_path: Path) -> None:
    """A web page with the right digest is no model, and does not count as one."""
    page = tmp_path / "page.gguf"
    page.write_text("<html>")
    model = Model("m", url=page.as_uri(), sha256=(digest(page),))
    with pytest.raises(BadInput, match="E-not-gguf"):
        model_path(model)
    assert [held.kind for held in held_models(cache)] == ["unfinished"]


@pytest.mark.usefixtures("cache")
def test_a_damaged_copy_is_fetched_again(server: Shelf, remote: Model) -> None:
    """A file that was cut short in the cache does not count."""
    path = model_path(remote)
    path.write_bytes(path.read_bytes()[:1000])
    assert inspect_gguf(model_path(remote)).layers == 1
    assert len(server.asked) == 2


def test_a_file_that_lies_here_is_held_against_its_digest(micro_file: Path, tmp_path: Path) -> None:
    """Path and digest: the file that is meant, or an error with both digests."""
    assert model_path(Model("m", path=str(micro_file), sha256=(digest(micro_file),))) == micro_file
    with pytest.raises(BadInput, match="E-digest-mismatch"):
        model_path(Model("m", path=str(micro_file), sha256=("b" * 64,)))
    parts = split(micro_file, tmp_path, 2)
    digests = tuple(map(digest, parts))
    assert model_path(Model("m", path=str(parts[1]), sha256=digests)) == parts[0]
    with pytest.raises(BadInput, match=r"E-digest-mismatch: .*00002"):
        model_path(Model("m", path=str(parts[0]), sha256=(digests[0], digests[0])))


class TestQuota:
    """Room for one more: what nobody uses goes, longest unused first."""

    @pytest.fixture(autouse=True)
    def _quota(self, micro_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        size = micro_file.stat().st_size * 2.5
        monkeypatch.setenv(CACHE_GIB, f"{size / 1024**3:.9f}")

    def test_the_longest_unused_goes_first(self, cache: Path, tmp_path: Path) -> None:
        """Of three models two fit; the one that was wanted again stays."""
        first, second, third = other_models(tmp_path, 3)
        model_path(first)
        model_path(second)
        model_path(first)
        model_path(third)
        assert sorted(held.name for held in held_models(cache)) == ["o0.gguf", "o2.gguf"]
        assert not list((cache / "fetched").glob("*/o1.gguf"))

    def test_what_a_job_uses_stays(self, cache: Path, tmp_path: Path) -> None:
        """Models in use are never removed; if nothing else is there, the error names them."""
        first, second, third = other_models(tmp_path, 3)
        with cache_held():
            paths = [model_path(first), model_path(second)]
            with pytest.raises(Infrastructure) as full:
                model_path(third)
            assert all(path.exists() for path in paths)
        assert full.value.slug == "E-cache-full"
        assert "o0.gguf" in full.value.message
        assert "in use" in full.value.message
        assert model_path(third).exists()
        assert len(held_models(cache)) == 2

    def test_another_process_counts_as_user(self, cache: Path, tmp_path: Path) -> None:
        """The kernel knows who uses a model, and that a killed process no longer does."""
        first, second, third = other_models(tmp_path, 3)
        code = (
            "import sys, json\nfrom harness.domain.model import Model\nfrom harness.models.request import model_path\n"
            "from harness.models.usage import cache_held\n"
            "with cache_held():\n"
            " for url, digest in json.loads(sys.argv[1]): model_path(Model('m', url=url, sha256=(digest,)))\n"
            " print('held', flush=True)\n sys.stdin.read()\n"
        )
        wanted = json.dumps([(model.url, model.sha256[0]) for model in (first, second)])
        environment = {**child_environment(), "MOE_CACHE_DIR": str(cache)}
        user = subprocess.Popen(
            [sys.executable, "-c", code, wanted],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert user.stdout is not None
        assert user.stdout.readline() == "held\n"
        with pytest.raises(Infrastructure, match="E-cache-full"):
            model_path(third)
        user.kill()
        user.communicate()
        assert model_path(third).exists()

    def test_made_models_make_room_too(self, cache: Path, tmp_path: Path) -> None:
        """The quota is over both kinds."""
        model_path(other_models(tmp_path, 1)[0])
        ensure_model(micro_card(seed=1), "F16")
        made = ensure_model(micro_card(seed=2), "F16")
        kinds = [held.kind for held in held_models(cache)]
        assert kinds == ["made", "made"]
        assert made.exists()

    def test_the_source_of_a_quantization_is_not_what_makes_room(
        self, cache: Path, micro_file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Rather no room than a quantizer whose input is gone."""
        need_quantizer()
        size = micro_file.stat().st_size
        monkeypatch.setenv(CACHE_GIB, f"{size * 1.1 / 1024**3:.9f}")
        with pytest.raises(Infrastructure, match="E-cache-full"):
            ensure_model(micro_card(), "Q8_0")
        assert [held.kind for held in held_models(cache)] == ["made"]
        monkeypatch.setenv(CACHE_GIB, f"{size * 2.5 / 1024**3:.9f}")
        assert ensure_model(micro_card(), "Q8_0").exists()

    def test_a_model_above_the_quota_removes_nothing(
        self, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What can't fit anyway costs nobody's model."""
        first, second = other_models(tmp_path, 2)
        model_path(first)
        monkeypatch.setenv(CACHE_GIB, "0.0000001")
        with pytest.raises(Infrastructure, match=r"E-cache-full.*needed, the quota is 107 bytes;"):
            model_path(second)
        assert [held.name for held in held_models(cache) if held.kind == "fetched"] == ["o0.gguf"]

    def test_a_quota_that_is_no_size_is_told(self, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A slip is no licence to fill the disk."""
        monkeypatch.setenv(CACHE_GIB, "0")
        with pytest.raises(BadInput, match="E-bad-setting: MOE_CACHE_GIB"):
            cache_shelf.make_room(cache, 1)


def test_without_a_quota_nothing_is_removed(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sets none keeps everything."""
    monkeypatch.delenv(CACHE_GIB, raising=False)
    for model in other_models(tmp_path, 3):
        model_path(model)
    assert len(held_models(cache)) == 3


def test_an_address_that_can_not_be_fetched_is_told_also_where_the_cache_has_the_file(
    cache: Path, remote: Model
) -> None:
    """The next node has no such luck."""
    model_path(remote)
    for address in ("ftp://host/Real.gguf", "/models/Real.gguf", "http://host/Real.gguf"):
        with pytest.raises(BadInput, match="E-bad-address"):
            fetch_model(address, remote.sha256, Fetching(cache))


def test_a_lock_that_is_held_for_ever_is_named(cache: Path, remote: Model) -> None:
    """Who fetches for longer than anybody waits is named by the folder."""
    place = cache / "fetched" / remote.sha256[0][:16]
    place.parent.mkdir(parents=True)
    with FileLock(lock_of(place)), pytest.raises(HarnessError, match="E-cache-busy"):
        fetch_model(remote.url, remote.sha256, Fetching(cache, lock_seconds=0.2))
