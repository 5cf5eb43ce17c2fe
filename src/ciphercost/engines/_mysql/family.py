"""What MySQL and MariaDB share: finding, starting and stopping the server, TLS, and databases of ciphercost's own."""

from __future__ import annotations

import os
import re
import secrets
import socket
from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ciphercost.engines import Server, StartRequest
from ciphercost.engines._dumps.mysql import DATABASE, MARK_TABLE, LoadsMysqlDumps
from ciphercost.engines._mysql import spills
from ciphercost.engines._mysql.backups import MysqlBackups
from ciphercost.engines._mysql.counters import MysqlCounters
from ciphercost.engines._mysql.greeting import greeting
from ciphercost.engines._mysql.running import NO_SOCKET_LOGIN, WHICH_SERVER, RunningServer
from ciphercost.engines._network import PASSWORD_FILE, StartedServer
from ciphercost.engines._packaged import Packaged
from ciphercost.engines.capabilities.io_counters import CountsIo
from ciphercost.engines.capabilities.load_counters import CountsLoad
from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.engines.capabilities.payload import Payload
from ciphercost.engines.capabilities.settings import CLIENT_CERTIFICATES, Decided, TakesSettings
from ciphercost.engines.capabilities.storage import Spill, StoresData
from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host import deadlines, tls_names
from ciphercost.host.installation import Installation
from ciphercost.host.launch import apart, launch
from ciphercost.host.pki import CLIENT_NAME
from ciphercost.host.ports import LOOPBACK, is_loopback
from ciphercost.host.programs import output_of
from ciphercost.host.run_ownership import hand_over, own_file
from ciphercost.load.connection_string import ConnectionString, mysql
from ciphercost.model import grants
from ciphercost.model.connection import Changes, Connection
from ciphercost.model.errors import AgentError, RunError

if TYPE_CHECKING:
    from ciphercost.host.pki import Pki
    from ciphercost.host.supervisor import Supervisor
    from ciphercost.load.agent import Agent
    from ciphercost.load.load_client import LoadClient

USER = "ciphercost"
DEFAULT_CONNECTIONS = 151
"""Default of `max_connections` in both servers."""

SMALLEST_POOL = 8 << 20
"""Bytes. MySQL's InnoDB needs at least 5 MiB, MariaDB's 6, and each client holds a few pages while it works."""

SETTINGS = {"socket": "", "skip-name-resolve": "ON"}
"""Settings of both arms; an empty socket means none. Every other setting keeps the server's default, so flushing at
commit, the doublewrite buffer and MySQL's binary log stay on."""


KEPT = (
    r"bind_address|port|socket|(report|admin|mysqlx|extra)_.*|skip_.*|require_secure_transport|datadir|tmpdir|slave_load_tmpdir|replica_load_tmpdir|"
    r"pid_file|basedir|plugin_.*|lc_messages_dir|character_sets_dir|defaults_.*|user|chroot|init_file|init_connect|secure_file_priv|"
    r"(general_|slow_query_)?log.*_file|log_error.*|ssl|ssl_.*|tls_.*|auto_generate_certs|default_authentication_plugin|"
    r"authentication_.*|.*_private_key_path|.*_public_key_path|early_plugin_load|innodb_(data|log_group|undo|tmp|temp_data).*(dir|directory|home_dir|file_path)"
)
"""`TakesSettings.kept_settings`."""


DECIDED = (
    Decided("((admin|mysqlx)_)?tls_version", "version"),
    Decided("((admin|mysqlx)_)?(ssl_cipher|tls_ciphersuites)", "cipher"),
    Decided("((admin|mysqlx)_)?ssl_(cert|key)|auto_generate_certs", "certificate"),
    Decided("((admin|mysqlx)_)?ssl_(ca|crl).*|tls_certificates_enforced_validation", CLIENT_CERTIFICATES, value="on"),
    Decided("ssl_session_cache_(mode|timeout)", "resumption"),
    Decided("ssl_fips_mode", why="ciphercost sets up no FIPS provider of OpenSSL, which this needs; remove it"),
    Decided("ssl|skip_ssl|have_ssl"),
    Decided(
        "require_secure_transport",
        why="one server serves both arms, so it must accept the plain arm's unencrypted connections; remove it",
    ),
)
"""`TakesSettings.decided_settings`."""


CERTIFIED = "ciphercert"
"""Our other user, who logs in as the first one does but also needs ciphercost's client certificate. Its name is as long."""
CERTIFICATE_SUBJECT = f"/CN={CLIENT_NAME}"


