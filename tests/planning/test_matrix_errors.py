"""Every fault of a matrix is named with file, key, what was expected and what was probably meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from planning_support import BASE, load, refusal

from harness.domain.errors import BadInput
from harness.planning.expand import expand
from harness.planning.load import find_matrix, load_matrix

CONTRAST = """
[[contrasts]]
name = "c"
factor = "fa"
baseline = 0
candidate = 1
"""


ENVIRONMENT = """
[[contrasts]]
name = "c"
factor = "environment"
baseline = {}
candidate = { B = "1" }
"""
CONFIGURATION = """
[configurations.new]
ctk = "q8_0"
[[contrasts]]
name = "c"
factor = "configuration"
baseline = {}
candidate = "new"
"""
ATTRIBUTION = """
[[contrasts]]
name = "a"
kind = "attribution"
factors = [
  { factor = "build", baseline = "mainline", candidate = "ik" },
  { factor = "configuration", baseline = {}, candidate = { ub = 64, fa = 1 } },
]
"""


@pytest.mark.parametrize(
    ("text", "slug", "where", "message", "hint"),
    [
        pytest.param(
            CONTRAST + 'factr = "fa"',
            "E-matrix-invalid",
            "m.toml: contrasts[0].factr",
            "unknown key 'factr'",
            "did you mean 'factor'?",
            id="key of an entry",
        ),
        pytest.param(
            "[polcy]\nblocks = 2",
            "E-matrix-invalid",
            "m.toml: polcy",
            "unknown key 'polcy'",
            "did you mean 'policy'?",
            id="key of the file",
        ),
        pytest.param(
            "[policy]\nblock = 2",
            "E-matrix-invalid",
            "m.toml: policy.block",
            "unknown key 'block'",
            "did you mean 'blocks'?",
            id="key of a table",
        ),
        pytest.param(
            CONTRAST + "where = { buld = 'ik' }",
            "E-matrix-invalid",
            "m.toml: contrasts[0].where.buld",
            "unknown key 'buld'",
            "did you mean 'build'?",
            id="key of a condition",
        ),
        pytest.param(
            "[[checks]]\nkind = 'memory'\nmax_rss_mib = 5.0\nwhre = 1",
            "E-matrix-invalid",
            "m.toml: checks[0].whre",
            "unknown key 'whre'",
            "did you mean 'where'?",
            id="key of a check",
        ),
        pytest.param(
            "[[checks]]\nkind = 'flor'",
            "E-matrix-invalid",
            "m.toml: checks[0].kind",
            "unknown kind 'flor'",
            "did you mean 'floor'?",
            id="kind of a check",
        ),
        pytest.param(
            "[[checks]]\ntokens_per_second = 5.0",
            "E-matrix-invalid",
            "m.toml: checks[0].kind",
            "the key is missing",
            "known: floor, memory, outputs",
            id="check without kind",
        ),
        pytest.param(
            "[builds.x]\nfork = 'ik_lama.cpp'\nwheel = 'w'",
            "E-matrix-invalid",
            "m.toml: builds.x.fork",
            "expected 'llama.cpp' or 'ik_llama.cpp', found 'ik_lama.cpp'",
            "did you mean 'ik_llama.cpp'?",
            id="fork",
        ),
        pytest.param(
            "[builds.x]\nfork = 'llama.cpp'",
            "E-matrix-invalid",
            "m.toml: builds.x",
            "needs exactly one of 'wheel', 'path', 'variants', 'recipe' and 'catalogue', found none",
            "",
            id="build from nowhere",
        ),
        pytest.param(
            "[models.x]\ncard = 'tiny-moe'\npath = 'x.gguf'",
            "E-matrix-invalid",
            "m.toml: models.x",
            "needs exactly one of 'card', 'path' and 'url', or only 'sha256'; found 'card' and 'path'",
            "",
            id="model from two places",
        ),
        pytest.param(
            "[models.x]\npath = 'x.gguf'\nquant = 'F16'",
            "E-matrix-invalid",
            "m.toml: models.x",
            "'quant' goes with 'card'; a file has the quantization that it has",
            "",
            id="quant of a file",
        ),
        pytest.param(
            "[builds.'a..b']\nfork = 'llama.cpp'\nwheel = 'w'",
            "E-matrix-invalid",
            "m.toml: builds.a..b",
            "a name is made of letters and digits, with single '.', '_' or '-' between them",
            "",
            id="name that would break ids",
        ),
        pytest.param(
            "[policy]\nblocks = '4'",
            "E-matrix-invalid",
            "m.toml: policy.blocks",
            "expected a valid integer, found '4'",
            "",
            id="text for a number",
        ),
        pytest.param(
            "[policy]\nthreads = true",
            "E-matrix-invalid",
            "m.toml: policy.threads",
            'expected "auto" or a whole number above 0, found a boolean (True)',
            "",
            id="threads",
        ),
        pytest.param(
            "[policy]\nburn_in = 0",
            "E-matrix-invalid",
            "m.toml: policy.burn_in",
            "expected greater than or equal to 1, found 0",
            "",
            id="no burn-in, which would answer no prompts",
        ),
        pytest.param(
            "[[contrasts]]\nname = 'c'\nfactor = 'fa'\nbaseline = 0",
            "E-matrix-invalid",
            "m.toml: contrasts[0]",
            "'candidate' is missing",
            "",
            id="missing key",
        ),
        pytest.param(
            CONTRAST.replace('"c"', '"c d"'),
            "E-matrix-invalid",
            "m.toml: contrasts[0].name",
            "expected letters and digits, with single '.', '_' or '-' between them, found 'c d'",
            "",
            id="name of a contrast",
        ),
        pytest.param(
            CONTRAST + "where = { build = 3 }",
            "E-matrix-invalid",
            "m.toml: contrasts[0].where.build",
            "expected a name or a list of names, found a number (3)",
            "",
            id="name that is a number",
        ),
        pytest.param(
            CONTRAST + "kind = 'pitfall'\nsource = 'x'\ninstead = 'y'\nexpect = 'report'",
            "E-matrix-invalid",
            "m.toml: contrasts[0]",
            "a pitfall has no 'expect': it expects a slower candidate",
            "",
            id="pitfall with an expectation",
        ),
        pytest.param(
            ENVIRONMENT.replace("{}", "{ A = 1 }"),
            "E-matrix-invalid",
            "m.toml: contrasts[0].baseline",
            "environment variable 'A' must be a text, found a number (1)",
            "",
            id="variable that is no text",
        ),
        pytest.param(
            CONTRAST + "[[checks]]\nkind = 'outputs'\nname = 'o'\nprompts = ['p']\ncontrasts = ['c']\nfactor = 'fa'",
            "E-matrix-invalid",
            "m.toml: checks[0]",
            "takes either 'contrasts' or 'factor', 'baseline', 'candidate' and 'where'",
            "",
            id="outputs said twice",
        ),
        pytest.param(
            "[[checks]]\nkind = 'outputs'\nname = 'o'\nprompts = ['p']\nfactor = 'fmo'\nbaseline = 0\ncandidate = 1",
            "E-unknown-flag",
            "m.toml: checks[0].factor",
            "unknown flag 'fmo'",
            "did you mean 'fmoe'?",
            id="factor of outputs",
        ),
        pytest.param(
            "[flags]\nfa = [[0]]",
            "E-matrix-invalid",
            "m.toml: flags.fa",
            "expected a number, a text or a boolean, found a list ([0])",
            "",
            id="list in an axis",
        ),
        pytest.param(
            "[flags]\nfa = []",
            "E-matrix-invalid",
            "m.toml: flags.fa",
            "expected at least one value, found an empty list",
            "",
            id="empty axis",
        ),
        pytest.param(
            "[flags]\nfa = [1, true]",
            "E-matrix-invalid",
            "m.toml: flags.fa",
            "value 1 is listed twice",
            "",
            id="axis with a value twice",
        ),
        pytest.param(
            "[flags]\nfa = nan",
            "E-matrix-invalid",
            "m.toml: flags.fa",
            "expected a finite number, found nan",
            "",
            id="not a number",
        ),
        pytest.param(
            "[[workloads]]\ndepth = 5",
            "E-matrix-invalid",
            "m.toml: workloads[2]",
            "needs 'pp' or 'tg' above 0",
            "",
            id="workload that does nothing",
        ),
        pytest.param(
            "[[exclude]]",
            "E-matrix-invalid",
            "m.toml: exclude[0]",
            "an empty exclude would remove every arm; say which ones",
            "",
            id="empty exclude",
        ),
        pytest.param(
            CONTRAST + "kind = 'pitfall'\nsource = 'x'",
            "E-matrix-invalid",
            "m.toml: contrasts[0]",
            "a pitfall needs 'source' (who reported it) and 'instead' (what to use in its place)",
            "",
            id="pitfall without remedy",
        ),
        pytest.param(
            CONTRAST + "instead = 'x'",
            "E-matrix-invalid",
            "m.toml: contrasts[0]",
            "'source' and 'instead' belong to kind = \"pitfall\"",
            "",
            id="remedy without pitfall",
        ),
        pytest.param(
            "[[checks]]\nkind = 'outputs'\nname = 'o'\nprompts = ['p']",
            "E-matrix-invalid",
            "m.toml: checks[0]",
            "needs 'contrasts', or all of 'factor', 'baseline' and 'candidate'",
            "",
            id="outputs of nothing",
        ),
        pytest.param(
            "[flags]\nfmo = 1",
            "E-unknown-flag",
            "m.toml: flags.fmo",
            "unknown flag 'fmo'",
            "did you mean 'fmoe'?",
            id="flag",
        ),
        pytest.param(
            "[flags]\nrun-time-repack = 1",
            "E-unknown-flag",
            "m.toml: flags.run-time-repack",
            "unknown flag 'run-time-repack'",
            "did you mean 'rtr'?",
            id="option instead of flag",
        ),
        pytest.param(
            "[[when]]\nfork = 'ik_llama.cpp'\nflags = { rtrr = 1 }",
            "E-unknown-flag",
            "m.toml: when[0].flags.rtrr",
            "unknown flag 'rtrr'",
            "did you mean 'rtr'?",
            id="flag of a when",
        ),
        pytest.param(
            CONTRAST.replace('"fa"', '"faa"'),
            "E-unknown-flag",
            "m.toml: contrasts[0].factor",
            "unknown flag 'faa'",
            "did you mean 'fa'?",
            id="factor",
        ),
        pytest.param(
            "[[include]]\nbuild = 'mainlin'\nmodel = 'tiny'",
            "E-unknown-build",
            "m.toml: include[0].build",
            "unknown build 'mainlin'",
            "did you mean 'mainline'?",
            id="build",
        ),
        pytest.param(
            "[[contrasts]]\nname = 'c'\nfactor = 'build'\nbaseline = 'mainline'\ncandidate = 'ikk'",
            "E-unknown-build",
            "m.toml: contrasts[0].candidate",
            "unknown build 'ikk'",
            "did you mean 'ik'?",
            id="build of a contrast",
        ),
        pytest.param(
            "[[exclude]]\nmodel = 'tinny'",
            "E-unknown-model",
            "m.toml: exclude[0].model",
            "unknown model 'tinny'",
            "did you mean 'tiny'?",
            id="model",
        ),
        pytest.param(
            "[models.x]\ncard = 'tiny-mo'",
            "E-unknown-card",
            "m.toml: models.x.card",
            "unknown card 'tiny-mo'",
            "did you mean 'tiny-moe'?",
            id="card",
        ),
        pytest.param(
            "[models.x]\ncard = 'tiny-moe'\nquant = 'IQ4_XZ'",
            "E-unknown-quant",
            "m.toml: models.x.quant",
            "unknown quant 'IQ4_XZ'",
            "did you mean 'IQ4_XS'?",
            id="quant",
        ),
        pytest.param(
            "[[exclude]]\nquant = 'Q4_K_M'",
            "E-unknown-quant",
            "m.toml: exclude[0].quant",
            "unknown quant 'Q4_K_M'",
            "known: IQ4_XS",
            id="quant that no model has",
        ),
        pytest.param(
            "[[exclude]]\nnode_class = 'gpu'",
            "E-unknown-node-class",
            "m.toml: exclude[0].node_class",
            "unknown node class 'gpu'",
            "known: any",
            id="node class",
        ),
        pytest.param(
            CONTRAST + "workloads = ['pp46']",
            "E-unknown-workload",
            "m.toml: contrasts[0].workloads",
            "unknown workload 'pp46'",
            "did you mean 'pp64'?",
            id="workload",
        ),
        pytest.param(
            CONTRAST + "[[checks]]\nkind = 'outputs'\nname = 'o'\nprompts = ['p']\ncontrasts = ['d']",
            "E-unknown-contrast",
            "m.toml: checks[0].contrasts",
            "unknown contrast 'd'",
            "known: c",
            id="contrast",
        ),
        pytest.param(
            CONTRAST.replace("candidate = 1", "candidate = 0"),
            "E-no-contrast",
            "m.toml: contrasts[0].candidate",
            "baseline and candidate are the same: fa = 0",
            "name two different ones",
            id="no contrast",
        ),
        pytest.param(
            "[[contrasts]]\nname = 'c'\nfactor = 'environment'\nbaseline = 'A'\ncandidate = { A = '1' }",
            "E-matrix-invalid",
            "m.toml: contrasts[0].baseline",
            "expected a table of environment variables, found 'A'",
            "",
            id="environment",
        ),
        pytest.param(
            "[builds.IK]\nfork = 'llama.cpp'\nwheel = 'xllamacpp'",
            "E-duplicate-name",
            "m.toml: builds.IK",
            "'IK' is declared twice (in ids, upper and lower case, '_' and '-' are the same)",
            "",
            id="names that fold to one",
        ),
        pytest.param(
            "[builds.other]\nfork = 'llama.cpp'\nwheel = 'xlamacpp'",
            "E-unknown-wheel",
            "m.toml: builds.other.wheel",
            "no engine is known for the wheel 'xlamacpp'",
            "did you mean 'xllamacpp'?",
            id="wheel",
        ),
        pytest.param(
            "[builds.other]\nfork = 'ik_llama.cpp'\nwheel = 'xllamacpp'",
            "E-wrong-fork",
            "m.toml: builds.other.wheel",
            "the wheel 'xllamacpp' is of llama.cpp",
            'write fork = "llama.cpp"',
            id="wheel of the other fork",
        ),
        pytest.param(
            "[node_classes.c]\nisa = ['avx3']",
            "E-matrix-invalid",
            "m.toml: node_classes.c.isa",
            "unknown instruction set 'avx3'",
            "did you mean 'avx'?",
            id="instruction set",
        ),
        pytest.param(
            "[policy]\nblocks = 1000000000000",
            "E-matrix-invalid",
            "m.toml: policy.blocks",
            "expected less than or equal to 10000, found 1000000000000",
            "",
            id="number that fills the memory",
        ),
        pytest.param(
            '[environment]\n"A=B" = "1"',
            "E-matrix-invalid",
            'm.toml: environment."A=B"',
            "the name of a variable is letters",
            "",
            id="name of a variable",
        ),
        pytest.param(
            CONTRAST + '[[checks]]\nkind = "outputs"\nname = "o"\ncontrasts = ["c"]\nprompts = ["a", "b\\u0000"]',
            "E-matrix-invalid",
            "m.toml: checks[0].prompts[1]",
            "a prompt can't hold a null character",
            "",
            id="prompt with a null character",
        ),
        pytest.param(
            '[environment]\nA = "1\\u0000"',
            "E-matrix-invalid",
            "m.toml: environment.A",
            "a variable can't hold a null character",
            "",
            id="null character",
        ),
        pytest.param(
            "[builds.other]\nfork = 'llama.cpp'\npath = \"a\\u0000b\"",
            "E-matrix-invalid",
            "m.toml: builds.other.path",
            "a path can't hold a null character",
            "",
            id="path with a null character",
        ),
        pytest.param(
            f"[models.other]\npath = '{'a' * 300}'",
            "E-matrix-invalid",
            "m.toml: models.other.path",
            "a path has at most 4095 bytes, and 255 between slashes",
            "",
            id="long path",
        ),
        pytest.param(
            '[policy]\n"a\\nb\\u001b[31m" = 1',
            "E-matrix-invalid",
            r'm.toml: policy."a\nb\u001b[31m"',
            r"unknown key 'a\nb\x1b[31m'",
            "known: alpha, blocks, burn_in, ceiling_tps, inconclusive, margin, minutes, repetitions, threads, "
            "timeout_s, trades, warmup",
            id="key with a line break and an escape",
        ),
        pytest.param(
            "[policy]\nblocks = 7",
            "E-matrix-invalid",
            "m.toml: policy.blocks",
            "expected an even number, because two blocks are one quad, found 7",
            "",
            id="odd blocks",
        ),
        pytest.param(
            "[policy]\nmargin = 1.5",
            "E-matrix-invalid",
            "m.toml: policy.margin",
            'expected "auto" or a number above 0 and below 1, found a number (1.5)',
            "",
            id="margin above one",
        ),
        pytest.param(
            "[[policy.trades]]\ngain = 'pp*'\nat_least = 0.1\nloss = 'ttg*'\nat_most = 0.03",
            "E-unknown-workload",
            "m.toml: policy.trades[0].loss",
            "unknown workload 'ttg*'",
            "did you mean 'tg8'?",
            id="trade without a workload",
        ),
        pytest.param(
            CONFIGURATION.replace('"new"', '"nwe"'),
            "E-unknown-configuration",
            "m.toml: contrasts[0].candidate",
            "unknown configuration 'nwe'",
            "did you mean 'new'?",
            id="configuration",
        ),
        pytest.param(
            CONFIGURATION.replace('"new"', "3"),
            "E-matrix-invalid",
            "m.toml: contrasts[0].candidate",
            "expected the name of a configuration or a table of flags, found 3",
            "",
            id="number for a configuration",
        ),
        pytest.param(
            CONFIGURATION.replace("ctk", "fmo"),
            "E-unknown-flag",
            "m.toml: configurations.new.fmo",
            "unknown flag 'fmo'",
            "did you mean 'fmoe'?",
            id="flag of a configuration",
        ),
        pytest.param(
            CONFIGURATION.replace("{}", "{ fmo = 1 }"),
            "E-unknown-flag",
            "m.toml: contrasts[0].baseline.fmo",
            "unknown flag 'fmo'",
            "did you mean 'fmoe'?",
            id="flag of a side",
        ),
        pytest.param(
            CONFIGURATION.replace("{}", "{ environment = { A = 1 } }"),
            "E-matrix-invalid",
            "m.toml: contrasts[0].baseline",
            "environment variable 'A' must be a text, found a number (1)",
            "",
            id="variable of a configuration",
        ),
        pytest.param(
            CONFIGURATION.replace('"configuration"', '"configuratoin"'),
            "E-unknown-flag",
            "m.toml: contrasts[0].factor",
            "unknown flag 'configuratoin'",
            "did you mean 'configuration'?",
            id="factor configuration",
        ),
        pytest.param(
            CONTRAST.replace("baseline = 0", "baseline = { fa = 0, ub = 64 }"),
            "E-matrix-invalid",
            "m.toml: contrasts[0].baseline",
            "expected a name or a value, found a table ({ fa = 0, ub = 64 })",
            'several flags at once are factor = "configuration"',
            id="table for a flag",
        ),
        pytest.param(
            ENVIRONMENT.replace("{}", "'x'"),
            "E-matrix-invalid",
            "m.toml: contrasts[0].baseline",
            "expected a table of environment variables, found 'x'",
            "",
            id="text for an environment",
        ),
        pytest.param(
            ATTRIBUTION.replace('baseline = "mainline"', 'baseline = "mainlin"'),
            "E-unknown-build",
            "m.toml: contrasts[0].factors[0].baseline",
            "unknown build 'mainlin'",
            "did you mean 'mainline'?",
            id="build of a factor",
        ),
        pytest.param(
            ATTRIBUTION.replace("fa = 1", "faa = 1"),
            "E-unknown-flag",
            "m.toml: contrasts[0].factors[1].candidate.faa",
            "unknown flag 'faa'",
            "did you mean 'fa'?",
            id="flag of a factor",
        ),
        pytest.param(
            ATTRIBUTION.replace('"configuration",', '"configuration", name = "build",'),
            "E-duplicate-name",
            "m.toml: contrasts[0].factors",
            "both factors are called 'build'",
            "give each a 'name' of its own",
            id="two factors of one name",
        ),
        pytest.param(
            ATTRIBUTION + 'factor = "fa"',
            "E-matrix-invalid",
            "m.toml: contrasts[0]",
            "an attribution has two 'factors', each with 'factor', 'baseline' and 'candidate'; found 'factor'",
            "",
            id="attribution with a factor of its own",
        ),
        pytest.param(
            ATTRIBUTION.split('  { factor = "configuration"', maxsplit=1)[0] + "]",
            "E-matrix-invalid",
            "m.toml: contrasts[0]",
            "an attribution has two 'factors', each with 'factor', 'baseline' and 'candidate'; found 1",
            "",
            id="attribution of one factor",
        ),
        pytest.param(
            ATTRIBUTION.replace('kind = "attribution"', ""),
            "E-matrix-invalid",
            "m.toml: contrasts[0]",
            "'factors' belong to kind = \"attribution\"; other contrasts have one 'factor'",
            "",
            id="factors of a pair",
        ),
        pytest.param(
            ATTRIBUTION.replace('"attribution"', '"atribution"'),
            "E-matrix-invalid",
            "m.toml: contrasts[0].kind",
            "expected 'throughput', 'pitfall' or 'attribution', found 'atribution'",
            "did you mean 'attribution'?",
            id="kind of a contrast",
        ),
        pytest.param(
            CONTRAST * 2, "E-duplicate-name", "m.toml: contrasts[1]", "'c' is declared twice", "", id="contrast twice"
        ),
    ],
)
def test_a_fault_is_named(  # noqa: PLR0917 - one parameter for each part of the error
    tmp_path: Path, text: str, slug: str, where: str, message: str, hint: str
) -> None:
    """Slug, place, message and hint are exactly right."""
    error = refusal(tmp_path, text)
    assert (error.slug, error.where, error.hint) == (slug, where, hint)
    assert error.message.startswith(message)


def test_the_base_itself_is_good(tmp_path: Path) -> None:
    """The faults above come from what the tests add."""
    assert load(tmp_path, CONTRAST + "[flags]\nfa = [0, 1]").name == "test"


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    """A wrong key does not hide an unknown flag, and both are in one error."""
    error = refusal(tmp_path, "[flags]\nfmo = 1\n[policy]\nblock = 2\nmargin = 'x'")
    assert error.slug == "E-matrix-invalid"
    assert error.where == "m.toml"
    lines = error.message.splitlines()
    assert lines[0] == "3 problems"
    assert sorted(line.split("(")[0].strip() for line in lines[1:]) == [
        "E-matrix-invalid: m.toml: policy.block: unknown key 'block'",
        'E-matrix-invalid: m.toml: policy.margin: expected "auto" or a number above 0 and below 1, found a text',
        "E-unknown-flag: m.toml: flags.fmo: unknown flag 'fmo'",
    ]


def test_faults_of_one_kind_keep_their_slug(tmp_path: Path) -> None:
    """Two unknown flags are an E-unknown-flag, not a general error."""
    error = refusal(tmp_path, "[flags]\nfmo = 1\nrtrr = 1")
    assert error.slug == "E-unknown-flag"
    assert "m.toml: flags.fmo" in error.message
    assert "m.toml: flags.rtrr" in error.message


def test_a_syntax_error_has_its_line(tmp_path: Path) -> None:
    """What TOML can't read is E-matrix-syntax with the line."""
    file = tmp_path / "m.toml"
    file.write_text('name = "x"\nflags = on\n')
    with pytest.raises(BadInput, match=r"line 2") as caught:
        load_matrix(file)
    assert caught.value.slug == "E-matrix-syntax"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("x = " + "[" * 5000 + "]" * 5000, "recursion", id="lists"),
        pytest.param("x" + ".x" * 50 + " = 1", "16 deep", id="tables"),
        pytest.param("x = " + "9" * 6000, "4300 digits", id="number"),
    ],
)
def test_what_is_beyond_the_parser_is_a_syntax_error(tmp_path: Path, text: str, reason: str) -> None:
    """Limits of the parser are an error of the file, not a traceback."""
    error = refusal(tmp_path, text)
    assert error.slug == "E-matrix-syntax"
    assert reason in error.message


