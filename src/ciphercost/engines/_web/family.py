"""What web servers share: documents, ports (unencrypted, TLS, without sendfile) and the log as a witness."""

from __future__ import annotations

import contextlib
import secrets
import socket
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from ciphercost.engines import Server, StartRequest
from ciphercost.engines._network import StartedServer
from ciphercost.engines._packaged import Packaged
from ciphercost.engines._web.answer import Answer, request_ok
from ciphercost.engines._web.log import NOTE, VERIFIED, Line, Log
from ciphercost.engines.capabilities.documents import Documents
from ciphercost.engines.capabilities.payload import Payload
from ciphercost.engines.capabilities.settings import TakesSettings, blamed
from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.host import tls_names, versions
from ciphercost.host.confinement import EVERYWHERE
from ciphercost.host.installation import Installation
from ciphercost.host.launch import Launch, apart, launch
from ciphercost.host.ports import LOOPBACK, free_port
from ciphercost.host.run_ownership import hand_over
from ciphercost.model.connection import Changes, Connection
from ciphercost.model.errors import AgentError, RefusedSetting, RunError, UsageError

if TYPE_CHECKING:
    from ciphercost.host.pki import Pki
    from ciphercost.host.supervisor import Supervisor
    from ciphercost.load.agent import Agent
    from ciphercost.load.load_client import LoadClient

AUTHORITY = "localhost"
CANARY_PATH = "/ciphercost.txt"
"""A document on every server that ciphercost starts: the canary."""
PAYLOAD = "/ciphercost.bin"
"""A document of 16 MB: a response of known size."""
PAYLOAD_BYTES = 16_000_000
DOCUMENTS = "documents"
CHUNK = 1 << 22
HTTP3 = "http3"
"""The server's setting for HTTP/3 beside its TLS port, on the same number by UDP."""
OURS = "run:"
"""Prefix of settings that the run needs. No user can give one: no name of a setting has a colon."""
CONNECTIONS = 128
"""Connections that a server accepts at the same time by default."""


class Ports(msgspec.Struct, frozen=True):
    """Ports of one server on its address: one configuration, by how they are reached."""

    clear: int
    tls: int
    no_sendfile: int = 0
    """0: the server never uses sendfile (`Web.sendfile`)."""


class Config(msgspec.Struct, frozen=True):
    """Everything a configuration file is written from."""

    directory: Path
    """The server's own directory: its files beside `documents`, all owned by the user it runs as."""
    ports: Ports
    cores: int
    tls: Mapping[str, str]
    """certificate, key, group, resumption, security_level and client_ca, from `Web.tls_settings`; empty: no TLS."""
    root: Path
    """Installation prefix of the program: `/usr` for `/usr/sbin/nginx`."""
    connections: int = CONNECTIONS
    """How many connections the server must be able to keep open."""
    address: str = LOOPBACK
    settings: Mapping[str, str] = MappingProxyType({})
    """The user's settings, by the server's own names."""
    http3: bool = False
    """Whether the server also speaks HTTP/3: by UDP, on the port of TLS."""

    @property
    def documents(self) -> Path:
        return self.directory / DOCUMENTS

    @property
    def log(self) -> Path:
        return self.directory / "access.log"


class WebServer(StartedServer):
    """A server that ciphercost started."""

    driver = "http"
    keeps_processes = True

    def __init__(
        self, started: Launch, config: Config, log: Log, *, stalls: bool = False, library: str | None = None
    ) -> None:
        """`stalls`: see `Web.sendfile_stalls_http2`. `library`: the cryptographic library, if it is not an OpenSSL that the
        process has loaded.
        """
        super().__init__(started, config.directory, library)
        self.log = log
        self.other_ports = {"tls": {"port": config.ports.tls}}
        if config.ports.no_sendfile:
            self.other_ports["no-sendfile"] = {"port": config.ports.no_sendfile}
        if stalls:
            self.other_ports["http2-in-clear"] = self.other_ports["no-sendfile"]

    def connection(self) -> Connection:
        return Connection(driver=self.driver, host=self.address, port=self.port, authority=AUTHORITY)

    def handshakes(self) -> tuple[int, int]:
        """Count handshakes without those of the witnesses."""
        self.log.read()
        handshakes = self.log.full, self.log.resumed
        self.log.full = self.log.resumed = 0
        return handshakes


