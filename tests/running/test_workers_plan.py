"""With ``-n N`` on a cluster the controller holds the plan against the nodes, and its workers go by what it found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.domain.errors import Infrastructure
from harness.domain.node import NodeFacts
from harness.domain.words import Status
from harness.execution.node import probe_node
from harness.running.options import RunOptions
from harness.running.session import MatrixSession

MATRIX = """
name = "two-classes"
[builds.ik]
fork = "ik_llama.cpp"
wheel = "ik-llama-cpp-python"
[models.tiny]
card = "tiny-moe"
[node_classes.small]
min_cores = 1
[node_classes.huge]
min_ram_gib = 1000000
[[workloads]]
pp = 32
"""


class Cluster:
    """A fake: it has this machine as its node, or is not there."""

    def __init__(self, *, there: bool) -> None:
        self._there = there
        self.is_open = False

    def start(self) -> None:
        if not self._there:
            raise Infrastructure("E-ray-unreachable", "nothing answers")
        self.is_open = True

    def nodes(self) -> tuple[NodeFacts, ...]:
        return (probe_node(),)

    def close(self) -> None:
        self.is_open = False


@pytest.fixture
def controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Cluster], MatrixSession]:
    matrix = tmp_path / "two.toml"
    matrix.write_text(MATRIX)
    options = RunOptions(str(matrix), "ray", "127.0.0.1:6379", (), tmp_path / "reports")

    def make(cluster: Cluster) -> MatrixSession:
        monkeypatch.setattr(RunOptions, "executor_factory", lambda *_: lambda: cluster)
        return MatrixSession(options, worker=False)

    return make


def test_workers_plan_what_their_controller_found(controller: Callable[[Cluster], MatrixSession]) -> None:
    """What no node can take is decided before any job, with the same jobs and groups in all processes."""
    cluster = Cluster(there=True)
    one = controller(cluster)
    assert one.share_executor() == "127.0.0.1:6379"
    told = {case: list(each) for case, each in one.decided.items()}  # as it travels
    worker = MatrixSession(one.options, worker=True, decided=told)
    assert {case.case.node_class.name: case.status for case in worker.plan.cases} == {
        "small": None,
        "huge": Status.NOT_APPLICABLE,
    }
    (reason,) = (case.reason for case in worker.plan.cases if case.status)
    assert "no node is of class huge: needs 1e+06 GiB of RAM" in reason
    assert [job.id for job in worker.plan.jobs] == [job.id for job in one.plan.jobs]
    assert {job.node_class.name for job in worker.plan.jobs} == {"small"}
    assert worker.job_groups() == one.job_groups()
    assert not cluster.is_open
    one.leave()


def test_where_no_cluster_answers_the_workers_say_so_themselves(
    controller: Callable[[Cluster], MatrixSession],
) -> None:
    one = controller(Cluster(there=False))
    one.share_executor()
    assert (one.decided, len(one.plan.jobs)) == ({}, 2)
    one.leave()
