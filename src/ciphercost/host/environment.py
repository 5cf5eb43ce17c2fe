"""environment: this process's environment without secrets, for every process that it starts.

Agents receive a server's password only through their protocol, and no other process needs one. So a password that the
user has put into the environment must not reach a dozen other processes' environments, where `ps e` and /proc show it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

DATABASES = re.compile(
    r"PGPASSWORD|PGPASSFILE|PGSERVICEFILE|PGSSLPASSWORD|MYSQL_PWD|MYSQL_TEST_LOGIN_FILE|ISC_PASSWORD"
    r"|(?:PG|POSTGRES(?:QL)?|MYSQL|MARIADB|FIREBIRD|ISC|DB|DATABASE)_?(?:\w+_)?(?:PASSWORD|PASSWD|PASS|PWD|PASSFILE|PASSWORD_FILE)"
    r"|(?:\w+_)?(?:DATABASE|POSTGRES(?:QL)?|MYSQL|MARIADB|FIREBIRD|JDBC|DB)_?(?:\w+_)?(?:URL|URI|DSN)",
    re.IGNORECASE,
)
"""Names of variables that hold a database password, the path of one, or an address that may contain one."""
SECRETS = re.compile(
    r".*(?:PASSWORD|PASSWD|PASSPHRASE|PASSFILE|SECRET|TOKEN|CREDENTIALS?|(?:API|ACCESS|PRIVATE|SECRET)_?KEY).*|\w+_(?:PWD|PASS)|PASS",
    re.IGNORECASE,
)
"""Names of variables that hold any other secret."""
IN_VALUE = re.compile(r"://[^/@\s]*:[^/@\s]+@|(?:^|[?&;\s])(?:password|passwd|pwd)=", re.IGNORECASE)
"""A password within an address or a connection string, whatever the variable's name."""


def child_environment(more: Mapping[str, str] | None = None, *, registries: bool = False) -> dict[str, str]:
    """The current environment without secrets, merged with `more`, which takes precedence.

    `registries`: for package clients, whose settings may contain a proxy's or a mirror's password: only database
    secrets are removed.
    """
    kept = {name: value for name, value in os.environ.items() if not secret(name, value, registries=registries)}
    return {**kept, **(more or {})}


def secret(name: str, value: str = "", *, registries: bool = False) -> bool:
    """Whether a variable may hold a secret, judged by its name or its value. Pure."""
    if registries:
        return bool(DATABASES.fullmatch(name))
    return bool(DATABASES.fullmatch(name) or SECRETS.fullmatch(name) or IN_VALUE.search(value))
