"""Recipes made for real: a small CMake project in git, compiled, patched, kept, and what goes wrong with it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from build_support import (
    ALIEN,
    FASTER,
    FUZZY,
    change_speed,
    commit,
    git,
    new_repository,
    script_project,
    write_recipe,
)

from harness.builds.making import Bench, log_of, made_build
from harness.builds.provenance import Provenance, provenance_of
from harness.builds.recipe_file import read_recipe
from harness.domain.build import Build
from harness.domain.errors import BadInput
from harness.execution.builds import local_build, present_build, recognised, run_call
from harness.execution.node import probe_node


def build_of(recipe: Path) -> Build:
    """The build that a recipe declares."""
    fork, read = read_recipe(recipe)
    return Build(read.name, fork, recipe=read)


def made(recipe: Path, *, again: bool = True) -> Path:
    """The build folder of a recipe."""
    return made_build(build_of(recipe), Bench(run_call, probe_node()), again=again)


def provenance(folder: Path) -> Provenance:
    """What is written beside it."""
    found = provenance_of(folder)
    assert found is not None
    return found


def refusal(recipe: Path, *, again: bool = True) -> BadInput:
    """What making it is refused with."""
    with pytest.raises(BadInput) as refused:
        made(recipe, again=again)
    return refused.value


def left_behind(tmp_path: Path) -> list[Path]:
    """Folders of the cache that would hold half a build."""
    root = tmp_path / "cache" / "builds"
    return [path for folder in ("work", "made") for path in (root / folder).glob("*") if path.is_dir()]


# ---- compiled --------------------------------------------------------------------------------------------------------


def test_a_patched_build_and_its_merge_base(tmp_path: Path) -> None:
    """The baseline of a branch is where it left main, whatever main did since; the patch changes what is measured."""
    base = new_repository(tmp_path / "repo")
    git(tmp_path / "repo", "checkout", "--quiet", "-b", "feature")
    (tmp_path / "repo" / "NOTES").write_text("a feature\n")
    feature = commit(tmp_path / "repo", "feature")
    git(tmp_path / "repo", "checkout", "--quiet", "main")
    change_speed(tmp_path / "repo", 50)
    commit(tmp_path / "repo", "main goes on")
    (tmp_path / "faster.patch").write_text(FASTER)

    old = made(write_recipe(tmp_path, "repo", 'merge_base = ["main", "feature"]', name="base"))
    new = made(write_recipe(tmp_path, "repo", 'revision = "feature"', 'patches = ["faster.patch"]', name="new"))

    assert (provenance(old).commit, provenance(old).changed) == (base, False)
    assert (provenance(new).commit, provenance(new).changed) == (feature, True)
    assert [patch.name for patch in provenance(new).patches] == ["faster.patch"]
    speeds = [run_bench(folder) for folder in (old, new)]
    assert speeds == [100, 400]
    assert not (new.parent / "source").exists()
    assert sorted(path.name for path in new.rglob("*") if path.is_file()) == [
        "CMakeCache.txt",
        "libggml.so",
        "libllama.so",
        "libmtmd.so",
        "llama-bench",
        "llama-server",
    ]
    assert "Built target llama-bench" in log_of(new.parent).read_text()

    told = recognised(Build("new", build_of(tmp_path / "new.toml").fork, path=str(new)))
    assert (told.commit, told.number) == (feature, "2")
    assert told.backends == ("CPU",)
    assert told.blas == "none"
    assert told.options["GGML_CUDA"] == "OFF"
    assert told.libraries["libllama.so"] == new / "src" / "libllama.so"
    assert told.features == ("native",)
    assert told.compiler.startswith("GNU ")
    assert told.missing == {}

    elsewhere = new.rename(tmp_path / "elsewhere")  # as in an archive: no program finds its libraries by itself
    moved = recognised(Build("moved", build_of(tmp_path / "new.toml").fork, path=str(elsewhere)))
    assert moved.missing == {}
    assert moved.libraries["libllama.so"] == elsewhere / "src" / "libllama.so"


def run_bench(folder: Path) -> int:
    """Tokens a second that the stand-in claims."""
    argv = [str(folder / "bin" / "llama-bench"), "-m", "m.gguf", "-p", "1000", "-r", "1"]
    printed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return round(1000e9 / int(printed.split('"samples_ns": [')[1].split("]")[0]))


def test_an_output_that_was_not_kept_but_is_needed_is_a_failure(tmp_path: Path) -> None:
    """A program that can't start is no build, whichever it is; the recipe is told what to keep."""
    new_repository(tmp_path / "repo")
    error = refusal(write_recipe(tmp_path, "repo", 'revision = "main"', 'outputs = ["bin"]'))
    assert error.slug == "E-build-failed"
    assert "llama-bench misses libllama.so; llama-server misses " in error.message
    assert "the build made libllama.so as src/libllama.so: add 'src/*.so' to outputs" in error.message
    assert left_behind(tmp_path) == []

    kept = 'outputs = ["bin", "src/*.so", "ggml/src/*.so"]'
    error = refusal(write_recipe(tmp_path, "repo", 'revision = "main"', kept))
    assert error.message == (
        "the recipe 'standin' failed: llama-server misses libmtmd.so: "
        "the build made libmtmd.so as examples/mtmd/libmtmd.so: add 'examples/mtmd/*.so' to outputs"
    )


