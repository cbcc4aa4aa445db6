"""Faults of ``[[checks]]``, each at its key."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning_support import CONTRAST, assert_fault


@pytest.mark.parametrize(
    ("text", "slug", "where", "message", "hint"),
    [
        pytest.param(
            "[[checks]]\nkind = 'memory'\nmax_rss_mib = 5.0\nwhre = 1",
            "E-matrix-invalid",
            "m.toml: checks[0].whre",
            "unknown key 'whre'",
            "did you mean 'where'?",
            id="key of a check",
        ),
        pytest.param(
            "[[checks]]\nkind = 'flor'",
            "E-matrix-invalid",
            "m.toml: checks[0].kind",
            "unknown kind 'flor'",
            "did you mean 'floor'?",
            id="kind of a check",
        ),
        pytest.param(
            "[[checks]]\ntokens_per_second = 5.0",
            "E-matrix-invalid",
            "m.toml: checks[0].kind",
            "the key is missing",
            "known: floor, memory, outputs",
            id="check without kind",
        ),
        pytest.param(
            CONTRAST + "[[checks]]\nkind = 'outputs'\nname = 'o'\nprompts = ['p']\ncontrasts = ['c']\nfactor = 'fa'",
            "E-matrix-invalid",
            "m.toml: checks[0]",
            "takes either 'contrasts' or 'factor', 'baseline', 'candidate' and 'where'",
            "",
            id="outputs said twice",
        ),
        pytest.param(
            "[[checks]]\nkind = 'outputs'\nname = 'o'\nprompts = ['p']\nfactor = 'fmo'\nbaseline = 0\ncandidate = 1",
            "E-unknown-flag",
            "m.toml: checks[0].factor",
            "unknown flag 'fmo'",
            "did you mean 'fmoe'?",
            id="factor of outputs",
        ),
        pytest.param(
            "[[checks]]\nkind = 'outputs'\nname = 'o'\nprompts = ['p']",
            "E-matrix-invalid",
            "m.toml: checks[0]",
            "needs 'contrasts', or all of 'factor', 'baseline' and 'candidate'",
            "",
            id="outputs of nothing",
        ),
        pytest.param(
            CONTRAST + "[[checks]]\nkind = 'outputs'\nname = 'o'\nprompts = ['p']\ncontrasts = ['d']",
            "E-unknown-contrast",
            "m.toml: checks[0].contrasts",
            "unknown contrast 'd'",
            "known: c",
            id="contrast",
        ),
        pytest.param(
            CONTRAST + '[[checks]]\nkind = "outputs"\nname = "o"\ncontrasts = ["c"]\nprompts = ["a", "b\\u0000"]',
            "E-matrix-invalid",
            "m.toml: checks[0].prompts[1]",
            "a prompt can't hold a null character",
            "",
            id="prompt with a null character",
        ),
    ],
)
def test_a_fault_of_checks_is_named(  # noqa: PLR0917 - one parameter for each part of the error
    tmp_path: Path, text: str, slug: str, where: str, message: str, hint: str
) -> None:
    """Slug, place, message and hint are exactly right."""
    assert_fault(tmp_path, text, slug, where, message, hint)
