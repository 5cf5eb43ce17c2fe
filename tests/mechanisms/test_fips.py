"""FIPS mode: servers in it and out of it, proven by module or environment and by what they refuse; what can't work is refused before."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import short
import warm
from ciphercost.engines import Server
from ciphercost.host import fips, tls_library
from ciphercost.host.tls_names import SUITES_13
from ciphercost.load.agent import Agent
from ciphercost.mechanisms.tls import MECHANISM as TLS
from ciphercost.model.connection import Changes
from ciphercost.model.errors import AgentError, UsageError
from ciphercost.model.spec import CellSpec
from ciphercost.plan import resolve
from ciphercost.prove.process_witness import refuses_unapproved
from conftest import RequirePossible, RequireServer
from web_servers import Site, site

LIBRARY = f"library={fips.LIBRARY}"
MODULE = f"/{fips.MODULE} is mapped: version 3.5."
GO = "the server was started with fips140={} in GODEBUG"
REFUSES = "it refuses a client that offers only ChaCha20"
ACCEPTS = "it accepts a client that offers only ChaCha20"
TLS_13: Changes = {"tls_min": "1.3", "tls_max": "1.3"}


@pytest.fixture(scope="module")
def provider(require_possible: RequirePossible) -> None:
    require_possible(lambda: fips.provider(fetch=False))
    require_possible(lambda: tls_library.directory(fips.LIBRARY, fetch=False))


def proven(target: str, *settings: str, cwd: Path, more: tuple[str, ...] = ()) -> str:
    """What `prove` prints, in one line, of a cell that must be proven."""
    done = warm.run(("prove", target, *(word for setting in settings for word in ("--set", setting)), *more), cwd=cwd)
    text = " ".join(done.stdout.split())
    assert done.returncode == 0, text + done.stderr
    assert "ENCRYPTED, proven by " in text
    return text


# ── real servers ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("provider")
@pytest.mark.parametrize(
    ("server", "more", "negotiated"),
    [
        ("nginx@1.26", (), "TLSv1.3 TLS_AES_256_GCM_SHA384 P-256"),
        ("nginx@1.26", ("http=3", "group=x25519mlkem768"), "HTTP/3 TLSv1.3 TLS_AES_256_GCM_SHA384 X25519MLKEM768"),
        ("nginx@1.22", ("version=1.2", "certificate=ecdsa-p256"), "TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384 P-256"),
        ("haproxy", (), "TLS_AES_256_GCM_SHA384 P-256"),
        ("apache", (), "TLS_AES_256_GCM_SHA384 P-256"),
        ("postgresql@15", (), "TLS_AES_256_GCM_SHA384 P-256"),
        ("postgresql@18", ("cipher=aes128-gcm",), "TLS_AES_128_GCM_SHA256 P-256"),
        ("mysql", (), "TLS_AES_256_GCM_SHA384 P-256"),
        ("mariadb@11.8", ("group=p384",), "TLS_AES_256_GCM_SHA384 P-384"),
        ("valkey", ("group=p384",), "TLS_AES_256_GCM_SHA384 P-384"),
        ("memcached", (), "TLS_AES_256_GCM_SHA384 P-256"),
    ],
)
def test_a_server_in_fips_mode_computes_with_the_module_alone(
    server: str, more: tuple[str, ...], negotiated: str, require_server: RequireServer, tmp_path: Path
) -> None:
    require_server(*server.split("@"))
    text = proven(f"{server}:tls", "fips=on", LIBRARY, *more, cwd=tmp_path)
    assert text.count("process: it uses libcrypto.so.") == 2, "one for each arm"
    assert text.count(MODULE) == 2, text
    assert text.count(REFUSES) == 1
    assert negotiated in text


@pytest.mark.usefixtures("provider")
@pytest.mark.parametrize(
    "server", ["nginx@1.26", "haproxy", "postgresql@15", "postgresql@18", "mariadb@11.8", "valkey"]
)
def test_the_reference_is_the_same_server_without_the_module(
    server: str, require_server: RequireServer, tmp_path: Path
) -> None:
    require_server(*server.split("@"))
    text = proven(f"{server}:tls", "fips=off", LIBRARY, cwd=tmp_path)
    assert text.count("process: it uses libcrypto.so.") == 2
    assert text.count("no FIPS module is mapped") == 2
    assert text.count(ACCEPTS) == 1
    assert "TLS_AES_256_GCM_SHA384 P-256" in text


@pytest.mark.parametrize("mode", ["on", "off"])
def test_caddy_has_it_from_go(mode: str, require_server: RequireServer, tmp_path: Path) -> None:
    require_server("caddy")
    text = proven("caddy:tls", f"fips={mode}", cwd=tmp_path)
    assert text.count(GO.format(mode)) == 2
    assert text.count(REFUSES if mode == "on" else ACCEPTS) == 1
    assert "TLS_AES_128_GCM_SHA256 P-256" in text or "TLS_AES_256_GCM_SHA384 P-256" in text


@pytest.mark.usefixtures("provider", "require_java")
def test_a_jdbc_driver_negotiates_the_same_in_both(require_server: RequireServer, tmp_path: Path) -> None:
    require_server("postgresql", "15")
    text = proven("postgresql@15:tls", "fips=on", LIBRARY, cwd=tmp_path, more=("--client", "jdbc"))
    assert MODULE in text
    assert REFUSES in text


@pytest.mark.usefixtures("provider")
def test_both_are_measured_in_the_same_sessions_and_the_report_names_the_mode(
    require_server: RequireServer, tmp_path: Path
) -> None:
    require_server("nginx")
    words = (
        "run",
        "nginx:tls",
        "--matrix",
        "fips=off,on",
        "--set",
        LIBRARY,
        "--workload",
        "connect",
        "--json",
        "out.json",
    )
    done = short.run((*words, "--quick", "--time", "4s", "--no-latency", "--no-progress"), cwd=tmp_path)
    text = " ".join(done.stdout.split())
    assert done.returncode == 0, text + done.stderr
    cells = json.loads((tmp_path / "out.json").read_text())["cells"]
    assert [cell["factors"]["fips"] for cell in cells] == ["off", "on"]
    for name in ("protocol", "cipher", "group", "peer_key", "server_library", "client_library"):
        assert cells[0]["encryption"][name] == cells[1]["encryption"][name]
    details = [[proof["detail"] for proof in cell["proofs"] if proof["witness"] == "process"] for cell in cells]
    assert ["no FIPS module is mapped" in detail for detail in details[0]] == [True, True], "one server for each cell"
    assert [MODULE in detail for detail in details[1]] == [True, True]
    assert text.count("(server, in FIPS mode)") == text.count("(client, not in FIPS mode)") == 1


# ── what it refuses ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module", params=["nginx@1.26", "haproxy@3.0", "caddy@2.11"])
def home(
    request: pytest.FixtureRequest, require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    name, _, version = request.param.partition("@")
    if name != "caddy":
        request.getfixturevalue("provider")
    with site(require_server(name, version), tmp_path_factory.mktemp("logs"), {"/1KB": 1000}) as running:
        yield running


def unpinned(home: Site, mode: str, place: Path) -> dict[str, str]:
    """Settings that let the server negotiate X25519 too, if it has it."""
    if home.engine.name == "caddy":
        return {"run:group": ""}
    path = place / f"{mode}.cnf"
    path.write_text(fips.configuration(mode, "?X25519:P-256"))
    return {"run:group": "", "env:OPENSSL_CONF": str(path)}


def accepts(home: Site, server: Server, factors: dict[str, str], **offered: str) -> bool:
    """Whether the server completes a handshake with a client that offers only this. Any other failure is an error."""
    changes: Changes = {**TLS_13, **offered}  # type: ignore[typeddict-item]
    with Agent() as agent:
        try:
            agent.connect("a", home.fields(server, "encrypted", factors) | changes)
        except AgentError as error:
            if error.code != "tls":
                raise
            return False
    return True


@pytest.mark.parametrize("mode", ["on", "off"])
def test_clients_with_nothing_approved_are_refused_in_fips_mode_only(mode: str, home: Site) -> None:
    factors = {"fips": mode} if home.engine.name == "caddy" else {"fips": mode, "library": fips.LIBRARY}
    with home.started(factors, settings=unpinned(home, mode, home.directory.parent)) as server:
        aes, chacha = SUITES_13["aes256-gcm"], SUITES_13["chacha20"]
        assert accepts(home, server, factors, tls_ciphers=aes, tls_groups="P-256")
        assert accepts(home, server, factors, tls_ciphers=chacha, tls_groups="P-256") == (mode == "off")
        assert accepts(home, server, factors, tls_ciphers=aes, tls_groups="X25519") == (mode == "off")
        for claimed in ("on", "off"):
            passed, words = refuses_unapproved(home.fields(server, "encrypted", factors), claimed)
            assert passed == (claimed == mode), "the witness fails where the server is not as the cell says"
            assert words.startswith(REFUSES if mode == "on" else ACCEPTS)
            if home.engine.name == "caddy":
                passed, words = fips.environment_proof(server.pid, {"GODEBUG": f"fips140={claimed}"})
            else:
                passed, words = fips.module_proof(server.pid, claimed)
            assert passed == (claimed == mode), words


@pytest.mark.usefixtures("provider")
def test_a_process_without_the_module_is_not_in_fips_mode() -> None:
    assert fips.module_proof(os.getpid(), "off") == (True, "no FIPS module is mapped")
    passed, words = fips.module_proof(os.getpid(), "on")
    assert not passed
    assert words.startswith("no process ")
    assert fips.MODULE in words


@pytest.mark.usefixtures("provider")
def test_both_configurations_differ_in_the_providers_alone() -> None:
    on, off = (fips.configuration(mode, "P-256").splitlines() for mode in ("on", "off"))
    assert {line for line in off if line not in on} == {"default = default_sect", "[default_sect]"}
    assert "default_properties = fips=yes" in on
    assert "default = default_sect" not in on
    assert on.count("Groups = P-256") == off.count("Groups = P-256") == 1


# ── bad input ─────────────────────────────────────────────────────────────────────────────────────────────────────────

WITH = {"fips": "on", "library": fips.LIBRARY}


@pytest.mark.parametrize(
    ("engine", "factors", "reason"),
    [
        ("nginx", {"fips": "on"}, r"^fips=on: .*; write --set library=openssl-3\.5$"),
        ("nginx", {"fips": "off"}, r"^fips=off: .*; write --set library=openssl-3\.5$"),
        ("nginx", WITH | {"library": "openssl-3.6"}, r"there is none for library=openssl-3\.6; write --set library=openssl-3\.5$"),
        ("nginx", WITH | {"fips": "yes"}, "tls has no fips 'yes': known: off, on"),
        ("nginx", WITH | {"group": "x25519"}, r"^group=x25519: .*fips=on.*; write group=p256 or p384$"),
        ("nginx", WITH | {"cipher": "chacha20"}, r"^cipher=chacha20: .*; write cipher=aes256-gcm or aes128-gcm$"),
        ("nginx", WITH | {"version": "1.1"}, r"^version=1\.1: .*; write version=1\.2 or 1\.3$"),
        ("nginx", WITH | {"certificate": "rsa1024"}, r"^certificate=rsa1024: .*; write certificate=rsa2048 or larger$"),
        ("caddy", {"fips": "on", "group": "x25519"}, r"^group=x25519: "),
        ("caddy", WITH, "leave library out"),
        ("caddy", {"fips": "on", "hop": "haproxy"}, "fips=on does not go with hop=haproxy"),
        ("h2", {"fips": "on"}, "H2 uses the TLS of Java"),
    ],
)  # fmt: skip
def test_what_can_not_work_is_refused_before_anything_starts(engine: str, factors: dict[str, str], reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as caught:
        resolve.resolve(CellSpec(engine, "tls", workload="connect", factors=factors))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (("run", "postgresql:tls", "--url", "postgresql://localhost:1/a", "--quick"), "fips=on: your server decides whether it is in FIPS mode"),
        (("prove", "https://localhost:1/"), "fips=on: your server decides"),
        (("run", "nginx:tls", "--set", LIBRARY, "--cpu-crypto", "off", "--quick"), "fips=on does not go with --cpu-crypto off"),
        (("run", "nginx:tls", "--quick"), "write --set library=openssl-3.5"),
    ],
)  # fmt: skip
def test_a_refusal_is_one_line(argv: tuple[str, ...], reason: str, tmp_path: Path) -> None:
    done = warm.run((*argv, "--set", "fips=on"), cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert reason in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_only_a_cell_that_asks_needs_the_report_of_its_process() -> None:
    assert TLS.required({"fips": "off"}) == (*TLS.witnesses, "process")
    assert TLS.required({"fips": ""}) == TLS.witnesses
