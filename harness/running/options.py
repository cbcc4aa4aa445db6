"""What a run is asked for, and the folder it reports into."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from harness.builds.known import KnownSources
from harness.domain.errors import BadInput
from harness.domain.node import NodeFacts
from harness.domain.policy import Policy
from harness.domain.sandboxing import Sandboxing
from harness.execution.executors import MakeExecutor, executor_factory
from harness.execution.inspecting import known_options, told_source
from harness.execution.node import probe_node
from harness.judging.stopping import SequentialStopping
from harness.planning.arms import builds_of
from harness.planning.load import find_matrix, load_matrix
from harness.planning.plan import Plan
from harness.planning.planner import make_plan
from harness.planning.seats import SeatsByBytes
from harness.reporting.journal import JOURNAL_NAME, JournalWriter, write_trouble
from harness.running.gate_choice import Chosen, choose_for_gate
from harness.running.golden_file import FOLDER, Goldens
from harness.running.known_spreads import KnownSpreads
from harness.running.known_tolerances import KnownTolerances
from harness.running.resuming import Resumption, copy_journal
from harness.running.sharding import Sharded, shard_of
from harness.running.spread_file import read_spreads, spreads_path
from harness.running.tolerance_file import tolerances_in, tolerances_path

DEFAULT_REPORTS = "moe-reports"
_LOCK_NAME = "run.lock"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a matrix run.

    Attributes:
        matrix: Name or path; ``None`` for the default one.
        executor: ``ray`` or ``local``.
        ray_address: Of a running cluster; empty embeds one.
        select: Patterns that choose cases before anything is parametrized.
        reports: Folder of journal, JUnit and summary.
        references: Folder of recorded outputs; ``None``: the one beside the matrix.
        gate: Policy of a merge gate, by which cases are chosen; ``None``: all are run.
        changed: List of changed paths for it; ``None``: everything is asked for.
        resume: Journal of a broken run to go on with, or its folder; ``None``: a new run.
        shard: Which part of the plan is run here; empty: all of it.
        sandboxing: Which engines run in a sandbox.
    """

    matrix: str | None
    executor: str
    ray_address: str
    select: tuple[str, ...]
    reports: Path
    references: Path | None = None
    gate: Path | None = None
    changed: Path | None = None
    resume: Path | None = None
    shard: str = ""
    sandboxing: Sandboxing = Sandboxing.AUTO

    def plan(self) -> Plan:
        """The plan of the matrix.

        Raises:
            BadInput: Whatever is wrong with the matrix or the selection.
        """
        return plan_matrix(self.matrix, self.select, elsewhere=bool(self.ray_address))

    def sharded(self, plan: Plan) -> Sharded | None:
        """The part of a plan that is run here; ``None``: all of it.

        Raises:
            BadInput: As of `shard_of`.
        """
        return shard_of(plan, self.shard) if self.shard else None

    def chosen(self, plan: Plan, known: KnownSpreads) -> Chosen | None:
        """What a merge gate has to measure of a plan; ``None``: no gate is asked for.

        Raises:
            BadInput: ``E-changed-without-gate``, or what is wrong with the policy or the list of changed paths.
        """
        if self.gate is not None:
            return choose_for_gate(plan, self.gate, self.changed, known)
        if self.changed is not None:
            hint = "give the policy whose [[paths]] say which cells they ask for: --moe-gate FILE"
            raise BadInput("E-changed-without-gate", "changed paths ask for nothing without a policy", hint=hint)
        return None

    def known_spreads(self) -> KnownSpreads:
        """What is known of spreads where it will run.

        Raises:
            HarnessError: If the file of known spreads is there and can't be read.
        """
        return known_spreads(elsewhere=bool(self.ray_address))

    def goldens(self) -> Goldens:
        """Where outputs are on record."""
        return goldens_of(self.matrix, self.references)

    def executor_factory(self, policy: Policy) -> MakeExecutor:
        """How to make the executor, once a job needs it.

        Args:
            policy: How strictly is judged, by which jobs end once they are decided.

        Raises:
            BadInput: If its name or address is wrong.
        """
        return executor_factory(self.executor, SequentialStopping(policy), self.ray_address, SeatsByBytes())


