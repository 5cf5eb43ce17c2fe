"""Whole runs on a real Firebird, both arms proven; and every case that must be refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import firebird
from ciphercost import mechanisms
from ciphercost.engines.firebird import ENGINE, FirebirdServer
from ciphercost.host.installation import Installation
from ciphercost.load.agent import Agent
from ciphercost.mechanisms.wire_crypt import MECHANISM, OP_CRYPT
from ciphercost.model.connection import Changes, Connection
from ciphercost.model.secret import reveal
from ciphercost.model.spec import Arm
from ciphercost.prove import wire_witness, witnesses
from ciphercost.provision.server_pair import ServerPair
from test_real import SHORT, ciphercost, measured

CANARY = "canary0123456789"


@pytest.fixture(scope="module")
def installation(require_server: Callable[[str], Installation]) -> Installation:
    return require_server("firebird")


@pytest.fixture(scope="module")
def server(installation: Installation) -> Iterator[FirebirdServer]:
    with firebird.started(installation) as running:
        yield running


def password(server: FirebirdServer) -> str:
    return reveal(server.connection().password)


@pytest.mark.parametrize(
    ("extra", "cipher"),
    [
        ((), "ChaCha64"),
        (("--workload", "bulk-read", "--set", "size=250KB", "--set", "cipher=arc4"), "Arc4"),
        (("--workload", "connect", "--set", "cipher=chacha"), "ChaCha"),
        (("--workload", "tpcb", "--regime", "capacity"), "ChaCha64"),
        (("--workload", "insert"), "ChaCha64"),
        (("--workload", "mixed-crud", "--per-request"), "ChaCha64"),
    ],
    ids=["point-select", "bulk-read", "connect", "tpcb", "insert", "mixed-crud"],
)
@pytest.mark.usefixtures("installation")
def test_a_cell_is_proven_and_measured(tmp_path: Path, extra: tuple[str, ...], cipher: str) -> None:
    done = measured("run", "firebird:wire-crypt", *SHORT, *extra, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    cell: dict[str, Any] = json.loads((tmp_path / "out.json").read_text())["cells"][0]
    assert (cell["status"], cell["layer"]) == ("ok", "transit")
    assert (cell["encryption"]["protocol"], cell["encryption"]["cipher"]) == ("wire-crypt", cipher)
    heard = {(proof["arm"], proof["witness"]) for proof in cell["proofs"] if proof["passed"]}
    assert heard == {(arm, witness) for arm in ("plain", "encrypted") for witness in MECHANISM.witnesses}
    assert cell["overhead"]["server_cpu_per_op"]["ratio"] > 0
    assert not cell["arms"]["plain"].get("errors")
    directory = next((tmp_path / "runs").iterdir())
    assert all("password" not in path.read_text() for path in directory.glob("*.json*"))


def test_a_running_server_is_measured_and_left_as_it_was(tmp_path: Path, server: FirebirdServer) -> None:
    assert server.directory is not None
    before = {path.name for path in server.directory.glob("*.fdb")}
    argv = ("run", "firebird:wire-crypt", "--url", firebird.url(server), *SHORT, "--json", "out.json")
    done = measured(*argv, cwd=tmp_path, ISC_PASSWORD=password(server))
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "out.json").read_text())["cells"][0]["status"] == "ok"
    assert {path.name for path in server.directory.glob("*.fdb")} == before
    with Agent() as agent:
        agent.connect("look", server.connection())
        tables = agent.query("look", "SELECT RDB$RELATION_NAME FROM RDB$RELATIONS WHERE RDB$SYSTEM_FLAG = 0")
        assert tables == []


def test_prove_says_yes_for_an_encrypted_server_and_no_for_one_that_is_not(
    tmp_path: Path, server: FirebirdServer, installation: Installation
) -> None:
    yes = ciphercost("prove", firebird.url(server), cwd=tmp_path, ISC_PASSWORD=password(server))
    assert yes.returncode == 0, yes.stdout + yes.stderr
    assert "ENCRYPTED, proven by every witness" in yes.stdout
    with firebird.started(installation, WireCrypt="Disabled") as without:
        no = ciphercost("prove", firebird.url(without), cwd=tmp_path, ISC_PASSWORD=password(without))
    assert no.returncode == 1
    assert "NOT PROVEN" in no.stdout
    assert "wire encryption off" in " ".join(no.stdout.split())


def test_a_server_that_requires_encryption_is_proven_but_not_measured(
    tmp_path: Path, installation: Installation
) -> None:
    with firebird.started(installation, WireCrypt="Required") as strict:
        environment = {"ISC_PASSWORD": password(strict)}
        proven = ciphercost("prove", firebird.url(strict), cwd=tmp_path, **environment)
        run = ciphercost(
            "run", "firebird:wire-crypt", "--url", firebird.url(strict), *SHORT, cwd=tmp_path, **environment
        )
    assert proven.returncode == 0, proven.stdout + proven.stderr
    assert "it enforces encryption" in " ".join(proven.stdout.split())
    assert run.returncode == 1
    assert "UNPROVEN" in run.stdout
    output = " ".join(run.stdout.split())
    assert "client witness, plain arm" in output
    assert "The server requires wire encryption" in output


def test_a_cipher_that_the_server_lacks_is_named(tmp_path: Path, installation: Installation) -> None:
    with firebird.started(installation, WireCryptPlugin="Arc4") as old:
        argv = ("run", "firebird:wire-crypt", "--url", firebird.url(old), "--set", "cipher=chacha64", *SHORT)
        done = ciphercost(*argv, cwd=tmp_path, ISC_PASSWORD=password(old))
    assert done.returncode == 1
    assert "UNPROVEN" in done.stdout
    assert "the server has Arc4" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("run", "firebird:tls"), "has no mechanism 'tls'"),
        (("run", "postgresql:wire-crypt"), "has no mechanism 'wire-crypt'"),
        (("run", "firebird:wire-crypt", "--set", "cipher=aes"), "has no cipher 'aes'"),
        (("run", "firebird:wire-crypt", "--url", "firebird://u:secret@localhost/db"), "ISC_PASSWORD"),
        (("run", "firebird@2:wire-crypt"), "Firebird 2"),
    ],
)
def test_nonsense_is_one_clear_message(tmp_path: Path, argv: tuple[str, ...], words: str) -> None:
    done = ciphercost(*argv, cwd=tmp_path)
    assert (done.returncode, words in done.stdout + done.stderr) == (2, True), done.stdout + done.stderr


# ── the witnesses ─────────────────────────────────────────────────────────────────────────────────────────────────────


def failed(server: FirebirdServer, plain: Changes, encrypted: Changes) -> dict[tuple[str, str], str]:
    connect: dict[Arm, Connection] = {
        "plain": server.connection() | plain,
        "encrypted": server.connection() | encrypted,
    }
    pair = ServerPair(connect=connect, servers=[server], by_arm={"plain": server, "encrypted": server}, canary=CANARY)
    with Agent() as agent:
        proofs, _ = witnesses.prove(ENGINE, MECHANISM, pair, agent, 1)
    return {(proof.arm, proof.witness): proof.detail for proof in proofs if not proof.passed}


OFF: Changes = {"wire_crypt": "off"}
ON: Changes = {"wire_crypt": "require"}


def test_every_witness_passes_if_everything_is_correct(server: FirebirdServer) -> None:
    assert failed(server, OFF, ON) == {}


def test_an_encrypted_arm_in_clear_is_found_out(server: FirebirdServer) -> None:
    failures = failed(server, OFF, OFF)
    assert {arm for arm, _ in failures} == {"encrypted"}, failures
    assert "unencrypted" in failures["encrypted", "client"]


def test_a_plain_arm_that_is_encrypted_is_found_out(server: FirebirdServer) -> None:
    failures = failed(server, ON, ON)
    assert {arm for arm, _ in failures} == {"plain"}, failures


def test_bytes_without_the_request_to_encrypt_prove_nothing() -> None:
    packet = OP_CRYPT + b"\0\0\0\x08ChaCha64" + b"\0\0\0\x09Symmetric\0\0\0"
    sealed = b"\x93\x1f\xa2" * 20
    assert MECHANISM.sign(b"login" + packet + sealed, sealed)[0]
    assert not MECHANISM.sign(sealed, sealed)[0]
    assert not MECHANISM.sign(packet, sealed)[0]
    assert not MECHANISM.sign(packet + sealed, b"")[0]
    assert not MECHANISM.sign(packet + b"\0\0\0\x13in clear", sealed)[0]
    judge = wire_witness.judge_wire
    assert judge(packet + sealed, sealed, CANARY, "encrypted", MECHANISM.sign)[0]
    assert not judge(packet + sealed + CANARY.encode(), sealed, CANARY, "encrypted", MECHANISM.sign)[0]
    assert not judge(packet + sealed, sealed, CANARY, "encrypted", mechanisms.get("tls").sign)[0]
    assert not judge(packet + sealed, sealed, CANARY, "plain", MECHANISM.sign)[0]
