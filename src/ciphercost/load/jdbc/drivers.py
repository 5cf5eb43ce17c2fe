"""The known JDBC drivers: which jars a version has, and which URL and properties connect it to a server.

Each family has its own properties for TLS. `address` sets them, and reports which settings a driver has no property
for.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore

from ciphercost.host import maven, versions
from ciphercost.host.maven import Artifact
from ciphercost.load.jdbc import key_stores
from ciphercost.load.jdbc.suites import iana
from ciphercost.model import bounds
from ciphercost.model.connection import JdbcCalls, JdbcConnection
from ciphercost.model.constrained_types import DIRECT
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.secret import Secret

Family = Literal["connector-j", "mariadb", "pgjdbc", "jaybird", "h2"]
Mode = Literal["plain", "require", "verify-ca", "verify-full"]
BY_PASSWORD = (3, 4)
"""The first MariaDB Connector/J that does not need the certificate of a CA."""
AT_ONCE = (42, 7, 4)
"""The first PostgreSQL JDBC driver that begins TLS with the first byte, and that has a choice of channel binding."""
BINDS = (42, 7, 7)
"""The first that really requires channel binding if it is told to (CVE-2025-49146)."""
MANIFEST = "META-INF/MANIFEST.MF"
SERVICE = "META-INF/services/java.sql.Driver"
STORE_PASSWORD = "public-certificates"  # noqa: S105 - a trust store holds nothing secret; Java wants a password all the same
TITLES: dict[Family, str] = {
    "connector-j": "MySQL Connector/J",
    "mariadb": "MariaDB Connector/J",
    "pgjdbc": "PostgreSQL JDBC Driver",
    "jaybird": "Jaybird",
    "h2": "H2 JDBC Driver",
}
ENGINES: dict[str, tuple[Family, ...]] = {
    "mysql": ("connector-j", "mariadb"),
    "mariadb": ("mariadb", "connector-j"),
    "postgresql": ("pgjdbc",),
    "firebird": ("jaybird",),
    "h2": ("h2",),
}
"""Families that support each engine, its own driver first. By default the newest version of that one is used."""
CLASSES: dict[str, Family] = {
    "com.mysql.": "connector-j",
    "org.mariadb.": "mariadb",
    "org.postgresql.": "pgjdbc",
    "org.firebirdsql.": "jaybird",
    "org.h2.": "h2",
}
"""Prefix of the class names of each family."""


class Driver(msgspec.Struct, frozen=True):
    """One version of a driver: from Maven, or from files that the user gives (`paths`)."""

    family: Family
    version: str
    artifacts: tuple[Artifact, ...] = ()
    paths: tuple[str, ...] = ()
    driver_class: str = ""
    """Empty: the class that its first jar names."""

    @property
    def title(self) -> str:
        return f"{TITLES[self.family]} {self.version}"

    def jars(self, *, fetch: bool = True) -> list[Path]:
        """Return its jars, downloaded once. Raises MissingServer, RunError."""
        if self.paths:
            return [Path(path) for path in self.paths]
        return maven.maven_jars("jdbc", f"{self.family}-{self.version}", self.artifacts, fetch=fetch)


def _driver(family: Family, group: str, artifact: str, version: str, sha256: str) -> Driver:
    return Driver(family, version, (Artifact(f"{group}:{artifact}:{version}", sha256),))


DRIVERS = (
    _driver(
        "connector-j", "mysql", "mysql-connector-java", "5.1.6",
        "3e3845ec5e9416ff770664b8555d29e4f08ee4e7dbfa0337fc147c6303eb494a",
    ),
    _driver(
        "connector-j", "mysql", "mysql-connector-java", "5.1.49",
        "5bba9ff50e5e637a0996a730619dee19ccae274883a4d28c890d945252bb0e12",
    ),
    _driver(
        "connector-j", "mysql", "mysql-connector-java", "8.0.16",
        "d12a94c9ce8617379e2bf013e4bd40f8726ff6933d0c0f7545c32769a8939238",
    ),
    _driver(
        "connector-j", "com.mysql", "mysql-connector-j", "8.0.33",
        "e2a3b2fc726a1ac64e998585db86b30fa8bf3f706195b78bb77c5f99bf877bd9",
    ),
    _driver(
        "connector-j", "com.mysql", "mysql-connector-j", "9.7.0",
        "0353648eaa1c91e0f4020c959abf756bc866ffd583df22ae6b6f6e0cbd43eb44",
    ),
    _driver(
        "connector-j", "com.mysql", "mysql-connector-j", "26.10.0",
        "cef70caf532833c9ab8f41f74773ce22c08bf503fad215c9c2ee1e9db87e759e",
    ),
    _driver(
        "mariadb", "org.mariadb.jdbc", "mariadb-java-client", "2.7.15",
        "216310985509ad41bf94e649f520d124b2ad4bb8a40d865ed6606de528bbb0ab",
    ),
    _driver(
        "mariadb", "org.mariadb.jdbc", "mariadb-java-client", "3.5.11",
        "42604178b9e57ec08ee0035079961516f086e455d0141f0b22c6eff29fb2fff4",
    ),
    _driver(
        "mariadb", "org.mariadb.jdbc", "mariadb-java-client", "4.0.0",
        "bb1211dac59ef4c54b7a8ad4755a913d36d2e81b34ca1d4cb9ffa9d5633df01f",
    ),
    _driver(
        "pgjdbc", "org.postgresql", "postgresql", "42.7.14",
        "73914527305a40cce504b0d3d90b23caf565136912d607ae8ae7c5895512332c",
    ),
    _driver(
        "jaybird", "org.firebirdsql.jdbc", "jaybird", "6.0.5",
        "5aabfa8eac4136970c21edc5539b25227ee921a8d8251c8b4e6024f6adda0af4",
    ),
    _driver(
        "h2", "com.h2database", "h2", "2.5.252",
        "90b11dc413da82070ef15fc943282c1408e6ffd34fa68998335fea8603b5ff20",
    ),
)  # fmt: skip
"""Known versions with the SHA-256 that their jar must have; within a family, the oldest first."""


def find(version: str, engine: str) -> Driver:
    """Return the driver of this version for this engine: `9.7.0`, `9` for the newest 9.x, `newest` or '' for the newest
    of all.

    Raises UsageError. Pure.
    """
    families = ENGINES.get(engine)
    if families is None:
        raise UsageError(f"there is no JDBC driver for {engine}; JDBC works with {', '.join(ENGINES)}")
    if version in ("", "newest"):
        return next(driver for driver in reversed(DRIVERS) if driver.family == families[0])
    fitting = [driver for driver in DRIVERS if driver.family in families]
    for family in families:
        for driver in reversed(fitting):
            if driver.family == family and versions.matches(driver.version, version):
                return driver
    known = [driver.version for driver in fitting]
    raise UsageError(
        f"unknown JDBC driver {version} for {engine}: {nearest(version, known)}. To use another one: --driver FILE.jar"
    )


def of_file(*jars: Path) -> Driver:
    """Return the driver in the user's jars: the driver's jar first, then its dependencies.

    Raises UsageError if there is none, or an unknown one.
    """
    path = jars[0]
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            named, manifest = (
                bounds.member(archive, name, bounds.DRIVER, str(path)).decode(errors="replace") if name in names else ""
                for name in (SERVICE, MANIFEST)
            )
    except (OSError, zipfile.BadZipFile) as error:
        raise UsageError(f"can't read {path} as a jar: {error}") from None
    classes = [word for line in named.splitlines() if (word := line.partition("#")[0].strip())]
    if not classes:
        raise UsageError(f"{path} contains no JDBC driver (no {SERVICE}). Name the driver's own jar.")
    family = next((family for begin, family in CLASSES.items() if classes[0].startswith(begin)), None)
    if family is None:
        known = ", ".join(TITLES.values())
        raise UsageError(
            f"{path} contains the driver {classes[0]}, which ciphercost does not support. Supported: {known}"
        )
    version_match = re.search(r"^(?:Implementation|Bundle)-Version: ([\d.]+)", manifest, re.MULTILINE)
    version = version_match[1] if version_match else (re.search(r"\d+(?:\.\d+)+", path.name) or ["unknown"])[0]
    return Driver(family, version, paths=tuple(str(jar.absolute()) for jar in jars), driver_class=classes[0])


# ── URL and properties ────────────────────────────────────────────────────────────────────────────────────────────────


class Target(msgspec.Struct, frozen=True):
    """A server."""

    host: str
    port: int
    database: str = ""
    trusted: bool = True
    """Whether it is on this machine, or on a network that the user trusts. Elsewhere anybody could pose as the server, unless TLS
    verifies it."""


class TlsRequest(msgspec.Struct, frozen=True):
    """How a connection should be encrypted."""

    mode: Mode = "plain"
    ca: str = ""
    """PEM file, for `verify-ca` and `verify-full`."""
    store: str = ""
    """The same as a PKCS12 trust store (`trust_store`), which Connector/J wants."""
    protocol: str = ""
    """The only TLS version allowed, `1.2` or `1.3`; empty: driver and server negotiate."""
    ciphers: tuple[str, ...] = ()
    """The only cipher suites allowed, by OpenSSL or IANA name; empty: Java's defaults."""
    identity: str = ""
    """Key store with the client's certificate and key (`ClientIdentity.store`); empty: none."""
    identity_password: Secret | None = None
    at_once: bool = False
    """PostgreSQL: TLS begins with the first byte."""
    binding: str = ""
    """PostgreSQL: `disable`, `prefer` or `require` channel binding; empty: the driver's default."""


