"""The engine of a build's own ``llama-perplexity``, for both forks: distributions at prompt positions, nothing else."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import harness
from harness.domain.build import Build, Fork
from harness.domain.errors import BadInput
from harness.engines.bench_argv import threads_of
from harness.engines.embedded_engine import INSTALLED_UNDER
from harness.engines.embedded_events import child_failure, read_events
from harness.engines.engine import Command, Exit, Order, Report
from harness.engines.output_lines import asked_outputs, outputs_request
from harness.engines.parse import first_failure
from harness.engines.programs import beside_bench, checked_program, libraries_of, opaque_reason, with_libraries
from harness.engines.served_engine import deadline_s, unfinished
from harness.engines.server_flags import server_argv, server_help_options, unsayable

NAME = "llama-perplexity"
_CHILD = "harness.engines.perplexity"
_EVERY_ONE_HAS = frozenset({"--kl-divergence", "--kl-divergence-base", "--save-all-logits"})
"""Any of them will do: ik_llama.cpp takes the last two and lists only the first."""
_DEFAULT_BATCH = 2048


class PerplexityEngine:
    """Reads outputs from ``llama-perplexity``.

    Args:
        build: A build given by path.
        help_text: What the program's ``--help`` printed, where that was read.
    """

    def __init__(self, build: Build, help_text: str = "") -> None:
        self._build = build
        self._options = server_help_options(help_text) or None

    def informed(self, help_text: str) -> PerplexityEngine:
        """This engine, knowing what the program's ``--help`` printed."""
        return PerplexityEngine(self._build, help_text)

    def help_command(self, environment: Mapping[str, str] | None = None) -> Command:
        """The command that makes the program list its options.

        Raises:
            BadInput: If it is not there or not executable.
        """
        executable = self._executable()
        return Command((str(executable), "--help"), with_libraries(executable, environment or {}))

    def locate(self) -> Sequence[Path]:
        """The program, then the libraries of llama.cpp and ggml that lie beside it or in its library folders.

        Raises:
            BadInput: ``E-perplexity-missing``, ``E-build-not-executable``, ``E-build-not-a-program``,
                ``E-not-llama-perplexity``.
        """
        executable = self._executable()
        if self._options and not self._options & _EVERY_ONE_HAS:
            message = f"{executable} is no {NAME}: its --help lists no {' or '.join(sorted(_EVERY_ONE_HAS))}"
            raise BadInput("E-not-llama-perplexity", message, where=f"builds.{self._build.name}")
        return (executable, *libraries_of(executable))

    def opaque(self) -> str:
        """Why the located files do not tell what runs, if they do not."""
        return opaque_reason(self._executable())

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
        home = Path(harness.__file__).resolve().parent.parent
        request = {
            "argv": self._argv(executable, order),
            "environment": with_libraries(executable, dict(order.arm.environment)),
            "deadline_s": deadline_s(order.timeout_s),
            "batch": int(order.arm.flags.get("b") or _DEFAULT_BATCH),
            "outputs": outputs_request(order.outputs) if order.outputs else None,
        }
        return Command(
            (sys.executable, "-P", "-m", _CHILD),
            {} if home.name in INSTALLED_UNDER else {"PYTHONPATH": str(home)},
            json.dumps(request, allow_nan=False),
        )

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

    def _executable(self) -> Path:
        """The ``llama-perplexity`` beside the ``llama-bench`` that the build's path names, or in its folder.

        Raises:
            BadInput: ``E-perplexity-missing``, ``E-build-not-executable``, ``E-build-not-a-program``.
        """
        found = beside_bench(self._build, NAME)
        if found is None:
            message = f"no {NAME} at {Path(self._build.path).expanduser()}"
            hint = f"compile with the target {NAME}"
            raise BadInput("E-perplexity-missing", message, hint=hint, where=f"builds.{self._build.name}")
        return checked_program(self._build, found)
