"""The commands that show and remove what lies in the cache."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from filelock import FileLock
from micro_model import micro_card

from harness.cli.models import models
from harness.domain.errors import BadInput
from harness.models.cache import ensure_model, record_of
from harness.models.hashing import file_sha256
from harness.models.shelf import held_models, named
from harness.models.usage import alone_with, cache_held, want


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with a made model, a fetched one and a transfer that broke off."""
    root = tmp_path / "cache"
    monkeypatch.setenv("MOE_CACHE_DIR", str(root))
    made = ensure_model(micro_card(), "F16")
    source = made.rename(tmp_path / "Real.gguf")
    made.with_suffix(".json").unlink()
    ensure_model(micro_card(), "F16")
    run("fetch", source.as_uri(), file_sha256(source))
    broken = root / "fetched" / "0123456789abcdef"
    broken.mkdir()
    (broken / ".Big.gguf.partial").write_bytes(b"x" * 1000)
    return root


def run(*arguments: str) -> Any:
    ended = CliRunner().invoke(models, list(arguments))
    if ended.exception is not None:
        raise ended.exception
    return ended


def test_the_list_tells_kind_size_and_use(cache: Path) -> None:
    """One row a model, in JSON too, and the sum against the quota."""
    listed = json.loads(run("list", "--format", "json").stdout)
    assert min((row["name"], row["kind"]) for row in listed["models"]) == ("Big.gguf", "unfinished")
    assert {row["kind"] for row in listed["models"]} == {"made", "fetched", "unfinished"}
    assert listed["bytes"] == sum(row["bytes"] for row in listed["models"])
    assert listed["quota"] is None
    assert listed["folder"] == str(cache)
    assert "Real.gguf" in run("list").stdout


def test_a_model_is_removed_by_its_name(cache: Path) -> None:
    """Its files, its record and its folder are gone; the others stay."""
    run("remove", "Real")
    assert sorted(held.kind for held in held_models(cache)) == ["made", "unfinished"]
    assert not list((cache / "fetched").glob("*/Real.gguf"))
    run("remove", "Big.gguf", "micro-moe")
    assert held_models(cache) == ()


def test_what_a_killed_maker_left_is_listed_and_removed(cache: Path) -> None:
    """Gibibytes that nobody will ever use again are not hidden."""
    left = cache / "models" / ".half-F16-0123456789abcdef.gguf.0a1b2c3d4e5f.part"
    left.write_bytes(b"x" * 2000)
    found = named(held_models(cache), "half-F16")
    assert (found.kind, found.size, found.in_use) == ("unfinished", 2000, False)
    run("remove", "half-F16")
    assert not left.exists()


def test_what_is_used_is_not_removed(cache: Path) -> None:
    """A running job keeps its model."""
    real = named(held_models(cache), "Real.gguf")
    with cache_held():
        assert want(real.record)
        with pytest.raises(BadInput, match=r"E-in-use: Real\.gguf: it is used by a job"):
            run("remove", "Real.gguf")
        assert named(held_models(cache), "Real.gguf").in_use
    run("remove", "Real.gguf")


def test_a_transfer_that_goes_on_is_in_use(cache: Path) -> None:
    """What somebody is fetching right now is left alone."""
    broken = named(held_models(cache), "Big.gguf")
    with FileLock(broken.record):
        assert named(held_models(cache), "Big.gguf").in_use
        with pytest.raises(BadInput, match=r"E-in-use: Big\.gguf: it is still being fetched or made"):
            run("remove", "Big.gguf")


def test_a_name_that_fits_none_or_several_is_told(cache: Path) -> None:
    """With the nearest name, or that it is not one model's."""
    with pytest.raises(BadInput, match=r"E-not-cached: the cache has no model or build.*did you mean 'Real\.gguf'"):
        named(held_models(cache), "Rael.gguf")
    with pytest.raises(BadInput, match=r"E-ambiguous-name: '' fits 3 of .*Real\.gguf"):
        named(held_models(cache), "")


def test_a_model_that_was_removed_meanwhile_is_not_wanted_any_more(cache: Path) -> None:
    """Who comes between looks again."""
    made = next(held for held in held_models(cache) if held.kind == "made")
    with alone_with(made.record) as alone:
        assert alone
    made.record.unlink()
    assert not want(made.record)


@pytest.mark.usefixtures("cache")
def test_nothing_is_held_outside_of_jobs() -> None:
    """A command that only asks for a path keeps nobody from removing it."""
    model = ensure_model(micro_card(), "F16")
    assert want(record_of(model))
    with alone_with(record_of(model)) as alone:
        assert alone


def test_an_empty_cache_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything was made there is nothing, and no error."""
    monkeypatch.setenv("MOE_CACHE_DIR", str(tmp_path / "none"))
    assert json.loads(run("list", "--format", "json").stdout)["models"] == []
    assert "nothing" in run("list").stdout


def test_a_digest_that_is_none_is_told(cache: Path) -> None:
    """It is part of a path in the cache: only hexadecimal digits get there."""
    assert cache.exists()
    with pytest.raises(BadInput, match="E-bad-digest"):
        run("fetch", "https://example.org/m.gguf", "../../x")
