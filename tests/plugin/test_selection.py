"""``-m -k -x --maxfail --lf --collect-only --pdb`` and our own selection work as anybody expects, on the real wheel."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from mini_matrix import CASES

from harness.domain.words import Status
from harness.reporting.replay import read_journal

LOCAL = ("-m", "moe", "--moe-executor=local", "-p", "no:cacheprovider")


def planned(project: pytest.Pytester) -> list[str]:
    return list(read_journal(project.path / "moe-reports").planned)


def process_starts(project: pytest.Pytester) -> int:
    state = read_journal(project.path / "moe-reports")
    return sum(len(job.runs) for job in state.jobs.values())


def ids(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line.startswith("moe::test_case[")]


def test_the_whole_matrix_runs_in_one_job(project: pytest.Pytester) -> None:
    """Every case ends in one outcome; ten process starts measure all nine cases."""
    result = project.runpytest(*LOCAL)
    outcomes = result.parseoutcomes()
    assert sum(outcomes.get(word, 0) for word in ("passed", "skipped")) == CASES
    assert outcomes.get("failed", 0) == outcomes.get("errors", 0) == 0
    assert len(planned(project)) == CASES
    assert process_starts(project) == 10
    assert (project.path / "moe-reports" / "junit.xml").is_file()


def test_without_the_marker_nothing_of_the_matrix_is_collected(project: pytest.Pytester) -> None:
    """A bare pytest neither plans nor collects the matrix."""
    project.makepyfile("def test_own(): pass")
    result = project.runpytest()
    result.assert_outcomes(passed=1)
    assert not (project.path / "moe-reports").exists()


def test_own_tests_run_beside_the_matrix(project: pytest.Pytester) -> None:
    """``--matrix`` beside own tests runs both."""
    project.makepyfile("def test_own(): pass")
    result = project.runpytest("--matrix", "local", "--moe-executor=local", "--moe-select=memory/*")
    result.assert_outcomes(passed=3)


def test_collect_only_lists_cases_and_starts_nothing(project: pytest.Pytester) -> None:
    """Ids are the contract's; no journal, no process."""
    result = project.runpytest(*LOCAL, "--collect-only", "-q")
    assert len(ids(result.outlines)) == CASES
    result.stdout.fnmatch_lines(["*test_case[[]throughput/tiny/ik+fa=0..ik+fa=1/pp32@any]"])
    assert not (project.path / "moe-reports").exists()


@pytest.mark.parametrize(("expression", "count"), [("memory", 2), ("equivalence", 1), ("moe and throughput", 6)])
def test_a_kind_is_a_marker(project: pytest.Pytester, expression: str, count: int) -> None:
    """``-m KIND`` collects the matrix and keeps that kind."""
    result = project.runpytest("-m", expression, "--collect-only", "-q")
    assert len(ids(result.outlines)) == count


def test_k_runs_fewer_processes_and_keeps_the_output_check(project: pytest.Pytester) -> None:
    """``-k`` leaves one contrast: its job runs with the output check that it depends on, the rest is not measured."""
    project.runpytest(*LOCAL, "-k", "..ik and tg4")
    assert planned(project) == ["throughput/tiny/ik+fa=0..ik+fa=1/tg4@any"]
    state = read_journal(project.path / "moe-reports")
    (job,) = state.jobs.values()
    assert {samples.workload for run in job.runs for samples in run.samples} == {"tg4"}
    assert sum(bool(run.outputs) for run in job.runs) == 2


def test_moe_select_prunes_before_parametrizing(project: pytest.Pytester) -> None:
    """What is not selected is not even collected."""
    result = project.runpytest(*LOCAL, "--moe-select=memory/*fa=1*", "--collect-only", "-q")
    assert len(ids(result.outlines)) == 1
    assert "deselected" not in result.stdout.str()


def test_a_selection_of_nothing_is_an_error(project: pytest.Pytester) -> None:
    """A typing error in a selection must not end as a green night."""
    result = project.runpytest(*LOCAL, "--moe-select=thruput/*")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*E-nothing-selected*thruput*"])


def test_x_stops_after_the_first_failure_and_accounts_for_the_rest(project: pytest.Pytester) -> None:
    """A floor that nothing meets: one failure with ``-x``; the journal has every planned case, none passed silently."""
    matrix = project.path / "matrices" / "local.toml"
    floor = '[[checks]]\nkind = "floor"\ntokens_per_second = 1e5\n'
    matrix.write_text(matrix.read_text().replace("[policy]", floor + "[policy]"))
    result = project.runpytest(*LOCAL, "-x", "-k", "throughput and not ..ik")
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(["*stopping after 1 failures*"])
    state = read_journal(project.path / "moe-reports")
    assert not state.finished
    verdicts = state.final_verdicts()
    assert len(verdicts) == 4
    assert all(verdict.status is not Status.PASS for verdict in verdicts)


def test_maxfail_counts_failures(project: pytest.Pytester) -> None:
    """``--maxfail=2`` stops after two."""
    matrix = project.path / "matrices" / "local.toml"
    floor = '[[checks]]\nkind = "floor"\ntokens_per_second = 1e5\n'
    matrix.write_text(matrix.read_text().replace("[policy]", floor + "[policy]"))
    result = project.runpytest(*LOCAL, "--maxfail=2", "-k", "throughput and not ..ik")
    assert result.parseoutcomes()["failed"] == 2


