"""The README's first command installs only what a run of the matrix needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ABSENT = ("coverage", "hypothesis", "lxml", "pexpect", "psycopg", "pytest_cov", "pytest_timeout", "selenium", "yaml")
RUN = f"""
import os, sys
sys.modules.update(dict.fromkeys({ABSENT}))
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
import pytest
plugins = ("harness.pytest_plugin", "xdist.plugin", "no:cacheprovider")
sys.exit(pytest.main(["-m", "moe", "--collect-only", "-q", *(f"-p{{name}}" for name in plugins)]))
"""


def test_a_matrix_of_this_checkout_runs_without_what_its_tests_need() -> None:
    done = subprocess.run([sys.executable, "-c", RUN], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "throughput/tiny-iq4xs/" in done.stdout
