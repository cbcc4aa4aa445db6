"""What is made of both forks' answers: tokens, distributions, and a name for everything that is no answer.

The answers are written from the forks' sources (``fake_answers.py``); the real llama.cpp server is below.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_support import order, path_build, wheel_build
from fake_answers import END, VOCABULARY, ik_answer, logits_after, mainline_answer

from harness.domain.build import Build, Fork
from harness.domain.outputs import Output, Ranks, Source
from harness.domain.workload import OutputProfile, Prompt
from harness.engines.embedded.errors import EmbeddedError
from harness.engines.embedded_engine import EmbeddedEngine
from harness.engines.engine import Engine, Exit
from harness.engines.flags import complete
from harness.engines.served.completions import IK, MAINLINE, Asking, Dialect, Ranked
from harness.engines.served.outputs import forced_places
from harness.engines.served.places import Place, Places
from harness.engines.served.tails import can_tell, corrected, is_doubled
from harness.engines.served_engine import ServedEngine
from harness.ranking import Table, divergences, unpack

LAUNCHER = Path(__file__).parent.parent / "standin" / "wheel_server.py"
PLAIN = ord("a")
TOP = 20
Answer = Callable[[dict[str, Any]], dict[str, Any]]
ANSWERS: dict[str, Answer] = {MAINLINE.path: mainline_answer, IK.path: ik_answer}


@dataclass
class _Server:
    """Answers as a fork does and remembers what it was asked."""

    answer: Answer
    bodies: list[Mapping[str, Any]] = field(default_factory=list)

    def send(self, path: str, body: Mapping[str, Any], doing: str) -> Mapping[str, Any]:  # noqa: ARG002 - the protocol
        self.bodies.append(body)
        return self.answer(dict(body))


def _places(dialect: Dialect, answer: Answer | None = None, top: int = TOP) -> tuple[Places, _Server]:
    server = _Server(answer or ANSWERS[dialect.path])
    return Places(server.send, dialect, top, PLAIN), server


def _truth(context: list[int], top: int = TOP) -> Ranked:
    logits = logits_after(context).astype(float)
    logprobs = logits - logits.max() - math.log(np.exp(logits - logits.max()).sum())
    ids = np.argsort(-logprobs)[:top]
    return Ranked(tuple(ids.tolist()), tuple(logprobs[ids].tolist()))


def _assert_right(prompt: list[int], found: list[Place]) -> None:
    context = list(prompt)
    for place in found:
        truth = _truth(context, len(place.ranked.ids))
        assert (place.token, place.ranked.ids) == (truth.ids[0], truth.ids)
        assert place.ranked.logprobs == pytest.approx(truth.logprobs, abs=2e-5)
        context.append(place.token)


@pytest.mark.parametrize("dialect", [MAINLINE, IK])
@pytest.mark.parametrize("prompt", [[1, 2, 3], [7], list(b"the end of her hat")])
def test_tokens_and_distributions_are_those_of_the_logits(dialect: Dialect, prompt: list[int]) -> None:
    """Whatever is hidden, ends a text or is counted twice on the way."""
    places, _ = _places(dialect)
    _assert_right(prompt, places.follow(prompt, 40, "here"))


def _with(what: str) -> list[int]:
    """A prompt after which, within 24 tokens, a token is hidden or a text ends."""
    for start in range(1, 500):
        prompt, tokens = [start % 256, start // 256, 3], []
        for _ in range(24):
            tokens.append(_truth([*prompt, *tokens]).ids[0])
        if (END in tokens[:-1]) if what == "end" else (0xC2 <= tokens[4] <= 0xF4 and END not in tokens):
            return prompt
    raise AssertionError(what)


@pytest.mark.parametrize("dialect", [MAINLINE, IK])
def test_what_leaves_half_a_character_is_asked_for_again(dialect: Dialect) -> None:
    """Both forks rank nothing there; without asking, ids would be missing (ik_llama.cpp) or rows be of other tokens."""
    prompt = _with("hidden")
    places, server = _places(dialect)
    _assert_right(prompt, places.follow(prompt, 24, "here"))
    forcing = [body for body in server.bodies if body["logit_bias"]]
    assert forcing
    assert all(body["n_predict"] == 1 for body in forcing)


def test_a_row_that_could_belong_to_two_places_is_taken_for_neither() -> None:
    """The bytes E2 80 80 are one character: of two equal tokens the first one is hidden, and only ids tell."""
    tokens, prompt = [0xE2, 0x80, 0x80, ord("A")], [1, 2]

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        asked_once_more = bool(body["logit_bias"])
        best = [200 + len(body["prompt"])] if asked_once_more else [0x80, ord("A")]
        ranked = [[{"id": token, "logprob": -0.1}, {"id": 5, "logprob": -3.0}] for token in best]
        chosen = [PLAIN] if asked_once_more else best
        entries = [{"id": token, "top_logprobs": row} for token, row in zip(chosen, ranked, strict=True)]
        generated = [PLAIN] if asked_once_more else tokens
        told = {"tokens": generated, "tokens_evaluated": len(body["prompt"])}
        return {**told, "completion_probabilities": entries}

    places, _ = _places(MAINLINE, answer, top=2)
    found = places.follow(prompt, 4, "here")
    assert [place.token for place in found] == tokens
    assert [place.ranked.ids[0] for place in found] == [202, 203, 204, ord("A")]


@pytest.mark.parametrize("dialect", [MAINLINE, IK])
def test_an_end_of_text_ends_no_answer(dialect: Dialect) -> None:
    """And nothing is told to ignore it: that would change ik_llama.cpp's distributions."""
    prompt = _with("end")
    places, server = _places(dialect)
    found = places.follow(prompt, 24, "here")
    _assert_right(prompt, found)
    assert END in [place.token for place in found]
    assert not any("ignore_eos" in body for body in server.bodies)


