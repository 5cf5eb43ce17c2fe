"""options: What `--set` may say to a JDBC client, and which driver a cell asks for."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from ciphercost.host import versions
from ciphercost.load.jdbc import drivers, java
from ciphercost.load.jdbc.drivers import Driver, Family
from ciphercost.load.program import Program
from ciphercost.load.redact import SECRET
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.spec import CellSpec

WORD = "jdbc"
DRIVERS_CHOICE = {"wire-crypt": "cipher"}
"""By mechanism: the factor that a driver decides itself."""
NAMELESS = (8, 0, 22)
"""MySQL Connector/J before it checks no names, or knows a certificate's common name alone."""
ONLY_12 = (8, 0, 19)
"""MySQL Connector/J before it knows no TLS 1.3."""
FILES = re.compile(r"allow\w*infile\w*", re.IGNORECASE)
"""Properties of MySQL's and MariaDB's drivers for LOAD DATA LOCAL INFILE. The Java agent turns it off in any case."""
USUAL_BATCH = 100
"""Rows of a batch, where nobody says."""
END, NEVER = "end", 2**62
"""`commit_every=end`: one transaction for all of a slice; the agent commits what is left when a slice has ended."""


# ── which driver ──────────────────────────────────────────────────────────────────────────────────────────────────────


def asked(cell: CellSpec) -> bool:
    """Whether a JDBC driver makes the cell's load. Pure."""
    return bool(cell.client or cell.driver)


def driver_of(cell: CellSpec) -> Driver:
    """The cell's driver. Raises UsageError for one that isn't known, that can't be read or speaks to other servers."""
    word, _, version = cell.client.partition(":")
    if word not in ("", WORD):
        raise UsageError(
            f"--client {cell.client}: write rust (unless told otherwise), jdbc or jdbc:VERSION, e.g. jdbc:9.7.0"
        )
    if cell.driver:
        return _own(cell, version)
    match = re.fullmatch(r"([a-z][a-z-]*?)(?:-(\d.*|newest))?", version)
    if named := _family(match[1]) if match else None:
        rest = (match[2] if match else "") or ""
        if named not in drivers.ENGINES.get(cell.engine, ()):
            drivers.find("", cell.engine)
            raise UsageError(f"--client {cell.client}: {drivers.TITLES[named]} does not speak to {cell.engine}")
        known = [each for each in drivers.DRIVERS if each.family == named]
        fitting = [each for each in known if rest in ("", "newest") or versions.matches(each.version, rest)]
        if not fitting:
            raise UsageError(f"--client {cell.client}: {nearest(rest, [each.version for each in known])}")
        return fitting[-1]
    return drivers.find(version, cell.engine)


def _family(word: str) -> Family | None:
    words: dict[str, Family] = {"mysql": "connector-j", **{family: family for family in drivers.TITLES}}
    return words.get(word)


def _own(cell: CellSpec, version: str) -> Driver:
    """The driver in the user's jars."""
    paths = [Path(each) for each in cell.driver.split(":") if each]
    if not paths:
        raise UsageError("--driver names no file")
    for path in paths:
        if not path.is_file():
            raise UsageError(f"--driver {path}: there is no such file")
    found = drivers.of_file(*paths)
    drivers.find("", cell.engine)
    if found.family not in drivers.ENGINES[cell.engine]:
        raise UsageError(f"--driver {paths[0]} is {found.title}, which does not speak to {cell.engine}")
    if version and not versions.matches(found.version, version):
        raise UsageError(
            f"--driver {paths[0]} is {found.title}, and --client {cell.client} another: leave one of them out"
        )
    return found


def check_java(driver: Driver) -> None:
    """That there is a Java for the agent, new enough for a driver of the user's too. Raises MissingServer, UsageError."""
    program = java.find()
    if not driver.paths:
        return
    entry = driver.driver_class.replace(".", "/") + ".class"
    with zipfile.ZipFile(driver.paths[0]) as archive:
        if entry not in archive.namelist():
            raise UsageError(f"{driver.paths[0]} names the driver {driver.driver_class}, and its class is not in it")
        with archive.open(entry) as file:
            head = file.read(8)
    needed, here = int.from_bytes(head[6:8], "big") - java.CLASS_JAVA_0, java.version(str(program))
    if not head.startswith(b"\xca\xfe\xba\xbe"):
        raise UsageError(f"{driver.paths[0]}: {entry} is no class file")
    if needed > here:
        raise UsageError(
            f"{driver.paths[0]} needs Java {needed} or newer, and {program} is Java {here}: set JAVA_HOME to a newer one"
        )


