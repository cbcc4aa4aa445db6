"""Outputs as children tell them: read whole, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_support import PROFILE, ended, order, wheel_build
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.build import Fork
from harness.domain.outputs import Ranks
from harness.engines.embedded_engine import EmbeddedEngine
from harness.engines.embedded_events import read_events
from harness.engines.output_lines import asked_outputs, read_output
from harness.ranking import NO_TOKEN, Table, pack, pack_values, unpack

TOP = 3


def packed(*best: int, top: int = TOP) -> dict[str, Any]:
    """Distributions with these most probable tokens."""
    rows = [[token, *range(100, 99 + top)] for token in best]
    ids = np.array(rows, np.int32).reshape(len(best), top)
    others = min(0.1, 0.5 / (top - 1))
    logprobs = np.tile(np.log(np.array([0.5, *[others] * (top - 1)], np.float32)), (len(best), 1))
    return fields(pack(Table(ids, logprobs)))


def fields(ranks: Ranks) -> dict[str, Any]:
    return {"positions": ranks.positions, "top": ranks.top, "packed": ranks.packed}


def gaps(*divergences: float, flips: tuple[float, ...] = ()) -> dict[str, Any]:
    return {"kld": pack_values(np.array(divergences, np.float32)), "flips": list(flips)}


def line(**changes: Any) -> dict[str, Any]:
    whole = {
        "event": "output",
        "prompt": "short",
        "tokens": [1, 2],
        "greedy": [5, 6, 7, 8],
        "forced": [],
        "margins": [0.5, 0.25, 1, 2],
        "text": "upon",
        "logits_sha256": "abc",
        "finite": True,
        "ranks": {"prefill": packed(9, 5), "greedy": packed(5, 6, 7, 8), "forced": None},
        "varied": [{"variation": "batch", "prefill": gaps(0, 0.1), "forced": gaps()}],
    }
    return {**whole, **changes}


def ranks(**changes: Any) -> dict[str, Any]:
    return {"ranks": {**line()["ranks"], **changes}}


def varied(**changes: Any) -> dict[str, Any]:
    return {"varied": [{**line()["varied"][0], **changes}]}


def test_a_whole_line_is_read() -> None:
    output = read_output(line())
    assert output.prefill is not None
    assert unpack(output.prefill).ids[:, 0].tolist() == [9, 5]
    assert output.varied[0].variation == "batch"


def _edited(part: str, edit: Callable[[Table], Table]) -> dict[str, Any]:
    table = unpack(Ranks(**line()["ranks"][part]))
    return ranks(**{part: fields(pack(edit(table)))})


def _without_tokens(table: Table) -> Table:
    return Table(np.full_like(table.ids, NO_TOKEN), np.full_like(table.logprobs, np.nan))


DAMAGE: dict[str, dict[str, Any]] = {
    "more positions than are packed": ranks(prefill={**packed(9, 5), "positions": 3}),
    "fewer positions than are packed": ranks(prefill={**packed(9, 5), "positions": 1}),
    "another number of tokens": ranks(prefill={**packed(9, 5), "top": 2}),
    "cut off": ranks(prefill={**packed(9, 5), "packed": packed(9, 5)["packed"][:-5]}),
    "not packed": ranks(prefill={**packed(9, 5), "packed": "!"}),
    "more positions than prompt": ranks(prefill=packed(9, 9, 5)),
    "no position": ranks(prefill=packed()),
    "as many rows as nobody generated": ranks(greedy=packed(5, 6)),
    "other tokens than were generated": ranks(greedy=packed(5, 6, 7, 9)),
    "rows of nothing forced": ranks(forced=packed(1)),
    "a probability above one": _edited("prefill", lambda table: Table(table.ids, table.logprobs + 1)),
    "probabilities that add up to more than one": _edited(
        "prefill", lambda table: Table(table.ids, table.logprobs - table.logprobs[:, :1])
    ),
    "a token twice": _edited("prefill", lambda table: Table(table.ids * 0, table.logprobs)),
    "the least probable first": _edited("prefill", lambda table: Table(table.ids, table.logprobs[:, ::-1])),
    "NaN in a row that counts": _edited("prefill", lambda table: Table(table.ids, table.logprobs * np.nan)),
    "an id that there is not": _edited("prefill", lambda table: Table(table.ids - 100, table.logprobs)),
    "NaN and finite": _edited("prefill", _without_tokens),
    "a margin missing": {"margins": [0.5]},
    "an unknown variation": varied(variation="luck"),
    "divergences missing": varied(prefill=gaps(0.1)),
    "divergences of nothing": varied(forced=gaps(0.1)),
    "a divergence that is NaN": varied(prefill=gaps(0, float("nan"))),
    "a negative divergence": varied(prefill=gaps(0, -1)),
    "more flips than positions": varied(prefill=gaps(0, 0.1, flips=(1, 1, 1))),
    "a negative margin": varied(prefill=gaps(0, 0.1, flips=(-1,))),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_what_contradicts_itself_is_no_output(damage: dict[str, Any]) -> None:
    """It counts as a line that cannot be read, and the prompt as not answered."""
    with pytest.raises(ValueError, match=r"."):
        read_output(line(**damage))


def test_a_row_that_is_not_finite_is_an_output_that_says_so() -> None:
    output = read_output(line(**_edited("prefill", _without_tokens), finite=False, margins=[None, 1, 1, 1]))
    assert not output.finite
    assert output.margins is None


@given(st.dictionaries(st.sampled_from(sorted(line())), st.none() | st.integers() | st.text(max_size=3)))
def test_no_line_raises_anything_that_is_not_foreseen(changes: dict[str, Any]) -> None:
    """Whatever stands in a field: an output, or a counted line."""
    changed = {**line(), **changes, "event": "output"}
    events = read_events(json.dumps(changed))
    assert len(events.outputs) + events.unreadable == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"greedy": [5, 6], "margins": None, **ranks(greedy=packed(5, 6))}, "2 generated tokens, expected 4"),
        ({**ranks(prefill=packed(5)), "varied": []}, "1 prompt positions, expected 2"),
        ({**ranks(prefill=packed(9, 5, top=30)), "varied": []}, "30 tokens kept, expected 20"),
        ({"forced": [3], **ranks(forced=packed(3)), "varied": []}, "1 forced tokens, expected 0"),
        ({"prompt": "long"}, "a prompt that was not asked for"),
        ({"ranks": None, "varied": []}, "no distributions"),
    ],
)
def test_what_was_not_asked_for_is_named(changes: dict[str, Any], said: str) -> None:
    """Consistent in itself and of another shape than the order: a failure that says in what."""
    right, problems = asked_outputs(PROFILE, [read_output(line(**changes))])
    assert right == ()
    assert said in problems[0].message
    assert problems[0].slug == "E-output-shape"


def test_a_second_answer_to_a_prompt_is_named() -> None:
    right, problems = asked_outputs(PROFILE, [read_output(line()), read_output(line())])
    assert len(right) == 1
    assert "a second output" in problems[0].message


def test_nothing_asked_nothing_taken() -> None:
    right, problems = asked_outputs(None, [read_output(line())])
    assert right == ()
    assert problems


def test_a_child_that_dies_between_its_answers_leaves_those_before() -> None:
    """Killed while it wrote the second line: the first counts, the other is missing, and the signal is the reason."""
    asked = order(wheel_build(Fork.IK_LLAMA_CPP), [], outputs=PROFILE)
    text = json.dumps(line())
    report = EmbeddedEngine(wheel_build(Fork.IK_LLAMA_CPP)).read(asked, ended(text + "\n" + text[:80], signal=9))
    assert [output.prompt for output in report.outputs] == ["short"]
    assert report.failure is not None
    assert report.failure.slug == "E-killed"