def test_a_library_that_the_build_did_not_make_is_not_looked_for_in_it(tmp_path: Path) -> None:
    new_repository(tmp_path / "repo")
    build = '["cmake", "--build", "{build}"], ["rm", "examples/mtmd/libmtmd.so"]'
    kept = 'outputs = ["bin", "src/*.so", "ggml/src/*.so"]'
    error = refusal(write_recipe(tmp_path, "repo", 'revision = "main"', f"build = [{build}]", kept))
    assert "libmtmd.so is not in the build folder: build its target too, or install it" in error.message


def test_a_compiler_error_is_told_with_the_end_of_the_log(tmp_path: Path) -> None:
    """What failed, how, its last lines, and where the whole log is."""
    new_repository(tmp_path / "repo")
    (tmp_path / "repo" / "llama.c").write_text("this is no C;\n")
    commit(tmp_path / "repo", "break it")
    error = refusal(write_recipe(tmp_path, "repo", 'revision = "main"'))
    assert error.slug == "E-build-failed"
    assert "cmake ended with exit code 2" in error.message
    assert "llama.c" in error.message
    log = Path(error.hint.removeprefix("the whole log is "))
    assert "this is no C" in log.read_text()
    assert left_behind(tmp_path) == []


# ---- patches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patch", "slug", "said"),
    [
        pytest.param(FUZZY, "E-patch-fuzz", "not what it says, at llama.c:3", id="fuzz"),
        pytest.param(ALIEN, "E-patch-rejected", "the patch does not apply: patch failed: llama.c:3", id="reject"),
        pytest.param("no patch\n", "E-patch-rejected", "No valid patches", id="no patch"),
        pytest.param(FASTER.replace("llama.c", "../../outside"), "E-patch-rejected", "outside", id="leads out"),
    ],
)
def test_a_patch_that_does_not_fit_exactly_is_refused(tmp_path: Path, patch: str, slug: str, said: str) -> None:
    """Nothing is compiled of a source that nobody meant."""
    script_project(tmp_path / "repo")
    (tmp_path / "p.patch").write_text(patch)
    recipe = write_recipe(tmp_path, "repo", 'revision = "main"', 'patches = ["p.patch"]', compiled=False)
    error = refusal(recipe)
    assert error.slug == slug
    assert said in error.message
    assert error.where == "standin: p.patch"
    assert left_behind(tmp_path) == []


def test_patch_would_have_taken_the_fuzzy_one(tmp_path: Path) -> None:
    """The test's patch is what it claims to be: context that git refuses and that reduced context takes."""
    new_repository(tmp_path / "repo")
    (tmp_path / "p.patch").write_text(FUZZY)
    git(tmp_path / "repo", "apply", "--check", "-C1", str(tmp_path / "p.patch"))
    with pytest.raises(subprocess.CalledProcessError):
        git(tmp_path / "repo", "apply", "--check", str(tmp_path / "p.patch"))


def test_lines_that_moved_are_no_fuzz_but_are_told(tmp_path: Path) -> None:
    """The context agrees exactly, at another line."""
    script_project(tmp_path / "repo")
    file = tmp_path / "repo" / "llama.c"
    file.write_text("/* one more line */\n" + file.read_text())
    commit(tmp_path / "repo", "move")
    (tmp_path / "p.patch").write_text(FASTER)
    recipe = write_recipe(tmp_path, "repo", 'revision = "main"', 'patches = ["p.patch"]', compiled=False)
    found = provenance(made(recipe))
    assert found.offsets == ("p.patch: Hunk #1 succeeded at 4 (offset 1 line).",)


