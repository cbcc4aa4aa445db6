"""The command line that runs a program in bubblewrap: namespaces of its own, and of the host only what it is given.

What is inside sees no process, network, user's folder or temporary file of the host. All that it sees of the host's
disk is read-only; what it may write is memory, and is gone with it. The kernel ends all of it when bubblewrap ends, and
bubblewrap ends with the supervisor that started it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-net", "--unshare-uts")
_NOBODY = "65534"
_HOME = "/tmp"  # noqa: S108 - the sandbox's own, in memory
_MERGED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Links into ``/usr`` on most systems, folders on the others."""
_SYSTEM = (
    *("/nix/store", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime"),
    *("/etc/OpenCL/vendors", "/etc/vulkan", "/opt/cuda", "/opt/rocm"),
)
"""What programs and libraries are found by, beside ``/usr``; nothing of it is a secret anywhere."""
_TOPOLOGY = ("/sys/devices/system/cpu", "/sys/devices/system/node")
_OF_GPUS = ("/sys/devices", "/sys/bus/pci", "/sys/module", "/sys/class/drm", "/sys/class/kfd", "/sys/dev/char")
_NOT_PASSED = ("USER", "XDG_CACHE_HOME")


@dataclass(frozen=True, slots=True)
class Tool:
    """A bubblewrap that was seen to work on this host.

    Attributes:
        program: Its path.
        version: As it tells it, e.g. ``bubblewrap 0.8.0``.
        extras: Options that not every version or host knows and this one does.
    """

    program: str
    version: str
    extras: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What one program is run in.

    Attributes:
        tool: The bubblewrap.
        readable: Files and folders that it may read, at their places.
        hidden: Folders of the host that stay empty even where they lie in a folder of the system.
        devices: Device files and folders of GPUs.
        room_bytes: How much it may write into each of its temporary folders, which are memory.
    """

    tool: Tool
    readable: tuple[str, ...]
    hidden: tuple[str, ...]
    devices: tuple[str, ...]
    room_bytes: int

    @property
    def own_environment(self) -> Mapping[str, str]:
        """What bubblewrap itself gets: a library that a build brings must not be loaded outside."""
        return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}

    def limits(self) -> dict[str, int]:
        """Limits by the kernel's names: no core dumps, no larger file than there is room for."""
        return {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": self.room_bytes}

    def wrapped(self, argv: Sequence[str], environment: Mapping[str, str], cwd: str | None = None) -> tuple[str, ...]:
        """The command line.

        Args:
            argv: Program and arguments, as without a sandbox.
            environment: The complete environment; places of the user's own become places inside.
            cwd: Folder to run in, inside; ``None``: its temporary one.
        """
        return (
            *(self.tool.program, "--die-with-parent", *_NAMESPACES, "--unshare-cgroup-try", *self.tool.extras),
            *("--uid", _NOBODY, "--gid", _NOBODY, "--cap-drop", "ALL", "--hostname", "sandbox"),
            *self._system(),
            *("--proc", "/proc", "--dev", "/dev"),
            *(word for device in self.devices for word in ("--dev-bind", device, device)),
            *self._memory("/dev/shm"),  # noqa: S108 - the sandbox's own
            *("--remount-ro", "/dev"),
            *self._memory(_HOME),
            *(word for place in self.hidden if _in_the_system(place) for word in self._memory(place)),
            *(word for place in self.readable for word in ("--ro-bind", place, place)),
            *("--remount-ro", "/", "--chdir", cwd or _HOME, "--clearenv"),
            *(word for name, value in _inside(environment).items() for word in ("--setenv", name, value)),
            *("--", *argv),
        )

    def _system(self) -> Iterator[str]:
        yield from ("--ro-bind", "/usr", "/usr")
        for name in _MERGED:
            path = Path(name)
            if path.is_symlink():
                yield from ("--symlink", str(path.readlink()), name)
            elif path.is_dir():
                yield from ("--ro-bind", name, name)
        for name in (*_SYSTEM, *_TOPOLOGY, *(_OF_GPUS if self.devices else ())):
            yield from ("--ro-bind-try", name, name)

    def _memory(self, place: str) -> tuple[str, ...]:
        return ("--size", str(self.room_bytes), "--tmpfs", place)


def _in_the_system(place: str) -> bool:
    return not {"/usr", *_MERGED, *_SYSTEM}.isdisjoint(map(str, Path(place).parents))


def _inside(environment: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in environment.items() if name not in _NOT_PASSED}
    return {**kept, "HOME": _HOME, "TMPDIR": _HOME}