def accounts(identified: str, address: str) -> str:
    """Return SQL, one statement per line, that creates our database and our user. Pure.

    If the server's `address` is of loopback, the user can log in from loopback only, but from all of it (see
    `conditions.link`).
    """
    clients = "127.%" if is_loopback(address) else "%"
    return (
        f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4;\n"
        f"CREATE USER {USER}@'{clients}' IDENTIFIED {identified};\n"
        f"GRANT ALL PRIVILEGES ON *.* TO {USER}@'{clients}' WITH GRANT OPTION;\n"
        f"CREATE USER {CERTIFIED}@'{clients}' IDENTIFIED {identified} REQUIRE SUBJECT '{CERTIFICATE_SUBJECT}';\n"
        f"GRANT ALL PRIVILEGES ON *.* TO {CERTIFIED}@'{clients}' WITH GRANT OPTION;\n"
    )


def share(bindir: Path, file: str) -> Path | None:
    """Return the directory of messages, character sets and scripts for these programs: the one with `file`."""
    base = bindir.parent
    for place in ("share/mariadb", "share/mysql", "share"):
        if (base / place / file).exists():
            return base / place
    return None


def plugins(bindir: Path) -> Path | None:
    base = bindir.parent
    for pattern in ("lib*/mysql/plugin", "lib*/mariadb/plugin", "lib*/plugin", "lib/*/mariadb*/plugin"):
        for path in sorted(base.glob(pattern)):
            return path
    return None


def version_of(program: Path, mariadb: bool, before: Iterable[str] = ()) -> str:
    """Return the version that `mysqld --version` prints, e.g. `9.7.4`.

    Empty if it is another kind of server or doesn't run here. `before`: command of a program loader.
    """
    if not os.access(program, os.X_OK):
        return ""
    output = output_of([*before, program, "--no-defaults", "--version"], 20)
    match = re.search(r"Ver (\d+(?:\.\d+)+)\S*", output)
    return match[1] if match and ("MariaDB" in output) == mariadb else ""


class FamilyServer(StartedServer):
    """A server that ciphercost started."""

    driver, user, database = "mysql", USER, DATABASE


PAGE = 16384
"""Bytes of a page of InnoDB, by default."""


def io_counters_sql(status: str, binary_log: str) -> str:
    """SQL of `CountsIo`. `status`: the table of status variables; `binary_log`: what selects the bytes written to that log."""
    pages = (
        f"MAX(IF(VARIABLE_NAME = '{name}', VARIABLE_VALUE, 0)) * @@innodb_page_size"
        for name in ("Innodb_pages_read", "Innodb_pages_written")
    )
    return (
        f"SELECT 'pages', {', '.join(pages)} FROM {status} "
        f"UNION ALL SELECT 'redo log', 0, VARIABLE_VALUE FROM {status} WHERE VARIABLE_NAME = 'Innodb_os_log_written' "
        f"UNION ALL SELECT 'binary log', 0, {binary_log}"
    )


def answers(address: str, port: int) -> bool:
    """Whether a server there sends its greeting. Raises RunError if it refuses our connections for good."""
    reported = greeting(address, port)
    if reported.refusal:
        raise RunError(f"the server refuses connections: {reported.refusal}")
    return bool(reported.version)