def test_patches_are_applied_in_their_order(tmp_path: Path) -> None:
    """The second one changes what the first one wrote."""
    script_project(tmp_path / "repo")
    (tmp_path / "1.patch").write_text(FASTER)
    (tmp_path / "2.patch").write_text(FASTER.replace("400", "500").replace("100", "400"))
    recipe = write_recipe(tmp_path, "repo", 'revision = "main"', 'patches = ["1.patch", "2.patch"]', compiled=False)
    assert "int speed = 500;" in (made(recipe) / "sources" / "llama.c").read_text()
    swapped = write_recipe(tmp_path, "repo", 'revision = "main"', 'patches = ["2.patch", "1.patch"]', compiled=False)
    assert refusal(swapped).slug == "E-patch-rejected"


# ---- sources ---------------------------------------------------------------------------------------------------------


def test_a_revision_that_is_not_there_names_the_nearest(tmp_path: Path) -> None:
    script_project(tmp_path / "repo")
    error = refusal(write_recipe(tmp_path, "repo", 'revision = "mian"', compiled=False))
    assert (error.slug, error.hint) == ("E-unknown-revision", "did you mean 'main'?")


def test_histories_without_a_common_commit_have_no_merge_base(tmp_path: Path) -> None:
    script_project(tmp_path / "repo")
    git(tmp_path / "repo", "checkout", "--quiet", "--orphan", "other")
    commit(tmp_path / "repo", "another beginning")
    error = refusal(write_recipe(tmp_path, "repo", 'merge_base = ["main", "other"]', compiled=False))
    assert error.slug == "E-no-merge-base"


def test_a_folder_without_a_revision_is_built_as_it_is(tmp_path: Path) -> None:
    """With changes that nobody committed, and neither what git ignores nor what was removed."""
    head = script_project(tmp_path / "repo")
    (tmp_path / "repo" / ".gitignore").write_text("huge\n")
    (tmp_path / "repo" / "huge").write_text("a build folder of the user\n")
    (tmp_path / "repo" / "server.c").unlink()
    change_speed(tmp_path / "repo", 77)
    recipe = write_recipe(tmp_path, "repo", compiled=False)
    folder = made(recipe)
    assert "int speed = 77;" in (folder / "sources" / "llama.c").read_text()
    assert not (folder / "sources" / "huge").exists()
    assert not (folder / "sources" / "server.c").exists()
    found = provenance(folder)
    assert found.changed
    assert found.commit != head
    assert found.commit == git(tmp_path / "repo", "rev-parse", "HEAD")
    assert "M llama.c" in git(tmp_path / "repo", "status", "--short"), "the user's folder is as it was"
    change_speed(tmp_path / "repo", 78)
    assert made(recipe, again=False) != folder, "what the user changes is always built"


def test_a_plain_folder_is_a_source_too(tmp_path: Path) -> None:
    """A source archive that somebody unpacked has no commit; patches apply all the same."""
    script_project(tmp_path / "repo")
    shutil.copytree(tmp_path / "repo", tmp_path / "plain", ignore=shutil.ignore_patterns(".git"))
    (tmp_path / "p.patch").write_text(FASTER)
    folder = made(write_recipe(tmp_path, "plain", 'patches = ["p.patch"]', compiled=False))
    assert "int speed = 400;" in (folder / "sources" / "llama.c").read_text()
    assert (provenance(folder).commit, provenance(folder).changed) == ("", True)
    asking = write_recipe(tmp_path, "plain", 'revision = "main"', compiled=False)
    assert refusal(asking).slug == "E-source-missing"


def test_a_checkout_of_the_last_commit_alone_is_built(tmp_path: Path) -> None:
    """As CI makes them; a merge base can't be found in it, and why is said."""
    script_project(tmp_path / "whole")
    git(tmp_path / "whole", "checkout", "--quiet", "-b", "feature")
    change_speed(tmp_path / "whole", 60)
    head = commit(tmp_path / "whole", "feature")
    git(tmp_path, "clone", "--quiet", "--depth=1", "--no-single-branch", (tmp_path / "whole").as_uri(), "repo")
    assert provenance(made(write_recipe(tmp_path, "repo", compiled=False))).commit == head
    git(tmp_path / "repo", "checkout", "--quiet", "--detach")
    change_speed(tmp_path / "repo", 61)
    detached = commit(tmp_path / "repo", "on no branch")
    assert provenance(made(write_recipe(tmp_path, "repo", compiled=False))).commit == detached
    pinned = write_recipe(tmp_path, "repo", 'revision = "feature"', compiled=False)
    assert provenance(made(pinned)).commit == head
    error = refusal(write_recipe(tmp_path, "repo", 'merge_base = ["origin/main", "feature"]', compiled=False))
    assert (error.slug, "--unshallow" in error.hint) == ("E-no-merge-base", True)


