"""What ``llama-bench --help`` tells: which options a build knows, and which fork it is of."""

from __future__ import annotations

import re

from harness.domain.build import Fork

_OPTION = r"-{1,2}[A-Za-z][\w-]*"
_OPTION_LINE = re.compile(rf"^[ \t]+({_OPTION}(?:,?[ \t]+{_OPTION})*)", re.MULTILINE)
_OF_IK = frozenset({"-rtr", "-fmoe", "-mla", "-amb", "-ser", "-gp", "-ger", "-thp"})
_OF_MAINLINE = frozenset(
    {"--prio", "--delay", "--poll", "--cpu-strict", "--progress", "--list-devices", "--no-warmup", "-nopo"}
)
"""Options that only the one fork ever had, from each fork's history: any of them decides."""


def help_flags(help_text: str) -> frozenset[str]:
    """The spellings of all options that a ``--help`` lists, e.g. ``-fmoe`` and ``--fused-moe``.

    Args:
        help_text: What the program printed; logs before it do no harm.
    """
    return frozenset(
        option for line in _OPTION_LINE.finditer(help_text) for option in re.findall(_OPTION, line.group(1))
    )


def identify_fork(help_text: str) -> Fork | None:
    """The fork whose ``llama-bench`` printed a ``--help``.

    Args:
        help_text: What the program printed.

    Returns:
        The fork; ``None`` where the text is of neither, or of both.
    """
    options = help_flags(help_text)
    ik, mainline = bool(options & _OF_IK), bool(options & _OF_MAINLINE)
    if ik == mainline:
        return None
    return Fork.IK_LLAMA_CPP if ik else Fork.LLAMA_CPP
