"""``moe-harness builds`` and ``baseline``, as typed; and what a matrix and ``ab`` make of them."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "builds"))

import pytest
from build_support import commit as commit_all
from build_support import git, without_library

from harness.cli.main import entry
from harness.domain.build import Fork
from harness.domain.errors import BadInput
from harness.domain.model import Model
from harness.planning.load import load_matrix
from harness.planning.planner import make_plan
from harness.running.ab_arms import make_arms, read_arm

STANDIN = Path(__file__).parents[1] / "standin" / "llama_bench.py"
MATRIX = """
name = "m"
{builds}
[models.tiny]
path = "m.gguf"
[[workloads]]
pp = 32
[[contrasts]]
name = "patch"
factor = "build"
baseline = "old"
candidate = "new"
"""


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("MOE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, Any]]:
    """Run a command with ``--format json``: its exit code and what it printed."""

    def command(*words: str) -> tuple[int, Any]:
        with pytest.raises(SystemExit) as ended:
            entry([*words, "--format", "json"])
        told = capsys.readouterr()
        return int(ended.value.code or 0), json.loads(told.out)

    return command


def build_in(folder: Path, mark: str = "") -> Path:
    """A build folder with the stand-in."""
    folder.mkdir(parents=True)
    (folder / "llama-bench").write_text(STANDIN.read_text() + f"# {mark or folder.name}\n")
    (folder / "llama-bench").chmod(0o755)
    (folder / "standin.json").write_text('{"do": "rows"}')
    return folder


def archive_of(folder: Path) -> Path:
    archive = folder.with_suffix(".tar.gz")
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, arcname="build")
    return archive


def test_builds_are_added_listed_and_shown(tmp_path: Path, run: Callable[..., tuple[int, Any]]) -> None:
    """By path, by archive (its digest computed) and by wheel."""
    build_in(tmp_path / "mine")
    archive = archive_of(tmp_path / "mine")
    assert run("builds", "add", "by-path", "--path", "mine")[1]["fork"] == "ik_llama.cpp"
    assert run("builds", "add", "by-archive", "--archive", str(archive), "--fork", "ik_llama.cpp")[0] == 0
    assert run("builds", "add", "by-wheel", "--wheel", "ik-llama-cpp-python")[0] == 0
    run("baseline", "set", "main", "by-path", "--why", "release")
    code, listed = run("builds", "list")
    assert code == 0
    assert [(row["name"], row["fork"], row["baseline_of"]) for row in listed] == [
        ("by-archive", "ik_llama.cpp", []),
        ("by-path", "ik_llama.cpp", ["main"]),
        ("by-wheel", "ik_llama.cpp", []),
    ]
    _, shown = run("builds", "show", "by-archive")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert shown["build"]["variants"] == [{"url": archive.as_uri(), "sha256": digest}]
    program = next(path for path in shown["files"] if path.endswith("/llama-bench"))
    assert digest in program
    assert shown["files"][program] == hashlib.sha256((tmp_path / "mine" / "llama-bench").read_bytes()).hexdigest()
    assert shown["told"]["fork"] == "ik_llama.cpp"
    assert run("builds", "show", "@main")[1]["name"] == "by-path"
    assert run("builds", "show", "./mine")[1]["told"] == run("builds", "show", "by-path")[1]["told"]


def test_a_server_that_misses_a_library_is_told_where_its_build_is_kept_shown_and_planned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is no error: on the machine that will run it the library may be there."""
    without_library(build_in(tmp_path / "mine"), "llama-server")

    def told(*words: str) -> str:
        with pytest.raises(SystemExit) as ended:
            entry([*words])
        assert not ended.value.code
        printed = capsys.readouterr()
        return printed.out + printed.err

    said = "llama-server misses libmtmd.so"
    assert f"moe-harness: {said}: without its libraries a program" in told("builds", "add", "b", "--path", "mine")
    assert f"missing libraries        {said}\n" in told("builds", "show", "b")
    assert f"missing libraries        {said}\n" in told("builds", "show", "./mine")
    outputs = '[[checks]]\nkind = "outputs"\nname = "same"\ncontrasts = ["patch"]\nprompts = ["Hello there"]\n'
    builds = '[builds.old]\nfork = "ik_llama.cpp"\nwheel = "ik-llama-cpp-python"\n[builds.new]\ncatalogue = "b"\n'
    (tmp_path / "m.toml").write_text(MATRIX.format(builds=builds) + outputs)
    assert f"note (1 case): not on this machine: build new: {said}" in told("plan", "m.toml")


