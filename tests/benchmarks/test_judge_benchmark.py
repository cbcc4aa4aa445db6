"""The benchmark of the judge: its machines, its rivals, its tables."""

import json

import judge
import judge_rare
import judge_traces
import numpy as np
import pytest
from judge_cells import OURS, RIVALS, Ours, Task, machines, measure
from judge_noise import (
    PROFILES,
    STATED,
    Profile,
    adversaries,
    draw_quads,
    insides_of,
    quad_arms,
    quad_sd,
    quads_of,
    repetition_sd,
)
from judge_ours import KNOWN, UNKNOWN, judge_quads
from judge_report import QUICK
from judge_rivals import compare_fail, independent_interval, mann_whitney, paired_interval, welch
from scipy import stats

from harness.domain.spread import Spread
from harness.judging.sequential import Limits, decide

REAL = json.loads((judge_rare.FILE.parent / "rivals.json").read_text(encoding="utf-8"))


def _rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_profiles_scatter_as_stated(profile: Profile) -> None:
    """Repetitions of a session and quads scatter as in the earlier simulation, within five per cent."""
    repetitions, quads = STATED[profile.name]
    assert repetition_sd(profile, _rng()) == pytest.approx(repetitions, rel=0.05)
    assert quad_sd(profile, _rng()) == pytest.approx(quads, rel=0.05)


def test_more_repetitions_narrow_quads_as_measured_before() -> None:
    """With 1 and 5 repetitions instead of 3 quads scatter by 4.3 and 3.25 % where they scatter by 3.4 %."""
    typical, arms = PROFILES[2], quad_arms(10)
    sds = [float(quads_of(typical.log_times(4000, arms, count, _rng())).std()) for count in (1, 3, 5)]
    assert sds[0] / sds[1] == pytest.approx(4.3 / 3.4, rel=0.07)
    assert sds[2] / sds[1] == pytest.approx(3.25 / 3.4, rel=0.07)


def test_drift_cancels_in_a_quad() -> None:
    """A quad of a machine that only gets slower and slower is 0, whichever arm comes first."""
    slow = np.linspace(0, 1, 8)[None, :, None]
    assert quads_of(slow) == pytest.approx(0.0)


def test_a_faster_candidate_has_a_positive_ratio() -> None:
    """The sign: less time of arm 1 is a gain."""
    times = np.where(quad_arms(2) == 1, -0.1, 0.0)[None, :, None]
    assert quads_of(times) == pytest.approx(0.1)
    assert quads_of(np.zeros((1, 8, 1)), effect=0.2) == pytest.approx(0.2)


@pytest.mark.parametrize("name", [source.name for source in (*adversaries(), *judge_traces.h200_traces())])
def test_nothing_changed_on_machines_where_nothing_changed(name: str) -> None:
    """The typical quad of every adversary and recording is 0 within what its scatter allows."""
    quads = draw_quads(machines()[name], 2000, 4, _rng())
    assert abs(np.median(quads)) < 0.1 * np.quantile(abs(quads), 0.9) + 1e-9


def test_compare_fail_agrees_with_the_real_package() -> None:
    """What pytest-benchmark itself said of times near its thresholds, both ways."""
    said = []
    for example in REAL["compare_fail"]:
        before, now = (np.array(example[arm])[None, None] for arm in ("baseline", "candidate"))
        for check, fails in example["fails"].items():
            field, percent = check.removesuffix("%").split(":")
            assert (compare_fail(field, int(percent))(before, now)[0] == -1) == fails, (example, check)
            said.append(fails)
    assert 5 < sum(said) < len(said) - 5


def test_intervals_agree_with_the_real_package() -> None:
    """What benchmatrix's own resampling found; it draws, so that a bound may be a neighbouring value at times."""
    exact = 0
    for example in REAL["intervals"]:
        interval = {"paired": paired_interval, "independent": independent_interval}[example["kind"]]
        found = interval(*(np.array(example[arm])[None] for arm in ("baseline", "candidate")))
        for ours, theirs in zip(found, (example["low"], example["high"]), strict=True):
            assert ours[0] == pytest.approx(theirs, abs=0.5)
            exact += abs(ours[0] - theirs) < 1e-9
    assert exact >= 0.8 * 2 * len(REAL["intervals"])


@pytest.mark.parametrize(("judged", "test"), [(welch, stats.ttest_ind), (mann_whitney, stats.mannwhitneyu)])
def test_textbook_tests_agree_with_scipy_on_single_samples(judged: object, test: object) -> None:
    """Vectorised or one by one, the words are the same."""
    times = np.exp(_rng().normal(0, [[[0.1]], [[0.01]]], (400, 2, 1, 5)))  # unequal, which Welch allows for
    options = {"equal_var": False} if judged is welch else {}
    for words, (baseline, candidate) in zip(judged(times[:, 0], times[:, 1]), times, strict=True):
        p = test(1 / candidate[0], 1 / baseline[0], **options).pvalue
        assert (words != 0) == (p < 0.05)
        assert words in {0, np.sign((1 / candidate).mean() - (1 / baseline).mean())}


def test_the_inside_of_a_quad_is_the_wider_difference_of_an_arm() -> None:
    """ABBA, then BAAB: the outer two are one arm, the inner two the other."""
    times = np.array([0.0, 1.0, 1.3, 0.1, 1.0, 0.0, 0.2, 1.5])[None, :, None]
    assert insides_of(times)[0] == pytest.approx([0.3, 0.5])


