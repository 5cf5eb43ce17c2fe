"""PostgreSQL 14 and later, and vendors' servers made from it: packages, start, TLS, and schemas of ciphercost's own."""

from __future__ import annotations

import os
import platform
import re
import secrets
import shutil
import signal
import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ciphercost.engines import Server, StartRequest, _network
from ciphercost.engines import _postgresql_backups as backups
from ciphercost.engines._dumps import postgresql as dumps
from ciphercost.engines._found import Found
from ciphercost.engines._network import PASSWORD_FILE, StartedServer
from ciphercost.engines._postgresql_counters import PostgresqlCounters
from ciphercost.engines._postgresql_replication import PostgresqlReplication
from ciphercost.engines.capabilities.backups import BacksUp, Backup, BackupRequest
from ciphercost.engines.capabilities.dumps import Dump, DumpColumn, DumpTarget, LoadsDumps, Rows
from ciphercost.engines.capabilities.load_counters import CountsLoad
from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.engines.capabilities.payload import Payload
from ciphercost.engines.capabilities.settings import CLIENT_CERTIFICATES, Decided, TakesSettings
from ciphercost.engines.capabilities.storage import Spill, StoresData
from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host import deadlines, debian, maven, package_cache, run_in_place, tls_names, versions
from ciphercost.host.installation import Installation
from ciphercost.host.launch import apart, launch
from ciphercost.host.maven import Artifact
from ciphercost.host.package_cache import Receipt, Work
from ciphercost.host.ports import is_loopback
from ciphercost.host.programs import output_of
from ciphercost.host.run_ownership import hand_over, own_file, server_user
from ciphercost.load.connection_string import ConnectionString, libpq
from ciphercost.model import bounds, grants
from ciphercost.model.connection import Changes, Connection
from ciphercost.model.constrained_types import DIRECT
from ciphercost.model.errors import MissingServer, RunError, UsageError
from ciphercost.model.secret import Secret

if TYPE_CHECKING:
    from ciphercost.host.pki import Pki
    from ciphercost.host.supervisor import Supervisor
    from ciphercost.load.agent import Agent

USER, DATABASE = "ciphercost", "postgres"
MARK = "made by ciphercost, run "
"""Comment of our schema on a server you already run."""

SSL_REQUEST = 80877103
"""The message that asks a server whether it offers TLS. It answers with one letter, before any login."""

SETTINGS = {
    "unix_socket_directories": "",
    "shared_buffers": "128MB",
    "max_connections": "200",
    "log_checkpoints": "off",
    "password_encryption": "scram-sha-256",
}
"""Settings of both arms. Every other setting keeps the server's default, so fsync, jit and autovacuum stay on."""

HBA = """\
# Both arms log in the same way, with SCRAM, encrypted or not. Kerberos encryption would be a third way.
hostgssenc all all {clients} reject
host       all all {clients} scram-sha-256
host       replication all {clients} scram-sha-256
"""

MUTUAL_HBA = """\
# The same login. An encrypted one must also present a certificate of the authority in ssl_ca_file.
hostgssenc all all {clients} reject
hostssl    all all {clients} scram-sha-256 clientcert=verify-ca
hostnossl  all all {clients} scram-sha-256
"""

KEPT = (
    r"listen_addresses|port|unix_socket_.*|bonjour.*|data_directory|config_file|hba_file|ident_file|external_pid_file|include.*|"
    r"ssl|ssl_.*|password_encryption|krb_.*|gss_.*|log_destination|logging_collector|log_directory|log_filename|log_line_prefix|"
    r"event_source|.*_command|local_preload_libraries|session_preload_libraries|dynamic_library_path"
)
"""`TakesSettings.kept_settings`. It includes every setting whose value is a command that the server runs."""

DECIDED = (
    Decided("ssl_(min|max)_protocol_version", "version"),
    Decided("ssl_(tls13_)?ciphers|ssl_prefer_server_ciphers", "cipher"),
    Decided("ssl_(ecdh_curve|groups|dh_params_file)", "group"),
    Decided("ssl_(cert|key)_file|ssl_passphrase_.*", "certificate"),
    Decided("ssl_(ca|crl)_.*", CLIENT_CERTIFICATES, value="on"),
    Decided("ssl"),
    Decided("password_encryption", why="ciphercost logs in by SCRAM in both arms and never by MD5; remove it"),
)
"""`TakesSettings.decided_settings`."""

