"""Whether a build is trusted: said by a matrix or the catalogue, and by neither of a recipe."""

from __future__ import annotations

from pathlib import Path

import pytest
from build_support import write_recipe

from harness.builds.catalogue import add_build
from harness.builds.declared import declared_build
from harness.builds.entry import BuildEntry
from harness.domain.errors import BadInput

WHEEL = {"fork": "llama.cpp", "wheel": "xllamacpp"}


def test_a_build_is_trusted_unless_somebody_says_otherwise() -> None:
    """In its own table."""
    assert declared_build("b", BuildEntry.model_validate(WHEEL)).trusted
    assert not declared_build("b", BuildEntry.model_validate({**WHEEL, "trusted": False})).trusted


@pytest.mark.parametrize(("kept", "said"), [(True, False), (False, True)])
def test_a_build_of_the_catalogue_is_trusted_where_both_say_so(kept: bool, said: bool) -> None:
    """The catalogue and the matrix: a matrix does not take back what its owner was warned of."""
    add_build("kept", BuildEntry.model_validate({**WHEEL, "trusted": kept}), {})
    assert not declared_build("b", BuildEntry.model_validate({"catalogue": "kept", "trusted": said})).trusted


def test_an_untrusted_build_has_no_recipe(tmp_path: Path) -> None:
    """Its commands would run with our rights."""
    recipe = write_recipe(tmp_path, tmp_path)
    with pytest.raises(BadInput, match="E-untrusted-recipe"):
        declared_build("b", BuildEntry.model_validate({"recipe": str(recipe), "trusted": False}))
