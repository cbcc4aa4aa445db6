"""Logits are reduced as they pass by: memory does not grow with the positions that are asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.engines.embedded.flags import FORKS
from harness.models import cache, cards

pytest.importorskip("xllamacpp")
pytest.importorskip("ik_llama_cpp")

VOCABULARY, POSITIONS, UBATCH = 32_000, 1_000, 64
MIB = 1024**2


@pytest.fixture(scope="module")
def wide_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One layer of the tiny mixture with a vocabulary so large that logits are what memory goes to."""
    folder = tmp_path_factory.mktemp("wide")
    packaged = Path(cards.__path__[0])
    card = json.loads((packaged / "tiny-moe.json").read_text(encoding="utf-8"))
    card["shape"]["layers"], card["tokenizer"]["size"] = 1, VOCABULARY
    (folder / "tiny-corpus.txt").write_bytes((packaged / "tiny-corpus.txt").read_bytes())
    (folder / "wide.json").write_text(json.dumps({**card, "name": "wide"}), encoding="utf-8")
    return cache.ensure_model(folder / "wide.json", "F16")


@pytest.mark.parametrize("fork", FORKS)
def test_a_thousand_positions_take_hardly_more_memory_than_sixty_four(child: Any, wide_model: Path, fork: str) -> None:
    """Held at once, the logits of all of them would be 122 MiB."""
    prompt = {"name": "long", "text": "one more thing in the hat. ", "tokens": POSITIONS}
    peaks = []
    for positions in (UBATCH, POSITIONS):
        plan = {"prompts": [prompt], "n_predict": 2, "positions": positions}
        result = child(fork, wide_model, loads={}, flags={"ub": UBATCH, "b": 2048}, outputs=plan)
        assert result.of("output")[0]["ranks"]["prefill"]["positions"] == positions
        peaks.append(result.of("done")[0]["peak_rss_bytes"])
    assert peaks[1] - peaks[0] < 60 * MIB
