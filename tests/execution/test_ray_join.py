"""A cluster of one's own: started once more where a busy host was too slow, and only then."""

from __future__ import annotations

from typing import Any

import pytest
import ray

from harness.domain.errors import Infrastructure
from harness.execution.ray_join import embed

SLOW = "The current node timed out during startup. This could happen because some of the raylet failed to startup."


@pytest.mark.parametrize(
    ("said", "starts", "comes_up"),
    [([SLOW], 2, True), ([SLOW, SLOW], 2, False), (["no space left on device"], 1, False)],
)
def test_a_start_that_was_too_slow_is_tried_once_more(
    said: list[str], starts: int, comes_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[dict[str, Any]] = []

    def init(**settings: Any) -> None:
        begun.append(settings)
        if len(begun) <= len(said):
            raise RuntimeError(said[len(begun) - 1])

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    if comes_up:
        embed(num_cpus=1)
    else:
        with pytest.raises(Infrastructure, match=r"E-ray-start.*Ray did not start"):
            embed(num_cpus=1)
    assert [each["num_cpus"] for each in begun] == [1] * starts
