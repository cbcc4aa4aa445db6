"""Finding, loading and extending matrix files."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning_support import BASE

from harness.domain.errors import BadInput
from harness.planning import load as load_module
from harness.planning.load import find_matrix, load_matrix


def test_without_a_name_the_checkouts_local_matrix_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """./matrices/local.toml comes before the packaged copy."""
    (tmp_path / "matrices").mkdir()
    mine = tmp_path / "matrices" / "local.toml"
    mine.write_text(BASE)
    monkeypatch.chdir(tmp_path)
    assert find_matrix().resolve() == mine


def test_outside_a_checkout_the_packaged_copy_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no ./matrices the package's own local matrix is found."""
    monkeypatch.chdir(tmp_path)
    found = find_matrix()
    assert found.name == "local.toml"
    assert load_matrix(found).name == "local"


def test_a_bare_name_finds_a_packaged_matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`qwen3-30b-a3b` needs no path."""
    monkeypatch.chdir(tmp_path)
    assert load_matrix(find_matrix("qwen3-30b-a3b")).name == "qwen3-30b-a3b"


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    """A path to a file wins over names."""
    file = tmp_path / "x.toml"
    file.write_text(BASE)
    assert find_matrix(file) == file


@pytest.mark.parametrize("wanted", ["lcal", "matrices/lcal.toml"])
def test_a_wrong_name_leads_to_the_right_one(wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint comes from packaged names, or from the files beside the path."""
    (tmp_path / "matrices").mkdir()
    (tmp_path / "matrices" / "local.toml").write_text(BASE)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput) as caught:
        find_matrix(wanted)
    assert caught.value.slug == "E-matrix-missing"
    assert caught.value.where == wanted
    assert caught.value.hint == "did you mean 'local'?"


def test_loading_a_missing_file_says_so(tmp_path: Path) -> None:
    """load_matrix names the file even where nothing resembles it."""
    with pytest.raises(BadInput, match=r"E-matrix-missing: .*no\.toml: there is no such matrix"):
        load_matrix(tmp_path / "no.toml")


def test_no_matrices_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any matrix to propose there is an error without a hint."""
    monkeypatch.setattr(load_module, "matrix_folders", lambda: (tmp_path,))
    with pytest.raises(BadInput) as caught:
        find_matrix("zzz")
    assert caught.value.hint == ""


def test_paths_are_relative_to_the_file_that_says_them(tmp_path: Path) -> None:
    """Builds, models and card files do not depend on the current folder; names of cards stay names."""
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    text = (
        BASE
        + "[builds.x]\nfork = 'llama.cpp'\npath = '../bin/llama-bench'\n"
        + "[models.y]\npath = 'y.gguf'\n[models.z]\ncard = './z.json'\n"
    )
    (folder / "m.toml").write_text(text)
    matrix = load_matrix(folder / "m.toml")
    assert matrix.builds["x"].path == str(tmp_path / "a" / "bin" / "llama-bench")
    assert matrix.models["y"].path == str(folder / "y.gguf")
    assert matrix.models["z"].card == str(folder / "z.json")
    assert matrix.models["tiny"].card == "tiny-moe"


def test_extends_merges_tables_and_appends_lists(tmp_path: Path) -> None:
    """The file on top wins key by key; its workloads come after the base's."""
    (tmp_path / "base.toml").write_text(BASE + "[flags]\nfa = 0\nub = 512\n[policy]\nblocks = 2\nwarmup = 1\n")
    (tmp_path / "top.toml").write_text(
        'extends = "base.toml"\nname = "top"\n[flags]\nfa = [0, 1]\n[policy]\nblocks = 8\n[[workloads]]\npp = 9\n'
    )
    matrix = load_matrix(tmp_path / "top.toml")
    assert matrix.name == "top"
    assert matrix.flags == {"fa": (0, 1), "ub": (512,)}
    assert (matrix.policy.blocks, matrix.policy.warmup) == (8, 1)
    assert [entry.pp for entry in matrix.workloads] == [64, 0, 9]


def test_extends_errors_name_the_file_and_its_own_index(tmp_path: Path) -> None:
    """A fault is looked for where it was written, not at its merged index."""
    (tmp_path / "base.toml").write_text(BASE + "[flags]\nfmo = 1\n")
    (tmp_path / "top.toml").write_text('extends = "base.toml"\n[[workloads]]\npp = 1\nx = 1\n')
    with pytest.raises(BadInput) as caught:
        load_matrix(tmp_path / "top.toml")
    assert "top.toml: workloads[0].x: unknown key" in caught.value.message
    assert "base.toml: flags.fmo: unknown flag" in caught.value.message


