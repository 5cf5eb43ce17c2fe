"""Chooses a cell's JDBC driver and checks the client's settings (`--set`)."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from ciphercost.host import versions
from ciphercost.host.tls_names import POST_QUANTUM_KEYS
from ciphercost.load.jdbc import drivers, java
from ciphercost.load.jdbc.drivers import Driver, Family
from ciphercost.load.program import Program
from ciphercost.load.redact import SECRET
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.spec import CellSpec

WORD, RUST = "jdbc", "rust"
"""Values of a cell's client; `jdbc:VERSION` too. Empty means Rust, except for a server that only JDBC can use."""
DRIVERS_CHOICE = {"wire-crypt": "cipher"}
"""By mechanism: a factor that the driver chooses itself."""
NAMELESS = (8, 0, 22)
"""The first MySQL Connector/J that checks host names fully.

Older ones check none, or only a certificate's common name.
"""
ONLY_12 = (8, 0, 19)
"""The first MySQL Connector/J that supports TLS 1.3."""
FILES = re.compile(r"allow\w*infile\w*", re.IGNORECASE)
"""Properties of the MySQL and MariaDB drivers for LOAD DATA LOCAL INFILE. The Java agent turns it off in any case."""
USUAL_BATCH = 100
"""Default number of rows in a batch."""
END, NEVER = "end", 2**62
"""`commit_every=end`: one transaction per slice. The agent commits what is left when a slice has ended."""


# ── which driver ──────────────────────────────────────────────────────────────────────────────────────────────────────


def driver_of(cell: CellSpec) -> Driver:
    """Return the cell's driver. Raises UsageError if it is unknown, unreadable or does not support the engine."""
    if cell.client == RUST:
        raise UsageError("--client rust uses no JDBC driver; remove it, or --driver")
    word, _, version = cell.client.partition(":")
    if word not in ("", WORD):
        raise UsageError(f"--client {cell.client}: write jdbc or jdbc:VERSION, e.g. jdbc:9.7.0")
    if cell.driver:
        return _users_driver(cell, version)
    match = re.fullmatch(r"([a-z][a-z-]*?)(?:-(\d.*|newest))?", version)
    if named := _family(match[1]) if match else None:
        rest = (match[2] if match else "") or ""
        if named not in drivers.ENGINES.get(cell.engine, ()):
            drivers.find("", cell.engine)
            raise UsageError(f"--client {cell.client}: {drivers.TITLES[named]} does not support {cell.engine}")
        known = [driver for driver in drivers.DRIVERS if driver.family == named]
        fitting = [driver for driver in known if rest in ("", "newest") or versions.matches(driver.version, rest)]
        if not fitting:
            raise UsageError(f"--client {cell.client}: {nearest(rest, [driver.version for driver in known])}")
        return fitting[-1]
    return drivers.find(version, cell.engine)


def _family(word: str) -> Family | None:
    words: dict[str, Family] = {"mysql": "connector-j", **{family: family for family in drivers.TITLES}}
    return words.get(word)


def _users_driver(cell: CellSpec, version: str) -> Driver:
    """Return the driver in the user's jars."""
    paths = [Path(name) for name in cell.driver.split(":") if name]
    if not paths:
        raise UsageError("--driver names no file")
    for path in paths:
        if not path.is_file():
            raise UsageError(f"--driver {path}: no such file")
    driver = drivers.of_file(*paths)
    drivers.find("", cell.engine)
    if driver.family not in drivers.ENGINES[cell.engine]:
        raise UsageError(f"--driver {paths[0]} is {driver.title}, which does not support {cell.engine}")
    if version and not versions.matches(driver.version, version):
        raise UsageError(
            f"--driver {paths[0]} is {driver.title}, but --client asks for {cell.client}; remove one of them"
        )
    return driver


