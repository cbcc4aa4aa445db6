"""Values of flags that can't be: each fault at the key that sets the flag, once, and nothing that follows from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning_support import BASE, load, refusal

from harness.domain.errors import BadInput
from harness.planning.expand import expand
from harness.planning.load import load_matrix

BROKEN = "(exps=CPU"
AXES = f'[axes]\nwhere-to = [{{ name = "x", flags = {{ ot = "{BROKEN}" }} }}, {{ name = "y", flags = {{}} }}]\n'


def fault(tmp_path: Path, text: str) -> BadInput:
    with pytest.raises(BadInput) as caught:
        expand(load(tmp_path, text))
    return caught.value


@pytest.mark.parametrize(
    ("text", "key"),
    [
        pytest.param(f'[flags]\not = "{BROKEN}"\n', "flags.ot", id="axis"),
        pytest.param(AXES, "axes.where-to[0].flags.ot", id="named axis"),
        pytest.param(
            f'[[when]]\nbuild = "ik"\nflags = {{ rtr = 1 }}\n[[when]]\nbuild = "ik"\nflags = {{ ot = "{BROKEN}" }}\n',
            "when[1].flags.ot",
            id="when",
        ),
        pytest.param(
            f'[flags]\nub = 64\n[[when]]\nplacement = "cpu"\nflags = {{ ctk = "{BROKEN}" }}\n',
            "when[0].flags.ctk",
            id="when of a placement",
        ),
        pytest.param(
            f'[[include]]\nbuild = "ik"\nmodel = "tiny"\nflags = {{ ot = "{BROKEN}" }}\n',
            "include[0].flags.ot",
            id="include",
        ),
        pytest.param(
            f'[configurations.new]\not = "{BROKEN}"\n[[contrasts]]\nname = "c"\nfactor = "configuration"\n'
            'baseline = {}\ncandidate = "new"\n',
            "configurations.new.ot",
            id="configuration",
        ),
        pytest.param(
            '[[contrasts]]\nname = "c"\nfactor = "configuration"\nbaseline = {}\n'
            f'candidate = {{ ot = "{BROKEN}" }}\n',
            "contrasts[0].candidate.ot",
            id="side",
        ),
        pytest.param(
            '[[contrasts]]\nname = "c"\nkind = "attribution"\nfactors = [\n'
            '{ factor = "build", baseline = "mainline", candidate = "ik" },\n'
            f'{{ factor = "configuration", baseline = {{}}, candidate = {{ ot = "{BROKEN}" }} }},\n]\n',
            "contrasts[0].factors[1].candidate.ot",
            id="side of a factor",
        ),
    ],
)
def test_a_fault_is_at_the_key_that_sets_the_flag(tmp_path: Path, text: str, key: str) -> None:
    """Once, however many arms of however many builds have it."""
    error = fault(tmp_path, text)
    assert error.slug == "E-bad-flag-value"
    assert error.where.endswith(f"m.toml: {key}")


def test_the_key_is_that_of_the_file_that_has_it(tmp_path: Path) -> None:
    """A list's entries are counted in the file that says them."""
    (tmp_path / "base.toml").write_text(BASE + '[[when]]\nbuild = "ik"\nflags = { rtr = 1 }\n')
    (tmp_path / "m.toml").write_text(f'extends = "base.toml"\n[[when]]\nbuild = "ik"\nflags = {{ ot = "{BROKEN}" }}\n')
    with pytest.raises(BadInput) as caught:
        expand(load_matrix(tmp_path / "m.toml"))
    assert caught.value.where.endswith("m.toml: when[0].flags.ot")


def test_of_two_that_contradict_each_other_both_keys_are_said(tmp_path: Path) -> None:
    """Either can be mended."""
    error = fault(tmp_path, '[flags]\nfa = 0\n[[when]]\nbuild = "ik"\nflags = { ctv = "q8_0" }\n')
    assert error.where.endswith("m.toml: when[0].flags.ctv")
    assert "fa is set at" in error.message
    assert "m.toml: flags.fa" in error.message


@pytest.mark.parametrize(
    "contrast",
    [
        pytest.param(f'factor = "ot"\nbaseline = "{BROKEN}"\ncandidate = "none"\n', id="flag"),
        pytest.param(
            'factor = "where-to"\nbaseline = "x"\ncandidate = "y"\nwhere = { placement = "hybrid" }\n', id="axis"
        ),
        pytest.param('factor = "build"\nbaseline = "mainline"\ncandidate = "ik"\n', id="build"),
    ],
)
def test_what_follows_from_a_fault_is_not_said(tmp_path: Path, contrast: str) -> None:
    """Which pairs there are is known once the arms are sound."""
    error = fault(tmp_path, AXES + f'[[contrasts]]\nname = "c"\n{contrast}')
    assert error.slug == "E-bad-flag-value"
    assert "problems" not in error.message


@pytest.mark.parametrize(
    ("text", "key"),
    [
        pytest.param(
            '[axes.off.x]\not = "none"\n[[exclude]]\nflags = { off = "x" }\n'
            '[[contrasts]]\nname = "c"\nfactor = "off"\nbaseline = "x"\ncandidate = "y"\n',
            "axes.off",
            id="axis",
        ),
        pytest.param(
            '[configurations.new]\not = [1]\n[[contrasts]]\nname = "c"\nfactor = "configuration"\n'
            'baseline = {}\ncandidate = "new"\n',
            "configurations.new.ot",
            id="configuration",
        ),
        pytest.param('[node_classes]\nx = 3\n[[exclude]]\nnode_class = "x"\n', "node_classes.x", id="node class"),
        pytest.param('[[when]]\not = "none"\n', "when[0].ot", id="flag beside its table"),
        pytest.param(
            '[axes]\noff = [{ name = "x", ot = "none" }]\n', "axes.off[0].ot", id="flag beside its table of axes"
        ),
    ],
)
def test_what_a_faulty_key_would_declare_is_not_missed(tmp_path: Path, text: str, key: str) -> None:
    """One fault, not the names that it takes away, too."""
    error = refusal(tmp_path, text)
    assert (error.slug, error.where) == ("E-matrix-invalid", f"m.toml: {key}")


def test_values_that_ids_can_not_tell_apart_are_refused(tmp_path: Path) -> None:
    """Ids have letters, digits and few signs: two patterns can end as one word."""
    error = fault(tmp_path, '[flags]\not = ["exps=CPU", "EXPS=CPU"]\n')
    assert error.slug == "E-duplicate-case"
    assert "ids can't tell ot = " in error.message
    assert "[axes]" in str(error)


@pytest.mark.parametrize("flag", ["rtr", "fa"])
def test_a_case_of_the_product_comes_from_its_workload(tmp_path: Path, flag: str) -> None:
    """Also where a condition added an axis that says nothing about it; an include's comes from there."""
    include = f'[[include]]\nbuild = "ik"\nmodel = "tiny"\nflags = {{ {flag} = 0, ub = 64 }}\n'
    cases = expand(load(tmp_path, f'[[when]]\nbuild = "ik"\nflags = {{ {flag} = 1 }}\n' + include))
    origins = {case.id.split("/", 1)[1]: case.origin.rpartition(": ")[2] for case in cases}
    plain = {arm: origin for arm, origin in origins.items() if "ub=64" not in arm}
    assert set(plain.values()) == {"workloads[0]", "workloads[1]"}
    assert {origin for arm, origin in origins.items() if "ub=64" in arm} == {"include[0]"}
