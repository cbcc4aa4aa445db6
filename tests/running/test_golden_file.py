"""The folder of references: what is written comes back, and what is no reference says why."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.case import OutputCheck
from harness.domain.errors import BadInput
from harness.domain.flags import Flags
from harness.domain.golden import ArmReference, Asked, Record
from harness.domain.job import Design, Job
from harness.domain.measurement import Conditions, ProcessRun, Step
from harness.domain.model import Model
from harness.domain.node import NodeClass, NodeFacts
from harness.domain.outputs import Output, Variation
from harness.domain.workload import OutputProfile, Prompt
from harness.running.golden_file import Goldens

PROFILE = OutputProfile("o", (Prompt("a", "Once", " upon"), Prompt("b", "x")), 4, 8, 2, 5, (Variation.BATCH,))
NODE = NodeFacts("Test CPU", 2, ("avx2",), 1 << 33, (), "6.1", 0, "unknown", None, 1, 0)
ARM = Arm(Build("ik", Fork.IK_LLAMA_CPP, wheel="w"), Model("m", card="tiny-moe"), Flags.of({"fa": 1}))
OUTPUTS = tuple(Output(name, (1, 2), (3,), (0.5,), "täxt", "aa", finite=True) for name in ("a", "b"))
RUN = ProcessRun(
    Step(0, -1, outputs=True), "k", (), OUTPUTS, 1.0, 0.1, 9, Conditions(0, (), 1, 0.0), {"model_sha256": "ab"}
)
RECORD = Record(ARM, Asked.of(PROFILE), RUN, NODE, "2026-01-02T03:04:05+00:00", "1.0")
KEY = "o/m/ik@any"


def written(folder: Path) -> Path:
    return Goldens(folder).write(KEY, RECORD)


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    """All of it."""
    path = written(tmp_path)
    assert path == tmp_path / "o" / "m" / "ik@any.jsonl"
    found = Goldens(tmp_path).read(KEY)
    assert found.record == RECORD
    assert (found.slug, found.problem) == ("", "")
    assert Goldens(tmp_path).present() == (KEY,)


def test_the_same_record_is_the_same_text(tmp_path: Path) -> None:
    """So that version control shows what changed and nothing else."""
    assert written(tmp_path / "one").read_bytes() == written(tmp_path / "two").read_bytes()


def _schema(text: str) -> str:
    first, *others = text.splitlines()
    head = json.dumps({**json.loads(first), "schema": 2})
    return "\n".join([head, *others]) + "\n"


def _without_part(text: str) -> str:
    """A part is missing although the digest is right: not our version wrote it."""
    first, *others = text.splitlines()[:-1]
    head = {key: value for key, value in json.loads(first).items() if key != "node"}
    body = "".join(f"{line}\n" for line in (json.dumps(head), *others))
    return body + json.dumps({"sha256": hashlib.sha256(body.encode()).hexdigest()}) + "\n"


@pytest.mark.parametrize(
    ("spoil", "slug", "said"),
    [
        (lambda text: text.replace('"aa"', '"bb"'), "E-reference-damaged", "cut short or changed by hand"),
        (lambda text: text[: len(text) // 2], "E-reference-damaged", "no JSON object"),
        (lambda text: "".join(text.splitlines(keepends=True)[:-1]), "E-reference-damaged", "cut short"),
        (lambda text: text.splitlines(keepends=True)[0], "E-reference-damaged", "cut short"),
        (lambda _: "", "E-reference-damaged", "no JSON object"),
        (lambda _: "[]\n", "E-reference-damaged", "no JSON object"),
        (lambda _: '{"format": "other"}\n', "E-reference-damaged", "does not begin as a reference does"),
        (_schema, "E-reference-newer", "has schema 2, this version reads up to 1"),
        (_without_part, "E-reference-damaged", "lacks a part"),
        (lambda _: "[" * 100_000, "E-reference-damaged", "no JSON object"),
    ],
)
def test_a_file_that_is_no_reference_is_named(
    spoil: Callable[[str], str], slug: str, said: str, tmp_path: Path
) -> None:
    """Nothing of it is used."""
    path = written(tmp_path)
    path.write_text(spoil(path.read_text()))
    found = Goldens(tmp_path).read(KEY)
    assert (found.record, found.slug) == (None, slug)
    assert said in found.problem
    assert str(path) in found.problem


def test_a_missing_one_names_the_command(tmp_path: Path) -> None:
    """Whoever runs a check for the first time has none."""
    found = Goldens(tmp_path / "nowhere").read(KEY)
    assert (found.record, found.slug) == (None, "E-reference-missing")
    assert "moe-harness reference update" in found.problem


def test_a_folder_in_the_way_is_told(tmp_path: Path) -> None:
    """Neither reading nor writing ends in a traceback."""
    Goldens(tmp_path).path(KEY).mkdir(parents=True)
    assert Goldens(tmp_path).read(KEY).slug == "E-reference-unreadable"
    with pytest.raises(BadInput, match="E-reference-unwritable"):
        written(tmp_path)


def test_a_job_gets_what_its_arms_are_held_against(tmp_path: Path) -> None:
    """Once for each key; a job without references stays as it is."""
    written(tmp_path)
    check = OutputCheck("o", "reference", reference=KEY)
    job = Job((ARM,), (), PROFILE, NodeClass("any"), Design(), ())
    asking = replace(job, references=(ArmReference(0, check), ArmReference(0, check)))
    assert [golden.key for golden in Goldens(tmp_path).informed(asking).goldens] == [KEY]
    assert Goldens(tmp_path).informed(job) is job


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (PROFILE, ""),
        (replace(PROFILE, name="renamed"), ""),
        (replace(PROFILE, prompts=(replace(PROFILE.prompts[0], text="Twice"), PROFILE.prompts[1])), "that changed: a"),
        (replace(PROFILE, prompts=(replace(PROFILE.prompts[0], answer=""), PROFILE.prompts[1])), "that changed: a"),
        (replace(PROFILE, prompts=PROFILE.prompts[:1]), "prompts that are gone: b"),
        (replace(PROFILE, prompts=(*PROFILE.prompts, Prompt("c", ""))), "new prompts: c"),
        (replace(PROFILE, prompts=PROFILE.prompts[::-1]), "stand in another order"),
        (replace(PROFILE, n_predict=5), "n_predict = 4, positions = 8, forced = 2, top = 5, variations = batch then"),
        (replace(PROFILE, variations=()), "variations = none now"),
    ],
)
def test_what_is_asked_otherwise_is_named(other: OutputProfile, said: str) -> None:
    """With the prompts, so that a person knows what was edited."""
    assert said in Asked.of(PROFILE).differs_from(Asked.of(other))
    assert bool(said) == bool(Asked.of(PROFILE).differs_from(Asked.of(other)))
