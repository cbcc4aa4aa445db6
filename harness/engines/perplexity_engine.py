"""The engine of a build's own ``llama-perplexity``, for both forks: distributions at prompt positions, nothing else."""

from __future__ import annotations

from pathlib import Path

from harness.domain.build import Fork
from harness.engines.bench_argv import threads_of
from harness.engines.child import child_command
from harness.engines.embedded_events import child_failure, read_events
from harness.engines.engine import Command, Exit, Order, Report
from harness.engines.output_lines import asked_outputs, outputs_request
from harness.engines.own_program import OwnProgram, Program
from harness.engines.parse import first_failure
from harness.engines.programs import with_libraries
from harness.engines.served_engine import deadline_s, unfinished
from harness.engines.server_flags import server_argv, unsayable

NAME = "llama-perplexity"
PERPLEXITY = Program(
    name=NAME,
    # ik_llama.cpp takes the last two and lists only the first.
    listed=frozenset({"--kl-divergence", "--kl-divergence-base", "--save-all-logits"}),
    missing="E-perplexity-missing",
    hint=f"compile with the target {NAME}",
    wrong="E-not-llama-perplexity",
)
_CHILD = "harness.engines.perplexity"
_DEFAULT_BATCH = 2048


class PerplexityEngine(OwnProgram):
    """Reads outputs from ``llama-perplexity``.

    Args:
        build: A build given by path.
        help_text: What the program's ``--help`` printed, where that was read.
    """

    program = PERPLEXITY

    def refusal(self, order: Order) -> str:
        """Why the program cannot do it: it times nothing, and some flags cannot be said to it."""
        if order.workloads:
            return f"{NAME} times no {order.workloads[0].name}"
        if order.outputs is None:
            return "there is no prompt to evaluate"
        return unsayable(self._build.fork, order.arm.flags, self._options, NAME)

    def command(self, order: Order) -> Command:
        """A child of ours, told on standard input which program to run over which prompts.

        Args:
            order: One that ``refusal`` has nothing against.

        Raises:
            BadInput: If the build is not there or not executable.
        """
        executable = self._executable()
        request = {
            "argv": self._argv(executable, order),
            "environment": with_libraries(executable, dict(order.arm.environment)),
            "deadline_s": deadline_s(order.timeout_s),
            "batch": int(order.arm.flags.get("b") or _DEFAULT_BATCH),
            "outputs": outputs_request(order.outputs) if order.outputs else None,
        }
        return child_command(_CHILD, request)

    def read(self, order: Order, ended: Exit) -> Report:
        """Outputs and failure of one child; never raises."""
        events = read_events(ended.stdout)
        outputs, misshapen = asked_outputs(order.outputs, events.outputs)
        failure = first_failure(child_failure(ended, events), [*misshapen, *unfinished(events)], (), (), ended.stderr)
        return Report((), outputs, None, {}, failure)

    def asking_why(self, order: Order, ended: Exit) -> Command | None:  # noqa: ARG002 - the protocol's signature
        """Nothing to ask: the program logs while it runs."""
        return None

    def _argv(self, executable: Path, order: Order) -> list[str]:
        threads = str(threads_of(order))
        fixed = ("-fit", "off") if self._build.fork is Fork.LLAMA_CPP and self._knows("-fit") else ()
        flags = server_argv(self._build.fork, order.arm.flags, self._options)
        return [str(executable), "-m", str(order.model), "-t", threads, "-tb", threads, *fixed, *flags]

    def _knows(self, option: str) -> bool:
        return self._options is None or option in self._options
