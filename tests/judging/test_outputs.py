"""Output equivalence without distributions, as old journals have it, with planted differences."""

from __future__ import annotations

import math

import pytest
from judging_support import BASELINE, CANDIDATE, GOOD_TOKENS, PROFILE, answers, output

from harness.domain.model import Model
from harness.domain.outputs import Output
from harness.domain.words import Equivalence, Status
from harness.judging.outputs import judge_outputs
from harness.judging.outputs_allowed import allowed_of
from harness.judging.outputs_sound import is_degenerate
from harness.judging.outputs_verdict import OutputsVerdict
from harness.judging.quants import COARSE, FINE, UNKNOWN, Limits, Quant, limits_of, quant_of
from harness.judging.textdiff import show_divergence

ALLOWED = allowed_of(BASELINE, CANDIDATE, None, (), None)
FLIPPED = (*GOOD_TOKENS[:17], 999, *GOOD_TOKENS[18:])


def judge(candidate: tuple[Output, ...], limits: Limits = FINE, baseline: tuple[Output, ...] = ()) -> OutputsVerdict:
    return judge_outputs(baseline or answers(), candidate, PROFILE, limits, ALLOWED)


def with_margin(margin: float | None) -> tuple[Output, ...]:
    margins = None if margin is None else (9.0,) * 17 + (margin,) + (9.0,) * 14
    return answers(margins=margins)


def test_equal_hashes_and_tokens_are_bitwise() -> None:
    assert judge(answers()).equivalence is Equivalence.BITWISE


@pytest.mark.parametrize("digest", ["bb", ""])
def test_equal_tokens_alone_are_greedy(digest: str) -> None:
    assert judge(answers(logits_sha256=digest)).equivalence is Equivalence.GREEDY


def test_equal_hashes_do_not_excuse_different_tokens() -> None:
    """The hash covers prompt positions only: a broken decode path must not pass as bitwise."""
    assert judge(answers(tokens=FLIPPED)).equivalence is Equivalence.DIFFERENT


@pytest.mark.parametrize(
    ("margin", "limits", "word", "status"),
    [
        (0.1, FINE, Equivalence.NEAR_TIE, Status.PASS),
        (0.5, FINE, None, Status.INCONCLUSIVE),
        (1.01, FINE, Equivalence.DIFFERENT, Status.FAIL),
        (0.5, COARSE, Equivalence.NEAR_TIE, Status.PASS),
        (1.9, COARSE, None, Status.INCONCLUSIVE),
        (2.1, COARSE, Equivalence.DIFFERENT, Status.FAIL),
        (math.inf, COARSE, Equivalence.DIFFERENT, Status.FAIL),
        (math.nan, FINE, None, Status.INCONCLUSIVE),
        (None, FINE, None, Status.INCONCLUSIVE),
    ],
)
def test_the_first_divergence_decides(
    margin: float | None, limits: Limits, word: Equivalence | None, status: Status
) -> None:
    found = judge(answers(tokens=FLIPPED), limits, with_margin(margin))
    assert (found.equivalence, found.status) == (word, status)


def test_later_divergences_of_a_prompt_do_not_count() -> None:
    later = (*GOOD_TOKENS[:17], *range(500, 515))
    assert judge(answers(tokens=later), FINE, with_margin(0.01)).equivalence is Equivalence.NEAR_TIE


def test_the_worst_prompt_decides() -> None:
    baseline = (output("story", margins=(0.01,) * 32), output("code"))
    candidate = (output("story", tokens=FLIPPED), output("code", tokens=FLIPPED))
    found = judge(candidate, FINE, baseline)
    assert found.equivalence is Equivalence.DIFFERENT
    assert "'code'" in found.why


def test_the_reason_names_prompt_position_margin_and_tokens() -> None:
    found = judge(answers(tokens=FLIPPED, text="the quick red fox"))
    assert "prompt 'story' token 17: id 117 became 999, reference margin 3 nat" in found.why
    assert "- baseline   brown fox" in found.detail
    assert "+ candidate  red fox" in found.detail


