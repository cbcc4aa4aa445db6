"""Answered requests to rows: right ones by name, everything else named as what is wrong with it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from engine_support import ended, order, wheel_build
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.build import Fork
from harness.domain.measurement import prompt_fact
from harness.domain.workload import Metric, ProfileWorkload, PromptProfile, Timed, Workload
from harness.engines.embedded_engine import EmbeddedEngine
from harness.engines.engine import Order
from harness.engines.profile_rows import Answer, profile_rows

MS = 10**6
CHAT = PromptProfile("chat", "Hello", 17)
RAG = PromptProfile("rag", "Passages", 9, 256)
TIMED = [ProfileWorkload(CHAT, metric) for metric in Metric if metric is not Metric.PEAK]
BUILD = wheel_build(Fork.IK_LLAMA_CPP)
ANSWER = Answer("chat", 30, "ab" * 32, 17, 100 * MS, 90 * MS, 160 * MS, None)
COLD = replace(ANSWER, cold_ns=900 * MS)


def _order(*loads: Timed, repetitions: int = 3) -> Order:
    return order(BUILD, loads or TIMED, repetitions=repetitions)  # type: ignore[arg-type]


def test_each_quantity_becomes_a_row_of_its_own() -> None:
    found = profile_rows(_order(), [COLD, ANSWER, ANSWER, ANSWER])
    assert not found.problems
    assert {name: (row.tokens, row.samples_ns, row.warms_up) for name, row in found.rows.items()} == {
        "chat.cold": (1, (900 * MS,), False),
        "chat.ttft": (1, (100 * MS,) * 3, True),
        "chat.prefill": (30, (90 * MS,) * 3, True),
        "chat.decode": (16, (160 * MS,) * 3, True),
    }
    assert found.prompts == {prompt_fact("chat"): "30 tokens (abababababab)"}


def test_a_cold_request_is_no_warm_sample() -> None:
    found = profile_rows(_order(TIMED[1]), [COLD, ANSWER, ANSWER])
    assert [failure.slug for failure in found.problems] == ["E-rows-missing"]
    assert "chat.ttft: 2 samples, asked 3" in found.problems[0].message


@pytest.mark.parametrize(
    ("answers", "slug", "words"),
    [
        ([], "E-rows-missing", "chat.ttft: 0 samples, asked 3"),
        ([replace(ANSWER, predicted=5)] * 3, "E-echo-mismatch", "5 tokens were generated, asked 17"),
        ([ANSWER, ANSWER, replace(ANSWER, prompt_tokens=31)], "E-echo-mismatch", "changed between requests"),
        ([ANSWER, ANSWER, replace(ANSWER, prompt_sha256="cd" * 32)], "E-echo-mismatch", "changed between requests"),
        (
            [replace(ANSWER, ttft_ns=0)] * 3,
            "E-implausible",
            "chat.ttft, as pp30, repetition 1 of 3: 0 ns is no",
        ),
        ([replace(ANSWER, ttft_ns=-5)] * 3, "E-implausible", "no duration"),
        ([replace(ANSWER, ttft_ns=10)] * 3, "E-implausible", "above the ceiling"),
        ([*[ANSWER] * 3, replace(ANSWER, profile="rag")], "E-unexpected-row", "'rag', which was not asked"),
    ],
)
def test_wrong_answers_are_named(answers: list[Answer], slug: str, words: str) -> None:
    found = profile_rows(_order(TIMED[1]), answers)
    assert [failure.slug for failure in found.problems] == [slug]
    assert words in found.problems[0].message


def test_a_length_that_was_asked_for_is_checked() -> None:
    load = ProfileWorkload(RAG, Metric.PREFILL)
    answer = Answer("rag", 255, "ab", 9, 100 * MS, 90 * MS, 160 * MS, None)
    found = profile_rows(_order(load, repetitions=1), [answer])
    assert "255 tokens of prompt were processed, asked 256" in found.problems[0].message


def test_one_wrong_quantity_does_not_cost_the_others() -> None:
    found = profile_rows(_order(), [COLD, ANSWER, ANSWER, replace(ANSWER, decode_ns=1)])
    assert set(found.rows) == {"chat.cold", "chat.ttft", "chat.prefill"}
    assert "chat.decode, as tg16" in found.problems[0].message


@given(
    st.lists(
        st.builds(
            Answer,
            profile=st.sampled_from(["chat", "rag", ""]),
            prompt_tokens=st.integers(-2, 2) | st.just(256),
            prompt_sha256=st.sampled_from(["", "ab"]),
            predicted=st.sampled_from([17, 9, 0, -1]),
            ttft_ns=st.integers(),
            prefill_ns=st.integers(),
            decode_ns=st.integers(),
            cold_ns=st.none() | st.integers(),
        ),
        max_size=6,
    )
)
def test_no_answer_is_too_wrong_to_be_told(answers: list[Answer]) -> None:
    """Whatever comes, each quantity is either a whole row or a named problem."""
    asked = _order(*TIMED, ProfileWorkload(RAG, Metric.DECODE))
    found = profile_rows(asked, answers)
    for load in asked.workloads:
        assert load.name in found.rows or any(load.name.split(".")[0] in each.message for each in found.problems)
    for row in found.rows.values():
        assert all(value > 0 for value in row.samples_ns)


def test_the_engine_of_a_wheel_asks_for_and_reads_answers() -> None:
    asked = _order(*TIMED)
    request = json.loads(EmbeddedEngine(BUILD).command(asked).stdin)
    assert request["profiles"] == [
        {"name": "chat", "text": "Hello", "n_predict": 17, "prompt_tokens": 0, "cold": True, "warm": True}
    ]
    lines = [
        {"event": "answer", "profile": "chat", "prompt_tokens": 30, "prompt_sha256": "ab", "predicted": 17,
         "ttft_ns": 100 * MS, "prefill_ns": 90 * MS, "decode_ns": 160 * MS, **more}
        for more in ({"cold_ns": 900 * MS}, {}, {}, {})
    ]  # fmt: skip
    text = "\n".join(map(json.dumps, [*lines, {"event": "done"}]))
    report = EmbeddedEngine(BUILD).read(asked, ended(text))
    assert report.failure is None
    assert [row.workload for row in report.rows] == [load.name for load in TIMED]
    assert report.engine[prompt_fact("chat")] == "30 tokens (ab)"


def test_what_is_decided_already_is_not_asked_again() -> None:
    request = json.loads(EmbeddedEngine(BUILD).command(_order(TIMED[3])).stdin)
    assert (request["profiles"][0]["cold"], request["profiles"][0]["warm"]) == (False, True)
    request = json.loads(EmbeddedEngine(BUILD).command(_order(TIMED[0])).stdin)
    assert (request["profiles"][0]["cold"], request["profiles"][0]["warm"]) == (True, False)


def test_an_unreadable_answer_is_no_answer() -> None:
    line = json.dumps({"event": "answer", "profile": "chat", "ttft_ns": "soon"})
    report = EmbeddedEngine(BUILD).read(_order(TIMED[1]), ended(f"{line}\n{json.dumps({'event': 'done'})}"))
    assert report.failure
    assert "1 unreadable line" in report.failure.message


def test_two_cold_starts_of_one_process_are_refused() -> None:
    asked = _order(ProfileWorkload(CHAT, Metric.COLD), ProfileWorkload(RAG, Metric.COLD), Workload(8, 0))
    assert "chat.cold and rag.cold" in EmbeddedEngine(BUILD).refusal(asked)
    assert not EmbeddedEngine(BUILD).refusal(_order())
