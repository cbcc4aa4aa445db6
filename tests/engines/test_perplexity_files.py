"""Files of logits, and the program that writes them.

The writer here follows ``log_softmax`` and ``process_logits`` of both forks' sources: a stand-in, for no wheel brings
the program. Files of real ones of both forks were read by hand: positions and tokens were those of the wheels'
libraries, and ik_llama.cpp's distributions too (8337e4cd, CPU, tiny-moe, 20 positions), to a divergence of 3e-8 nat.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_support import ended, order, path_build, recording
from numpy.typing import NDArray

from harness.domain.build import Build, Fork
from harness.domain.errors import BadInput
from harness.domain.failure import FailureKind
from harness.domain.outputs import Source
from harness.domain.workload import OutputProfile, Prompt, Workload
from harness.engines.embedded.errors import EmbeddedError
from harness.engines.embedded.output_plan import OutputsPlan
from harness.engines.embedded.output_plan import Prompt as PlannedPrompt
from harness.engines.engine import Exit, Order, Report
from harness.engines.flags import complete
from harness.engines.perplexity.logits_file import LogitsFile, LogitsFileError, open_logits
from harness.engines.perplexity.request import parse_request
from harness.engines.perplexity.session import context_for
from harness.engines.perplexity_engine import PerplexityEngine
from harness.ranking import NO_TOKEN, Table, unpack

N_CTX, CHUNKS = 16, 3
Logits = NDArray[np.float32]


def _row(logits: Logits, range_nats: float) -> bytes:
    """As ``log_softmax`` writes it; 16 nats in llama.cpp, 24 in ik_llama.cpp."""
    best = logits.max()
    least = max(logits.min(), best - np.float32(range_nats))
    total = np.log(np.exp((logits - best).astype(np.float64)).sum())
    scale = np.float32((best - least) / np.float32(65535))
    numbers = np.zeros(2 * ((len(logits) + 1) // 2), "<u2")
    if scale:
        numbers[: len(logits)] = np.where(logits > least, np.rint((logits - least) / scale), 0)
    return np.array([scale, least - best - total], "<f4").tobytes() + numbers.tobytes()


def _written(path: Path, n_vocab: int, logits: Logits, *, range_nats: float = 16.0, n_ctx: int = N_CTX) -> Path:
    chunks = len(logits)
    tokens = np.arange(chunks * n_ctx, dtype="<i4") % n_vocab
    head = b"_logits_" + np.array([n_ctx, n_vocab, chunks], "<i4").tobytes() + tokens.tobytes()
    with np.errstate(invalid="ignore"):
        path.write_bytes(head + b"".join(_row(row, range_nats) for chunk in logits for row in chunk))
    return path


def _logits(n_vocab: int, n_ctx: int = N_CTX, spread: float = 3.0) -> Logits:
    rows = n_ctx - 1 - n_ctx // 2
    return np.random.default_rng(7).normal(0, spread, (CHUNKS, rows, n_vocab)).astype(np.float32)


def _tables(found: LogitsFile, chunk: int, top: int, last: int | None = None) -> Table:
    parts = list(found.tables(chunk, top, last))
    return Table(np.concatenate([part.ids for part in parts]), np.concatenate([part.logprobs for part in parts]))


@pytest.mark.parametrize("range_nats", [16.0, 24.0])
@pytest.mark.parametrize(("n_vocab", "n_ctx"), [(100, 16), (101, 17), (33, 64)])
def test_rows_are_the_distributions_that_were_written(
    tmp_path: Path, n_vocab: int, n_ctx: int, range_nats: float
) -> None:
    """Also of odd vocabularies, whose rows are padded, and odd contexts; to a rounding of the range's 65535th."""
    logits = _logits(n_vocab, n_ctx)
    found = open_logits(_written(tmp_path / "f", n_vocab, logits, range_nats=range_nats, n_ctx=n_ctx))
    assert (found.n_ctx, found.n_vocab, found.chunks, found.rows) == (n_ctx, n_vocab, CHUNKS, logits.shape[1])
    for chunk in range(CHUNKS):
        assert found.tokens(chunk) == tuple(np.arange(chunk * n_ctx, (chunk + 1) * n_ctx) % n_vocab)
        table = _tables(found, chunk, 20)
        values = logits[chunk].astype(np.float64)
        truth = values - values.max(axis=1, keepdims=True)
        truth -= np.log(np.exp(truth).sum(axis=1, keepdims=True))
        assert (table.ids[:, 0] == truth.argmax(axis=1)).all()
        assert np.abs(np.take_along_axis(truth, table.ids.astype(np.int64), axis=1) - table.logprobs).max() < 5e-4


def test_the_last_positions_are_the_last(tmp_path: Path) -> None:
    found = open_logits(_written(tmp_path / "f", 100, _logits(100)))
    whole, last = _tables(found, 1, 5), _tables(found, 1, 5, 3)
    assert (last.ids == whole.ids[-3:]).all()
    assert len(_tables(found, 1, 5, 1000).ids) == found.rows


