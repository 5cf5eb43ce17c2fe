"""Redis 6 and later: what Valkey began as, so its configuration and start are Valkey's."""

from __future__ import annotations

from types import MappingProxyType

from ciphercost.engines.valkey import Valkey


class Redis(Valkey):
    name = "redis"
    title = "Redis"
    programs = ("redis-server",)
    suites = MappingProxyType({"7.0": "bookworm", "8.0": "trixie"})
    packages = ("redis-server",)
    runs_in_place = ("usr/bin/redis-check-rdb",)  # redis-server is a link to it
    version_words = r"Redis server v=(\d[\d.]+)"


ENGINE = Redis()