def check_java(driver: Driver) -> None:
    """Check that a Java exists for the agent, new enough also for the user's driver.

    Raises MissingServer, UsageError.
    """
    program = java.find()
    if not driver.paths:
        return
    entry = driver.driver_class.replace(".", "/") + ".class"
    with zipfile.ZipFile(driver.paths[0]) as archive:
        if entry not in archive.namelist():
            raise UsageError(f"{driver.paths[0]} names the driver {driver.driver_class} but does not contain its class")
        with archive.open(entry) as file:
            head = file.read(8)
    needed, here = int.from_bytes(head[6:8], "big") - java.CLASS_JAVA_0, java.version(str(program))
    if not head.startswith(b"\xca\xfe\xba\xbe"):
        raise UsageError(f"{driver.paths[0]}: {entry} is not a class file")
    if needed > here:
        raise UsageError(
            f"{driver.paths[0]} needs Java {needed} or newer, but {program} is Java {here}; set JAVA_HOME to a newer Java"
        )


def fetch(wanted: Iterable[Driver]) -> None:
    """Build the Java agent and download these drivers before anything starts. Raises MissingServer, RunError."""
    for driver in {driver.title: driver for driver in wanted}.values():
        java.jar()
        driver.jars()


def most_tls(driver: Driver) -> str:
    """The newest TLS version that the driver supports. Pure."""
    old = driver.family == "connector-j" and versions.version_key(driver.version) < ONLY_12
    return "1.2" if old else "1.3"


def _checks_names(driver: Driver) -> bool:
    if driver.family == "h2":
        return False
    return driver.family != "connector-j" or versions.version_key(driver.version) >= NAMELESS


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Option(msgspec.Struct, frozen=True):
    """A setting of the client (`--set NAME=VALUE`). It applies to both arms."""

    name: str
    values: tuple[str, ...]
    """The first is the default; `number` is any integer above 0. Empty: any text, and the driver's own default."""
    text: str
    families: tuple[Family, ...] = ()
    """The families that have this property. Empty: it is the agent's own setting and works with any driver."""


FLAG = ("true", "false")
AGENT = (
    Option("how", ("executeUpdate", "execute", "batch"), "the JDBC call for statements that return no rows"),
    Option("batch", ("number",), "rows per batch, with how=batch"),
    Option("autocommit", FLAG, "false: the client commits after each operation"),
    Option(
        "commit_every",
        ("number", END),
        "operations per commit, with autocommit=false; end: one commit per slice",
    ),
    Option("prepared", FLAG, "false: each operation prepares its statements again"),
    Option("properties", (), "more driver properties: NAME=VALUE;NAME=VALUE"),
)
MYSQL: tuple[Family, ...] = ("connector-j",)
BOTH: tuple[Family, ...] = ("connector-j", "mariadb")
PROPERTIES = (
    Option("useLocalSessionState", FLAG, "the driver remembers autocommit and isolation", BOTH),
    Option("useLocalTransactionState", FLAG, "the driver skips commits when nothing changed", MYSQL),
    Option("rewriteBatchedStatements", FLAG, "sends a batch as one INSERT", BOTH),
    Option("cachePrepStmts", FLAG, "caches prepared statements after they are closed", BOTH),
    Option("useServerPrepStmts", FLAG, "the server prepares statements, not the driver", BOTH),
    Option("cacheServerConfiguration", FLAG, "reads the server's settings once, not per connection", MYSQL),
    Option("elideSetAutoCommits", FLAG, "sends setAutoCommit only where it changes something", MYSQL),
    Option("alwaysSendSetIsolation", FLAG, "sets the isolation level even if it is already set", MYSQL),
    Option("maintainTimeStats", FLAG, "reads the clock at each packet", MYSQL),
    Option("readOnlyPropagatesToServer", FLAG, "sends setReadOnly to the server as a statement", MYSQL),
    Option("useBulkStmts", FLAG, "uses MariaDB's bulk protocol for batches", ("mariadb",)),
    Option("prepareThreshold", (), "executions before the server prepares a statement", ("pgjdbc",)),
    Option("reWriteBatchedInserts", FLAG, "sends a batch as one INSERT", ("pgjdbc",)),
    Option(
        "preferQueryMode",
        ("simple", "extended", "extendedForPrepared", "extendedCacheEverything"),
        "query protocol",
        ("pgjdbc",),
    ),
    Option("binaryTransfer", FLAG, "sends values in binary", ("pgjdbc",)),
    Option("autosave", ("never", "always", "conservative"), "sets a savepoint before each statement", ("pgjdbc",)),
)


OPTIONS = frozenset(option.name for option in (*AGENT, *PROPERTIES))


