"""What a page says of a journal, told without a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import subprocess
import sys
import time
import zlib
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from judging_support import BASELINE, CANDIDATE, NODE, PP, arm, arms_runs, contrast, floor, memory, run
from page_support import RUNS, job_of, journal_of, large_journal, small_journal

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.failure import Failure, FailureKind
from harness.domain.flags import Flags
from harness.domain.load_facts import Buffer, LoadFacts
from harness.domain.verdict import Effect, Estimate, Verdict
from harness.domain.words import Status, Throughput
from harness.domain.workload import Metric, ProfileWorkload, PromptProfile
from harness.judging.voids import voided_blocks
from harness.pages.embedding import inline_json, packed
from harness.pages.memory import memory_data
from harness.pages.page import packed_plotly, plotly_script, report_page
from harness.pages.rows import row_data, what_runs
from harness.pages.shown import shown_cases
from harness.pages.texts import Texts
from harness.pages.traces import processes_data, trace_data
from harness.reporting.state import JobTry


class Markup(HTMLParser):
    """The elements of a page, with the texts of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self._inside = False
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))
        self._inside = tag == "script"
        if self._inside:
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        del tag
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)


@pytest.fixture(scope="module")
def markup() -> Markup:
    return Markup(report_page([small_journal()]))


def test_the_page_asks_for_nothing(markup: Markup) -> None:
    """No address but the empty icon, and a policy that would forbid any other."""
    addresses = [each for _, found in markup.attributes for name, each in found.items() if name in ("src", "href")]
    assert addresses == ["data:,"]
    policy = next(found["content"] for _, found in markup.attributes if found.get("http-equiv"))
    assert policy
    assert policy.startswith("default-src 'none'; script-src 'sha256-")


def test_only_its_own_scripts_may_run(markup: Markup) -> None:
    policy = next(str(found["content"]) for _, found in markup.attributes if found.get("http-equiv"))
    allowed = re.findall(r"'(sha256-[^']+)'", policy)
    run_scripts = [text for found, text in markup.scripts if "type" not in found]
    sources = [
        f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
        for text in (*run_scripts, plotly_script())
    ]
    assert len(run_scripts) == 1
    assert allowed == sources
    assert "unsafe" not in policy.partition("style-src")[0]


def test_the_plotting_library_comes_out_as_it_went_in() -> None:
    assert zlib.decompress(base64.b64decode(packed_plotly())).decode() == plotly_script()
    assert len(packed_plotly()) < len(plotly_script()) / 2


def test_embedded_data_cannot_end_its_element() -> None:
    text = inline_json({"</script>": ["<!--", "]]>", "&lt;", "\u2028", float("nan"), "\x1b[2J\x00\u202ex"]})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"</script>": ["<!--", "]]>", "&lt;", "\u2028", None, "x"]}
    assert zlib.decompress(base64.b64decode(packed("é"))).decode() == "é"


def test_the_worst_come_first() -> None:
    """Statuses in their order; among failures those that are no matter of degree, then the largest losses."""
    cases = [contrast(), floor(50), replace(floor(None), arms=(CANDIDATE,)), memory(1)]
    slower = Verdict(cases[0].id, Status.FAIL, "", estimate=Estimate(0.8, 0.7, 0.9, 3, "ratio"))
    verdicts = {cases[0].id: slower, cases[3].id: Verdict(cases[3].id, Status.FAIL, "")}
    state = journal_of(cases, verdicts)
    order = [shown.verdict.case for shown in shown_cases([state])]
    assert order[:2] == [cases[3].id, cases[0].id]
    assert len(shown_cases([state, state])) == 2 * len(cases)
    assert {shown.journal for shown in shown_cases([state, state])} == {0, 1}


def test_arms_are_told_by_what_differs() -> None:
    ik = Build("ik", Fork.IK_LLAMA_CPP, wheel="ik-llama-cpp-python")
    other = Build("mainline", Fork.LLAMA_CPP, wheel="xllamacpp")
    flags = Flags.of({"fa": 1, "rtr": 0})
    assert what_runs((arm(0), arm(1))) == "ik, rtr 0 → 1"
    only_ik = Arm(ik, BASELINE.model, flags, shown=("fa", "rtr"))
    assert what_runs((Arm(other, BASELINE.model, flags, shown=("fa",)), only_ik)) == "mainline → ik, fa=1 rtr=0"
    assert what_runs((only_ik,)) == "ik fa=1 rtr=0"


def test_pp_tg_and_first_token_are_apart() -> None:
    profile = PromptProfile("chat", "Hi", 8)
    found = {
        metric: row_data(shown_cases([journal_of([contrast(workload=ProfileWorkload(profile, metric))])])[0])["panel"]  # type: ignore[arg-type]
        for metric in (Metric.COLD, Metric.TTFT, Metric.PREFILL, Metric.DECODE)
    }
    assert found == {Metric.COLD: "first", Metric.TTFT: "first", Metric.PREFILL: "pp", Metric.DECODE: "tg"}


