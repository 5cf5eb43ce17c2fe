"""Load generators to compare the agent with: one slice of each is one run of its program, pinned to a core.

A peer's connection cost is measured separately, with a run of one operation per connection, and subtracted, because our connections stay
open.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple, Protocol

from ciphercost import engines
from ciphercost.host import debian, package_cache, run_in_place
from ciphercost.host.package_cache import Receipt, Work
from ciphercost.model.connection import Connection
from ciphercost.model.secret import reveal

ROWS = 100_000
"""Rows of the table that one row is selected from."""


class Slice(NamedTuple):
    rate: float
    """Operations per second."""
    operations: float
    cpu: float
    """CPU seconds of the whole program."""


class Peer(Protocol):
    """A load generator and its name."""

    name: str
    sql: str
    """The operation, in the agent's script language."""

    def slice(self, fields: Connection, clients: int, cpu: int, seconds: int) -> Slice:
        """One run; `seconds` 0: one operation per connection."""


def encrypted(fields: Connection) -> bool:
    return str(fields.tls) != "off"


def timed(argv: list[str], cpu: int, environment: dict[str, str], directory: Path) -> tuple[str, float]:
    """(output, CPU seconds) of a program pinned to `cpu`. Ends the benchmark if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        ["taskset", "-c", str(cpu), *argv],
        env={**os.environ, **environment},
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{argv[0]} failed: {done.stderr}{done.stdout}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def number(pattern: str, text: str) -> float:
    match = re.search(pattern, text)
    if match is None:
        raise SystemExit(f"no '{pattern}' in:\n{text}")
    return float(match[1])


class Pgbench:
    """pgbench of PostgreSQL, prepared statements, one thread."""

    name = "pgbench"
    sql = f"\\set aid random(1, {ROWS})\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.script = directory / "select.sql"
        self.script.write_text(self.sql)
        self.script_options = ["-f", str(self.script)]
        self.program = self._find()

    def _find(self) -> str:
        """The newest pgbench on this machine, or that of an installed server."""
        for each in engines.get("postgresql").available():
            if (Path(each.location) / "pgbench").exists():
                return str(Path(each.location) / "pgbench")
        if found := shutil.which("pgbench"):
            return found
        raise SystemExit(
            "no pgbench: install postgresql-contrib, or `ciphercost install postgresql@18 --source debian`"
        )

    def environment(self, fields: Connection) -> dict[str, str]:
        """Variables with which libpq connects as the agent does."""
        return {
            "PGPASSWORD": reveal(fields.password),
            "PGSSLMODE": "verify-full" if encrypted(fields) else "disable",
            "PGSSLROOTCERT": str(fields.tls_ca),
            "PGSSLMINPROTOCOLVERSION": "TLSv1.3",
            "PGHOST": "localhost",
            "PGHOSTADDR": str(fields.host),
            "PGGSSENCMODE": "disable",
            "PGCHANNELBINDING": "disable",
        }

    def where(self, fields: Connection) -> list[str]:
        """Options that name port, user and database."""
        return ["-p", str(fields.port), "-U", str(fields.user), str(fields.database)]

    def slice(self, fields: Connection, clients: int, cpu: int, seconds: int) -> Slice:
        length = ["-T", str(seconds)] if seconds else ["-t", "1"]
        argv = [self.program, "-n", "-M", "prepared", "-c", str(clients), "-j", "1", *length, *self.script_options]
        text, cpu_seconds = timed([*argv, *self.where(fields)], cpu, self.environment(fields), self.directory)
        rate = number(r"tps = ([\d.]+) \(without initial", text)
        return Slice(rate, rate * seconds, cpu_seconds)


class Sysbench:
    """sysbench's oltp_point_select, prepared statements, one thread per connection, which it requires."""

    name = "sysbench"
    sql = f"\\set id random(1, {ROWS})\nSELECT c FROM sbtest1 WHERE id = :id;"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        found = package_cache.keep("sysbench", "bookworm-debian", _sysbench)
        self.root = Path(found.location).parent.parent

    def slice(self, fields: Connection, clients: int, cpu: int, seconds: int) -> Slice:
        share = self.root / "usr" / "share" / "sysbench"
        libraries = next(self.root.glob("usr/lib/*/libmariadb3/plugin"))
        environment = {"LUA_PATH": f"{share}/?.lua", "MARIADB_PLUGIN_DIR": str(libraries)}
        argv = [str(self.root / "usr" / "bin" / "sysbench"), str(share / "oltp_point_select.lua")]
        # The password is in a file, because everybody can read arguments.
        config = self.directory / "sysbench.conf"
        config.touch(0o600)
        config.write_text(f"mysql-password={reveal(fields.password)}\n")
        argv += [f"--config-file={config}", f"--mysql-host={fields.host}", f"--mysql-port={fields.port}"]
        argv += [f"--mysql-user={fields.user}", f"--mysql-db={fields.database}"]
        argv += [f"--threads={clients}", "--tables=1", f"--table-size={ROWS}", "--rand-type=uniform"]
        argv += [f"--time={seconds}", "--events=0"] if seconds else ["--time=0", f"--events={clients}"]
        if encrypted(fields):
            # It looks for these names in its working directory.
            pem = Path(str(fields.tls_ca)).parent
            for name, source in (("cacert", "ca.pem"), ("client-cert", "server.pem"), ("client-key", "server.key")):
                shutil.copyfile(pem / source, self.directory / f"{name}.pem")
            argv += ["--mysql-ssl=on"]
        text, cpu_seconds = timed([*argv, "run"], cpu, environment, self.directory)
        done = number(r"transactions:\s+(\d+)", text)
        return Slice(number(r"transactions:\s+\d+\s+\(([\d.]+) per sec", text), done, cpu_seconds)


