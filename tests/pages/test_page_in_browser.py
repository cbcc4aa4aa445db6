"""The page in a real Chromium without a network: filters, keyboard, thousands of cases, text that wants to be alive."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlencode

import pytest
from judging_support import ANY, BASELINE, BUILD, MODEL, NODE, PP, arms_runs, contrast, floor, run
from page_support import STATUSES, job_of, journal_of, large_journal, nights_of, small_journal
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

from harness.domain.arm import Arm
from harness.domain.case import Case, ContrastCheck, Expectation
from harness.domain.failure import Failure, FailureKind
from harness.domain.load_facts import Buffer, LoadFacts, Notice
from harness.domain.node import Gpu
from harness.domain.words import Equivalence, Kind, Status
from harness.pages.page import report_page
from harness.reporting.state import JobTry, JournalState, Problem

MANY, FEW = 2000, 200
EVIL = (
    "</script><script>window.alive=1</script><img src=x onerror='window.alive=1'><svg onload='window.alive=1'>"
    "<iframe src='javascript:parent.alive=1'></iframe><a href='javascript:window.alive=1'>go</a>{{ 6 * 7 }}%{x}"
    "<style>body{display:none}</style>"
    "<!-- \x1b[31mred\x1b[0m \x1b]8;;http://example.invalid\x07link\x1b]8;;\x07 \x00\u202eabc"
)
LABEL = "<b>x</b><a href='https://example.invalid'>go</a>"
"""Short enough for a label of a plot, which is cut."""
SHOWN = "<img src=x onerror='window.alive=1'>"


class Page:
    """A page as a user has it, and what its browser has to say of it."""

    def __init__(self, browser: Chrome, path: Path) -> None:
        self.browser = browser
        self.address = path.as_uri()

    def open(self, state: str = "") -> None:
        self.browser.get("about:blank")
        self.browser.get(self.address + (f"#{state}" if state else ""))

    def run(self, script: str, *arguments: object) -> Any:
        return self.browser.execute_script(script, *arguments)

    def all(self, css: str) -> list[Any]:
        return self.browser.find_elements(By.CSS_SELECTOR, css)

    def one(self, css: str) -> Any:
        return self.browser.find_element(By.CSS_SELECTOR, css)

    def status(self, word: str) -> Any:
        return self.one(f"[data-status='{word}']")

    @property
    def said(self) -> str:
        return str(self.one("#shown").text)

    @property
    def focused(self) -> Any:
        return self.browser.switch_to.active_element

    def press(self, *keys: str) -> None:
        ActionChains(self.browser).send_keys(*keys).perform()

    def wait_for_plots(self, count: int = 1) -> None:
        WebDriverWait(self.browser, 90).until(lambda _: len(self.all(".plot .main-svg .xtick")) >= count)


def requests(browser: Chrome) -> list[str]:
    """Addresses that were asked for since the last question, those inside the page's own file left out."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    return [url for url in sent if not url.startswith(("data:", "about:"))]


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Pages by name, each written once."""
    makers: dict[str, Callable[[], JournalState]] = {
        "small": small_journal,
        "few": lambda: large_journal(FEW),
        "many": lambda: large_journal(MANY),
        "planted": planted_journal,
        "nights": small_journal,
    }
    folder = tmp_path_factory.mktemp("pages")

    def path(name: str) -> Path:
        file = folder / f"{name}.html"
        if not file.exists():
            nights = {contrast().id: nights_of(contrast().id)} if name == "nights" else {}
            file.write_text(report_page([makers[name]()], nights), encoding="utf-8")
        return file

    return path


@pytest.fixture
def page_of(chromium: Chrome, pages: Callable[[str], Path]) -> Iterator[Callable[[str], Page]]:
    """Opens a page; whatever the test did, its console stays empty and nothing is asked of any network."""
    opened: list[Page] = []

    def page(name: str) -> Page:
        chromium.get_log("performance")
        opened.append(Page(chromium, pages(name)))
        opened[-1].open()
        return opened[-1]

    yield page
    assert [entry["message"] for entry in chromium.get_log("browser")] == []
    own = {each.address for each in opened}
    assert [url for url in requests(chromium) if url.partition("#")[0] not in own] == []


def test_the_overview_has_every_case_worst_first(page_of: Callable[[str], Page]) -> None:
    page = page_of("small")
    assert page.said == "3 cases"
    words = [each.text for each in page.all("tr.row td:first-child")]
    assert words == ["fail regressed", "pass", "pass measured"]
    regressed = page.one("tr.row").text
    assert "ik, rtr 0 → 1" in regressed
    assert "-20.0 %" in regressed
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")


def test_filters_narrow_and_are_in_the_address(page_of: Callable[[str], Page]) -> None:
    page = page_of("few")
    page.status("fail").click()
    fails = [status for number, status in enumerate(STATUSES * FEW) if number < FEW].count(Status.FAIL)
    assert page.said == f"{fails} of {FEW} cases"
    assert page.status("fail").get_attribute("aria-pressed") == "true"
    Select(page.one("[data-choice=workload]")).select_by_value("pp64")
    page.one("#text").send_keys("amb 1")
    narrowed = page.said
    assert len(page.all("tr.row")) == int(narrowed.split()[0]) > 0
    address = page.run("return location.hash")
    assert address == "#status=fail&workload=pp64&q=amb+1"

    page.open(address[1:])
    assert page.said == narrowed
    page.one("#reset").click()
    assert page.said == f"{FEW} cases"
    page.one("#text").send_keys("no such case")
    assert page.said == f"0 of {FEW} cases"
    assert "No case passes" in page.one("#table-view").text


def test_an_opened_case_tells_all_of_its_job(page_of: Callable[[str], Page]) -> None:
    page = page_of("small")
    page.one("button.case").click()
    page.wait_for_plots()
    detail = page.one("tr.opened").text
    for told in (
        "candidate not slower than the baseline",
        "Process starts in order, pp512",
        "Test CPU 9000",
        "niceness",
    ):
        assert told in detail
    assert "moe-harness replay " in detail
    assert "quad 1" in detail
    page.one("tr.opened details summary").click()
    assert [
        row.text.split()[-1]
        for row in page.all("tr.opened section table")[0].find_elements(By.CSS_SELECTOR, "tbody tr")
    ]

    case = page.one("tr.row").get_attribute("data-case")
    page.open(page.run("return location.hash")[1:])
    assert [each.get_attribute("data-case") for each in page.all("tr.row.open")] == [case]


def test_nights_are_plotted_where_a_history_has_them(page_of: Callable[[str], Page]) -> None:
    page = page_of("nights")
    page.one("button.case").click()
    page.wait_for_plots(2)
    detail = page.one("tr.opened").text
    assert "-10.0 % [-11.0 % .. -9.0 %], last night before 2026-11-20, first after 2026-11-21" in detail
    assert "candidate aaaaaaa..bbbbbbb" in detail
    figures = page.run("return document.querySelector('.plot > div').data.map((trace) => trace.x.length)")
    assert figures == [29, 3, 6, 1]  # points, the interval that is assumed, levels, the missing night
    dashes = page.run("return document.querySelector('.plot > div').data.map((trace) => trace.line?.dash ?? '')")
    assert dashes[1] == "dot"
    bars = page.run("return document.querySelector('.plot > div').data[0].error_y.array")
    assert [at for at, bar in enumerate(bars) if not bar] == [1]


def test_ratios_are_plotted_by_kind_of_workload(page_of: Callable[[str], Page]) -> None:
    page = page_of("few")
    page.one("[data-view=forest]").click()
    page.wait_for_plots(2)
    assert [each.text for each in page.all("#forest-view h2")] == ["Prompt processing (100)", "Token generation (100)"]
    plots = "[...document.querySelectorAll('#forest-view .plot > div')]"
    dashes = page.run(f"return {plots}.map((plot) => plot.data.map((trace) => trace.line?.dash))")
    assert dashes == [["solid", "dot", None]] * 2
    assert page.run(f"return {plots}.map((plot) => plot.layout.xaxis.type)") == ["log", "log"]


def test_everything_is_reached_and_done_by_keyboard(page_of: Callable[[str], Page]) -> None:
    page = page_of("few")
    page.press(Keys.TAB, Keys.TAB)
    assert page.run("return document.activeElement.matches(':focus-visible')")
    outline = page.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    for _ in range(20):
        if page.focused.get_attribute("data-status") == "error":
            break
        page.press(Keys.TAB)
    page.press(Keys.SPACE)
    assert page.run("return location.hash") == "#status=error"
    page.press("/")
    assert page.focused.get_attribute("id") == "text"
    for _ in range(20):
        page.press(Keys.TAB)
        if page.focused.get_attribute("class") == "case":
            break
    page.press(Keys.ENTER)
    assert page.focused.get_attribute("aria-expanded") == "true"
    assert len(page.all("tr.opened")) == 1
    first = page.focused.text
    page.press(Keys.ARROW_DOWN)
    assert page.focused.get_attribute("class") == "case"
    assert page.focused.text != first
    page.press(Keys.ARROW_UP, Keys.ENTER)
    assert page.all("tr.opened") == []


def test_a_screen_reader_is_told_what_everything_is(page_of: Callable[[str], Page]) -> None:
    page = page_of("small")
    page.one("button.case").click()
    page.wait_for_plots()
    nodes = page.browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named: dict[str, list[str]] = {}
    for node in nodes:
        if not node.get("ignored"):
            named.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    for role in ("button", "combobox", "searchbox", "table", "image", "region", "search"):
        assert named[role], role
        assert all(named[role]), role
    assert "3 cases" in named["status"] or page.one("output").get_attribute("aria-live") == "polite"


def test_thousands_of_cases_cost_no_more_to_filter_than_hundreds(page_of: Callable[[str], Page]) -> None:
    """Rows are drawn so many at a time, and details once a case is opened."""
    found = {}
    for name in ("few", "many"):
        page = page_of(name)
        times = page.run(
            """const times = [];
            for (let round = 0; round < 5; round++) for (const text of ["amb", "rtr number 1"]) {
              const field = document.getElementById("text");
              const begin = performance.now();
              field.value = text;
              field.dispatchEvent(new Event("input"));
              document.body.offsetHeight;
              times.push(performance.now() - begin);
            }
            return times;"""
        )
        elements = page.run("return document.querySelectorAll('*').length")
        found[name] = (median(times), elements)
    assert found["many"][1] < 1.2 * found["few"][1]
    assert found["many"][0] < 5 * found["few"][0]


def test_more_cases_are_asked_for_by_button(page_of: Callable[[str], Page]) -> None:
    page = page_of("many")
    assert len(page.all("tr.row")) == 100
    page.one(".more button").click()
    assert len(page.all("tr.row")) == 200
    assert page.run("return [...document.querySelectorAll('button.case')].indexOf(document.activeElement)") == 100
    far = page.run("return JSON.parse(document.getElementById('data').textContent).cases[400].id")
    page.open(urlencode({"case": far}))
    assert page.one("tr.row.open").get_attribute("data-case") == far


def test_what_engines_wrote_is_never_alive(page_of: Callable[[str], Page]) -> None:
    """Markup, script, addresses, terminal escapes and direction marks, in whatever a journal has words for."""
    page = page_of("planted")
    for button in page.all("button.case"):
        button.click()
    page.wait_for_plots()
    for summary in page.all("summary"):
        summary.click()
    text = page.run("return document.body.textContent")
    page.one("[data-view=forest]").click()
    page.wait_for_plots()
    page.run("Plotly.Fx.hover(document.querySelector('#forest-view .plot > div'), [{curveNumber: 2, pointNumber: 0}])")
    WebDriverWait(page.browser, 90).until(lambda _: page.all(".hoverlayer text"))
    assert page.run("return window.alive ?? null") is None
    assert page.all("img, iframe, a, b, object, embed, svg[onload]") == []
    assert len(page.all("script")) == 4
    assert len(page.all("body > style, main style")) == 0
    assert text.count(SHOWN) > 20
    assert "42" not in page.one("h1").text
    everything = text + page.run("return document.querySelector('#forest-view').textContent")
    assert not {char for char in everything if char in "\x00\x1b\u202e\x07"}


def test_colours_follow_the_system(page_of: Callable[[str], Page]) -> None:
    page = page_of("small")
    found = {}
    for scheme in ("dark", "light"):
        page.browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        found[scheme] = page.run(
            "const style = getComputedStyle(document.body); return [style.backgroundColor, style.color].map("
            "(colour) => colour.match(/\\d+/g).slice(0, 3).reduce((sum, each) => sum + Number(each), 0))"
        )
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert found["dark"][1] - found["dark"][0] > 450
    assert found["light"][0] - found["light"][1] > 450


def test_a_narrow_window_needs_no_scrolling_sideways(page_of: Callable[[str], Page]) -> None:
    page = page_of("small")
    metrics = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        page.open()
        page.one("button.case").click()
        page.wait_for_plots()
        assert page.run("return document.documentElement.scrollWidth") <= 390
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def planted_journal() -> JournalState:
    """Everything that is a text says EVIL."""
    build, model = replace(BUILD, name=LABEL), replace(MODEL, name=EVIL)
    arms = tuple(
        Arm(build, model, replace(each.flags, items=(("rtr", number), (EVIL, EVIL))), ((EVIL, EVIL),), (EVIL, "rtr"))
        for number, each in enumerate((BASELINE, BASELINE))
    )
    workload = PP
    case = Case(
        Kind.THROUGHPUT, arms, workload, replace(ANY, name=EVIL), ContrastCheck(EVIL, EVIL, Expectation.NO_REGRESSION)
    )
    node = replace(NODE, cpu_model=EVIL, kernel=EVIL, governor=EVIL, gpus=(Gpu(EVIL, 2**34, EVIL, EVIL, arch=EVIL),))
    load = LoadFacts(
        buffers=(Buffer(EVIL, EVIL, 1.0),),
        settings=((EVIL, EVIL),),
        notices=(Notice(EVIL, 1),),
        planned=(Buffer(EVIL, EVIL, 2.0),),
    )
    failure = Failure(FailureKind.CRASH, EVIL, EVIL, EVIL)
    runs = [
        replace(
            each, engine={EVIL: EVIL}, load=load, conditions=replace(each.conditions, governor=EVIL, gpu_telemetry=EVIL)
        )
        for each in arms_runs([100, 101, 99, 100] * 2, [80, 81, 79, 80] * 2)
    ]
    job = replace(job_of(arms), node_class=replace(ANY, name=EVIL))
    whole = journal_of([case], {}, [JobTry(1, job, EVIL, EVIL, node, tuple(runs), finished=True)])
    crashed = replace(run(1, 4, None), failure=failure)
    tried = JobTry(2, job, EVIL, EVIL, node, (*runs, crashed), failure=failure, finished=True)
    (judged,) = whole.final_verdicts()
    verdict = replace(
        judged,
        status=Status.FAIL,
        equivalence=Equivalence.BROKEN,
        **dict.fromkeys(("reason", "detail", "scope", "load", "void", "expected", "slug", "node", "contrast"), EVIL),
    )
    again = replace(floor(50), node_class=replace(ANY, name=EVIL))
    state = journal_of([case, again, contrast()], {case.id: verdict}, [tried], name=EVIL)
    return replace(
        state, problems=(Problem(3, EVIL),), started=EVIL, path=Path("j") / EVIL.replace("/", "_").replace("\x00", "")
    )
