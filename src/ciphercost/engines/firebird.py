"""Firebird 4 and later: packages, start, wire encryption, and databases of ciphercost's own.

Firebird's paths are compiled in, but the variable FIREBIRD overrides its root. So each data directory is a root of its
own, with its own configuration and users; the configuration names the installation's plugins by their paths.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import secrets
import shutil
import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from ciphercost.engines import Server, StartRequest, _firebird_pages, _network
from ciphercost.engines._dumps import firebird as dumps
from ciphercost.engines._found import Found
from ciphercost.engines._network import PASSWORD_FILE, StartedServer
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.engines.capabilities.dumps import Dump, DumpColumn, DumpTarget, LoadsDumps, Rows
from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.engines.capabilities.settings import Decided, TakesSettings
from ciphercost.engines.capabilities.storage import Spill, StoresData
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host import debian, package_cache, run_in_place, versions
from ciphercost.host.installation import Installation
from ciphercost.host.launch import LAST_LINES, apart, launch
from ciphercost.host.package_cache import Receipt, Work
from ciphercost.host.programs import output_of
from ciphercost.host.run_ownership import hand_over, own_file, scratch_base, server_user
from ciphercost.load.connection_string import ConnectionString
from ciphercost.load.connection_string import firebird as connection_string
from ciphercost.model import grants
from ciphercost.model.connection import Changes, Connection
from ciphercost.model.constrained_types import PREFIX
from ciphercost.model.errors import AgentError, MissingServer, RefusedSetting, RunError, nearest
from ciphercost.model.secret import Secret
from ciphercost.model.spec import ARMS

if TYPE_CHECKING:
    from ciphercost.host.supervisor import Supervisor
    from ciphercost.load.agent import Agent

PLUGIN_SETTING = "plugin:"
"""Prefix of a setting that registers a plugin; the value holds the plugin's own settings, one per line."""
USER, DATABASE, FILE, SECURITY = "ciphercost", "ciphercost", "database.fdb", "security4.fdb"
ARM_DATABASES = tuple(f"ciphercost_{arm}" for arm in ARMS)
MARK = "made by ciphercost, run "
"""Comment of our database on a server you already run."""
EXISTS = ("exists already", "is in use", "File exists")
"""In a server's refusal to create a database over an existing file, closed or open."""
PORT = 3050
OLDEST = 4
LINGER_SECONDS = 60
OWN_LOGS = "firebird*.log"
"""Logs that a server writes in its root instead of on its output."""
REPLIES = (3, 4, 9, 92, 94, 98)
"""op_accept, op_reject, op_response, op_cont_auth, op_accept_data, op_cond_accept: possible first replies."""

SETTINGS = {
    "Providers": "Engine13",
    "ServerMode": "Super",
    "WireCrypt": "Enabled",
    "WireCryptPlugin": "ChaCha64, ChaCha, Arc4",
    "WireCompression": "false",
    "AuthServer": "Srp256",
    "UserManager": "Srp",
    "DefaultDbCachePages": "16384",
    "UdfAccess": "None",
    "ExternalFileAccess": "None",
}
"""Settings of both arms. Every other setting keeps the server's default, so databases are written through to disk.

`Enabled`: each connection chooses whether it is encrypted. 16384 pages are 128 MB.
"""

KEPT = (
    r"remote.*|ipcname|wire.*|auth.*|usermanager|providers|servermode|securitydatabase|databaseaccess|udfaccess|externalfileaccess|"
    r".*plugin|rootdirectory|outputredirectionfile|trace.*|audit.*"
)
"""`TakesSettings.kept_settings`."""

DATABASE_SETTINGS = (
    "MON$PAGE_SIZE",
    "MON$PAGE_BUFFERS",
    "MON$FORCED_WRITES",
    "MON$RESERVE_SPACE",
    "MON$SWEEP_INTERVAL",
    "MON$SQL_DIALECT",
    "MON$CRYPT_STATE",
)
"""Settings that belong to the database instead of the server."""

PLUGINS = {
    "Engine13": "Engine13",
    "Srp": "Srp",
    "Srp256": "Srp",
    "ChaCha": "ChaCha",
    "ChaCha64": "ChaCha",
    "fbtrace": "fbtrace",
}
"""Plugins by name, with the library that holds each; Arc4 is built into the server."""

PAGE_SIZE, LEAST_PAGES = 8192, 256

SUITES = {"4.0": "trixie"}
"""Debian suites by the version they carry."""


