"""Prompts of output checks: the shipped set, files of users, and what is said of faults in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from planning_support import load, matrix

from harness.domain.errors import BadInput
from harness.domain.outputs import Variation
from harness.domain.workload import OutputProfile
from harness.planning.planner import make_plan
from harness.planning.prompt_sets import output_profile, packaged_sets
from harness.planning.schema import OutputsEntry

CONTRAST = '[flags]\nfa = [0, 1]\n[[contrasts]]\nname = "c"\nfactor = "fa"\nbaseline = 0\ncandidate = 1\n'
CHECK = CONTRAST + '[[checks]]\nkind = "outputs"\nname = "o"\ncontrasts = ["c"]\n'


def profile(**keys: Any) -> OutputProfile:
    base = {"kind": "outputs", "name": "o", "contrasts": ["c"], "prompts": "standard"}
    return output_profile(OutputsEntry.model_validate(base | keys))


def test_the_standard_set_covers_what_it_promises() -> None:
    """Sixteen prompts, each with an answer; empty, one token, a ubatch, more than one, the context to its last cell."""
    asked = profile()
    prompts = {prompt.name: prompt for prompt in asked.prompts}
    assert len(prompts) == 16
    assert all(len(prompt.answer.split()) >= 10 or not prompt.answer.isascii() for prompt in asked.prompts)
    assert prompts["empty"].text == ""
    assert prompts["whole-ubatch"].tokens == 512
    assert prompts["code-edit"].tokens > 512
    assert prompts["whole-context"].tokens + max(asked.forced, asked.n_predict - 1) == 768
    scripts = {name: any(ord(letter) > 127 for letter in prompt.text) for name, prompt in prompts.items()}
    assert [name for name in ("german", "spanish", "chinese", "arabic-hindi") if not scripts[name]] == []


def test_what_fills_the_context_follows_from_what_comes_behind_it() -> None:
    """Longer answers leave less room for the prompt."""
    for keys, behind in (({"n_predict": 100}, 99), ({"forced": 64}, 64), ({"n_predict": 1, "forced": 0}, 0)):
        (whole,) = profile(prompts_only=["whole-context"], **keys).prompts
        assert whole.tokens == 768 - behind


def test_prompts_are_chosen_by_name_and_keep_their_order() -> None:
    """As the set has them, whatever the order in the matrix."""
    chosen = profile(prompts_only=["table", "chat"], variations=["threads", "threads"])
    assert [prompt.name for prompt in chosen.prompts] == ["chat", "table"]
    assert chosen.variations == (Variation.THREADS,)


def test_a_users_set_is_found_beside_the_matrix(tmp_path: Path) -> None:
    """Paths in the matrix are relative to it, and a text's to its set."""
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "mine.toml").write_text(
        '[[prompts]]\nname = "a"\ntext = "Once"\nanswer = " upon"\n'
        '[[prompts]]\nname = "b"\nfile = "b.txt"\ntokens = 7\n'
    )
    (tmp_path / "sets" / "b.txt").write_text(" far away \n")
    plan = make_plan(load(tmp_path, CHECK + 'prompts = "sets/mine.toml"\n'))
    (asked, *_) = [case.case.workload for case in plan.cases if isinstance(case.case.workload, OutputProfile)]
    assert [(prompt.name, prompt.text, prompt.answer, prompt.tokens) for prompt in asked.prompts] == [
        ("a", "Once", " upon", 0),
        ("b", "far away", "", 7),
    ]


