"""jdbc: a cell whose load a JDBC driver makes -> which driver, what may be set of it, and an agent that is told what the Rust agent is.

JDBC can't say what was negotiated, so the server is asked of each session. That the peer is verified is never taken from what the
driver was told: an impostor has shown it another certificate, and was refused.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ciphercost import drivers, java, sources
from ciphercost.agent import Agent
from ciphercost.drivers import Driver, Family, Mode, Target, Wish
from ciphercost.errors import AgentError, RunError, Unproven, UsageError, nearest
from ciphercost.guard import Guard, temporary
from ciphercost.impostor import Impostor, Speech
from ciphercost.listening import address_of, is_loopback
from ciphercost.model import AgentSlice, Arm, CellSpec
from ciphercost.passwords import SECRET
from ciphercost.relay import Relay
from ciphercost.trust import encrypted_first, words
from ciphercost.workloads import Program

WORD = "jdbc"
DRIVERS_CHOICE = {"wire-crypt": "cipher"}
"""By mechanism: the factor that a driver decides itself."""
SPEECHES: dict[str, Speech] = {"mysql": "mysql", "postgres": "postgres"}
"""How servers begin, by the Rust agent's driver; others have no certificates."""
OTHER_NAME = "127.0.0.2"
"""An address of this machine that stands in no certificate."""
CHECKS: tuple[Mode, ...] = ("verify-ca", "verify-full")
NAMELESS = (8, 0, 22)
"""MySQL Connector/J before it checks no names, or knows a certificate's common name alone."""
ONLY_12 = (8, 0, 19)
"""MySQL Connector/J before it knows no TLS 1.3."""
MOST_SHOWN = 400
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
        fitting = [each for each in known if rest in ("", "newest") or sources.matches(each.version, rest)]
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
    if version and not sources.matches(found.version, version):
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


def fetch(cells: Iterable[CellSpec]) -> None:
    """What the cells need of Java, brought before anything is started: the agent and their drivers. Raises MissingServer, RunError."""
    for driver in {driver_of(cell).title: driver_of(cell) for cell in cells if asked(cell)}.values():
        java.jar()
        driver.jars()


def most_tls(driver: Driver) -> str:
    """The newest TLS version that it knows. Pure."""
    old = driver.family == "connector-j" and sources.version_key(driver.version) < ONLY_12
    return "1.2" if old else "1.3"


def _checks_names(driver: Driver) -> bool:
    return driver.family != "connector-j" or sources.version_key(driver.version) >= NAMELESS


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


def options_for(cell: CellSpec) -> dict[str, Option]:
    """What `--set` may say to the cell's client; nothing where it isn't JDBC. Raises UsageError as `driver_of` does."""
    if not asked(cell):
        return {}
    family = driver_of(cell).family
    return {each.name: each for each in (*AGENT, *PROPERTIES) if not each.families or family in each.families}


def check(cell: CellSpec, program: Program, options: Mapping[str, str], factors: Mapping[str, str]) -> None:
    """Refuse what this driver, or the Java agent, can't do, before anything is started. `factors`: of the mechanism. Raises UsageError."""
    driver = driver_of(cell)
    check_java(driver)
    known = options_for(cell)
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


def _count(value: str) -> int:
    """What the agent is sent for `10` or `end`. Pure."""
    return NEVER if value == END else int(value)


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


# ── the agent ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Spoken(Protocol):
    """What the Java agent must know of the engine that it speaks to."""

    name: str

    @property
    def driver(self) -> str:
        """The protocol that it speaks, as the Rust agent names it."""

    @property
    def tls_witness(self) -> str:
        """SQL that says how the session is encrypted."""


