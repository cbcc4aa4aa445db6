"""Claims about content are refused where weights are random."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning_support import node

from harness.domain.errors import BadInput
from harness.planning.load import load_matrix
from harness.planning.plan import Plan
from harness.planning.planner import make_plan

HEAD = """
name = "m"
[builds.ik]
fork = "ik_llama.cpp"
wheel = "ik-llama-cpp-python"
[builds.other]
fork = "ik_llama.cpp"
path = "/somewhere/else"
[models.four]
card = "tiny-moe"
quant = "IQ4_XS"
[models.eight]
card = "tiny-moe"
quant = "Q8_0"
[models.real-four]
path = "/m/four.gguf"
[models.real-eight]
path = "/m/eight.gguf"
[flags]
ser = ["none", "3,0.5"]
[[workloads]]
pp = 8
"""
CHECK = '[[checks]]\nkind = "outputs"\nname = "same"\nprompts = ["Once"]\n'


def planned(folder: Path, text: str) -> Plan:
    (folder / "m.toml").write_text(HEAD + text)
    return make_plan(load_matrix(folder / "m.toml"), nodes=[node()])


OF_MODELS = 'factor = "model"\nbaseline = "{}"\ncandidate = "four"\n'
OF_EXPERTS = 'factor = "ser"\nbaseline = "none"\ncandidate = "3,0.5"\nwhere = {{ model = "{}" }}\n'
CONTRAST = f'[[contrasts]]\nname = "c"\n{OF_MODELS.format("eight")}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CHECK + OF_MODELS.format("eight"), "eight and four"),
        (CHECK + OF_MODELS.format("real-eight"), "real-eight and four"),
        (CHECK + OF_EXPERTS.format("four"), "leaves experts out"),
        (f'{CONTRAST}{CHECK}contrasts = ["c"]\n', "eight and four"),
    ],
)
def test_alike_outputs_of_random_networks_are_refused(text: str, said: str, tmp_path: Path) -> None:
    """Two models, two quantizations, fewer experts: nothing that random weights could show."""
    with pytest.raises(BadInput, match=r"E-synthetic-claim: .*m\.toml: checks\[0\]") as refused:
        planned(tmp_path, text)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        f'{CHECK}factor = "build"\nbaseline = "ik"\ncandidate = "other"\nwhere = {{ model = "four" }}\n',
        f'{CHECK}factor = "model"\nbaseline = "real-eight"\ncandidate = "real-four"\n',
        CHECK + OF_EXPERTS.format("real-four"),
    ],
)
def test_other_claims_are_planned(text: str, tmp_path: Path) -> None:
    """Two builds on one file, and real models."""
    assert any(case.case.kind == "equivalence" for case in planned(tmp_path, text).cases)


def test_speeds_that_depend_on_the_routing_have_a_note(tmp_path: Path) -> None:
    """Measured, and said that real models may do otherwise; of real models nothing is said."""
    text = '[[contrasts]]\nname = "c"\nfactor = "ser"\nbaseline = "none"\ncandidate = "3,0.5"\n'
    notes = {case.case.arms[0].model.name: case.note for case in planned(tmp_path, text).cases if case.case.contrast}
    assert "random weights: 'ser' leaves experts out" in notes["four"]
    assert notes["real-four"] == ""
