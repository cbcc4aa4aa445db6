"""Quantities of a prompt profile are judged by the same rule; times read in ms."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from judging_support import ANY, BASELINE, CANDIDATE, NODE

from harness.domain.case import Case, Check, ContrastCheck, Expectation, FloorCheck
from harness.domain.job import Design, Job
from harness.domain.measurement import Conditions, ProcessRun, Samples, Step, prompt_fact
from harness.domain.policy import Policy
from harness.domain.verdict import Verdict
from harness.domain.words import Kind, Status, Throughput
from harness.domain.workload import Metric, ProfileWorkload, PromptProfile
from harness.judging.judge import judge
from harness.judging.record import JobRecord
from harness.reporting.codec import decode, decode_case, encode, encode_case
from harness.reporting.junit import make_junit
from harness.reporting.summary import summary_text

CHAT = PromptProfile("chat", "Hello", 16)
TTFT, COLD, PREFILL = (ProfileWorkload(CHAT, metric) for metric in (Metric.TTFT, Metric.COLD, Metric.PREFILL))
POLICY = Policy()
_WOBBLE = (1.0, 1.002, 0.999, 1.001, 0.998, 1.0)


def _run(arm: int, block: int, load: ProfileWorkload, ns: int, *, tokens: int = 1, prompt: str = "5 ids") -> ProcessRun:
    return ProcessRun(
        step=Step(arm, block),
        content_key=f"content-{arm}",
        samples=(Samples(load.name, tokens, (ns,), 0),),
        outputs=(),
        wall_s=1.0,
        load_s=None,
        max_rss_bytes=1,
        conditions=Conditions(0, (0,), 1, 0.0),
        engine={prompt_fact("chat"): prompt},
    )


def _times(load: ProfileWorkload, *ms: float) -> list[ProcessRun]:
    """Processes of each arm around a time, in blocks."""
    return [
        _run(arm, block, load, round(each * wobble * (1 + 0.0003 * arm * block) * 1e6))
        for arm, each in enumerate(ms)
        for block, wobble in enumerate(_WOBBLE)
    ]


def _case(load: ProfileWorkload, check: Check) -> Case:
    arms = (BASELINE, CANDIDATE) if isinstance(check, ContrastCheck) else (BASELINE,)
    return Case(Kind.THROUGHPUT, arms, load, ANY, check)


def _judged(case: Case, runs: list[ProcessRun]) -> Verdict:
    assert isinstance(case.workload, ProfileWorkload)
    job = Job(case.arms, (case.workload,), None, ANY, Design(), (case.id,))
    return judge(case, JobRecord(job, tuple(runs), None, NODE), POLICY)


REPORT = ContrastCheck("patch", "build", Expectation.NO_REGRESSION)


def test_a_longer_time_to_first_token_is_a_regression_and_reads_in_ms() -> None:
    """The public report that llama-bench did not see: TTFT 3777 -> 7459 ms."""
    found = _judged(_case(TTFT, REPORT), _times(TTFT, 3777.0, 7459.0))
    assert (found.status, found.throughput) == (Status.FAIL, Throughput.REGRESSED)
    assert re.search(r"37\d\d -> 74\d\d ms", found.reason), found.reason
    assert "t/s" not in found.reason
    assert found.estimate
    assert found.estimate.value == pytest.approx(3777 / 7459, rel=0.01), "above 1 is better, for times too"
    assert [round(arm.ms or 0, -2) for arm in found.arms] == [3800, 7500]


def test_a_cold_start_has_one_sample_a_process_and_none_of_it_is_warm_up() -> None:
    found = _judged(_case(COLD, REPORT), _times(COLD, 28035.0, 2339.0))
    assert found.throughput is Throughput.IMPROVED


@pytest.mark.parametrize(
    ("limit", "status", "words"),
    [
        (300.0, Status.PASS, "within the limit of 300 ms"),
        (150.0, Status.FAIL, "beyond the limit of 150 ms"),
        (200.0, Status.INCONCLUSIVE, "spans the limit of 200 ms"),
    ],
)
def test_a_limit_in_ms_is_a_ceiling(limit: float, status: Status, words: str) -> None:
    found = _judged(_case(TTFT, FloorCheck(None, limit)), _times(TTFT, 200.0))
    assert found.status is status
    assert words in found.reason
    assert found.expected == f"at most {limit:g} ms"
    assert found.estimate
    assert found.estimate.unit == "ms"
    assert found.estimate.low < 200 < found.estimate.high


def test_a_time_without_a_limit_is_shown() -> None:
    found = _judged(_case(TTFT, FloorCheck(None)), _times(TTFT, 200.0))
    assert found.status is Status.PASS
    assert "200.0 ms [" in found.reason
    assert found.expected == "the speed is shown, no floor"


def test_prompts_cut_into_other_tokens_are_no_contrast() -> None:
    runs = _times(TTFT, 200.0, 200.0)
    runs = [replace(run, engine={prompt_fact("chat"): f"{5 + run.step.arm} ids"}) for run in runs]
    found = _judged(_case(TTFT, REPORT), runs)
    assert (found.status, found.slug) == (Status.ERROR, "E-tokenizers-differ")
    assert "prompt of chat was not cut into the same tokens: baseline" in found.reason
    assert "5 ids; candidate" in found.reason


def test_prefill_may_have_as_many_tokens_as_the_tokenizer_makes_unless_they_were_asked_for() -> None:
    runs = [_run(0, block, PREFILL, 10**8, tokens=37) for block in range(3)]
    assert _judged(_case(PREFILL, FloorCheck(None)), runs).status is Status.PASS
    asked = ProfileWorkload(replace(CHAT, prompt_tokens=64), Metric.PREFILL)
    found = _judged(_case(asked, FloorCheck(None)), runs)
    assert (found.status, found.slug) == (Status.ERROR, "E-echo-mismatch")


def test_journal_junit_and_summary_carry_times_in_ms() -> None:
    case = _case(TTFT, REPORT)
    assert decode_case(encode_case(case)) == case
    job = Job(case.arms, (COLD, TTFT, PREFILL), None, ANY, Design(), (case.id,))
    assert decode(Job, encode(job)) == job
    verdict = _judged(case, _times(TTFT, 3777.0, 7459.0))
    assert decode(Verdict, encode(verdict)) == verdict
    document = make_junit("m", [verdict]).tostring()
    text = document.decode() if isinstance(document, bytes) else str(document)
    assert f'name="ms[{BASELINE.label}]"' in text
    assert "tps[" not in text
    assert re.search(r"37\d\d ms \(0\.\d %\)", summary_text([verdict]))
