"""Fixtures for every test of this checkout; hooks live in the plugin."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny_model() -> Path:
    """The packaged tiny MoE in IQ4_XS, made once and kept in the cache."""
    from harness.models.cache import ensure_model  # noqa: PLC0415 - it brings numpy, which a collection does without

    return ensure_model("tiny-moe", "IQ4_XS")
