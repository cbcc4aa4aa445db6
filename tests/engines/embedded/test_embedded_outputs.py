"""Outputs of real children: distributions, answers token by token, an arm against itself, planted faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.domain.outputs import Ranks
from harness.engines.embedded.flags import FORKS, MAINLINE
from harness.engines.output_lines import read_output
from harness.models import cache, cards
from harness.ranking import Table, divergences, unpack, unpack_values

pytest.importorskip("xllamacpp")
pytest.importorskip("ik_llama_cpp")

TEXT = "one more thing in the hat than there ever was at the end of her. "
ANSWER = "the other one then went on and on. " * 3
UBATCH = 16
FLAGS = {"ub": UBATCH, "b": 48}


def asking(*prompts: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"prompts": list(prompts), "n_predict": 6, "positions": 24, "forced": 20, "top": 8, **changes}


def prompt(name: str, tokens: int = 0, text: str = TEXT, answer: str = ANSWER) -> dict[str, Any]:
    return {"name": name, "text": text, "answer": answer, "tokens": tokens}


LENGTHS = {"one": 1, "ubatch": UBATCH, "over": UBATCH + 1, "batch": 48, "batches": 115}
ALL = [prompt(name, tokens) for name, tokens in LENGTHS.items()]


@pytest.fixture(scope="module", params=FORKS)
def made(request: pytest.FixtureRequest, child: Any, tiny_f16: Path) -> Any:
    """Outputs of prompts of every length that a batch or a ubatch can be filled with."""
    fork = request.param
    plan = asking(*ALL, variations=["batch", "threads"])
    return fork, child(fork, tiny_f16, loads={}, outputs=plan, flags=FLAGS)


def table(line: dict[str, Any], part: str) -> Table:
    return unpack(Ranks(**line["ranks"][part]))


def distance(one: dict[str, Any], other: dict[str, Any], part: str) -> float:
    return float(divergences(table(one, part), table(other, part)).max())


def test_prompts_of_every_length_are_whole(made: Any) -> None:
    """One token, a ubatch, a ubatch and one, a batch, several batches: as many tokens and positions as were asked."""
    _, result = made
    assert result.code == 0, result.stderr
    for line in result.of("output"):
        output = read_output(line)
        assert len(output.prompt_tokens) == LENGTHS[output.prompt]
        assert output.prefill is not None
        assert output.prefill.positions == min(24, LENGTHS[output.prompt])
        assert output.forced is not None
        assert output.forced.positions == len(output.forced_tokens) == 20
        assert output.greedy is not None
        assert output.greedy.positions == 6


def test_a_prompt_in_pieces_gives_the_distributions_of_a_prompt_in_one(made: Any, child: Any, tiny_f16: Path) -> None:
    """Positions, order and cutting are right: in one batch of one ubatch nearly the same comes out."""
    fork, result = made
    whole = child(fork, tiny_f16, loads={}, outputs=asking(*ALL))
    for one, other in zip(whole.of("output"), result.of("output"), strict=True):
        assert all(distance(one, other, part) < 1e-3 for part in ("prefill", "forced"))


def test_forced_tokens_give_what_a_prompt_that_holds_them_gives(made: Any, child: Any, tiny_f16: Path) -> None:
    """Decoded one at a time after the prompt, or read as the end of a longer prompt: nearly the same distributions."""
    fork, result = made
    line = next(line for line in result.of("output") if line["prompt"] == "ubatch")
    short = child(fork, tiny_f16, loads={}, outputs=asking(prompt("short", text=TEXT, answer=ANSWER)))
    (led,) = short.of("output")
    joined = asking(prompt("joined", text=TEXT + ANSWER, answer=""), positions=200, forced=0)
    (whole,) = child(fork, tiny_f16, loads={}, outputs=joined).of("output")
    length = len(led["tokens"])
    assert whole["tokens"][: length + 20] == led["tokens"] + led["forced"]
    there = table(whole, "prefill")
    part = slice(length, length + 20)
    found = divergences(table(led, "forced"), Table(there.ids[part], there.logprobs[part]))
    assert found.max() < 1e-3
    assert line["forced"] == led["forced"]


def test_an_arm_against_itself_with_fewer_threads_needs_more_than_one(made: Any) -> None:
    """With one thread only the batch is varied; figures at every position, and small ones."""
    _, result = made
    for line in result.of("output"):
        (varied,) = line["varied"]
        assert varied["variation"] == "batch"
        for part, positions in (("prefill", line["positions"]), ("forced", 20)):
            figures = unpack_values(varied[part]["kld"])
            assert len(figures) == positions
            assert figures.max() < 1e-3


@pytest.mark.parametrize("fork", FORKS)
def test_threads_are_varied_and_set_back(child: Any, tiny_f16: Path, fork: str) -> None:
    """With two threads both changes are made, and the prompt after them is evaluated as if they had not been."""
    plan = asking(prompt("first", 40), prompt("second", 40), variations=["threads", "batch"])
    first, second = child(fork, tiny_f16, loads={}, threads=2, outputs=plan).of("output")
    assert [varied["variation"] for varied in first["varied"]] == ["threads", "batch"]
    assert first["logits_sha256"] == second["logits_sha256"]


def test_a_repetition_is_bitwise_equal_in_the_same_process_and_in_a_fresh_one(
    made: Any, child: Any, tiny_f16: Path
) -> None:
    """The same prompt after all others, and in another process, gives the same bits in everything."""
    fork, result = made
    again = [*ALL, *({**one, "name": f"{one['name']} again"} for one in ALL)]
    lines = child(fork, tiny_f16, loads={}, outputs=asking(*again, variations=["batch"]), flags=FLAGS).of("output")
    fresh, repeated = lines[: len(ALL)], lines[len(ALL) :]
    assert fresh == result.of("output")
    assert [{**line, "prompt": ""} for line in repeated] == [{**line, "prompt": ""} for line in fresh]


@pytest.mark.parametrize("fork", FORKS)
def test_an_empty_prompt_begins_with_the_answer_where_the_vocabulary_has_no_beginning(
    child: Any, tiny_f16: Path, fork: str
) -> None:
    """The first token of the answer takes its place; with neither it is refused by name."""
    (line,) = child(fork, tiny_f16, loads={}, outputs=asking(prompt("nothing", text=""))).of("output")
    (whole,) = child(fork, tiny_f16, loads={}, outputs=asking(prompt("x", 1, text=ANSWER, answer=""))).of("output")
    assert len(line["tokens"]) == 1
    assert len(line["forced"]) == 20
    assert line["tokens"] != whole["tokens"]
    refused = child(fork, tiny_f16, loads={}, outputs=asking(prompt("nothing", text="", answer="")))
    assert (refused.code, refused.events[-1]["slug"]) == (2, "E-prompt-empty")
    assert "nothing" in refused.events[-1]["message"]


@pytest.mark.parametrize("fork", FORKS)
def test_a_prompt_may_fill_the_context_to_its_last_cell(child: Any, tiny_f16: Path, fork: str) -> None:
    """Exactly the context works; one token more is refused with the figures, before anything is evaluated."""
    cells = 256
    most = cells - 20
    full = child(fork, tiny_f16, loads={}, n_ctx=cells, outputs=asking(prompt("full", most)))
    assert full.code == 0, full.stderr
    over = child(fork, tiny_f16, loads={}, n_ctx=cells, outputs=asking(prompt("over", most + 1)))
    assert (over.code, over.events[-1]["slug"]) == (2, "E-prompt-too-long")
    assert all(part in over.events[-1]["message"] for part in ("over", "237", "257", "256"))


@pytest.mark.parametrize("fork", FORKS)
@pytest.mark.parametrize("fault", [{"kind": "kv_dropped", "cells": 8, "seed": 3}, {"kind": "position_gap"}])
def test_a_planted_fault_is_told_and_moves_the_distributions(
    child: Any, tiny_f16: Path, fork: str, fault: dict[str, Any]
) -> None:
    """The context is spoilt from the planted place on, in both ways of decoding, and the run says so."""
    plan = asking(prompt("long", 64), positions=64, variations=["batch"])
    (clean,) = child(fork, tiny_f16, loads={}, outputs=plan).of("output")
    spoilt = child(fork, tiny_f16, loads={}, outputs={**plan, "fault": fault})
    (line,) = spoilt.of("output")
    assert spoilt.of("loaded")[0]["planted_fault"].startswith(fault["kind"])
    assert len(line["planted"]) == fault.get("cells", 1)
    assert "planted" not in clean
    own = max(unpack_values(line["varied"][0]["forced"]["kld"]).max(), 1e-7)
    assert distance(clean, line, "forced") > 10 * own
    before = divergences(table(clean, "prefill"), table(line, "prefill"))
    assert np.median(before[:31]) < 1e-5
    assert (np.median(before[33:]) > 1e-4) == (fault["kind"] == "position_gap")


def test_a_prompt_too_short_for_a_fault_is_not_spoilt(child: Any, tiny_f16: Path) -> None:
    """One token has neither a cell to lose nor a middle: the line says that nothing was planted."""
    for fault in ({"kind": "kv_dropped"}, {"kind": "position_gap"}):
        (line,) = child(MAINLINE, tiny_f16, loads={}, outputs=asking(prompt("one", 1), fault=fault)).of("output")
        assert line["planted"] == []


def test_the_row_that_is_not_finite_is_told(child: Any, tiny_f16: Path, tmp_path: Path) -> None:
    """One token's embedding is NaN: the positions from it on have no distribution, those before it have."""
    gguf = pytest.importorskip("gguf")
    path = tmp_path / "nan.gguf"
    path.write_bytes(tiny_f16.read_bytes())
    reader = gguf.GGUFReader(path, "r+")
    weight = next(tensor for tensor in reader.tensors if tensor.name == "token_embd.weight")
    plan = asking(prompt("a", text="abcdeXfg", answer="hi"), positions=8)
    (clean,) = child(MAINLINE, tiny_f16, loads={}, outputs=plan).of("output")
    place = 5
    weight.data[clean["tokens"][place]] = float("nan")
    reader.data.flush()
    (line,) = child(MAINLINE, path, loads={}, outputs=plan).of("output")
    output = read_output(line)
    assert not output.finite
    assert output.varied == ()
    assert np.flatnonzero(table(line, "prefill").ids[:, 0] < 0)[0] == place


