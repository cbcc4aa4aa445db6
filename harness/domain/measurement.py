"""Measurements: what one engine process reported, raw, with what was discarded and why."""

from __future__ import annotations

import math
from dataclasses import dataclass

from harness.domain.failure import Failure
from harness.domain.load_facts import LoadFacts
from harness.domain.outputs import Output

NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Samples:
    """The repetitions of one workload inside one process.

    Attributes:
        workload: The workload's name.
        tokens: Tokens inside the timed part of a repetition.
        all_ns: Every repetition's time in nanoseconds, in order.
        discarded: How many of the first were warm-up and are not judged.
    """

    workload: str
    tokens: int
    all_ns: tuple[int, ...]
    discarded: int

    @property
    def kept_ns(self) -> tuple[int, ...]:
        """The repetitions that are judged."""
        return self.all_ns[self.discarded :]


@dataclass(frozen=True, slots=True)
class Step:
    """One process start in a job's schedule.

    Attributes:
        arm: Index of the arm in the job.
        block: Index of the block (for two arms: of the pair); -1 for the burn-in, which is not scored.
        outputs: Whether this process also answers the prompts.
        apart: Whether it does nothing else, with another program of the build than the one that times: of the arm it
            tells the outputs alone, neither speed nor memory nor what the timing program is.
    """

    arm: int
    block: int
    outputs: bool = False
    apart: bool = False

    @property
    def scored(self) -> bool:
        """Burn-in processes are run and recorded, and not judged."""
        return self.block >= 0


@dataclass(frozen=True, slots=True)
class GpuState:
    """One visible GPU around and during one process, sampled about once a second. ``None``: the driver does not tell.

    Attributes:
        uuid: Stable id of the device.
        driver: Driver version when the process started.
        used: Whether the engine held memory on it.
        samples: How often it was looked at while the engine ran.
        sm_mhz: Median clock of the multiprocessors while they were busy.
        memory_mhz: Median clock of the memory while they were busy.
        performance_state: Best state reached, 0 is the fastest.
        power_limit_w: Enforced power limit when the process started, watts.
        power_w: Highest draw seen, watts.
        temperature_c: Highest temperature seen, degrees Celsius.
        slowdowns: Why clocks were held down, every reason seen, sorted: the driver's words, e.g.
            ``hw_thermal_slowdown``, ``sw_power_cap``.
        memory_before_bytes: Memory in use before the engine started.
        memory_peak_bytes: Most memory in use while it ran, others' included.
        foreign_processes: Most other processes that computed on it at once.
    """

    uuid: str
    driver: str
    used: bool
    samples: int
    sm_mhz: float | None = None
    memory_mhz: float | None = None
    performance_state: int | None = None
    power_limit_w: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    slowdowns: tuple[str, ...] = ()
    memory_before_bytes: int | None = None
    memory_peak_bytes: int | None = None
    foreign_processes: int = 0


@dataclass(frozen=True, slots=True)
class Conditions:
    """The state of the machine around one process. ``None``: not known, e.g. not told by this kernel.

    Attributes:
        niceness: Niceness the engine ran at.
        cpus: Cores it was pinned to; empty where it was not.
        threads: Compute threads it was given.
        load_before: One-minute load average before it started.
        numa_nodes: NUMA nodes of the cores that it could run on. Memory is not bound: the kernel's first choice is the
            node of the core that touches it.
        governor: Frequency governor of these cores, or ``unknown``.
        mhz: Median over time of these cores' mean clock; on a virtual machine the nominal one.
        throttled: Share of the time for which these cores were throttled for heat or power.
        huge_pages: The kernel's setting of transparent huge pages, e.g. ``madvise``, or ``unknown``.
        model_cached: Share of the model file that was in the page cache when it started.
        foreign_load: Share of these cores' time that other work took, the harness and the kernel included.
        steal: Share of these cores' time that the hypervisor gave to others.
        queue_wait_s: Thread seconds for which the engine was ready to run and waited for a core, up to the last look at
            it: a little low.
        involuntary_switches: How often a thread of the engine lost its core to another.
        major_faults: Page faults of the engine that had to be read from a disk.
        swapped_bytes: Memory that the whole machine swapped in and out meanwhile.
        gpus: Visible GPUs.
        gpu_telemetry: Why ``gpus`` is empty although there are some; empty otherwise.
        sandbox: What the engine ran in, e.g. ``bubblewrap 0.8.0``; empty where it ran in none.
    """

    niceness: int
    cpus: tuple[int, ...]
    threads: int
    load_before: float
    numa_nodes: tuple[int, ...] = ()
    governor: str = "unknown"
    mhz: float | None = None
    throttled: float | None = None
    huge_pages: str = "unknown"
    model_cached: float | None = None
    foreign_load: float | None = None
    steal: float | None = None
    queue_wait_s: float | None = None
    involuntary_switches: int | None = None
    major_faults: int | None = None
    swapped_bytes: int | None = None
    gpus: tuple[GpuState, ...] = ()
    gpu_telemetry: str = ""
    sandbox: str = ""


@dataclass(frozen=True, slots=True)
class ProcessRun:
    """One engine process: fact, not opinion.

    Attributes:
        step: Its place in the schedule.
        content_key: Hash of what really ran (model bytes, executable, libraries, flags); empty if it never got so far.
        samples: One entry per workload.
        outputs: One entry per prompt, where asked.
        wall_s: From start to exit, seconds.
        load_s: Loading the model, seconds; ``None`` where the engine does not say.
        max_rss_bytes: Peak resident memory.
        conditions: The state of the machine.
        engine: What the engine said of itself: version, libraries, commit.
        failure: What went wrong, if anything; complete samples that came before it are kept.
        load: What its log says of loading; of burn-in processes alone, for what logs is not timed.
    """

    step: Step
    content_key: str
    samples: tuple[Samples, ...]
    outputs: tuple[Output, ...]
    wall_s: float
    load_s: float | None
    max_rss_bytes: int
    conditions: Conditions
    engine: dict[str, str]
    failure: Failure | None = None
    load: LoadFacts | None = None

    def samples_of(self, workload: str) -> Samples | None:
        """The samples of a workload, if this process has them."""
        return next((entry for entry in self.samples if entry.workload == workload), None)


def prompt_fact(profile: str) -> str:
    """Under which name a process says in ``ProcessRun.engine`` into which tokens it cut a profile's prompt."""
    return f"prompt[{profile}]"


def is_plausible_ns(value: float) -> bool:
    """A time can be judged only if it is a positive finite number."""
    return math.isfinite(value) and value > 0
