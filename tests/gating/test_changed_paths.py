"""Changed paths as git lists them, and what they ask for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from gate_support import policy

from harness.domain.errors import BadInput
from harness.gating.changed import asked_by, is_named, read_changed, read_changed_file
from harness.gating.choosing import Offer, spend


@pytest.mark.parametrize("separator", [(), ("-z",)])
def test_what_git_lists_is_read_whatever_the_names(tmp_path: Path, separator: tuple[str, ...]) -> None:
    """Real git quotes what is not plain, unless it separates by null characters."""
    names = sorted(["src/a.c", "häß/ü.c", 'with "quotes".md', "tab\there", "back\\slash", "line\nbreak", " spaced "])

    def git(*arguments: str) -> bytes:
        config = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        command = ["git", *config, *arguments]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True).stdout

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "one")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    git("add", ".")
    git("commit", "-q", "-m", "two")
    listed = git("diff", "--name-only", *separator, "HEAD~1")
    assert sorted(read_changed(listed, "list")) == names


def test_an_empty_or_missing_list_is_bad_input(tmp_path: Path) -> None:
    """A comparison that went wrong lists nothing; that must not read as nothing to do."""
    with pytest.raises(BadInput, match="E-changed-empty"):
        read_changed(b"\n", "list")
    with pytest.raises(BadInput, match="E-changed-unreadable"):
        read_changed_file(tmp_path / "none")


@pytest.mark.parametrize(
    ("patterns", "named"),
    [
        (["src/*.c"], {"src/a.c"}),
        (["src/**"], {"src/a.c", "src/deep/b.c"}),
        (["src/"], {"src/a.c", "src/deep/b.c"}),
        (["**/*.md"], {"README.md", "docs/x.md"}),
        (["*.md"], {"README.md"}),
        (["**", "!**/*.md"], {"src/a.c", "src/deep/b.c"}),
        (["**", "!**/*.md", "README.md"], {"src/a.c", "src/deep/b.c", "README.md"}),
        (["src/?.c"], {"src/a.c"}),
        (["src/a.[ch]"], set()),
    ],
)
def test_patterns_are_those_of_workflow_filters(patterns: list[str], named: set[str]) -> None:
    paths = ["README.md", "docs/x.md", "src/a.c", "src/deep/b.c"]
    assert {path for path in paths if is_named(path, patterns)} == named


def test_rows_say_which_cells_paths_ask_for_and_the_rest_is_named() -> None:
    rules = policy(paths=[{"paths": ["src/**"], "cells": ["pp*"]}, {"paths": ["docs/**"], "cells": []}])
    asked = asked_by(rules, ["src/a.c", "docs/x.md", "new/b.c"])
    assert (asked.patterns, asked.asking, asked.unlisted) == ((("pp*",),), ("src/a.c",), ("new/b.c",))
    assert not asked_by(rules, ["docs/x.md", "new/b.c"]).needed


def test_unlisted_paths_can_ask_for_everything_and_without_rows_all_do() -> None:
    rules = policy(unlisted="all", paths=[{"paths": ["docs/**"], "cells": []}])
    assert asked_by(rules, ["docs/x.md", "new/b.c"]).asking == ("new/b.c",)
    assert not asked_by(rules, ["docs/x.md"]).needed
    assert asked_by(policy(), ["docs/x.md"]).needed


def offer(job: str, minutes: float | None, rank: int = 2, node: str = "any") -> Offer:
    return Offer(job, node, rank, minutes)


def test_what_may_block_comes_first_and_of_alike_the_shortest() -> None:
    spent = spend([offer("shadow", 1, 0), offer("long", 8), offer("short", 3), offer("other", 4)], 10)["any"]
    assert spent.taken == {"short", "other", "shadow"}
    assert (spent.left, spent.minutes) == ({"long": 3}, 8)


def test_each_node_class_has_the_whole_budget() -> None:
    spent = spend([offer("a", 8), offer("b", 8, node="gpu")], 10)
    assert [each.taken for each in spent.values()] == [{"a"}, {"b"}]


def test_jobs_of_which_nobody_knows_what_they_take_share_what_is_left() -> None:
    spent = spend([offer("a", 4), offer("b", None), offer("c", None), offer("d", None, 0)], 10)["any"]
    assert spent.taken == {"a", "b", "c"}
    assert (spent.limit, spent.minutes, spent.left) == (3, 10, {"d": 0})


def test_without_a_budget_everything_is_run() -> None:
    spent = spend([offer("a", 400), offer("b", None)], None)["any"]
    assert (spent.taken, spent.limit, spent.minutes) == ({"a", "b"}, None, None)