class Address(msgspec.Struct, frozen=True):
    """The URL and properties for a driver."""

    url: str
    properties: dict[str, str]
    unsaid: tuple[str, ...] = ()
    """Settings that this driver has no property for: `protocol`, `ciphers`, `store`. They are options of the virtual machine."""


def address(driver: Driver, target: Target, wish: TlsRequest, more: Mapping[str, str] | None = None) -> Address:
    """Return URL and properties. `more` properties override the rest. Raises UsageError for what this version can't do.
    Pure.
    """
    checks = wish.mode in ("verify-ca", "verify-full") and driver.family != "jaybird" and not checks_by_password(driver)
    if checks and not (wish.ca and (wish.store or driver.family != "connector-j")):
        raise UsageError(f"{wish.mode} with {driver.title} needs the CA's certificate; name it with --ca FILE")
    url, properties, unsaid = _FAMILIES[driver.family](driver, target, wish)
    store_properties = key_stores.properties(
        driver.family, TITLES[driver.family], wish.identity, wish.identity_password
    )
    return Address(url, {**properties, **store_properties, **(more or {})}, unsaid)


def checks_by_password(driver: Driver) -> bool:
    """Whether this driver needs no certificate of a CA: it verifies a MariaDB server by the password instead. Pure."""
    return driver.family == "mariadb" and versions.version_key(driver.version) >= BY_PASSWORD


