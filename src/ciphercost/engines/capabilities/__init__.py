"""capabilities: what some servers can do beyond what every engine does, one file each.

An engine inherits the capabilities that it has and no others:

    class Postgresql(Found, HasTls, TakesUrl, OwnSchema, StoresData, …)

A caller that can do without asks `isinstance(engine, HasTls)`. One that can't writes `HasTls.of(engine)`.
"""

from __future__ import annotations

from typing import ClassVar, Self

from ciphercost.engines import Engine
from ciphercost.model.errors import UsageError


class Capability(Engine):
    """An engine that can do something more. Subclasses have nothing but what belongs to that one thing."""

    missing: ClassVar[str]
    """What an engine without it lacks, to follow its name in an error message."""

    @classmethod
    def of(cls, engine: Engine) -> Self:
        """The engine, which must have this capability. Raises UsageError."""
        if isinstance(engine, cls):
            return engine
        raise UsageError(cls.refusal(engine))

    @classmethod
    def refusal(cls, engine: Engine) -> str:
        """The error message for an engine that lacks this capability."""
        return f"{engine.name} {cls.missing}"
