"""Servers with another OpenSSL than their own: every engine starts with each, its processes prove it, and what can't work is refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import short
import warm
from ciphercost.host import tls_library
from ciphercost.mechanisms.tls import MECHANISM as TLS
from ciphercost.model.errors import UsageError
from conftest import Require, RequirePossible, RequireServer

NEWEST = "openssl-3.6"
QUICK = ("--workload", "connect", "--quick", "--time", "4s", "--no-latency", "--no-progress")


@pytest.fixture(scope="module", autouse=True)
def libraries(require_possible: RequirePossible) -> None:
    require_possible(lambda: [tls_library.directory(library, fetch=False) for library in tls_library.SUITES])


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that servers can reach."""
    directory = Path(tempfile.mkdtemp(prefix="ciphercost-library-", dir="/var/tmp"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


def copied(place: Path, *names: str) -> Path:
    """The newest libraries, copied: these two, or the ones named."""
    for name in names or ("libssl.so.3", "libcrypto.so.3"):
        shutil.copy(tls_library.directory(NEWEST) / name, place / name)
    return place


def run(
    target: str, library: str | Path, cwd: Path, command: str = "run", more: tuple[str, ...] = QUICK
) -> subprocess.CompletedProcess[str]:
    return warm.run((command, target, "--set", f"library={library}", *more), cwd=cwd)


OTHERS = (
    "apache",
    "postgresql@15",
    "postgresql@18",
    "mysql@9.7",
    "mariadb@10.11",
    "mariadb@11.8",
    "valkey",
    "memcached",
)


@pytest.mark.parametrize(
    ("server", "library"),
    [
        ("nginx@1.18", "openssl-1.1.1"),
        *(("nginx@1.26", library) for library in tls_library.SUITES if library != "openssl-1.1.1"),
        *((server, NEWEST) for server in OTHERS),
    ],
)
def test_a_server_uses_the_library_and_proves_it(
    server: str, library: str, require_server: RequireServer, tmp_path: Path
) -> None:
    require_server(*server.split("@"))
    done = run(f"{server}:tls", library, tmp_path, "prove", ())
    output = " ".join(done.stdout.split())
    assert done.returncode == 0, output + done.stderr
    assert output.count("process: it uses libcrypto.so.") == 2, "one for each arm"
    assert len(re.findall(rf"OpenSSL {re.escape(library.removeprefix('openssl-'))}[.a-z]", output)) == 2
    assert "ENCRYPTED, proven by " in output


def test_libraries_are_compared_in_the_same_sessions(tmp_path: Path, require_server: RequireServer) -> None:
    require_server("nginx")
    words = (
        "run",
        "nginx:tls",
        "--matrix",
        "library=openssl-3.0,openssl-3.5",
        "--set",
        "group=x25519",
        "--json",
        "out.json",
    )
    done = short.run((*words, *QUICK), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    cells = json.loads((tmp_path / "out.json").read_text())["cells"]
    assert [cell["encryption"]["server_library"].rpartition(".")[0] for cell in cells] == ["OpenSSL 3.0", "OpenSSL 3.5"]
    assert {cell["encryption"]["client_library"] for cell in cells} == {cells[0]["encryption"]["client_library"]}
    for cell in cells:
        heard = {(proof["arm"], proof["witness"]) for proof in cell["proofs"] if proof["passed"]}
        assert {("plain", "process"), ("encrypted", "process")} <= heard
    assert "in the same 1 session" in " ".join(done.stdout.split())


# ── what can't work ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_directory_of_the_users_is_used(place: Path, tmp_path: Path, require_server: RequireServer) -> None:
    require_server("nginx")
    done = run("nginx:tls", copied(place), tmp_path, "prove", ())
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(place) in "".join(done.stdout.split())


def test_a_path_that_leads_elsewhere_is_not_proven(place: Path, tmp_path: Path, require_server: RequireServer) -> None:
    require_server("nginx")
    for name in ("libssl.so.3", "libcrypto.so.3"):
        (place / name).symlink_to(tls_library.directory(NEWEST) / name)
    done = run("nginx:tls", place, tmp_path)
    output = " ".join(done.stdout.split())
    assert done.returncode == 1, output + done.stderr
    assert "was not proven: process witness, encrypted arm: " in output
    assert "operations per second" not in output


def test_a_library_that_is_too_old_is_refused_with_the_symbol_it_lacks(
    place: Path, tmp_path: Path, require: Require, require_server: RequireServer
) -> None:
    require(shutil.which("cc"), "no C compiler")
    require_server("nginx")
    copied(place, "libcrypto.so.3")
    (tmp_path / "empty.c").write_text("int nothing;")
    command: list[str | Path] = [
        "cc",
        "-shared",
        "-Wl,-soname,libssl.so.3",
        "-o",
        place / "libssl.so.3",
        tmp_path / "empty.c",
    ]
    subprocess.run(command, check=True)
    done = run("nginx:tls", place, tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert re.search(r"nginx, .* SSL_\w+: .*too old", done.stderr), done.stderr


def empty(place: Path) -> None:
    """Nothing in it."""


def half(place: Path) -> None:
    copied(place, "libssl.so.3")


def text(place: Path) -> None:
    copied(place, "libcrypto.so.3")
    (place / "libssl.so.3").write_text("hello")


def foreign(place: Path) -> None:
    content = bytearray((copied(place) / "libssl.so.3").read_bytes())
    content[18:20] = (243).to_bytes(2, "little")
    (place / "libssl.so.3").write_bytes(content)


def missing(place: Path) -> None:
    place.rmdir()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (empty, "has no libssl.so.3"),
        (half, "has no libcrypto.so.3"),
        (text, "libssl.so.3 is no library"),
        (foreign, "libssl.so.3 is for riscv64"),
        (missing, "is no directory"),
    ],
)
def test_a_directory_without_the_libraries_is_refused(
    make: Callable[[Path], None], reason: str, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    make(place)
    with pytest.raises(UsageError, match=reason):
        tls_library.checked(place)


def test_an_unknown_library_is_refused_before_anything_starts(tmp_path: Path) -> None:
    done = run("nginx:tls", "openssl-3.7", tmp_path)
    assert done.returncode == 2
    assert "no library 'openssl-3.7'" in done.stderr
    assert "did you mean 'openssl-3.6'?" in done.stderr
    done = run("nginx:tls", NEWEST, tmp_path, more=("--url", "https://127.0.0.1:1/"))
    assert done.returncode == 2
    assert "did not start your server" in done.stderr


def test_a_process_that_does_not_use_it_fails_the_witness() -> None:
    passed, words = tls_library.proof(os.getpid(), str(tls_library.directory(NEWEST)))
    assert not passed
    assert "which is not in" in words or "mapped" in words


def test_a_cell_with_a_library_needs_the_report_of_its_process() -> None:
    assert TLS.required({"library": NEWEST}) == (*TLS.witnesses, "process")
    assert TLS.required({"library": ""}) == TLS.required({}) == TLS.witnesses


def test_a_group_that_the_library_lacks_is_refused(tmp_path: Path) -> None:
    done = run("nginx:tls", "openssl-3.0", tmp_path, more=(*QUICK, "--set", "group=mlkem768"))
    assert done.returncode == 2
    assert "group=mlkem768: OpenSSL has it since 3.5" in done.stderr


@pytest.mark.parametrize(("server", "library"), [("nginx@1.26", "openssl-1.1.1"), ("nginx@1.18", "openssl-3.5")])
def test_a_library_of_the_other_series_is_refused(
    server: str, library: str, require_server: RequireServer, tmp_path: Path
) -> None:
    require_server(*server.split("@"))
    done = run(f"{server}:tls", library, tmp_path)
    assert done.returncode == 2
    assert "need different files" in " ".join(done.stderr.split())
