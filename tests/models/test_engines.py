"""The tiny model in both real engines: it loads, tokenizes alike, and behaves like a trained one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engine_questions import ask, log_softmax

from harness.engines.embedded.flags import IK, MAINLINE

pytest.importorskip("xllamacpp", reason="moe-harness[local] is not installed")

TEXTS = [
    "",
    " ",
    "Hello world",
    "The quick brown fox, isn't it? It'll do; they're fine.",
    "   three spaces\n\n\nthree lines\t\ttabs \r\n",
    "trailing spaces    ",
    "1234567890 3.14159 1e-6 0xFF",
    "def f(x):\n    return x ** 2  # square\n",
    "for (int i = 0; i < n; ++i) { sum += a[i]; }",
    '{"key": [1, 2, null], "other": "wörd"}',
    "Größe, façade, naïve, Ångström",
    "Привет, мир! Как дела?",
    "你好\uff0c世界。今天天气很好",
    "こんにちは世界",
    "مرحبا بالعالم",
    "नमस्ते दुनिया",
    "👍🏽👩‍👩‍👧‍👦🇩🇪 🎉",
    "e\u0301 vs \u00e9, \u200bzero width, \u00a0nbsp, \u3000wide",
    "∑∫√∞ ≠ ≤ ½ ² ³ Ⅷ ١٢٣",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "<|endoftext|>text<|endoftext|>",
    "<|not_special|> <think>x</think>",
    "a" * 300,
    " \n \n  \n x",
    "https://example.org/a?b=c&d=%20#e",
    "C:\\path\\file.txt ''quotes'' \"double\" `ticks`",
]
PREFILL = [300 + (7919 * at) % 970 for at in range(256)]
PROMPTS = [[300 + (37 * at + 101 * number) % 970 for at in range(12)] for number in range(3)]
REQUEST = {"texts": TEXTS, "prefill": PREFILL, "prompts": PROMPTS, "greedy": 128}


@pytest.fixture(scope="module", params=["F16", "IQ4_XS"])
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What both forks say of one file."""
    model = request.getfixturevalue({"F16": "tiny_f16", "IQ4_XS": "tiny_iq4"}[request.param])
    folder = tmp_path_factory.mktemp("probe")
    found = {fork: ask(fork, model, REQUEST, folder / f"{fork}.npy") for fork in (MAINLINE, IK)}
    return found | {"quant": {"name": request.param}}


def test_both_forks_tokenize_alike(answers: dict[str, dict[str, Any]]) -> None:
    """Unicode, code, numbers, emoji, whitespace and special tokens give the same ids in both."""
    assert answers[MAINLINE]["tokens"] == answers[IK]["tokens"]


def test_merges_and_special_tokens_are_used(answers: dict[str, dict[str, Any]]) -> None:
    """Common text needs far fewer tokens than bytes, and control tokens are one token each."""
    tokens = dict(zip(TEXTS, answers[MAINLINE]["tokens"], strict=True))
    assert len(tokens["The quick brown fox, isn't it? It'll do; they're fine."]) < 30
    assert tokens["<|endoftext|>text<|endoftext|>"][0] == 1272
    assert len(tokens["<|endoftext|>text<|endoftext|>"]) < 7


def test_logits_have_the_promised_spread(answers: dict[str, dict[str, Any]]) -> None:
    """The standard deviation of the logits is about 3.5 and nothing is NaN."""
    for fork in (MAINLINE, IK):
        assert np.isfinite(answers[fork]["logits"]).all()
        assert answers[fork]["logits_sd"] == pytest.approx(3.5, abs=0.1)


def test_greedy_text_is_not_degenerate(answers: dict[str, dict[str, Any]]) -> None:
    """Greedy text keeps visiting new tokens and never ends by a control token."""
    for fork in (MAINLINE, IK):
        distinct = [len(set(text)) for text in answers[fork]["greedy"]]
        assert np.mean(distinct) > 70
        assert min(distinct) > 40
        assert max(max(text) for text in answers[fork]["greedy"]) < 1272


def test_forks_differ_like_on_trained_models(answers: dict[str, dict[str, Any]]) -> None:
    """Between forks the mean KL divergence stays under the floors of docs/judging: the net is not chaotic."""
    mainline, ik = (log_softmax(answers[fork]["logits"]) for fork in (MAINLINE, IK))
    divergence = (np.exp(mainline) * (mainline - ik)).sum(axis=1)
    floor, same_top = {"F16": (3e-4, 0.99), "IQ4_XS": (1.5e-2, 0.91)}[answers["quant"]["name"]]
    assert divergence.mean() < floor
    assert (mainline.argmax(axis=1) == ik.argmax(axis=1)).mean() > same_top