Told = tuple[str, dict[str, str], tuple[str, ...]]


def _connector_j(driver: Driver, target: Target, wish: TlsRequest) -> Told:
    version = versions.version_key(driver.version)
    url = f"jdbc:mysql://{_host(target)}:{target.port}/{target.database}"
    if wish.mode == "plain":
        off = {"sslMode": "DISABLED"} if version >= (8, 0, 13) else {"useSSL": "false"}
        return url, {**off, **_key_retrieval(target)}, ()
    properties: dict[str, str] = {}
    if version >= (8, 0, 13):
        modes = {"require": "REQUIRED", "verify-ca": "VERIFY_CA", "verify-full": "VERIFY_IDENTITY"}
        properties["sslMode"] = modes[wish.mode]
    elif wish.mode == "verify-full":
        raise UsageError(f"{driver.title} does not check host names; use verify=ca")
    else:
        checked = "true" if wish.mode == "verify-ca" else "false"
        properties |= {"useSSL": "true", "requireSSL": "true", "verifyServerCertificate": checked}
    if wish.mode != "require":
        properties |= {
            "trustCertificateKeyStoreUrl": Path(wish.store).absolute().as_uri(),
            "trustCertificateKeyStoreType": "PKCS12",
            "trustCertificateKeyStorePassword": STORE_PASSWORD,
        }
    if version < (5, 1, 44):
        return url, properties, _unsaid(wish)
    newer = version >= (8, 0, 28)
    if wish.protocol:
        properties["tlsVersions" if newer else "enabledTLSProtocols"] = f"TLSv{wish.protocol}"
    elif not newer:
        # By default these versions offer at most TLS 1.1 to servers whose version suggests an old TLS library.
        properties["enabledTLSProtocols"] = "TLSv1.2"
    if wish.ciphers:
        properties["tlsCiphersuites" if newer else "enabledSSLCipherSuites"] = ",".join(map(iana, wish.ciphers))
    return url, properties, ()


