"""Recipe files: what they say, and what is wrong with one, named with its key."""

from __future__ import annotations

from pathlib import Path

import pytest
from build_support import FASTER

from harness.builds.recipe_file import filled, is_url, read_recipe
from harness.domain.build import Fork
from harness.domain.errors import BadInput

GOOD = """name = "r"
fork = "llama.cpp"
repository = "repo"
build = ["make", "-j{jobs}"]
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "r.toml"
    file.write_text(text)
    return file


def test_a_recipe_with_defaults(tmp_path: Path) -> None:
    """One argument vector is one command; a repository beside the file is a path."""
    fork, recipe = read_recipe(written(tmp_path, GOOD))
    assert fork is Fork.LLAMA_CPP
    assert recipe.repository == str(tmp_path / "repo")
    assert (recipe.build, recipe.configure, recipe.outputs) == ((("make", "-j{jobs}"),), (), ("bin",))
    assert recipe.timeout_s == 7200


def test_an_example_of_every_key(tmp_path: Path) -> None:
    (tmp_path / "x.patch").write_text(FASTER)
    text = """name = "r"
fork = "ik_llama.cpp"
repository = "https://example.org/r.git"
merge_base = ["main", "pull/1/head"]
patches = ["x.patch"]
configure = [["cmake", "-S", "{source}", "-B", "{build}"], ["true", "${NOT_OURS}"]]
build = [["cmake", "--build", "{build}"]]
outputs = ["bin", "lib/*.so"]
environment = { CC = "gcc" }
timeout_minutes = 30
"""
    _, recipe = read_recipe(written(tmp_path, text.replace("30", "30.0")))
    assert recipe.merge_base == ("main", "pull/1/head")
    assert [patch.text for patch in recipe.patches] == [FASTER]
    assert recipe.environment == (("CC", "gcc"),)
    values = {"source": "/a b", "build": "/c", "jobs": "3"}
    assert filled(recipe.configure[0], values) == ("cmake", "-S", "/a b", "-B", "/c")
    assert filled(recipe.configure[1], values) == ("true", "${NOT_OURS}")


@pytest.mark.parametrize(
    ("before", "after", "slug", "said"),
    [
        pytest.param('"make"', '"make", "{bild}"', "E-recipe-invalid", "did you mean 'build'?", id="placeholder"),
        pytest.param(
            'build = ["make", "-j{jobs}"]', 'build = "make"', "E-recipe-invalid", "list of arguments", id="text"
        ),
        pytest.param(
            'build = ["make", "-j{jobs}"]', "build = []", "E-recipe-invalid", "build: is empty", id="no build"
        ),
        pytest.param("name", "nmae", "E-recipe-invalid", "did you mean 'name'?", id="key"),
        pytest.param('"repo"', '"ext::sh -c x"', "E-recipe-invalid", "can't be 'ext::sh -c x'", id="a program"),
        pytest.param('"repo"', '"--upload-pack=x"', "E-recipe-invalid", "can't be", id="an option"),
        pytest.param('"repo"', '"repo"\nrevision = "--x"', "E-recipe-invalid", "can't be '--x'", id="revision"),
        pytest.param(
            '"repo"', '"repo"\noutputs = ["../x"]', "E-recipe-invalid", "inside the build folder", id="outside"
        ),
        pytest.param(
            '"repo"', '"repo"\nrevision = "a"\nmerge_base = ["a", "b"]', "E-recipe-invalid", "takes either", id="both"
        ),
        pytest.param('"repo"', '"repo"\npatches = ["none.patch"]', "E-patch-missing", "none.patch", id="no patch"),
        pytest.param(
            '"repo"',
            f'"repo"\npatches = [{{ file = "r.toml", sha256 = "{"0" * 64}" }}]',
            "E-digest-mismatch",
            "has the digest",
            id="digest",
        ),
        pytest.param("=", "", "E-recipe-invalid", "not a TOML file", id="no TOML"),
    ],
)
def test_a_fault_is_named(tmp_path: Path, before: str, after: str, slug: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_recipe(written(tmp_path, GOOD.replace(before, after, 1)))
    assert refused.value.slug == slug
    assert said in str(refused.value)
    assert "r.toml" in refused.value.where


def test_a_recipe_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="E-recipe-missing"):
        read_recipe(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("word", "elsewhere"),
    [("https://x/y.git", True), ("git@host:x/y.git", True), ("ssh://h/x", True), ("../x", False), ("a:b/c", False)],
)
def test_what_lies_elsewhere(word: str, elsewhere: bool) -> None:
    assert is_url(word) is elsewhere
