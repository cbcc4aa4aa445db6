"""The text of an issue about one regression: our part, with a mark to find it by, and what people add below."""

from __future__ import annotations

import hashlib
import re

from harness.github.figures import change_cell, speeds_cell
from harness.github.night import Found
from harness.reporting.clean import capped
from harness.reporting.markdown import code, fenced
from harness.reporting.summary import verdict_words

_MARK = re.compile(r"<!-- moe-harness regression ([0-9a-f]{20}) -->")
_END = "<!-- moe-harness end -->"
_MOST_REASON = 1500
_MOST_DETAIL_BYTES = 8 * 1024
_MOST_TITLE = 200


def key_of(matrix: str, case: str) -> str:
    """What an issue is found again by: a digest, since a name from a journal could hold anything."""
    return hashlib.sha256(f"{matrix}\0{case}".encode()).hexdigest()[:20]


def marked_key(body: str) -> str:
    """The key in an issue's text; empty where it is none of ours."""
    found = _MARK.search(body)
    return found[1] if found else ""


def title_of(found: Found) -> str:
    """Stays the same from night to night."""
    return f"Regression: {code(found.verdict.case, _MOST_TITLE)}"


def body_of(found: Found, run: str, below: str = "") -> str:
    """The text while it is there.

    Args:
        found: The verdict.
        run: Markdown that names the run; ours, not a journal's.
        below: What people wrote under our part.
    """
    verdict = found.verdict
    node, matrix = code(verdict.node), code(found.matrix, 100)
    synthetic = (
        ["", "The weights are synthetic: speeds are approximate, content says nothing."] if verdict.synthetic else []
    )
    detail = ["", *fenced(capped(verdict.detail, _MOST_DETAIL_BYTES))] if verdict.detail else []
    return _whole(
        key_of(found.matrix, verdict.case),
        [
            f"**{verdict_words(verdict)}**: {code(verdict.case)}",
            "",
            code(verdict.reason, _MOST_REASON),
            "",
            "| t/s | change | node | matrix | seen last |",
            "|---|---|---|---|---|",
            f"| {speeds_cell(verdict)} | {change_cell(verdict)} | {node} | {matrix} | {run} |",
            *synthetic,
            *detail,
        ],
        below,
    )


def gone_body(found: Found, run: str, below: str) -> str:
    """The text once the case passes again."""
    verdict = found.verdict
    told = [f"**Gone**: {code(verdict.case)} passes in {run}.", "", code(verdict.reason, _MOST_REASON)]
    return _whole(key_of(found.matrix, verdict.case), told, below)


def duplicate_body(number: int) -> str:
    """The text of one that was opened twice. It has no mark: it is not found again."""
    return f"Duplicate of #{number}, opened by another run at the same time."


def below_of(body: str) -> str:
    """What people wrote under our part."""
    return body.replace("\r\n", "\n").partition(_END)[2].strip("\n")


def _whole(key: str, lines: list[str], below: str) -> str:
    ours = [
        f"<!-- moe-harness regression {key} -->",
        *lines,
        "",
        "`moe-harness github issues` keeps this part up to date. What you write below stays.",
        _END,
    ]
    return "\n".join([*ours, *(["", below] if below else [])]) + "\n"