class JdbcAgent(Agent):
    """The Java agent with one driver. `connect` takes the fields that the Rust agent takes."""

    compiles = True

    def __init__(
        self,
        driver: Driver,
        engine: Spoken,
        options: Mapping[str, str],
        like: Mapping[str, object],
        *,
        aes: bool = True,
        cpus: Iterable[int] | None = None,
        log: Path | None = None,
        netns: Path | None = None,
        guard: Guard,
    ) -> None:
        """`guard`: of the run that its files belong to; `options`: what `--set` says to the client; `like`: fields of its
        encrypted connections, as far as the virtual machine must know them.
        """
        self.driver = driver
        self.engine = engine
        self._options = options
        self._closing = contextlib.ExitStack()
        self._place = self._closing.enter_context(temporary(guard, "jdbc"))
        self._checked: dict[tuple[str, str], tuple[bool, str]] = {}
        self.said: dict[str, dict[str, Any]] = {}
        """What `connect` answered, by arm."""
        try:
            machine = drivers.machine_options(_wish(like, "")) if self._told(like).unsaid else []
            super().__init__(java.command(machine, aes=aes), cpus=cpus, log=log, env=java.OTHERS, netns=netns)
        except BaseException:
            self._closing.close()
            raise

    def close(self) -> None:
        super().close()
        self._closing.close()

    # ── connecting ────────────────────────────────────────────────────────────────────────────────────────────────────

    def connect(self, arm: str, **fields: object) -> dict[str, Any]:
        answer = super().connect(arm, **self.translated(fields))
        answer["server_version"] = plain_version(str(answer["server_version"]))
        del answer["resumed"]  # it can't be told
        if answer["encrypted"] and fields.get("tls", "off") != "off":
            answer["peer"] = "the server"
            answer["verified"], answer["checked"] = self._verified(fields)
        self.said[arm] = answer
        return answer

    def disconnect(self, arm: str) -> None:
        super().disconnect(arm)
        self.said.pop(arm, None)

    def translated(self, fields: Mapping[str, object]) -> dict[str, object]:
        """Fields of the Java agent's `connect` that mean what these mean to the Rust agent."""
        told = self._told(fields)
        own = {name: self._options[name] for name in ("how",) if name in self._options}
        more: dict[str, object] = {
            **own,
            **{name: _count(self._options[name]) for name in ("batch", "commit_every") if name in self._options},
            **{name: self._options[name] == "true" for name in ("autocommit", "prepared") if name in self._options},
            **{name: fields[name] for name in ("connections", "threads", "setup", "relayed") if name in fields},
        }
        if fields.get("per_request"):
            more["per_request"] = True
        user, password = str(fields.get("user", "")), str(fields.get("password", ""))
        return drivers.connection(self.driver, told, user, password, witness=self.engine.tls_witness, more=more)

    def _told(self, fields: Mapping[str, object]) -> drivers.Address:
        host, wish = self._host(fields)
        loopback = is_loopback(str(fields["host"])) and not fields.get("relayed")
        target = Target(host, int(str(fields["port"])), str(fields.get("database", "")), loopback)
        agents = {each.name for each in AGENT}
        more = {name: value for name, value in self._options.items() if name not in agents}
        more |= _properties(self._options.get("properties", ""))
        if schema := fields.get("search_path"):
            more["currentSchema"] = str(schema)
        return drivers.address(self.driver, target, wish, more)

    def _host(self, fields: Mapping[str, object]) -> tuple[str, Wish]:
        """The host as the driver is to know it, and what it is to check.

        A driver checks the certificate against the host of its URL. Where a relay stands between (its address is not the server's), only
        the chain can be checked.
        """
        host, name = str(fields["host"]), str(fields.get("tls_server_name", ""))
        wish = _wish(fields, self._store(str(fields.get("tls_ca", ""))))
        if wish.mode == "verify-full" and not _checks_names(self.driver):
            wish = msgspec.structs.replace(wish, mode="verify-ca")
        if not name or name == host:
            return host, wish
        if address_of(name, int(str(fields["port"]))) == host:
            return name, wish
        return host, msgspec.structs.replace(wish, mode="verify-ca") if wish.mode == "verify-full" else wish

    def _store(self, ca: str) -> str:
        if not ca:
            return ""
        store = self._place / f"{abs(hash(ca)):x}.p12"
        if not store.exists():
            drivers.trust_store(Path(ca), store)
        return str(store)

    def _verified(self, fields: Mapping[str, object]) -> tuple[bool, str]:
        """Whether the driver lets anybody else be the server, tried once for each way to connect, and in words."""
        _, wish = self._host(fields)
        if wish.mode not in CHECKS or self.engine.driver not in SPEECHES:
            return False, ""
        key = (wish.mode, wish.ca)
        if key not in self._checked:
            self._checked[key] = self._try(fields, wish)
        return self._checked[key]

    def _try(self, fields: Mapping[str, object], wish: Wish) -> tuple[bool, str]:
        kind = "ecdsa-p256" if any("ECDSA" in suite for suite in wish.ciphers) else "rsa2048"
        alone = {**fields, "connections": 1, "threads": 1, "per_request": False}

        def call(port: int, host: str = "127.0.0.1") -> str:
            return self._reached({**alone, "host": host, "port": port})

        passed, words = refuses_impostor(
            SPEECHES[self.engine.driver], str(fields["host"]), int(str(fields["port"])), self._place, call, kind
        )
        if not passed or wish.mode != "verify-full":
            return passed, words
        named, more = refuses_other_name(str(fields["host"]), int(str(fields["port"])), call)
        return named, f"{words}, {more}"

    def _reached(self, fields: Mapping[str, object]) -> str:
        """The reason why a connection by this way fails; empty where it doesn't. The name to be checked is that of the way."""
        own = {name: value for name, value in fields.items() if name != "tls_server_name"}
        try:
            super().connect("stranger", **self.translated(own))
        except AgentError as error:
            return str(error) or error.code
        super().disconnect("stranger")
        return ""

    def enter(
        self, connect: Mapping[Arm, Mapping[str, object]], told: Callable[[AgentError], None] | None = None
    ) -> None:
        """That the driver can log in at all, in both arms. Raises RunError with its own reason and what may help.

        `told`: on a server of the user's, why the encrypted arm can't; the plain one is not tried then.
        """
        for arm in encrypted_first(connect):
            fields = {name: value for name, value in connect[arm].items() if name != "per_request"}
            try:
                super().connect("enter", **self.translated(fields | {"connections": 1, "threads": 1}))
                super().disconnect("enter")
            except AgentError as error:
                more = hint(self.driver, error)
                if told and arm == "encrypted":
                    told(error)
                    more += f". {words(str(error), error.code)}"
                raise RunError(
                    f"{self.driver.title} can't connect, {arm} arm: {str(error)[:MOST_SHOWN]} [{error.code}]{more}"
                ) from None

    # ── loading ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def slice(
        self,
        arm: str,
        seconds: float,
        **more: Any,
    ) -> AgentSlice:
        """As of any agent. Raises Unproven where another driver or another session made it than was connected."""
        answer = super().slice(arm, seconds, **more)
        said = self.said.get(arm, {})
        for name in ("driver_version", "encrypted", "protocol", "cipher"):
            if name in said and getattr(answer, name) != said[name]:
                raise Unproven(
                    f"client witness, {arm} arm, under load: {name} is '{getattr(answer, name)}', and '{said[name]}' was connected"
                )
        return answer


