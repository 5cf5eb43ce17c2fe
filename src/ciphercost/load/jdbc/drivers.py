"""drivers: a version of a JDBC driver -> its jars; a server and how its connections are to be -> URL and properties.

Each family says in its own words what TLS is to be; `address` knows them, and says what a driver has no word for.
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
from ciphercost.model.errors import UsageError, nearest

Family = Literal["connector-j", "mariadb", "pgjdbc", "jaybird"]
Mode = Literal["plain", "require", "verify-ca", "verify-full"]
SERVICE = "META-INF/services/java.sql.Driver"
STORE_PASSWORD = "public-certificates"  # noqa: S105 - a trust store holds nothing secret; Java wants a password all the same
TITLES: dict[Family, str] = {
    "connector-j": "MySQL Connector/J",
    "mariadb": "MariaDB Connector/J",
    "pgjdbc": "PostgreSQL JDBC Driver",
    "jaybird": "Jaybird",
}
ENGINES: dict[str, tuple[Family, ...]] = {
    "mysql": ("connector-j", "mariadb"),
    "mariadb": ("mariadb", "connector-j"),
    "postgresql": ("pgjdbc",),
    "firebird": ("jaybird",),
}
"""Families that speak to a server; its own first: of that the newest is taken where no version is asked for."""
CLASSES: dict[str, Family] = {
    "com.mysql.": "connector-j",
    "org.mariadb.": "mariadb",
    "org.postgresql.": "pgjdbc",
    "org.firebirdsql.": "jaybird",
}
"""How the names of a family's classes begin."""


class Driver(msgspec.Struct, frozen=True):
    """One version of a driver: from Maven, or (`paths`) files of the user's."""

    family: Family
    version: str
    artifacts: tuple[Artifact, ...] = ()
    paths: tuple[str, ...] = ()
    driver_class: str = ""
    """Empty: the one that its first jar names."""

    @property
    def title(self) -> str:
        return f"{TITLES[self.family]} {self.version}"

    def jars(self, *, fetch: bool = True) -> list[Path]:
        """Its jars, fetched once. Raises MissingServer, RunError."""
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
)  # fmt: skip
"""Versions that are known, with the only content that is accepted for them; of a family the oldest first."""


def find(version: str, engine: str) -> Driver:
    """The driver of this version that speaks to this engine: `9.7.0`, or `9` for its newest; `newest` or '' for the newest of all.

    Raises UsageError. Pure.
    """
    families = ENGINES.get(engine)
    if families is None:
        raise UsageError(f"there is no JDBC driver for {engine}; there are some for {', '.join(ENGINES)}")
    if version in ("", "newest"):
        return next(driver for driver in reversed(DRIVERS) if driver.family == families[0])
    fitting = [driver for driver in DRIVERS if driver.family in families]
    for family in families:
        for driver in reversed(fitting):
            if driver.family == family and versions.matches(driver.version, version):
                return driver
    known = [driver.version for driver in fitting]
    raise UsageError(
        f"no JDBC driver {version} for {engine} is known here: {nearest(version, known)}. Another one: --driver FILE.jar"
    )


def of_file(*jars: Path) -> Driver:
    """A driver of the user's: its own jar first, then what it needs. Raises UsageError where that holds none, or one of no known family."""
    path = jars[0]
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            named = archive.read(SERVICE).decode(errors="replace") if SERVICE in names else ""
            manifest = (
                archive.read("META-INF/MANIFEST.MF").decode(errors="replace") if "META-INF/MANIFEST.MF" in names else ""
            )
    except (OSError, zipfile.BadZipFile) as error:
        raise UsageError(f"{path} can't be read as a jar: {error}") from None
    classes = [word for line in named.splitlines() if (word := line.partition("#")[0].strip())]
    if not classes:
        raise UsageError(f"{path} holds no JDBC driver: there is no {SERVICE} in it. Give the driver's own jar.")
    family = next((family for begin, family in CLASSES.items() if classes[0].startswith(begin)), None)
    if family is None:
        known = ", ".join(TITLES.values())
        raise UsageError(f"{path} holds the driver {classes[0]}, which is none of those known here: {known}")
    said = re.search(r"^(?:Implementation|Bundle)-Version: ([\d.]+)", manifest, re.MULTILINE)
    version = said[1] if said else (re.search(r"\d+(?:\.\d+)+", path.name) or ["unknown"])[0]
    return Driver(family, version, paths=tuple(str(jar.absolute()) for jar in jars), driver_class=classes[0])