def _sysbench(work: Work) -> Receipt:
    debian.unpack_suite("bookworm", ["sysbench"], work)
    run_in_place.run_in_place(work, ["usr/bin/sysbench"])
    return Receipt("sysbench", "1.0.20", "debian", "usr/bin")


class Mysqlslap:
    """mysqlslap, as the study used it: a fixed number of text statements, one thread per connection."""

    name = "mysqlslap"
    sql = Sysbench.sql

    def __init__(self, directory: Path, programs: Path) -> None:
        self.directory = directory
        places = [
            place / name for place in (programs, programs.parent / "bin") for name in ("mariadb-slap", "mysqlslap")
        ]
        self.program = next((str(each) for each in places if each.exists()), "")
        self._rate = 5000.0

    def slice(self, fields: Connection, clients: int, cpu: int, seconds: int) -> Slice:
        count = max(1, round(self._rate * seconds / clients)) * clients if seconds else clients
        queries = self.directory / "queries.sql"
        queries.write_text("".join(f"SELECT c FROM sbtest1 WHERE id = {n * 7919 % ROWS + 1};\n" for n in range(2000)))
        mariadb = self.program.endswith("mariadb-slap")
        if encrypted(fields):
            tls = [f"--ssl-ca={fields.tls_ca}", *(["--ssl"] if mariadb else ["--ssl-mode=VERIFY_CA"])]
        else:
            tls = ["--skip-ssl"] if mariadb else ["--ssl-mode=DISABLED", "--get-server-public-key"]
        argv = [self.program, "--no-defaults", f"--host={fields.host}", f"--port={fields.port}", "--protocol=TCP"]
        argv += [f"--user={fields.user}", f"--create-schema={fields.database}", "--no-drop", f"--query={queries}"]
        argv += ["--delimiter=;", f"--concurrency={clients}", f"--number-of-queries={count}", "--iterations=1", *tls]
        text, cpu_seconds = timed(argv, cpu, {"MYSQL_PWD": reveal(fields.password)}, self.directory)
        took = number(r"Average number of seconds to run all queries: ([\d.]+)", text)
        self._rate = count / took if seconds and took else self._rate
        return Slice(count / took if took else 0.0, count, cpu_seconds)
