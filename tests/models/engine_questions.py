"""Ask a wheel about a model, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from micro_model import child_environment

PROBE = Path(__file__).with_name("engine_probe.py")


def ask(fork: str, model: Path, request: dict[str, Any], save: Path) -> dict[str, Any]:
    """The answer of ``engine_probe.py``, with the ``logits`` of the prefill."""
    ended = subprocess.run(
        [sys.executable, str(PROBE), fork, str(model)],
        input=json.dumps({**request, "save": str(save)}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=child_environment(),
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer | {"logits": np.load(save).astype(np.float64)}


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Logarithms of probabilities, row by row."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