# ── URL and properties ────────────────────────────────────────────────────────────────────────────────────────────────


class Target(msgspec.Struct, frozen=True):
    """A server."""

    host: str
    port: int
    database: str = ""
    loopback: bool = True
    """Whether it is on this machine: elsewhere anybody could pose as it, unless TLS says otherwise."""


class Wish(msgspec.Struct, frozen=True):
    """How a connection is to be encrypted."""

    mode: Mode = "plain"
    ca: str = ""
    """PEM file, for `verify-ca` and `verify-full`."""
    store: str = ""
    """The same as a PKCS12 trust store (`trust_store`), which Connector/J wants."""
    protocol: str = ""
    """`1.2` or `1.3`, and no other; empty: what both agree on."""
    ciphers: tuple[str, ...] = ()
    """Suites, by OpenSSL's names or by IANA's, and no others; empty: Java's own."""


class Address(msgspec.Struct, frozen=True):
    """What a driver is told."""

    url: str
    properties: dict[str, str]
    unsaid: tuple[str, ...] = ()
    """What was wished for and this driver has no word for: `protocol`, `ciphers`. The server must hold it."""


def address(driver: Driver, target: Target, wish: Wish, more: Mapping[str, str] | None = None) -> Address:
    """URL and properties; `more` are added, and win. Raises UsageError for what this version can't do. Pure."""
    checks = wish.mode in ("verify-ca", "verify-full") and driver.family != "jaybird"
    if checks and not (wish.ca and (wish.store or driver.family != "connector-j")):
        raise UsageError(f"{wish.mode} with {driver.title} needs the CA's certificate")
    url, properties, unsaid = _FAMILIES[driver.family](driver, target, wish)
    return Address(url, {**properties, **(more or {})}, unsaid)


Told = tuple[str, dict[str, str], tuple[str, ...]]


def _connector_j(driver: Driver, target: Target, wish: Wish) -> Told:
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
        raise UsageError(f"{driver.title} checks no names: verify=ca is the most that it can do")
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
        # Of themselves these offer TLS 1.1 at most wherever the server's version says that it may have an old library.
        properties["enabledTLSProtocols"] = "TLSv1.2"
    if wish.ciphers:
        properties["tlsCiphersuites" if newer else "enabledSSLCipherSuites"] = ",".join(map(iana, wish.ciphers))
    return url, properties, ()


def _mariadb(driver: Driver, target: Target, wish: Wish) -> Told:
    old = versions.version_key(driver.version) < (3,)
    url = f"jdbc:mariadb://{_host(target)}:{target.port}/{target.database}"
    if wish.mode == "plain":
        return url, {**({"useSsl": "false"} if old else {"sslMode": "disable"}), **_key_retrieval(target)}, ()
    properties: dict[str, str] = {}
    if old:  # these take `sslMode` without a word, and do nothing about it
        properties["useSsl"] = "true"
        if wish.mode == "require":
            properties["trustServerCertificate"] = "true"
        elif wish.mode == "verify-ca":
            properties["disableSslHostnameVerification"] = "true"
    else:
        properties["sslMode"] = "trust" if wish.mode == "require" else wish.mode
    if wish.mode != "require":
        properties["serverSslCert"] = str(Path(wish.ca).absolute())
    if wish.protocol:
        properties["enabledSslProtocolSuites"] = f"TLSv{wish.protocol}"
    if wish.ciphers:
        properties["enabledSslCipherSuites"] = ",".join(map(iana, wish.ciphers))
    return url, properties, ()


def _pgjdbc(driver: Driver, target: Target, wish: Wish) -> Told:
    del driver
    url = f"jdbc:postgresql://{_host(target)}:{target.port}/{target.database}"
    if wish.mode == "plain":
        return url, {"sslmode": "disable", "gssEncMode": "disable"}, ()
    properties = {"sslmode": wish.mode, "gssEncMode": "disable"}
    if wish.mode != "require":
        properties["sslrootcert"] = str(Path(wish.ca).absolute())
    return url, properties, _unsaid(wish)


