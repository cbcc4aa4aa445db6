"""Every command of a step that may print what others wrote is kept quiet, whichever workflow it is in."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from steps import GITHUB, action, workflow

NAMES = (*sorted(path.name for path in (GITHUB / "workflows").glob("*.yml")), "action.yml")
OURS = frozenset(
    (
        *("[", "[[", "break", "case", "echo", "exit", "for", "git", "mkdir", "printf", "rm", "sed", "sha256sum"),
        *("shopt", "tee", "test", "told", "true"),
    )
)
"""Programs and words of the shell that print what we wrote, as they are called here; others are to be kept quiet."""
KEYWORDS = frozenset({"if", "elif", "while", "then", "else", "do", "done", "fi", "!", "{", "}", "esac"})
INSTALLS = re.compile(r"(-m venv|pip\"? install|^gh (api|run)\b)")
"""They print names of packages, and GitHub's own answers."""


def scripts(name: str) -> Iterator[str]:
    if name == "action.yml":
        steps = action()["runs"]["steps"]
    else:
        steps = [step for job in workflow(name)["jobs"].values() for step in job["steps"]]
    yield from (step["run"] for step in steps if "run" in step)


def commands(script: str) -> Iterator[str]:
    """The commands of a script, one by one; what is put into a variable is none of them."""
    text = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("#"))
    text = re.sub(r"'[^']*'", "'q'", re.sub(r"\\\n\s*", " ", text))
    previous = ""
    while previous != text:  # from the inside out
        previous, text = text, re.sub(r"\$\([^()]*\)", "X", text)
    text = re.sub(r"\w+\+?=\([^()]*\)", "", text)
    for part in re.findall(r"""(?:[^";|&\n]|"[^"]*"|(?<=>)&)+""", text):
        words = [word for word in re.findall(r"""(?:[^"\s]|"[^"]*")+""", part) if not re.fullmatch(r"\w+=.*", word)]
        while words and (words[0] in KEYWORDS or re.fullmatch(r"""(\w|\*)+\)|\w+\(\)""", words[0])):
            del words[0]
        if words and not re.match(r"[<>)]", words[0]):
            yield " ".join(words)


def _is_quiet(command: str) -> bool:
    program = command.split(maxsplit=1)[0].strip('"')
    if program.endswith("/quiet.sh") or program in OURS or INSTALLS.search(command):
        return True
    if re.search(r" 2>>? ?\S+", command):
        return " github annotations " in command or re.search(r" >>? ?\S+", command) is not None
    return False


def loud(script: str) -> list[str]:
    """The commands whose words the runner would take for its own; names of files that were found are others', too."""
    names = re.findall(r"for (\w+) in \"\$\{", script)
    named = re.compile("|".join(rf"^(echo|printf) .*\$\{{?{name}\b" for name in names) or "$^")
    return [command for command in commands(script) if named.search(command) or not _is_quiet(command)]


@pytest.mark.parametrize("name", NAMES)
def test_no_step_prints_what_others_wrote(name: str) -> None:
    assert [command for script in scripts(name) for command in loud(script)] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_command_that_is_not_kept_quiet_is_found(name: str) -> None:
    """Planted: the wrapper taken away, from one command after the other."""
    found = 0
    for script in scripts(name):
        for wrapper in re.finditer(r"\S*quiet\.sh\"? ", script):
            assert loud(script[: wrapper.start()] + script[wrapper.end() :])
            found += 1
    assert found


@pytest.mark.parametrize(
    "line",
    [
        "moe-harness history import night/*/journal.jsonl",
        "moe-harness junit merge night.xml night/*/junit.xml",
        '"$moe" gate moe-reports --format json > decision.json || code=$?',
        'moe-harness github summary night >> "$GITHUB_STEP_SUMMARY"',
        "if ! cat night/report.txt; then exit 1; fi",
        "true && tail -n 1 made",
    ],
)
def test_new_steps_are_seen(line: str) -> None:
    assert loud(line)