def test_a_repository_without_a_commit_is_a_plain_folder(tmp_path: Path) -> None:
    """Somebody unpacked an archive and began."""
    script_project(tmp_path / "repo")
    shutil.rmtree(tmp_path / "repo" / ".git")
    git(tmp_path / "repo", "init", "--quiet")
    assert provenance(made(write_recipe(tmp_path, "repo", compiled=False))).commit == ""


def test_a_folder_inside_a_repository_is_a_plain_folder(tmp_path: Path) -> None:
    """It is not the repository above it that is built."""
    script_project(tmp_path / "above" / "below")
    shutil.rmtree(tmp_path / "above" / "below" / ".git")
    git(tmp_path / "above", "init", "--quiet")
    commit(tmp_path / "above", "all of it")
    assert provenance(made(write_recipe(tmp_path, "above/below", compiled=False))).commit == ""


def test_settings_and_hooks_of_the_user_make_no_other_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Line endings are left alone, and no hook runs."""
    script_project(tmp_path / "repo")
    hook = tmp_path / "repo" / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    hook.chmod(0o755)
    (tmp_path / "home").mkdir()
    template = tmp_path / "template" / "hooks"
    template.mkdir(parents=True)
    (template / "post-checkout").write_text(hook.read_text())
    (template / "post-checkout").chmod(0o755)
    (template / "reference-transaction").write_text(hook.read_text())
    (template / "reference-transaction").chmod(0o755)
    settings = ["[core]", "autocrlf = true", f"hooksPath = {template}", "[init]", f"templateDir = {template.parent}"]
    (tmp_path / "home" / ".gitconfig").write_text("\n".join([*settings, "[apply]", "whitespace = fix", ""]))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = made(write_recipe(tmp_path, "repo", 'revision = "main"', compiled=False))
    assert b"\r\n" not in (folder / "sources" / "llama.c").read_bytes()
    assert not (tmp_path / "hooked").exists()


# ---- once ------------------------------------------------------------------------------------------------------------


def counting_recipe(tmp_path: Path, *extra: str, command: str = "true") -> Path:
    """A recipe that leaves a mark each time it is run."""
    count = f'["sh", "-c", "echo made >> {tmp_path}/count; sleep 0.2; {command}"]'
    copied = '["mkdir", "bin"], ["cp", "{source}/fake-bench.sh", "bin/llama-bench"]'
    return write_recipe(tmp_path, "repo", *extra, f"build = [{count}, {copied}]", compiled=False).rename(
        tmp_path / "counting.toml"
    )


def count(tmp_path: Path) -> int:
    file = tmp_path / "count"
    return len(file.read_text().splitlines()) if file.exists() else 0


@pytest.fixture
def counting(tmp_path: Path) -> Path:
    """A repository, and a recipe that counts how often it is run."""
    script_project(tmp_path / "repo")
    return counting_recipe(tmp_path, 'revision = "main"', 'outputs = ["bin"]')


def test_a_recipe_is_run_once_for_a_source(tmp_path: Path, counting: Path) -> None:
    """A new commit, and a change of the recipe, are another build; its comments and where it lies are not."""
    first = made(counting)
    counting.write_text("# a comment\n" + counting.read_text())
    assert made(counting) == first
    assert count(tmp_path) == 1
    change_speed(tmp_path / "repo", 60)
    commit(tmp_path / "repo", "slower")
    assert made(counting, again=False) == first, "a run takes main for what it was when it began"
    second = made(counting)
    assert (second == first, count(tmp_path)) == (False, 2)
    counting.write_text(counting.read_text() + 'environment = { MODE = "other" }\n')
    assert made(counting) not in (first, second)
    assert count(tmp_path) == 3


def test_two_jobs_do_not_make_the_same_build_twice(tmp_path: Path, counting: Path) -> None:
    """The second one waits for the first one and takes what it made."""
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(made(counting))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert len(set(found)) == 1
    assert count(tmp_path) == 1


def test_a_build_that_was_left_half_made_is_begun_anew(tmp_path: Path, counting: Path) -> None:
    """Only what has its ``made.json`` is one."""
    folder = made(counting)
    (folder.parent / "made.json").unlink()
    (folder / "rubbish").write_text("")
    assert made(counting) == folder
    assert count(tmp_path) == 2
    assert not (folder / "rubbish").exists()


def test_a_failure_is_remembered_for_a_run_and_tried_again_when_asked(tmp_path: Path) -> None:
    """Each job of a matrix needs the build; only the first one waits for its compiler to fail."""
    script_project(tmp_path / "repo")
    recipe = counting_recipe(tmp_path, 'revision = "main"', 'outputs = ["bin"]', command="exit 7")
    first = refusal(recipe, again=False)
    assert (first.slug, count(tmp_path)) == ("E-build-failed", 1)
    assert "sh ended with exit code 7" in first.message
    assert str(refusal(recipe, again=False)) == str(first)
    assert count(tmp_path) == 1
    refusal(recipe, again=True)
    assert count(tmp_path) == 2


def test_a_node_knows_a_made_build_without_making_it(counting: Path) -> None:
    """A plan says what is there and starts nothing."""
    build = build_of(counting)
    assert present_build(build) is None
    here = local_build(build)
    assert here.path.endswith("/build")
    assert here.recipe is None
    assert present_build(build) == here


# ---- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        pytest.param(['build = ["no-such-program"]'], "no-such-program can't be run", id="no program"),
        pytest.param(['build = ["sleep", "60"]', "timeout_minutes = 0.005"], "no end within 0 s", id="timeout"),
        pytest.param(['build = ["true"]', 'outputs = ["bin"]'], "nothing in the build folder matches", id="nothing"),
        pytest.param(
            ['build = ["touch", "stray"]', 'outputs = ["stray"]'], "have no program: no llama-bench", id="no bench"
        ),
    ],
)
def test_a_recipe_that_gives_no_build(tmp_path: Path, extra: list[str], said: str) -> None:
    script_project(tmp_path / "repo")
    error = refusal(write_recipe(tmp_path, "repo", 'revision = "main"', *extra, compiled=False))
    assert error.slug == "E-build-failed"
    assert said in error.message
    assert left_behind(tmp_path) == []


def test_what_is_compiled_is_told_while_it_is(tmp_path: Path) -> None:
    """In the log too, which is there to be followed; complaints stand in it at the end of their command."""
    script_project(tmp_path / "repo")
    steps = '["sh", "-c", "echo complaint >&2; echo one; sleep 0.5; echo two"], ["mkdir", "bin"]'
    copied = '["cp", "{source}/fake-bench.sh", "bin/llama-bench"]'
    lines = ['revision = "main"', f"build = [{steps}, {copied}]", 'outputs = ["bin"]']
    recipe = write_recipe(tmp_path, "repo", *lines, compiled=False)
    seen: list[tuple[str, str]] = []

    def progress(line: str) -> None:
        (log,) = (tmp_path / "cache" / "builds" / "logs").glob("*.log")
        seen.append((line, log.read_text().splitlines()[-1]))

    place = made_build(build_of(recipe), Bench(run_call, probe_node(), progress=progress)).parent
    assert seen == [("standin: one", "one"), ("standin: two", "two")]
    assert log_of(place).read_text().splitlines()[4:7] == ["one", "two", "complaint"]


def test_commands_see_a_clean_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the user's shell has set (flags of a compiler, secrets) is not there; what the recipe says is."""
    monkeypatch.setenv("CFLAGS", "-Ofast")
    monkeypatch.setenv("SECRET_TOKEN", "x")
    script_project(tmp_path / "repo")
    dump = '["sh", "-c", "env > seen"], ["mkdir", "bin"], ["cp", "{source}/fake-bench.sh", "bin/llama-bench"]'
    environment = 'environment = { CC = "cc" }'
    lines = ['revision = "main"', environment, f"build = [{dump}]", 'outputs = ["bin", "seen"]']
    seen = (made(write_recipe(tmp_path, "repo", *lines, compiled=False)) / "seen").read_text()
    assert "CC=cc\n" in seen
    assert "CFLAGS" not in seen
    assert "SECRET_TOKEN" not in seen


@pytest.mark.parametrize("told", [signal.SIGINT, signal.SIGTERM])
def test_interrupting_leaves_nothing(tmp_path: Path, told: signal.Signals) -> None:
    """Ctrl-C and a cancelled CI job end the compiler and remove what it had begun."""
    script_project(tmp_path / "repo")
    recipe = write_recipe(
        tmp_path, "repo", 'revision = "main"', f'build = ["sh", "-c", "touch {tmp_path}/begun; sleep 600"]'
    )
    driver = subprocess.Popen(
        [sys.executable, "-m", "harness.cli", "builds", "make", str(recipe)],
        env={**os.environ},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "begun").exists():
        assert time.monotonic() < deadline
        assert driver.poll() is None
        time.sleep(0.05)
    driver.send_signal(told)
    _, complaint = driver.communicate(timeout=60)
    assert driver.returncode == 130
    assert "interrupted" in complaint
    assert left_behind(tmp_path) == []
    assert list((tmp_path / "cache" / "builds" / "logs").glob("*")) == []
    commands = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    assert [command for command in commands if f"touch {tmp_path}/begun" in command] == []
