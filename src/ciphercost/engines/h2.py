"""H2, a database in Java: its jar, its server, TLS, and its files.

The server listens either with TLS or without it, so one virtual machine runs two servers on one database: one for each arm. No agent
but the Java one speaks H2's protocol, and only H2's own driver does, which is in the same jar.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12

from ciphercost.engines import Engine, Server, StartRequest
from ciphercost.engines._network import PASSWORD_FILE, StartedServer
from ciphercost.engines.capabilities.storage import Spill, StoresData
from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.host import maven, package_cache, versions
from ciphercost.host.installation import Installation
from ciphercost.host.launch import apart, launch
from ciphercost.host.package_cache import Receipt, Work
from ciphercost.host.ports import free_port, is_loopback
from ciphercost.host.run_ownership import hand_over, own_file
from ciphercost.load.jdbc import drivers, java
from ciphercost.model.connection import Connection
from ciphercost.model.errors import UsageError

if TYPE_CHECKING:
    from ciphercost.host.pki import Pki
    from ciphercost.host.supervisor import Supervisor

DRIVER = drivers.find("", "h2")
"""The jar of the driver is that of the server."""
JAR = "h2.jar"
USER, DATABASE = "ciphercost", "database"
FILE, TEMPORARY = f"{DATABASE}.mv.db", "temporary"
SERVER, BOTH, NEXT = "org.h2.tools.Server", "ciphercost.agent.Mains", "--"
KEY_STORE, TRUST_STORE = "server.p12", "ca.p12"
STORE = "javax.net.ssl.keyStore"
PROPERTY = "h2:"
"""Prefix of a setting that is a property of connections instead of the virtual machine."""
SETTINGS = {"DB_CLOSE_DELAY": "-1", "OPTIMIZE_REUSE_RESULTS": "0"}
"""Properties of the connections of both arms. The database stays open when its last connection ends. A query that is asked again is
computed again; by default H2 would return its last result, if nothing has changed.
"""
LEAST_CACHE_KIB = 64
UNKNOWN = struct.pack("!2i", 1 << 16, 1 << 16)
"""Greeting of a client that speaks only versions of the protocol that no server knows, which it answers with an error."""
REFUSED = b"\0\0\0\0"


class H2Server(StartedServer):
    """A server that ciphercost started."""

    driver, user, database = "h2", USER, DATABASE
    properties: Mapping[str, str] = MappingProxyType({})

    def connection(self) -> Connection:
        properties = ";".join(f"{name}={value}" for name, value in {**SETTINGS, **self.properties}.items())
        return super().connection() | {"properties": properties}


def answers(address: str, port: int) -> bool:
    """Whether an H2 there refuses a client of an unknown version, as it does when it is ready."""
    with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=1) as connection:
        connection.sendall(UNKNOWN)
        return connection.recv(4) == REFUSED
    return False


class H2(HasTls, StoresData, Engine):
    name = "h2"
    title = "H2"
    driver = "h2"
    dialect = "h2"
    by_jdbc = True
    no_url = "is started by ciphercost: leave --url out"
    no_fips = "H2 uses the TLS of Java, whose FIPS mode ciphercost does not set up"
    tls_witness = (
        "SELECT CASE WHEN SERVER LIKE 'ssl://%' THEN 't' ELSE 'f' END, CASE WHEN SERVER LIKE 'ssl://%' THEN 'TLS' END, "
        "CAST(NULL AS VARCHAR) FROM INFORMATION_SCHEMA.SESSIONS WHERE SESSION_ID = SESSION_ID()"
    )
    home = "SELECT DATABASE_PATH() || '.mv.db'"
    variables = (
        "SELECT SETTING_NAME, SETTING_VALUE FROM INFORMATION_SCHEMA.SETTINGS WHERE SETTING_NAME NOT LIKE 'info.%'"
    )
    temporary = (f"{TEMPORARY}/*",)

    def echoed(self, rows: list[list[str | None]], text: str) -> tuple[str, str]:
        """H2 sends a text with two bytes for each character."""
        wide = "".join(f"\0{letter}" for letter in text)
        return (wide, wide) if rows == [[text]] else ("", "")

    def keep_canary(self, word: str) -> str:
        """H2 writes a commit to its file half a second later by default."""
        return f"{super().keep_canary(word)}; CHECKPOINT SYNC"

    def spills(self, word: str) -> tuple[Spill, ...]:
        """A sort of more rows than a result may have in memory, and a temporary table."""
        rows = f"SELECT MOD(X * 7919, 1000003) AS K, '{word}' || X AS W FROM SYSTEM_RANGE(1, 80000)"
        return (
            Spill("sort", (f"SELECT K, W FROM ({rows}) ORDER BY K OFFSET 79999 ROWS",), during=True),
            Spill("temporary table", (f"CREATE LOCAL TEMPORARY TABLE SPILT AS {rows}", "CHECKPOINT SYNC")),
        )

    def cache_settings(self, size: int, *, direct: bool) -> dict[str, str]:  # noqa: ARG002
        """Set the size of the page cache, in KiB. H2 has no direct I/O."""
        return {f"{PROPERTY}CACHE_SIZE": str(max(size // 1024, LEAST_CACHE_KIB))} if size else {}

    def check_factors(self, mechanism: str, factors: Mapping[str, str], version: str) -> None:
        self._check_version(version)
        if mechanism != "tls":
            return
        for name, reason in (
            ("library", "H2 uses the TLS of Java, not OpenSSL"),
            ("hop", "hops are for the protocols of the Rust agent, which does not speak H2's"),
        ):
            if factors[name]:
                raise UsageError(f"{name}={factors[name]}: {reason}; leave {name} out")
        if factors["verify"] == "require":
            raise UsageError(f"verify=require: {DRIVER.title} always checks the server's certificate; write verify=ca")

    # ── finding ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def available(self) -> Iterable[Installation]:
        return package_cache.installed(self.name)

    def find(self, version: str = "", *, url: str = "", bindir: str = "") -> Installation:
        if url or bindir:
            raise UsageError("h2 is started by ciphercost from the jar of its driver: leave --url and --bindir out")
        self._check_version(version)
        return package_cache.keep(self.name, f"{DRIVER.version}-maven", self._fetch)

    def _check_version(self, version: str) -> None:
        if not versions.matches(DRIVER.version, version):
            raise UsageError(f"h2@{version}: only {DRIVER.version} is available. Leave the version out.")

    def install(self, version: str = "", source: str = "") -> Installation:
        if source not in ("", "maven"):
            raise UsageError(f"h2 comes from maven, not from {source}: leave the source out")
        return self.find(version)

    def _fetch(self, work: Work) -> Receipt:
        jar = maven.fetch_jar(DRIVER.artifacts[0], work)
        jar.rename(work.path / JAR)
        jar.parent.rmdir()
        return Receipt(self.name, DRIVER.version, "maven", ".")

    # ── running ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def initialise(
        self,
        installation: Installation,  # noqa: ARG002
        directory: Path,
        supervisor: Supervisor,  # noqa: ARG002
        settings: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> None:
        """Create a directory with a random password (mode 0600). The first login creates the database with this user."""
        for path in (directory, directory / TEMPORARY):
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            hand_over(path)
        own_file(directory / PASSWORD_FILE, secrets.token_hex(16))

    def start(self, request: StartRequest) -> Server:
        """TLS has a port of its own, given by `Server.other_ports`. `settings`: system properties of the virtual machine;
        `h2:NAME` is a property of connections.
        """
        installation, directory = request.installation, request.directory
        given, env, address = apart(request.settings)
        properties = {name.removeprefix(PROPERTY): given.pop(name) for name in list(given) if name.startswith(PROPERTY)}
        tls: list[int] = []
        defaults = {
            "h2.bindAddress": address,
            "h2.enableAnonymousTLS": "false",
            "java.io.tmpdir": str(directory / TEMPORARY),
            "java.net.preferIPv4Stack": "true",
            "user.home": str(directory),
        }

        def command(port: int) -> list[str | Path]:
            tls[:] = [free_port(address)] if STORE in given else []
            options = [f"-D{name}={value}" for name, value in {**defaults, **given}.items()]
            common = ["-tcp", "-baseDir", str(directory), "-ifNotExists", "-properties", "null"]
            common += [] if is_loopback(address) else ["-tcpAllowOthers"]
            path = f"{java.jar()}:{Path(installation.location) / JAR}"
            # One after the other: when the last one answers, so does the first.
            first = [SERVER, *common, "-tcpSSL", "-tcpPort", *map(str, tls), NEXT] if tls else []
            last = [SERVER, *common, "-tcpPort", str(port)]
            return [java.find(), *java.STEADY, *options, "-cp", path, BOTH, *first, *last]

        started = launch(
            request.supervisor,
            f"{self.title} {installation.version}",
            command,
            answers,
            directory=directory,
            logs=request.logs,
            env={**java.OTHERS, **env},
            cpus=request.cpus,
            also=lambda: tls,
            address=address,
            connects=True,  # a server of H2 is ready when it has reached itself
        )
        server = H2Server(started, directory, f"Java {java.version(str(java.find()))}")
        server.properties = properties
        server.other_ports = {"tls": {"port": tls[0]}} if tls else {}
        return server

    def tls_settings(self, pki: Pki, factors: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG002
        """Offer what Java offers: TLS 1.2 and 1.3. The client pins one."""
        keys, trust = pki.directory / KEY_STORE, pki.directory / TRUST_STORE
        if not keys.exists():
            drivers.trust_store(pki.ca, trust)
            certificate = x509.load_pem_x509_certificate(pki.certificate.read_bytes())
            key = load_pem_private_key(pki.key.read_bytes(), None)
            # The file's mode protects the key, as it does that of the PEM file beside it.
            how = BestAvailableEncryption(drivers.STORE_PASSWORD.encode())
            content = pkcs12.serialize_key_and_certificates(b"server", key, certificate, None, how)  # type: ignore[arg-type]
            keys.touch(mode=0o600)
            keys.write_bytes(content)
            for path in (keys, trust):
                hand_over(path)
        kinds = {STORE: keys, "javax.net.ssl.trustStore": trust}
        return {name: str(path) for name, path in kinds.items()} | {
            f"{name}Password": drivers.STORE_PASSWORD for name in kinds
        }


ENGINE = H2()