def _mariadb(driver: Driver, target: Target, wish: TlsRequest) -> Told:
    old = versions.version_key(driver.version) < (3,)
    url = f"jdbc:mariadb://{_host(target)}:{target.port}/{target.database}"
    if wish.mode == "plain":
        return url, {**({"useSsl": "false"} if old else {"sslMode": "disable"}), **_key_retrieval(target)}, ()
    properties: dict[str, str] = {}
    if old:  # these accept `sslMode` and silently ignore it
        properties["useSsl"] = "true"
        if wish.mode == "require":
            properties["trustServerCertificate"] = "true"
        elif wish.mode == "verify-ca":
            properties["disableSslHostnameVerification"] = "true"
    else:
        properties["sslMode"] = "trust" if wish.mode == "require" else wish.mode
    if wish.mode != "require" and wish.ca:
        properties["serverSslCert"] = str(Path(wish.ca).absolute())
    if wish.protocol:
        properties["enabledSslProtocolSuites"] = f"TLSv{wish.protocol}"
    if wish.ciphers:
        properties["enabledSslCipherSuites"] = ",".join(map(iana, wish.ciphers))
    return url, properties, ()


def _pgjdbc(driver: Driver, target: Target, wish: TlsRequest) -> Told:
    version = versions.version_key(driver.version)
    for asked, since in (
        (wish.at_once and f"negotiation={DIRECT}", AT_ONCE),
        (wish.binding == "disable" and "channel-binding=disable", AT_ONCE),
        (wish.binding == "require" and "channel-binding=require", BINDS),
    ):
        if asked and version < since:
            first = ".".join(map(str, since))
            raise UsageError(
                f"{asked}: {driver.title} can't do it, version {first} is the first; leave it out, or use a newer driver"
            )
    url = f"jdbc:postgresql://{_host(target)}:{target.port}/{target.database}"
    if wish.mode == "plain":
        return url, {"sslmode": "disable", "gssEncMode": "disable"}, ()
    properties = {"sslmode": wish.mode, "gssEncMode": "disable"}
    if wish.mode != "require":
        properties["sslrootcert"] = str(Path(wish.ca).absolute())
    if wish.at_once:
        properties["sslNegotiation"] = DIRECT
    if wish.binding and version >= AT_ONCE:
        properties["channelBinding"] = wish.binding
    return url, properties, _unsaid(wish)


def _jaybird(driver: Driver, target: Target, wish: TlsRequest) -> Told:
    del driver
    if wish.mode not in ("plain", "require"):
        raise UsageError(f"{wish.mode}: Firebird's wire encryption has no certificates, so there is nothing to verify")
    url = f"jdbc:firebirdsql://{_host(target)}:{target.port}/{target.database}"
    crypt = "DISABLED" if wish.mode == "plain" else "REQUIRED"
    return url, {"wireCrypt": crypt, "encoding": "UTF8"}, ()


