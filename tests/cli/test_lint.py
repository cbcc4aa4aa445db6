"""``moe-harness lint``: what it prints, its exit codes, and what --verify runs."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from harness.cli.main import cli, entry
from harness.domain.build import Fork
from harness.domain.words import Equivalence, Pitfall, Throughput
from harness.linting.command_words import split_command
from harness.linting.lint import lint
from harness.pitfalls.catalogue import packaged_pitfalls, pitfall_folder
from harness.running import linting
from harness.running.linting import LintRequest, judge_line, request_of, verify

LINE = "llama-server -m Qwen3-30B-A3B-Q4_K_M.gguf -ngl 99 -ot exps=CPU -ub 2048 -rtr"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["lint", *arguments])


def code_of(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        entry(["lint", *arguments])
    return int(ended.value.code or 0)


def test_warnings_end_with_one_and_name_builds_quants_and_the_line_to_write() -> None:
    """The contract's JSON."""
    done = run("--format", "json", LINE)
    assert done.exit_code == 1
    told = json.loads(done.output)
    assert told["forks"] == ["ik_llama.cpp"]
    warnings = {warning["pitfall"]: warning for warning in told["warnings"]}
    assert warnings.keys() == {"rtr-hybrid", "repacking-drops-mmap"}
    trap = warnings["rtr-hybrid"]
    assert trap["kind"] == "trap"
    assert "4835 -> 424" in trap["why"]
    assert "ik_llama.cpp >=3512" in trap["applies"]
    assert "weights of k" in trap["applies"]
    assert (
        trap["may_not_apply"] == ["it depends on how many experts are used, which is not known"]
        or not trap["may_not_apply"]
    )
    assert trap["replacement"] == LINE.removesuffix(" -rtr")
    assert warnings["repacking-drops-mmap"]["replacement"] == ""
    assert told["replacement"] == {"ik_llama.cpp": LINE.removesuffix(" -rtr")}


def test_no_warning_ends_with_zero_and_says_that_both_forks_were_judged() -> None:
    """Nothing in the line tells the fork."""
    done = run("llama-server -m m.gguf -ngl 99")
    assert done.exit_code == 0
    assert "judged for llama.cpp and ik_llama.cpp" in done.output
    assert done.output.count("no warnings") == 2


@pytest.mark.parametrize(("short", "fork"), [("ik", "ik_llama.cpp"), ("mainline", "llama.cpp")])
def test_forks_have_the_names_of_their_builds(short: str, fork: str) -> None:
    """As ``--build`` calls them."""
    told = json.loads(run("--fork", short, "--format", "json", "llama-server -m m.gguf -ngl 99").output)
    assert told["forks"] == [fork]


def test_words_after_two_dashes_are_as_they_are() -> None:
    """No shell has to quote them."""
    done = run("--fork", "ik_llama.cpp", "--format", "json", "--", "llama-bench", "-m", "my model.gguf", "-fa", "on")
    (warning,) = json.loads(done.output)["warnings"]
    assert warning["replacement"] == "llama-bench -m 'my model.gguf' -fa 1"