def test_an_attribution_is_drawn_by_its_whole_change() -> None:
    case = contrast()
    whole = Effect("both", None, Estimate(1.2, 1.1, 1.3, 4, "ratio"))
    first = Effect("build", Throughput.IMPROVED, Estimate(1.5, 1.4, 1.6, 4, "ratio"))
    verdict = Verdict(case.id, Status.PASS, "", effects=(first, whole))
    (shown,) = shown_cases([journal_of([case], {case.id: verdict})])
    row = row_data(shown)
    assert (row["ratio"], row["figure"], row["margin"]) == ([1.2, 1.1, 1.3], "+20.0 %", 0.05)


def test_a_single_arm_has_a_speed_and_no_change() -> None:
    (shown,) = shown_cases([journal_of([floor(50)])])
    row = row_data(shown)
    assert row["speeds"].endswith(" t/s")
    assert "figure" not in row
    assert " .. " in row["interval"]


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -1.0])
def test_what_is_no_ratio_is_not_drawn(value: float) -> None:
    case = contrast()
    verdict = Verdict(case.id, Status.PASS, "", estimate=Estimate(value, 0.5, 1.5, 3, "ratio"))
    (shown,) = shown_cases([journal_of([case], {case.id: verdict})])
    assert "ratio" not in row_data(shown)


def test_every_process_says_why_it_does_not_count() -> None:
    """Burn-in, a failure, a void quad, a quad that lacks a process."""
    failure = Failure(FailureKind.CRASH, "E-crash: gone", "E-crash")
    runs = (
        *(run(index, -1, 90) for index in (0, 1)),
        *arms_runs([100, 101], [80, 81]),
        run(0, 2, 100, niceness=5),
        *(run(*place, 80) for place in ((1, 2), (1, 3), (0, 3))),
        run(0, 4, 100),
        replace(run(1, 4, None), failure=failure),
    )
    job, void = job_of(), voided_blocks(runs)
    why = [each["why"] for each in processes_data(job, runs, void)]
    assert why == ["burn-in"] * 2 + [""] * 4 + ["void: niceness 5"] * 4 + ["", "E-crash: gone"]
    trace = trace_data(job, runs, PP, void)
    assert trace["unit"] == "t/s"
    assert [each["half"] for each in trace["processes"]] == [False] * 10 + [True, False]
    assert trace["processes"][2]["kept"] == [100.0] * 3
    assert trace["processes"][2]["warmup"] == [50.0] * 4
    assert [each["unit"] for each in processes_data(job, runs, void)] == [-1, -1, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2]


def test_memory_stands_beside_its_estimate() -> None:
    load = LoadFacts(
        buffers=(Buffer("weights", "CPU_Mapped", 20.0), Buffer("weights", "CUDA0", 30.0), Buffer("state", "CPU", 1.0)),
        planned=(Buffer("weights", "RAM", 21.0), Buffer("KV", "RAM", 2.0), Buffer("weights", "GPU 0", 29.0)),
    )
    rows = memory_data([replace(run(0, -1, 100), load=load), run(0, 0, 100, rss_mib=150)])
    assert rows == [
        ["RAM", "weights", "21.0", "20.0"],
        ["RAM", "KV", "2.0", "1.0"],
        ["RAM", "resident peak", "23.0", "150.0"],
        ["GPU 0", "weights", "29.0", "30.0"],
    ]


def test_long_texts_are_kept_once_and_cut() -> None:
    texts = Texts()
    numbers = [texts.number("x" * 100_000), texts.number("x" * 100_000), texts.number("")]
    assert numbers == [1, 1, 0]
    listed = texts.listed()
    assert len(listed) == 2
    assert len(listed[1]) <= 16 * 1024
    assert "left out, the journal has them" in listed[1]


def test_a_case_that_was_never_tried_has_its_row() -> None:
    state = replace(journal_of([contrast()]), jobs={}, finished=False)
    page = report_page([state])
    assert "what never finished is an error" in page
    assert '"E-never-finished"' in page


def test_a_job_whose_description_is_lost_has_its_row() -> None:
    lost = JobTry(1, None, "2026-12-01T10:00:00+00:00", "box", NODE, RUNS, finished=True)
    state = journal_of([contrast()])
    state = replace(state, jobs=dict.fromkeys(state.jobs, lost))
    assert "the line that describes it is lost" in report_page([state])


def test_two_journals_are_one_page() -> None:
    page = report_page([small_journal(), replace(small_journal(), path=ANY_PATH)])
    assert '"journals":["moe-reports/journal.jsonl","other/journal.jsonl"]' in page


ANY_PATH = small_journal().path.parents[1] / "other" / "journal.jsonl"


def test_time_and_size_grow_with_the_cases_and_no_faster() -> None:
    found = {}
    for count in (100, 400):
        state = large_journal(count)
        state.final_verdicts()
        begin = time.process_time()
        page = report_page([state])
        found[count] = (time.process_time() - begin, len(page) - len(packed_plotly()))
    assert found[400][0] < 8 * found[100][0]
    assert found[400][1] < 4.2 * found[100][1]
    assert found[400][1] / 400 < 8 * 1024


def test_a_run_loads_no_template_engine_before_it_writes() -> None:
    code = "import sys, harness.matrix_plugin; print(*{'jinja2', 'plotly'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
