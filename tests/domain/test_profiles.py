"""Profiles of requests: several quantities of one prompt, each a workload of its own."""

from __future__ import annotations

import dataclasses

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.case import Case, FloorCheck
from harness.domain.flags import Flags
from harness.domain.job import Design, Job
from harness.domain.model import Model
from harness.domain.node import NodeClass
from harness.domain.words import Kind
from harness.domain.workload import Metric, ProfileWorkload, PromptProfile, Timed, Workload, is_time

ARM = Arm(Build("ik", Fork.IK_LLAMA_CPP, wheel="w"), Model("m", card="c"), Flags.of({}))
CHAT = PromptProfile("chat", "Hello", 16)


def _case(load: Timed) -> Case:
    return Case(Kind.THROUGHPUT, (ARM,), load, NodeClass("any"), FloorCheck(None))


def _job(*loads: Timed) -> Job:
    return Job((ARM,), loads, None, NodeClass("any"), Design(), ())


def test_each_quantity_is_a_workload_of_its_own_name() -> None:
    names = [ProfileWorkload(CHAT, metric).name for metric in Metric]
    assert names == ["chat.cold", "chat.ttft", "chat.prefill", "chat.decode", "chat.peak"]


def test_times_count_one_token_and_speeds_the_tokens_inside() -> None:
    cut = dataclasses.replace(CHAT, prompt_tokens=512)
    tokens = {metric: ProfileWorkload(cut, metric).tokens for metric in Metric}
    assert tokens == {Metric.COLD: 1, Metric.TTFT: 1, Metric.PREFILL: 512, Metric.DECODE: 15, Metric.PEAK: 1}
    assert ProfileWorkload(CHAT, Metric.PREFILL).tokens is None, "the tokenizer decides"


def test_times_are_known_as_times() -> None:
    assert [metric for metric in Metric if is_time(ProfileWorkload(CHAT, metric))] == [Metric.COLD, Metric.TTFT]
    assert not is_time(Workload(512, 0))


def test_text_and_lengths_decide_the_identity_of_a_case_and_of_a_job() -> None:
    """Equal names must not make other prompts comparable through time."""
    load = ProfileWorkload(CHAT, Metric.TTFT)
    for change in ({"text": "Hallo"}, {"n_predict": 17}, {"prompt_tokens": 8}):
        other = ProfileWorkload(dataclasses.replace(CHAT, **change), Metric.TTFT)
        assert other.name == load.name
        assert _case(other).key != _case(load).key, change
        assert _job(other).id != _job(load).id, change
    assert _case(load).key != _case(ProfileWorkload(CHAT, Metric.COLD)).key


def test_a_job_knows_its_profile() -> None:
    assert _job(ProfileWorkload(CHAT, Metric.COLD), ProfileWorkload(CHAT, Metric.TTFT)).profile == CHAT
    assert _job(Workload(512, 0)).profile is None
