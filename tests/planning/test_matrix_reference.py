"""The reference page says every key, and its example is a matrix."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from planning_support import node
from pydantic import BaseModel

from harness.builds import entry
from harness.domain.words import Kind
from harness.planning import schema
from harness.planning.load import load_matrix
from harness.planning.planner import make_plan

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "matrix.md").read_text(encoding="utf-8")
COMMAND_LINES = ("bench_line", "model_word", "node_files")
"""Modules that read what a command was given, and no matrix."""
EXAMPLE = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)[0]
TABLES: list[type[BaseModel]] = [
    schema.Matrix,
    entry.BuildEntry,
    entry.VariantEntry,
    entry.SourceEntry,
    entry.PatchEntry,
    schema.ModelEntry,
    schema.NodeClassEntry,
    schema.BundleEntry,
    schema.WhenEntry,
    schema.IncludeEntry,
    schema.ExcludeEntry,
    schema.ContrastEntry,
    schema.FactorEntry,
    schema.WorkloadEntry,
    schema.FloorEntry,
    schema.OutputsEntry,
    schema.PromptEntry,
    schema.MemoryEntry,
    schema.Policy,
    schema.TradeEntry,
]


@pytest.mark.parametrize("table", TABLES)
def test_every_key_is_in_the_reference(table: type[BaseModel]) -> None:
    """A key without a word about it is a bug of the page."""
    assert [key for key in table.model_fields if f"`{key}" not in PAGE and f"[{key}]" not in PAGE] == []


def test_the_example_has_every_key_of_the_file() -> None:
    """The example is complete: only 'extends' is commented out."""
    assert schema.Matrix.model_fields.keys() - tomllib.loads(EXAMPLE).keys() == {"extends"}
    policy = tomllib.loads(EXAMPLE)["policy"]
    assert policy.keys() == schema.Policy.model_fields.keys()
    without_default = ("minutes", "trades")
    shown = {key: value for key, value in policy.items() if key not in without_default}
    assert shown == {
        key: field.default for key, field in schema.Policy.model_fields.items() if key not in without_default
    }


def test_the_example_expands(tmp_path: Path) -> None:
    """It is sound, and every kind of check finds arms."""
    file = tmp_path / "example.toml"
    file.write_text(EXAMPLE)
    plan = make_plan(load_matrix(file), (), [node(gpus=1)])
    assert {case.case.kind for case in plan.cases} == set(Kind)


def test_every_slug_is_in_the_reference() -> None:
    """Slugs that planning raises are listed under Errors."""
    folder = Path(schema.__file__).parent
    planning = [file for file in folder.glob("*.py") if file.stem not in COMMAND_LINES]
    raised = {slug for file in planning for slug in re.findall(r'"(E-[a-z-]+)"', file.read_text())}
    assert raised
    assert [slug for slug in sorted(raised) if slug not in PAGE] == []


def _properties(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from node.get("properties", {})
        for value in node.values():
            yield from _properties(value)
    elif isinstance(node, list):
        for value in node:
            yield from _properties(value)


def test_editors_can_have_a_schema() -> None:
    """The JSON schema can be made and knows the keys, also those with values of several types."""
    made = schema.Matrix.model_json_schema()
    assert {"builds", "factor", "threads", "tokens_per_second", "node_class"} <= set(_properties(made))
    assert made["additionalProperties"] is False