def options_for(driver: Driver | None) -> dict[str, Option]:
    """Return the client's settings with this driver; without one (the Rust agent) there are none. Pure."""
    if driver is None:
        return {}
    return {
        option.name: option
        for option in (*AGENT, *PROPERTIES)
        if not option.families or driver.family in option.families
    }


def check(
    cell: CellSpec, driver: Driver, program: Program, options: Mapping[str, str], factors: Mapping[str, str]
) -> None:
    """Refuse what this driver or the Java agent can't do, before anything starts. `factors`: the mechanism's.

    Raises UsageError.
    """
    check_java(driver)
    known = options_for(driver)
    for name, value in options.items():
        _check_option(known[name], value)
    scripts = [script for _, _, script in program.transactions]
    if any(statement.sql.split(maxsplit=1)[:1] == ["THINK"] for script in scripts for statement in script.statements):
        raise UsageError(
            f"workload {program.name} has think time, which the Java agent does not support; remove --client"
        )
    per_request = cell.per_request or program.per_request
    if options.get("how") == "batch":
        if per_request:
            raise UsageError("how=batch needs kept connections, not one connection per operation; remove one of them")
        if any(script.flow or len(script.statements) != 1 or script.read_only for script in scripts):
            raise UsageError(
                f"how=batch needs a workload of a single statement that returns no rows, unlike {program.name}; use --workload insert-loop"
            )
    elif "batch" in options:
        raise UsageError("batch=… needs how=batch")
    if "commit_every" in options and (options.get("autocommit") != "false" or per_request):
        raise UsageError("commit_every needs autocommit=false and kept connections")
    if program.tries > 1 and (options.get("how") == "batch" or options.get("commit_every", "1") != "1"):
        raise UsageError(
            f"--max-tries {program.tries}: operations of a batch or a commit are rolled back together, so none is tried again alone; remove "
            "--max-tries, or how=batch and commit_every"
        )
    _check_tls(cell, driver, factors)


def _check_option(option: Option, value: str) -> None:
    if option.name == "properties":
        _properties(value)
    elif "number" in option.values:
        words = option.values[1:]
        if value not in words and (not value.isdecimal() or int(value) < 1):
            raise UsageError(f"{option.name}={value}: must be {' or '.join(('an integer above 0', *words))}")
    elif option.values and value not in option.values:
        raise UsageError(f"{option.name} can't be '{value}': {nearest(value, option.values)}")


def _properties(text: str) -> dict[str, str]:
    """Parse `a=1;b=2` to {a: 1, b: 2}. Raises UsageError, also for a password."""
    properties = {}
    for setting in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"properties={text}: write NAME=VALUE;NAME=VALUE")
        if SECRET.search(name):
            raise UsageError(
                f"properties: {name} is a secret, and every user of this machine can read command lines; remove it"
            )
        if FILES.fullmatch(name.strip()):
            raise UsageError(
                f"properties: {name.strip()} is not allowed: with it a server can read any file on this machine; remove it"
            )
        properties[name.strip()] = value
    return properties


def _check_tls(cell: CellSpec, driver: Driver, factors: Mapping[str, str]) -> None:
    given = cell.factors
    if DRIVERS_CHOICE.get(cell.mechanism) in given:
        raise UsageError(
            "Jaybird chooses the cipher itself (the first of its own that the server supports); remove cipher"
        )
    if cell.mechanism != "tls":
        return
    if factors.get("group"):
        raise UsageError("no JDBC driver reports the negotiated group; remove group")
    if factors.get("certificate") in POST_QUANTUM_KEYS:
        raise UsageError(f"Java 17 knows no ML-DSA; leave certificate={factors['certificate']} out")
    if factors.get("resumption", "off") != "off":
        raise UsageError("no JDBC driver controls or reports session resumption; leave resumption off")
    wanted = factors["version"] if "version" in given or not cell.url else ""
    if wanted == "1.3" and most_tls(driver) == "1.2":
        raise UsageError(
            f"{driver.title} supports TLS 1.2 at most; use --set version=1.2 (in all cells that you compare with it)"
        )
    if given.get("verify") == "full" and not _checks_names(driver):
        raise UsageError(
            f"{driver.title} checks no host names, or only a certificate's common name; use --set verify=ca"
        )
