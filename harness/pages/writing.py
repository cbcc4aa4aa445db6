"""All reports of a run. Template engine and plotting library are loaded once a page is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from harness.history.series import Series
from harness.reporting.projections import write_projections
from harness.reporting.state import JournalState

PAGE_NAME = "report.html"

Nights: TypeAlias = Mapping[str, Sequence[Series]]


def write_reports(state: JournalState, folder: Path, nights: Nights = MappingProxyType({})) -> None:
    """Write all that is made of a journal: JUnit, summary and page.

    Args:
        state: The journal, read.
        folder: Where to; made if it is not there.
        nights: What a history has on its cells, by case id, for the page.

    Raises:
        Infrastructure: If a file cannot be written.
    """
    write_projections(state, folder)
    write_page([state], folder, nights)


def write_page(states: Sequence[JournalState], folder: Path, nights: Nights = MappingProxyType({})) -> None:
    """Write ``report.html``.

    Args:
        states: The journals that are shown as one run, read.
        folder: Where to; made if it is not there.
        nights: What a history has on their cells, by case id.

    Raises:
        Infrastructure: If it cannot be written.
    """
    page = import_module("harness.pages.page")
    junit = import_module("harness.reporting.junit")
    junit.write_whole(folder / PAGE_NAME, page.report_page(states, nights).encode())
