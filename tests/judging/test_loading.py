"""What builds did otherwise than asked, and how arms were loaded unlike, in verdicts."""

from __future__ import annotations

from dataclasses import replace

from judging_support import ANY, BUILD, MODEL, PP, arms_runs, record, run

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.case import Case, ContrastCheck, Expectation, FloorCheck
from harness.domain.flags import Flags, FlagValue
from harness.domain.load_facts import Buffer, LoadFacts, Notice, Placed
from harness.domain.policy import Policy
from harness.domain.verdict import Verdict
from harness.domain.words import Kind, Status
from harness.judging.judge import judge
from harness.judging.loading import FORCED, differences
from harness.reporting.codec import decode, encode
from harness.reporting.page import markdown_page
from harness.reporting.summary import summary_text

EXPERTS = ("ffn_down_exps.weight", "ffn_gate_exps.weight", "ffn_up_exps.weight")
FULL = LoadFacts(
    buffers=(Buffer("weights", "CUDA0", 16000.0), Buffer("weights", "CPU", 300.0)), offloaded=(49, 49), splits=2
)
HYBRID = replace(
    FULL,
    buffers=(Buffer("weights", "CUDA0", 15700.0), Buffer("weights", "CPU", 600.0)),
    overrides=(Placed("3", EXPERTS, "CPU"),),
    splits=98,
)
GROK = "llama_init_from_model: flash_attn is not compatible with Grok - forcing off"
OFF = LoadFacts(settings=(("fa", "0"),), notices=(Notice(GROK, 7, "fa", "0"),))


def arm(build: Build = BUILD, **flags: FlagValue) -> Arm:
    return Arm(build, MODEL, Flags.of({"rtr": 0, "fa": 1, **flags}), shown=tuple(flags))


def judged(one: Arm, other: Arm, before: LoadFacts | None, after: LoadFacts | None) -> Verdict:
    arms = (one, other)
    case = Case(Kind.THROUGHPUT, arms, PP, ANY, ContrastCheck("x", "x", Expectation.REPORT))
    burn_in = [replace(run(index, -1, 400), load=load) for index, load in enumerate((before, after))]
    runs = (*burn_in, *arms_runs([400] * 4, [401] * 4))
    return judge(case, record(runs, arms=arms), Policy())


def test_a_moved_layer_and_more_splits_are_told_in_words() -> None:
    """An override against the device of its layer, which a single GPU with all layers tells."""
    assert differences(FULL, HYBRID) == [
        "blk.3 experts moved from CUDA0 to CPU",
        "weights in CUDA0 16000.0 -> 15700.0 MiB",
        "weights in CPU 300.0 -> 600.0 MiB",
        "graph splits 2 -> 98",
    ]
    assert differences(FULL, FULL) == []
    some = replace(HYBRID, overrides=(Placed("3-4", EXPERTS[:1], "CPU"),), offloaded=(20, 49))
    assert differences(FULL, some)[:2] == [
        "blk.3-4 ffn_down_exps moved from CUDA0 to CPU",
        "layers offloaded 49/49 -> 20/49",
    ]
    homes = (Placed("0-1,4", (), "CPU"), Placed("2-3", (), "CUDA1"))
    assert differences(replace(FULL, homes=homes), replace(HYBRID, homes=homes))[0] == (
        "blk.3 experts moved from CUDA1 to CPU"
    )


def test_between_a_gpu_and_main_memory_its_buffer_types_are_one() -> None:
    """llama.cpp asks for pinned memory, and says so, also where it is not given."""
    pinned = replace(HYBRID, overrides=(Placed("3", EXPERTS, "CUDA_Host"),))
    assert differences(FULL, pinned)[0] == "blk.3 experts moved from CUDA0 to CPU"
    assert differences(HYBRID, pinned)[0] == "blk.3 experts moved from CPU to CUDA_Host"


def test_a_difference_that_is_declared_stands_below_and_not_in_the_reason() -> None:
    """A contrast of placements is about it."""
    verdict = judged(arm(), arm(ot="exps=CPU"), FULL, HYBRID)
    assert "placement" not in verdict.reason
    assert verdict.load.splitlines()[0] == "blk.3 experts moved from CUDA0 to CPU"


def test_a_placement_that_nothing_declared_moves_is_in_the_reason() -> None:
    """A contrast of anything else that moves experts measures two things."""
    verdict = judged(arm(fmoe=0), arm(fmoe=1), FULL, HYBRID)
    told = "placement differs although nothing declared moves it: blk.3 experts moved from CUDA0 to CPU"
    assert told in verdict.reason
    assert told not in judged(arm(fmoe=0), arm(fmoe=1), FULL, FULL).reason


def test_buffer_types_of_the_same_memory_are_no_other_placement() -> None:
    """Two forks call their mappings and rearranged copies otherwise."""
    mainline = Build("mainline", Fork.LLAMA_CPP, wheel="xllamacpp")
    ours = LoadFacts(buffers=(Buffer("weights", "CPU_Mapped", 300.0),), overrides=(Placed("1", EXPERTS, "CPU_REPACK"),))
    theirs = LoadFacts(buffers=(Buffer("weights", "CPU", 300.0),), overrides=(Placed("1", EXPERTS, "CPU"),))
    verdict = judged(arm(mainline), arm(), ours, theirs)
    assert "placement differs" not in verdict.reason
    assert "blk.1 experts moved from CPU_REPACK to CPU" in verdict.load


