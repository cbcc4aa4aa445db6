"""One Chromium for all tests of pages, without a network."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from requiring import missing
from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

sys.path.insert(0, str(Path(__file__).parents[1] / "judging"))

_SWITCHES = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,1000"),
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run"),
)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chrome]:
    """The distribution's Chromium and its driver: nothing looks for another one or fetches it."""
    programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    if absent := [name for name, path in programs.items() if path is None]:
        missing("chromium", f"no {' and no '.join(absent)} in PATH (Debian: chromium, chromium-driver)")
    options = Options()
    options.binary_location = str(programs["chromium"])
    for switch in _SWITCHES:
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = Chrome(options=options, service=Service(programs["chromedriver"]))
    try:
        browser.set_script_timeout(90)
        yield browser
    finally:
        browser.quit()
