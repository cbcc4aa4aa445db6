"""Builds as a job's node gets them: a variant is chosen and fetched, a recipe is made, an impostor is refused."""

from __future__ import annotations

import dataclasses
import hashlib
import platform
import tarfile
from pathlib import Path

import pytest
from job_support import job_of, standin_arm

from harness.domain.arm import Arm
from harness.domain.build import BuildSource, Platform, Recipe, Variant
from harness.domain.failure import Failure, FailureKind
from harness.domain.measurement import ProcessRun
from harness.domain.stopping import RunWholeSchedule
from harness.execution.builds import missing_here, present_build
from harness.execution.dispatch import deadline_s
from harness.execution.events import Finished, ProcessDone
from harness.execution.inspecting import known_options
from harness.execution.run_job import run_job

ELSEWHERE = Platform(machine="pdp11")


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("MOE_LOCK_DIR", str(tmp_path / "lock"))


@pytest.fixture
def arm(tmp_path: Path, tiny_model: Path) -> Arm:
    """An arm on a stand-in by path; its folder is `tmp_path` / "build"."""
    return standin_arm(tmp_path / "build", tiny_model, "rows")


def with_build(arm: Arm, **said: object) -> Arm:
    return dataclasses.replace(arm, build=dataclasses.replace(arm.build, **said))


def run(arm: Arm) -> tuple[list[ProcessRun], Failure | None]:
    """The processes of a job of that arm, and what the job ended with."""
    events = list(run_job(job_of(arm), 1, RunWholeSchedule()))
    (end,) = [event for event in events if isinstance(event, Finished)]
    return [event.run for event in events if isinstance(event, ProcessDone)], end.failure


def archived(folder: Path, archive: Path) -> Variant:
    """A variant for this machine, whose archive has a folder."""
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, arcname="b-1.0")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    return Variant(Platform(machine=platform.machine()), url=archive.as_uri(), sha256=digest)


def recipe_of(folder: Path, *build: tuple[str, ...]) -> Recipe:
    return Recipe("r", str(folder), "", (), (), (), build, ("bin",), (), 60.0)


COPY = (("mkdir", "bin"), ("cp", "{source}/llama-bench", "{source}/standin.json", "bin"))


def test_the_variant_that_fits_is_fetched_and_measured(tmp_path: Path, arm: Arm) -> None:
    """The first one is for another machine."""
    variant = archived(tmp_path / "build", tmp_path / "b.tar.gz")
    varied = with_build(arm, path="", variants=(Variant(ELSEWHERE, path="/none"), variant))
    assert missing_here(varied.build) == "its archive is fetched by the first job that needs it"
    assert known_options([varied.build]) == {}
    runs, failure = run(varied)
    assert failure is None
    assert len(runs) == 2
    assert all(process.failure is None for process in runs)
    assert missing_here(varied.build) == ""
    assert "-rtr" in known_options([varied.build])[varied.build.name]


def test_a_node_that_no_variant_is_for_says_so(arm: Arm) -> None:
    """The case errs: nothing is said about the candidate."""
    runs, failure = run(with_build(arm, path="", variants=(Variant(ELSEWHERE, path="/none"),)))
    assert runs == []
    assert failure is not None
    assert (failure.slug, failure.kind) == ("E-no-variant", FailureKind.INPUT_MISSING)
    assert f"needs pdp11, node has {platform.machine()}" in failure.message


def test_a_recipe_is_made_on_the_node(tmp_path: Path, arm: Arm) -> None:
    made = with_build(arm, path="", recipe=recipe_of(tmp_path / "build", *COPY))
    runs, failure = run(made)
    assert failure is None
    assert len(runs) == 2
    assert present_build(made.build) is None, "a folder may have changed since"


def test_a_job_that_compiles_is_not_given_up_for_it(tmp_path: Path, arm: Arm) -> None:
    """Its deadline has room for every command of the recipe."""
    recipe = dataclasses.replace(recipe_of(tmp_path, *COPY), timeout_s=7200.0)
    longer = deadline_s(job_of(with_build(arm, path="", recipe=recipe))) - deadline_s(job_of(arm))
    assert longer == 2 * 7200.0


def test_a_recipe_that_fails_is_an_error_of_its_cases(tmp_path: Path, arm: Arm) -> None:
    """With the end of the log and its place."""
    runs, failure = run(with_build(arm, path="", recipe=recipe_of(tmp_path / "build", ("false",))))
    assert runs == []
    assert failure is not None
    assert (failure.slug, failure.kind) == ("E-build-failed", FailureKind.INPUT_MISSING)
    assert "/cache/builds/logs/r-" in failure.message


def test_a_build_that_is_not_what_is_said_is_not_measured(tmp_path: Path, arm: Arm) -> None:
    (tmp_path / "build" / "CMakeCache.txt").write_text("GGML_CUDA:BOOL=OFF\n")
    runs, failure = run(with_build(arm, source=BuildSource(backends=("CPU", "CUDA"))))
    assert runs == []
    assert failure is not None
    assert failure.slug == "E-build-mismatch"
    assert "backends CPU, CUDA were said, it has CPU" in failure.message
    _, failure = run(with_build(arm, source=BuildSource(backends=("CPU",))))
    assert failure is None


@pytest.mark.parametrize(("said", "slug"), [("abc1234", ""), ("abc9999", "E-build-mismatch")])
def test_rows_of_another_commit_are_no_measurement(tmp_path: Path, arm: Arm, said: str, slug: str) -> None:
    """A program alone in its folder tells its commit only there."""
    program = tmp_path / "build" / "llama-bench"
    program.write_text(program.read_text().replace('"model_filename"', '"build_commit": "abc1234", "model_filename"'))
    runs, failure = run(with_build(arm, source=BuildSource(commit=said)))
    assert failure is None
    assert runs
    for process in runs:
        assert (process.failure.slug if process.failure else "") == slug
        assert bool(process.samples) is not bool(slug)