def _packages(series: str) -> list[str]:
    return [f"firebird{series}-server", f"firebird{series}-utils"]


# ── finding ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _usual_places() -> Iterator[Path]:
    if location := shutil.which("firebird"):
        yield Path(location).resolve().parent
    for pattern in ("usr/lib/firebird/*/bin", "opt/firebird*/bin", "usr/local/firebird/bin"):
        yield from sorted(Path("/").glob(pattern), key=lambda path: versions.version_key(str(path)), reverse=True)


def version_of(bindir: Path, before: Iterable[str] = ()) -> str:
    """Return the version that `firebird -z` prints, e.g. `4.0.5`; empty if no server is there or it doesn't run here.

    `before`: command of a program loader.
    """
    program = bindir / "firebird"
    if not os.access(program, os.X_OK) or not _isql(bindir):
        return ""
    match = re.search(r"-[VT](\d+\.\d+\.\d+)", output_of([*before, program, "-z"], 10))
    return match[1] if match and home_of(bindir) else ""


def _isql(bindir: Path) -> Path | None:
    """Return the program that runs SQL, under the name it has here (Debian: isql-fb)."""
    return next((bindir / name for name in ("isql-fb", "isql") if os.access(bindir / name, os.X_OK)), None)


def home_of(bindir: Path) -> Path | None:
    """Return the directory of plugins and messages for these programs: beside them, or where Debian installs it."""
    places = [bindir.parent, *bindir.parent.parent.parent.glob(f"*/firebird/{bindir.parent.name}")]
    return next((place for place in places if any((place / "plugins").glob("libEngine*.so"))), None)


def plugin_of(bindir: Path, name: str) -> Path | None:
    """Return the library of a plugin that comes with this server; None if it does not come with it.

    Upstream keeps sample plugins in a separate directory, Debian doesn't.
    """
    home = home_of(bindir) or bindir.parent
    places = (home / "plugins", home / "examples/prebuilt/plugins", home / "examples/prebuilt")
    return next((path for place in places if (path := place / f"lib{name}.so").exists()), None)


def crypto_library(pid: int) -> str:
    """Return the library that the process has loaded for encryption, e.g.

    `LibTomCrypt 1.18.2`; empty if not visible.
    """
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            path = line.split(maxsplit=5)[-1]
            if "/libtomcrypt" in path:
                return _version_in(Path(f"/proc/{pid}/root{path}"))
    return ""


def _version_in(library: Path) -> str:
    match = re.search(rb"LibTomCrypt \d[\w.]*", library.read_bytes())
    return match[0].decode() if match else library.name


def _library_of(bindir: Path) -> str:
    """Return the library that a fetched installation encrypts with.

    The server loads it at the first encrypted connection.
    """
    root = next((parent for parent in bindir.parents if (parent / package_cache.RECEIPT).exists()), None)
    for path in root.glob("usr/lib/*/libtomcrypt.so.*") if root else ():
        if not path.is_symlink():
            return _version_in(path)
    return ""


# ── the servers ───────────────────────────────────────────────────────────────────────────────────────────────────────


class FirebirdServer(StartedServer):
    """A server that ciphercost started; it closes its databases before it ends."""

    driver, user, database = "firebird", USER, DATABASE


class RunningServer(_network.RunningServer):
    """A server you already run."""

    driver = "firebird"
    certified = False

    def __init__(self, url: str) -> None:
        super().__init__(connection_string.read(url), ("firebird", "fbserver"))
        self.library = crypto_library(self.pid) if self.pid else ""

    def password(self) -> Secret | None:
        return password_found()


def password_found() -> Secret | None:
    """Return the password from ISC_PASSWORD; None if there is none."""
    password = os.environ.get("ISC_PASSWORD", "")
    return Secret(password) if password else None


def answers(address: str, port: int) -> bool:
    """Whether a Firebird there replies to a greeting, with any reply."""
    # op_connect, op_attach, version 3, generic; no database; one protocol; no user; it is 13, generic, types 0 to 5,
    # weight 1.
    greeting = struct.pack("!12i", 1, 19, 3, 1, 0, 1, 0, 13 - 0x8000, 1, 0, 5, 1)
    try:
        with socket.create_connection((address, port), timeout=1) as connection:
            connection.sendall(greeting)
            return int.from_bytes(connection.recv(4), "big") in REPLIES
    except OSError:
        return False


