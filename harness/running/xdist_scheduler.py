"""xdist scheduling by job: the cases of one job go to one worker, so that the job runs once."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

_PARAMETERS = re.compile(r"\[(.*)\]", re.DOTALL)


class JobScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist is untyped
    """Like ``--dist loadgroup``, whose own groups get lost with pytest 9.2 (it renames items, xdist 3.8 cannot).

    Args:
        config: Of the controller.
        log: As xdist gives it.
        groups: Case id to job id.
    """

    def __init__(self, config: pytest.Config, log: Producer | None, groups: Mapping[str, str]) -> None:
        super().__init__(config, log)
        self._groups = groups

    def _split_scope(self, nodeid: str) -> str:
        """The job of a case; every other item is a scope of its own."""
        found = _PARAMETERS.search(nodeid)
        return self._groups.get(found.group(1), nodeid) if found else nodeid
