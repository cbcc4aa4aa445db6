"""Builds by path: prompts are answered by a process of another program, which tells the outputs and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from judging_support import ANY, MODEL, PP, PROFILE, answers, record, run

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.case import Case, Check, ContrastCheck, Expectation, MemoryCheck, OutputCheck
from harness.domain.failure import Failure, FailureKind
from harness.domain.flags import Flags
from harness.domain.job import Design, Job
from harness.domain.measurement import ProcessRun, Step
from harness.domain.outputs import Output
from harness.domain.policy import Policy
from harness.domain.words import Kind, Status, Throughput
from harness.domain.workload import Metric, OutputProfile, ProfileWorkload, PromptProfile, Workload
from harness.judging.judge import judge

ARMS = tuple(
    Arm(Build(name, Fork.LLAMA_CPP, path=f"/builds/{name}"), MODEL, Flags.of({"fa": 1})) for name in ("old", "new")
)
SLOWER = tuple(run(arm, block, 100 - 30 * arm, rss_mib=100) for block in range(8) for arm in (0, 1))
NO_SERVER = Failure(FailureKind.UNSUPPORTED, "no llama-server lies beside llama-bench", "E-unsupported")


def _apart(arm: int, outputs: tuple[Output, ...], failure: Failure | None = None) -> ProcessRun:
    done = run(arm, -1, None, outputs=outputs, failure=failure, key=f"server-{arm}", rss_mib=5000)
    return replace(done, step=Step(arm, -1, outputs=True, apart=True))


def _status(kind: Kind, check: Check, *apart: ProcessRun) -> tuple[Status, Throughput | None, str]:
    alone = kind is Kind.MEMORY
    workload = {Kind.MEMORY: None, Kind.EQUIVALENCE: PROFILE, Kind.THROUGHPUT: PP}[kind]
    case = Case(kind, ARMS[:1] if alone else ARMS, workload, ANY, check)
    found = judge(case, record((*apart, *SLOWER), arms=ARMS, outputs=PROFILE), Policy())
    return found.status, found.throughput, found.reason


SPEED = ContrastCheck("build", "build", Expectation.NO_REGRESSION)
ALIKE = (_apart(0, answers()), _apart(1, answers()))


def test_a_server_tells_the_outputs_and_neither_speed_nor_memory_nor_what_the_bench_is() -> None:
    """Its 5 GiB are no peak of the bench, its bytes no change of the arm, and its answers are compared."""
    assert _status(Kind.EQUIVALENCE, OutputCheck("o", "build"), *ALIKE)[0] is Status.PASS
    assert _status(Kind.MEMORY, MemoryCheck(200), *ALIKE)[0] is Status.PASS
    assert _status(Kind.THROUGHPUT, SPEED, *ALIKE)[:2] == (Status.FAIL, Throughput.REGRESSED)


def test_the_speed_of_wrong_output_is_not_judged_wherever_it_was_answered() -> None:
    wrong = (_apart(0, answers()), _apart(1, answers(tokens=(7,) * 32)))
    assert _status(Kind.THROUGHPUT, SPEED, *wrong)[0] is Status.NOT_JUDGED
    assert _status(Kind.THROUGHPUT, SPEED, *wrong[:1])[0] is Status.NOT_JUDGED, "one arm was never asked"


def test_a_build_that_gives_no_outputs_is_unsupported_and_timed_all_the_same() -> None:
    none = tuple(_apart(arm, (), NO_SERVER) for arm in (0, 1))
    status, _, reason = _status(Kind.EQUIVALENCE, OutputCheck("o", "build"), *none)
    assert (status, "no llama-server" in reason) == (Status.UNSUPPORTED, True)
    assert _status(Kind.THROUGHPUT, SPEED, *none)[:2] == (Status.FAIL, Throughput.REGRESSED)


def test_a_server_that_crashes_fails_the_outputs_and_nobody_elses_case() -> None:
    crash = Failure(FailureKind.CRASH, "it died", "E-crash")
    runs = (_apart(0, answers()), _apart(1, (), crash))
    assert _status(Kind.EQUIVALENCE, OutputCheck("o", "build"), *runs)[0] is Status.FAIL
    assert _status(Kind.MEMORY, MemoryCheck(200), *runs)[0] is Status.PASS
    assert _status(Kind.THROUGHPUT, SPEED, *runs)[0] is Status.NOT_JUDGED


def _job(arms: tuple[Arm, ...], loads: tuple[Workload | ProfileWorkload, ...], outputs: OutputProfile | None) -> Job:
    return Job(arms, loads, outputs, ANY, Design(blocks=2), ())


def test_the_schedule_asks_for_prompts_first_and_apart() -> None:
    job = _job(ARMS, (PP,), PROFILE)
    steps = list(job.schedule())
    assert steps[:4] == [*(Step(arm, -1, outputs=True, apart=True) for arm in (0, 1)), Step(0, -1), Step(1, -1)]
    assert len(steps) == job.process_starts == 8


@pytest.mark.parametrize(
    ("arms", "loads", "first"),
    [
        (ARMS, (), Step(0, -1, outputs=True, apart=True)),
        (ARMS, (ProfileWorkload(PromptProfile("chat", "x", 2), Metric.TTFT),), Step(0, -1, outputs=True)),
        ((Arm(Build("w", Fork.LLAMA_CPP, wheel="xllamacpp"), MODEL, Flags.of({})),), (PP,), Step(0, -1, outputs=True)),
    ],
)
def test_nothing_is_apart_where_one_process_does_both(
    arms: tuple[Arm, ...], loads: tuple[Workload | ProfileWorkload, ...], first: Step
) -> None:
    job = _job(arms, loads, PROFILE)
    steps = list(job.schedule())
    assert (steps[0], len(steps)) == (first, job.process_starts)