class Family(
    Packaged,
    HasTls,
    TakesUrl,
    TakesSettings,
    OwnSchema,
    StoresData,
    CountsIo,
    Payload,
    CountsLoad,
    LoadsMysqlDumps,
    MysqlBackups,
):
    """An engine of this family. A subclass names its programs, packages and SQL."""

    counter_reader = MysqlCounters
    kept_settings = KEPT
    decided_settings = DECIDED
    setting_example = "innodb_buffer_pool_size=1G"
    hopeless = ""
    """Text in the log of a server that will never answer."""
    driver = "mysql"
    dialect = "mysql"
    # The errors for require_secure_transport of MySQL and of MariaDB 11. MariaDB 10, and an account with REQUIRE SSL,
    # report a wrong password instead.
    refuses_clear = ("3159 (HY000)", "3159 (08004)", "1045 (28000)")
    refuses_anonymous = "(using password: NO)"
    give_password = mysql.INSTEAD
    hides_certificate = "An account with REQUIRE X509 also needs a client certificate: --cert and --key."
    password_from = "MYSQL_PWD"  # noqa: S105 - where it is, not what it is
    direct_by_default = True
    tls_begins = "on request"
    tls_client_cert = True
    tls_resumption = ("on",)
    home = "SELECT @@datadir"
    unlike = ("port", "report_port", "server_uuid", "server_uid", "gtid_executed", "gtid_purged")
    temporary: tuple[str, ...] = ("tmp/*", "data/ibtmp1")

    places = ("usr/sbin", "usr/libexec", "usr/local/mysql*/bin", "opt/mysql*/bin", "opt/mariadb*/bin")
    runs_in_place = ("usr/bin/my*", "usr/bin/mariadb*")

    own_settings: Mapping[str, str] = MappingProxyType({})
    """Settings of this engine, in addition to the common ones."""
    to_disk: tuple[str, str]
    """Two statements. After the first, internal temporary tables go to disk; the second flushes `spills.TABLE`."""

    @abstractmethod
    def make(
        self,
        base: list[str | Path],
        installation: Installation,
        directory: Path,
        password: str,
        address: str,
        supervisor: Supervisor,
    ) -> None:
        """Create the system tables in `directory / "data"`, which doesn't exist yet, and our own user, the only one who
        can log in.

        `base`: the server program with all its options. `address`: where servers will listen.
        """

    @abstractmethod
    def suite_settings(self, suites_12: str, suites_13: str) -> dict[str, str]:
        """Return the settings that offer exactly these cipher suites."""

    @property
    def counted_programs(self) -> Collection[str]:
        return self.programs

    # ── finding ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def printed_version(self, program: Path, before: Iterable[str] = ()) -> str:
        return version_of(program, mariadb=self.name == "mariadb", before=before)

    # ── starting ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def base_command(self, installation: Installation, directory: Path, address: str = LOOPBACK) -> list[str | Path]:
        """Return the server program with its address and the paths of its own files and its data.

        It reads no option file of this machine.
        """
        bindir = Path(installation.location)
        command: list[str | Path] = [self.program(installation), "--no-defaults", f"--basedir={bindir.parent}"]
        if messages := share(bindir, "english/errmsg.sys"):
            command.append(f"--lc-messages-dir={messages}")
        if characters := share(bindir, "charsets/Index.xml"):
            command.append(f"--character-sets-dir={characters / 'charsets'}")
        if place := plugins(bindir):
            command.append(f"--plugin-dir={place}")
        settings = {
            "bind-address": address,
            **SETTINGS,
            **self.own_settings,
            "datadir": str(directory / "data"),
            "tmpdir": str(directory / "tmp"),
            "pid-file": str(directory / "server.pid"),
        }
        return [*command, *_options(settings)]

    def initialise(
        self,
        installation: Installation,
        directory: Path,
        supervisor: Supervisor,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Create in `directory`: `data/`, `tmp/` and a file with our user's random password (mode 0600)."""
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        (directory / "tmp").mkdir(mode=0o700)
        hand_over(directory)
        password = secrets.token_hex(16)
        own_file(directory / PASSWORD_FILE, password)
        given, _, address = apart(settings)
        try:
            base = [*self.base_command(installation, directory), *_options(given)]
            self.make(base, installation, directory, password, address, supervisor)
        except RunError as error:
            raise RunError(
                f"{self.title} {installation.version} could not create its system tables in {directory}: {error}"
            ) from None

    def start(self, request: StartRequest) -> Server:
        installation, directory = request.installation, request.directory
        if installation.source == "running":
            return self.running(installation.location)
        given, env, address = apart(request.settings)
        base = self.base_command(installation, directory, address)
        started = launch(
            request.supervisor,
            f"{self.title} {installation.version}",
            lambda port: [*base, f"--port={port}", *_options(given)],
            answers,
            directory=directory,
            logs=request.logs,
            env=env,
            cpus=request.cpus,
            hopeless=self.hopeless,
            address=address,
            connects=request.connects,
        )
        return FamilyServer(started, directory)

    def running(self, url: str) -> Server:
        return RunningServer(self.name, url, self.programs)

    def connection_string(self, url: str) -> ConnectionString:
        return mysql.read(url, self.name)

    def hint(self, code: str, text: str = "") -> str:
        hint = super().hint(code, text)
        if denied := re.search(r"Access denied for user '[^']*'@'[^']*'", text):
            account = denied[0].removeprefix("Access denied for user ")
            hint += (
                f" The server looked for an account that fits {account}; by a Unix socket, by TCP and from another host it may find another "
                "one, with another password and other rights."
            )
        return hint

    def no_control(self, url: str, code: str) -> str:  # noqa: ARG002
        return NO_SOCKET_LOGIN if code.startswith("socket ") else ""

    def sessions(
        self, server: Server, agent: LoadClient, arm: str, *, everywhere: bool = False
    ) -> list[list[str | None]]:
        if isinstance(server, RunningServer) and server.socket:
            ((which,),) = agent.query(arm, WHICH_SERVER)
            server.recognise(str(which))
        return super().sessions(server, agent, arm, everywhere=everywhere)

    def offers_tls(self, address: str, port: int) -> bool:
        reported = greeting(address, port)
        if not reported.version:
            socket.create_connection((address, port), timeout=deadlines.login()).close()  # says why nothing answers
            raise OSError(reported.refusal or "no MySQL or MariaDB server answers there")
        return reported.tls

    def settings_for(self, clients: int) -> dict[str, str]:
        """Allow for the connections of both arms, which are open at the same time, and for a few of the witnesses."""
        return {"max-connections": str(2 * clients + 20)} if 2 * clients + 20 > DEFAULT_CONNECTIONS else {}

    def certified(self) -> Changes:
        """The server asks for a certificate by account, and the plain arm's account can't have one."""
        return {"user": CERTIFIED}

    # ── TLS ───────────────────────────────────────────────────────────────────────────────────────────────────────────

    def tls_settings(self, pki: Pki, factors: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG002
        """Offer both versions and every suite; the client pins one."""
        suites = self.suite_settings(
            ":".join(tls_names.offered("1.2", cbc=self.tls_cbc)), ":".join(tls_names.offered("1.3"))
        )
        return {
            "ssl-ca": str(pki.ca),
            "ssl-cert": str(pki.certificate),
            "ssl-key": str(pki.key),
            "tls-version": "TLSv1.2,TLSv1.3",
            **suites,
        }

    # ── at rest ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def spills(self, word: str) -> tuple[Spill, ...]:
        internal, flush = self.to_disk
        # The temporary table comes last because its data may outlive its session.
        return (spills.sort(word), spills.internal_table(word, internal), spills.temporary_table(word, flush))

    def does_direct_io(self, version: str) -> bool:  # noqa: ARG002
        return True

    def cache_settings(self, size: int, *, direct: bool) -> dict[str, str]:
        """Never go below what InnoDB can work with.

        Without direct I/O data goes through the page cache, whatever the default.
        """
        pool = {"innodb-buffer-pool-size": str(max(size, SMALLEST_POOL))} if size else {}
        return {**pool, "innodb-flush-method": "O_DIRECT" if direct else "fsync"}

    # ── our own database on a server you already run ──────────────────────────────────────────────────────────────────

    def make_schema(self, agent: Agent, connection: Connection, name: str, run_id: str) -> None:
        agent.connect("schema", connection)
        agent.query("schema", f"CREATE DATABASE {_quoted(name)} CHARACTER SET utf8mb4")
        try:
            agent.query("schema", f"CREATE TABLE {_quoted(name)}.{MARK_TABLE} (run varchar(100) NOT NULL PRIMARY KEY)")
            agent.query("schema", f"INSERT INTO {_quoted(name)}.{MARK_TABLE} VALUES ('{run_id}')")
        except AgentError:
            agent.query("schema", f"DROP DATABASE {_quoted(name)}")  # without a mark nobody would know whose it is
            raise
        agent.disconnect("schema")

    def payload(self, size: int) -> str:
        return f"SELECT REPEAT(REPEAT('x', 1000), {size // 1000})"

    def drop_schema(
        self,
        agent: Agent,
        connection: Connection,
        name: str,
        *,
        unmarked: bool = False,  # noqa: ARG002
    ) -> None:
        agent.connect("schema", connection)
        agent.query("schema", f"DROP DATABASE {_quoted(name)}", timeout=deadlines.check())
        agent.disconnect("schema")

    def schemas(self, agent: Agent, connection: Connection) -> dict[str, str]:
        agent.connect("schema", connection)
        rows = agent.query(
            "schema",
            "SELECT s.SCHEMA_NAME, t.TABLE_NAME FROM information_schema.SCHEMATA s LEFT JOIN information_schema.TABLES t "
            f"ON t.TABLE_SCHEMA = s.SCHEMA_NAME AND t.TABLE_NAME = '{MARK_TABLE}' "
            "WHERE LEFT(s.SCHEMA_NAME, 11) = 'ciphercost_'",
        )
        schemas = {}
        for name, marked in rows:
            runs = agent.query("schema", f"SELECT run FROM {_quoted(str(name))}.{MARK_TABLE}") if marked else []
            schemas[str(name)] = str(runs[0][0]) if runs else ""
        agent.disconnect("schema")
        return schemas

    def in_schema(self, name: str) -> Changes:
        return {"database": name}

    # By default MySQL answers from a cache that may be a day old.
    sizes = (
        "SET /*!80003 SESSION information_schema_stats_expiry */ /*M!100200 @ciphercost_none */ = 0; "
        "SELECT SUM(DATA_LENGTH), SUM(INDEX_LENGTH) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"
    )
    """A table is its primary key. Whole pages count, as of the last ANALYZE."""

    def right_to_make(self, connection: Connection) -> str:
        """Return the GRANT with which an administrator lets this user create our database. User-visible."""
        return f"{grants.statement(self.name, connection.user)} (or the host it logs in from)"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _options(settings: Mapping[str, str]) -> list[str]:
    return [f"--{name}={value}" for name, value in settings.items()]