def test_sessions_are_judged_as_a_run_would() -> None:
    """Look by look, with no quad more than the rule asked for, the decision and its price are the same."""
    limits = Limits(1e-3, 0.02, 24)
    quads = draw_quads(PROFILES[1], 30, limits.max_quads, _rng(), effect=-0.015)
    insides = abs(_rng().normal(0, 0.01, quads.shape))
    judged = judge_quads(quads, insides, limits, [None] * len(quads))
    for row, apart, word, starts in zip(quads.tolist(), insides.tolist(), judged.words, judged.starts, strict=True):
        decision, used = decide([], limits), 0
        while decision.open:
            used = decision.next_look
            decision = decide(row[:used], limits, None, apart[:used])
        assert {"regressed": -1, "improved": 1}.get(decision.throughput.value, 0) == word
        assert 2 + 4 * decision.next_look == starts


def test_a_contradicted_spread_is_not_used() -> None:
    """As in a run: a first quad that is wide inside decides nothing by a known spread; a steady one does."""
    quads, limits = np.full((2, 6), -0.6), Limits(1e-3, 0.02, 6)
    insides = np.array([[0.5] * 6, [0.01] * 6])
    judged = judge_quads(quads, insides, limits, [Spread("x", 0.01, 20, "told")] * 2)
    assert judged.starts[0] > judged.starts[1] == 6


def test_both_directions_cost_and_find_the_same() -> None:
    """The mirror image of a machine's quads gets the mirror image of the words, at the same price."""
    limits = Limits(1e-3, 0.02, 24)
    quads = draw_quads(PROFILES[2], 200, limits.max_quads, _rng(), effect=-0.03)
    insides = np.zeros_like(quads)
    there, back = (judge_quads(each, insides, limits, [None] * len(quads)) for each in (quads, -quads))
    assert (there.words == -back.words).all()
    assert (there.starts == back.starts).all()


def test_equal_tasks_give_equal_cells() -> None:
    """What a table is made of does not depend on what was measured before it."""
    task = Task("typical", Ours(1e-3, KNOWN), -0.05, 0.03, 50, 1)
    measure(Task("quiet", "mean of five, 5%", 0.0, 0.03, 50, 1))
    assert measure(task) == measure(task)


@pytest.fixture(scope="module")
def made() -> str:
    """The tables as the quick mode makes them."""
    return judge.tables(QUICK, jobs=1)


def test_tables_have_every_row(made: str) -> None:
    """Every profile has every way of judging; every adversary and target has its row."""
    ways = [*(ours.name for ours in OURS), *RIVALS]
    for profile in PROFILES:
        table = made.split(f"### {profile.name.capitalize()}:")[1].split("###", 1)[0]
        assert [way for way in ways if f" {way} |" not in table.replace("**", "")] == []
    missing = [source.name for source in adversaries() if f"| {source.name} |" not in made]
    assert missing == []
    assert made.count("process starts, a loss of half") == made.count("process starts, nothing changed") > 0


def test_page_has_the_rows_that_the_command_makes(made: str) -> None:
    """The tables in the docs are those of this benchmark: same headings, same rows, other figures."""
    page = judge.PAGE.read_text(encoding="utf-8").split(judge.BEGIN)[1].split(judge.END)[0]

    def rows(text: str) -> list[str]:
        return [line.split("|")[1] for line in text.splitlines() if line.startswith("|")]

    def headings(text: str) -> list[str]:
        return [line for line in text.splitlines() if line.startswith("#")]

    assert rows(page)[:50] == rows(made)[:50]
    assert headings(page) == headings(made)
    assert len(rows(page)) == len(rows(made))


def test_tables_go_between_the_markers() -> None:
    """The rest of the page stays as it is."""
    page = f"before\n{judge.BEGIN}\nold\n{judge.END}\nafter\n"
    assert judge.put_into(page, "new") == f"before\n{judge.BEGIN}\n\nnew\n\n{judge.END}\nafter\n"


@pytest.mark.parametrize(("errors", "cases", "bound"), [(0, 100, 0.02951), (3, 1000, 0.00774), (5, 5, 1.0)])
def test_upper_bounds_are_exact(errors: int, cases: int, bound: float) -> None:
    """Clopper and Pearson: at the bound so few errors have a probability of 5 %."""
    found = judge_rare.upper_bound(errors, cases)
    assert found == pytest.approx(bound, abs=5e-5)
    if found < 1:
        assert stats.binom.cdf(errors, cases, found) == pytest.approx(0.05)


def test_counts_of_another_rule_are_called_so(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rare errors are shown with the rule that they were counted for."""
    entry = {"machine": "m", "knowledge": "spread known", "sessions": 10, "quads": 40, "slower": 1, "faster": 2}
    monkeypatch.setattr(judge_rare, "FILE", tmp_path / "rare.json")
    for rule, is_old in ((judge_rare.fingerprint(), False), ("another", True)):
        judge_rare.FILE.write_text(json.dumps({"rule": rule, "counts": [entry]}), encoding="utf-8")
        assert "| m | known | 10 | 40 | 1 | 2 |" in judge_rare.rare()
        assert ("earlier rule" in judge_rare.rare()) is is_old


def test_a_loud_rule_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a rule that is told an alpha of 0.5 raises false alarms that the cell counts."""
    monkeypatch.setattr("judge_cells.Limits", lambda _, margin, quads: Limits(0.5, margin / 4, quads))
    cell = measure(Task("typical", Ours(1e-5, UNKNOWN), 0.0, 0.03, 100, 1))
    assert cell.slower + cell.faster > 2