def test_requests_are_greedy_alone_and_without_a_cache() -> None:
    places, server = _places(MAINLINE)
    places.follow([1], 2, "here")
    said = server.bodies[0]
    wanted = {"temperature": 0.0, "top_k": 1, "cache_prompt": False, "n_probs": TOP, "return_tokens": True}
    assert {key: said[key] for key in wanted} == wanted
    assert (said["seed"], said["repeat_penalty"], said["stream"]) == (42, 1.0, False)


def test_ik_is_asked_for_a_stream_with_its_usage() -> None:
    """Sent at once, half a character among the listed texts is an error of the real server (8337e4cd)."""
    body = IK.body(Asking([1], 2, TOP))
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})


# ---- the tail that is counted twice ----------------------------------------------------------------------------------


def _listed(context: list[int], top: int, *, doubled: bool) -> Ranked:
    body = {"prompt": context, "n_predict": 1, "logprobs": top}
    return IK.read(ik_answer(body, doubled=doubled), Asking(context, 1, top), "").entries[0][1]


CONTEXTS = [[number, 9] for number in range(1, 40) if _truth([number, 9]).ids[0] < 0xC0]


def test_uncorrected_the_listed_probabilities_are_too_low() -> None:
    """Or the correction would be tested on nothing: at 10 listed tokens by 0.18 nat and more."""
    errors = [_truth(at, 10).logprobs[0] - _listed(at, 10, doubled=True).logprobs[0] for at in CONTEXTS]
    assert max(errors) > 0.18
    assert min(errors) > 0


@pytest.mark.parametrize("top", [1, 2, 10, 20, 255, VOCABULARY])
def test_the_tail_is_counted_once_whatever_was_listed(top: int) -> None:
    for context in CONTEXTS:
        assert corrected(_listed(context, top, doubled=True)).logprobs == pytest.approx(
            _truth(context, top).logprobs, abs=1e-5
        )


def test_whether_it_is_counted_twice_is_seen_from_one_place_asked_twice() -> None:
    for context in CONTEXTS:
        for doubled in (True, False):
            ranked, alone = (_listed(context, top, doubled=doubled) for top in (TOP, 1))
            if can_tell(ranked):
                assert is_doubled(ranked, alone) is doubled
    assert sum(can_tell(_listed(context, TOP, doubled=False)) for context in CONTEXTS) > len(CONTEXTS) / 2


