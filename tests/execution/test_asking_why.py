"""A build that fails without a word is started once more with its logs, unless it had to at once: burn-ins do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from job_support import ANY, QUICK, WORKLOADS

from harness.domain.arm import Arm
from harness.domain.build import Build, Fork
from harness.domain.job import Job
from harness.domain.model import Model
from harness.domain.stopping import RunWholeSchedule
from harness.engines.flags import complete
from harness.execution.events import ProcessDone
from harness.execution.run_job import run_job

SILENT = "llama_bench: error: failed to create context with model"
BENCH = """#!/bin/sh
echo "$*" >> {folder}/starts
case "$*" in
  *--help*) echo '  -p, --n-prompt <n>'; exit 0;;
  *-v) {loud};;
esac
echo "{silent}" >&2
exit 1
"""


def failed_run(folder: Path, model: Path, loud: str, burn_in: int = 0) -> tuple[ProcessDone, list[str]]:
    """The one process of an arm whose build is silent, and how its program was started after its --help."""
    program = folder / "llama-bench"
    program.write_text(BENCH.format(folder=folder, loud=loud, silent=SILENT))
    program.chmod(0o755)
    build = Build("b", Fork.LLAMA_CPP, path=str(program))
    flags = complete(build, {}, options=frozenset({"-p", "--n-prompt"}))
    design = replace(QUICK, burn_in=burn_in)
    job = Job((Arm(build, Model("tiny", path=str(model)), flags),), WORKLOADS, None, ANY, design, cases=())
    (done,) = [event for event in run_job(job, 1, RunWholeSchedule()) if isinstance(event, ProcessDone)]
    return done, (folder / "starts").read_text().splitlines()[1:]


@pytest.mark.parametrize(
    ("loud", "slug"),
    [
        ("echo 'failed to allocate buffer of size 1' >&2", "E-out-of-memory"),
        ("echo 'llama_init_from_model: it must not be' >&2", "E-context-refused"),
        ("kill -SEGV $$", "E-context-refused"),
        ("exit 0", "E-context-refused"),
    ],
)
def test_the_reason_is_found_by_one_more_start(tmp_path: Path, tiny_model: Path, loud: str, slug: str) -> None:
    """What the second start does instead of failing the same way explains nothing and counts for nothing."""
    done, starts = failed_run(tmp_path, tiny_model, loud)
    assert done.run.failure is not None
    assert done.run.failure.slug == slug
    assert [start.endswith("-v") for start in starts] == [False, True]
    assert ("it must not be" in done.run.failure.message) == ("must" in loud)
    assert done.run.engine["opaque"] == "llama-bench is a script: what it starts is not hashed"


def test_a_burn_in_logs_at_once(tmp_path: Path, tiny_model: Path) -> None:
    """Nothing of it is timed: its only start says why, and what it said of loading is kept."""
    loud = "echo 'load_tensors:   CPU_Mapped model buffer size =    21.06 MiB' >&2; echo 'unable to allocate' >&2"
    done, starts = failed_run(tmp_path, tiny_model, loud, burn_in=1)
    assert done.run.failure is not None
    assert done.run.failure.slug == "E-out-of-memory"
    assert [start.endswith("-v") for start in starts] == [True]
    assert done.run.load is not None
    assert [buffer.device for buffer in done.run.load.buffers] == ["CPU_Mapped"]
