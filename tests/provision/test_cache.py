"""--cache: where it is allowed, what it derives from the data's size, and that the system's cache is really emptied."""

from __future__ import annotations

import mmap
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ciphercost import commands, engines
from ciphercost.engines import StartRequest
from ciphercost.host import run_ownership, supervisor
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from ciphercost.model.connection import Changes, Connection
from ciphercost.model.errors import UsageError
from ciphercost.model.secret import Secret
from ciphercost.model.spec import Cache, CellSpec, Spec
from ciphercost.plan import conditions, matrix, specs, toml
from ciphercost.provision import cache
from conftest import RequireServer
from processes import opened

SQLITE = CellSpec("sqlite", "sqlcipher")


def cell(how: Cache, engine: str = "sqlite", mechanism: str = "sqlcipher") -> CellSpec:
    return CellSpec(engine, mechanism, cache=how)


@given(st.integers(1, 10**13))
def test_a_small_cache_is_a_tenth_of_the_data(size: int) -> None:
    assert cache.pool(cell("small"), size) == max(size // 10, 1)
    assert cache.pool(cell("cold"), size) == cache.pool(cell("warm"), size) == 0


def test_an_embedded_engine_has_its_cache_in_its_connection() -> None:
    engine = engines.get("sqlite")
    assert cache.settings(engine, cell("small"), 10**9, direct=True) == {}
    assert cache.connection(engine, cell("warm"), 10**9) == cache.connection(engine, cell("cold"), 10**9) == {}
    added = cache.connection(engine, cell("small"), 10**9)
    assert "cache_size=-97656" in str(added["pragmas"])
    file = Connection(driver="sqlite", path="x")
    joined = cache.joined(file | {"pragmas": "PRAGMA cipher_page_size=8192"}, added)
    assert str(joined.pragmas).startswith("PRAGMA cipher_page_size=8192;PRAGMA cache_size")
    assert cache.joined(file, {}) == file


def test_a_server_has_its_cache_in_its_settings() -> None:
    engine = engines.get("firebird")
    small = cache.settings(engine, CellSpec("firebird", "none", cache="small"), 10**9, direct=True)
    assert small == {"DefaultDbCachePages": str(10**8 // 8192), "UseFileSystemCache": "false"}
    assert cache.settings(engine, CellSpec("firebird", "none"), 10**9, direct=False) == {}
    assert cache.connection(engine, CellSpec("firebird", "none", cache="small"), 10**9) == {}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (CellSpec("postgresql", "tls", cache="small"), "is for encryption at rest"),
        (CellSpec("postgresql", "none", url="postgresql://me@localhost/x", cache="cold"), "restart your server"),
        (CellSpec("null", "none", cache="small"), "stores no data"),
        (CellSpec("sqlite", "sqlcipher", cache="tiny"), "warm, cold or small"),  # type: ignore[arg-type]
    ],
)
def test_an_unsupported_cache_size_is_refused(wrong: CellSpec, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        specs.check(Spec(cells=[wrong]))


def test_it_is_a_condition_and_survives_being_printed(tmp_path: Path) -> None:
    small = cell("small")
    assert conditions.named(small) == {"cache": "small"}
    assert "a tenth of the data" in conditions.worded(conditions.named(small))
    assert conditions.named(cell("warm")) == {}
    done = CliRunner().invoke(commands.cli, ["run", "sqlite:sqlcipher", "--cache", "small", "--print-spec"])
    (tmp_path / "x.toml").write_text(done.output)
    assert toml.load(tmp_path / "x.toml").cells == [small]
    changed = matrix.matrix(SQLITE, ["cache=warm,small"])
    assert [cell.cache for cell in changed] == ["warm", "small"]


def test_the_usual_time_is_longer_with_a_cell_at_rest_and_a_spec_file_keeps_its_own(tmp_path: Path) -> None:
    def time(*argv: str) -> float:
        done = CliRunner().invoke(commands.cli, ["run", *argv, "--print-spec"])
        (tmp_path / "x.toml").write_text(done.output)
        return toml.load(tmp_path / "x.toml").time

    assert time("postgresql:tls") == 90
    assert time("postgresql:tls", "sqlite:sqlcipher") == 240
    assert time("sqlite:sqlcipher", "--time", "90s") == 90
    assert time("sqlite:sqlcipher", "--quick") == 240
    (tmp_path / "y.toml").write_text('[[cells]]\nengine = "sqlite"\nmechanism = "sqlcipher"\n')
    assert toml.load(tmp_path / "y.toml").time == 240


def test_reads_from_the_systems_cache_are_reported() -> None:
    assert cache.caveat(cell("warm"), direct=False, below=True) == ""
    assert cache.caveat(cell("small"), direct=True, below=False) == ""
    assert "decrypted pages" in cache.caveat(cell("small"), direct=False, below=True)
    assert "every such page is decrypted" in cache.caveat(cell("cold"), direct=False, below=False)


# ── the system's cache ────────────────────────────────────────────────────────────────────────────────────────────────

RESIDENT = """
import ctypes, mmap, os, sys
length = os.path.getsize(sys.argv[1])
file = open(sys.argv[1], "r+b")
mapped = mmap.mmap(file.fileno(), length)
pages = (length + mmap.PAGESIZE - 1) // mmap.PAGESIZE
held = (ctypes.c_ubyte * pages)()
address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
assert ctypes.CDLL(None, use_errno=True).mincore(ctypes.c_void_p(address), ctypes.c_size_t(length), held) == 0
print(sum(page & 1 for page in held))
"""


def resident(path: Path) -> int:
    """Pages of a file in the system's cache (mincore)."""
    done = subprocess.run([sys.executable, "-c", RESIDENT, str(path)], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_files_are_written_back_and_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep" / "deeper").mkdir(parents=True)
    path = tmp_path / "deep" / "deeper" / "data"
    (tmp_path / "link").symlink_to("/proc/self/mem")
    os.mkfifo(tmp_path / "pipe")
    for _ in range(5):  # another test's run with a cold cache may drop all of the system's meanwhile
        path.write_bytes(os.urandom(64 * mmap.PAGESIZE))
        if (held := resident(path)) == 64:
            break
    assert held == 64
    # Don't drop what another test reads.
    monkeypatch.setattr(cache, "DROP_CACHES", tmp_path.parent / "drop_caches")
    (tmp_path.parent / "drop_caches").touch()
    note = cache.drop([tmp_path / "deep", tmp_path, tmp_path / "nowhere"])
    assert resident(path) == 0
    assert re.search(r"[12] files written back and released \(posix_fadvise\)", note)
    assert "drop_caches" in note
    assert cache.size(tmp_path) == 64 * mmap.PAGESIZE


# ── the real ones ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_sqlite_takes_a_small_cache_in_both_arms(tmp_path: Path) -> None:
    engine = engines.get("sqlite")
    added = cache.connection(engine, cell("small"), 10**8)
    key: dict[str, Changes] = {"plain": {}, "encrypted": {"key": Secret("ab" * 32)}}
    with Agent(log=tmp_path / "agent.log") as agent:
        for arm, more in key.items():
            agent.connect(arm, cache.joined(Connection(driver="sqlite", path=str(tmp_path / arm)) | more, added))
            assert agent.query(arm, "PRAGMA cache_size") == [["-9765"]]
            agent.query(arm, "CREATE TABLE t (a integer)")


def test_firebird_takes_a_small_cache_and_direct_io(require_server: RequireServer, tmp_path: Path) -> None:
    installation = require_server("firebird")
    engine, run_id = engines.get("firebird"), run_directory.new_id()
    with supervisor.Supervisor(run_id) as run_supervisor:
        directory = supervisor.scratch(run_id, run_supervisor) / "data"
        directory.mkdir(mode=0o700)
        run_ownership.hand_over(directory)
        engine.initialise(installation, directory, run_supervisor)
        for direct in (False, True):
            wanted = cache.settings(engine, CellSpec("firebird", "none", cache="small"), 10**8, direct)
            server = engine.start(StartRequest(installation, directory, run_supervisor, settings=wanted))
            try:
                with Agent(log=tmp_path / "agent.log") as agent:
                    agent.connect("one", server.connection())
                    pages = agent.query("one", "SELECT MON$PAGE_BUFFERS FROM MON$DATABASE")
                    assert pages == [[str(10**7 // 8192)]]
                    flags = [
                        file_flags for name, file_flags in opened(server.pid).items() if name.endswith("database.fdb")
                    ]
                    assert flags
                    assert all(bool(file_flags & os.O_DIRECT) is direct for file_flags in flags)
            finally:
                server.stop()
