"""Every case of the matrix, as a test. The plugin adds this module and gives it its cases."""

from __future__ import annotations

import pytest

from harness.domain.verdict import Verdict
from harness.domain.words import Status


def test_case(verdict: Verdict) -> None:
    """The check of the case is met; what could not be decided was skipped or has erred in the fixture."""
    if verdict.status is not Status.PASS:
        expected = f"expected: {verdict.expected}" if verdict.expected else ""
        pytest.fail("\n".join(filter(None, [verdict.reason, expected, verdict.detail])), pytrace=False)