def test_a_server_that_is_mended_is_not_corrected() -> None:
    places, server = _places(IK, lambda body: ik_answer(body, doubled=False))
    _assert_right(CONTEXTS[0], places.follow(CONTEXTS[0], 12, "here"))
    places.follow(CONTEXTS[1], 12, "here")
    assert sum(body["logprobs"] == 1 for body in server.bodies) == 1, "it is asked once"


def test_a_server_whose_places_contradict_each_other_is_not_believed() -> None:
    def other(body: dict[str, Any]) -> dict[str, Any]:
        found = ik_answer(body)
        if body["logprobs"] == 1:
            _entries(found)[0]["top_logprobs"][0]["logprob"] -= 0.5
        return found

    places, _ = _places(IK, other)
    with pytest.raises(EmbeddedError, match=r"E-answer-mismatch: .*other probabilities when fewer tokens are named"):
        places.follow(CONTEXTS[0], 12, "here")


# ---- what is no answer -----------------------------------------------------------------------------------------------


def _entries(answer: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        answer["choices"][0]["logprobs"]["content"] if "choices" in answer else answer["completion_probabilities"]
    )
    return found


def _set(answer: dict[str, Any], place: str, value: object) -> None:
    """Spoil the ranked tokens of the second place."""
    for index, entry in enumerate(_entries(answer)[1]["top_logprobs"]):
        if place == "id":
            entry["id"] = value
        elif index < 2:
            entry["logprob"] = value


def _drop(answer: dict[str, Any]) -> None:
    answer.pop("completion_probabilities", None)
    if "choices" in answer:
        answer["choices"][0]["logprobs"] = None


def _fewer(answer: dict[str, Any]) -> None:
    if "tokens" in answer:
        answer["tokens"].pop()
        answer["completion_probabilities"].pop()
    else:
        answer["usage"]["completion_tokens"] = 0


def _other_prompt(answer: dict[str, Any]) -> None:
    answer["tokens_evaluated"] = answer.setdefault("usage", {})["prompt_tokens"] = 99


def _cached(answer: dict[str, Any]) -> None:
    answer["timings"]["prompt_n"] = 1


def _unchosen(answer: dict[str, Any]) -> None:
    entry = _entries(answer)[1]
    entry["id"] = entry["top_logprobs"][1]["id"]


SPOILT: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "no logprobs": (_drop, "E-logprobs-missing"),
    "no list of them": (lambda a: _entries(a)[1].pop("top_logprobs"), "E-logprobs-missing"),
    "other words": (lambda a: _entries(a)[1].update(top_logprobs=[{"id": 1, "prob": 0.5}]), "E-logprobs-missing"),
    "words for numbers": (lambda a: _set(a, "logprob", "low"), "E-logprobs-missing"),
    "no ids": (lambda a: _entries(a)[1].pop("id"), "a token has no id"),
    "no ids in the list": (lambda a: _set(a, "id", None), "a ranked token has no id"),
    "one id twice": (lambda a: _set(a, "id", 5), "ranks token 5 twice at one place"),
    "not in order": (lambda a: _set(a, "logprob", -9.0), "not in order of their probabilities"),
    "above one": (lambda a: _set(a, "logprob", 0.5), "a log-probability is 0.5"),
    "another token": (_unchosen, "it does not generate greedily"),
    "another prompt": (_other_prompt, "it answers a prompt of 99 tokens, asked 2"),
    "a cache": (_cached, "it used a cache"),
    "fewer tokens": (_fewer, r"it generated \d tokens, asked 6"),
    "no choices": (lambda a: a.update(choices=[], tokens=None), "not one choice|names no ids"),
    "no count": (lambda a: a.update(usage={}, tokens_evaluated=None), "a prompt of None tokens|how many tokens"),
}


@pytest.mark.parametrize("dialect", [MAINLINE, IK])
@pytest.mark.parametrize("spoilt", SPOILT)
def test_what_is_no_answer_is_named(dialect: Dialect, spoilt: str) -> None:
    spoil, words = SPOILT[spoilt]
    context = next(at for at in CONTEXTS if _all_shown(at, 6))

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        found = ANSWERS[dialect.path](body)
        spoil(found)
        return found

    places, _ = _places(dialect, answer)
    with pytest.raises(EmbeddedError, match=words):
        places.follow(context, 6, "at prompt p")


