"""The matrix file as a JSON schema, for editors that complete and check TOML."""

from __future__ import annotations

from typing import Any

from harness.planning.schema import Matrix

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def matrix_schema() -> dict[str, Any]:
    """Every key with its type. What can't be said in a schema, such as names that must be declared, ``plan`` checks."""
    made = Matrix.model_json_schema()
    required = made.pop("required")
    # A file that extends another one may leave out what that one says.
    return {"$schema": DIALECT, **made, "title": "moe-harness matrix", "anyOf": [_needs(["extends"]), _needs(required)]}


def _needs(keys: list[str]) -> dict[str, list[str]]:
    return {"required": keys}