def _h2(driver: Driver, target: Target, wish: TlsRequest) -> Told:
    """Without the path's `./` the database would lie in the server user's home directory."""
    if wish.mode == "require":
        raise UsageError(f"{driver.title} always checks the server's certificate; use verify=ca")
    scheme = "tcp" if wish.mode == "plain" else "ssl"
    url = f"jdbc:h2:{scheme}://{_host(target)}:{target.port}/./{target.database}"
    return url, {}, () if wish.mode == "plain" else (*_unsaid(wish), "store")


_FAMILIES = {"connector-j": _connector_j, "mariadb": _mariadb, "pgjdbc": _pgjdbc, "jaybird": _jaybird, "h2": _h2}


def _key_retrieval(target: Target) -> dict[str, str]:
    """Allow, if the way to the server is trusted, a password encrypted with a public key that the server sends.

    Without it an unencrypted login works only while the server remembers the account. On another machine an impostor
    could send its own key, so there it is off. The Java agent refuses such logins too, whatever the driver's properties
    say.
    """
    return {"allowPublicKeyRetrieval": "true" if target.trusted else "false"}


def _host(target: Target) -> str:
    return f"[{target.host}]" if ":" in target.host else target.host


def _unsaid(wish: TlsRequest) -> tuple[str, ...]:
    return tuple(name for name in ("protocol", "ciphers") if getattr(wish, name))


def machine_options(wish: TlsRequest, unsaid: Iterable[str]) -> list[str]:
    """Options of the Java agent's virtual machine for settings that a driver has no property for.

    They apply to all its drivers. `unsaid`: as in `Address`. Pure.
    """
    options = []
    if "protocol" in unsaid:
        options += [f"-Djdk.tls.client.protocols=TLSv{wish.protocol}"]
    if "ciphers" in unsaid:
        options += [f"-Djdk.tls.client.cipherSuites={','.join(map(iana, wish.ciphers))}"]
    return [*options, *_default_tls(wish.store)] if "store" in unsaid else options


def _default_tls(store: str) -> list[str]:
    """Options that make Java's default TLS trust the certificates in this store alone and resume no TLS 1.3 session.

    H2 would otherwise offer anonymous suites, and write a key that everybody knows to the user's home directory.
    """
    files = {
        f"{kind}Store{part}": value
        for kind in ("trust", "key")
        for part, value in (("", store), ("Password", STORE_PASSWORD))
    }
    return [
        *(f"-Djavax.net.ssl.{name}={value}" for name, value in files.items()),
        "-Djdk.tls.client.disableExtensions=psk_key_exchange_modes,pre_shared_key",
        "-Dh2.enableAnonymousTLS=false",
    ]


def connection(
    driver: Driver,
    told: Address,
    user: str,
    password: Secret | None = None,
    *,
    witness: str = "",
    more: JdbcCalls | None = None,
) -> JdbcConnection:
    """Return the connection that the Java agent makes; `more`: `how`, `autocommit`, `setup` and so on.

    Downloads the jars. Raises MissingServer.
    """
    return JdbcConnection(
        driver="jdbc",
        url=told.url,
        user=user,
        jars=":".join(map(str, driver.jars())),
        properties=Secret("\n".join(f"{name}={value}" for name, value in told.properties.items())),
        password=password or None,
        driver_class=driver.driver_class or None,
        witness=witness or None,
        **(more or {}),
    )


def trust_store(certificates: Path, store: Path) -> Path:
    """Write the certificates of a PEM file to a PKCS12 trust store and return its path. I/O."""
    ca_certificates: Iterable[x509.Certificate] = x509.load_pem_x509_certificates(
        bounds.readable(certificates, bounds.CERTIFICATES)
    )
    named = [PKCS12Certificate(certificate, f"ca{at}".encode()) for at, certificate in enumerate(ca_certificates)]
    store.write_bytes(serialize_java_truststore(named, BestAvailableEncryption(STORE_PASSWORD.encode())))
    store.chmod(0o644)
    return store