@pytest.fixture(scope="module")
def delta_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small mixture of Qwen3.5's kind: three layers of delta nets, whose state can't be taken back, and attention."""
    folder = tmp_path_factory.mktemp("delta")
    packaged = Path(cards.__path__[0])
    card = json.loads((packaged / "qwen3.6-35b-a3b.json").read_text(encoding="utf-8"))
    card["shape"] |= {"layers": 4, "width": 256, "heads": 4, "head_width": 64, "experts": 16, "experts_used": 4}
    card["shape"] |= {"delta_key_heads": 2, "delta_value_heads": 4, "expert_width": 256, "shared_width": 256}
    card["shape"]["context_length"] = 8192
    del card["tokenizer"]["size"], card["weights"]["blocks"]
    (folder / "tiny-corpus.txt").write_bytes((packaged / "tiny-corpus.txt").read_bytes())
    (folder / "delta.json").write_text(json.dumps({**card, "name": "delta"}), encoding="utf-8")
    return cache.ensure_model(folder / "delta.json", "F16")


@pytest.mark.parametrize("fork", FORKS)
def test_an_answer_is_decoded_after_the_prompt_alone_where_tokens_cannot_be_taken_back(
    child: Any, delta_model: Path, fork: str
) -> None:
    """After the generated tokens nothing of them is left, also where a fork only says that it took them back."""
    plan = asking(prompt("short"), n_predict=32)
    (led,) = child(fork, delta_model, loads={}, outputs=plan).of("output")
    (fresh,) = child(fork, delta_model, loads={}, outputs={**plan, "n_predict": 1}).of("output")
    assert led["ranks"]["forced"] == fresh["ranks"]["forced"]
