"""Builders of small cases, jobs and processes, shared by the tests of judging, reporting and the report command."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.case import (
    Case,
    Check,
    ContrastCheck,
    Expectation,
    FloorCheck,
    MemoryCheck,
    OutputCheck,
    PitfallCheck,
)
from harness.domain.failure import Failure
from harness.domain.flags import Flags
from harness.domain.job import Design, Job
from harness.domain.measurement import Conditions, ProcessRun, Samples, Step
from harness.domain.model import Model
from harness.domain.node import NodeClass, NodeFacts
from harness.domain.outputs import Output
from harness.domain.words import Kind
from harness.domain.workload import OutputProfile, Prompt, Workload
from harness.judging.record import JobRecord

PP = Workload(512, 0)
TG = Workload(0, 128)
ANY = NodeClass("any")
MODEL = Model("tiny-moe-iq4_xs", card="tiny-moe", quant="IQ4_XS")
BUILD = Build("ik", Fork.IK_LLAMA_CPP, wheel="ik-llama-cpp-python")
NODE = NodeFacts("Test CPU 9000", 8, ("avx2",), 64 * 1024**3, (), "6.1", 0, "performance", None, 1, 0)
PROFILE = OutputProfile("greedy32", (Prompt("story", "Once"), Prompt("code", "def")), n_predict=32, positions=16)
GOOD_TOKENS = tuple(range(100, 132))


def arm(rtr: int = 0, model: Model = MODEL) -> Arm:
    return Arm(BUILD, model, Flags.of({"rtr": rtr, "fa": 1}), shown=("rtr",))


BASELINE, CANDIDATE = arm(0), arm(1)


def contrast(expect: Expectation = Expectation.NO_REGRESSION, workload: Workload = PP) -> Case:
    return Case(Kind.THROUGHPUT, (BASELINE, CANDIDATE), workload, ANY, ContrastCheck("rtr", "rtr", expect))


def floor(tps: float | None, workload: Workload = PP) -> Case:
    return Case(Kind.THROUGHPUT, (BASELINE,), workload, ANY, FloorCheck(tps))


def pitfall() -> Case:
    return Case(Kind.PITFALL, (BASELINE, CANDIDATE), PP, ANY, PitfallCheck("rtr", "rtr", "report 1", "rtr=0"))


def equivalence() -> Case:
    return Case(Kind.EQUIVALENCE, (BASELINE, CANDIDATE), PROFILE, ANY, OutputCheck("rtr", "rtr"))


def memory(limit_mib: float) -> Case:
    return Case(Kind.MEMORY, (BASELINE,), None, ANY, MemoryCheck(limit_mib))


def case_of(check: Check) -> Case:
    return Case(Kind.THROUGHPUT, (BASELINE,), PP, ANY, check)


def samples(tps: float | Sequence[float], workload: Workload = PP) -> Samples:
    speeds = [tps] * 3 if isinstance(tps, int | float) else list(tps)
    kept = tuple(round(workload.tokens * 1e9 / speed) for speed in speeds)
    return Samples(workload.name, workload.tokens, (kept[0] * 2,) * 4 + kept, discarded=4)


def run(
    arm_index: int,
    block: int,
    tps: float | Sequence[float] | None,
    *,
    workload: Workload = PP,
    outputs: tuple[Output, ...] = (),
    failure: Failure | None = None,
    niceness: int = 0,
    key: str = "",
    rss_mib: float = 100.0,
) -> ProcessRun:
    return ProcessRun(
        step=Step(arm_index, block, outputs=bool(outputs)),
        content_key=key or f"content-{arm_index}",
        samples=(samples(tps, workload),) if tps is not None else (),
        outputs=outputs,
        wall_s=2.5,
        load_s=0.5,
        max_rss_bytes=int(rss_mib * 1024**2),
        conditions=Conditions(niceness, (0, 1), 2, 0.1),
        engine={"commit": "abc"},
        failure=failure,
    )


def arms_runs(*speeds: Sequence[float], workload: Workload = PP) -> tuple[ProcessRun, ...]:
    """One process per speed: a sequence of speeds for each arm, blocks counted from 0."""
    return tuple(
        run(index, block, tps, workload=workload) for index, arm_ in enumerate(speeds) for block, tps in enumerate(arm_)
    )


def record(
    runs: Sequence[ProcessRun],
    *,
    arms: tuple[Arm, ...] = (BASELINE, CANDIDATE),
    outputs: OutputProfile | None = None,
    failure: Failure | None = None,
) -> JobRecord:
    job = Job(arms, (PP,), outputs, ANY, Design(blocks=8), cases=())
    return JobRecord(job, tuple(runs), failure, NODE)


def output(prompt: str = "story", **changes: object) -> Output:
    values: dict[str, object] = {
        "prompt": prompt,
        "prompt_tokens": (1, 2, 3),
        "tokens": GOOD_TOKENS,
        "margins": (3.0,) * len(GOOD_TOKENS),
        "text": "the quick brown fox",
        "logits_sha256": "aa",
        "finite": True,
    }
    return Output(**{**values, **changes})  # type: ignore[arg-type]


def answers(**changes: object) -> tuple[Output, ...]:
    """Both prompts answered; the changes concern ``story`` alone."""
    return (output("story", **changes), output("code"))


def noisy(rng: random.Random, centre: float, spread: float, count: int) -> list[float]:
    return [centre * math.exp(rng.gauss(0, spread)) for _ in range(count)]