@pytest.mark.parametrize("line", ["", "rm -rf /", "llama-server -m 'x", "llama-server -ot blk.(1|2)=CPU"])
def test_what_is_no_command_line_is_bad_input(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, with a slug."""
    assert code_of(line) == 2
    assert "E-" in capsys.readouterr().err


def test_a_build_that_is_not_there_and_a_model_that_is_not_are_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    """Only what was named has to be there: the line's own model need not be."""
    assert code_of("--build", "nothing-like-it", LINE) == 2
    assert code_of("-m", "none.gguf", LINE) == 2
    assert code_of("--verify", LINE) == 2
    assert "E-nothing-to-run-with: --verify runs the two sides, and lacks --build and -m" in capsys.readouterr().err


def test_the_build_tells_fork_and_number() -> None:
    """A wheel has no code for GPUs: what is about them is not warned of, whatever the flags say."""
    told = json.loads(run("--build", "ik", "--format", "json", LINE).output)
    assert told["build_number"] == 4411
    assert [warning["pitfall"] for warning in told["warnings"]] == ["repacking-drops-mmap"]


def test_the_name_of_what_is_not_here_tells_its_quantization() -> None:
    """A file's, or that of a repository."""
    for model in ("-m Qwen3-30B-A3B-UD-IQ3_XXS-00001-of-00002.gguf", "-hfr someone/Qwen3-30B-A3B-GGUF:IQ3_XXS"):
        told = json.loads(run("--format", "json", f"llama-server {model} -ngl 99 -ot exps=CPU -ub 2048 -rtr").output)
        assert {warning["pitfall"] for warning in told["warnings"]} == {"rtr-hybrid-iq", "repacking-drops-mmap"}


@pytest.mark.parametrize(
    ("model", "warned"),
    [
        ("-m DeepSeek-R1-IQ4_KS.gguf", False),
        ("-m /models/DeepSeek-Coder-V2-Lite-Instruct-Q8_0.gguf", False),
        ("-hfr unsloth/Kimi-K2-Instruct-GGUF:Q2_K", False),
        ("-m GLM-4.7-Flash-Q4_K_M.gguf", False),
        ("-m DeepSeek-R1-0528-Qwen3-8B-Q4_K_M.gguf", True),
        ("-m DeepSeek-R1-Distill-Llama-70B-Q4_K_M.gguf", True),
        ("-m GLM-4.7-Q4_K_M.gguf", True),
    ],
)
def test_the_name_of_what_is_not_here_tells_latent_attention(model: str, warned: bool) -> None:
    """What is about other attention is no warning; a distilled model has the architecture of its base."""
    line = f"llama-sweep-bench {model} -mla 2 -fa on -amb 512 -ngl 99"
    result = judge_line(LintRequest((line,), fork=Fork.IK_LLAMA_CPP))
    found = {finding.id for finding in result.judged[0].findings}
    assert found == ({"mla-on-other-models", "amb-with-flash-attention"} if warned else set())


def test_the_models_header_is_read(tiny_model: Path, tmp_path: Path) -> None:
    """IQ4_XS, 4 of 32 experts: the k-quants' trap is not its, and 256 tokens are enough."""
    here = tmp_path / "m.gguf"
    shutil.copy(tiny_model, here)
    line = f"llama-server -m {here} -ngl 99 -ot exps=CPU -ub 256 -rtr"
    told = json.loads(run("--format", "json", line).output)
    found = {warning["pitfall"]: warning["may_not_apply"] for warning in told["warnings"]}
    assert found == {"rtr-hybrid-iq": [], "repacking-drops-mmap": []}


class _Verdict:
    """What a run would end with; nothing else of a verdict is looked at."""

    def __init__(self, throughput: Throughput | None = None, equivalence: Equivalence | None = None) -> None:
        self.throughput, self.equivalence, self.inert = throughput, equivalence, False
        self.reason = f"{throughput or equivalence}"


class _Result:
    def __init__(self, *words: Throughput | None, outputs: _Verdict | None = None) -> None:
        self.verdicts = {f"w{index}": _Verdict(word) for index, word in enumerate(words)}
        self.outputs = outputs


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((Throughput.REGRESSED, Throughput.EQUIVALENT), Pitfall.PRESENT),
        ((Throughput.EQUIVALENT, Throughput.IMPROVED), Pitfall.GONE),
        ((Throughput.INCONCLUSIVE, Throughput.EQUIVALENT), Pitfall.INCONCLUSIVE),
        ((None,), Pitfall.INCONCLUSIVE),
    ],
)
def test_what_a_run_found_stands_beside_the_warning(
    monkeypatch: pytest.MonkeyPatch, words: tuple[Throughput | None, ...], expected: Pitfall
) -> None:
    """The verdicts of a run are planted; what can't be asked says why."""
    request = LintRequest(("llama-server -m m.gguf -no-fmoe -muge",), build="ik", model="tiny-moe:Q4_K_M")
    result = judge_line(request)
    monkeypatch.setattr(linting, "plan_ab", lambda asked: asked)
    found = verify(result, 1.0, lambda _: _Result(*words))  # type: ignore[arg-type,return-value] - planted
    assert found["fmoe-off"].word is expected
    assert found["repacking-drops-mmap"].word is Pitfall.NOT_APPLICABLE
    assert found["repacking-drops-mmap"].said.startswith("not asked: it costs memory")