PROGRAMS = ("postgres", "edb-postgres")
"""Names of the server program; the second is EDB's."""
SERVERS = (*PROGRAMS, "postmaster")
"""What the processes of a running server are called."""
PAGE = 8192
LEAST_BUFFERS = 2 << 20
"""Bytes. The server itself accepts 128 kB, but then a few dozen connections find every page in use by another."""
NEWER = {"debug_io_direct": 16}
"""Settings that earlier versions lack, where leaving them out means the same in both arms."""
SPILT_ROWS = 60_000
"""Rows of about 60 bytes: four times what the smallest buffers in memory hold."""

SUITES = {"15": "bookworm", "17": "trixie", "18": "sid"}
"""Debian suites by the major version they carry."""

_ZONKY = "io.zonky.test.postgres:embedded-postgres-binaries-linux-{}:{}"
ARTIFACTS: dict[tuple[str, str], Artifact] = {
    (machine, version.partition(".")[0]): Artifact(_ZONKY.format(machine, version), sha256)
    for machine, version, sha256 in (
        ("amd64", "14.23.0", "d041b87dd72016f2baf93bca54e91d3c85c2b8132bbf86ad82056d6b24b353ce"),
        ("amd64", "15.18.0", "6490649298abbe834a969b57df53e66e056f76894054a8f32f7a56f33abe0087"),
        ("amd64", "16.14.0", "3278331b124b46fb9f8bea30c7ff3bd6227a3934dad38a6ddb625eb7dcfa8ca8"),
        ("amd64", "17.10.0", "a6c44794a7a258621b8cb98c196bf621cdd705d9fa73c3628166b658c419877a"),
        ("amd64", "18.4.0", "401d4e69baba9072d3772607710df0d47b39a7632c6b01b2a5f5d85a9514e212"),
        ("arm64v8", "14.23.0", "a55b93f67051a602be033b298461709f88789dccee925236f2fb5a4eaf9dd526"),
        ("arm64v8", "15.15.0", "623ee4c35cfdccd585d4473ff9b51942d465a7f8280687e6b960f56066f58909"),
        ("arm64v8", "16.14.0", "482f5ccdb15f68f4bfe524a5b9df734e169db9d1d29c32a513af44ac9efc127a"),
        ("arm64v8", "17.10.0", "47aa73724470a8bdb5e68e3978c1f07c577ab7a5c23b97b84f99d7e165f4876f"),
        ("arm64v8", "18.4.0", "a9ec284923b9a7d2db41509bfb88c3d0eeb9f4aa5e2b29ea0aac5e8dbaf4c335"),
    )
}
"""Builds of the embedded-postgres project, by machine and major version.

They contain OpenSSL 1.1.1 of 2018: no VAES or ML-KEM.
"""
MACHINES = {"x86_64": "amd64", "aarch64": "arm64v8"}
NEWEST = "18"
DIRECT_SINCE = 17
"""The first version that takes TLS with the first byte."""
CURVES = {"P-256": "prime256v1", "P-384": "secp384r1"}
"""Key exchange groups that versions before 18 can offer."""


# ── finding ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _usual_places() -> Iterator[Path]:
    for program in ("postgres", "initdb"):
        if location := shutil.which(program):
            yield Path(location).resolve().parent  # PATH often holds links to the versioned directory
    if bindir := output_of(["pg_config", "--bindir"], 10).strip():
        yield Path(bindir)
    globs = (
        "usr/lib/postgresql/*/bin",
        "usr/pgsql-*/bin",
        "usr/local/pgsql/bin",
        "opt/postgresql*/bin",
        "usr/libexec/postgresql*",
    )
    found_there = [path for pattern in globs for path in Path("/").glob(pattern)]
    yield from sorted(found_there, key=lambda path: versions.version_key(str(path)), reverse=True)


def version_of(bindir: Path, before: Iterable[str] = ()) -> str:
    """Return the version that `postgres -V` prints, e.g. `17.5`; empty if no server is there or it doesn't run here.

    `before`: command of a program loader.
    """
    program = program_in(bindir)
    if not (os.access(program, os.X_OK) and os.access(bindir / "initdb", os.X_OK)):
        return ""
    return parse_version(output_of([*before, program, "-V"], 10))


def parse_version(text: str) -> str:
    """Extract the version from the output of `postgres -V`. Pure.

    `postgres (PostgreSQL) 15.4_TDE_1.1.6` -> `15.4_TDE_1.1.6`; `(EnterpriseDB) 16.2.0` works too.
    """
    match = re.search(r"postgres \([^)]*\) (\d+(?:\.\d+)?[^\s,;]*)", text)
    return match[1] if match else ""