# ── the engine ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Firebird(Found, EncryptsConnections, TakesUrl, TakesSettings, OwnSchema, StoresData, LoadsDumps):
    kept_settings = KEPT
    setting_example = "DefaultDbCachePages=65536"
    decided_settings = (
        Decided(
            "wirecompression", why="the agent refuses compression, which would change what is encrypted; remove it"
        ),
    )
    absent = "contains no 'firebird' and 'isql' (or 'isql-fb') that run on this machine, with plugins beside them"
    oldest = OLDEST
    name = "firebird"
    title = "Firebird"
    driver = "firebird"
    dialect = "firebird"
    schemes = MappingProxyType({"firebird": "wire-crypt"})
    refuses_clear = ("28000",)  # WireCrypt = Required
    refuses_anonymous = "the server asks for a password and none was given"
    give_password = connection_string.INSTEAD
    password_from = "ISC_PASSWORD"  # noqa: S105 - where it is, not what it is
    tls_witness = (
        "SELECT MON$WIRE_ENCRYPTED, TRIM(IIF(MON$WIRE_ENCRYPTED, 'wire-crypt', '')), TRIM(COALESCE(MON$WIRE_CRYPT_PLUGIN, '')) "
        "FROM MON$ATTACHMENTS WHERE MON$ATTACHMENT_ID = CURRENT_CONNECTION"
    )
    home = "SELECT MON$DATABASE_NAME FROM MON$DATABASE"
    variables = "SELECT RDB$CONFIG_NAME, RDB$CONFIG_VALUE FROM RDB$CONFIG" + "".join(
        f" UNION ALL SELECT '{name}', CAST({name} AS VARCHAR(255)) FROM MON$DATABASE" for name in DATABASE_SETTINGS
    )
    unlike = ("RemoteServicePort", "DatabaseAccess", "TempDirectories", "SecurityDatabase")
    temporary = ("temporary/*", "lock/*")

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        """Paths of our own databases on a server you already run, by name."""

    def echo(self, text: str) -> str:
        return f"SELECT '{text}' FROM RDB$DATABASE"

    def spills(self, word: str) -> tuple[Spill, ...]:
        """Sorts and temporary tables have files of their own. Unlinked at once, they are visible only through the
        server process.

        The word is not part of the sort's key, whose bytes Firebird reverses four by four. The sort needs 100 MB;
        TempCacheLimit is 64.
        """
        rows = "RDB$TYPES A CROSS JOIN RDB$TYPES B CROSS JOIN (SELECT FIRST 5 RDB$TYPE FROM RDB$TYPES) C"
        many = f"SELECT CAST('{word}' AS VARCHAR(200)) AS W, A.RDB$TYPE AS K FROM {rows}"
        sort = f"SELECT FIRST 1 SKIP 400000 W, K FROM ({many} UNION ALL SELECT '', 0 FROM RDB$DATABASE) ORDER BY K"
        table = f"{PREFIX}spill"
        return (
            Spill("sort", (sort,), during=True),
            Spill(
                "global temporary table",
                (
                    f"RECREATE GLOBAL TEMPORARY TABLE {table} (WORD VARCHAR(200)) ON COMMIT PRESERVE ROWS",
                    f"INSERT INTO {table} SELECT FIRST 100 '{word}' FROM RDB$TYPES",
                ),
            ),
        )

    def does_direct_io(self, version: str) -> bool:  # noqa: ARG002
        return True

    def cache_settings(self, size: int, *, direct: bool) -> dict[str, str]:
        """Set the pages of the cache that a database's connections share, and whether to use the page cache as well."""
        settings = {"DefaultDbCachePages": str(max(size // PAGE_SIZE, LEAST_PAGES))} if size else {}
        return settings | ({"UseFileSystemCache": "false"} if direct else {})

    loads_stopped = True

    def dump_of(self, path: Path) -> Dump:
        return dumps.recognised(path)

    def load_dump(self, dump: Dump, target: DumpTarget) -> list[str]:
        environment = _environment(Path(target.installation.location), target.directory)
        return dumps.load(dump, target, target.directory / FILE, USER.upper(), environment)

    def table_rows(self, query: Callable[[str], Rows]) -> dict[str, int]:
        return dumps.table_rows(query)

    def table_columns(self, query: Callable[[str], Rows], table: str) -> list[DumpColumn]:
        return dumps.table_columns(query, table)

    def read_table(self, query: Callable[[str], Rows], table: str, texts: Sequence[str]) -> Iterator[Rows]:
        return dumps.read_table(query, table, texts)

    def usual_places(self) -> Iterator[Path]:
        return _usual_places()

    def version_in(self, bindir: Path) -> str:
        return version_of(bindir)

    def running(self, url: str) -> Server:
        return RunningServer(url)

    def connection_string(self, url: str) -> ConnectionString:
        return connection_string.read(url)

    def sources(self) -> Mapping[str, Callable[[str], Installation]]:
        return {"debian": self._from_debian, "apt": self._from_apt}

    def _series(self, version: str) -> str:
        """Return the series that a version belongs to. Raises MissingServer if ciphercost can't fetch it."""
        series = next(
            (offered for offered in SUITES if versions.matches(offered, version) or versions.matches(version, offered)),
            "",
        )
        if not series:
            raise MissingServer(f"Debian has no Firebird {version} (known: {', '.join(SUITES)})")
        return series

    def _from_debian(self, version: str) -> Installation:
        series = self._series(version)

        def make(work: Work) -> Receipt:
            debian.unpack_suite(SUITES[series], _packages(series), work)
            return self._receipt(work, series, "debian")

        return self._that_runs(package_cache.keep(self.name, f"{series}-debian", make))

    def _from_apt(self, version: str) -> Installation:
        """Fetch from the release that this machine runs."""
        series = self._series(version)

        def make(work: Work) -> Receipt:
            with debian.of_release(work) as lists:
                lists.need(_packages(series)[0])
                lists.unpack(_packages(series), work.path)
            return self._receipt(work, series, "apt")

        return self._that_runs(package_cache.keep(self.name, f"{series}-apt", make))

    def _receipt(self, work: Work, series: str, source: str) -> Receipt:
        """Make the unpacked server run from its private directory."""
        programs = f"usr/lib/firebird/{series}/bin"
        version = version_of(work.path / programs, run_in_place.with_loader(work.path))
        run_in_place.run_in_place(work, [f"{programs}/*"])
        return Receipt(self.name, version, source, programs)

    def initialise(
        self,
        installation: Installation,
        directory: Path,
        supervisor: Supervisor,
        settings: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> None:
        """Create a root with an empty database and its owner, whose random password lies in the root (mode 0600)."""
        bindir = Path(installation.location)
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in ("lock", "temporary"):
            (directory / name).mkdir(mode=0o700)
        password = secrets.token_hex(16)
        _configure(bindir, directory, {})
        own_file(directory / PASSWORD_FILE, password)
        # The supervisor can't pass standard input, and every user could read an argument.
        script = directory / "initialise.sql"
        own_file(
            script,
            f"CREATE DATABASE '{directory / SECURITY}' USER 'SYSDBA';\n"
            f"CREATE USER {USER} PASSWORD '{password}' USING PLUGIN Srp;\nCOMMIT;\n"
            f"GRANT CREATE DATABASE TO USER {USER};\nCOMMIT;\n"
            f"CREATE DATABASE '{directory / FILE}' USER '{USER.upper()}' PAGE_SIZE {PAGE_SIZE} DEFAULT CHARACTER SET UTF8;\n"
            f"ALTER DATABASE SET LINGER TO {LINGER_SECONDS};\nCOMMIT;\n",
        )
        hand_over(directory)
        isql = _isql(bindir)
        assert isql is not None
        command: list[str | Path] = [isql, "-q", "-bail", "-i", script]
        try:
            supervisor.run(command, user=server_user(), cwd=directory, env=_environment(bindir, directory))
        except RunError as error:
            raise RunError(
                f"Firebird {installation.version} could not create a database in {directory}: {error}"
            ) from None
        finally:
            script.unlink()

    def start(self, request: StartRequest) -> Server:
        """If another process takes the port first, Firebird itself retries for 50 seconds.

        The setting `plugin:NAME` registers a plugin that is not known by default; its value holds the plugin's own
        settings, one per line.
        """
        installation, directory = request.installation, request.directory
        if installation.source == "running":
            return self.running(installation.location)
        bindir = Path(installation.location)
        given, env, address = apart(request.settings)
        _check_names(bindir, given)

        def command(port: int) -> list[str | Path]:
            place = {"RemoteBindAddress": address}
            _configure(bindir, directory, {**place, **given, "RemoteServicePort": str(port)})
            return [bindir / "firebird"]

        lengths = {log: log.stat().st_size for log in directory.glob(OWN_LOGS)}
        try:
            started = launch(
                request.supervisor,
                f"{self.title} {installation.version}",
                command,
                answers,
                directory=directory,
                logs=request.logs,
                env={**_environment(bindir, directory), **env},
                cpus=request.cpus,
                address=address,
            )
        except RunError as error:
            raise RunError("\n".join([str(error).rstrip(), *_logged_since(lengths, directory)])) from None
        return FirebirdServer(started, directory, _library_of(bindir))

    # ── our own database on a server you already run ──────────────────────────────────────────────────────────────────

    def plaintext_fields(self) -> Changes:
        return {"wire_crypt": "off"}

    def make_schema(self, agent: Agent, connection: Connection, name: str, run_id: str) -> None:
        """Create a database file beside yours, since Firebird 4 has no schemas. Its comment names the run."""
        path = self._beside(agent, connection, name)
        try:
            agent.connect("schema", connection | {"database": path, "create": True})
        except AgentError as error:
            if any(words in str(error) for words in EXISTS):
                raise AgentError(
                    f"{path} exists already on that server; ciphercost left it alone", error.code
                ) from None
            raise AgentError(
                f"can't create {path} on that server: {error}. DatabaseAccess in firebird.conf must admit that directory",
                error.code,
            ) from None
        try:
            agent.query("schema", f"ALTER DATABASE SET LINGER TO {LINGER_SECONDS}")
            agent.query("schema", f"COMMENT ON DATABASE IS '{MARK}{run_id}'")
        except AgentError:
            agent.query("schema", "DROP DATABASE")
            raise
        agent.disconnect("schema")

    def right_to_make(self, connection: Connection) -> str:
        return grants.statement(self.name, connection.user)

    def drop_schema(self, agent: Agent, connection: Connection, name: str, *, unmarked: bool = False) -> None:
        path = self._files.get(name) or self._beside(agent, connection, name)
        agent.connect("schema", connection | {"database": path})
        if not unmarked and not _mark(agent, "schema"):
            agent.disconnect("schema")
            raise AgentError(f"{path} has no mark of ciphercost's, so ciphercost leaves it alone")
        agent.query("schema", "DROP DATABASE")
        with contextlib.suppress(AgentError):
            agent.disconnect("schema")

    def schemas(self, agent: Agent, connection: Connection) -> dict[str, str]:
        """Return those of runs known on this machine: no client can list a server's files.

        Tries the names that runs use whose directories are in ./runs or whose scratch directory still exists. It misses
        databases of runs on other machines and of runs whose directory is gone; they lie beside your database.
        """
        self._beside(agent, connection, PREFIX)  # raises an error if the login fails
        schemas: dict[str, str] = {}
        for first in sorted(f"{PREFIX}{run.replace('-', '_')}" for run in set(_known_runs())):
            # A run may have several, numbered in order of creation.
            for name in (f"{first}_{number}" if number else first for number in itertools.count()):
                if (mark := self.schema(agent, connection, name)) is None:
                    break
                schemas[name] = mark
        return schemas

    def schema(self, agent: Agent, connection: Connection, name: str) -> str | None:
        path = self._beside(agent, connection, name)
        try:
            agent.connect("schema", connection | {"database": path})
        except AgentError:
            return None
        mark = _mark(agent, "schema")
        agent.disconnect("schema")
        return mark

    unlisted = "no Firebird client can list databases: ciphercost looked for those of runs in ./runs and in its scratch directory"

    def in_schema(self, name: str) -> Changes:
        return {"database": self._files[name]}

    def in_own_schema(self, name: str) -> Changes:
        """Use an alias: see `_configure`."""
        return {"database": name}

    def stored_bytes(self, directory: Path, name: str) -> tuple[int, int] | None:
        return _firebird_pages.sizes(directory / f"{name}.fdb")

    def _beside(self, agent: Agent, connection: Connection, name: str) -> str:
        """Return the path of our database, in the directory of yours. If you use an alias, only the server knows it."""
        agent.connect("schema", connection)
        rows = agent.query("schema", "SELECT MON$DATABASE_NAME FROM MON$DATABASE")
        agent.disconnect("schema")
        path = str(rows[0][0] or "") if rows else ""
        if not path:
            raise AgentError(
                "the server doesn't report where its database lies, so ciphercost can't create one beside it"
            )
        # A server on Windows has backslashes.
        cut = max(path.rfind("/"), path.rfind("\\"))
        self._files[name] = f"{path[: cut + 1]}{name}.fdb" if cut >= 0 else str(PurePosixPath(f"{name}.fdb"))
        return self._files[name]


def _mark(agent: Agent, arm: str) -> str:
    """Return the run that marked this connection's database; empty if it has no mark of ours."""
    rows = agent.query(arm, "SELECT RDB$DESCRIPTION FROM RDB$DATABASE")
    comment = str(rows[0][0] or "") if rows else ""
    return comment.removeprefix(MARK) if comment.startswith(MARK) else ""


def _known_runs() -> Iterator[str]:
    for base in (Path("runs"), scratch_base()):
        with contextlib.suppress(OSError):
            yield from (entry.name for entry in base.iterdir() if entry.is_dir())


# ── a root ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _environment(bindir: Path, directory: Path) -> dict[str, str]:
    """Return the variables that make `directory` the server's root. Messages come from the installation."""
    return {
        "FIREBIRD": str(directory),
        "FIREBIRD_MSG": str(home_of(bindir) or bindir.parent),
        "FIREBIRD_LOCK": str(directory / "lock"),
        "FIREBIRD_TMP": str(directory / "temporary"),
    }


def _check_names(bindir: Path, settings: Mapping[str, str]) -> None:
    """Raises RefusedSetting for one that the installation's own firebird.conf doesn't list: the server would ignore it."""
    home = home_of(bindir)
    listed = home / "firebird.conf" if home is not None else Path()
    if listed.is_symlink():  # to a place below the root of the package, which may be unpacked elsewhere
        below = str(listed.readlink()).lstrip("/")
        listed = next((parent / below for parent in bindir.parents if (parent / below).is_file()), listed)
    if not listed.is_file():
        return
    text = listed.read_text(errors="replace")
    known = {name.lower(): name for name in re.findall(r"(?m)^#?[ \t]*([A-Z]\w+)[ \t]*=", text)}
    for name in settings:
        if known and not name.startswith(PLUGIN_SETTING) and name.lower() not in known:
            words = nearest(name, known.values())
            close = "" if words.startswith("known") else words
            raise RefusedSetting(
                f"--setting {name}: this Firebird has no such setting and would ignore it; {close or f'{listed} lists them'}"
            )


def _configure(bindir: Path, directory: Path, settings: Mapping[str, str]) -> None:
    """Write the configuration of a root with the paths of its current directory, so that a copy gets its own."""
    home = home_of(bindir)
    assert home is not None
    places = {"DatabaseAccess": f"Restrict {directory}", "TempDirectories": f"{directory}/temporary"}
    chosen = {**SETTINGS, **places, **settings}
    plugins = {name: f"Module = {home / 'plugins' / file}" for name, file in PLUGINS.items()}
    sections = ""
    for setting in [name for name in chosen if name.startswith(PLUGIN_SETTING)]:
        name = setting.removeprefix(PLUGIN_SETTING)
        library = plugin_of(bindir, name) or home / "plugins" / f"lib{name}.so"
        plugins[name] = f"Module = {library.parent / name}\n\tConfig = {name}"
        lines = "".join(f"\t{line}\n" for line in chosen.pop(setting).splitlines())
        sections += f"Config = {name}\n{{\n{lines}}}\n"
    (directory / "firebird.conf").write_text("".join(f"{name} = {value}\n" for name, value in chosen.items()))
    # Databases that `make_schema` creates beside the first have their names as aliases, wherever the directory is
    # copied to.
    others = "".join(f"{name} = {directory / name}.fdb\n" for name in ARM_DATABASES)
    (directory / "databases.conf").write_text(
        f"{DATABASE} = {directory / FILE}\n{others}security.db = {directory / SECURITY}\n{{\n\tRemoteAccess = false\n}}\n"
    )
    # It may hold a key.
    own_file(
        directory / "plugins.conf",
        "".join(f"Plugin = {name}\n{{\n\t{lines}\n}}\n" for name, lines in plugins.items()) + sections,
    )
    if not (directory / "intl").is_symlink():
        (directory / "intl").symlink_to(home / "intl")
    for name in ("firebird.conf", "databases.conf", "plugins.conf", "intl"):
        hand_over(directory / name)


def _logged_since(lengths: Mapping[Path, int], directory: Path) -> list[str]:
    """Return the last lines that the server has written to its own logs since they had these lengths."""
    written = [log.read_bytes()[lengths.get(log, 0) :].decode(errors="replace") for log in directory.glob(OWN_LOGS)]
    return "".join(written).strip().splitlines()[-LAST_LINES:]


ENGINE = Firebird()