def fetch(wanted: Iterable[Driver]) -> None:
    """Get the Java agent and these drivers before anything is started. Raises MissingServer, RunError."""
    for driver in {each.title: each for each in wanted}.values():
        java.jar()
        driver.jars()


def most_tls(driver: Driver) -> str:
    """The newest TLS version that it knows. Pure."""
    old = driver.family == "connector-j" and versions.version_key(driver.version) < ONLY_12
    return "1.2" if old else "1.3"


def _checks_names(driver: Driver) -> bool:
    return driver.family != "connector-j" or versions.version_key(driver.version) >= NAMELESS


# ── what may be set of it ─────────────────────────────────────────────────────────────────────────────────────────────


class Option(msgspec.Struct, frozen=True):
    """Something that `--set NAME=VALUE` says to the client, in both arms."""

    name: str
    values: tuple[str, ...]
    """The first is the default; `number` stands for any whole number above 0. Empty: any text, and the default is the driver's own."""
    text: str
    families: tuple[Family, ...] = ()
    """Those whose property it is; none: it is the agent's own, with any driver."""


FLAG = ("true", "false")
AGENT = (
    Option("how", ("executeUpdate", "execute", "batch"), "the call that runs what answers no rows"),
    Option("batch", ("number",), "rows of a batch, with how=batch"),
    Option("autocommit", FLAG, "false: a commit by the client after each operation"),
    Option(
        "commit_every",
        ("number", END),
        "operations between two commits, with autocommit=false; end: one commit a slice",
    ),
    Option("prepared", FLAG, "false: each operation prepares its statements anew"),
    Option("properties", (), "more properties of the driver: NAME=VALUE;NAME=VALUE"),
)
MYSQL: tuple[Family, ...] = ("connector-j",)
BOTH: tuple[Family, ...] = ("connector-j", "mariadb")
PROPERTIES = (
    Option("useLocalSessionState", FLAG, "the driver remembers autocommit and isolation", BOTH),
    Option("useLocalTransactionState", FLAG, "the driver leaves out commits of nothing", MYSQL),
    Option("rewriteBatchedStatements", FLAG, "one INSERT for a batch", BOTH),
    Option("cachePrepStmts", FLAG, "prepared statements outlive their closing", BOTH),
    Option("useServerPrepStmts", FLAG, "the server prepares, and not the driver", BOTH),
    Option("cacheServerConfiguration", FLAG, "the server's settings are asked once, not at each connection", MYSQL),
    Option("elideSetAutoCommits", FLAG, "setAutoCommit only where it changes something", MYSQL),
    Option("alwaysSendSetIsolation", FLAG, "isolation is set even where it is so", MYSQL),
    Option("maintainTimeStats", FLAG, "the clock is read at each packet", MYSQL),
    Option("readOnlyPropagatesToServer", FLAG, "setReadOnly is a statement", MYSQL),
    Option("useBulkStmts", FLAG, "MariaDB's own batches", ("mariadb",)),
    Option("prepareThreshold", (), "runs until the server prepares", ("pgjdbc",)),
    Option("reWriteBatchedInserts", FLAG, "one INSERT for a batch", ("pgjdbc",)),
    Option(
        "preferQueryMode",
        ("simple", "extended", "extendedForPrepared", "extendedCacheEverything"),
        "protocol",
        ("pgjdbc",),
    ),
    Option("binaryTransfer", FLAG, "values travel in binary", ("pgjdbc",)),
    Option("autosave", ("never", "always", "conservative"), "a savepoint before each statement", ("pgjdbc",)),
)


OPTIONS = frozenset(each.name for each in (*AGENT, *PROPERTIES))


def options_for(driver: Driver | None) -> dict[str, Option]:
    """What `--set` may say to a client with this driver; nothing to the Rust agent, which has none. Pure."""
    if driver is None:
        return {}
    return {each.name: each for each in (*AGENT, *PROPERTIES) if not each.families or driver.family in each.families}


