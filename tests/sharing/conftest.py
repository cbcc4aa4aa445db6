"""The builders of judging's tests serve here too."""

from __future__ import annotations

import sys
from pathlib import Path

for folder in ("judging", "explaining"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))
