"""Write the flag reference from the engines' tables: ``python tests/docs/flag_page.py > docs/reference/flags.md``."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from harness.domain.build import Fork, Tool
from harness.engines.flag_spec import FlagSpec
from harness.engines.flags import specs

_HEAD = """# Flags

Flags have one name in a matrix, whatever a fork or a tool calls them, and every one is passed explicitly: defaults
moved in both forks. What a build does not know makes its case `unsupported`. *Default* is the value of an arm that does
not say the flag; *wheel* says whether the embedded engine takes it. *Logits* says what another value does to them where
nothing is broken. Where a flag must *change* them, outputs that are equal to the bit are *inert*: it does nothing.
"""
_COLUMNS = """| flag | meaning | values | default | `llama-bench` | wheel | logits |
|---|---|---|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    return _HEAD + "".join(f"\n{section}" for fork in Fork for section in _fork(fork))


def _fork(fork: Fork) -> Iterator[str]:
    yield (
        f"## {fork}\n\n{_COLUMNS}"
        + "".join(
            _row(spec) for _, spec in sorted({**specs(fork, Tool.LLAMA_BENCH), **specs(fork, Tool.EMBEDDED)}.items())
        )
    )


def _row(spec: FlagSpec) -> str:
    options = ", ".join(f"`{option}`" for option in (spec.spellings[0].options if spec.spellings else ())) or "-"
    cells = (
        f"`{spec.name}`",
        spec.meaning,
        spec.expected,
        f"`{spec.default}`",
        options,
        "yes" if spec.embedded else "no",
        spec.numbers,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
