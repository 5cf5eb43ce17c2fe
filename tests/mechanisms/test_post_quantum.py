"""ML-DSA certificates: presented and verified where both ends know them, and refused with a reason elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

import warm
from ciphercost.host import tls_library
from ciphercost.host.tls_names import KEYS, POST_QUANTUM_KEYS
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec
from ciphercost.plan import resolve
from conftest import RequirePossible, RequireServer

NEWER = ("--set", "library=openssl-3.5")


@pytest.mark.parametrize(
    ("server", "kind", "more"),
    [
        *(("nginx@1.26", kind, ()) for kind in POST_QUANTUM_KEYS),
        ("apache@2.4", "mldsa44", ()),
        ("postgresql@18", "mldsa65", ()),
        ("postgresql@15", "mldsa44", NEWER),
        ("mariadb@11.8", "mldsa65", ()),
        ("valkey", "mldsa44", ()),
        ("memcached", "mldsa65", ()),
    ],
)
def test_the_server_presents_the_certificate_and_the_client_verifies_it(
    server: str,
    kind: str,
    more: tuple[str, ...],
    require_server: RequireServer,
    require_possible: RequirePossible,
    tmp_path: Path,
) -> None:
    require_server(*server.split("@"))
    if more:
        require_possible(lambda: tls_library.directory("openssl-3.5", fetch=False))
    done = warm.run(("prove", f"{server}:tls", "--set", f"certificate={kind}", *more), cwd=tmp_path)
    words = " ".join(done.stdout.split())
    assert done.returncode == 0, words + done.stderr
    assert f", {KEYS[kind]}, peer verified" in words


def test_a_server_whose_library_is_too_old_says_what_to_try(require_server: RequireServer, tmp_path: Path) -> None:
    require_server("nginx", "1.22")
    done = warm.run(("prove", "nginx@1.22:tls", "--set", "certificate=mldsa44"), cwd=tmp_path)
    words = " ".join(done.stderr.split())
    assert done.returncode != 0
    assert "nginx 1.22.1 did not start" in words
    assert "certificate=mldsa44 needs OpenSSL 3.5 " in words
    assert "--set library=openssl-3.5" in words
    assert "Traceback" not in words


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (
            CellSpec("nginx", "tls", workload="connect", factors={"certificate": "mldsa44", "version": "1.2"}),
            "write version=1.3",
        ),
        (
            CellSpec("nginx", "tls", workload="connect", factors={"certificate": "mldsa44", "library": "openssl-3.0"}),
            "since 3.5",
        ),
        (CellSpec("mysql", "tls", factors={"certificate": "mldsa65"}), "answers no handshake"),
    ],
)
def test_what_can_not_work_is_refused_before_anything_starts(cell: CellSpec, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        resolve.resolve(cell)


@pytest.mark.usefixtures("require_java")
def test_javas_tls_knows_no_such_certificate() -> None:
    with pytest.raises(UsageError, match="Java 17 knows no ML-DSA"):
        resolve.resolve(CellSpec("postgresql", "tls", factors={"certificate": "mldsa65"}, client="jdbc"))
