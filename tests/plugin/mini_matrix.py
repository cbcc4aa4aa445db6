"""A small matrix on the real wheel: two arms, one contrast, one job."""

from __future__ import annotations

MINI = """
name = "mini"
[builds.ik]
fork = "ik_llama.cpp"
wheel = "ik-llama-cpp-python"
[models.tiny]
path = "{model}"
[flags]
fa = [0, 1]
[[workloads]]
pp = 32
[[workloads]]
tg = 4
[[contrasts]]
name = "fa"
factor = "fa"
baseline = 0
candidate = 1
expect = "report"
[[checks]]
kind = "outputs"
name = "answers"
contrasts = ["fa"]
prompts = ["Once upon a time there was a small test"]
n_predict = 4
positions = 8
[[checks]]
kind = "memory"
max_rss_mib = 4096.0
[policy]
warmup = 1
repetitions = 2
blocks = 4
burn_in = 1
timeout_s = 60.0
margin = 0.05
alpha = 0.001
"""
"""Two arms, nine cases: 4 floors, 2 contrasts, 1 output check, 2 memory limits; one job of 10 process starts."""

CASES = 9


def endless(text: str, blocks: int = 60) -> str:
    """The matrix as one whose contrasts are never decided, so that it runs until somebody ends it."""
    return (
        text.replace("blocks = 4", f"blocks = {blocks}")
        .replace("alpha = 0.001", "alpha = 1e-300")
        .replace("margin = 0.05", "margin = 1e-9")
    )
