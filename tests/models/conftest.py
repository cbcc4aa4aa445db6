"""Cards and files for the tests of models."""

from __future__ import annotations

from pathlib import Path

import pytest
from micro_model import micro_card, need_quantizer, write_card_model

from harness.models.cache import ensure_model
from harness.models.card import Card


@pytest.fixture
def micro() -> Card:
    """The micro card."""
    return micro_card()


@pytest.fixture(scope="session")
def micro_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The micro card's F16 file; not to be changed."""
    return write_card_model(micro_card(), tmp_path_factory.mktemp("micro") / "micro.gguf")


@pytest.fixture(scope="session")
def tiny_f16() -> Path:
    """The tiny MoE in F16, from the node's cache."""
    return ensure_model("tiny-moe", "F16")


@pytest.fixture(scope="session")
def tiny_iq4() -> Path:
    """The tiny MoE in IQ4_XS, from the node's cache; needs the quantizer of the ik wheel."""
    need_quantizer()
    return ensure_model("tiny-moe", "IQ4_XS")
