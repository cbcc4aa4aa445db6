"""Nights put into a history and asked for again, on both databases."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from history_support import ARM, BASE, CONTRAST, MEMORY, NODE, at, cell, commit, day, nights, noise, run, stepped

from harness.domain.errors import BadInput
from harness.domain.words import Status, Throughput
from harness.history.history import History
from harness.history.series import BuildRef, ChangeKind, Evidence

HEAD = BuildRef("head", "abc")


def test_a_step_is_told_with_its_first_bad_night_and_its_builds(address: str) -> None:
    """It is told on the night that makes it clear, with the range of builds, and once."""
    with History(address, make=True) as history:
        done = nights(history, stepped(20, 15, -0.10))
        told = [(number, change) for number, each in enumerate(done) for change in each.changes.get(CONTRAST, ())]
        assert [number for number, _ in told] == [17]
        (series,) = history.series(CONTRAST)
        (change,) = series.changes
        assert (change.last_before, change.first_after, change.first_seen) == (day(14), day(15), day(17))
        assert change.kind is ChangeKind.STEP
        assert change.worse
        assert change.low < 0.90 < change.high
        (builds,) = change.builds
        assert (builds.arm, builds.words) == ("candidate", f"{commit(14)}..{commit(15)}")
        assert [point.night for point in series.points] == [day(night) for night in range(20)]


def test_what_is_worse_is_new_once_and_known_after(address: str) -> None:
    """On the night that tells it first it is new; from then on it is known since; before, there is nothing."""
    with History(address, make=True) as history:
        nights(history, stepped(20, 15, -0.10))
        assert history.regressions(day(16)) == ()
        (first,), (later,) = history.regressions(day(17)), history.regressions()
        assert (first.new, first.since, first.evidence) == (True, day(15), Evidence.CHANGE)
        assert (later.new, later.first_seen, later.since) == (False, day(17), day(15))


def test_what_came_back_is_no_regression_any_more(address: str) -> None:
    """Both changes are told, and the night after has nothing open."""
    values = noise(30)
    values[12:20] -= 0.10
    with History(address, make=True) as history:
        nights(history, values)
        (series,) = history.series(CONTRAST)
        assert [each.worse for each in series.changes] == [True, False]
        assert history.regressions() == ()
        assert [each.new for each in history.regressions(day(19))] == [False]


def test_the_same_run_twice_changes_nothing_and_one_that_grew_adds(address: str) -> None:
    """A case that never finished is filled in later, and never taken back."""
    half = run(1, [cell(CONTRAST, None, HEAD, status=Status.ERROR, slug="E-never-finished")])
    whole = run(1, [cell(CONTRAST, 1.02, HEAD), cell(ARM, 90.0, HEAD, unit="t/s")])
    with History(address, make=True) as history:
        stored = [history.add(each).stored for each in (half, half, whole, whole, half)]
        assert [(each.added, each.changed, each.same) for each in stored] == [
            (1, 0, 0),
            (0, 0, 1),
            (1, 1, 0),
            (0, 0, 2),
            (0, 0, 1),
        ]
        (verdict,) = history.verdicts(CONTRAST)
        assert (verdict.value, verdict.status, verdict.speeds) == (1.02, Status.PASS, (100.0, 102.0))
        assert verdict.builds == (BASE, HEAD)


def test_a_run_can_be_said_to_be_of_another_night(address: str) -> None:
    """A shard that began after midnight belongs to the night before."""
    record = run(2, [cell(CONTRAST, 1.0, HEAD)])
    with History(address, make=True) as history:
        history.add(record)
        assert history.add(at(record, 1)).stored.same == 1
        assert [each.night for each in history.verdicts(CONTRAST)] == [day(1)]
        assert history.last_night() == day(1)


def test_nights_without_a_figure_are_missing_and_not_filled_in(address: str) -> None:
    """Not run, an error, or measured elsewhere: each says which, and a night without any run is no gap."""
    with History(address, make=True) as history:
        nights(history, noise(12), skip=(3, 5, 7))
        history.add(run(3, [cell(CONTRAST, None, HEAD, status=Status.ERROR)]))
        history.add(run(5, [cell(ARM, 90.0, HEAD, unit="t/s")]))
        (series,) = history.series(CONTRAST)
        assert [(each.night, each.why) for each in series.missing] == [(day(3), "error"), (day(5), "not run")]
        assert len(series.points) == 9


def test_what_was_lost_is_a_missing_night_until_it_is_found(address: str) -> None:
    """In whatever order both come, and as often as they do."""
    found = [run(night, [cell(CONTRAST, 1.0, HEAD)]) for night in range(4)]
    nothing = cell(CONTRAST, None, HEAD, status=Status.ERROR, slug="E-case-lost")
    lost = replace(run(2, [nothing]), key="lost-2", lost=True)
    with History(address, make=True) as history:
        for record in (found[1], lost, found[3], lost):
            history.add(record)
        (series,) = history.series(CONTRAST)
        assert [(each.night, each.why) for each in series.missing] == [(day(2), "lost")]
        assert [each.slug for each in history.verdicts(CONTRAST)] == ["", "E-case-lost", ""]
        for record in (found[2], lost):
            history.add(record)
        (series,) = history.series(CONTRAST)
        assert series.missing == ()
        assert [each.slug for each in history.verdicts(CONTRAST)] == ["", "", ""]


def test_a_speed_is_not_followed_from_one_machine_to_another(address: str) -> None:
    """A new driver begins another series and says so; the ratio goes on, since both arms have the new driver."""
    other = replace(NODE, key="node-b")
    with History(address, make=True) as history:
        for night in range(20):
            node, slow = (NODE, 1.0) if night < 10 else (other, 0.7)
            cells = [
                cell(CONTRAST, math.exp(noise(20)[night]), HEAD, node=node),
                cell(ARM, 90.0 * slow * math.exp(noise(20)[night]), HEAD, unit="t/s", node=node),
            ]
            history.add(run(night, cells))
        old, new = history.series(ARM)
        assert (old.began, new.began) == ("", "the machine's driver or kernel is another one")
        assert (len(old.points), len(new.points), old.changes, new.changes) == (10, 10, (), ())
        (ratio,) = history.series(CONTRAST)
        assert len(ratio.points) == 20
        assert history.regressions() == ()


def test_other_flags_under_the_same_id_begin_another_series(address: str) -> None:
    """It says which flag; a flag that only a newer harness knows is none."""
    setups = [{"ub": "512"}, {"ub": "512", "new": "0"}, {"ub": "256", "new": "0"}, {"ub": "256", "new": "1"}]
    with History(address, make=True) as history:
        for night, setup in enumerate(setups):
            history.add(run(night, [cell(CONTRAST, 1.0, HEAD, setup=setup)]))
        found = history.series(CONTRAST)
        assert [len(each.points) for each in found] == [2, 1, 1]
        assert [each.began for each in found] == ["", "ub 512 -> 256", "new 0 -> 1"]


def test_several_runs_of_a_build_on_a_night_are_one_night(address: str) -> None:
    """Ten quick repeats of a slow build on one evening are one night, not the three that a change takes."""
    with History(address, make=True) as history:
        nights(history, noise(15))
        for hour in range(10):
            history.add(run(15, [cell(CONTRAST, 0.90, BuildRef("head", commit(15)))], hour=4 + hour))
        (series,) = history.series(CONTRAST)
        assert len(series.points) == 25
        assert series.changes == ()
        assert {each.outlier for each in series.points[15:]} == {True}


def test_several_builds_on_a_night_are_told_apart(address: str) -> None:
    """The build range is the one within the night."""
    with History(address, make=True) as history:
        nights(history, noise(15))
        history.add(run(15, [cell(CONTRAST, 1.0, BuildRef("head", "good"))], hour=4))
        for night, hour in ((15, 5), (16, 3), (17, 3)):
            history.add(run(night, [cell(CONTRAST, 0.85, BuildRef("head", f"bad{night}"))], hour=hour))
        (change,) = history.series(CONTRAST)[0].changes
        assert change.builds[0].words == "good..bad15"
        assert (change.last_before, change.first_after) == (day(15), day(15))


def test_a_change_without_another_build_says_so(address: str) -> None:
    """Then it is the machine or the model."""
    with History(address, make=True) as history:
        for night, value in enumerate(stepped(20, 10, -0.10)):
            history.add(run(night, [cell(CONTRAST, math.exp(value), HEAD)]))
        (regression,) = history.regressions()
        assert regression.builds == ()
        assert "with the same builds before and after" in regression.reason


def test_more_memory_is_worse(address: str) -> None:
    """Of bytes and of times the smaller figure is the better one."""
    with History(address, make=True) as history:
        nights(history, stepped(20, 10, 0.05, sd=0.0), case=MEMORY, unit="MiB")
        (regression,) = history.regressions()
        assert 1.04 < regression.low <= regression.ratio <= regression.high < 1.06


def test_a_verdict_that_stays_red_is_known_since_its_first_night(address: str) -> None:
    """Undecided nights between do not make it new; a pass does."""
    words = [
        (Status.PASS, Throughput.EQUIVALENT),
        (Status.FAIL, Throughput.REGRESSED),
        (Status.INCONCLUSIVE, Throughput.INCONCLUSIVE),
        (Status.FAIL, Throughput.REGRESSED),
        (Status.PASS, Throughput.EQUIVALENT),
        (Status.FAIL, Throughput.REGRESSED),
    ]
    with History(address, make=True) as history:
        for night, (status, word) in enumerate(words):
            head = BuildRef("head", commit(night))
            history.add(run(night, [cell(CONTRAST, 0.9, head, status=status, word=word)]))
        found = [history.regressions(day(night)) for night in range(6)]
        assert [[(each.new, each.since) for each in night] for night in found] == [
            [],
            [(True, day(1))],
            [],
            [(False, day(1))],
            [],
            [(True, day(5))],
        ]
        assert found[5][0].builds[0].words == f"{commit(4)}..{commit(5)}"
        assert found[5][0].evidence is Evidence.VERDICT


def test_the_order_of_imports_does_not_matter_for_what_is_found(address: str) -> None:
    """Nights that are put in last are where they belong."""
    values = stepped(20, 12, -0.10)
    with History(address, make=True) as history:
        nights(history, values[10:], first=10)
        nights(history, values[:10])
        (series,) = history.series(CONTRAST)
        assert [each.first_after for each in series.changes] == [day(12)]


def test_an_unknown_cell_names_the_nearest(address: str) -> None:
    with History(address, make=True) as history:
        nights(history, noise(2))
        with pytest.raises(BadInput, match=r"E-unknown-cell.*did you mean 'throughput/tiny/base..head/pp64@any'"):
            history.series(CONTRAST.replace("pp64", "pp46"))


def test_a_report_gets_the_series_of_its_cells(address: str) -> None:
    """Those that the history does not know have none."""
    with History(address, make=True) as history:
        nights(history, noise(3))
        found = history.series_of([CONTRAST, "throughput/none@any"])
        assert [len(each) for each in found.values()] == [1, 0]
