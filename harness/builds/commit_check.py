"""An engine whose rows must tell the commit that was said: some programs tell it nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.builds.provenance import commit_differs
from harness.domain.failure import Failure, FailureKind
from harness.engines.engine import Command, Engine, Exit, Order, Report


@dataclass(frozen=True, slots=True)
class CommitChecked:
    """An engine that fails where it tells another commit.

    Attributes:
        engine: The engine.
        commit: The commit, or its beginning.
    """

    engine: Engine
    commit: str

    def locate(self) -> Sequence[Path]:
        """As the engine."""
        return self.engine.locate()

    def opaque(self) -> str:
        """As the engine."""
        return self.engine.opaque()

    def refusal(self, order: Order) -> str:
        """As the engine."""
        return self.engine.refusal(order)

    def command(self, order: Order) -> Command:
        """As the engine."""
        return self.engine.command(order)

    def read(self, order: Order, ended: Exit) -> Report:
        """As the engine; rows of another commit are no measurement of this build."""
        report = self.engine.read(order, ended)
        told = report.engine.get("build_commit", "").split("-")[0].lower()
        known = bool(told) and all(digit in "0123456789abcdef" for digit in told)
        if report.failure is not None or not known or not commit_differs(self.commit, told):
            return report
        message = f"build '{order.arm.build.name}': commit {self.commit} was said, its rows are of {told}"
        return replace(report, rows=(), failure=Failure(FailureKind.ECHO_MISMATCH, message, "E-build-mismatch"))

    def asking_why(self, order: Order, ended: Exit) -> Command | None:
        """As the engine."""
        return self.engine.asking_why(order, ended)
