"""Outputs of whole jobs: rounds, arms, advice, and what they do to cases of speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from judging_support import ANY, BASELINE, CANDIDATE, MODEL, NODE, PP, arms_runs, contrast, floor, record, run
from outputs_support import WIDE, answers_of

from harness.domain.arm import Arm
from harness.domain.build import Build, BuildSource, Fork
from harness.domain.case import AttributionCheck, Case, Expectation, OutputCheck
from harness.domain.flags import Flags
from harness.domain.job import Design, Job
from harness.domain.measurement import ProcessRun
from harness.domain.model import Model
from harness.domain.node import Gpu
from harness.domain.outputs import Output
from harness.domain.policy import Policy
from harness.domain.tolerance import ContrastClass, Figures, Tolerance
from harness.domain.verdict import Verdict
from harness.domain.words import Equivalence, Kind, Status, Throughput
from harness.judging.judge import judge
from harness.judging.output_floors import tolerated_after
from harness.judging.outputs_allowed import CPU, allowed_of, backend_of, contrast_class
from harness.judging.outputs_rounds import outputs_of_job
from harness.judging.quants import Quant
from harness.judging.record import JobRecord
from harness.judging.tolerances import FLOORS, floor_of, kv_budget
from harness.reporting.codec import decode, encode

GOOD, WRONG = answers_of(), answers_of(2.0)
WORSE = answers_of(3.0)
BROKEN = tuple(replace(each, finite=False) for each in GOOD)
REAL = Model("real", path="/models/real-IQ4_XS.gguf")
EQUAL = arms_runs([100.0, 100.2, 99.8, 100.1] * 2, [100.1, 99.9, 100.0, 100.2] * 2)
OUTPUTS = OutputCheck("same", "rtr")


def rounds_of(*rounds: tuple[Sequence[Output], Sequence[Output]]) -> tuple[ProcessRun, ...]:
    return tuple(run(index, -1, 100, outputs=tuple(outputs)) for pair in rounds for index, outputs in enumerate(pair))


def job_of(runs: Sequence[ProcessRun], arms: tuple[Arm, ...] = (BASELINE, CANDIDATE), **changes: object) -> JobRecord:
    job = Job(arms, (PP,), WIDE, ANY, Design(blocks=8), cases=())
    return JobRecord(replace(job, **changes), tuple(runs), None, NODE)  # type: ignore[arg-type]


def outputs_verdict(record_: JobRecord, check: OutputCheck = OUTPUTS) -> Verdict:
    return judge(Case(Kind.EQUIVALENCE, record_.job.arms, WIDE, ANY, check), record_, Policy())


def speed_verdict(record_: JobRecord) -> Verdict:
    case = contrast()
    return judge(replace(case, arms=record_.job.arms), record_, Policy())


@pytest.mark.parametrize(
    ("rounds", "status", "word", "said"),
    [
        ([(GOOD, GOOD)], Status.PASS, Equivalence.BITWISE, "bitwise: "),
        ([(GOOD, WRONG)], Status.FAIL, Equivalence.DIFFERENT, "different: mean KLD "),
        ([(GOOD, WRONG), (GOOD, WRONG)], Status.FAIL, Equivalence.DIFFERENT, "; again in fresh processes the same"),
        (
            [(GOOD, WRONG), (GOOD, WORSE)],
            Status.FAIL,
            Equivalence.DIFFERENT,
            "; again in fresh processes different, mean KLD",
        ),
        ([(GOOD, BROKEN), (GOOD, WRONG)], Status.FAIL, Equivalence.DIFFERENT, "; at first broken, prompt 'p0' has NaN"),
        ([(GOOD, WRONG), (GOOD, GOOD)], Status.INCONCLUSIVE, None, "inconclusive: not repeated: at first different, "),
        ([(GOOD, WRONG), (BROKEN, GOOD)], Status.ERROR, None, "the baseline is no reference"),
        ([(GOOD, GOOD), (GOOD, GOOD)], Status.PASS, Equivalence.BITWISE, "bitwise: "),
    ],
)
def test_a_finding_counts_where_every_round_shows_it(
    rounds: list[tuple[Sequence[Output], Sequence[Output]]], status: Status, word: Equivalence | None, said: str
) -> None:
    found = outputs_verdict(job_of(rounds_of(*rounds)))
    assert (found.status, found.equivalence) == (status, word)
    assert said in found.reason
    if "not repeated" in said:
        assert "again in fresh processes bitwise, all logits' hashes" in found.reason


@pytest.mark.parametrize("second", [WRONG, GOOD])
def test_speed_is_not_judged_where_a_round_was_wrong(second: Sequence[Output]) -> None:
    found = speed_verdict(job_of((*rounds_of((GOOD, WRONG), (GOOD, second)), *EQUAL)))
    assert (found.status, found.slug) == (Status.NOT_JUDGED, "E-wrong-output")


def test_judging_again_gives_the_same_verdict_and_needs_no_check_of_old_journals() -> None:
    job = job_of((*rounds_of((GOOD, WRONG), (GOOD, WRONG)), *EQUAL))
    assert outputs_verdict(job) == outputs_verdict(job)
    assert outputs_verdict(job).scope.startswith("compared: 16 prompts, 256 greedy tokens, distributions at 1,0")


def test_advice_lets_speed_be_judged_and_is_named_there() -> None:
    arms = tuple(replace(each, model=REAL) for each in (BASELINE, CANDIDATE))
    slightly = answers_of(0.2)
    job = job_of((*rounds_of((GOOD, slightly)), *EQUAL), arms)
    found = outputs_verdict(job)
    assert (found.status, found.equivalence) == (Status.INCONCLUSIVE, Equivalence.DIFFERENT)
    assert found.reason.startswith("inconclusive: different: mean KLD ")
    assert "advisory: nothing is calibrated for real (kernels)" in found.reason
    speed = speed_verdict(job)
    assert speed.throughput is Throughput.EQUIVALENT
    assert "outputs: different by advice alone, nothing is calibrated for real (kernels)" in speed.reason


@pytest.mark.parametrize(
    ("scale", "contrast_", "status"),
    [
        (1.0, ContrastClass.KERNELS, Status.FAIL),
        (10.0, ContrastClass.KERNELS, Status.PASS),
        (10.0, ContrastClass.FORK, Status.INCONCLUSIVE),
        (float("nan"), ContrastClass.KERNELS, Status.INCONCLUSIVE),
        (float("inf"), ContrastClass.KERNELS, Status.INCONCLUSIVE),
    ],
)
def test_what_a_calibration_found_travels_with_the_job(scale: float, contrast_: ContrastClass, status: Status) -> None:
    """Of another class it says nothing, and what is no number is no calibration."""
    arms = tuple(replace(each, model=REAL) for each in (BASELINE, CANDIDATE))
    known = Tolerance(
        contrast_,
        Figures(*(scale * each for each in (5e-3, 5e-3, 4e-3, 1e-2, 1e-2, 5e-2, 0.1, 4e-3, 4e-3))),
        "calibration of 2026-12-01",
    )
    found = outputs_verdict(job_of(rounds_of((GOOD, answers_of(0.2))), arms, tolerances=(known,)))
    assert found.status is status
    assert ("calibration of 2026-12-01" in found.detail) == (status is not Status.INCONCLUSIVE)


CALIBRATED = Figures(*[9.0] * 9)


@pytest.mark.parametrize(
    ("positions", "decoded", "shipped"),
    [
        (None, None, ()),
        (400, 200, ()),
        (400, 199, ("decode_median", "decode_p90")),
        (399, 200, ("p25", "median", "p90", "p99")),
        (399, None, ("p25", "median", "p90", "p99")),
        (240, 32, ("p25", "median", "p90", "decode_median", "decode_p90", "p99")),
    ],
)
def test_a_calibration_on_few_positions_leaves_percentiles_as_shipped(
    positions: int | None, decoded: int | None, shipped: tuple[str, ...]
) -> None:
    known = Tolerance(ContrastClass.KERNELS, CALIBRATED, "calibration of 2026-12-01", positions, decoded)
    floor_ = allowed_of(BASELINE, CANDIDATE, None, (), NODE).floor
    allowed = allowed_of(BASELINE, CANDIDATE, None, (known,), NODE)
    assert allowed.floor == replace(CALIBRATED, **{name: getattr(floor_, name) for name in shipped})
    assert ("which it did not set: as in the shipped floor of" in allowed.source) == bool(shipped)


def test_a_calibration_tolerates_no_less_than_what_is_shipped() -> None:
    """It sees a few ways of running an arm. Where nothing is shipped it stands alone."""
    narrow = Tolerance(ContrastClass.KERNELS, Figures(9.0, *[1e-9] * 8), "calibration of 2026-12-01", 4000, 2000)
    floor_ = allowed_of(BASELINE, CANDIDATE, None, (), NODE).floor
    allowed = allowed_of(BASELINE, CANDIDATE, None, (narrow,), NODE)
    assert allowed.floor == replace(floor_, mean=9.0)
    assert "calibration of 2026-12-01; nothing less than the shipped floor of" in allowed.source
    real = tuple(replace(each, model=REAL) for each in (BASELINE, CANDIDATE))
    assert allowed_of(*real, None, (narrow,), NODE).floor == narrow.figures


def test_a_calibration_that_saw_one_far_position_tolerates_ten_of_them() -> None:
    """Of a thousand positions ten are beyond the 99th percentile, and few may have been seen."""
    seen = Figures(*[0.01] * 5, p99=0.01, maximum=0.6, p25=0.01, decode_median=0.01)
    tolerated = tolerated_after(seen, ContrastClass.FORK)
    assert tolerated.p99 == pytest.approx(0.3)
    assert tolerated.maximum == pytest.approx(1.8)
    assert tolerated.p25 == pytest.approx(0.015)


def test_what_an_older_calibration_did_not_know_is_as_shipped_or_not_judged() -> None:
    """Calibrations from before there were these figures have no limit of them, and forbid nothing by it."""
    old = Tolerance(ContrastClass.KERNELS, Figures(*[9.0] * 7), "calibration of 2026-12-01", 4000, 2000)
    floor_ = allowed_of(BASELINE, CANDIDATE, None, (), NODE).floor
    allowed = allowed_of(BASELINE, CANDIDATE, None, (old,), NODE)
    assert allowed.floor == replace(CALIBRATED, p25=floor_.p25, decode_median=floor_.decode_median)
    arms = tuple(replace(each, model=REAL) for each in (BASELINE, CANDIDATE))
    found = outputs_verdict(job_of(rounds_of((GOOD, answers_of(0.2))), arms, tolerances=(old,)))
    assert found.status is Status.PASS
    assert "p25, decode median, which it did not set: not judged" in found.detail


def test_where_nothing_is_shipped_such_percentiles_are_not_judged() -> None:
    """And what was calibrated is no advice, as ever."""
    arms = tuple(replace(each, model=REAL) for each in (BASELINE, CANDIDATE))
    # Means and maximum tolerate what is there; of the percentiles nothing would be tolerated.
    figures = Figures(9.0, 9.0, median=0.0, p90=0.0, decode_p90=0.0, p99=0.0, maximum=9.0, p25=9.0, decode_median=9.0)
    pair = (GOOD, answers_of(0.2))
    for positions, status in ((240, Status.PASS), (400, Status.FAIL)):
        known = Tolerance(ContrastClass.KERNELS, figures, "calibration of 2026-12-01", positions, positions // 2)
        found = outputs_verdict(job_of(rounds_of(pair), arms, tolerances=(known,)))
        assert found.status is status
        assert ("p25, median, p90, p99, decode median, decode p90, which it did not set" in found.detail) == (
            status is Status.PASS
        )
        # How docs/how-to/calibrate.md has it: the day stands in the details of every verdict.
        assert "tolerated: calibration of 2026-12-01" in found.detail


def test_inert_is_told_with_the_outputs_and_with_the_speed() -> None:
    check = replace(OUTPUTS, changes_numbers=True)
    job = job_of((*rounds_of((GOOD, GOOD)), *EQUAL), output_checks=(check,))
    outputs = outputs_verdict(job, check)
    assert outputs.inert
    assert "inert, rtr should change numbers" in outputs.reason
    speed = speed_verdict(job)
    assert (speed.throughput, speed.inert) == (Throughput.EQUIVALENT, True)
    assert "inert: neither outputs nor speed change" in speed.reason
    slower = speed_verdict(job_of((*rounds_of((GOOD, GOOD)), *arms_runs([100] * 8, [80] * 8)), output_checks=(check,)))
    assert not slower.inert
    assert "equal to the bit although the numbers should change" in slower.reason


def test_the_declared_loss_of_a_check_lets_speed_be_judged() -> None:
    lossy = replace(OUTPUTS, lossy=0.02)
    runs = (*rounds_of((GOOD, answers_of(0.2))), *EQUAL)
    assert outputs_verdict(job_of(runs), lossy).equivalence is Equivalence.LOSSY_DECLARED
    assert speed_verdict(job_of(runs, output_checks=(lossy,))).throughput is Throughput.EQUIVALENT
    assert speed_verdict(job_of(runs)).status is Status.NOT_JUDGED


def test_an_attribution_is_not_judged_where_one_of_its_arms_is_wrong() -> None:
    four = tuple(
        Arm(Build(name, Fork.IK_LLAMA_CPP, wheel="ik-llama-cpp-python"), MODEL, Flags.of({"rtr": rtr}), shown=("rtr",))
        for name in ("old", "new")
        for rtr in (0, 1)
    )
    case = Case(Kind.ATTRIBUTION, four, PP, ANY, AttributionCheck("which", ("build", "rtr"), Expectation.REPORT))
    speeds = arms_runs(*[[100.0, 101.0, 99.0, 100.0]] * 4)
    wrong = tuple(run(index, -1, 100, outputs=WRONG if index == 2 else GOOD) for index in range(4))
    found = judge(case, job_of((*wrong, *speeds), four), Policy())
    assert (found.status, found.equivalence) == (Status.NOT_JUDGED, Equivalence.DIFFERENT)
    assert "new+rtr=0: mean KLD" in found.reason
    again = tuple(run(index, -1, 100, outputs=GOOD) for index in range(4))
    twice = judge(case, job_of((*wrong, *again, *speeds), four), Policy())
    assert (twice.status, "not repeated" in twice.reason) == (Status.NOT_JUDGED, True)


def test_a_floor_is_not_judged_on_nan() -> None:
    runs = (*rounds_of((BROKEN, GOOD)), *EQUAL)
    assert judge(floor(1.0), job_of(runs), Policy()).status is Status.NOT_JUDGED


def test_what_a_running_job_says_so_far() -> None:
    job = job_of(()).job
    assert outputs_of_job(job, ()) == ()
    assert outputs_of_job(job, rounds_of((GOOD, GOOD))[:1]) == ()
    (found,) = outputs_of_job(job, rounds_of((GOOD, WRONG)))
    assert (found.wrong, found.repeated) == (True, True)
    assert outputs_of_job(record(()).job, rounds_of((GOOD, GOOD))) == (), "none were asked for"


def test_journals_from_before_distributions_are_judged_as_they_were() -> None:
    """Their lines lack every part that came later; the margin of the first token that differs decides."""
    came_later = ("forced_tokens", "prefill", "forced", "greedy", "varied", "pieces", "forced_at", "source")
    lines = []
    for each in rounds_of((GOOD, WRONG)):
        line = encode(each)
        line["outputs"] = [
            {name: value for name, value in output.items() if name not in came_later} for output in line["outputs"]
        ]
        lines.append(line)
    runs = [decode(ProcessRun, line) for line in lines]
    assert runs[0].outputs[0].prefill is None
    found = outputs_verdict(job_of(runs))
    assert (found.status, found.equivalence) == (Status.FAIL, Equivalence.DIFFERENT)
    assert "no tie explains this (above 2 nat)" in found.reason
    assert "distributions of the next token" in found.scope


# ---- classes and floors ----------------------------------------------------------------------------------------------

GPU = replace(NODE, gpus=(Gpu("Test GPU", 48 * 1024**3, "565", "GPU-0"),))
CUDA = Build("cuda", Fork.LLAMA_CPP, path="/builds/cuda")
VULKAN = Build("vulkan", Fork.LLAMA_CPP, path="/builds/vk", source=BuildSource(backends=("CPU", "Vulkan")))
HOST = Build("host", Fork.LLAMA_CPP, path="/builds/host", source=BuildSource(backends=("CPU",)))
IK = Build("ik", Fork.IK_LLAMA_CPP, path="/builds/ik")


DEEPER = Model("deeper", card="qwen3-30b-a3b", quant="IQ4_XS")


def on(build: Build, **flags: int | str) -> Arm:
    return Arm(build, MODEL, Flags.of({"ngl": 99, **flags}))


@pytest.mark.parametrize(
    ("ours", "theirs", "word"),
    [
        (on(CUDA), on(CUDA, fa=1), ContrastClass.FLAGS),
        (on(CUDA), on(replace(CUDA, name="cuda2")), ContrastClass.BUILD),
        (on(CUDA, repack=0), on(replace(CUDA, name="cuda2"), repack=1), ContrastClass.KERNELS),
        (on(CUDA), on(IK), ContrastClass.FORK),
        (on(CUDA), on(VULKAN), ContrastClass.BACKEND),
        (on(CUDA), on(HOST), ContrastClass.BACKEND),
        (on(CUDA), on(CUDA, ngl=0), ContrastClass.BACKEND),
    ],
)
def test_classes_of_contrast(ours: Arm, theirs: Arm, word: ContrastClass) -> None:
    assert contrast_class(ours, theirs, GPU) is word


def test_backends_in_words() -> None:
    assert backend_of(on(CUDA), NODE) == backend_of(on(HOST), GPU) == backend_of(BASELINE, GPU) == CPU
    assert backend_of(on(CUDA), GPU) == "GPU (nvidia)"
    assert backend_of(on(VULKAN), GPU) == "GPU (vulkan)"
    assert backend_of(on(CUDA, ngl=0), None) == "GPU (any, layers on the CPU)"


@pytest.mark.parametrize(
    ("arms", "said"),
    [
        ((BASELINE, CANDIDATE), ""),
        ((on(CUDA), on(CUDA, fa=1)), "GPU (nvidia) (flags)"),
        ((on(CUDA), on(HOST)), "GPU (nvidia) against the CPU (backend)"),
        ((replace(BASELINE, model=REAL), replace(CANDIDATE, model=REAL)), "real (kernels)"),
        ((replace(BASELINE, model=DEEPER), replace(CANDIDATE, model=DEEPER)), "deeper (kernels)"),
        ((BASELINE, replace(CANDIDATE, model=REAL)), "two models, tiny-moe-iq4_xs and real"),
    ],
)
def test_what_the_shipped_table_covers(arms: tuple[Arm, Arm], said: str) -> None:
    assert allowed_of(*arms, None, (), GPU).advisory == said


@pytest.mark.parametrize(
    ("ours", "theirs", "budget"),
    [
        ({"ctk": "f16", "ctv": "f16"}, {"ctk": "f16", "ctv": "f16"}, None),
        ({"ctk": "f16", "ctv": "f16"}, {"ctk": "q8_0", "ctv": "q8_0"}, 2e-3),
        ({"ctk": "q8_0", "ctv": "f16"}, {"ctk": "f16", "ctv": "f16"}, 2e-3),
        ({"ctk": "f16", "ctv": "f16"}, {"ctk": "q8_0", "ctv": "q4_0"}, 3e-2),
        ({"ctk": "q8_0", "ctv": "q8_0"}, {"ctk": "q8_0", "ctv": "q8_0"}, None),
        ({"ctk": "bf16", "ctv": "f16"}, {"ctk": "f16", "ctv": "f16"}, None),
    ],
)
def test_budgets_of_quantized_caches(ours: dict[str, str], theirs: dict[str, str], budget: float | None) -> None:
    assert kv_budget(on(CUDA, **ours), on(CUDA, **theirs)) == budget
    assert allowed_of(on(CUDA, **ours), on(CUDA, **theirs), replace(OUTPUTS, lossy=0.5), (), GPU).lossy == 0.5


def test_every_class_has_its_floor_and_other_engines_are_allowed_no_less() -> None:
    assert set(FLOORS) == {(quant, contrast_) for quant in Quant for contrast_ in ContrastClass}
    for quant in Quant:
        assert floor_of(quant, ContrastClass.FORK).mean >= floor_of(quant, ContrastClass.FLAGS).mean
        assert floor_of(quant, ContrastClass.BACKEND).mean >= floor_of(quant, ContrastClass.FORK).mean