def test_extends_relative_paths_belong_to_the_base(tmp_path: Path) -> None:
    """A base in another folder keeps its own paths."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "base.toml").write_text(BASE + "[models.y]\npath = 'y.gguf'\n")
    (tmp_path / "top.toml").write_text('extends = "shared/base.toml"\n')
    assert load_matrix(tmp_path / "top.toml").models["y"].path == str(tmp_path / "shared" / "y.gguf")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('extends = "m.toml"', "the file extends itself: "),
        ('extends = "./m.toml"', "m.toml -> "),
        ('extends = "gone.toml"', "there is no file 'gone.toml'"),
        ("extends = 3", "expected a file name, found 3"),
    ],
)
def test_bad_extends(tmp_path: Path, text: str, message: str) -> None:
    """Loops, missing bases and wrong types are refused."""
    (tmp_path / "m.toml").write_text(text + BASE)
    with pytest.raises(BadInput, match=message) as caught:
        load_matrix(tmp_path / "m.toml")
    assert caught.value.slug == "E-matrix-extends"


def test_a_packaged_matrix_is_extended_by_its_name(tmp_path: Path) -> None:
    """A file says only what is its own: paths of builds, say. A file of the name beside it comes first."""
    mine = tmp_path / "mine.toml"
    mine.write_text("name = 'mine'\nextends = 'local'\n[models.tiny-q4km]\ncard = 'tiny-moe'\nquant = 'Q8_0'\n")
    made = load_matrix(mine)
    assert (made.name, made.models["tiny-q4km"].quant, "ik" in made.builds) == ("mine", "Q8_0", True)
    (tmp_path / "local").write_text(BASE)
    assert "tiny-iq4xs" not in load_matrix(mine).models


def test_a_file_may_have_the_name_of_what_it_extends(tmp_path: Path) -> None:
    """It extends the packaged one and not itself."""
    mine = tmp_path / "local.toml"
    mine.write_text("name = 'mine'\nextends = 'local'\n")
    assert load_matrix(mine).name == "mine"


def test_a_misspelt_base_leads_to_the_packaged_one(tmp_path: Path) -> None:
    """Neither a file nor a packaged matrix: the error says both, and the nearest."""
    mine = tmp_path / "mine.toml"
    mine.write_text("name = 'mine'\nextends = 'loca'\n")
    with pytest.raises(BadInput) as caught:
        load_matrix(mine)
    assert (caught.value.slug, caught.value.hint) == ("E-matrix-extends", "did you mean 'local'?")


def test_entries_of_a_base_are_said_anew_by_name(tmp_path: Path) -> None:
    """A contrast of the same name, a memory limit of the same arms: replaced in their place. All else is added."""
    contrast = "[[contrasts]]\nname = '{}'\nfactor = 'fa'\nbaseline = 0\ncandidate = 1\nexpect = '{}'\n"
    memory = "[[checks]]\nkind = 'memory'\nmax_rss_mib = {}\n{}"
    base = tmp_path / "base.toml"
    of_ik = "where = { build = 'ik' }\n"
    base.write_text(
        BASE
        + contrast.format("a", "improved")
        + contrast.format("b", "improved")
        + memory.format("1.0", "")
        + memory.format("2.0", of_ik)
    )
    mine = tmp_path / "mine.toml"
    mine.write_text(
        "name = 'mine'\nextends = 'base.toml'\n"
        + contrast.format("a", "report")
        + contrast.format("c", "report")
        + memory.format("8.0", of_ik)
        + "[[workloads]]\npp = 64\n"
    )
    with pytest.raises(BadInput, match=r"mine\.toml: workloads\[0\]: 'pp64' is declared twice"):
        load_matrix(mine)
    mine.write_text(mine.read_text().replace("pp = 64", "pp = 128"))
    made = load_matrix(mine)
    assert [(entry.name, entry.expect) for entry in made.contrasts] == [
        ("a", "report"),
        ("b", "improved"),
        ("c", "report"),
    ]
    assert [check.max_rss_mib for check in made.checks if check.kind == "memory"] == [1.0, 8.0]
    assert [made.source.at("contrasts", index).split("/")[-1] for index in range(3)] == [
        "mine.toml: contrasts[0]",
        "base.toml: contrasts[1]",
        "mine.toml: contrasts[1]",
    ]
    assert len(made.workloads) == 3


def test_a_name_twice_in_one_file_is_still_an_error(tmp_path: Path) -> None:
    """Replacing is for files on top of one another."""
    file = tmp_path / "m.toml"
    file.write_text(BASE + "[[contrasts]]\nname = 'a'\nfactor = 'fa'\nbaseline = 0\ncandidate = 1\n" * 2)
    with pytest.raises(BadInput, match="E-duplicate-name"):
        load_matrix(file)
