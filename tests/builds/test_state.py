"""The catalogue and the baselines of branches: what is kept, and what is said where something is wrong."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from harness.builds.baselines import baselines, drift, entry_of_word, history, keeping, roll_back, set_baseline
from harness.builds.catalogue import add_build, catalogue_file, catalogued
from harness.builds.declared import catalogued_build
from harness.builds.entry import BuildEntry
from harness.builds.provenance import short_commit
from harness.builds.state_file import config_folder
from harness.domain.build import Build, BuildSource, Fork, Patch, Platform, Variant
from harness.domain.errors import BadInput


def add(name: str, **said: Any) -> None:
    table = {"fork": "llama.cpp", "path": f"/builds/{name}", **said}
    add_build(name, BuildEntry.model_validate({key: value for key, value in table.items() if value}), {"commit": "c"})


def test_what_is_added_is_read_back() -> None:
    """With its variants and what it is said to be made of."""
    variants = [
        {"gpu": "nvidia", "gpu_arch": ["9.0"], "url": "https://x/a.tar", "sha256": "0" * 64},
        {"isa": ["avx2"], "path": "/cpu"},
    ]
    source = {
        "commit": "a" * 40,
        "cmake": {"GGML_CUDA": True, "GGML_BLAS": "OFF"},
        "patches": [{"file": "p/x.patch", "sha256": "1" * 64}],
    }
    add("mine", path=None, variants=variants, source=source)
    assert catalogued("mine").told == {"commit": "c"}
    assert catalogued_build("mine", "x") == Build(
        "x",
        Fork.LLAMA_CPP,
        variants=(
            Variant(Platform(gpu="nvidia", gpu_arch=("9.0",)), url="https://x/a.tar", sha256="0" * 64),
            Variant(Platform(isa=("avx2",)), path="/cpu"),
        ),
        source=BuildSource(
            commit="a" * 40,
            patches=(Patch("x.patch", "1" * 64),),
            cmake=(("GGML_BLAS", "OFF"), ("GGML_CUDA", "ON")),
        ),
    )


def test_a_name_means_one_build_until_somebody_says_otherwise() -> None:
    """Saying the same again is no error."""
    add("mine")
    add("mine")
    with pytest.raises(BadInput, match="E-duplicate-name"):
        add("mine", path="/other")
    entry = BuildEntry.model_validate({"fork": "llama.cpp", "path": "/other"})
    add_build("mine", entry, {}, replace=True)
    assert catalogued_build("mine").path == "/other"


@pytest.mark.parametrize("name", ["", "a b", "@main", "-x", "a" * 101])
def test_a_name_is_one_that_a_matrix_can_say(name: str) -> None:
    with pytest.raises(BadInput, match="E-bad-name"):
        add(name, path="/x")


def test_a_table_tells_a_changed_source_from_its_commit() -> None:
    """A build and its patched one have the same commit."""
    assert short_commit("a" * 40) == "a" * 12
    assert short_commit("a" * 40 + " with changes") == "a" * 12 + " with changes"
    assert short_commit("") == ""


def test_an_unknown_name_is_told_with_the_nearest() -> None:
    add("patched")
    with pytest.raises(BadInput) as refused:
        catalogued("patcehd")
    assert (refused.value.slug, refused.value.hint) == ("E-unknown-build", "did you mean 'patched'?")


def test_additions_at_once_are_all_kept() -> None:
    """Under a lock, each on top of the other."""
    threads = [threading.Thread(target=add, args=(f"b{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(catalogue_file().read().builds) == 8


@pytest.mark.parametrize("text", ["", "[]", '{"builds": {"x": {"build": {}}}}', '{"builds": {"x": 1}}'])
def test_a_broken_catalogue_is_told_and_kept(text: str) -> None:
    """It may be a newer version's."""
    path = catalogue_file().path
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(BadInput, match="E-catalogue-unreadable"):
        add("mine")
    assert path.read_text() == text


def test_settings_lie_where_the_system_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable of our own first, then the desktop's rule."""
    assert config_folder() == tmp_path / "config"
    monkeypatch.delenv("MOE_CONFIG_DIR")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/xdg")
    assert config_folder() == Path("/xdg/moe-harness")
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert config_folder() == Path.home() / ".config" / "moe-harness"


# ---- baselines -------------------------------------------------------------------------------------------------------


@pytest.fixture
def three() -> None:
    for name in ("b1", "b2", "b3"):
        add(name)


