"""DuckDB, embedded in the agent. There is no server: a directory holds the database file.

Its shared library comes from the Java driver's jar, which also has the C interface. DuckDB writes encrypted files only with the
OpenSSL that its extension `httpfs` brings; a wheel has that, so DuckDB itself fetches nothing.
"""

from __future__ import annotations

import platform
import zipfile

from ciphercost.engines import Server, StartRequest
from ciphercost.engines._embedded import Directory, Loaded
from ciphercost.engines.capabilities.storage import Spill
from ciphercost.host import maven, pypi
from ciphercost.host.package_cache import Receipt, Work
from ciphercost.model.connection import Connection
from ciphercost.model.errors import MissingServer

VERSION = "1.4.4"
JAR = maven.Artifact(
    "org.duckdb:duckdb_jdbc:1.4.4.0", "43f0cc93c892699162d46e8a45e2cbb92d92f74b933832f84c78ed551a2608df"
)
EXTENSION = "duckdb-ext-httpfs==1.4.4.20260205"
MACHINES = {"x86_64": "libduckdb_java.so_linux_amd64", "aarch64": "libduckdb_java.so_linux_arm64"}
LIBRARY, LOADED = "libduckdb.so", "httpfs.duckdb_extension"
FILE = "database.duckdb"
SETTINGS = "SET storage_compatibility_version='v1.4.0';SET threads=1;SET memory_limit='1GiB'"
"""Of both arms. DuckDB writes encrypted files in the format of 1.4, and others in that of 1.0 by default. A statement runs in one
thread, so that figures do not depend on how its work was divided. The limit of memory would otherwise depend on the machine."""
LEAST_CACHE_MB = 8
"""With 4, statements that write fail for want of memory."""


class DuckDbDirectory(Directory):
    def connection(self) -> Connection:
        assert self.directory is not None
        return Connection(
            driver="duckdb",
            path=str(self.directory / FILE),
            library=str(self.programs / LIBRARY),
            extension=str(self.programs / LOADED),
            pragmas=SETTINGS,
        )


class DuckDb(Loaded):
    name = "duckdb"
    title = "DuckDB (embedded)"
    driver = "duckdb"
    dialect = "duckdb"
    library_version, source = VERSION, "maven"
    # A process opens a file once: with two clients, one would often find it open.
    most_openers = 1
    usual_workload = "scan"
    home = "SELECT path FROM duckdb_databases() WHERE database_name = 'arm'"
    variables = "SELECT name, value FROM duckdb_settings()"
    unlike = ("temp_directory",)
    temporary = (f"{FILE}.tmp/*",)

    def spills(self, word: str) -> tuple[Spill, ...]:
        """A temporary table and a sort, each of 500,000 rows, which are more than the memory that DuckDB is then allowed."""
        rows = f"SELECT hash(n) AS k, '{word}' || md5(n::varchar) AS w FROM range(500000) AS s(n)"
        table = f"CREATE TEMP TABLE ciphercost_spill AS {rows}"
        sort = f"SELECT k, w FROM ({rows}) ORDER BY k OFFSET 499999"
        return (
            Spill("temporary table", ("SET memory_limit='16MiB'", table)),
            Spill("sort", ("SET memory_limit='48MiB'", sort), during=True),
        )

    def cache_settings(self, size: int, *, direct: bool) -> dict[str, str]:  # noqa: ARG002
        """Return the limit of all memory of an instance, which is its cache and the memory of its statements."""
        return {"memory_limit": f"'{max(size >> 20, LEAST_CACHE_MB)}MiB'"} if size else {}

    def fetch(self, work: Work) -> Receipt:
        member = MACHINES.get(platform.machine())
        if member is None:
            raise MissingServer(f"DuckDB has no library for {platform.machine()}; use x86_64 or aarch64")
        jar = maven.fetch_jar(JAR, work)
        with zipfile.ZipFile(jar) as archive:
            (work.path / LIBRARY).write_bytes(archive.read(member))
        jar.unlink()
        jar.parent.rmdir()
        pypi.unpack_wheel(EXTENSION, work)
        files = [path for path in work.path.rglob(LOADED) if f"v{VERSION}" in path.parts]
        if len(files) != 1:
            raise MissingServer(f"the wheel {EXTENSION} holds no {LOADED} for DuckDB {VERSION}")
        files[0].rename(work.path / LOADED)
        return Receipt(self.name, VERSION, self.source, ".")

    def start(self, request: StartRequest) -> Server:
        return DuckDbDirectory(request.installation, request.directory)


ENGINE = DuckDb()
