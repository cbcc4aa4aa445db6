"""Distributions of scipy, loaded when the first of them is asked for.

A plan and a collection judge nothing: they are not to wait for scipy, nor to hold its memory.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType


@cache
def _scipy() -> ModuleType:
    return import_module("scipy.special")  # a tenth of the import time of scipy.stats


def stdtr(df: float, t: float) -> float:
    """Student's t distribution up to ``t``."""
    return float(_scipy().stdtr(df, t))


def stdtrit(df: float, p: float) -> float:
    """The t that Student's distribution has the share ``p`` below."""
    return float(_scipy().stdtrit(df, p))


def ndtri(p: float) -> float:
    """The value that the normal distribution has the share ``p`` below."""
    return float(_scipy().ndtri(p))


def betainc(a: float, b: float, x: float) -> float:
    """The beta distribution up to ``x``."""
    return float(_scipy().betainc(a, b, x))


def betaincinv(a: float, b: float, p: float) -> float:
    """The value that the beta distribution has the share ``p`` below."""
    return float(_scipy().betaincinv(a, b, p))


def chdtri(df: float, p: float) -> float:
    """The value that the chi-square distribution has the share ``p`` above."""
    return float(_scipy().chdtri(df, p))


def fdtrc(between: float, within: float, x: float) -> float:
    """The share of the F distribution above ``x``."""
    return float(_scipy().fdtrc(between, within, x))
