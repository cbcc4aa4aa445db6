"""The request is understood whole or refused with the key that was not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.engines.embedded.errors import EXIT_REFUSED, EmbeddedError
from harness.engines.embedded.flags import FORKS, IK, KV_TYPES, MAINLINE, RULES, complete_flags
from harness.engines.embedded.request import parse_request, round_up_cells


def request_text(**changes: Any) -> str:
    fields: dict[str, Any] = {
        "fork": MAINLINE,
        "model": "/m.gguf",
        "threads": 1,
        "flags": {},
        "workloads": [{"name": "pp8", "n_prompt": 8, "n_gen": 0, "n_depth": 0}],
        "repetitions": 3,
        "seed": 1,
        "outputs": None,
    }
    return json.dumps({key: value for key, value in {**fields, **changes}.items() if value is not ...})


def asking(**changes: Any) -> dict[str, Any]:
    return {"prompts": [{"name": "a", "text": ""}], "n_predict": 4, "positions": 8, **changes}


def refusal(text: str) -> EmbeddedError:
    with pytest.raises(EmbeddedError) as caught:
        parse_request(text)
    assert caught.value.exit_code == EXIT_REFUSED
    return caught.value


def test_a_whole_request_is_read() -> None:
    """Every part of a request arrives, and the flags are complete."""
    outputs = {"prompts": [{"name": "a", "text": "x"}], "n_predict": 4, "positions": 8}
    request = parse_request(request_text(outputs=outputs, flags={"fa": 0}))
    assert request.flags["fa"] == 0
    assert request.flags.keys() == RULES[MAINLINE].keys()
    assert request.cells_needed == 8
    assert request.outputs is not None
    plan = request.outputs
    assert (plan.top, plan.forced, plan.variations, plan.fault) == (20, 0, (), None)


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"fork": "vllm"}, "fork"),
        ({"model": ""}, "model"),
        ({"model": "a\0b"}, "model"),
        ({"threads": 0}, "threads"),
        ({"threads": True}, "threads"),
        ({"threads": ...}, "threads"),
        ({"repetitions": 0}, "repetitions"),
        ({"seed": -1}, "seed"),
        ({"slowdown": 1.0}, "slowdown"),
        ({"slowdown": "0.1"}, "slowdown"),
        ({"flags": []}, "flags"),
        ({"workloads": {}}, "workloads"),
        ({"workloads": []}, "workloads"),
        ({"workloads": [7]}, "workloads[0]"),
        ({"workloads": [{"name": "none"}]}, "workloads[0]"),
        ({"workloads": [{"name": "x", "n_prompt": 1.5}]}, "workloads[0].n_prompt"),
        ({"outputs": {"prompts": [], "n_predict": 1, "positions": 1}}, "outputs.prompts"),
        ({"outputs": {"prompts": [{"name": "a"}], "n_predict": 1, "positions": 1}}, "outputs.prompts[0].text"),
        ({"outputs": {"prompts": [{"name": "a", "text": "b"}], "positions": 1}}, "outputs.n_predict"),
        ({"outputs": asking(prompts=[{"name": "a", "text": "b", "answer": 3}])}, "outputs.prompts[0].answer"),
        ({"outputs": asking(prompts=[{"name": "a", "text": "b", "tokens": -1}])}, "outputs.prompts[0].tokens"),
        ({"outputs": asking(top=1)}, "outputs.top"),
        ({"outputs": asking(forced=-1)}, "outputs.forced"),
        ({"outputs": asking(variations=["luck"])}, "outputs.variations[0]"),
        ({"outputs": asking(fault={"kind": "fire"})}, "outputs.fault.kind"),
        ({"outputs": asking(fault={"kind": "kv_dropped", "cells": 0})}, "outputs.fault.cells"),
        ({"surprise": 1}, "request"),
    ],
)
def test_a_bad_request_names_the_key(changes: dict[str, Any], where: str) -> None:
    """What is missing, unknown or out of range is refused by name."""
    error = refusal(request_text(**changes))
    assert error.slug == "E-request"
    assert error.message.startswith(f"{where}:")


def test_what_is_not_json_is_refused() -> None:
    """Neither broken JSON nor a JSON list is a request."""
    assert refusal("{").slug == "E-request"
    assert refusal("[]").slug == "E-request"


@pytest.mark.parametrize("name", ["rtr", "fmoe", "ger", "mqkv", "muge", "amb", "mla", "ser", "thp"])
def test_mainline_refuses_the_other_forks_flags(name: str) -> None:
    """A flag that only ik has is unknown to mainline even with the value that means off."""
    error = refusal(request_text(flags={name: 0}))
    assert error.slug == "E-flag-unknown"
    assert name in error.message


def test_ik_refuses_mainlines_flags() -> None:
    """Mainline's repack means something else than ik's; ik's embedded engine does not take it."""
    assert refusal(request_text(fork=IK, flags={"repack": 1})).slug == "E-flag-unknown"


@pytest.mark.parametrize(
    ("fork", "name", "value"),
    [
        (MAINLINE, "fa", "auto"),
        (MAINLINE, "fa", 2),
        (MAINLINE, "fa", 1.0),
        (MAINLINE, "ub", 0),
        (MAINLINE, "ub", "512"),
        (MAINLINE, "ub", True),
        (MAINLINE, "ctk", "q8_KV"),
        (MAINLINE, "ot", "exps"),
        (MAINLINE, "ot", "=CPU"),
        (MAINLINE, "ot", 3),
        (IK, "ser", "six"),
        (IK, "ser", "1,6"),
        (IK, "ctv", "bf16"),
        (IK, "mla", 4),
    ],
)
def test_a_bad_value_names_the_flag(fork: str, name: str, value: object) -> None:
    """A value outside its kind is refused with what was expected."""
    error = refusal(request_text(fork=fork, flags={name: value}))
    assert error.slug == "E-flag-value"
    assert error.message.startswith(f"flags.{name}: got {value!r}, expected ")


@pytest.mark.parametrize(("word", "number"), [(True, 1), (False, 0), ("on", 1), ("off", 0), ("1", 1), (0, 0)])
def test_a_switch_takes_llama_cpps_words(word: object, number: int) -> None:
    """``on`` and ``true`` and 1 are one value, so that they are one arm."""
    assert complete_flags(IK, {"fa": word})["fa"] == number


@pytest.mark.parametrize("fork", FORKS)
def test_defaults_are_valid_values(fork: str) -> None:
    """The value an absent flag gets passes its own check."""
    for name, rule in RULES[fork].items():
        assert rule.check(rule.default) == rule.default, name
    assert KV_TYPES[fork]["f16"] == 1


@pytest.mark.parametrize(("cells", "rounded"), [(0, 256), (1, 256), (256, 256), (257, 512)])
def test_cells_are_rounded_up(cells: int, rounded: int) -> None:
    """A context is a whole number of 256 cells, and never none."""
    assert round_up_cells(cells) == rounded
