"""Redis 6 and later: what Valkey began as, so its configuration and start are Valkey's."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ciphercost.engines.valkey import Valkey


class Redis(Valkey):
    name = "redis"
    title = "Redis"
    programs = ("redis-server",)
    suites = MappingProxyType({"7.0": "bookworm", "8.0": "trixie"})
    packages = ("redis-server",)
    runs_in_place = ("usr/bin/redis-check-rdb",)  # redis-server is a link to it
    schemes: Mapping[str, str] = MappingProxyType({"redis": "tls", "rediss": "tls"})
    password_from = "REDISCLI_AUTH"  # noqa: S105 - a variable's name
    give_password = "set REDISCLI_AUTH"  # noqa: S105
    version_words = r"Redis server v=(\d[\d.]+)"


ENGINE = Redis()