@pytest.mark.parametrize(
    ("keys", "slug", "said"),
    [
        ('prompts = "standart"', "E-unknown-prompts", "did you mean 'standard'?"),
        ('prompts = "nowhere.toml"', "E-unknown-prompts", "No such file"),
        ('prompts = "standard"\nprompts_only = ["caht"]', "E-unknown-prompts", "did you mean 'chat'?"),
        ('prompts = "standard"\nn_predict = 800', "E-prompts-invalid", "fills 768 cells, of which its answer"),
        ("prompts = []", "E-matrix-invalid", "is empty"),
        ("prompts = 3", "E-matrix-invalid", "expected a text, found 3"),
        ("prompts = ['']", "E-matrix-invalid", "checks[0].prompts[0]: is empty"),
        ("prompts = 'standard'\ntop = 1", "E-matrix-invalid", "top"),
        ("prompts = 'standard'\nvariations = ['fa']", "E-matrix-invalid", "'batch' or 'threads'"),
        ("prompts = 'standard'\nlossy = 0", "E-matrix-invalid", "lossy"),
        ("prompts = 'standard'\nlossy = 30", "E-matrix-invalid", "expected at most 1 nat"),
    ],
)
def test_faults_in_a_check_are_named(keys: str, slug: str, said: str, tmp_path: Path) -> None:
    """With the key, and what was probably meant."""
    with pytest.raises(BadInput) as caught:
        load(tmp_path, CHECK + keys + "\n")
    assert caught.value.slug == slug
    assert said in str(caught.value)
    assert "checks[0]." in str(caught.value)


@pytest.mark.parametrize(
    ("text", "slug", "said"),
    [
        ('[[prompts]]\nname = "a"\ntxt = "x"', "E-prompts-invalid", "did you mean 'text'?"),
        ('[[prompts]]\nname = "a"', "E-prompts-invalid", "exactly one of 'text' and 'file', found neither"),
        ('[[prompts]]\nname = "a"\ntext = "x"\nfile = "x.txt"', "E-prompts-invalid", "found both"),
        (
            '[[prompts]]\nname = "a"\ntext = "x"\ntokens = 1\nfills = 2',
            "E-prompts-invalid",
            "either 'tokens'",
        ),
        ('[[prompts]]\nname = "a"\ntext = ""\ntokens = 1', "E-prompts-invalid", "an empty text can't be repeated"),
        (
            '[[prompts]]\nname = "a"\ntext = "x\\u0000"',
            "E-prompts-invalid",
            "prompts[0].text: a prompt can't hold",
        ),
        (
            '[[prompts]]\nname = "A"\ntext = "x"\n[[prompts]]\nname = "a"\ntext = "x"',
            "E-prompts-invalid",
            "[1].name",
        ),
        ('[[prompts]]\nname = "a"\nfile = "x.txt"', "E-unknown-prompts", "No such file"),
        ("prompts = []", "E-prompts-invalid", "is empty"),
        ("prompts", "E-prompts-unreadable", "not TOML"),
        ("a = " + "[" * 5000, "E-prompts-unreadable", "not TOML"),
        ('[[prompts]]\nname = "a"\ntext = "' + "x" * 300_000 + '"', "E-prompts-invalid", "more than 262144 bytes"),
        ("# " + "x" * 5_000_000, "E-prompts-unreadable", "more than 4194304 bytes"),
    ],
)
def test_faults_in_a_set_are_named(text: str, slug: str, said: str, tmp_path: Path) -> None:
    """With the set's own file and key."""
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(BadInput) as caught:
        load(tmp_path, CHECK + 'prompts = "mine.toml"\n')
    assert caught.value.slug == slug
    assert said in str(caught.value)
    assert "checks[0].prompts" in str(caught.value)


def test_the_file_of_profiles_is_no_set() -> None:
    """It lies beside the sets."""
    assert packaged_sets() == ("standard",)


def test_listed_texts_are_prompts_without_answers() -> None:
    """As they always were."""
    entry = matrix(
        flags={"fa": [0, 1]},
        checks=[{"kind": "outputs", "name": "o", "factor": "fa", "baseline": 0, "candidate": 1, "prompts": ["a", "b"]}],
    ).checks[0]
    assert isinstance(entry, OutputsEntry)
    assert [(prompt.name, prompt.text, prompt.answer) for prompt in output_profile(entry).prompts] == [
        ("p1", "a", ""),
        ("p2", "b", ""),
    ]