@pytest.mark.parametrize(
    ("equivalence", "inert", "speed", "expected"),
    [
        (Equivalence.BITWISE, True, Throughput.INCONCLUSIVE, Pitfall.PRESENT),
        (Equivalence.BITWISE, False, Throughput.EQUIVALENT, Pitfall.PRESENT),
        (Equivalence.BITWISE, False, Throughput.INCONCLUSIVE, Pitfall.INCONCLUSIVE),
        (Equivalence.BITWISE, True, Throughput.REGRESSED, Pitfall.GONE),
        (Equivalence.GREEDY, False, Throughput.EQUIVALENT, Pitfall.INCONCLUSIVE),
        (Equivalence.DIFFERENT, False, Throughput.EQUIVALENT, Pitfall.GONE),
        (None, False, Throughput.EQUIVALENT, Pitfall.INCONCLUSIVE),
    ],
)
def test_a_flag_is_inert_by_outputs_and_speed(
    monkeypatch: pytest.MonkeyPatch,
    equivalence: Equivalence | None,
    inert: bool,
    speed: Throughput,
    expected: Pitfall,
) -> None:
    """Either they must change and do not, or neither they nor the speed changes. The verdicts are planted."""
    result = judge_line(LintRequest(("llama-server -m m.gguf -ser 1,1",), build="ik", model="tiny-moe:Q4_K_M"))
    asked: list[linting.AbRequest] = []
    monkeypatch.setattr(linting, "plan_ab", asked.append)
    outputs = _Verdict(equivalence=equivalence) if equivalence else None
    if outputs:
        outputs.inert = inert
    found = verify(result, 1.0, lambda _: _Result(speed, outputs=outputs))  # type: ignore[arg-type,return-value] - planted
    assert found["ser-inert"].word is expected
    assert [(one.old, one.new, one.check_outputs) for one in asked] == [("ik+ser=-1,0", "ik+ser=1,1", True)]


@pytest.mark.parametrize(
    ("line", "words", "code"),
    [
        ("llama-server -m m.gguf -no-fmoe", [Throughput.REGRESSED], 1),
        ("llama-server -m m.gguf -no-fmoe", [Throughput.EQUIVALENT], 0),
        ("llama-server -m m.gguf -no-fmoe", [Throughput.INCONCLUSIVE], 3),
        ("llama-server -m m.gguf -no-fmoe -muge", [Throughput.EQUIVALENT], 1),
        ("llama-server -m m.gguf -no-fmoe -rcache", [Throughput.EQUIVALENT], 1),
    ],
    ids=["present", "gone", "undecided", "another-cannot-be-asked", "another-is-no-pitfall"],
)
def test_the_exit_code_is_of_what_stands(
    monkeypatch: pytest.MonkeyPatch, line: str, words: list[Throughput], code: int
) -> None:
    """What a run found gone is no warning any more; the end of the run is planted."""
    monkeypatch.setattr("harness.cli.lint._run", lambda *_: _Result(*words))
    assert code_of("--verify", "--build", "ik", "-m", "tiny-moe:Q4_K_M", line) == code
    assert code_of(line) == 1


def test_a_real_engine_shows_that_its_flag_is_inert(tiny_model: Path, tmp_path: Path) -> None:
    """The wheel of ik_llama.cpp reads -ser, and computes the same logits to the bit: no time has to be decided."""
    asked = ["--verify", "--build", "ik", "-m", f"{tiny_model}", "--minutes", "0.01", "--reports", f"{tmp_path / 'r'}"]
    done = run(*asked, "--format", "json", "llama-server -m m.gguf -ser 1,1 -t 1")
    (warning,) = json.loads(done.stdout)["warnings"]
    assert warning["verified"]["pitfall"] == "present", warning["verified"]
    assert "inert, ser should change numbers" in warning["verified"]["reason"]
    assert "need --minutes " in warning["verified"]["reason"], "of the speeds, that is: there is no policy here"
    assert done.exit_code == 1


