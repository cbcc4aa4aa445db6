"""The pitfalls that come with the package are whole, and faults of an entry are told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.domain.errors import BadInput
from harness.pitfalls.catalogue import packaged_pitfalls, pitfall_folder, pitfall_named, read_pitfall
from harness.pitfalls.entry import INERT, Pitfall
from harness.pitfalls.value_test import ANY

ASKED_FOR = {
    "rtr-hybrid",
    "rtr-hybrid-iq",
    "cpu-flash-attention",
    "ffn-on-cpu",
    "amb-with-flash-attention",
    "fmoe-off",
    "split-experts",
    "offload-threshold",
    "kv-types-without-kernels",
    "rtr-float-weights",
    "repacking-drops-mmap",
    "ngl-0-uses-gpu",
    "ser-inert",
    "release-build-avx2",
}
ENTRIES = tuple(packaged_pitfalls().values())
WHOLE = (pitfall_folder() / "rtr-hybrid.toml").read_text()


def test_every_trap_that_has_to_be_there_is() -> None:
    """The list of the project's users."""
    assert packaged_pitfalls().keys() >= ASKED_FOR


@pytest.mark.parametrize("pitfall", ENTRIES, ids=lambda entry: entry.id)
def test_an_entry_says_what_it_must(pitfall: Pitfall) -> None:
    """Source, reason, what to use instead, and a contrast or why a matrix has none; the advice is one that helps."""
    assert pitfall.instead
    assert all(source.said and source.name for source in pitfall.sources)
    assert pitfall.effect == INERT or (pitfall.contrast is None) != (pitfall.unasked == "")
    assert all(builds.described for builds in pitfall.builds)
    offered = bool(pitfall.remedy or pitfall.leave_out)
    by_hand = {"repacking-drops-mmap", "repacked-file-on-gpu", "split-experts", "offload-policy-numbers"}
    assert offered or not pitfall.trap or pitfall.id in by_hand


@pytest.mark.parametrize("pitfall", [entry for entry in ENTRIES if entry.contrast], ids=lambda entry: entry.id)
def test_the_trap_of_a_contrast_is_the_trap_of_a_line(pitfall: Pitfall) -> None:
    """What a run compares and what a command line is warned of are one thing."""
    assert pitfall.contrast is not None
    sides = {which: {**pitfall.contrast.setting, **pitfall.contrast.side(which)} for which in ("safe", "trap")}
    if pitfall.when.mixed_cache or pitfall.when.splits_experts or pitfall.when.offload == "below":
        return  # there the flags alone do not make the trap: tests of conditions have them
    met = {
        which: any(all(name in flags and test(flags[name]) for name, test in tests.items()) for tests in pitfall.trap)
        for which, flags in sides.items()
    }
    of_any_value = any(test.written == (ANY,) for tests in pitfall.trap for test in tests.values())
    assert met == {"safe": of_any_value, "trap": True}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('id = "rtr-hybrid"', 'id = "rtr-other"', "is not the name of the file"),
        ("remedy = { rtr = 0 }", "remedy = { rtrr = 0 }", "no fork has a flag 'rtrr'"),
        ('numbers = ">=3512"', 'numbers = "3512"', "expected a range"),
        ('said = "-rtr came with a648191c2, pull request 147"', "", "need 'said'"),
        ('placement = ["hybrid"]', 'placement = ["gpus"]', "placement"),
        ('quants = ["k"]', 'quants = ["kk"]', "expected a type in capitals, or a family"),
        ("ratio = [0.05, 0.6]", "ratio = [0.6, 1.05]", "a loss, above 0 and below 1"),
        ("trap = 1\n", "trap = 0\n", "'safe' and 'trap' are the same"),
        ('effect = "slower"', 'effect = "inert"', "no contrast of a matrix finds what is inert"),
        ('effect = "slower"', 'effect = "inert"\nunasked = "x"', "one of what is inert has none"),
        ('effect = "slower"', 'effect = "memory"', "a contrast finds what is slower, or inert"),
        ("ratio = [0.05, 0.6]\n", "", "a contrast of what is slower has a 'ratio'"),
        ('effect = "slower"', 'effect = "slower"\nunasked = "x"', "exactly one of 'contrast' and 'unasked'"),
        ("[[sources]]", "[[sauces]]", "sauces"),
        ("trap = [{ rtr = 1 }]", 'trap = [{ rtr = ">x" }]', "compares with no number"),
        ("trap = [{ rtr = 1 }]", 'trap = [{ rtr = "~(" }]', "is no pattern"),
        ('fork = "ik_llama.cpp"', 'fork = "ik"', "expected one of"),
        ("instead = ", "instaed = ", "instead"),
    ],
)
def test_a_faulty_entry_is_refused_with_file_and_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    """One planted fault each."""
    assert old in WHOLE
    file = tmp_path / "rtr-hybrid.toml"
    file.write_text(WHOLE.replace(old, new))
    with pytest.raises(BadInput, match=re.escape(said)) as caught:
        read_pitfall(file)
    assert caught.value.slug == "E-pitfall-invalid"
    assert str(file) in caught.value.where


def test_an_entry_of_ones_own_is_read_by_its_path(tmp_path: Path) -> None:
    """A file beside the matrix does."""
    file = tmp_path / "rtr-hybrid.toml"
    file.write_text(WHOLE)
    assert pitfall_named(str(file)).id == "rtr-hybrid"
    with pytest.raises(BadInput, match="did you mean 'rtr-hybrid'"):
        pitfall_named("rtr-hybird")
    with pytest.raises(BadInput, match="E-pitfall-missing"):
        pitfall_named(str(tmp_path / "none.toml"))
    file.write_text("id =")
    with pytest.raises(BadInput, match="E-pitfall-syntax"):
        pitfall_named(str(file))


def test_reports_are_named_by_address() -> None:
    """Issues and pull requests are links that can be followed; only files and recordings have none."""
    for pitfall in ENTRIES:
        for source in pitfall.sources:
            numbered = re.search(r"(issue|pull request|discussion) (\d+)", source.name)
            if numbered:
                assert source.url.endswith(f"/{numbered[2]}"), (pitfall.id, source.name)
