"""The JSON schema for editors."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from harness.planning.json_schema import matrix_schema

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
EXAMPLE = tomllib.loads(re.findall(r"```toml\n(.*?)```", (REFERENCE / "matrix.md").read_text(), flags=re.DOTALL)[0])


def test_the_published_copy_is_current() -> None:
    """Made again with: moe-harness plan --schema > docs/reference/matrix.schema.json."""
    published = json.loads((REFERENCE / "matrix.schema.json").read_text())
    assert published == matrix_schema(), "run: moe-harness plan --schema > docs/reference/matrix.schema.json"


def test_it_takes_the_example_and_refuses_slips() -> None:
    """As an editor does, with a library that knows nothing of us."""
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(matrix_schema())
    assert [error.message for error in validator.iter_errors(EXAMPLE)] == []
    slips = [
        {"flgs": {}},
        {"node_classes": {"c": {"min_gpu": 1}}},
        {"node_classes": {"c": {"no_gpu": 1}}},
        {"axes": {"a": [{"flags": {}}]}},
        {"exclude": [{"build_number": 5318}]},
        {"policy": {"blocks": "many"}},
    ]
    assert [slip for slip in slips if validator.is_valid({**EXAMPLE, **slip})] == []


def test_a_file_that_extends_another_may_leave_out_what_that_one_says() -> None:
    """An editor that asked for builds in every file would be switched off."""
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(matrix_schema())
    assert validator.is_valid({"extends": "base.toml", "flags": {"fa": 0}})
    assert not validator.is_valid({"name": "x", "flags": {"fa": 0}})
