"""PostgreSQL's connection service file: groups of parameters under a name.

Source: the PostgreSQL documentation, "The Connection Service File".
"""

from __future__ import annotations

import os
from pathlib import Path

from ciphercost.model import bounds
from ciphercost.model.errors import UsageError, nearest

SYSTEM_DIRECTORIES = ("/etc/postgresql-common", "/etc/sysconfig/pgsql", "/usr/local/pgsql/etc")
"""Where libpq may look for the system's file, if PGSYSCONFDIR does not say."""


def find(service: str, file: str = "") -> tuple[dict[str, str], str]:
    """(the parameters of a service, where it was found). `file`: instead of the user's own file. Raises UsageError."""
    user_file = file or os.environ.get("PGSERVICEFILE", "")
    system = os.environ.get("PGSYSCONFDIR", "")
    directories = [Path(system)] if system else [Path(directory) for directory in SYSTEM_DIRECTORIES]
    paths = [
        Path(user_file) if user_file else Path.home() / ".pg_service.conf",
        *(directory / "pg_service.conf" for directory in directories),
    ]
    known: list[str] = []
    for path in paths:
        try:
            text = bounds.text(path, bounds.OPTIONS)
        except OSError:
            if user_file and path == Path(user_file):
                raise UsageError(f"service={service}: the service file {path} can't be read") from None
            continue
        services = parse(text, str(path))
        if service in services:
            return services[service], f"{path}, service {service}"
        known += services
    where = f"{paths[0]} defines no such service; {nearest(service, known)}" if known else f"{paths[0]} was not found"
    raise UsageError(f"service={service}: {where}")


def parse(text: str, where: str = "the service file") -> dict[str, dict[str, str]]:
    """Parameters by service; the first value of a parameter counts. Raises UsageError for a line that libpq can't read. Pure."""
    services: dict[str, dict[str, str]] = {}
    current: dict[str, str] | None = None
    for number, line in enumerate(map(str.strip, text.splitlines()), start=1):
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            # As in libpq, the first group of a name counts.
            name, current = line[1:].partition("]")[0], {}
            current = current if services.setdefault(name, current) is current else {}
        elif current is not None:
            name, equals, value = line.partition("=")
            if line.startswith("ldap"):
                raise UsageError(f"{where}, line {number}: a service in a directory (LDAP) is not supported")
            if not equals:
                raise UsageError(f"{where}, line {number}: not NAME=VALUE")
            current.setdefault(name, value)
    return services
