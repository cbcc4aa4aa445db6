"""Faults of ``[[workloads]]`` and ``[policy]``, each at its key."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning_support import assert_fault


@pytest.mark.parametrize(
    ("text", "slug", "where", "message", "hint"),
    [
        pytest.param(
            "[policy]\nblock = 2",
            "E-matrix-invalid",
            "m.toml: policy.block",
            "unknown key 'block'",
            "did you mean 'blocks'?",
            id="key of a table",
        ),
        pytest.param(
            "[policy]\nblocks = '4'",
            "E-matrix-invalid",
            "m.toml: policy.blocks",
            "expected a valid integer, found '4'",
            "",
            id="text for a number",
        ),
        pytest.param(
            "[policy]\nthreads = true",
            "E-matrix-invalid",
            "m.toml: policy.threads",
            'expected "auto" or a whole number above 0, found a boolean (True)',
            "",
            id="threads",
        ),
        pytest.param(
            "[policy]\nburn_in = 0",
            "E-matrix-invalid",
            "m.toml: policy.burn_in",
            "expected greater than or equal to 1, found 0",
            "",
            id="no burn-in, which would answer no prompts",
        ),
        pytest.param(
            "[[workloads]]\ndepth = 5",
            "E-matrix-invalid",
            "m.toml: workloads[2]",
            "needs 'pp' or 'tg' above 0",
            "",
            id="workload that does nothing",
        ),
        pytest.param(
            "[policy]\nblocks = 1000000000000",
            "E-matrix-invalid",
            "m.toml: policy.blocks",
            "expected less than or equal to 10000, found 1000000000000",
            "",
            id="number that fills the memory",
        ),
        pytest.param(
            '[policy]\n"a\\nb\\u001b[31m" = 1',
            "E-matrix-invalid",
            r'm.toml: policy."a\nb\u001b[31m"',
            r"unknown key 'a\nb\x1b[31m'",
            "known: alpha, blocks, burn_in, ceiling_tps, inconclusive, margin, minutes, repetitions, threads, "
            "timeout_s, trades, warmup",
            id="key with a line break and an escape",
        ),
        pytest.param(
            "[policy]\nblocks = 7",
            "E-matrix-invalid",
            "m.toml: policy.blocks",
            "expected an even number, because two blocks are one quad, found 7",
            "",
            id="odd blocks",
        ),
        pytest.param(
            "[policy]\nmargin = 1.5",
            "E-matrix-invalid",
            "m.toml: policy.margin",
            'expected "auto" or a number above 0 and below 1, found a number (1.5)',
            "",
            id="margin above one",
        ),
        pytest.param(
            "[[policy.trades]]\ngain = 'pp*'\nat_least = 0.1\nloss = 'ttg*'\nat_most = 0.03",
            "E-unknown-workload",
            "m.toml: policy.trades[0].loss",
            "unknown workload 'ttg*'",
            "did you mean 'tg8'?",
            id="trade without a workload",
        ),
    ],
)
def test_a_fault_of_workloads_and_policy_is_named(  # noqa: PLR0917 - one parameter for each part of the error
    tmp_path: Path, text: str, slug: str, where: str, message: str, hint: str
) -> None:
    """Slug, place, message and hint are exactly right."""
    assert_fault(tmp_path, text, slug, where, message, hint)
