"""prove: each witness can fail, on real files and in what it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ciphercost import engines, mechanisms, prove
from ciphercost.agent import Agent
from ciphercost.errors import Unproven
from ciphercost.model import Arm, Proof
from ciphercost.provision import CANARY_TABLE, Twins

CANARY = "canary0123456789"
KEY = "ab" * 32


@pytest.fixture
def twins(tmp_path: Path) -> Twins:
    """A plain and an encrypted SQLite file that hold the canary."""
    connect: dict[Arm, dict[str, object]] = {
        "plain": {"driver": "sqlite", "path": str(tmp_path / "plain" / "db"), "reserve": 80},
        "encrypted": {"driver": "sqlite", "path": str(tmp_path / "encrypted" / "db"), "key": KEY},
    }
    for arm, fields in connect.items():
        (tmp_path / arm).mkdir()
        with Agent() as agent:
            agent.connect("loader", **fields)
            agent.query("loader", f"CREATE TABLE {CANARY_TABLE} (word text)")
            agent.query("loader", f"INSERT INTO {CANARY_TABLE} VALUES ('{CANARY}')")
    places: dict[Arm, list[Path]] = {"plain": [tmp_path / "plain"], "encrypted": [tmp_path / "encrypted"]}
    return Twins(connect=connect, servers=[], directories=places, canary=CANARY, embedded=True)


def hear(twins: Twins) -> list[Proof]:
    with Agent() as agent:
        return prove.prove(engines.get("sqlite"), mechanisms.get("sqlcipher"), twins, agent, 1)[0]


def failed(proofs: list[Proof]) -> set[tuple[str, str]]:
    return {(proof.arm, proof.witness) for proof in proofs if not proof.passed}


def test_all_three_witnesses_pass_where_all_is_as_it_should_be(twins: Twins) -> None:
    proofs = hear(twins)
    assert not failed(proofs)
    assert len(proofs) == 6


def test_a_canary_in_clear_beside_the_encrypted_file_fails_the_disk_witness(twins: Twins) -> None:
    (twins.directories["encrypted"][0] / "leak.tmp").write_text(f"sorted: {CANARY}")
    assert failed(hear(twins)) == {("encrypted", "disk")}


def test_a_disk_witness_that_can_not_see_the_plain_canary_proves_nothing(twins: Twins) -> None:
    twins.directories["plain"] = [twins.directories["encrypted"][0]]
    assert ("plain", "disk") in failed(hear(twins))


def test_an_encrypted_arm_that_is_a_plain_file_fails_every_witness_that_looks(twins: Twins) -> None:
    twins.connect["encrypted"] = twins.connect["plain"]
    twins.directories["encrypted"] = twins.directories["plain"]
    proofs = hear(twins)
    assert ("encrypted", "client") in failed(proofs)
    with pytest.raises(Unproven, match="client witness, encrypted arm"):
        prove.require(proofs, mechanisms.get("sqlcipher"))


def test_a_file_that_opens_without_its_key_fails_the_server_witness(twins: Twins, tmp_path: Path) -> None:
    probe = prove.Probe(engines.get("sqlite"), mechanisms.get("sqlcipher"), twins, Agent(), 1)
    with probe.agent:
        twins.connect["encrypted"] = twins.connect["plain"]
        probe.agent.connect("prove-encrypted", **prove.single(twins.connect["plain"]))
        assert prove.opens_only_with_key(probe, "encrypted") == (False, "opens without a key")


ANSWER: dict[str, Any] = {"encrypted": True, "protocol": "TLSv1.3", "cipher": "A", "per_request": True}


@pytest.mark.parametrize(
    ("arm", "change", "passes"),
    [
        ("encrypted", {}, True),
        ("encrypted", {"encrypted": False}, False),
        ("encrypted", {"cipher": "B"}, False),
        ("encrypted", {"protocol": "TLSv1.2"}, False),
        ("plain", {"encrypted": False}, True),
        ("plain", {}, False),
    ],
)
def test_the_loads_own_connections_must_be_what_was_proven(arm: Arm, change: dict[str, Any], passes: bool) -> None:
    def check(agent: Agent) -> None:
        prove.load_connections(
            engines.get("postgresql"), mechanisms.get("tls"), agent, arm, {**ANSWER, **change}, ANSWER
        )

    with Agent() as agent:
        if passes:
            check(agent)
        else:
            with pytest.raises(Unproven, match="client witness"):
                check(agent)


def test_a_witness_that_was_not_heard_is_missed() -> None:
    proofs = [Proof("plain", "client", passed=True, detail="")]
    assert prove.unproven(proofs, mechanisms.get("sqlcipher")).startswith("not heard: ")