@pytest.mark.parametrize(
    ("candidate", "why"),
    [
        (answers(prompt_tokens=(1, 2)), "tokenized differently"),
        (answers(finite=False), "NaN or inf"),
        ((output("story"),), "no answer: code"),
        (answers(tokens=GOOD_TOKENS[:31]), "31 tokens"),
        (answers(tokens=(7,) * 32), "degenerate"),
        (answers(tokens=(7, 8) * 16), "degenerate"),
        ((), "no answer"),
    ],
)
def test_broken_outputs(candidate: tuple[Output, ...], why: str) -> None:
    found = judge(candidate)
    assert (found.equivalence, found.status) == (Equivalence.BROKEN, Status.FAIL)
    assert why in found.why


@pytest.mark.parametrize("finite", [True, False])
def test_an_answer_that_nobody_asked_for_is_no_equality(finite: bool) -> None:
    extra = output("uninvited", finite=finite)
    for whose, found in (
        ("the candidate", judge((*answers(), extra))),
        ("the baseline", judge(answers(), FINE, (*answers(), extra))),
    ):
        assert (found.status, found.slug) == (Status.ERROR, "E-outputs-unreadable")
        assert f"{whose} has an answer to prompt 'uninvited', which was not asked" in found.why


def test_degenerate_like_the_reference_is_not_broken() -> None:
    same = answers(tokens=(7,) * 32)
    assert judge(same, FINE, same).equivalence is Equivalence.BITWISE


@pytest.mark.parametrize("baseline", [answers(finite=False), answers(tokens=(1,)), (output("code"),)])
def test_a_broken_reference_is_an_error(baseline: tuple[Output, ...]) -> None:
    assert judge(answers(), FINE, baseline).status is Status.ERROR


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ((1,) * 10, True),
        ((1,) * 9 + (2,), False),
        ((1, 2) * 8, False),
        ((1, 2) * 16, True),
        (range(32), False),
        ((), False),
    ],
)
def test_degenerate_texts(tokens: tuple[int, ...], expected: bool) -> None:
    assert is_degenerate(tokens) is expected


@pytest.mark.parametrize(
    ("model", "limits"),
    [
        (Model("m", card="c", quant="IQ4_XS"), COARSE),
        (Model("m", card="c", quant="Q4_K_M"), COARSE),
        (Model("m", card="c", quant="F16"), FINE),
        (Model("m", card="c", quant="Q8_0"), FINE),
        (Model("m", path="/models/Qwen3-30B-A3B-UD-Q4_K_XL.gguf"), COARSE),
        (Model("m", path="/models/qwen3-30b-a3b-bf16.gguf"), FINE),
        (Model("m", path="/models/something.gguf"), UNKNOWN),
    ],
)
def test_limits_follow_the_quantization(model: Model, limits: Limits) -> None:
    assert limits_of(model) is limits


@pytest.mark.parametrize(
    ("name", "quant"),
    [
        ("a-UD-Q4_K_XL.gguf", Quant.Q4_K),
        ("a-Q4_K_M.gguf", Quant.Q4_K),
        ("a-IQ4_XS.gguf", Quant.IQ4_XS),
        ("a-IQ4_NL.gguf", Quant.COARSE),
        ("a-Q4_0.gguf", Quant.COARSE),
        ("a-Q5_K_M.gguf", Quant.MIDDLE),
        ("a-IQ4_XSS.gguf", Quant.COARSE),
        ("/x/Q4_K_M/model-F16.gguf", Quant.FULL),
        ("/home/iq3_user/model-bf16.gguf", Quant.FULL),
        ("/x/Q4_K_M/model.gguf", Quant.Q4_K),
        ("/home/iq3_user/models/model.gguf", Quant.UNKNOWN),
    ],
)
def test_types_with_floors_of_their_own_are_told_from_others_of_their_width(name: str, quant: Quant) -> None:
    assert quant_of(Model("m", path=name)) is quant


def test_text_differences_show_control_characters() -> None:
    shown = show_divergence("a\tb" + "x" * 200, "a\nb")
    assert "- baseline   \\tb" in shown
    assert "+ candidate  \\nb" in shown
    assert "+ candidate  (ends)" in show_divergence("abc", "ab")
