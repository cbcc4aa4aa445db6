"""Real children that answer requests: what is timed, what goes in and what comes out, in both forks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.embedded.errors import EmbeddedError
from harness.engines.embedded.flags import FORKS, IK, MAINLINE
from harness.engines.embedded.profile_tokens import fitted, tokens_digest
from harness.engines.embedded.request import parse_request

TEXT = "the end of her hat and the other one. "
CHAT = {"name": "chat", "text": TEXT, "n_predict": 12, "prompt_tokens": 0, "cold": True, "warm": True}
OUTPUTS: dict[str, Any] = {"prompts": [{"name": "same", "text": TEXT}], "n_predict": 12, "positions": 8}


@pytest.fixture(scope="module", params=FORKS)
def answered(request: pytest.FixtureRequest, child: Any, tiny_f16: Path) -> Any:
    pytest.importorskip("xllamacpp")
    pytest.importorskip("ik_llama_cpp")
    return child(request.param, tiny_f16, loads={}, profiles=[CHAT], outputs=OUTPUTS)


def test_the_first_request_comes_first_and_alone_is_cold(answered: Any) -> None:
    """One line a request: the first since the engine was opened, then as many as repetitions were asked for."""
    assert answered.code == 0, answered.stderr
    assert [event["event"] for event in answered.events] == ["hello", "loaded", *["answer"] * 4, "output", "done"]
    assert ["cold_ns" in event for event in answered.of("answer")] == [True, False, False, False]


def test_the_answer_is_the_greedy_one(answered: Any) -> None:
    """Each chosen token really is what is decoded next: outputs, made another way, continue alike."""
    (output,) = answered.of("output")
    for event in answered.of("answer"):
        assert event["prompt_sha256"] == tokens_digest(output["tokens"])
        assert event["prompt_tokens"] == len(output["tokens"])
        assert event["predicted_sha256"] == tokens_digest(output["greedy"])
        assert event["predicted"] == 12


def test_times_lie_in_one_another(answered: Any) -> None:
    """Prefill is a part of the time to the first token, which is a part of the cold start, as loading is."""
    first = answered.of("answer")[0]
    loaded = answered.of("loaded")[0]
    assert 0 < first["prefill_ns"] < first["ttft_ns"] < first["cold_ns"]
    assert first["cold_ns"] > loaded["load_ns"] + loaded["context_ns"] + first["ttft_ns"]
    assert all(event["decode_ns"] > 0 for event in answered.of("answer"))


@pytest.mark.parametrize("fork", FORKS)
def test_prompts_longer_than_a_batch_are_cut_to_the_length_asked(fork: str, child: Any, tiny_f16: Path) -> None:
    """The same tokens in batches of 16 and of 2048, and both forks cut alike."""
    plan = {**CHAT, "prompt_tokens": 100, "n_predict": 4, "warm": False}
    small, large = (
        child(fork, tiny_f16, loads={}, profiles=[plan], flags=flags) for flags in ({"b": 16, "ub": 16}, {})
    )
    (one,), (other,) = small.of("answer"), large.of("answer")
    assert one["prompt_tokens"] == other["prompt_tokens"] == 100
    assert one["prompt_sha256"] == other["prompt_sha256"]
    assert one["predicted_sha256"] == other["predicted_sha256"], "positions and batches fit together"


def test_both_forks_answer_the_same_tokens(child: Any, tiny_f16: Path) -> None:
    lines = [child(fork, tiny_f16, loads={}, profiles=[{**CHAT, "cold": False}]).of("answer")[0] for fork in FORKS]
    assert lines[0]["prompt_sha256"] == lines[1]["prompt_sha256"]
    assert lines[0]["predicted_sha256"] == lines[1]["predicted_sha256"]


def test_a_planted_slowdown_reaches_requests_too(child: Any, tiny_f16: Path) -> None:
    """A child at a twentieth of its speed answers clearly later, and its cold start holds the whole first request."""
    plan = {**CHAT, "prompt_tokens": 256}
    fast, slow = (
        child(IK, tiny_f16, loads={}, profiles=[plan], **more).of("answer")[0] for more in ({}, {"slowdown": 0.95})
    )
    assert slow["ttft_ns"] > 3 * fast["ttft_ns"]
    assert slow["cold_ns"] > slow["ttft_ns"], "which takes far longer than all before it"


@pytest.mark.parametrize(
    ("change", "slug"),
    [
        ({"prompt_tokens": 4000}, "E-prompt-too-long"),
        ({"n_predict": 4000}, "E-prompt-too-long"),
    ],
)
def test_a_prompt_beyond_the_trained_context_is_refused_by_name(
    child: Any, tiny_f16: Path, change: dict[str, int], slug: str
) -> None:
    result = child(MAINLINE, tiny_f16, loads={}, profiles=[{**CHAT, **change}])
    assert result.of("failed")[0]["slug"] == slug
    assert "chat" in result.of("failed")[0]["message"]


def test_two_cold_starts_in_one_process_are_refused() -> None:
    text = '{"fork": "llama.cpp", "model": "m", "threads": 1, "profiles": [%s, %s]}'
    plan = '{"name": "a", "text": "x", "n_predict": 2, "cold": true}'
    with pytest.raises(EmbeddedError, match="only the first can be cold"):
        parse_request(text % (plan, plan))


@given(body=st.lists(st.integers(0, 9), min_size=1, max_size=20), begin=st.sampled_from([[], [77]]), data=st.data())
def test_fitted_prompts_have_the_length_asked_and_keep_the_end(
    body: list[int], begin: list[int], data: st.DataObject
) -> None:
    count = data.draw(st.integers(len(begin) + 1, 100))
    tokens = fitted(body, begin, count)
    assert len(tokens) == count
    assert tokens[: len(begin)] == begin
    rest = tokens[len(begin) :]
    assert rest[-min(len(rest), len(body)) :] == body[-min(len(rest), len(body)) :], "what is asked stands at the end"
    assert fitted(body, begin, 0) == [*begin, *body]
