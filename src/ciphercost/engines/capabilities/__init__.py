"""Capabilities: what some servers can do and others can't. One file each.

An engine inherits from exactly the capabilities it has, and implements their abstract methods:

    class Postgresql(Found, HasTls, TakesUrl, OwnSchema, StoresData, …): ...

| capability            | the server …                                    | needed for                              |
|-----------------------|-------------------------------------------------|-----------------------------------------|
| `EncryptsConnections` | encrypts connections, and may report which ones | mechanisms in transit                   |
| `HasTls`              | … by TLS                                        | `tls`                                   |
| `StoresData`          | keeps data on disk                              | mechanisms at rest, the disk witness    |
| `OwnSchema`           | can hold a separate schema for ciphercost       | SQL with `--url`, mechanisms in columns |
| `TakesUrl`            | may be one you already run                      | `--url`, `ciphercost prove`             |
| `TakesSettings`       | takes your own server settings                  | `--setting`                             |
| `BacksUp`             | makes backups of itself                         | `--workload backup`                     |
| `Replicates`          | has replicas                                    | `--workload replication`                |
| `Documents`           | serves files                                    | web workloads                           |
| `CountsLoad`          | counts its operations                           | `ciphercost predict --url`              |
| `Payload`             | can send a response of known size               | `--cpu-crypto off`                      |

Code that works without a capability asks `isinstance(engine, HasTls)`. Code that needs it writes `HasTls.of(engine)`,
which raises UsageError for an engine that lacks it.
"""

from __future__ import annotations

from typing import ClassVar, Self

from ciphercost.engines import Engine
from ciphercost.model.errors import UsageError


class Capability(Engine):
    """Base class: one thing that an engine may be able to do.

    A subclass declares only what belongs to that one thing.
    """

    missing: ClassVar[str]
    """What an engine lacks without this capability. Follows the engine's name in the error."""

    @classmethod
    def of(cls, engine: Engine) -> Self:
        """Return the engine as one that has this capability. Raises UsageError if it lacks it."""
        if isinstance(engine, cls):
            return engine
        raise UsageError(cls.refusal(engine))

    @classmethod
    def refusal(cls, engine: Engine) -> str:
        """Return the error message for an engine that lacks this capability."""
        return f"{engine.name} {cls.missing}"