def test_a_run_that_is_stopped_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 130, and no other pitfall is begun: the end of the first run is planted."""
    begun: list[object] = []

    def stopped(plan: object, *_: object) -> SimpleNamespace:
        begun.append(plan)
        return SimpleNamespace(stopped=True)

    monkeypatch.setattr("harness.cli.lint.run_ab", stopped)
    line = "llama-server -m x -no-fmoe -rtr -ngl 99 -ot exps=CPU -ub 2048"
    assert code_of("--verify", "--build", "ik", "-m", "tiny-moe:Q4_K_M", "--placement", "hybrid", line) == 130
    assert len(begun) == 1


def _asked(line: str, pitfall: str, fork: Fork, build: str) -> linting.AbRequest:
    result = judge_line(LintRequest((line,), fork=fork, build=build, model="tiny-moe:Q4_K_M", placement="hybrid"))
    entry_ = packaged_pitfalls()[pitfall]
    assert entry_.contrast is not None
    return request_of(entry_, entry_.contrast, result.judged[0].line, result, 1.0)


def test_verify_runs_the_line_against_itself_without_the_trap() -> None:
    """The line's own flags for both, the trap's apart; workloads are what suffers, and fill the batch."""
    asked = _asked("llama-server -m x -rtr -ub 1024 -ngl 99 --jinja -fa on", "rtr-hybrid", Fork.IK_LLAMA_CPP, "ik")
    assert (asked.old, asked.new) == ("ik+rtr=0", "ik+rtr=1")
    assert set(asked.line) >= {"ub=1024", "ngl=99", "fa=1"}
    assert asked.line[-4:] == ("-p", "1024", "-n", "0")
    assert not any("jinja" in word for word in asked.line)


def test_verify_takes_the_lines_own_trap() -> None:
    """Types of the cache as they stand in it, of several tests the one that is the trap."""
    asked = _asked(
        "llama-bench -m x -ctk q5_0,f16 -ctv q4_1 -fa 0,1", "kv-types-without-kernels", Fork.LLAMA_CPP, "mainline"
    )
    assert asked.old == "mainline+ctk=q8_0+ctv=q8_0"
    assert asked.new == "mainline+ctk=q5_0+ctv=q4_1"
    assert "fa=1" in asked.line


def test_a_line_that_says_the_safe_value_is_held_against_another() -> None:
    """Any value of -mla does nothing, the default too: an arm against itself would ask nothing."""
    asked = _asked("llama-server -m x -mla 3 -fa on", "mla-on-other-models", Fork.IK_LLAMA_CPP, "ik")
    assert (asked.old, asked.new) == ("ik+mla=3", "ik+mla=1")
    asked = _asked("llama-server -m x -mla 2 -fa on", "mla-on-other-models", Fork.IK_LLAMA_CPP, "ik")
    assert (asked.old, asked.new) == ("ik+mla=3", "ik+mla=2")


def test_a_line_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is started for a line alone."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr("subprocess.Popen.__init__", refuse)
    assert lint(split_command(LINE), list(Fork), linting.Surroundings())
    assert run(LINE).exit_code == 1


def test_the_page_about_pitfalls_of_ones_own_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file is warned of and planned; its commands are those of the page, but for the one that measures."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "add-a-pitfall.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    Path("small-ubatch.toml").write_text(page.split("```toml\n")[1].split("```")[0], encoding="utf-8")
    warned, measured, planned = re.findall(r"^\$ moe-harness (.*)$", page, flags=re.MULTILINE)
    done = CliRunner().invoke(cli, shlex.split(warned))
    assert (done.exit_code, "small-ubatch" in done.output) == (1, True)
    assert "--pitfall" in measured
    done = CliRunner().invoke(cli, shlex.split(planned))
    assert (done.exit_code, done.output.count("pitfall/")) == (0, 4), "both forks at both sizes of prompts"


def test_a_pitfall_of_ones_own_may_not_have_the_name_of_another() -> None:
    file = pitfall_folder() / "rtr-hybrid.toml"
    assert code_of("--pitfall", f"{file}", LINE) == 2
