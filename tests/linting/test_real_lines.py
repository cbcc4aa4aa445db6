"""Command lines as people write them: what is warned of, for which fork, and what should be written instead."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.build import Fork
from harness.engines.bench_help import help_flags
from harness.engines.server_flags import server_flags, server_help_options
from harness.linting.command_words import Program, read_words, split_command
from harness.linting.finding import Sort
from harness.linting.lint import Judged, forks_of, lint
from harness.linting.option_table import options_of
from harness.linting.traps import Surroundings
from harness.pitfalls.catalogue import packaged_pitfalls
from harness.pitfalls.facts import ModelFacts

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
QWEN = ModelFacts("qwen3moe", frozenset({"Q4_K"}), frozenset({"Q4_K", "Q6_K"}), 128, 8, True, False)
DEEPSEEK = ModelFacts("deepseek2", frozenset({"IQ4_XS"}), frozenset({"IQ4_XS"}), 256, 8, False, True)
HALF = ModelFacts("qwen3moe", frozenset({"Q8_0"}), frozenset({"Q8_0", "F16"}), 128, 8, True, False)
R4 = ModelFacts("qwen3moe", frozenset({"IQ4_K_R4"}), frozenset({"IQ4_K_R4"}), 128, 8, True, False)
GPT = ModelFacts("gpt-oss", frozenset({"MXFP4"}), frozenset({"MXFP4"}), 32, 4, True, False)
IK, MAINLINE = Fork.IK_LLAMA_CPP, Fork.LLAMA_CPP


def judge(line: str, fork: Fork | None = None, **known: object) -> dict[Fork, Judged]:
    command = split_command(line)
    found = lint(command, forks_of(command, fork), Surroundings(**known))  # type: ignore[arg-type] - as the test says
    return {judged.line.fork: judged for judged in found}


def ids(judged: Judged) -> list[str]:
    return [finding.id for finding in judged.findings]


CASES = [
    # Spelling: llama-bench of ik_llama.cpp.
    ("llama-bench -m m.gguf -fa on -rtr 0", IK, ["word-is-off"], "llama-bench -m m.gguf -fa 1 -rtr 0"),
    ("llama-bench -m m.gguf -fa 0,on -fmoe 1", IK, ["word-is-off"], "llama-bench -m m.gguf -fa 0,1 -fmoe 1"),
    (
        "llama-bench -m m.gguf -ot 'exps=CPU;attn=CUDA0' -fmoe 1 -ub 2048",
        IK,
        ["wrong-joiner"],
        "-ot exps=CPU,attn=CUDA0",
    ),
    ("llama-bench -m m.gguf -ot 'blk.(1,2).ffn_up_exps=CPU' -fmoe 1", IK, ["override-pattern"], ""),
    ("llama-server -m m.gguf -gr -ot 'blk\\.(?<=3)\\d+\\.ffn=CPU'", IK, ["override-pattern"], ""),
    ("llama-server -m m.gguf -gr -ot exps", IK, ["override-pattern"], ""),
    ("llama-server -m m.gguf -gr -ot attn=CUDA0,exps=CPUU", IK, ["unknown-buffer"], "-ot attn=CUDA0,exps=CPU"),
    ("llama-server -m m.gguf -lm mmap -ot s=CUDA,exps=CUDA1", MAINLINE, ["unknown-buffer"], "s=CUDA0,exps=CUDA1"),
    ("llama-bench -m m.gguf -nopo 0 -ot 'a=CPU;b=cpu,c=CPU'", MAINLINE, ["unknown-buffer"], "'a=CPU;b=CPU,c=CPU'"),
    ("llama-bench -m m.gguf -nopo 0 -ot 'a=CPU;b=Vulkan1,c=RPC[10.0.0.2:50052]'", MAINLINE, [], ""),
    ("llama-bench -m m.gguf -ts 3,1 -fmoe 1", IK, ["comma-separates-tests"], "-ts 3/1"),
    ("llama-bench -m a,b.gguf -fmoe 1", IK, ["comma-in-path"], ""),
    ("llama-bench -m m.gguf -p 8k -fmoe 1", IK, ["no-whole-number"], ""),
    ("llama-bench -m m.gguf -rtr -fmoe 1 -p 512", IK, ["missing-value", "repacking-drops-mmap"], "-rtr 1 -fmoe 1"),
    ("llama-bench -m m.gguf -sm row -fmoe 1", IK, ["bad-value"], ""),
    ("llama-bench -m m.gguf -ctk q8 -fmoe 1 -o json", IK, ["bad-value"], "-ctk q8_0"),
    ("llama-bench -m m.gguf -fmoe 1 -d 4096", IK, ["other-programs-option"], "llama-bench -m m.gguf -fmoe 1"),
    # Spelling: llama-bench of llama.cpp.
    ("llama-bench -m m.gguf -ot 'a=CPU,b=CPU' -nopo 0", MAINLINE, ["comma-separates-tests"], "-ot 'a=CPU;b=CPU'"),
    ("llama-bench -m m.gguf -mmp 0 --progress", MAINLINE, ["other-programs-option"], "-lm none --progress"),
    ("llama-bench -m m.gguf -p 512-2048*2 -fa on,off --delay 5", MAINLINE, [], ""),
    ("llama-bench -m m.gguf -fmoe 1 --progress -nopo 0", MAINLINE, ["other-programs-option"], "-m m.gguf --progress"),
    # Spelling: what the help of ik_llama.cpp's llama-bench prints, and what its parser takes.
    ("llama-bench -m m.gguf --mla-attn 2 --attn-max-batch 0 -rtr 0", IK, [], ""),
    (
        "llama-bench -m m.gguf --merge-up-gate-exps 1 -rtr 0",
        IK,
        ["repacking-drops-mmap"],
        "",
    ),
    (
        "llama-bench -m m.gguf --merge-up-gate-experts 1 -rtr 0",
        IK,
        ["other-programs-option"],
        "",  # -muge 1 would be warned of in its turn
    ),
    ("llama-server -m m.gguf --log-disable -gr", IK, [], ""),
    ("llama-cli -m m.gguf --image cat.png --verbose-prompt --display-prompt -lm mmap", MAINLINE, [], ""),
    # Spelling: the programs that time prompts and generations in one row.
    ("llama-sweep-bench -m m.gguf -c 8192 -ub 512 -mla 3 -fa on -wb --sweep-stride 2 --sweep-memory", IK, [], ""),
    ("llama-sweep-bench -m m.gguf -c 8192 -mla 3 --output-format table", IK, ["bad-value"], "--output-format md"),
    ("llama-sweep-bench -m m.gguf -c 8192 -mla 3 -fmoe -fa 1", IK, ["removed-option"], "-mla 3 -fa 1"),
    ("llama-batched-bench -m m.gguf -npp 128,256 -ntg 8 -npl 1,2 -pps -tgs -lm mmap", MAINLINE, [], ""),
    (
        "llama-batched-bench -m m.gguf -npp 128 --sweep-stride 2 -lm mmap",
        MAINLINE,
        ["unknown-option"],
        "",
    ),
    # Spelling: servers and their like.
    (
        "llama-server -m m.gguf -fmoe 1 -mqkv",
        IK,
        ["removed-option", "repacking-drops-mmap"],
        "llama-server -m m.gguf -mqkv",
    ),
    ("llama-server -m m.gguf -fa -mla 2", IK, ["missing-value"], "-fa on -mla 2"),
    ("llama-cli -m m.gguf -ger 1 -p hello", IK, ["takes-no-value"], "-ger -p hello"),
    ("llama-server -m m.gguf -rtr 0 -gr", IK, ["takes-no-value"], "llama-server -m m.gguf -gr"),
    ("llama-server -m m.gguf -rcache -gr", IK, ["value-ignored"], "llama-server -m m.gguf -gr"),
    ("llama-server -m m.gguf -fa off -amb 64", IK, ["value-ignored"], "llama-server -m m.gguf -fa off"),
    (
        "llama-server -m m.gguf --no-mmap --mlock -lzm on",
        MAINLINE,
        ["removed-option"] * 2,
        "llama-server -m m.gguf -lm mlock -lzm on",
    ),
    ("llama-server -m m.gguf --n_gpu_layers 99 --jinja -lm mmap", MAINLINE, [], ""),
    ("llama-server -m m.gguf -ngll 99 -lm mmap", MAINLINE, ["unknown-option"], "-ngl 99 -lm mmap"),
    ("llama-perplexity -m m.gguf -f w.txt --chunks 8 --kl-divergence -rtr", IK, ["repacking-drops-mmap"], ""),
    ("llama-server -m m.gguf -ctk q8_0 -ctv q8_0 -fa off --jinja", MAINLINE, ["contradictory"], ""),
    ("llama-bench -m m.gguf -muge 1 -mmp 1", IK, ["contradictory", "repacking-drops-mmap"], "-muge 1 -mmp 0"),
    ("llama-server -m m.gguf -b 512 -ub 2048 -lm mmap", MAINLINE, ["lowered-batch"], "-b 2048 -ub 2048"),
    ("llama-server -m m.gguf -ub 512 -ub 1024 -lm mmap", MAINLINE, ["said-twice"], "-m m.gguf -ub 1024"),
    ("llama-server -m m.gguf oops -lm mmap", MAINLINE, ["stray-word"], "-m m.gguf -lm mmap"),
]


@pytest.mark.parametrize(("line", "fork", "expected", "replacement"), CASES, ids=lambda value: str(value)[:60])
def test_spelling(line: str, fork: Fork, expected: list[str], replacement: str) -> None:
    """The model is one for which no trap is about what the line is about."""
    judged = judge(line, fork, model=DEEPSEEK, placement="gpu")[fork]
    assert ids(judged) == expected
    assert replacement in judged.replacement if replacement else True
    if replacement.startswith("llama-"):
        assert judged.replacement == replacement


@pytest.mark.parametrize(("line", "fork", "expected", "replacement"), CASES, ids=lambda value: str(value)[:60])
def test_what_should_be_written_has_nothing_against_it(
    line: str, fork: Fork, expected: list[str], replacement: str
) -> None:
    """But what no line can be offered for."""
    judged = judge(line, fork, model=DEEPSEEK, placement="gpu")[fork]
    again = judge(judged.replacement or line, fork, model=DEEPSEEK, placement="gpu")[fork]
    offered = {finding.id for finding in judged.findings if finding.edits}
    assert not offered & set(ids(again))


def known(
    number: int | None = None, model: ModelFacts | None = QWEN, placement: str | None = None
) -> dict[str, object]:
    return {"number": number, "model": model, "placement": placement}


HYBRID = "llama-server -m m.gguf -ngl 99 -ot exps=CPU"
TRAPS = [
    ("rtr-hybrid", f"{HYBRID} -ub 2048 -rtr", IK, known(), HYBRID + " -ub 2048"),
    (
        "rtr-hybrid-iq",
        "llama-bench -m m.gguf -ngl 99 --n-cpu-moe 99 -rtr 1 -ub 2048",
        IK,
        known(model=DEEPSEEK),
        "-rtr 0",
    ),
    ("rtr-row-count", "llama-server -m m.gguf -rtr", IK, known(3560), "llama-server -m m.gguf"),
    ("rtr-gpt-oss", "llama-server -m m.gguf -rtr", IK, known(model=GPT), "llama-server -m m.gguf"),
    ("rtr-float-weights", "llama-server -m m.gguf -rtr", IK, known(model=HALF), "llama-server -m m.gguf"),
    ("repacking-drops-mmap", "llama-server -m m.gguf -muge", IK, known(), ""),
    ("repacked-file-on-gpu", "llama-server -m m.gguf -ngl 99", IK, known(model=R4), ""),
    ("r4-small-ubatch", f"{HYBRID} -ub 512", IK, known(model=R4), "-ub 4096"),
    ("cpu-flash-attention", "llama-bench -m m.gguf -fa on -ngl 0", MAINLINE, known(5318), "-fa 0 -ngl 0"),
    ("hybrid-flash-attention", f"{HYBRID} -fa on", MAINLINE, known(5318), "-fa off"),
    ("ffn-on-cpu", "llama-server -m m.gguf -ngl 99 -ot ffn=CPU", MAINLINE, known(), "-ot exps=CPU"),
    ("amb-with-flash-attention", f"{HYBRID} -fa on -amb 512 -ub 2048", IK, known(), HYBRID + " -fa on -ub 2048"),
    ("amb-grouped-queries", f"{HYBRID} -fa off -amb 512 -ub 2048", IK, known(), HYBRID + " -fa off -ub 2048"),
    ("fmoe-off", "llama-server -m m.gguf -no-fmoe", IK, known(), "llama-server -m m.gguf"),
    ("fmoe-off-garbled", "llama-bench -m m.gguf -fmoe 0 -ngl 99", IK, known(3870), "-fmoe 1"),
    ("split-experts", "llama-server -m m.gguf -ngl 99 -ot 'ffn_up_exps=CPU'", IK, known(), ""),
    ("offload-threshold", f"{HYBRID} -ub 256", IK, known(), "-ub 2048"),
    ("no-op-offload", f"{HYBRID} --no-op-offload", MAINLINE, known(), "--op-offload"),
    (
        "kv-quantized-on-cpu",
        "llama-server -m m.gguf -ctk q8_0 -ctv q8_0 -fa on -lm mmap",
        MAINLINE,
        known(placement="cpu"),
        "-ctk f16 -ctv f16 -fa on",
    ),
    (
        "kv-types-without-kernels",
        "llama-server -m m.gguf -ngl 99 -ctk q5_1 -ctv q5_1 -fa on",
        MAINLINE,
        known(),
        "-ctk q8_0",
    ),
    ("kv-types-mixed", "llama-server -m m.gguf -ngl 99 -ctk q8_0 -ctv q4_0 -fa on", MAINLINE, known(), "-ctv q8_0"),
    ("ngl-0-uses-gpu", "llama-bench -m m.gguf -ngl 0", MAINLINE, known(), "-dev none"),
    ("ser-inert", "llama-server -m m.gguf -ser 6,0.4", IK, known(), "llama-server -m m.gguf"),
    ("ser-uninitialised", "llama-server -m m.gguf -ser 6,0.4", IK, known(3600), "llama-server -m m.gguf"),
    ("graph-split-hybrid", f"{HYBRID} -sm graph", IK, known(), "-cuda graphs=0"),
    ("muge-graph-split", f"{HYBRID} -sm graph -muge", IK, known(), "-sm graph -cuda graphs=0"),
    ("split-row", "llama-server -m m.gguf -sm row", MAINLINE, known(), "-sm layer"),
    (
        "fit-with-cpu-moe",
        "llama-server -m m.gguf --cpu-moe --fit on",
        MAINLINE,
        known(),
        "llama-server -m m.gguf --cpu-moe",
    ),
    ("mla-on-other-models", "llama-server -m m.gguf -mla 3", IK, known(), "llama-server -m m.gguf"),
    ("mla-crash", "llama-server -m m.gguf -mla 2", IK, known(3600), "llama-server -m m.gguf"),
    ("offload-policy-numbers", "llama-server -m m.gguf -op 26,0,29,0", IK, known(), ""),
]


@pytest.mark.parametrize(
    ("override", "told", "untold"),
    [
        (r"blk\.(?<=3)\d+\.ffn=CPU", r"read as the pattern 'blk\.(?<' for a buffer '3)\d+\.ffn=CPU'", "comma"),
        ("blk.(1,2).=CPU", "split at commas", "first '='"),
        ("exps", "'exps' is none", "comma"),
    ],
)
def test_what_is_wrong_with_an_override_is_what_the_parsers_do(override: str, told: str, untold: str) -> None:
    """Both split at commas, then at the first equal sign."""
    (finding,) = judge(f"llama-server -m m.gguf -gr -ot '{override}'", IK, model=DEEPSEEK)[IK].findings
    assert told in finding.why
    assert untold not in finding.why


@pytest.mark.parametrize(
    ("line", "fork", "instead"),
    [
        ("llama-server -m m -fa off -ctv q8_0 -lm mmap", MAINLINE, "-fa on, or leave -ctv out"),
        ("llama-bench -m m -fa 0 --cache-type-v q8_0 -rtr 0", IK, "-fa 1, or leave --cache-type-v out"),
    ],
)
def test_a_choice_between_two_is_told_in_the_commands_words_and_no_line_is_offered(
    line: str, fork: Fork, instead: str
) -> None:
    """Which of them was meant is not known."""
    judged = judge(line, fork, model=DEEPSEEK, placement="gpu")[fork]
    (finding,) = judged.findings
    assert finding.instead == instead
    assert (judged.line_without(finding), judged.replacement) == ("", "")


TYPOS: list[tuple[str, Fork, dict[str, object], str]] = [
    ("llama-bench -m m.gguf -ngl 99 --n-cpu-moe 20 -fa 1 -p 512 -n 128 --flash-atention on", IK, {}, ""),
    ("llama-bench -m m.gguf --flash-atn 1 -fmoe 1", IK, {}, "--flash-attn 1 -fmoe 1"),
    ("llama-server -m m.gguf -gr -mmap", IK, {"model": QWEN}, ""),  # --no-mmap is near, and says the opposite
    ("llama-server -m m.gguf -ub 512 --ubatch-sze 1024 -lm mmap", MAINLINE, {}, ""),
]


@pytest.mark.parametrize(("line", "fork", "facts", "guessed"), TYPOS, ids=lambda value: str(value)[:60])
def test_a_guess_that_would_be_a_trap_is_no_line_to_write(
    line: str, fork: Fork, facts: dict[str, object], guessed: str
) -> None:
    """What was meant is asked; the line is offered only where nothing new is said against it."""
    judged = judge(line, fork, **facts)[fork]
    (finding,) = judged.findings
    assert finding.instead.startswith("did you mean")
    offered = judged.line_without(finding)
    assert guessed in offered if guessed else not offered
    assert judged.replacement == offered


ALL_LINES = [
    *((line, fork, {"model": DEEPSEEK, "placement": "gpu"}) for line, fork, *_ in CASES),
    *((line, fork, facts) for _, line, fork, facts, _ in TRAPS),
    *((line, fork, facts) for line, fork, facts, _ in TYPOS),
]


def test_no_line_to_write_has_a_warning_that_the_line_did_not_have() -> None:
    """Of every example, alone and all together."""
    for line, fork, facts in ALL_LINES:
        judged = judge(line, fork, **facts)[fork]
        had = Counter(ids(judged))
        for written in {judged.replacement, *map(judged.line_without, judged.findings)} - {""}:
            assert not Counter(ids(judge(written, fork, **facts)[fork])) - had, (line, written)


@pytest.mark.parametrize(("number", "warned"), [(3837, False), (3838, True), (4840, True)])
def test_numbers_of_operations_are_right_in_the_builds_of_their_documentation(number: int, warned: bool) -> None:
    """The enumeration moved in build 3838, and the text did not follow."""
    found = judge("llama-server -m m.gguf -op 26,0,27,0", IK, **known(number))[IK]
    assert ("offload-policy-numbers" in ids(found)) is warned
    told = next((one.why for one in found.findings if one.id == "offload-policy-numbers"), "")
    assert ("since build 3838 these are 27, 28 and 30, and fused is 31 since 3869" in told) is warned


@pytest.mark.parametrize(("trap", "line", "fork", "facts", "replacement"), TRAPS, ids=[case[0] for case in TRAPS])
def test_traps(trap: str, line: str, fork: Fork, facts: dict[str, object], replacement: str) -> None:
    """Each documented trap that a line can have is found in one that has it, and not in what is offered instead."""
    judged = judge(line, fork, **facts)[fork]
    assert trap in ids(judged)
    found = next(finding for finding in judged.findings if finding.id == trap)
    assert found.pitfall is not None
    figures = [found.pitfall.source, *(each.said for each in found.pitfall.found)]
    assert any(said in found.why for said in figures)
    assert found.applies.startswith(str(fork))
    offered = judged.line_without(found)
    assert bool(offered) == bool(replacement)
    if offered:
        assert replacement in offered or replacement in judged.replacement
        assert trap not in ids(judge(offered, fork, **{**facts, "gpu_code": None})[fork]) or trap == "ngl-0-uses-gpu"


def test_every_trap_that_a_line_shows_is_tried() -> None:
    """A new entry needs a line here."""
    shown = {name for name, pitfall in packaged_pitfalls().items() if pitfall.trap}
    assert {case[0] for case in TRAPS} == shown


@pytest.mark.parametrize(
    ("line", "fork", "facts", "absent"),
    [
        (f"{HYBRID} -ub 256 -rtr", IK, known(), "rtr-hybrid"),
        ("llama-server -m m.gguf -ngl 99 -rtr", IK, known(), "rtr-hybrid"),
        (f"{HYBRID} -ub 2048 -rtr", IK, known(model=R4), "rtr-hybrid"),
        (f"{HYBRID} -ub 2048 -rtr", IK, known(), "rtr-hybrid-iq"),
        ("llama-bench -m m.gguf -fa 1 -ngl 0", MAINLINE, known(11434), "cpu-flash-attention"),
        ("llama-bench -m m.gguf -fa 0 -ngl 0", MAINLINE, known(5318), "cpu-flash-attention"),
        (f"{HYBRID} -ub 512", IK, known(), "offload-threshold"),
        ("llama-server -m m.gguf -ser 6,0.4", IK, known(3800), "ser-inert"),
        ("llama-server -m m.gguf -fa on -amb 512", IK, known(model=DEEPSEEK), "amb-with-flash-attention"),
        ("llama-server -m m.gguf -ngl 99 -ot 'ffn_(up|gate)_exps=CPU'", IK, known(), "split-experts"),
        ("llama-server -m m.gguf -ngl 99 -ot exps=CPU", IK, known(), "split-experts"),
        ("llama-server -m m.gguf -ngl 99 -ctk q5_1 -ctv q5_1 -fa on", IK, known(), "kv-types-without-kernels"),
        (f"{HYBRID} -sm graph -cuda graphs=0", IK, known(), "graph-split-hybrid"),
    ],
)
def test_traps_are_not_seen_where_they_are_not(line: str, fork: Fork, facts: dict[str, object], absent: str) -> None:
    """A condition that does not hold, or a build of another range."""
    assert absent not in ids(judge(line, fork, **facts)[fork])


@pytest.mark.parametrize(
    ("line", "fork", "number", "expected"),
    [
        ("llama-server -m m -fmoe -ger", IK, 3927, []),
        ("llama-server -m m -fmoe -ger", IK, 3928, ["removed-option"]),
        ("llama-server -m m -fmoe 1 -ger", IK, 3927, ["removed-option"]),
        ("llama-server -m m -fa -ger", IK, 3984, []),
        ("llama-server -m m -fa -ger", IK, 3985, ["missing-value"]),
        ("llama-server -m m -fa --no-mmap -ngl 0", MAINLINE, 5318, ["cpu-flash-attention"]),
        ("llama-server -m m --no-mmap", MAINLINE, 10114, []),
    ],
)
def test_what_older_builds_took_is_right_there(line: str, fork: Fork, number: int, expected: list[str]) -> None:
    """Options that were removed, and -fa alone."""
    assert ids(judge(line, fork, number=number, model=DEEPSEEK, gpu_code=False)[fork]) == expected


def test_overrides_of_a_server_add_up() -> None:
    """Two -ot are one placement, and only the pattern that is the trap is written otherwise."""
    line = "llama-server -m m -ngl 99 -ot 'blk.1.ffn=CUDA0,ffn=CPU' -ot attn=CPU"
    judged = judge(line, MAINLINE, **known())[MAINLINE]
    assert judged.line.said["ot"] == ("blk.1.ffn=CUDA0;ffn=CPU;attn=CPU",)
    assert judged.replacement == "llama-server -m m -ngl 99 -ot blk.1.ffn=CUDA0,exps=CPU -ot attn=CPU"
    tests = judge("llama-bench -m m -ot a=CPU -ot b=CPU -nopo 0", MAINLINE, **known())[MAINLINE]
    assert tests.line.said["ot"] == ("a=CPU", "b=CPU")


def test_what_is_not_sure_is_offered_and_not_mended_along() -> None:
    """-mla is needed by the models that have it: a line without it is not what everybody should write."""
    judged = judge("llama-server -m DeepSeek.gguf -mla 3 -ser 6,0.4", IK, model=None)[IK]
    (mla,) = (finding for finding in judged.findings if finding.id == "mla-on-other-models")
    assert mla.unknown == ("it depends on the model's attention, which is not known",)
    assert judged.line_without(mla) == "llama-server -m DeepSeek.gguf -ser 6,0.4"
    assert judged.replacement == "llama-server -m DeepSeek.gguf -mla 3"


WORDS = st.one_of(
    st.sampled_from(sorted({name for fork in Fork for name in options_of(fork, Program.SERVER)})),
    st.sampled_from(sorted({name for fork in Fork for name in options_of(fork, Program.BENCH)})),
    st.sampled_from(
        ["0", "1", "on", "off", "auto", "-1", "512,2048", "exps=CPU", "(=CPU", "a=CPU;b", "6,0.4", "q5_1", "", "=", ","]
    ),
    st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=6),
)


@given(st.sampled_from(list(Program)), st.lists(WORDS, max_size=12))
@settings(max_examples=150, deadline=None)
def test_no_line_ends_in_a_traceback(program: Program, words: list[str]) -> None:
    """Whatever stands in it, for either fork, and what is offered can be judged again."""
    command = read_words([program, *words])
    for judged in lint(command, list(Fork), Surroundings(model=QWEN)):
        for finding in judged.findings:
            assert finding.why
            if offered := judged.line_without(finding):
                assert split_command(offered).kind is program


def test_gpus_that_are_hidden_are_no_trap() -> None:
    """Surroundings say so."""
    assert "ngl-0-uses-gpu" not in ids(judge("llama-bench -m m -ngl 0", MAINLINE, gpu_code=False)[MAINLINE])
    unknown = judge("llama-bench -m m -ngl 0", MAINLINE)[MAINLINE]
    assert unknown.findings[-1].unknown == ("it is about builds with code for GPUs, which is not known here",)


@pytest.mark.parametrize(
    ("line", "forks"),
    [
        ("llama-server -m m -ngl 99", {IK, MAINLINE}),
        ("llama-server -m m -rtr", {IK}),
        ("llama-server -m m -fmoe 1 -rtr", {IK}),
        ("llama-server -m m --no-op-offload --no-mmap", {MAINLINE}),
        ("llama-bench -m m -gp 512,64", {IK}),
        ("llama-bench -m m -d 512", {MAINLINE}),
    ],
)
def test_the_fork_is_told_by_options(line: str, forks: set[Fork]) -> None:
    """Of both where nothing tells."""
    assert set(judge(line)) == forks


def test_what_was_found_gone_is_a_note() -> None:
    """The newest build that was read is meant where none is known."""
    judged = judge("llama-bench -m m -fa 1 -ngl 0 -nopo 0", MAINLINE, gpu_code=False)[MAINLINE]
    assert ids(judged) == []
    assert "gone in build 11434" in judged.notes[0]


def test_what_does_nothing_is_told_apart_from_traps() -> None:
    """Sorts."""
    judged = judge("llama-server -m m -ser 6,0.4 -rtr", IK, **known(placement="cpu"))[IK]
    sorts = {finding.id: finding.sort for finding in judged.findings}
    assert sorts == {"repacking-drops-mmap": Sort.TRAP, "ser-inert": Sort.IGNORED}


def test_options_are_those_that_the_programs_list() -> None:
    """Of the recorded ``--help`` texts nothing is missing."""
    texts = {
        (IK, Program.BENCH): help_flags((RECORDINGS / "ik_llama_cpp-8337e4cd.help.txt").read_text()),
        (MAINLINE, Program.BENCH): help_flags((RECORDINGS / "llama_cpp-b11434.help.txt").read_text()),
        (MAINLINE, Program.SERVER): server_help_options((RECORDINGS / "llama_cpp-b11549.server_help.txt").read_text()),
    }
    common = server_help_options((RECORDINGS / "ik_llama_cpp-8337e4cd.perplexity_help.txt").read_text())
    texts |= {(IK, program): common for program in Program if program is not Program.BENCH}
    for (fork, program), listed in texts.items():
        missing = {option for option in listed if re.fullmatch(r"-{1,2}[A-Za-z][\w.-]*", option)}
        missing -= options_of(fork, program).keys()
        # Texts of the list, cut where a dot or star is, and a spelling that the program prints and does not take.
        assert missing <= {"--fim-qwen-1", "--spec-ngram-", "--merge-up-gate-experts"}, (fork, program)


def test_every_flag_of_a_server_is_an_option_of_its_list() -> None:
    """The table of servers and the list of options know the same flags."""
    for fork in Fork:
        known_flags = {option.flag for option in options_of(fork, Program.SERVER).values()}
        told = {flag for flag, ways in server_flags(fork).items() if any(way.options for way in ways)}
        assert told - known_flags == set(), fork