class Web(Packaged, HasTls, Documents, TakesSettings):
    """An engine of this family. A subclass names its programs and packages and writes its configuration."""

    driver = "http"
    dialect = "http"
    language = "http"
    usual_workload = "file"
    loads = False
    no_url = "is started by ciphercost; for a web server you already run use url:tls --url http://… --url https://…"
    tls_resumption: tuple[str, ...] = ("tickets", "cache")
    no_old_tls = ""
    tls_weak_keys = True
    tls_client_cert = True
    certificate_in_sessions = True
    sendfile: bool = True
    """Whether it sends documents by sendfile where it can, so that it gets a port on which it doesn't."""
    sendfile_stalls_http2: bool = False
    """Whether small unencrypted HTTP/2 responses wait 40 ms for an acknowledgement when sent by sendfile."""
    http2_since: str = ""
    """Oldest version that speaks unencrypted HTTP/2 on a port that also speaks HTTP/1.1."""
    http3_since: str = ""
    """Oldest version that speaks HTTP/3."""
    stating: str = "the server's log has only"
    """How an error begins that says of how many connections `stated` knows. User-visible."""
    no_http3: str = ""
    """Why it can't speak HTTP/3; empty: it can, from `http3_since` on. User-visible."""

    @abstractmethod
    def write(self, config: Config, version: str) -> list[str | Path]:
        """Write the configuration into the server's directory. Returns the arguments that follow the program's name."""

    def environment(self, directory: Path, given: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG002
        """Return the server's environment variables. `directory`: its own; `given`: those that the run asks for."""
        return dict(given)

    def running(self, installation: Installation, started: Launch, config: Config) -> WebServer:  # noqa: ARG002
        """Return the server that was started."""
        return WebServer(started, config, Log(config.log), stalls=self.sendfile_stalls_http2)

    # ── starting ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def initialise(
        self,
        installation: Installation,  # noqa: ARG002
        directory: Path,
        supervisor: Supervisor,  # noqa: ARG002
        settings: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        (directory / "tmp").mkdir(mode=0o700)
        hand_over(directory)

    def lay_out(self, directory: Path, place: Path, documents: Mapping[str, int], canary: str) -> None:
        """Write incompressible bytes, the same in every run. A copy of the directory links to them."""
        place.mkdir(mode=0o755)  # Caddy opens it to find index.html
        (place / CANARY_PATH.lstrip("/")).write_text(canary)
        for path, size in documents.items():
            target = place / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
            random = np.random.Generator(np.random.PCG64(size))
            with target.open("wb") as file:
                for at in range(0, size, CHUNK):
                    file.write(random.bytes(min(CHUNK, size - at)))
        for entry in place.rglob("*"):
            entry.chmod(0o755 if entry.is_dir() else 0o644)
        (directory / DOCUMENTS).symlink_to(place)

    def start(self, request: StartRequest) -> Server:
        installation, directory = request.installation, request.directory
        given, env, address = apart(request.settings)
        http3 = given.pop(HTTP3, "") == "on"  # a user can't give it: `decided_settings`
        settings = {name: given.pop(name) for name in list(given) if not name.startswith(OURS)}
        given = {name.removeprefix(OURS): value for name, value in given.items()}
        connections = int(given.pop("connections", CONNECTIONS))
        chosen = sorted(request.cpus) if request.cpus is not None else None
        program = self.program(installation)
        configs: list[Config] = []

        def command(port: int) -> list[str | Path]:
            ports = Ports(port, *more_ports(port, address, 2 if self.sendfile else 1, first_by_udp=http3))
            cores = len(chosen) if chosen else 1
            root = program.parent.parent
            configs.append(Config(directory, ports, cores, given, root, connections, address, settings, http3))
            return [program, *self.write(configs[-1], installation.version)]

        start = partial(
            launch,
            request.supervisor,
            f"{self.title} {installation.version}",
            command,
            answers,
            directory=directory,
            logs=request.logs,
            env=self.environment(directory, env),
            cpus=chosen,
            also=lambda: [port for port in (configs[-1].ports.tls, configs[-1].ports.no_sendfile) if port],
            writable=[Path(EVERYWHERE)],  # it opens a file for each request, and a check would slow each of them
            address=address,
        )
        try:
            started = start()
        except RunError as error:
            if settings and (words := blamed(settings, str(error).splitlines()[1:])):
                raise RefusedSetting(f"{words} (from {self.title} {installation.version})") from None
            raise
        return self.running(installation, started, configs[-1])

    def settings_for(self, clients: int) -> dict[str, str]:
        """Allow for the connections of both arms, which are open at the same time, and for those of the witnesses."""
        wanted = 2 * clients + 16
        return {f"{OURS}connections": str(wanted)} if wanted > CONNECTIONS else {}

    def tls_settings(self, pki: Pki, factors: Mapping[str, str]) -> dict[str, str]:
        """Lower `security_level` only for factors that need it, so that all other cells meet the library's default."""
        level = tls_names.security_level(factors)
        wanted = {
            "certificate": str(pki.certificate),
            "key": str(pki.key),
            "group": tls_names.GROUPS.get(factors["group"], ""),
            "resumption": factors["resumption"],
            "security_level": "" if level is None else str(level),
            "client_ca": str(pki.ca) if factors["client-cert"] == "on" else "",
        }
        return {f"{OURS}{name}": value for name, value in wanted.items()}

    def workload_settings(self, parameters: Mapping[str, int | str]) -> dict[str, str]:
        return {HTTP3: "on"} if http_version(parameters) == "3" else {}

    def workload_fields(self, version: str, parameters: Mapping[str, int | str], *, encrypted: bool) -> Changes:
        wanted = http_version(parameters)
        if wanted == "3" and self.no_http3:
            raise UsageError(f"http=3: {self.no_http3}; use nginx, or write http=2")
        if wanted == "2" and _older(version, self.http2_since):
            raise UsageError(
                f"{self.title} {version} can't speak unencrypted HTTP/2 on the port that speaks HTTP/1.1; use "
                f"{self.title} {self.http2_since} or later, or leave http=2 out"
            )
        if wanted == "3" and _older(version, self.http3_since):
            raise UsageError(
                f"{self.title} {version} has no HTTP/3; use {self.title} {self.http3_since} or later, or write http=2 or http=1"
            )
        return http_fields(parameters, encrypted=encrypted)

    # ── asking ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def greet(self, agent: Agent, arm: str) -> str:
        return request_ok(agent, arm, f"GET {CANARY_PATH}").server

    def sessions(
        self, server: Server, agent: LoadClient, arm: str, *, everywhere: bool = False
    ) -> list[list[str | None]]:
        """Send a request with a note on each connection and read what the server states about it."""
        assert isinstance(server, WebServer)
        note = secrets.token_hex(8)
        answers = agent.query(arm, f"GET {CANARY_PATH}?{NOTE}={note}", everywhere=everywhere)
        lines = self.stated(server, note, [Answer.of(row) for row in answers])
        if len(lines) != len(answers):
            raise AgentError(f"{self.stating} {len(lines)} of this witness's {len(answers)} requests", "log")
        return [
            ["t" if line.protocol else "f", spoken(line), line.cipher, *([VERIFIED] if line.client else [])]
            for line in lines
        ]

    def stated(self, server: WebServer, note: str, answers: Sequence[Answer]) -> list[Line]:
        """What the server states about the connections of the requests with this note, in its log. It must write every line,
        however many come at once: nginx, Apache and Caddy wait for one another.
        """
        return server.log.noted(note, len(answers))

    def echo(self, text: str) -> str:
        return f"GET {CANARY_PATH}?word={text}"

    def echoed(self, rows: list[list[str | None]], text: str) -> tuple[str, str]:
        return (text, text) if rows and Answer.of(rows[0]).body == text else ("", "")


class LargeDocument(Payload, Documents):
    """A web server that sends documents of any size."""

    payload_documents = MappingProxyType({PAYLOAD: PAYLOAD_BYTES})

    def payload(self, size: int) -> str:  # noqa: ARG002
        return f"GET {PAYLOAD}"


def spoken(of: Line) -> str:
    """What a connection spoke, as the server's log has it: `TLSv1.3`, by HTTP/3 `HTTP/3.0 TLSv1.3`, with ` 0-RTT` if this request was early. Pure."""
    spoke = f"{of.http} {of.protocol}" if of.http == tls_names.HTTP3_LOGGED else of.protocol
    return f"{spoke} {tls_names.EARLY_LOGGED}" if of.early else spoke


def versions_and_suites(given: Mapping[str, str]) -> tuple[list[str], str]:
    """Return the protocol versions that a server offers, oldest first, and its cipher list before TLS 1.3. Pure.

    `given`: `Config.tls`. TLS 1.0 and 1.1 are offered only at security level 0; at higher levels OpenSSL refuses them.
    """
    level = given["security_level"]
    versions, suites = ["1.2", "1.3"], tls_names.offered("1.2")
    if level == "0":
        versions, suites = [*reversed(tls_names.OLD), *versions], [*suites, *tls_names.offered("1.0")]
    return [tls_names.PROTOCOLS[version] for version in versions], ":".join(
        [*suites, *([f"@SECLEVEL={level}"] if level else [])]
    )


def more_ports(port: int, address: str, count: int, *, first_by_udp: bool = False) -> list[int]:
    """Return `count` more free ports of this address. Each is free when found, so one might be found twice.

    `first_by_udp`: the first one is free for UDP too.
    """
    ports = [port]
    while len(ports) <= count:
        more = free_port(address)
        if more not in ports and (len(ports) > 1 or not first_by_udp or _free_by_udp(address, more)):
            ports.append(more)
    return ports[1:]


def _free_by_udp(address: str, port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.bind((address, port))
        except OSError:
            return False
    return True


def http_version(parameters: Mapping[str, int | str]) -> str:
    """Return the workload's parameter `http`: `1` (HTTP/1.1), `2` or `3`. Raises UsageError. Pure."""
    wanted = str(parameters.get("http", 1))
    if wanted not in ("1", "2", "3"):
        raise UsageError(
            f"http={wanted}: unknown HTTP version; write --set http=1 (HTTP/1.1), --set http=2 or --set http=3"
        )
    return wanted


def http_fields(parameters: Mapping[str, int | str], *, encrypted: bool) -> Changes:
    """Return what an arm's HTTP version adds to its connections. Raises UsageError. Pure.

    HTTP/3 has no unencrypted form: beside it, the plain arm speaks HTTP/1.1.
    """
    wanted = http_version(parameters)
    if wanted == "2":
        return {"http": "2"}
    return {"http": "3"} if wanted == "3" and encrypted else {}


def _older(version: str, since: str) -> bool:
    """Whether a known version is older than this one. Pure."""
    return bool(version) and versions.version_key(version) < versions.version_key(since)


def answers(address: str, port: int) -> bool:
    """Whether a server there speaks HTTP."""
    with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=1) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return connection.recv(5) == b"HTTP/"
    return False
