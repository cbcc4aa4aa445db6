"""What a calibration found of outputs is kept, found again for the same content, and travels with the job."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from spread_support import EMPTY, NODE, NOON, OTHER_NODE, TINY, arm

from harness.domain.build import Fork
from harness.domain.errors import BadInput
from harness.domain.job import Design, Job
from harness.domain.model import Model
from harness.domain.node import NodeClass
from harness.domain.tolerance import ContrastClass, Figures
from harness.domain.workload import OutputProfile, Prompt
from harness.models.hashing import model_sha256
from harness.running.known_spreads import KnownSpreads
from harness.running.known_tolerances import KnownTolerances
from harness.running.model_content import content_of
from harness.running.tolerance_file import Found, ToleranceFile, beside, tolerances_in

ANY = NodeClass("any")
PROFILE = OutputProfile("outputs", (Prompt("a", "Hello."),), 8, 16)
SEEN = Figures(mean=1e-3, decode_mean=2e-3, median=1e-4, p90=4e-3, decode_p90=5e-3, p99=0.03, maximum=0.2)
MAIN = arm(fork=Fork.LLAMA_CPP)


def found(contrast: ContrastClass = ContrastClass.FORK, *, mean: float = 1.5e-3, **changes: object) -> Found:
    fields = {
        "content": content_of(TINY), "model": "tiny", "contrast": contrast, "backends": ("the CPU",), "when": NOON,
        "pairs": 3, "positions": 1000, "seen": SEEN, "tolerated": replace(SEEN, mean=mean),
    }  # fmt: skip
    return Found.model_validate(fields | changes)


def job(*others: object, model: Model = TINY, profile: OutputProfile | None = PROFILE) -> Job:
    arms = (replace(MAIN, model=model), *(others or (replace(arm(), model=model),)))
    return Job(arms, (), profile, ANY, Design(), cases=())  # type: ignore[arg-type]


def means(informed: Job) -> dict[str, float]:
    return {str(each.contrast): each.figures.mean for each in informed.tolerances}


FILE = ToleranceFile().with_found(NODE, (found(),))


def test_a_job_gets_what_is_known_of_its_contrast() -> None:
    """Through the one place where jobs are informed, with the day of the calibration."""
    informed = KnownSpreads(EMPTY, NODE, KnownTolerances(FILE, NODE)).informed(job())
    (known,) = informed.tolerances
    assert (known.contrast, known.figures, known.source) == (
        ContrastClass.FORK, replace(SEEN, mean=1.5e-3), "calibration of 2026-11-30",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "node"),
    [
        (job(arm(fork=Fork.LLAMA_CPP, fa=1)), NODE),  # another class of contrast
        (job(model=replace(TINY, quant="Q8_0")), NODE),  # another content
        (job(model=Model("tiny", path="/nowhere/tiny.gguf")), NODE),  # the same name, and a content that is not known
        (job(profile=None), NODE),
        (job(), OTHER_NODE),
    ],
)
def test_elsewhere_it_says_nothing(asked: Job, node: object) -> None:
    assert KnownTolerances(FILE, node).informed(asked).tolerances == ()  # type: ignore[arg-type]


def test_where_the_node_is_not_known_the_most_that_any_tolerates_counts() -> None:
    """And nothing where one of the nodes was never calibrated: it may be the one."""
    both = FILE.with_found(OTHER_NODE, (found(mean=4e-3),))
    assert means(KnownTolerances(both, None).informed(job())) == {"fork": 4e-3}
    one = FILE.with_found(OTHER_NODE, (found(ContrastClass.FLAGS),))
    assert means(KnownTolerances(one, None).informed(job())) == {}


def test_a_later_calibration_takes_the_place_of_an_earlier_one() -> None:
    later = FILE.with_found(NODE, (found(mean=9e-3, when=NOON + timedelta(days=1)), found(ContrastClass.FLAGS)))
    assert len(later.nodes[NODE.fingerprint].found) == 2
    assert means(KnownTolerances(later, NODE).informed(job())) == {"fork": 9e-3}


def test_the_file_is_whole_after_a_change_and_a_foreign_one_is_refused(tmp_path: Path) -> None:
    path = beside(tmp_path / "spreads.json")
    assert path == tmp_path / "spreads.outputs.json"
    assert tolerances_in(path).read() == ToleranceFile()
    tolerances_in(path).change(lambda file: file.with_found(NODE, (found(),)))
    assert tolerances_in(path).read() == FILE
    path.write_text(json.dumps({"nodes": {"x": {"found": 3}}}))
    with pytest.raises(BadInput) as error:
        tolerances_in(path).read()
    assert error.value.slug == "E-tolerances-unreadable"


def test_the_content_of_a_file_is_what_was_hashed_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that nobody has read yet, or that has changed since, has no content that is known."""
    monkeypatch.setenv("MOE_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "model.gguf"
    path.write_bytes(b"one")
    model = Model("model", path=str(path))
    assert content_of(model) == ""
    digest = model_sha256(path)
    assert content_of(model) == content_of(Model("other", sha256=(digest,)))
    path.write_bytes(b"two!")
    assert content_of(model) == ""


def test_a_card_is_its_content_and_its_quantization() -> None:
    assert content_of(TINY) == content_of(replace(TINY, name="another"))
    assert content_of(TINY) != content_of(replace(TINY, quant="F16"))
    assert content_of(Model("lost", card="no-such-card")) == ""
