"""Tests that need a program which not every machine has: skipped with the reason, or failed where it is required."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

VARIABLE = "MOE_REQUIRE"


def missing(what: str, why: str) -> NoReturn:
    """End a test that lacks something.

    Args:
        what: What it needs, as ``MOE_REQUIRE`` names it, e.g. ``chromium``.
        why: What is missing.
    """
    if what in os.environ.get(VARIABLE, "").split(","):
        pytest.fail(f"{VARIABLE} names {what}: {why}", pytrace=False)
    pytest.skip(f"needs {what}: {why}")