def check(
    cell: CellSpec, driver: Driver, program: Program, options: Mapping[str, str], factors: Mapping[str, str]
) -> None:
    """Refuse what this driver, or the Java agent, can't do, before anything is started. `factors`: of the mechanism. Raises UsageError."""
    check_java(driver)
    known = options_for(driver)
    for name, value in options.items():
        _check_option(known[name], value)
    scripts = [script for _, _, script in program.transactions]
    if any(each.sql.split(maxsplit=1)[:1] == ["THINK"] for script in scripts for each in script.statements):
        raise UsageError(f"workload {program.name} thinks, which the Java agent does not: leave --client out")
    per_request = cell.per_request or program.per_request
    if options.get("how") == "batch":
        if per_request:
            raise UsageError("how=batch: a connection for one operation has no batch; leave one of them out")
        if any(len(script.statements) != 1 or script.read_only for script in scripts):
            raise UsageError(
                f"how=batch: workload {program.name} is more than one statement that answers no rows; use --workload insert-loop"
            )
    elif "batch" in options:
        raise UsageError("batch: a number of rows goes with how=batch")
    if "commit_every" in options and (options.get("autocommit") != "false" or per_request):
        raise UsageError("commit_every goes with autocommit=false, on connections that are kept")
    _check_tls(cell, driver, factors)


def _check_option(option: Option, value: str) -> None:
    if option.name == "properties":
        _properties(value)
    elif "number" in option.values:
        words = option.values[1:]
        if value not in words and (not value.isdecimal() or int(value) < 1):
            raise UsageError(f"{option.name}={value}: must be {' or '.join(('a whole number above 0', *words))}")
    elif option.values and value not in option.values:
        raise UsageError(f"{option.name} can't be '{value}': {nearest(value, option.values)}")


def _properties(text: str) -> dict[str, str]:
    """`a=1;b=2` -> {a: 1, b: 2}. Raises UsageError, also for a password."""
    found = {}
    for each in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, value = each.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"properties={text}: write NAME=VALUE;NAME=VALUE")
        if SECRET.search(name):
            raise UsageError(
                f"properties: {name} is a secret, and command lines can be read by every user of this machine"
            )
        if FILES.fullmatch(name.strip()):
            raise UsageError(
                f"properties: {name.strip()} can't be set: with it a server can read any file of this machine. Remove it"
            )
        found[name.strip()] = value
    return found


def _check_tls(cell: CellSpec, driver: Driver, factors: Mapping[str, str]) -> None:
    given = cell.factors
    if DRIVERS_CHOICE.get(cell.mechanism) in given:
        raise UsageError("Jaybird takes the first cipher of its own that the server has: leave cipher out")
    if cell.mechanism != "tls":
        return
    if factors.get("group"):
        raise UsageError("no JDBC driver says which group was agreed on: leave group out")
    if factors.get("resumption", "off") != "off":
        raise UsageError("no JDBC driver resumes sessions by choice, nor says that it did: leave resumption off")
    wanted = factors["version"] if "version" in given or not cell.url else ""
    if wanted == "1.3" and most_tls(driver) == "1.2":
        raise UsageError(
            f"{driver.title} knows no TLS newer than 1.2: --set version=1.2 (in all cells that are compared with it)"
        )
    if given.get("verify") == "full" and not _checks_names(driver):
        raise UsageError(
            f"{driver.title} checks no names, or a certificate's common name alone: --set verify=ca is the most that it can do"
        )


def settled(cells: list[CellSpec]) -> list[CellSpec]:
    """Where one of a group's drivers knows no TLS 1.3 and nobody has said which version: 1.2 in all of them, so that they differ in the driver alone."""
    made = list(cells)
    for group in {cell.group or f"\0{number}" for number, cell in enumerate(cells)}:
        own = [number for number, cell in enumerate(cells) if (cell.group or f"\0{number}") == group]
        if any(cells[number].mechanism != "tls" or "version" in cells[number].factors for number in own):
            continue
        if any(asked(cells[number]) and most_tls(driver_of(cells[number])) == "1.2" for number in own):
            for number in own:
                factors = {**cells[number].factors, "version": "1.2"}
                made[number] = msgspec.structs.replace(cells[number], factors=factors)
    return made