def plan_matrix(
    name: str | None, select: Sequence[str] = (), *, elsewhere: bool = False, nodes: Sequence[NodeFacts] = ()
) -> Plan:
    """Load a matrix, expand it, select.

    Nothing is run but the ``--help`` of builds that lie here, and their ``--version`` where a condition asks for it.

    Args:
        name: Name or path; ``None`` for the default one.
        select: Patterns over case ids.
        elsewhere: It will run on other machines: nothing is known of them yet, so every class is taken to fit.
        nodes: Descriptions of the machines that it is meant for, instead of this one.

    Raises:
        BadInput: Whatever is wrong with the matrix or the selection.
    """
    sources = KnownSources(told_source)
    matrix = load_matrix(find_matrix(name), sources)
    options = known_options(builds_of(matrix).values(), matrix.environment)
    fleet = nodes or (None if elsewhere else (probe_node(),))
    return make_plan(matrix, select, fleet, options, sources)


def known_spreads(*, elsewhere: bool = False) -> KnownSpreads:
    """What calibrations found on this machine; ``elsewhere``: on whatever known nodes a job's class has.

    Raises:
        HarnessError: If the file of known spreads, or of known tolerances, is there and can't be read.
    """
    file, tolerances = read_spreads(spreads_path()), tolerances_in(tolerances_path()).read()
    node = probe_node() if (file.nodes or tolerances.nodes) and not elsewhere else None
    return KnownSpreads(file, node, KnownTolerances(tolerances, node))


def goldens_of(matrix: str | None, folder: Path | None) -> Goldens:
    """Where the outputs are on record that a matrix asks for.

    Args:
        matrix: Name or path; ``None`` for the default one.
        folder: What was chosen; ``None``: the folder beside the matrix.

    Raises:
        BadInput: There is no such matrix.
    """
    given = [] if matrix is None else [matrix]
    chosen = [] if folder is None else ["--references", str(folder)]
    update = shlex.join(["moe-harness", "reference", "update", *given, *chosen])
    return Goldens(folder or find_matrix(matrix).parent / FOLDER, update)


def claim_reports(reports: Path, broken: Resumption | None = None) -> FileLock:
    """Take the folder of reports for one run: two at once would write into one journal.

    An earlier run's journal is kept under the time of its last line, but for one that is gone on with.

    Args:
        reports: The folder; made if it is not there.
        broken: The run to go on with; its journal is copied into the folder where it lies elsewhere.

    Returns:
        The lock. It goes with its process, however that ends.

    Raises:
        BadInput: ``E-reports-busy``, ``E-journal-unwritable``, or as of `copy_journal`.
        Infrastructure: If the disk does not let it.
    """
    lock = FileLock(reports / _LOCK_NAME)
    try:
        reports.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
        _keep_old_journal(reports / JOURNAL_NAME, broken)
        JournalWriter(reports).close()
    except Timeout:
        hint = "wait for its end, or choose another folder with --moe-reports"
        raise BadInput(
            "E-reports-busy", "another run reports into this folder", hint=hint, where=f"{reports}"
        ) from None
    except OSError as error:
        raise write_trouble(error, reports / JOURNAL_NAME) from error
    return lock


def _keep_old_journal(old: Path, broken: Resumption | None) -> None:
    if broken is None:
        _set_aside(old)
        return
    if not (old.exists() and old.samefile(broken.journal)):
        _set_aside(old)
    copy_journal(broken, old.parent)


def _set_aside(old: Path) -> None:
    if old.is_file() and old.stat().st_size:
        ended = datetime.fromtimestamp(old.stat().st_mtime, UTC)
        old.replace(old.with_name(f"{old.stem}-{ended:%Y%m%dT%H%M%S%f}{old.suffix}"))