def _jaybird(driver: Driver, target: Target, wish: Wish) -> Told:
    del driver
    if wish.mode not in ("plain", "require"):
        raise UsageError(
            f"Firebird's wire encryption has no certificates, so that there is nothing to check: {wish.mode}"
        )
    url = f"jdbc:firebirdsql://{_host(target)}:{target.port}/{target.database}"
    crypt = "DISABLED" if wish.mode == "plain" else "REQUIRED"
    return url, {"wireCrypt": crypt, "encoding": "UTF8"}, ()


_FAMILIES = {"connector-j": _connector_j, "mariadb": _mariadb, "pgjdbc": _pgjdbc, "jaybird": _jaybird}


def _key_retrieval(target: Target) -> dict[str, str]:
    """Whether the password may be encrypted with a public key that the server sends.

    Without it an unencrypted login works only while the server remembers the account. An impostor on another machine would send
    a key of its own, so there it is off; the Java agent refuses such logins too, whatever the driver is told.
    """
    return {"allowPublicKeyRetrieval": "true" if target.loopback else "false"}


def _host(target: Target) -> str:
    return f"[{target.host}]" if ":" in target.host else target.host


def _unsaid(wish: Wish) -> tuple[str, ...]:
    return tuple(name for name in ("protocol", "ciphers") if getattr(wish, name))


def machine_options(wish: Wish) -> list[str]:
    """Options of the Java agent's virtual machine for what a driver has no word for. They hold for all drivers in it. Pure."""
    options = [f"-Djdk.tls.client.protocols=TLSv{wish.protocol}"] if wish.protocol else []
    return options + ([f"-Djdk.tls.client.cipherSuites={','.join(map(iana, wish.ciphers))}"] if wish.ciphers else [])


def iana(suite: str) -> str:
    """`ECDHE-RSA-AES256-GCM-SHA384` -> `TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384`; IANA's own names stay. Pure."""
    if suite.startswith("TLS_"):
        return suite
    match = re.fullmatch(r"((?:EC)?DHE-[A-Z]+)-(AES(?:128|256)(?:-[A-Z]+)?-SHA\d+|CHACHA20-POLY1305)", suite)
    if match is None:
        raise UsageError(f"Java has no name for the cipher suite {suite}")
    cipher = re.sub(r"AES(\d+)", r"AES_\1", match[2]).replace("-", "_")
    cipher = f"{cipher}_SHA256" if cipher.startswith("CHACHA20") else re.sub(r"(\d)_SHA", r"\1_CBC_SHA", cipher)
    return f"TLS_{match[1].replace('-', '_')}_WITH_{cipher}"


def connection(
    driver: Driver,
    told: Address,
    user: str,
    password: str = "",
    *,
    witness: str = "",
    more: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """Fields of the Java agent's `connect`; `more`: `how`, `autocommit`, `setup` and the like. Fetches the jars. Raises MissingServer."""
    fields: dict[str, object] = {
        "driver": "jdbc",
        "url": told.url,
        "user": user,
        "jars": ":".join(map(str, driver.jars())),
        "properties": "\n".join(f"{name}={value}" for name, value in told.properties.items()),
    }
    fields |= {"password": password} if password else {}
    fields |= {"driver_class": driver.driver_class} if driver.driver_class else {}
    fields |= {"witness": witness} if witness else {}
    return fields | dict(more or {})


def trust_store(certificates: Path, store: Path) -> Path:
    """Write the certificates of a PEM file as a PKCS12 trust store, and return its path. I/O."""
    found: Iterable[x509.Certificate] = x509.load_pem_x509_certificates(certificates.read_bytes())
    named = [PKCS12Certificate(each, f"ca{at}".encode()) for at, each in enumerate(found)]
    store.write_bytes(serialize_java_truststore(named, BestAvailableEncryption(STORE_PASSWORD.encode())))
    store.chmod(0o644)
    return store