def test_equals_keep_the_order_of_their_ids(tmp_path: Path) -> None:
    """Two files of one model would else differ where numbers are equal."""
    found = open_logits(_written(tmp_path / "f", 40, np.zeros((1, 7, 40), np.float32)))
    assert _tables(found, 0, 5).ids[0].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_row_that_was_not_finite_is_told_and_the_others_stand(tmp_path: Path, bad: float) -> None:
    logits = _logits(50)
    logits[0, 2, 17] = bad
    table = _tables(open_logits(_written(tmp_path / "f", 50, logits)), 0, 4)
    assert (table.ids[2] == NO_TOKEN).all()
    assert np.isnan(table.logprobs[2]).all()
    assert np.isfinite(np.delete(table.logprobs, 2, axis=0)).all()


def test_few_rows_are_held_at_once(tmp_path: Path) -> None:
    """A vocabulary of 150,000: 16 MiB of rows at once, whatever the file has."""
    found = open_logits(_written(tmp_path / "f", 150_000, _logits(150_000, 256)[:1], n_ctx=256))
    assert [len(part.ids) for part in found.tables(0, 20)] == [55, 55, 17]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda data: b"GGUF" + data[4:], "it does not begin with _logits_"),
        (lambda data: data[:12], "the text was shorter than two contexts"),
        (lambda data: data[:-1], "the run did not end well"),
        (lambda data: data + b"x", "bytes, .* are expected"),
        (lambda data: data[:8] + b"\xff\xff\xff\xff" + data[12:], "these make no sense"),
        (lambda _: b"", "it does not begin with _logits_"),
    ],
)
def test_what_is_no_whole_file_is_refused_with_the_reason(tmp_path: Path, spoil: Any, said: str) -> None:
    path = _written(tmp_path / "f", 100, _logits(100))
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(LogitsFileError, match=said):
        open_logits(path)


# ---- the program -----------------------------------------------------------------------------------------------------

FAKE = """#!{python}
import json, os, pathlib, sys, time
sys.path.insert(0, {tests!r})
import numpy as np
from test_perplexity_files import _logits, _written
asked = dict(zip(sys.argv, sys.argv[1:]))
folder = pathlib.Path(sys.argv[0]).resolve().parent
do = (folder / "do").read_text()
if "--help" in sys.argv:
    print("--save-all-logits, --kl-divergence-base FNAME\\n-fit, --fit N\\n-b, -ub, -fa, -ctk, -ctv")
    sys.exit(0)
with (folder / "argv.jsonl").open("a") as log:
    print(json.dumps(sys.argv), file=log)
n_ctx, path = int(asked["-c"]), pathlib.Path(asked["--save-all-logits"])
if do == "die":
    print("ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed: out of memory")
    sys.exit(1)
if do == "hang":
    time.sleep(60)
tokens = os.path.getsize(asked["-f"]) // 20
if tokens < 2 * n_ctx or do == "never enough":
    path.write_bytes(b"_logits_" + n_ctx.to_bytes(4, "little"))
    print("perplexity: the data file you provided tokenizes to only %d tokens" % tokens)
    sys.exit(0)
_written(path, 64, _logits(64, n_ctx)[:1], n_ctx=n_ctx)
if do == "undecoded":
    path.write_bytes(path.read_bytes()[:-100])
"""


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """A build whose folder has a stand-in of the program: tokens of 20 bytes, random logits."""
    program = tmp_path / "llama-perplexity"
    program.write_text(FAKE.format(python=sys.executable, tests=str(Path(__file__).parent)), encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "do").write_text("right")
    return path_build(Fork.IK_LLAMA_CPP, str(tmp_path))


PROFILE = OutputProfile(
    "o", (Prompt("a", "Hello there", "x"), Prompt("none", ""), Prompt("b", "Word", tokens=99)), 6, 20
)


def _order(build: Build, timeout_s: float = 600.0) -> Order:
    wanted = order(build, [], outputs=PROFILE, flags=complete(build, {"b": 96}), threads=3)
    return Order(wanted.arm, wanted.model, (), 1, PROFILE, 3, timeout_s=timeout_s)