@pytest.mark.parametrize("name", ["a" * 300, "a" * 300 + "/b", "a\0b", "a/" * 3000])
def test_what_can_be_no_file_is_a_missing_matrix(tmp_path: Path, name: str) -> None:
    """Neither on the command line nor in ``extends`` does an impossible path end in a traceback."""
    with pytest.raises(BadInput, match="E-matrix-missing"):
        find_matrix(name)
    file = tmp_path / "m.toml"
    file.write_text(f"extends = {json.dumps(name)}")
    with pytest.raises(BadInput, match="E-matrix-extends"):
        load_matrix(file)


def test_a_matrix_that_asks_nothing_is_refused(tmp_path: Path) -> None:
    """Nothing to run is no success."""
    file = tmp_path / "m.toml"
    file.write_text(BASE.partition("[[workloads]]")[0])
    with pytest.raises(BadInput, match=r"E-no-workload: .*m\.toml: workloads: "):
        expand(load_matrix(file))


def test_the_error_leads_to_exit_code_2(tmp_path: Path) -> None:
    """A bad matrix is the user's to mend."""
    assert refusal(tmp_path, "[polcy]").exit_code == 2


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 give an error, not a traceback."""
    file = tmp_path / "m.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="E-matrix-unreadable"):
        load_matrix(file)


def test_a_key_of_a_factor_is_named_with_its_neighbours(tmp_path: Path) -> None:
    """The unknown key and the missing one are both said, with the place inside the list."""
    error = refusal(tmp_path, ATTRIBUTION.replace('factor = "build"', 'factr = "build"'))
    assert "contrasts[0].factors[0].factr: unknown key 'factr' (did you mean 'factor'?)" in error.message
    assert "contrasts[0].factors[0].factor: the key is missing" in error.message