def test_lf_runs_the_failed_cases_again(project: pytest.Pytester) -> None:
    """``--lf`` after a failed floor runs those cases alone."""
    matrix = project.path / "matrices" / "local.toml"
    floor = '[[checks]]\nkind = "floor"\ntokens_per_second = 1e5\nworkloads = ["pp32"]\n'
    matrix.write_text(matrix.read_text().replace("[policy]", floor + "[policy]"))
    arguments = ("-m", "moe", "--moe-executor=local", "-k", "throughput and not ..ik")
    first = project.runpytest(*arguments)
    assert first.parseoutcomes() == {"passed": 2, "failed": 2, "deselected": 5}
    again = project.runpytest(*arguments, "--lf")
    assert again.parseoutcomes()["failed"] == 2
    assert again.parseoutcomes().get("passed", 0) == 0
    assert len(planned(project)) == 2


def test_an_earlier_journal_is_kept(project: pytest.Pytester) -> None:
    """Two runs never share a journal, and neither is lost."""
    for _ in range(2):
        project.runpytest(*LOCAL, "--moe-select=memory/*fa=1*")
    assert len(list((project.path / "moe-reports").glob("journal*.jsonl"))) == 2


def test_every_case_of_an_unplaceable_matrix_is_skipped_with_its_reason(
    project: pytest.Pytester, tiny_model: Path
) -> None:
    """No node of the class: not applicable, said with both figures, nothing started, not silently gone."""
    matrix = project.path / "matrices" / "local.toml"
    matrix.write_text(matrix.read_text() + "\n[node_classes.huge]\nmin_ram_gib = 1000000\n")
    result = project.runpytest(*LOCAL, "-rs")
    assert result.parseoutcomes() == {"skipped": CASES}
    result.stdout.fnmatch_lines(["*not_applicable*1e+06 GiB*"])


def test_native_junit_has_every_case(project: pytest.Pytester) -> None:
    """The native ``--junitxml`` works too, with measured durations."""
    project.runpytest(*LOCAL, "--moe-select=memory/*", "--junitxml=native.xml")
    text = (project.path / "native.xml").read_text()
    assert 'value="pass"' in text
    measured = sorted(verdict.seconds for verdict in read_journal(project.path / "moe-reports").final_verdicts())
    assert sorted(float(time) for time in re.findall(r'<testcase [^>]*time="([0-9.]+)"', text)) == [
        pytest.approx(seconds, abs=0.05) for seconds in measured
    ]
    assert all(seconds > 0.1 for seconds in measured)


def test_quiet_in_ci(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """No control sequences where nobody watches."""
    monkeypatch.setenv("CI", "true")
    result = project.runpytest(*LOCAL, "--moe-select=memory/*fa=1*", "--color=no")
    assert "\x1b" not in result.stdout.str()


def test_pdb_opens_on_a_failed_case(project: pytest.Pytester) -> None:
    """``--pdb`` stops at the failed check."""
    pexpect = pytest.importorskip("pexpect")
    del pexpect
    matrix = project.path / "matrices" / "local.toml"
    floor = '[[checks]]\nkind = "floor"\ntokens_per_second = 1e5\n'
    matrix.write_text(matrix.read_text().replace("[policy]", floor + "[policy]"))
    child = project.spawn_pytest(
        " ".join([*LOCAL, "--pdb", "-k", "'throughput and pp32 and not ..ik'"]), expect_timeout=60
    )
    child.expect(r"\(Pdb\)")
    child.sendline("p verdict.status")
    child.expect("FAIL")
    child.sendline("q")
    child.expect("1 failed")


def test_a_planned_matrix_of_which_nothing_is_collected_is_an_error(project: pytest.Pytester) -> None:
    """As happens when something keeps the packaged module away: said, not a night without cases."""
    project.makeconftest(
        """
        import pytest
        @pytest.hookimpl(wrapper=True)
        def pytest_collection_modifyitems(items):
            items.clear()
            return (yield)
        """
    )
    result = project.runpytest_subprocess(*LOCAL)
    assert "E-nothing-collected: 9 cases are planned" in result.stdout.str() + result.stderr.str()
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_a_selection_without_a_matrix_is_warned_of(project: pytest.Pytester) -> None:
    """Nothing of the matrix runs, and a quiet green run would look as if it had."""
    project.makepyfile("def test_plain() -> None:\n    pass\n")
    result = project.runpytest("--moe-select=pp64")
    result.stdout.fnmatch_lines(["*--moe-select chooses nothing: the matrix runs with -m moe or --matrix*"])
    assert result.ret == 0


def test_an_equals_sign_in_k_leads_to_the_option_that_takes_it(project: pytest.Pytester) -> None:
    """Ids are full of them, and pytest's expressions do not know it."""
    project.makepyfile("def test_plain() -> None:\n    pass\n")
    result = project.runpytest(*LOCAL, "-k", "pp64 and (ub=2048 or fa=1)")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*-k 'pp64 and (ub=2048 or fa=1)' cannot look for a '='*--moe-select=ub=2048 *"])
    without = project.runpytest("-k", "a=1")
    without.stderr.fnmatch_lines(["*Wrong expression passed to '-k'*"])