def _run(build: Build, timeout_s: float = 600.0) -> Report:
    engine, wanted = PerplexityEngine(build), _order(build, timeout_s)
    assert engine.refusal(wanted) == ""
    command = engine.command(wanted)
    done = subprocess.run(
        command.argv,
        input=command.stdin,
        env={"PATH": os.environ["PATH"], **command.environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return engine.read(wanted, Exit(done.returncode, None, timed_out=False, stdout=done.stdout, stderr=done.stderr))


def _runs_of(build: Build) -> list[dict[str, str]]:
    lines = (Path(build.path) / "argv.jsonl").read_text(encoding="utf-8").splitlines()
    return [dict(pairwise(json.loads(line))) for line in lines]


def test_each_prompt_is_one_run_over_its_text_repeated(build: Build) -> None:
    """Until it is long enough, which the program says; of an empty prompt nothing is known."""
    report = _run(build)
    assert report.failure is None
    found = {output.prompt: output for output in report.outputs}
    assert [output.source for output in report.outputs] == [Source.PERPLEXITY] * 3
    assert (found["none"].prompt_tokens, found["none"].prefill) == ((), None)
    a, b = found["a"], found["b"]
    assert (len(a.prompt_tokens), len(b.prompt_tokens)) == (64, 128)
    assert a.prefill
    assert (a.prefill.positions, a.prefill.top, a.tokens, a.margins) == (20, 20, (), None)
    assert np.isfinite(unpack(a.prefill).logprobs).all()
    runs = _runs_of(build)
    assert [told["-c"] for told in runs] == ["64", "64", "128", "128"], "each was too short at first"
    assert [told["-b"] for told in runs] == ["64", "64", "96", "96"], "never more than the arm's own"
    assert (runs[0]["-t"], runs[0]["--chunks"]) == ("3", "1")
    assert not list(Path(runs[0]["--save-all-logits"]).parent.glob("*")), "files are removed"


@pytest.mark.parametrize(
    ("do", "kind", "slug", "words"),
    [
        ("die", FailureKind.OUT_OF_MEMORY, "E-out-of-memory", "ended with exit code 1 at prompt a: out of memory"),
        ("undecoded", FailureKind.CRASH, "E-logits-file", "at prompt a: it has .* the run did not end well"),
        ("hang", FailureKind.TIMEOUT, "E-answer-timeout", "llama-perplexity was not done in time at prompt a"),
        ("never enough", FailureKind.REFUSED, "E-prompt-empty", "too few tokens however often"),
    ],
)
def test_what_goes_wrong_is_named(build: Build, do: str, kind: FailureKind, slug: str, words: str) -> None:
    (Path(build.path) / "do").write_text(do)
    failure = _run(build, timeout_s=4.0 if do == "hang" else 600.0).failure
    assert failure
    assert (failure.kind, failure.slug) == (kind, slug), failure
    assert re.search(words, failure.message)


def test_other_programs_and_missing_ones_are_told(build: Build, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="E-not-llama-perplexity"):
        PerplexityEngine(build, "--host\n--port\n").locate()
    with pytest.raises(BadInput, match=r"E-perplexity-missing.*target llama-perplexity"):
        PerplexityEngine(path_build(Fork.LLAMA_CPP, str(tmp_path / "no" / "where"))).locate()


@pytest.mark.parametrize(
    "help_text",
    [
        pytest.param(recording(Fork.IK_LLAMA_CPP, "perplexity_help.txt"), id="ik_llama.cpp"),
        pytest.param("--save-all-logits, --kl-divergence-base FNAME\n", id="llama.cpp"),
    ],
)
def test_either_forks_help_tells_that_it_is_one(build: Build, help_text: str) -> None:
    """ik_llama.cpp takes --save-all-logits and does not list it."""
    assert PerplexityEngine(build, help_text).locate()


def test_it_times_nothing_and_needs_prompts(build: Build) -> None:
    engine = PerplexityEngine(build)
    assert "times no pp64" in engine.refusal(order(build, [Workload(64, 0)]))
    assert "no prompt" in engine.refusal(order(build, []))
    report = engine.read(_order(build), ended(""))
    assert report.failure
    assert "answers missing: a, none, b" in report.failure.message


@pytest.mark.parametrize(
    ("prompt", "positions", "context"),
    [
        (PlannedPrompt("p", "x" * 400), 20, 128),
        (PlannedPrompt("p", "x"), 20, 64),
        (PlannedPrompt("p", "x"), 100, 256),
        (PlannedPrompt("p", "x", tokens=1000), 20, 1024),
        (PlannedPrompt("p", "x" * 100_000), 20, 4096),
    ],
)
def test_the_context_is_about_as_long_as_the_prompt(prompt: PlannedPrompt, positions: int, context: int) -> None:
    assert context_for(OutputsPlan((prompt,), 1, positions), prompt) == context


@pytest.mark.parametrize("change", [{"argv": []}, {"deadline_s": 0}, {"batch": 0}, {"outputs": None}, {"alien": 1}])
def test_requests_that_are_not_understood_whole_are_refused(change: dict[str, Any]) -> None:
    outputs = {"prompts": [{"name": "a", "text": "b"}], "n_predict": 1, "positions": 1}
    good = {"argv": ["p"], "deadline_s": 5, "batch": 4, "outputs": outputs}
    assert parse_request(json.dumps(good)).batch == 4
    with pytest.raises(EmbeddedError, match="E-request"):
        parse_request(json.dumps({**good, **change}))
