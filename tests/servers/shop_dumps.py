"""Dumps of a small shop, made by the servers' own tools: foreign keys, views, functions, JSON, a trigger. The same script makes a large one:

    python tests/servers/shop_dumps.py postgresql DIRECTORY [ORDERS]

writes every kind of dump that this server's tools can write. 3,000,000 orders are about 1 GB.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ciphercost import engines
from ciphercost.engines import Server, StartRequest
from ciphercost.host import supervisor
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from ciphercost.model.secret import reveal

ORDERS = 300
"""Of a small dump. There is a customer for ten orders, and three items in each."""
WORD = "Kirschwasserfabrik"
"""In a value of each kind of table: it must be in no record, log or report."""
TABLES = ("customers", "orders", "items", "changes")


def rows(orders: int = ORDERS) -> dict[str, int]:
    """Rows of each table."""
    return {"customers": customers(orders), "orders": orders, "items": 3 * orders, "changes": 3}


def customers(orders: int) -> int:
    return max(1, orders // 10)


def statements(language: str, orders: int) -> list[str]:
    """The statements that make the shop, one a line."""
    text = (Path(__file__).parent / "shop" / f"{language}.sql").read_text()
    return text.format(word=WORD, orders=orders, customers=customers(orders)).splitlines()


@contextmanager
def filled(engine_name: str, language: str, orders: int, version: str = "") -> Iterator[tuple[Server, Path]]:
    """(a server that holds the shop, its directory of programs)."""
    engine = engines.get(engine_name)
    run_id = run_directory.new_id()
    with Supervisor(run_id) as run_supervisor:
        directory = supervisor.scratch(run_id, run_supervisor) / "shop"
        installation = engine.find(version)
        engine.initialise(installation, directory, run_supervisor)
        server = engine.start(StartRequest(installation, directory, run_supervisor))
        try:
            with Agent() as agent:
                agent.connect("shop", server.connection())
                for statement in statements(language, orders):
                    agent.query("shop", statement, timeout=3600)
            yield server, Path(installation.location)
        finally:
            server.stop()


def postgresql(into: Path, orders: int = ORDERS, version: str = "") -> dict[str, Path]:
    """Dumps of pg_dump, by form."""
    files = {form: into / f"shop-{form}" for form in ("plain", "custom", "tar", "directory")}
    with filled("postgresql", "postgresql", orders, version) as (server, programs):
        connection = server.connection()
        asked = ["-h", connection.host, "-p", str(connection.port), "-U", connection.user, connection.database]
        env = {**os.environ, "PGPASSWORD": reveal(connection.password)}
        for form, file in files.items():
            subprocess.run([programs / "pg_dump", f"-F{form[0]}", "-f", file, *map(str, asked)], check=True, env=env)
    return files


def mysql(into: Path, engine: str = "mysql", orders: int = ORDERS) -> dict[str, Path]:
    """A dump of one database, and one that names it (`--databases`)."""
    files = {form: into / f"{engine}-{form}.sql" for form in ("one", "named")}
    with filled(engine, "mysql", orders) as (server, programs):
        connection = server.connection()
        program = programs.parent / "bin" / ("mysqldump" if engine == "mysql" else "mariadb-dump")
        given = ["-h", str(connection.host), "-P", str(connection.port), "-u", str(connection.user), "--routines"]
        given += ["--no-tablespaces", "--set-gtid-purged=OFF"] if engine == "mysql" else ["--skip-ssl"]
        env = {**os.environ, "MYSQL_PWD": reveal(connection.password)}
        for form, file in files.items():
            named = ["--databases"] if form == "named" else []
            with file.open("wb") as output:
                subprocess.run([program, "--no-defaults", *given, *named, "shop"], check=True, env=env, stdout=output)
    return files


def sqlite(into: Path, orders: int = ORDERS) -> dict[str, Path]:
    """A database's file."""
    file = into / "shop.db"
    connection = sqlite3.connect(file)
    for statement in statements("sqlite", orders):
        connection.execute(statement)
    connection.commit()
    connection.close()
    return {"file": file}


def firebird(into: Path, orders: int = ORDERS) -> dict[str, Path]:
    """A backup of gbak, through the server."""
    file = into / "shop.fbk"
    with filled("firebird", "firebird", orders) as (server, programs):
        connection = server.connection()
        place = f"{connection.host}/{connection.port}:{connection.database}"
        env = {**os.environ, "ISC_USER": str(connection.user), "ISC_PASSWORD": reveal(connection.password)}
        with file.open("wb") as output:  # written by us: the server may not write there
            subprocess.run([programs / "gbak", "-b", place, "stdout"], check=True, env=env, stdout=output)
    return {"backup": file}


MAKERS: dict[str, Callable[..., dict[str, Path]]] = {
    "postgresql": postgresql,
    "mysql": mysql,
    "mariadb": lambda into, orders=ORDERS: mysql(into, "mariadb", orders),
    "sqlite": sqlite,
    "firebird": firebird,
}

Made = Callable[[str], dict[str, Path]]
"""By engine: its dumps, each under the name of its form."""


def once(new_directory: Callable[[str], Path], require_server: Callable[[str], object]) -> Made:
    """The small dumps of each engine, made when they are first asked for, in a directory of their own."""
    known: dict[str, dict[str, Path]] = {}

    def dumps_of(engine: str) -> dict[str, Path]:
        if engine not in known:
            if engine != "sqlite":
                require_server(engine)
            known[engine] = MAKERS[engine](new_directory(engine))
        return known[engine]

    return dumps_of


if __name__ == "__main__":
    made = MAKERS[sys.argv[1]](Path(sys.argv[2]), orders=int(sys.argv[3]) if len(sys.argv) > 3 else ORDERS)
    for path in made.values():
        size = sum(file.stat().st_size for file in path.rglob("*")) if path.is_dir() else path.stat().st_size
        print(f"{path}: {size / 1e6:,.1f} MB; {shutil.disk_usage(path.parent).free / 1e9:.0f} GB free")
