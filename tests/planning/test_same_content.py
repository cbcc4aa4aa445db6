"""Contrasts of two names for one thing are refused where they are planned, and not after they have run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from planning_support import load, refusal

from harness.builds.baselines import set_baseline
from harness.builds.catalogue import add_build
from harness.builds.entry import BuildEntry

DIGEST = "0f3a5e0c1b6d4a7f8e9d0c1b2a3f4e5d6c7b8a9f0e1d2c3b4a5f6e7d8c9b0a1f"
CONTRAST = '[[contrasts]]\nname = "c"\nfactor = "{factor}"\nbaseline = "one"\ncandidate = "two"\n'
RECIPE = 'name = "r"\nfork = "ik_llama.cpp"\nrepository = "sources"\nbuild = ["make"]\n'


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("MOE_CONFIG_DIR", str(tmp_path / "config"))


def build_in(folder: Path, text: str = "#!/bin/sh\n") -> Path:
    folder.mkdir(parents=True)
    (folder / "llama-bench").write_text(text)
    (folder / "llama-bench").chmod(0o755)
    return folder


def builds(one: str, two: str) -> str:
    """Two builds of one fork, and a contrast of them."""
    fork = 'fork = "ik_llama.cpp"\n'
    return f"[builds.one]\n{fork}{one}\n[builds.two]\n{fork}{two}\n" + CONTRAST.format(factor="build")


ARCHIVE = f'variants = [{{{{ url = "https://example.org/{{name}}.tar.gz", sha256 = "{DIGEST}" }}}}]'


@pytest.mark.parametrize(
    ("one", "two", "said"),
    [
        pytest.param('wheel = "ik-llama-cpp-python"', 'wheel = "ik-llama-cpp-python"', "the wheel ik", id="wheel"),
        pytest.param('path = "bin"', 'path = "bin/llama-bench"', "bin/llama-bench", id="folder and program"),
        pytest.param('path = "bin"', 'path = "link"', "bin/llama-bench", id="link"),
        pytest.param('path = "bin"', 'path = "copy"', "the same bytes", id="copy"),
        pytest.param(ARCHIVE.format(name="a"), ARCHIVE.format(name="b"), "the same files", id="archive"),
        pytest.param('recipe = "r.toml"', 'recipe = "again.toml"', "by one recipe", id="recipe"),
    ],
)
def test_two_names_of_one_build_are_no_contrast(tmp_path: Path, one: str, two: str, said: str) -> None:
    """With what both are, at the candidate."""
    build_in(tmp_path / "bin")
    (tmp_path / "link").symlink_to("bin")
    shutil.copytree(tmp_path / "bin", tmp_path / "copy")
    for name in ("r.toml", "again.toml"):
        (tmp_path / name).write_text(RECIPE)
    error = refusal(tmp_path, builds(one, two))
    assert (error.slug, error.where) == ("E-no-contrast", "m.toml: contrasts[0].candidate")
    assert error.message.startswith("'one' and 'two' are one build: both are")
    assert said in error.message


@pytest.mark.parametrize("other", ["other", "gone"])
def test_builds_that_are_not_known_to_be_one_can_be_compared(tmp_path: Path, other: str) -> None:
    """Other bytes of the same size; or files that are not on this machine."""
    build_in(tmp_path / "bin")
    build_in(tmp_path / "other", "#!/bin/ls\n")
    assert load(tmp_path, builds('path = "bin"', f'path = "{other}"')).contrasts


def test_a_baseline_and_its_name_are_one_build(tmp_path: Path) -> None:
    """The word of a branch leads to the same files."""
    path = str(build_in(tmp_path / "bin"))
    add_build("kept", BuildEntry(fork="ik_llama.cpp", path=path), {})
    set_baseline("main", "kept")
    declared = '[builds.one]\ncatalogue = "@main"\n[builds.two]\ncatalogue = "kept"\n'
    error = refusal(tmp_path, declared + CONTRAST.format(factor="build"))
    assert error.slug == "E-no-contrast"
    assert "are one build: both are" in error.message


def test_a_factor_of_an_attribution_is_held_to_the_same(tmp_path: Path) -> None:
    """At its place in the list."""
    wheel = 'wheel = "ik-llama-cpp-python"'
    text = builds(wheel, wheel).partition("[[contrasts]]")[0] + (
        '[[contrasts]]\nname = "a"\nkind = "attribution"\nfactors = [\n'
        '{ factor = "build", baseline = "one", candidate = "two" },\n'
        '{ factor = "configuration", baseline = {}, candidate = { fa = 0 } },\n]\n'
    )
    assert refusal(tmp_path, text).where == "m.toml: contrasts[0].factors[0].candidate"


@pytest.mark.parametrize(
    ("one", "two"),
    [
        pytest.param('path = "m.gguf"', 'path = "./m.gguf"', id="path"),
        pytest.param(f'path = "m.gguf"\nsha256 = "{DIGEST}"', f'sha256 = "{DIGEST.upper()}"', id="digest"),
        pytest.param('card = "tiny-moe"\nquant = "Q8_0"', 'card = "tiny-moe"\nquant = "q8_0"', id="card"),
    ],
)
def test_two_names_of_one_model_are_no_contrast(tmp_path: Path, one: str, two: str) -> None:
    """Whether it is here or not."""
    error = refusal(tmp_path, f"[models.one]\n{one}\n[models.two]\n{two}\n" + CONTRAST.format(factor="model"))
    assert (error.slug, error.where) == ("E-no-contrast", "m.toml: contrasts[0].candidate")
    assert error.message.startswith("'one' and 'two' are one model: both are")