def program_in(bindir: Path) -> Path:
    """Return the server program in this directory; if there is none, the path it would have."""
    paths = (bindir / name for name in PROGRAMS)
    return next((path for path in paths if path.exists()), bindir / PROGRAMS[0])


def major(version: str) -> int:
    """`"17.5"`, `"18beta1"` -> 17, 18. Pure."""
    match = re.match(r"\d+", version)
    return int(match[0]) if match else 0


def major_of(version: str) -> str:
    """`"17.5"` -> "17"; '' stays ''. Pure."""
    return str(major(version)) if version else ""


def clients_of(address: str) -> str:
    """From where clients of a server at this address may log in. Pure."""
    return "127.0.0.0/8" if is_loopback(address) else "0.0.0.0/0"


# ── the servers ───────────────────────────────────────────────────────────────────────────────────────────────────────


class PostgresqlServer(StartedServer):
    """A server that ciphercost started; it ends by a fast shutdown, which includes a checkpoint."""

    driver, user, database = "postgres", USER, DATABASE


class RunningServer(_network.RunningServer):
    """A server you already run."""

    driver = "postgres"

    def __init__(self, url: str) -> None:
        super().__init__(libpq.read(url), SERVERS)

    def password(self) -> Secret | None:
        return password_for(self.host, self.port, self.database, self.user, self.asked.passfile)


def password_for(host: str, port: int, database: str, user: str, passfile: str = "") -> Secret | None:
    """Return the password from PGPASSWORD, else from `passfile`, PGPASSFILE or ~/.pgpass, by libpq's rules; None if there is none.

    Raises UsageError if others can read the file.
    """
    if "PGPASSWORD" in os.environ:
        return Secret(os.environ["PGPASSWORD"])
    path = Path(passfile or os.environ.get("PGPASSFILE") or Path.home() / ".pgpass")
    try:
        if path.stat().st_mode & 0o077:
            raise UsageError(f"{path} can be read by others, so ciphercost ignores it: chmod 600 {path}")
        lines = bounds.text(path, bounds.OPTIONS).splitlines()
    except OSError:
        return None
    for line in lines:
        fields = [re.sub(r"\\(.)", r"\1", field) for field in re.split(r"(?<!\\):", line, maxsplit=4)]
        if line.startswith("#") or len(fields) != 5:
            continue
        if all(
            field in ("*", wanted) for field, wanted in zip(fields, (host, str(port), database, user), strict=False)
        ):
            return Secret(fields[4])
    return None


# ── asking a server ────────────────────────────────────────────────────────────────────────────────────────────────────


def answers(address: str, port: int) -> bool:
    """Whether a server there asks for a password. Raises RunError if it refuses our connections for good."""
    body = struct.pack("!I", 196608) + f"user\0{USER}\0database\0{DATABASE}\0\0".encode()
    try:
        with socket.create_connection((address, port), timeout=1) as connection:
            connection.sendall(struct.pack("!I", len(body) + 4) + body)
            reply = connection.recv(4096)
    except OSError:
        return False
    if reply.startswith(b"E") and b"C57P03\0" not in reply:  # 57P03: the server is starting up
        raise RunError("the server refuses connections: " + reply[5:].replace(b"\0", b" ").decode(errors="replace"))
    return reply.startswith(b"R")


# ── settings that only some versions have ─────────────────────────────────────────────────────────────────────────────


