"""A job keeps what its builds say of loading, from their burn-in alone, beside what was estimated."""

from __future__ import annotations

from pathlib import Path

import pytest
from job_support import ANY, QUICK, WORKLOADS, job_of, wheel_arm

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.flags import FlagValue
from harness.domain.job import Job
from harness.domain.load_facts import Buffer, LoadFacts
from harness.domain.measurement import ProcessRun
from harness.domain.model import Model
from harness.domain.stopping import RunWholeSchedule
from harness.domain.workload import Workload
from harness.engines.engine import Order
from harness.engines.flags import complete
from harness.engines.load_log import read_load_log
from harness.execution.events import ProcessDone
from harness.execution.load_plan import with_plan
from harness.execution.run_job import run_job
from harness.judging.loading import differences, forced, idle


def runs_of(job: Job) -> list[ProcessRun]:
    return [event.run for event in run_job(job, 1, RunWholeSchedule()) if isinstance(event, ProcessDone)]


def test_two_arms_of_a_wheel_tell_what_run_time_repack_did(tiny_model: Path) -> None:
    """Nothing that is scored logs; what was estimated stands beside what was printed."""
    arms = wheel_arm(tiny_model), wheel_arm(tiny_model, rtr=1)
    runs = runs_of(job_of(*arms))
    assert [run.failure for run in runs] == [None] * len(runs)
    assert [run.load is not None for run in runs] == [not run.step.scored for run in runs]
    plain, repacked = (run.load for run in runs if run.load)
    assert (plain.repacked, plain.splits) == (0, 1)
    assert repacked.repacked > 0
    assert f"tensors repacked 0 -> {repacked.repacked}" in differences(plain, repacked)
    for arm, load in zip(arms, (plain, repacked), strict=True):
        assert [each.flag for each in forced(arm, load)] == ["b", "ub"], "cut to the context"
    assert idle(arms[1], plain) == ["asked rtr=1, no tensor was repacked"]
    assert idle(arms[1], repacked) == []
    told = {(buffer.use, buffer.device): buffer.mib for buffer in plain.buffers}
    planned = {(buffer.use, buffer.device): buffer.mib for buffer in plain.planned}
    assert planned["KV", "RAM"] == pytest.approx(told["KV", "CPU"], abs=0.01)
    assert planned["weights", "RAM"] == pytest.approx(told["weights", "CPU"], rel=0.01)


def test_mainline_tells_layers_and_moved_tensors_at_debug_level(tiny_model: Path) -> None:
    """The child logs more where it is asked to."""
    build = Build("mainline", Fork.LLAMA_CPP, wheel="xllamacpp")
    flags = complete(build, {"ot": r"blk\.1\.ffn_.*_exps=CPU", "ngl": 0})
    job = Job((Arm(build, Model("tiny", path=str(tiny_model)), flags),), WORKLOADS[:1], None, ANY, QUICK, cases=())
    burn_in, *scored = runs_of(job)
    assert burn_in.load is not None
    assert [run.load for run in scored] == [None] * len(scored)
    assert [(home.layers[:2], home.buffer) for home in burn_in.load.homes] == [("0-", "CPU")]
    assert [placed.layers for placed in burn_in.load.overrides] == ["1"]
    assert (burn_in.load.values["fa"], burn_in.load.values["mmap"]) == ("1", "1")
    assert idle(job.arms[0], burn_in.load) == []


def test_gpus_are_estimated_where_the_build_used_one(tiny_model: Path) -> None:
    """A node can have some that a build has no code for."""
    arm = wheel_arm(tiny_model, ngl=99)
    order = Order(arm, tiny_model, WORKLOADS, 1, None, 2, logs=True)
    on_cpu = with_plan(LoadFacts(buffers=(Buffer("weights", "CPU", 1.0),)), order, (2**34,))
    on_gpu = with_plan(LoadFacts(buffers=(Buffer("weights", "CUDA0", 1.0),)), order, (2**34,))
    assert on_cpu is not None
    assert on_gpu is not None
    assert {buffer.device for buffer in on_cpu.planned} == {"RAM"}
    assert {buffer.device for buffer in on_gpu.planned} == {"RAM", "GPU 0"}
    assert with_plan(None, order, ()) is None
    assert with_plan(LoadFacts(), order, ()) == LoadFacts()


RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
BUILD = Build("mainline", Fork.LLAMA_CPP, path="/nowhere/llama-bench")
LARGE, TINY = Model("q", card="qwen3-30b-a3b", quant="IQ4_XS"), Model("t", card="tiny-moe", quant="F16")


def recorded(name: str, model: Model, **flags: FlagValue) -> LoadFacts:
    """What a recorded process on an H200 said, with what is estimated for it."""
    load = read_load_log((RECORDINGS / f"llama_cpp-0c1e570.cuda_{name}.stderr.txt").read_text("utf-8"))
    arm = Arm(BUILD, model, complete(BUILD, {"ngl": 99, "fa": 1, **flags}))
    order = Order(arm, Path("model.gguf"), (Workload(64, 0), Workload(0, 4)), 1, None, 8, logs=True)
    found = with_plan(load, order, (143155 * 2**20,))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "model", "flags"),
    [("gpu", LARGE, {"ub": 2048}), ("hybrid", LARGE, {"ot": "exps=CPU"}), ("partial", TINY, {"ngl": 3})],
)
def test_what_a_gpu_was_estimated_to_hold_is_what_it_held(name: str, model: Model, flags: dict[str, FlagValue]) -> None:
    """Weights and KV cache to a hundredth of a MiB, on a real one."""
    load = recorded(name, model, **flags)
    printed = {buffer.use: buffer.mib for buffer in load.buffers if buffer.device == "CUDA0"}
    planned = {buffer.use: buffer.mib for buffer in load.planned if buffer.device == "GPU 0"}
    assert [planned[use] for use in ("weights", "KV")] == pytest.approx(
        [printed[use] for use in ("weights", "KV")], abs=0.02
    )


def test_a_hybrid_placement_on_a_real_gpu_in_words() -> None:
    """From all on the GPU to experts in RAM."""
    assert differences(recorded("gpu", LARGE), recorded("hybrid", LARGE))[:5] == [
        "blk.0-47 experts moved from CUDA0 to CPU",
        "weights in CPU_Mapped 157.7 -> 15541.0 MiB",
        "weights in CUDA0 15626.7 -> 758.7 MiB",
        "compute in CUDA0 42.7 -> 139.5 MiB",
        "graph splits 2 -> 146 (98 for one token)",
    ]