def test_a_contrast_whose_flag_was_forced_off_is_none() -> None:
    """Both arms do the same, whatever they were asked."""
    verdict = judged(arm(fa=0), arm(fa=1), LoadFacts(settings=(("fa", "0"),)), OFF)
    assert (verdict.status, verdict.slug) == (Status.UNSUPPORTED, FORCED)
    assert verdict.reason.startswith(
        f"unsupported: no contrast in fa: candidate ik+fa=1 asked fa=1, the build did fa=0 ('{GROK}')"
    )
    kept = judged(arm(fa=0), arm(fa=1), LoadFacts(settings=(("fa", "0"),)), LoadFacts(settings=(("fa", "1"),)))
    assert kept.status is not Status.UNSUPPORTED
    silent = judged(arm(fa=0), arm(fa=1), None, OFF)
    assert silent.status is not Status.UNSUPPORTED, "of the other arm nothing is known"


def test_a_contrast_that_a_forced_flag_leaves_is_told_of_it() -> None:
    """Another flag differs still: the reason says what the flag amounts to."""
    both = judged(arm(fa=0, rtr=0), arm(fa=1, rtr=1), LoadFacts(settings=(("fa", "0"),)), OFF)
    assert both.status is not Status.UNSUPPORTED
    assert f"candidate ik+fa=1+rtr=1 asked fa=1, the build did fa=0 ('{GROK}')" in both.reason


def test_physical_batches_that_no_workload_fills_are_no_contrast() -> None:
    """Contexts cut them to the workload; beside another contrast that is not worth a word."""
    cut = LoadFacts(settings=(("b", "512"), ("ub", "512")))
    verdict = judged(arm(ub=512, b=2048), arm(ub=2048, b=2048), cut, cut)
    assert (verdict.status, verdict.slug) == (Status.UNSUPPORTED, FORCED)
    assert "no contrast in ub: candidate ik+b=2048+ub=2048 asked ub=2048, the build did ub=512 on" in verdict.reason
    filled = LoadFacts(settings=(("b", "2048"), ("ub", "2048")))
    assert judged(arm(ub=512, b=2048), arm(ub=2048, b=2048), cut, filled).status is not Status.UNSUPPORTED
    other = judged(arm(ub=2048), arm(ub=2048, fmoe=0), cut, cut)
    assert "ub" not in other.load
    assert "asked ub" not in other.reason


def test_a_single_arm_says_what_its_flag_became() -> None:
    """Its figure is the other value's."""
    one = arm(fa=1)
    case = Case(Kind.THROUGHPUT, (one,), PP, ANY, FloorCheck(100.0))
    runs = (replace(run(0, -1, 400), load=OFF), *arms_runs([400] * 4))
    verdict = judge(case, record(runs, arms=(one,)), Policy())
    assert "asked fa=1, the build did fa=0" in verdict.reason
    assert "asked fa=1, the build did fa=0" in verdict.load
    undeclared = replace(one, shown=())
    verdict = judge(replace(case, arms=(undeclared,)), record(runs, arms=(undeclared,)), Policy())
    assert "asked fa=1" not in verdict.reason
    assert "asked fa=1" in verdict.load


def test_a_flag_that_left_no_trace_is_told() -> None:
    """Nothing was repacked, nothing was moved, although the build tells of such things."""
    plain, repacked = replace(FULL, settings=(("fmoe", "1"),)), replace(FULL, repacked=43)
    assert "candidate ik+rtr=1 asked rtr=1, no tensor was repacked" in judged(arm(), arm(rtr=1), plain, plain).reason
    assert "no tensor" not in judged(arm(), arm(rtr=1), plain, repacked).reason
    moving = arm(ot="exps=CPU", ncmoe=0)
    assert "asked ot=exps=CPU, no tensor was moved" in judged(arm(), moving, plain, plain).reason
    assert "no tensor was moved" not in judged(arm(), moving, FULL, FULL).reason, "this build tells of none"
    assert "no tensor was moved" not in judged(arm(), moving, plain, replace(HYBRID, settings=plain.settings)).reason


def test_what_is_left_to_the_build_is_not_forced() -> None:
    """``auto`` becomes something."""
    verdict = judged(arm(fa="auto"), arm(fa="auto", rtr=1), OFF, OFF)
    assert "asked" not in verdict.load


def test_buffers_far_from_their_estimate_are_told() -> None:
    """By the larger of a tenth and 300 MiB; what cannot be compared is not."""
    planned = (Buffer("weights", "GPU 0", 15000.0), Buffer("KV", "GPU 0", 48.0), Buffer("compute", "RAM", 3000.0))
    near = replace(FULL, planned=planned)
    far = replace(FULL, planned=(Buffer("weights", "GPU 0", 12000.0), *planned[1:]))
    verdict = judged(arm(), arm(fmoe=1), near, far)
    assert verdict.load.splitlines() == ["candidate ik+fmoe=1: GPU 0: weights 16000 MiB, estimated 12000 MiB"]


def test_journals_keep_it_and_reports_show_it_once() -> None:
    """Old journals have none."""
    verdict = judged(arm(), arm(ot="exps=CPU"), FULL, HYBRID)
    assert decode(Verdict, encode(verdict)) == verdict
    process = replace(run(0, -1, 400), load=replace(HYBRID, notices=OFF.notices))
    assert decode(type(process), encode(process)) == process
    old = {name: value for name, value in encode(process).items() if name != "load"}
    assert decode(type(process), old) == replace(process, load=None)
    text = summary_text([verdict, replace(verdict, case="throughput/tiny/x/tg@any")])
    assert text.count("blk.3 experts moved from CUDA0 to CPU") == 1


def test_a_long_list_is_cut_in_the_terminal() -> None:
    """The journal and the page have all of it."""
    verdict = replace(judged(arm(), arm(ot="exps=CPU"), FULL, HYBRID), load="\n".join(f"line {n}" for n in range(30)))
    text = summary_text([verdict])
    assert "line 9\n    and 20 more lines\n" in text
    assert "line 10" not in text
    assert "line 29" in markdown_page("m", [verdict])
