"""What three report actions read of a JUnit file, by rules of their sources, in code of our own.

Read of dorny/test-reporter 29672c52 (reporters java-junit and python-xunit), mikepenz/action-junit-report 305cd1f4 and
EnricoMi/publish-unit-test-result-action c9bbcabc. docs/reference/junit-actions.md says the same in words.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

OWN = "message"


@dataclass(frozen=True)
class Shown:
    """One case as a reader of the action's page sees it.

    Attributes:
        outcome: The action's word.
        title: Heading of the annotation, or of the line.
        first: First line that is told of it; empty where nothing is.
        more: What has to be unfolded.
        seconds: Time.
    """

    outcome: str
    title: str
    first: str
    more: str
    seconds: float


def dorny(path: Path) -> list[Shown]:
    """``failure`` before ``error``, the first of them; ``type: message``, then the text. Of a skipped one its name."""
    shown = []
    for suite in ET.parse(path).getroot().findall("testsuite"):  # noqa: S314 - our own file
        for case in suite.findall("testcase"):
            group = "" if case.attrib["classname"] == suite.attrib["name"] else f"{case.attrib['classname']} ► "
            failed = case.find("failure") if case.find("failure") is not None else case.find("error")
            outcome = "failed" if failed is not None else "skipped" if case.find("skipped") is not None else "success"
            first = more = ""
            if failed is not None:
                kind = failed.get("type")
                first = (f"{kind}: " if kind else "") + failed.attrib[OWN]
                more = failed.text or ""
            title = f"{suite.attrib['name'].strip()} ► {group}{case.attrib['name'].strip()}"
            shown.append(Shown(outcome, title, first.split("\n")[0], more, float(case.attrib["time"])))
    return shown


def mikepenz(path: Path) -> list[Shown]:
    """The last level of the class name stands before the name; the message, else two lines of text, else the name."""
    shown = []
    for case in ET.parse(path).getroot().iter("testcase"):  # noqa: S314 - our own file
        issues = [*case.findall("failure"), *case.findall("error")]
        skipped = case.find("skipped") is not None
        outcome = "skipped" if skipped else "failure" if issues else "success"
        name = case.attrib["name"]
        last = (case.get("classname") or name).split(".")[-1]
        text = (issues[0].text or "").strip() if issues else ""
        told = (issues[0].get(OWN) if issues else "") or "\n".join(text.split("\n")[:2]) or name
        seconds = float(case.get("time", "0"))
        shown.append(
            Shown(outcome, name if last == name else f"{last}.{name}", told.strip().split("\n")[0], text, seconds)
        )
    return shown


def enricomi(path: Path) -> list[Shown]:
    """Error over failure over pass over skipped; the message is left out where the text begins with it."""
    shown = []
    for case in ET.parse(path).getroot().iter("testcase"):  # noqa: S314 - our own file
        outcome = next((tag for tag in ("error", "failure", "skipped") if case.find(tag) is not None), "success")
        found = case.find(outcome)
        message = (found.get(OWN) or "") if found is not None else ""
        text = (found.text or "") if found is not None else ""
        told = [text] if " ".join(text.split()).startswith(" ".join(message.split())) else [message, text]
        raw = "\n".join(each.rstrip() for each in [*told, case.findtext("system-out", "")] if each.strip())
        title = f"{case.attrib['name']} ({case.attrib['classname']})"
        quiet = outcome in {"success", "skipped"}
        first = "" if quiet else raw.split("\n")[0]
        shown.append(Shown(outcome, title, first, "" if quiet else raw, float(case.attrib["time"])))
    return shown
