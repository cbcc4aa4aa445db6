"""Arms: ways of running, identified by everything that makes them what they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from harness.domain.build import Build
from harness.domain.canonical import digest, fields_of, id_part
from harness.domain.flags import Flags
from harness.domain.model import Model


@dataclass(frozen=True)
class Arm:
    """Build + model + flags + environment. Shared by its cases, so it has no slots: what is worked out of it is kept.

    Attributes:
        build: The build.
        model: The model.
        flags: The complete set of flags, every one explicit.
        environment: Sorted pairs of environment variables given to the engine.
        shown: Names of the flags and variables that the label shows; no part of the identity.
        named: Pairs of an axis and what its value is called, where several flags have one name; shown in the label, no
            part of the identity.
    """

    build: Build
    model: Model
    flags: Flags
    environment: tuple[tuple[str, str], ...] = ()
    shown: tuple[str, ...] = field(default=(), compare=False)
    named: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @cached_property
    def identity(self) -> str:
        """Hash of *all* declared parts. Computed from the types: a field added to them is a part of it at once.

        Only where a thing lies on one machine is left out, such as paths: the content key says what lies there.
        """
        parts = fields_of(self)
        parts["build"] = self.build.declared
        parts["model"], parts["flags"] = self.model.declared, fields_of(self.flags)
        del parts["shown"], parts["named"]
        return digest(parts)

    @cached_property
    def label(self) -> str:
        """Readable name inside a case id, e.g. ``ik+fa=1+rtr=0``."""
        values = self.flags.as_dict()
        settings = {**dict(self.environment), **values, **dict(self.named)}
        shown = [f"{id_part(name)}={id_part(str(settings[name]))}" for name in sorted(self.shown) if name in settings]
        return "+".join([id_part(self.build.name), *shown])