def options(version: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Translate settings of version 18 into settings of this version with the same meaning. Pure.

    Before version 18 a server offers one elliptic curve, by OpenSSL's name for it; before 16 none does direct I/O.
    """
    chosen = {name: value for name, value in settings.items() if major(version) >= NEWER.get(name, 0)}
    if major(version) < 18 and (groups := chosen.pop("ssl_groups", "")):
        chosen["ssl_ecdh_curve"] = CURVES[groups]
    return chosen


# ── the engine ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Postgresql(
    Found,
    HasTls,
    TakesUrl,
    TakesSettings,
    OwnSchema,
    StoresData,
    Payload,
    CountsLoad,
    LoadsDumps,
    BacksUp,
    PostgresqlReplication,
):
    counter_reader = PostgresqlCounters
    counted_programs = SERVERS
    kept_settings = KEPT
    decided_settings = DECIDED
    absent = "contains no 'postgres' and 'initdb' that run on this machine"
    name = "postgresql"
    title = "PostgreSQL"
    driver = "postgres"
    dialect = "postgresql"
    schemes = MappingProxyType({"postgresql": "tls", "postgres": "tls"})
    refuses_clear = ("28000",)  # pg_hba.conf has no line for an unencrypted connection
    refuses_anonymous = "the server asks for a password and none was given"
    give_password = libpq.INSTEAD
    password_from = "PGPASSWORD"  # noqa: S105 - where it is, not what it is
    tls_round_trips = 1  # SSLRequest, and the server's one-letter reply
    tls_begins = "either"
    tls_negotiations = ("postgres", DIRECT)
    binds_logins = True
    tls_client_cert = True
    tls_resumption = ()  # it sends no session ticket and keeps no session cache
    tls_witness = "SELECT ssl, version, cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
    certificate_witness = "SELECT client_dn, client_serial FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
    home = "SHOW data_directory"
    variables = "SELECT name, setting FROM pg_settings ORDER BY name"
    load_settings = MappingProxyType(dumps.LOAD_SETTINGS)
    quiet_settings = MappingProxyType(dumps.QUIET)
    unlike = ("port", "data_directory", "config_file", "hba_file", "ident_file", "external_pid_file")
    backup_tools = backups.TOOLS
    temporary = ("base/pgsql_tmp/*", "pg_tblspc/*/pgsql_tmp/*", "base/*/t[0-9]*_[0-9]*", "pg_tblspc/*/t[0-9]*_[0-9]*")

    def usual_places(self) -> Iterator[Path]:
        return _usual_places()

    def version_in(self, bindir: Path) -> str:
        return version_of(bindir)

    def running(self, url: str) -> Server:
        return RunningServer(url)

    def connection_string(self, url: str) -> ConnectionString:
        return libpq.read(url)

    def offers_tls(self, address: str, port: int) -> bool:
        with socket.create_connection((address, port), timeout=deadlines.login()) as connection:
            connection.sendall(struct.pack("!II", 8, SSL_REQUEST))
            return connection.recv(1) == b"S"

    def settings_for(self, clients: int) -> dict[str, str]:
        """Allow for the connections of both arms, which are open at the same time, and for a few of the witnesses."""
        return {"max_connections": str(2 * clients + 20)} if 2 * clients + 20 > int(SETTINGS["max_connections"]) else {}

    def sources(self) -> Mapping[str, Callable[[str], Installation]]:
        return {"debian": self._from_debian, "apt": self._from_apt, "maven": self._from_maven}

    def _from_maven(self, wanted: str) -> Installation:
        version, machine = major_of(wanted) or NEWEST, MACHINES.get(platform.machine(), platform.machine())
        artifact = ARTIFACTS.get((machine, version))
        if artifact is None:
            known = sorted(number for kind, number in ARTIFACTS if kind == machine)
            raise MissingServer(f"has no PostgreSQL {version} for {machine} (known: {', '.join(known) or 'none'})")

        def make(work: Work) -> Receipt:
            maven.unpack_txz_in_jar(maven.fetch_jar(artifact, work), work.path)
            if not (full_version := version_of(work.path / "bin")):
                raise MissingServer("the fetched server doesn't run on this machine (these builds need glibc)")
            return Receipt(self.name, full_version, "maven", "bin")

        return package_cache.keep(self.name, f"{version}-maven", make)

    def _from_debian(self, wanted: str) -> Installation:
        version = major_of(wanted) or "17"
        if version not in SUITES:
            raise MissingServer(f"has no PostgreSQL {version} (known: {', '.join(sorted(SUITES))})")

        def make(work: Work) -> Receipt:
            debian.unpack_suite(SUITES[version], [f"postgresql-{version}"], work)
            return self._receipt(work, version, "debian")

        return self._that_runs(package_cache.keep(self.name, f"{version}-debian", make))

    def _from_apt(self, wanted: str) -> Installation:
        """Fetch the given version, or apt's default one, from any source that this machine's apt knows."""
        version = major_of(wanted)

        def make(work: Work) -> Receipt:
            with debian.of_release(work) as lists:
                # The package without a number depends on the default version; its own version begins with that number.
                chosen = version or str(major(lists.need("postgresql")))
                lists.need(f"postgresql-{chosen}")
                lists.unpack([f"postgresql-{chosen}"], work.path)
            return self._receipt(work, chosen, "apt")

        return self._that_runs(package_cache.keep(self.name, f"{version or debian.release()}-apt", make))

    def _receipt(self, work: Work, version: str, source: str) -> Receipt:
        """Make the unpacked server of this major version run from its private directory."""
        programs = f"usr/lib/postgresql/{version}/bin"
        full_version = version_of(work.path / programs, run_in_place.with_loader(work.path))
        run_in_place.run_in_place(work, [f"{programs}/*"])
        return Receipt(self.name, full_version, source, programs)

    def initialise(
        self,
        installation: Installation,
        directory: Path,
        supervisor: Supervisor,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Create a cluster (C collation, UTF-8) with our user; its random password lies in the cluster (mode 0600)."""
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        hand_over(directory)
        # Not inside the cluster yet: initdb requires an empty directory.
        password = own_file(directory.with_name(directory.name + ".password"), secrets.token_hex(16))
        initdb = Path(installation.location) / "initdb"
        given, environment, address = apart(settings)
        extra = [
            f"--{name.removeprefix('initdb:')}" + (f"={value}" if value else "")
            for name, value in given.items()
            if name.startswith("initdb:")
        ]
        fixed = ["--auth-host=scram-sha-256", "--auth-local=reject", "--encoding=UTF8", "--locale=C", "--no-sync"]
        command: list[str | Path] = [initdb, "-D", directory, "-U", USER, f"--pwfile={password}", *fixed, *extra]
        try:
            supervisor.run(command, user=server_user(), cwd=directory, env=environment)
        except RunError as error:
            raise RunError(
                f"PostgreSQL {installation.version} could not create a cluster in {directory}: {error}"
            ) from None
        (directory / "pg_hba.conf").write_text(HBA.format(clients=clients_of(address)))
        password.rename(directory / PASSWORD_FILE)

    def start(self, request: StartRequest) -> Server:
        """`settings`: names of version 18, translated for earlier versions; `env:NAME` sets an environment variable."""
        installation, directory = request.installation, request.directory
        if installation.source == "running":
            return self.running(installation.location)
        given, env, address = apart(request.settings)
        given = {name: value for name, value in given.items() if not name.startswith("initdb:")}
        chosen = options(installation.version, SETTINGS | given | {"listen_addresses": address})

        def command(port: int) -> list[str | Path]:
            fixed: list[str | Path] = [program_in(Path(installation.location)), "-D", directory, "-c", f"port={port}"]
            return [*fixed, *(part for name, value in chosen.items() for part in ("-c", f"{name}={value}"))]

        title = f"{self.title} {installation.version}"
        started = launch(
            request.supervisor,
            title,
            command,
            answers,
            directory=directory,
            logs=request.logs,
            env=env,
            cpus=request.cpus,
            stop_signal=signal.SIGINT,
            address=address,
            connects=request.connects,
        )
        return PostgresqlServer(started, directory)

    def make_schema(self, agent: Agent, connection: Connection, name: str, run_id: str) -> None:
        agent.connect("schema", connection)
        agent.query("schema", f"CREATE SCHEMA {name}; COMMENT ON SCHEMA {name} IS '{MARK}{run_id}'")
        agent.disconnect("schema")

    def drop_schema(
        self,
        agent: Agent,
        connection: Connection,
        name: str,
        *,
        unmarked: bool = False,  # noqa: ARG002
    ) -> None:
        agent.connect("schema", connection)
        agent.query("schema", f"DROP SCHEMA {name} CASCADE", timeout=deadlines.check())
        agent.disconnect("schema")

    def schemas(self, agent: Agent, connection: Connection) -> dict[str, str]:
        agent.connect("schema", connection)
        rows = agent.query(
            "schema",
            "SELECT nspname, coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace "
            "WHERE nspname LIKE 'ciphercost\\_%'",
        )
        agent.disconnect("schema")
        return {
            str(name): (mark or "").removeprefix(MARK) if (mark or "").startswith(MARK) else "" for name, mark in rows
        }

    def payload(self, size: int) -> str:
        # Repeats a long piece: repeat() of one letter would cost more than the transfer.
        return f"SELECT repeat(repeat('x', 1000), {size // 1000})"

    def in_schema(self, name: str) -> Changes:
        return {"search_path": name}

    sizes = (
        "SELECT sum(pg_table_size(c.oid)), sum(pg_indexes_size(c.oid)) FROM pg_class c "
        "WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace"
    )

    statement_logs = (
        "SELECT 'every statement that fails', 'log_min_error_statement = panic', 'medium' "
        "WHERE current_setting('log_min_error_statement') NOT IN ('fatal', 'panic') "
        "UNION ALL SELECT 'statements', 'log_statement = none', 'high' WHERE current_setting('log_statement') IN ('mod', 'all') "
        "UNION ALL SELECT 'slow statements', 'log_min_duration_statement = -1', 'medium' "
        "WHERE current_setting('log_min_duration_statement') <> '-1'"
    )

    def spills(self, word: str) -> tuple[Spill, ...]:
        """A temporary table larger than its buffers, and a sort larger than its memory, which a cursor keeps open."""
        rows = f"SELECT '{word}' || i AS word FROM generate_series(1, {SPILT_ROWS}) AS i"
        return (
            Spill("temporary table", ("SET temp_buffers = '800kB'", f"CREATE TEMPORARY TABLE spilt AS {rows}")),
            Spill(
                "sort",
                (
                    "SET work_mem = '64kB'",
                    "BEGIN",
                    f"DECLARE spilt NO SCROLL CURSOR FOR {rows} ORDER BY reverse(i::text)",
                    "FETCH 1 FROM spilt",
                ),
            ),
        )

    def does_direct_io(self, version: str) -> bool:
        return major(version) >= NEWER["debug_io_direct"]

    def cache_settings(self, size: int, *, direct: bool) -> dict[str, str]:
        """Direct I/O covers data only, and exists from version 16 on. The server calls it a developer option."""
        settings = {"shared_buffers": f"{max(size, LEAST_BUFFERS) // PAGE * PAGE // 1024}kB"} if size else {}
        return settings | ({"debug_io_direct": "data"} if direct else {})

    def backup(self, request: BackupRequest) -> Backup:
        return backups.backup(request)

    def dump_of(self, path: Path) -> Dump:
        return dumps.recognised(path)

    def load_dump(self, dump: Dump, target: DumpTarget) -> list[str]:
        return dumps.load(dump, target, DATABASE)

    def table_rows(self, query: Callable[[str], Rows]) -> dict[str, int]:
        return dumps.table_rows(query)

    def table_columns(self, query: Callable[[str], Rows], table: str) -> list[DumpColumn]:
        return dumps.table_columns(query, table)

    def read_table(self, query: Callable[[str], Rows], table: str, texts: Sequence[str]) -> Iterator[Rows]:
        return dumps.read_table(query, table, texts)

    def check_factors(self, mechanism: str, factors: Mapping[str, str], version: str) -> None:
        if mechanism == "tls" and factors.get("negotiation") == DIRECT and major(version or NEWEST) < DIRECT_SINCE:
            raise UsageError(
                f"negotiation={DIRECT}: postgresql {version} takes TLS only after it was asked for it, version {DIRECT_SINCE} is the "
                f"first that needs no question. Leave negotiation out, or use postgresql@{DIRECT_SINCE} or later."
            )
        group = factors.get("group", "") if mechanism == "tls" else ""
        if group and major(version or NEWEST) < 18 and tls_names.GROUPS[group] not in CURVES:
            raise UsageError(
                f"postgresql {version} can't offer the group {group}: before version 18 it offers only p256 and p384. "
                "Leave group out, or use postgresql@18."
            )

    def hint(self, code: str, text: str = "") -> str:
        if "channel binding check failed" in text:
            return (
                "The server has another certificate than the one that the client was shown: something between them ends TLS, and may read "
                "everything. If that is as it should be, write --set channel-binding=disable"
            )
        return super().hint(code, text)

    def right_to_make(self, connection: Connection) -> str:
        return grants.statement(self.name, connection.user, connection.database)

    def tls_settings(self, pki: Pki, factors: Mapping[str, str]) -> dict[str, str]:
        """Offer both versions and every suite; the client pins one. The server offers all TLS 1.3 suites by default."""
        settings = {
            "ssl": "on",
            "ssl_cert_file": str(pki.certificate),
            "ssl_key_file": str(pki.key),
            "ssl_min_protocol_version": "TLSv1.2",
            "ssl_max_protocol_version": "TLSv1.3",
            "ssl_ciphers": ":".join(tls_names.offered("1.2")),
        }
        if factors["group"]:
            settings["ssl_groups"] = tls_names.GROUPS[factors["group"]]
        if factors["client-cert"] == "on":
            rules = own_file(pki.directory / "pg_hba.conf", MUTUAL_HBA.format(clients=clients_of(pki.address)))
            settings |= {"ssl_ca_file": str(pki.ca), "hba_file": str(rules)}
        return settings


ENGINE = Postgresql()
