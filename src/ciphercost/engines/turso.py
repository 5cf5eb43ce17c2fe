"""Turso, embedded in the agent. There is no server: a directory holds the database file.

Its shared library is that of its Python package, which also has Turso's C interface. The library refers to symbols of Python, none of
which that interface uses; Python's own shared library, loaded before, has them. Python is never started.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path

from ciphercost.engines import Server, StartRequest
from ciphercost.engines._embedded import Directory, Loaded
from ciphercost.engines.capabilities.storage import Spill
from ciphercost.host import pypi
from ciphercost.host.debian import unpack_suite
from ciphercost.host.package_cache import Receipt, Work
from ciphercost.model.connection import Connection
from ciphercost.model.errors import MissingServer

VERSION = "0.8.3"
WHEEL = f"pyturso=={VERSION}"
LIBRARY = "turso/_turso.abi3.so"
PYTHON = ("bookworm", "libpython3.11", "libpython3.11.so.1.0")
"""Where a Python without a shared library gets one: suite, package, file. The library needs 3.10 or newer and any glibc since 2.36."""
FILE = "database.turso"
SETTINGS = (
    "page_size",
    "journal_mode",
    "synchronous",
    "cache_size",
    "temp_store",
    "encoding",
    "foreign_keys",
)
"""Pragmas that SQL can read."""
LEAST_CACHE_KIB = 800
"""200 pages, below which Turso keeps its default."""


class TursoDirectory(Directory):
    def connection(self) -> Connection:
        assert self.directory is not None
        return Connection(
            driver="turso",
            path=str(self.directory / FILE),
            library=str(self.programs / LIBRARY),
            extension=str(python_library(self.programs)),
        )


class Turso(Loaded):
    name = "turso"
    title = "Turso (embedded)"
    driver = "turso"
    dialect = "sqlite"
    library_version, source = VERSION, "pypi"
    temporary = ("*tursodb-temp.db*",)
    # A process has a file open once, with one cache; connections of an operation would share it with those that stay.
    most_openers = 1
    home = "SELECT file FROM pragma_database_list WHERE name = 'main'"
    variables = " UNION ALL ".join(f"SELECT '{name}', {name} FROM pragma_{name}" for name in SETTINGS)

    def spills(self, word: str) -> tuple[Spill, ...]:
        """A sort and a temporary table, each twice: with the connection's setting (memory) and in files."""
        count = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 50000)"
        rows = f"SELECT n * 7919 % 1000003 AS k, '{word}' || n AS w FROM c"
        sort = f"{count} SELECT k, w FROM ({rows}) ORDER BY w LIMIT 1 OFFSET 49999"
        table = f"CREATE TEMP TABLE ciphercost_spill AS {count} {rows}"
        files, ends = "PRAGMA temp_store = 1", " where temp_store is files"
        return (
            Spill("sort", (sort,), during=True),
            Spill("temporary table", (table,)),
            Spill(f"sort{ends}", (files, sort), during=True),
            Spill(f"temporary table{ends}", (files, table)),
        )

    def cache_settings(self, size: int, *, direct: bool) -> dict[str, str]:  # noqa: ARG002
        """A pragma of a connection."""
        return {"cache_size": str(-max(size // 1024, LEAST_CACHE_KIB))} if size else {}

    def fetch(self, work: Work) -> Receipt:
        if own_python_library() is None:
            suite, package, _ = PYTHON
            unpack_suite(suite, (package,), work)
        pypi.unpack_wheel(WHEEL, work)
        if not (work.path / LIBRARY).is_file():
            raise MissingServer(f"the wheel {WHEEL} holds no {LIBRARY}")
        return Receipt(self.name, VERSION, self.source, ".")

    def start(self, request: StartRequest) -> Server:
        return TursoDirectory(request.installation, request.directory)


def own_python_library() -> Path | None:
    """The shared library of the Python that runs ciphercost; None if its program has everything inside."""
    place, name = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME")
    path = Path(place or "", name or "")
    return path if place and ".so" in (name or "") and path.is_file() else None


def python_library(programs: Path) -> Path:
    """The shared library of Python that is loaded before Turso's. Raises MissingServer."""
    path = own_python_library() or next(programs.rglob(PYTHON[2]), None)
    if path is None:
        raise MissingServer(
            f"no shared library of Python was found, which Turso's library needs: remove {programs}, then try again"
        )
    return path


ENGINE = Turso()
