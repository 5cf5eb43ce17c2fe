"""Valkey 8 and later, an in-memory key-value store: packages, configuration, start and TLS."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ciphercost.engines import Server, StartRequest
from ciphercost.engines._key_value import KeyValueStore
from ciphercost.engines._network import StartedServer
from ciphercost.engines._running_store import RunningStore, TakesStoreUrl
from ciphercost.engines._store_counters import StoreCounters
from ciphercost.engines._valkey_replication import ValkeyReplication
from ciphercost.engines.capabilities.load_counters import CountsLoad
from ciphercost.engines.capabilities.settings import CLIENT_CERTIFICATES, Decided, TakesSettings
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.host import tls_names
from ciphercost.host.run_ownership import own_file
from ciphercost.model.connection import Connection
from ciphercost.model.constrained_types import CANARY_TABLE

if TYPE_CHECKING:
    from ciphercost.host.pki import Pki

SETTINGS = {"save": "86400 1", "appendonly": "no", "appendfsync": "everysec", "maxclients": "10000"}
"""Settings of both arms.

One snapshot per day: the server saves loaded data when it stops, and never during measurement. At rest it also has an
append-only file (`on_disk`), which it flushes to the disk once a second, its default.
"""


class ValkeyServer(StartedServer):
    """A server that ciphercost started."""

    driver, user, database = "resp", "default", ""

    def connection(self) -> Connection:
        """Leave the database out: every connection begins in the default one."""
        return super().connection() | {"database": None}


RUNNING = ("valkey-", "redis-")
"""What the processes of a running server are called; each of the two also serves as the other."""


class Valkey(KeyValueStore, TakesStoreUrl, StoresData, TakesSettings, CountsLoad, ValkeyReplication):
    counter_reader = StoreCounters
    counted_programs = RUNNING
    measured_as = ("valkey", "redis")
    name = "valkey"
    title = "Valkey"
    driver = "resp"
    dialect = "valkey"
    programs = ("valkey-server",)
    suites = MappingProxyType({"8.1": "trixie"})
    packages = ("valkey-server",)
    runs_in_place = ("usr/bin/valkey-check-rdb",)  # valkey-server is a link to it
    version_words = r"Valkey server v=(\d[\d.]+)"
    certificate_setting = "tls-cert-file"
    schemes: Mapping[str, str] = MappingProxyType({"valkey": "tls", "valkeys": "tls"})
    password_from = "VALKEYCLI_AUTH"  # noqa: S105 - a variable's name
    give_password = "set VALKEYCLI_AUTH or REDISCLI_AUTH"  # noqa: S105
    echoes_in_errors = True
    started = ValkeyServer
    home = "CONFIG GET dir"
    variables = "CONFIG GET *"
    unlike = ("port", "tls-port", "requirepass")
    on_disk = MappingProxyType({"appendonly": "yes"})
    persistence = "CONFIG GET append*"
    make_canaries = ()
    first_canary = f"LINDEX {CANARY_TABLE} 0"
    no_cache = "keeps all data in memory, so no read under load misses a cache"
    setting_example = "io-threads=4"
    decided_settings = (
        Decided("tls_protocols", "version"),
        Decided("tls_cipher(s|suites)|tls_prefer_server_ciphers", "cipher"),
        Decided("tls_(client_)?(cert|key)_.*", "certificate"),
        Decided("tls_ca_.*|tls_auth_clients.*", CLIENT_CERTIFICATES, value="on"),
        Decided("tls_session_.*", "resumption"),
        Decided(
            "save|append(only|filename|dirname)",
            why="ciphercost decides what is written to disk, so that both arms write the same (append-only with encryption at rest); remove it",
        ),
    )
    kept_settings = (
        "acl.*|append(dirname|filename|only)|bind.*|cluster.*|daemonize|dbfilename|dir|enable_.*|include|load.*|logfile"
        "|(master|primary)(auth|user)|pidfile|port|protected_mode|rename_command|replicaof|requirepass|save|slaveof|supervised"
        "|syslog.*|tls_.*|unixsocket.*|user"
    )

    def arguments(
        self, directory: Path, password: str, address: str, port: int, tls_port: int, settings: Mapping[str, str]
    ) -> list[str | Path]:
        chosen = SETTINGS | dict(settings) | {"bind": address, "port": str(port)}
        chosen |= {"dir": str(directory), "requirepass": password}
        chosen |= {"tls-port": str(tls_port)} if tls_port else {}
        lines = "".join(f"{name} {value}\n" for name, value in chosen.items())
        return [own_file(directory / "valkey.conf", lines)]

    def keep_canary(self, word: str) -> str:
        return f"RPUSH {CANARY_TABLE} {word}"

    def pairs(self, rows: list[list[str | None]]) -> list[tuple[str | None, str | None]]:
        """Each name and each value is a row of its own."""
        words = [row[0] for row in rows]
        return list(zip(words[::2], words[1::2], strict=True))

    def persists(self, rows: list[list[str | None]]) -> tuple[bool, str]:
        known = dict(self.pairs(rows))
        words = ", ".join(f"{name} {known.get(name)}" for name in ("appendonly", "appendfsync"))
        return known.get("appendonly") == "yes", words

    def start(self, request: StartRequest) -> Server:
        if request.installation.source == "running":
            return self.running(request.installation.location)
        return super().start(request)

    def running(self, url: str) -> Server:
        return RunningStore(self.name, url, RUNNING)

    def echo(self, text: str) -> str:
        """Return a command that no server has: the refusal repeats its name, and no user needs a right for that."""
        return text

    def tls_settings(self, pki: Pki, factors: Mapping[str, str]) -> dict[str, str]:
        return {
            "tls-cert-file": str(pki.certificate),
            "tls-key-file": str(pki.key),
            "tls-ca-cert-file": str(pki.ca),
            "tls-auth-clients": "yes" if factors["client-cert"] == "on" else "no",
            "tls-protocols": '"TLSv1.2 TLSv1.3"',
            "tls-ciphers": ":".join(tls_names.offered("1.2")),
            "tls-ciphersuites": ":".join(tls_names.offered("1.3")),
            "tls-session-caching": "no" if factors["resumption"] == "off" else "yes",
        }

    def answers(self, password: str, address: str, port: int) -> bool:
        """Whether a server there accepts our login and has loaded its data."""
        with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=1) as connection:
            connection.sendall(f"AUTH {password}\r\n".encode())
            if connection.recv(64).startswith(b"+OK"):
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith(b"+PONG")
        return False


ENGINE = Valkey()