def test_tables_say_the_same_to_people(
    tmp_path: Path, run: Callable[..., tuple[int, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    build_in(tmp_path / "mine")
    run("builds", "add", "b", "--path", "mine")
    run("baseline", "set", "main", "b", "--why", "because")
    for words, said in (
        (["builds", "list"], "main"),
        (["builds", "show", "b"], "ik_llama.cpp"),
        (["baseline", "show"], "because"),
        (["baseline", "show", "main"], "because"),
    ):
        with pytest.raises(SystemExit) as ended:
            entry(words)
        assert not ended.value.code
        assert said in capsys.readouterr().out


def test_an_empty_list_says_how_to_fill_it(
    tmp_path: Path, run: Callable[..., tuple[int, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Headings above nothing say nothing; data stay data."""
    for words, said in (
        (["builds", "list"], "no builds in {}/config/builds.json: moe-harness builds add NAME"),
        (["baseline", "show"], "no baselines in {}/config/baselines.json: moe-harness baseline set BRANCH BUILD"),
    ):
        with pytest.raises(SystemExit):
            entry(words)
        assert capsys.readouterr().out.startswith(said.format(tmp_path))
        assert run(*words) == (0, [])


def test_a_build_with_variants_is_added_from_a_file(tmp_path: Path, run: Callable[..., tuple[int, Any]]) -> None:
    """The keys of a matrix; paths are relative to the file."""
    build_in(tmp_path / "files" / "cpu")
    (tmp_path / "files" / "b.toml").write_text(
        'fork = "ik_llama.cpp"\n[[variants]]\nmachine = "pdp11"\npath = "pdp"\n[[variants]]\npath = "cpu"\n'
    )
    code, row = run("builds", "add", "v", "--file", "files/b.toml")
    assert (code, row["told"]["program"]) == (0, str(tmp_path / "files" / "cpu" / "llama-bench"))


@pytest.mark.parametrize(
    ("words", "slug", "said"),
    [
        ([], "E-build-invalid", "expected one of --path, --archive, --wheel and --file, found none"),
        (["--path", "mine", "--wheel", "x"], "E-build-invalid", "found path and wheel"),
        (["--path", "none"], "E-build-missing", "no llama-bench at"),
        (["--wheel", "ik-llama-cpp-pyhton"], "E-build-invalid", "'fork' is missing"),
        (["--wheel", "xllamacp", "--fork", "llama.cpp"], "E-unknown-wheel", "xllamacp"),
        (["--archive", "none.tar"], "E-archive-missing", "no such archive"),
        (["--archive", "https://x/a.tar", "--fork", "llama.cpp"], "E-build-invalid", "'url' and 'sha256' go together"),
        (["--archive", "http://x/a.tar", "--sha256", "0" * 64, "--fork", "llama.cpp"], "E-build-invalid", "https://"),
        (["--path", "mine", "--commit", "xyz"], "E-build-invalid", "expected a commit"),
        (["--path", "mine", "--fork", "llama.cpp"], "E-wrong-fork", "is a llama-bench of ik_llama.cpp"),
        (["--file", "none.toml"], "E-build-invalid", "not a TOML file"),
    ],
)
def test_what_can_not_be_added_is_told(
    tmp_path: Path, run: Callable[..., tuple[int, Any]], words: list[str], slug: str, said: str
) -> None:
    build_in(tmp_path / "mine")
    code, told = run("builds", "add", "x", *words)
    assert (code, told["error"]["slug"]) == (2, slug)
    assert said in told["error"]["message"]
    assert run("builds", "list")[1] == []


def test_a_build_that_changed_since_is_refused(tmp_path: Path, run: Callable[..., tuple[int, Any]]) -> None:
    """A commit that was said holds from then on."""
    folder = build_in(tmp_path / "mine")
    version = folder / "llama-server"
    version.write_text("#!/bin/sh\necho 'version: 7 (abc1234)'\n")
    version.chmod(0o755)
    assert run("builds", "add", "b", "--path", "mine", "--commit", "abc1234567")[0] == 0
    version.write_text("#!/bin/sh\necho 'version: 8 (fff1234)'\n")
    (folder / "llama-bench").touch()
    code, told = run("builds", "show", "b")
    assert (code, told["error"]["slug"]) == (2, "E-build-mismatch")
    assert "commit abc1234567 was said, it is of fff1234" in told["error"]["message"]


def test_a_made_build_is_put_into_the_catalogue(tmp_path: Path, run: Callable[..., tuple[int, Any]]) -> None:
    """As what came out, not as the recipe: a baseline stays what it is."""
    build_in(tmp_path / "sources")
    commands = 'build = [["mkdir", "bin"], ["cp", "{source}/llama-bench", "{source}/standin.json", "bin"]]'
    (tmp_path / "r.toml").write_text(f'name = "r"\nfork = "ik_llama.cpp"\nrepository = "sources"\n{commands}\n')
    code, made = run("builds", "make", "r.toml", "--name", "made")
    assert code == 0
    assert (Path(made["path"]) / "bin" / "llama-bench").is_file()
    assert made["name"] == "made"
    _, shown = run("builds", "show", "made")
    assert shown["build"]["path"] == made["path"]
    assert shown["provenance"]["tree"] == made["tree"]


def recipe_of(folder: Path, *extra: str) -> Path:
    """A recipe that copies the stand-in, in place of compiling."""
    build_in(folder / "sources")
    commands = 'build = [["mkdir", "bin"], ["cp", "{source}/llama-bench", "{source}/standin.json", "bin"]]'
    head = ['name = "r"', 'fork = "ik_llama.cpp"', 'repository = "sources"', *extra]
    (folder / "r.toml").write_text("\n".join([*head, commands]) + "\n")
    return folder / "sources" / "llama-bench"


def test_a_name_that_is_taken_is_told_before_anything_is_compiled(
    tmp_path: Path, run: Callable[..., tuple[int, Any]]
) -> None:
    """An hour of compiling for a name would be lost; making the same again is fine."""
    recipe_of(tmp_path)
    build_in(tmp_path / "other")
    run("builds", "add", "taken", "--path", "other")
    for name, slug in (("taken", "E-duplicate-name"), ("@main", "E-bad-name")):
        code, told = run("builds", "make", "r.toml", "--name", name)
        assert (code, told["error"]["slug"]) == (2, slug)
    assert not list((tmp_path / "cache").glob("builds/made/*"))
    assert "--replace" in run("builds", "make", "r.toml", "--name", "taken")[1]["error"]["hint"]
    assert [run("builds", "make", "r.toml", "--name", "mine")[0] for _ in range(2)] == [0, 0]


def test_who_takes_the_name_of_a_baseline_is_told_that_it_stays(
    tmp_path: Path, run: Callable[..., tuple[int, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Both by making and by adding; the old files stay, and ``@main`` is refused for no other reason."""
    program = recipe_of(tmp_path)
    _, old = run("builds", "make", "r.toml", "--name", "b")
    run("baseline", "set", "main", "b")
    with program.open("a") as file:
        file.write("# newer\n")
    _, new = run("builds", "make", "r.toml", "--name", "b", "--replace")
    assert (new["kept_by"], new["path"] != old["path"]) == (["main"], True)
    assert run("builds", "show", "@main")[1]["build"]["path"] == old["path"]
    assert run("builds", "show", "b")[1]["build"]["path"] == new["path"]
    assert run("baseline", "show")[1][0]["drift"] == f"the name 'b' means another build now, {new['path']}"
    assert run("builds", "list")[1][0]["baseline_of"] == []
    with pytest.raises(SystemExit):
        entry(["baseline", "show"])
    told = capsys.readouterr().out
    assert f"@main is still the build that was set, but the name 'b' means another build now, {new['path']}" in told
    assert "; to make what is there now the baseline: moe-harness baseline set main b" in told
    build_in(tmp_path / "third")
    with pytest.raises(SystemExit):
        entry(["builds", "add", "b", "--path", "third", "--replace"])
    assert "@main stays the build that was called b" in capsys.readouterr().err
    assert run("baseline", "set", "main", "b")[0] == 0
    assert run("builds", "show", "@main")[1]["build"]["path"] == str(tmp_path / "third")


def test_programs_that_report_another_commit_are_told(
    tmp_path: Path, run: Callable[..., tuple[int, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    """The recipe's commit is known, so runs go on without holding the programs to it; but nobody shall wonder later."""
    recipe_of(tmp_path)
    version = tmp_path / "sources" / "llama-server"
    version.write_text("#!/bin/sh\necho 'version: 0.5.0-dev (build 7, commit abc1234)'\n")
    version.chmod(0o755)
    info = 'char const * LLAMA_COMMIT = "abc1234";'
    (tmp_path / "sources" / "build-info.cpp").write_text(info)
    git(tmp_path / "sources", "init", "--quiet", "--initial-branch=main")
    commit = commit_all(tmp_path / "sources", "begin")
    text = (
        (tmp_path / "r.toml")
        .read_text()
        .replace('"{source}/standin.json"', '"{source}/standin.json", "{source}/llama-server"')
    )
    (tmp_path / "r.toml").write_text(text.replace(', "bin"]]', ', "bin"], ["cp", "{source}/build-info.cpp", "."]]'))
    with pytest.raises(SystemExit):
        entry(["builds", "make", "r.toml", "--name", "b"])
    assert f"report commit abc1234, the recipe's is {commit}" in capsys.readouterr().err
    _, shown = run("builds", "show", "b")
    assert (shown["told"]["commit"], shown["told"]["reports"]) == (commit, "commit abc1234, not its own")
    assert shown["provenance"]["reported"] == "abc1234"
    assert "commit" not in shown["build"]["source"]
    (tmp_path / "b.toml").write_text(f'fork = "ik_llama.cpp"\npath = "{shown["build"]["path"]}"\n')
    code, told = run("builds", "add", "c", "--file", "b.toml", "--commit", commit)
    assert (code, told["error"]["slug"]) == (2, "E-build-mismatch")
    assert "its programs report abc1234" in told["error"]["message"]


def test_baselines_are_set_shown_and_rolled_back(tmp_path: Path, run: Callable[..., tuple[int, Any]]) -> None:
    for name in ("b1", "b2"):
        build_in(tmp_path / name)
        run("builds", "add", name, "--path", name)
        run("baseline", "set", "@main", name)
    assert [row["build"] for row in run("baseline", "show", "main")[1]] == ["b2", "b1"]
    code, (row,) = run("baseline", "rollback", "main", "--why", "slower")
    assert (code, row["build"], row["why"], row["rollback"]) == (0, "b1", "slower", True)
    assert [(row["branch"], row["build"]) for row in run("baseline", "show")[1]] == [("main", "b1")]
    code, told = run("baseline", "rollback", "main")
    assert (code, told["error"]["slug"]) == (2, "E-no-earlier-baseline")


# ---- in matrices and ab ----------------------------------------------------------------------------------------------


@pytest.fixture
def catalogue(tmp_path: Path, run: Callable[..., tuple[int, Any]]) -> None:
    """Two builds; the first one is the baseline of main."""
    for name in ("b1", "b2"):
        build_in(tmp_path / "builds" / f"{name}-files")
        run("builds", "add", name, "--path", f"builds/{name}-files")
    run("baseline", "set", "main", "b1")


def loaded(folder: Path, builds: str) -> Any:
    file = folder / "m.toml"
    file.write_text(MATRIX.format(builds=builds))
    return make_plan(load_matrix(file))


@pytest.mark.usefixtures("catalogue")
def test_a_matrix_names_builds_of_the_catalogue(tmp_path: Path) -> None:
    """A baseline of a branch too; ids have the matrix's names, so that they stay when the baseline moves."""
    plan = loaded(tmp_path, '[builds.old]\ncatalogue = "@main"\n[builds.new]\ncatalogue = "b2"')
    (contrast,) = [case for case in plan.ids() if "new" in case and "old" in case]
    assert contrast == "throughput/tiny/old..new/pp32@any"
    paths = {arm.build.name: arm.build.path for planned in plan.cases for arm in planned.case.arms}
    assert paths == {"old": str(tmp_path / "builds" / "b1-files"), "new": str(tmp_path / "builds" / "b2-files")}


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(
    ("old", "slug", "where", "said"),
    [
        ('catalogue = "bb1"', "E-unknown-build", "builds.old.catalogue", "did you mean 'b1'?"),
        ('catalogue = "@mian"', "E-no-baseline", "builds.old.catalogue", "did you mean 'main'?"),
        ('catalogue = "b1"\nfork = "llama.cpp"', "E-matrix-invalid", "builds.old", "does not go with 'catalogue'"),
        ('recipe = "none.toml"', "E-recipe-missing", "builds.old.recipe", "no such recipe"),
        ('fork = "llama.cpp"\nvariants = []', "E-matrix-invalid", "builds.old", "exactly one of"),
        (
            'fork = "llama.cpp"\nvariants = [{ pth = "x" }]',
            "E-matrix-invalid",
            "variants[0].pth",
            "did you mean 'path'?",
        ),
        (
            'fork = "llama.cpp"\nvariants = [{ path = "x" }, { wheel = "xllamacpp" }]',
            "E-matrix-invalid",
            "builds.old",
            "all wheels or all programs",
        ),
        (
            'fork = "llama.cpp"\nvariants = [{ isa = ["avx3"], path = "x" }]',
            "E-matrix-invalid",
            "builds.old.variants[0].isa[0]",
            "did you mean 'avx'?",
        ),
        (
            'fork = "llama.cpp"\nvariants = [{ url = "https://x/a.tar", sha256 = "12" }]',
            "E-matrix-invalid",
            "builds.old.variants[0].sha256",
            "expected a SHA-256",
        ),
        (
            'fork = "llama.cpp"\npath = "x"\nsource = { comit = "x" }',
            "E-matrix-invalid",
            "builds.old.source.comit",
            "did you mean 'commit'?",
        ),
        (
            'fork = "ik_llama.cpp"\nvariants = [{ wheel = "xllamacpp" }]',
            "E-wrong-fork",
            "builds.old.variants",
            "is of llama.cpp",
        ),
    ],
)
def test_faults_of_builds_name_their_key(tmp_path: Path, old: str, slug: str, where: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        loaded(tmp_path, f'[builds.old]\n{old}\n[builds.new]\ncatalogue = "b2"')
    assert refused.value.slug == slug
    assert where in str(refused.value)
    assert said in str(refused.value)


@pytest.mark.usefixtures("catalogue")
def test_a_baseline_in_a_contrast_has_to_be_a_build_of_the_matrix(tmp_path: Path) -> None:
    """Each build of a contrast runs by itself too, so nothing is added behind one's back; how to say it is told."""
    (tmp_path / "m.toml").write_text(
        MATRIX.format(builds='[builds.new]\ncatalogue = "b2"').replace('baseline = "old"', 'baseline = "@main"')
    )
    with pytest.raises(BadInput) as refused:
        load_matrix(tmp_path / "m.toml")
    assert (refused.value.slug, refused.value.where) == ("E-unknown-build", "m.toml: contrasts[0].baseline")
    assert '[builds.before] catalogue = "@main"' in refused.value.hint


def test_a_plan_says_why_no_variant_fits(tmp_path: Path, run: Callable[..., tuple[int, Any]]) -> None:
    """Such cases are not for this machine, and the plan says so before anything runs."""
    build_in(tmp_path / "b")
    variants = '[[builds.{0}.variants]]\n{1}path = "b"\n'
    builds = '[builds.old]\nfork = "ik_llama.cpp"\n' + variants.format("old", "")
    builds += '[builds.new]\nfork = "ik_llama.cpp"\n' + variants.format("new", 'machine = "pdp11"\n')
    (tmp_path / "m.toml").write_text(MATRIX.format(builds=builds))
    code, rows = run("plan", "m.toml")
    assert code == 0
    told = {row["id"]: (row["status"], row["reason"]) for row in rows}
    assert told["throughput/tiny/old/pp32@any"][0] is None
    for case in ("throughput/tiny/new/pp32@any", "throughput/tiny/old..new/pp32@any"):
        status, reason = told[case]
        assert status == "not_applicable"
        assert "no variant of build 'new' fits this node: variant 1 needs pdp11" in reason


@pytest.mark.usefixtures("catalogue")
def test_ab_knows_names_of_the_catalogue_and_baselines(tmp_path: Path) -> None:
    """``ab @main ./mybuild``: called by their names, of the fork that the catalogue says."""
    shutil.copytree(tmp_path / "builds" / "b2-files", tmp_path / "mybuild")
    model = Model("m", path="m.gguf")
    words = (read_arm("OLD", "@main+fa=1"), read_arm("NEW", "./mybuild+fa=1"))
    made = make_arms(words, model, {}, None)
    assert made.names == ("b1+fa=1", "mybuild+fa=1")
    assert [arm.build.path for arm in made.arms] == [
        str(tmp_path / "builds" / "b1-files"),
        str(tmp_path / "mybuild"),
    ]
    assert {arm.build.fork for arm in made.arms} == {Fork.IK_LLAMA_CPP}
    both = make_arms((read_arm("OLD", "@main"), read_arm("NEW", "b2")), model, {}, None)
    assert both.names == ("b1", "b2")


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(
    ("word", "slug", "said"),
    [("@mian", "E-no-baseline", "did you mean 'main'?"), ("b22", "E-unknown-build", "did you mean 'b2'?")],
)
def test_ab_tells_unknown_names(word: str, slug: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        make_arms((read_arm("OLD", word), read_arm("NEW", "ik")), Model("m", path="m.gguf"), {}, None)
    assert refused.value.slug == slug
    assert said in refused.value.hint
    assert refused.value.where == f"OLD ({word})"