def _all_shown(context: list[int], count: int) -> bool:
    answer = mainline_answer({"prompt": context, "n_predict": count, "n_probs": 1, "return_tokens": True})
    return len(answer["tokens"]) == count == len(answer["completion_probabilities"])


def test_null_is_a_row_that_is_not_finite() -> None:
    """JSON has no NaN: both forks write ``null``. Such a row equals nothing, and is no smaller list."""
    found = MAINLINE.read(_nulled(), Asking([5, 9], 1, 3), "").entries[0][1]
    assert not found.finite
    assert len(found.ids) == 3


def _nulled() -> dict[str, Any]:
    ranked = [{"id": token, "logprob": None} for token in (0, 1, 2)]
    return {"tokens": [0], "tokens_evaluated": 2, "completion_probabilities": [{"id": 0, "top_logprobs": ranked}]}


@pytest.mark.parametrize(
    ("count", "places"), [(0, ()), (1, (0,)), (3, (0, 1, 2)), (8, tuple(range(8))), (16, (1, 3, 5, 7, 9, 11, 13, 15))]
)
def test_forced_places_are_spread_evenly_and_end_with_the_answer(count: int, places: tuple[int, ...]) -> None:
    assert forced_places(count) == places


# ---- for real: the llama.cpp server of the wheel, and the wheel's library --------------------------------------------

PROFILE = OutputProfile(
    "o",
    (
        Prompt("plain", "the end of her hat", "and all was well with her"),
        Prompt("letters", "Überall ist es schön, 日本語", "はい、そうです"),
        Prompt("long", "x y", "ab", tokens=50),
    ),
    n_predict=24,
    positions=8,
    forced=20,
)


def _outputs(engine: Engine, build: Build, model: Path) -> dict[str, Output]:
    wanted = order(build, [], outputs=PROFILE, flags=complete(build, {"ngl": 0}), model=model, threads=1)
    command = engine.command(wanted)
    environment = {"PATH": os.environ["PATH"], **command.environment}
    done = subprocess.run(
        command.argv, input=command.stdin, env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    report = engine.read(wanted, Exit(done.returncode, None, timed_out=False, stdout=done.stdout, stderr=done.stderr))
    assert report.failure is None, report.failure
    return {output.prompt: output for output in report.outputs}


def _table(ranks: Ranks | None) -> Table:
    assert ranks is not None
    return unpack(ranks)


def test_the_real_server_answers_what_the_wheels_library_answers(tmp_path: Path, tiny_model: Path) -> None:
    """Same tokens, and distributions that rounding explains: it evaluates in other batches. Some tokens are hidden."""
    pytest.importorskip("xllamacpp")
    program = tmp_path / "llama-server"
    program.write_text(f"#!{sys.executable}\n{LAUNCHER.read_text(encoding='utf-8')}", encoding="utf-8")
    program.chmod(0o755)
    served, wheel = path_build(Fork.LLAMA_CPP, str(tmp_path)), wheel_build(Fork.LLAMA_CPP)
    theirs = _outputs(ServedEngine(served), served, tiny_model)
    ours = _outputs(EmbeddedEngine(wheel), wheel, tiny_model)
    assert any("\ufffd" in output.text for output in theirs.values()), "nothing is hidden: the prompts are too tame"
    for name, found in theirs.items():
        expected = ours[name]
        assert (found.source, found.prefill, found.logits_sha256) == (Source.SERVER, None, "")
        assert found.prompt_tokens == expected.prompt_tokens
        assert found.forced_tokens == expected.forced_tokens
        assert found.tokens == expected.tokens
        assert all(dict(expected.pieces).get(token, text) == text for token, text in found.pieces)
        assert found.pieces
        assert divergences(_table(expected.greedy), _table(found.greedy)).max() < 0.02
        forced, at = _table(expected.forced), list(found.forced_at)
        assert at[-1] == len(found.forced_tokens) - 1
        there = Table(forced.ids[at], forced.logprobs[at])
        assert divergences(there, _table(found.forced)).max() < 0.02