@pytest.mark.usefixtures("three")
def test_the_last_one_that_was_set_holds() -> None:
    """With who, when and why, and those before it."""
    set_baseline("main", "b1", "release")
    set_baseline("main", "b2", "faster")
    set_baseline("release/2.0", "b1")
    assert [(change.build, change.why) for change in history("main")] == [("b1", "release"), ("b2", "faster")]
    assert all(change.who and change.when.tzinfo for change in history("main"))
    assert {branch: changes[-1].build for branch, changes in baselines().items()} == {"main": "b2", "release/2.0": "b1"}
    assert entry_of_word("@main")[0] == "b2"
    assert entry_of_word("b3")[0] == "b3"
    assert catalogued_build("@release/2.0").path == "/builds/b1"


@pytest.mark.usefixtures("three")
def test_rolling_back_goes_back_step_by_step() -> None:
    """Not to and fro between the last two; the history keeps what was."""
    for name in ("b1", "b2", "b3"):
        set_baseline("main", name)
    assert [roll_back("main", "it was slower").build, roll_back("main").build] == ["b2", "b1"]
    assert [change.build for change in history("main")] == ["b1", "b2", "b3", "b2", "b1"]
    assert [change.rollback for change in history("main")] == [False, False, False, True, True]
    with pytest.raises(BadInput, match="E-no-earlier-baseline: 'b1' is the oldest baseline of main"):
        roll_back("main")
    set_baseline("main", "b3")
    assert roll_back("main").build == "b1"


@pytest.mark.usefixtures("three")
def test_a_baseline_is_a_build_of_the_catalogue() -> None:
    with pytest.raises(BadInput, match="E-unknown-build"):
        set_baseline("main", "b4")
    assert baselines() == {}


@pytest.mark.usefixtures("three")
def test_faults_of_baselines_are_told() -> None:
    set_baseline("main", "b1")
    with pytest.raises(BadInput, match="E-no-change"):
        set_baseline("main", "b1")
    with pytest.raises(BadInput) as refused:
        entry_of_word("@mian")
    assert (refused.value.slug, refused.value.hint) == ("E-no-baseline", "did you mean 'main'?")
    with pytest.raises(BadInput, match="E-no-baseline"):
        roll_back("other")
    with pytest.raises(BadInput, match="E-bad-name"):
        set_baseline("-x", "b1")


@pytest.mark.usefixtures("three")
def test_a_baseline_stays_what_its_name_meant_when_it_was_set() -> None:
    """Whatever the name means later, here or after a rollback; and it can be set again to what the name means now."""
    set_baseline("main", "b1")
    replaced = BuildEntry.model_validate({"fork": "llama.cpp", "path": "/builds/other"})
    assert keeping("b1", replaced) == ("main",)
    add_build("b1", replaced, {}, replace=True)
    assert catalogued_build("@main").path == "/builds/b1"
    assert catalogued_build("b1").path == "/builds/other"
    assert drift(history("main")[-1]).startswith("the name 'b1' means another build now, ")
    set_baseline("main", "b2")
    assert roll_back("main").entry.build.path == "/builds/b1"
    assert catalogued_build("@main").path == "/builds/b1"
    set_baseline("main", "b1")
    assert catalogued_build("@main").path == "/builds/other"
    assert drift(history("main")[-1]) == ""
    assert keeping("b1", replaced) == ()


def test_a_baseline_whose_files_changed_is_refused(tmp_path: Path) -> None:
    """A build folder of one's own is compiled into again and again; nobody can bring the old files back."""
    program = tmp_path / "mine" / "llama-bench"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho old\n")
    program.chmod(0o755)
    add("mine", path=str(program.parent))
    set_baseline("main", "mine")
    assert catalogued_build("@main").path == str(program.parent)
    program.write_text("#!/bin/sh\necho newer\n")
    with pytest.raises(BadInput, match="E-baseline-changed: @main: the baseline 'mine' of main is not what") as refused:
        catalogued_build("@main")
    assert "moe-harness baseline set main mine" in refused.value.hint
    assert drift(history("main")[-1]) == "its files changed since"
    set_baseline("main", "mine")
    assert catalogued_build("@main").path == str(program.parent)


def test_a_recipe_is_no_baseline() -> None:
    """It would be another build with every commit."""
    add("r", path=None, fork=None, recipe="/r.toml")
    with pytest.raises(BadInput, match="E-baseline-recipe") as refused:
        set_baseline("main", "r")
    assert "builds make /r.toml --name NAME" in refused.value.hint
