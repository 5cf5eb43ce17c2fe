"""Finds the server that a file's name or a command line states. Pure."""

from __future__ import annotations

import re

SERVERS = {
    "mysql": "mysql",
    "percona": "mysql",
    "mariadb": "mariadb",
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "pgsql": "postgresql",
    "pg": "postgresql",
    "nginx": "nginx",
    "apache": "apache",
    "httpd": "apache",
    "caddy": "caddy",
    "haproxy": "haproxy",
    "redis": "redis",
    "valkey": "valkey",
    "firebird": "firebird",
    "memcached": "memcached",
    "kafka": "kafka",
    "rabbitmq": "rabbitmq",
    "nats": "nats",
    "etcd": "etcd",
}
"""Words and the engines that they name."""
CLASSES = {
    "database": ("mysql", "mariadb", "postgresql"),
    "mysql or mariadb": ("mysql", "mariadb"),
    "web": ("nginx", "apache", "caddy", "haproxy"),
    "redis or valkey": ("redis", "valkey"),
}
"""Engines that a tool can't tell apart, by its word for them."""


def server_in(names: tuple[str, ...], kind: str) -> str:
    """Return the server that the first of these names with one states, if it is of this kind; empty: none or several."""
    for name in names:
        words = re.findall(r"[a-z]+", re.sub(r"(?:redis|valkey)[-_]benchmark", "", name.lower()))
        servers = {
            SERVERS[word] for word in words if word in SERVERS and SERVERS[word] in CLASSES.get(kind, SERVERS.values())
        }
        if servers:
            return next(iter(servers)) if len(servers) == 1 else ""
    return ""
