"""An arm against what is on record: alike, wrong, or refused because the record is of something else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from judging_support import ANY, BASELINE, CANDIDATE, NODE, run
from outputs_support import FORCED, PREFILL, WIDE, answers_of, logits_of, table_of

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.case import Case, OutputCheck
from harness.domain.golden import MODEL, TENSORS, TOKENIZER, ArmReference, Asked, Golden, Record
from harness.domain.job import Design, Job
from harness.domain.measurement import ProcessRun
from harness.domain.node import Gpu, NodeFacts
from harness.domain.outputs import Output, Ranks
from harness.domain.policy import Policy
from harness.domain.stopping import AfterOutputs
from harness.domain.tolerance import ContrastClass
from harness.domain.verdict import Verdict
from harness.domain.words import Equivalence, Kind, Status
from harness.judging.judge import judge
from harness.judging.outputs_allowed import contrast_class
from harness.judging.outputs_golden import unfit
from harness.judging.record import JobRecord
from harness.judging.stopping import SequentialStopping
from harness.ranking import pack

KEY = "gold/tiny/ik@any"
CHECK = OutputCheck("gold", "reference", reference=KEY)
FACTS = {MODEL: "aa11", TOKENIZER: "bb22", TENSORS: "F32 31, IQ4_XS 25"}


def answering(outputs: Sequence[Output], **facts: str) -> ProcessRun:
    return replace(run(0, -1, None, outputs=tuple(outputs)), engine={**FACTS, **facts})


GOOD = answering(answers_of())
RECORD = Record(BASELINE, Asked.of(WIDE), GOOD, NODE, "2026-01-02T03:04:05+00:00", "1.0")


def job_of(*goldens: Golden) -> Job:
    return Job((BASELINE,), (), WIDE, ANY, Design(), (), references=(ArmReference(0, CHECK),), goldens=goldens)


def judged(*runs: ProcessRun, golden: Golden | None = None, record: Record = RECORD) -> Verdict:
    case = Case(Kind.EQUIVALENCE, (BASELINE,), WIDE, ANY, CHECK)
    job = job_of(golden or Golden(KEY, record))
    return judge(case, JobRecord(job, runs, node=NODE), Policy())


def test_the_same_answers_are_bitwise() -> None:
    """And what was expected names the record."""
    found = judged(GOOD)
    assert (found.status, found.equivalence) == (Status.PASS, Equivalence.BITWISE)
    assert found.expected == f"outputs equivalent to those on record as {KEY}"


def test_only_what_passes_beside_itself_can_be_recorded() -> None:
    """Neither NaN that the engine's flag did not tell, nor damage, nor a lost or doubled answer."""
    good = answers_of()
    assert unfit(good, BASELINE, WIDE) == ""
    table = table_of(logits_of("p0", PREFILL))
    nan = replace(good[0], prefill=pack(replace(table, logprobs=np.full_like(table.logprobs, np.nan))))
    damaged = replace(good[0], forced=Ranks(FORCED, 20, "!"))
    for first, told in (
        ((nan,), "NaN"),
        ((damaged,), "damaged"),
        ((), "no answer"),
        ((good[0], good[0]), "two answers"),
    ):
        assert told in unfit((*first, *good[1:]), BASELINE, WIDE)


def test_rounding_passes_and_noise_fails() -> None:
    """By the same tolerances as two arms of one job."""
    assert judged(answering(answers_of(0.005))).status is Status.PASS
    loud = answering(answers_of(1.5))
    found = judged(loud, loud)
    assert (found.status, found.equivalence) == (Status.FAIL, Equivalence.DIFFERENT)


def test_what_fresh_processes_do_not_show_again_is_no_finding() -> None:
    """One bad process is not a bad build."""
    found = judged(answering(answers_of(1.5)), GOOD)
    assert found.status is Status.INCONCLUSIVE
    assert "not repeated" in found.reason


def test_a_finding_is_asked_again_once() -> None:
    """Whoever runs the job is told so; after that it stands."""
    rule, job = SequentialStopping(Policy()), job_of(Golden(KEY, RECORD))
    loud = answering(answers_of(1.5))
    assert rule.after_outputs(job, [loud], NODE) is AfterOutputs.REPEAT
    assert rule.after_outputs(job, [loud, loud], NODE) is AfterOutputs.GO_ON
    assert rule.after_outputs(job, [GOOD], NODE) is AfterOutputs.GO_ON