def _wish(fields: Mapping[str, object], store: str) -> Wish:
    """How a connection is to be encrypted, of the Rust agent's fields. Pure."""
    if fields.get("wire_crypt", "off") != "off":
        return Wish("require")
    mode: Any = fields.get("tls", "off")
    if mode == "off":
        return Wish()
    suites = tuple(filter(None, str(fields.get("tls_ciphers", "")).split(":")))
    return Wish(mode, str(fields.get("tls_ca", "")), store, str(fields.get("tls_max", "")), suites)


def plain_version(text: str) -> str:
    """`10.11.18` of `5.5.5-10.11.18-MariaDB-deb12`. Pure."""
    match = re.match(r"(?:5\.5\.5-)?(\d+(?:\.\d+)*)", text)
    return match[1] if match else text


def config_diff(connect: Mapping[Arm, Mapping[str, object]]) -> list[str]:
    """What differs between what the driver is told for the arms, secrets and places of this machine left out. Pure."""
    told = {
        arm: dict(line.partition("=")[::2] for line in str(fields["properties"]).splitlines())
        for arm, fields in connect.items()
    }
    plain, encrypted = told["plain"], told["encrypted"]
    names = [name for name in sorted({*plain, *encrypted}) if plain.get(name) != encrypted.get(name)]
    shown = [
        name
        for name in names
        if not SECRET.search(name) and not re.search("StoreUrl|rootcert|SslCert", name, re.IGNORECASE)
    ]
    return [f"{name}: {plain.get(name, 'not set')} | {encrypted.get(name, 'not set')}" for name in shown]


Call = Callable[..., str]
"""`call(port, host)`: connect by this way; the reason why it failed, or nothing."""


def refuses_impostor(
    speech: Speech, host: str, port: int, place: Path, call: Call, kind: str = "rsa2048", name: str = ""
) -> tuple[bool, str]:
    """Whether a driver refuses a certificate that nobody has vouched for, and in words. `kind`: of its key."""
    with (
        tempfile.TemporaryDirectory(dir=place) as own,
        Impostor(speech, host, port, Path(own) / "impostor", certificate=kind, name=name) as impostor,
    ):
        reason = call(impostor.port)
    met = impostor.met
    if "accepted" in met:
        return False, "an impostor with a certificate of its own is accepted"
    if "clear" in met:
        return False, "an impostor is sent the login in clear"
    if met and set(met) == {"refused"} and reason:
        return True, "an impostor with another CA's certificate is refused"
    return False, f"whether an impostor is refused could not be told ({reason[:MOST_SHOWN] or 'it was let in'})"


def refuses_other_name(host: str, port: int, call: Call) -> tuple[bool, str]:
    """Whether the real server is refused under a name that isn't in its certificate, though by its address it is let in."""
    with Relay(host, port, listen=OTHER_NAME) as other:
        reason = call(other.port, OTHER_NAME)
    return (True, "and so is another name") if reason else (False, "the server under another name is not")


def hint(driver: Driver, error: AgentError) -> str:
    """What to do where a driver can't connect. Pure."""
    text, old = str(error), driver.family == "connector-j" and sources.version_key(driver.version) < (5, 1, 44)
    if old and (error.code == "tls" or "TrustManager" in text):
        return (
            ". It offers TLS 1.0 at most, which Java has switched off (jdk.tls.disabledAlgorithms): use 5.1.49 or newer, or "
            "measure it in clear by `none`"
        )
    if error.code.startswith("1251") or "authentication" in text.lower():
        return ". The account logs in by a method that this driver does not know: use a newer driver, or an older server (mariadb@10.11)"
    if error.code == "tls":
        return ". Which versions and suites the driver offers: --set version=1.2, --set cipher=…"
    return ""