@pytest.mark.parametrize(
    ("now", "slug", "said"),
    [
        ({MODEL: "cc33", TENSORS: "Q4_K 23"}, "E-reference-model", "IQ4_XS 25 (sha256 aa11), recorded 2026-01-02"),
        ({MODEL: "cc33", TOKENIZER: "dd44"}, "E-reference-tokenizer", "its tokenizer is not today's"),
        ({MODEL: ""}, "E-reference-model", "sha256 unknown"),
    ],
)
def test_another_model_is_refused_and_never_equal(now: dict[str, str], slug: str, said: str) -> None:
    """Although all its answers are equal to the bit."""
    found = judged(answering(answers_of(), **now))
    assert (found.status, found.equivalence, found.slug) == (Status.ERROR, None, slug)
    assert said in found.reason
    assert "no baseline: " in found.reason


def test_other_prompts_are_refused() -> None:
    """With the names of those that changed."""
    first, *others = WIDE.prompts
    then = replace(WIDE, prompts=(replace(first, text="Something else?"), *others))
    found = judged(GOOD, record=replace(RECORD, asked=Asked.of(then)))
    assert (found.status, found.equivalence, found.slug) == (Status.ERROR, None, "E-reference-prompts")
    assert "prompts that changed: p0" in found.reason


@pytest.mark.parametrize(
    ("golden", "slug"),
    [
        (Golden(KEY, None, "E-reference-damaged", "gold.jsonl was cut short"), "E-reference-damaged"),
        (Golden("gold/tiny/another@any", RECORD), "E-reference-missing"),
    ],
)
def test_what_cannot_be_used_is_an_error(golden: Golden, slug: str) -> None:
    """Never a pass, and never a failure of the arm."""
    found = judged(GOOD, golden=golden)
    assert (found.status, found.equivalence, found.slug) == (Status.ERROR, None, slug)


def test_what_to_do_is_the_users_own_command() -> None:
    """With the matrix and the folder that were given; journals from before know none."""
    then = replace(WIDE, prompts=(replace(WIDE.prompts[0], text="Something else?"), *WIDE.prompts[1:]))
    record = replace(RECORD, asked=Asked.of(then))
    command = "moe-harness reference update mine.toml --references kept"
    found = judged(GOOD, golden=Golden(KEY, record, update=command))
    assert f"; {command} shows what would change" in found.reason
    assert "moe-harness reference update MATRIX shows" in judged(GOOD, record=record).reason


def test_a_record_with_nan_is_no_reference() -> None:
    """It can only have been written by hand."""
    bad = answering([replace(answers_of()[0], finite=False), *answers_of()[1:]])
    assert judged(GOOD, record=replace(RECORD, run=bad)).slug == "E-no-baseline"


def test_an_arm_that_crashed_fails() -> None:
    """The record is not to blame."""
    assert judged(answering([replace(answers_of()[0], tokens=()), *answers_of()[1:]])).status is Status.FAIL


def test_what_was_recorded_another_time_is_another_build() -> None:
    """A name can mean another build by now; another fork and other kernels are wider still."""
    other = replace(BASELINE, build=Build("mainline", Fork.LLAMA_CPP, wheel="xllamacpp"))
    assert contrast_class(BASELINE, BASELINE, NODE) is ContrastClass.FLAGS
    assert contrast_class(BASELINE, BASELINE, NODE, NODE) is ContrastClass.BUILD
    assert contrast_class(BASELINE, CANDIDATE, NODE, NODE) is ContrastClass.KERNELS
    assert contrast_class(other, BASELINE, NODE, NODE) is ContrastClass.FORK


def test_another_backend_then_is_another_backend_now() -> None:
    """Where each ran counts, not only where it runs."""
    program = Arm(Build("p", Fork.LLAMA_CPP, path="llama-bench"), BASELINE.model, BASELINE.flags)
    with_gpu: NodeFacts = replace(NODE, gpus=(Gpu("GPU", 1 << 34, "1", "GPU-0"),))
    assert contrast_class(program, program, NODE, with_gpu) is ContrastClass.BACKEND
    assert contrast_class(program, program, with_gpu, with_gpu) is ContrastClass.BUILD
