"""witnesses: each witness can fail, on real files and in what it is given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ciphercost import engines, mechanisms
from ciphercost.engines import Server
from ciphercost.engines.sqlite import SqliteDirectory
from ciphercost.host.canary_scan import Seen
from ciphercost.host.supervisor import Supervisor
from ciphercost.host.volumes.volume import Volume
from ciphercost.load.agent import Agent
from ciphercost.mechanisms._rest import AtRestContext
from ciphercost.model.connection import Connected, Connection
from ciphercost.model.constrained_types import CANARY_TABLE
from ciphercost.model.errors import Unproven
from ciphercost.model.secret import Secret
from ciphercost.model.slices import Proof
from ciphercost.model.spec import ARMS, Arm
from ciphercost.prove import load_connections, rest_witnesses, witnesses
from ciphercost.prove.probe import NULL_SEEN, Probe
from ciphercost.provision.server_pair import ServerPair

CANARY = "canary0123456789"
KEY = "ab" * 32


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[ServerPair]:
    """A plain and an encrypted SQLite file that contain the canary."""
    connect: dict[Arm, Connection] = {
        "plain": Connection(driver="sqlite", path=str(tmp_path / "plain" / "db"), reserve=80),
        "encrypted": Connection(driver="sqlite", path=str(tmp_path / "encrypted" / "db"), key=Secret(KEY)),
    }
    for arm, fields in connect.items():
        (tmp_path / arm).mkdir()
        with Agent() as agent:
            agent.connect("loader", fields)
            agent.query("loader", f"CREATE TABLE {CANARY_TABLE} (word text)")
            agent.query("loader", f"INSERT INTO {CANARY_TABLE} VALUES ('{CANARY}')")
    by_arm: dict[Arm, Server] = {}
    for arm in ARMS:
        by_arm[arm] = SqliteDirectory(tmp_path / arm)
        by_arm[arm].volume = Volume(tmp_path / arm, (tmp_path / arm,))
    engine = engines.get("sqlite")
    with Supervisor("test-prove") as supervisor:
        rest = AtRestContext(engine, engine.find(), mechanisms.get("sqlcipher").check({}), tmp_path, supervisor)
        yield ServerPair(
            connect=connect, servers=[], canary=CANARY, embedded=True, by_arm=by_arm, rests=dict.fromkeys(ARMS, rest)
        )


def place(pair: ServerPair, arm: Arm) -> Path:
    volume = pair.by_arm[arm].volume
    assert volume is not None
    return volume.path


def hear(pair: ServerPair) -> list[Proof]:
    with Agent() as agent:
        return witnesses.prove(engines.get("sqlite"), mechanisms.get("sqlcipher"), pair, agent, 1)[0]


def failed(proofs: list[Proof]) -> set[tuple[str, str]]:
    return {(proof.arm, proof.witness) for proof in proofs if not proof.passed}


def test_all_three_witnesses_pass_on_a_correct_pair(pair: ServerPair) -> None:
    proofs = hear(pair)
    assert not failed(proofs)
    assert len(proofs) == 6


def test_the_encrypted_arm_is_proven_first_whatever_the_sessions_order(pair: ServerPair) -> None:
    for first in ARMS:
        pair.connect = {arm: pair.connect[arm] for arm in (first, *(arm for arm in ARMS if arm != first))}
        assert [proof.arm for proof in hear(pair)] == ["encrypted"] * 3 + ["plain"] * 3


def test_an_unencrypted_canary_beside_the_encrypted_file_fails_the_disk_witness(pair: ServerPair) -> None:
    (place(pair, "encrypted") / "leak.tmp").write_text(f"sorted: {CANARY}")
    assert failed(hear(pair)) == {("encrypted", "disk")}


def test_a_disk_witness_that_can_not_see_the_plain_canary_proves_nothing() -> None:
    assert rest_witnesses.judge_disk(Seen(files=3, size=100), "plain")[0] is False
    assert rest_witnesses.judge_disk(Seen(files=3, size=100), "encrypted")[0] is True


def test_a_disk_witness_that_read_nothing_proves_nothing() -> None:
    for arm in ARMS:
        assert rest_witnesses.judge_disk(Seen(), arm) == (False, NULL_SEEN)


def excuse(name: str) -> str:
    return (
        rest_witnesses.TEMPORARY
        if name.startswith("tmp/")
        else "left unencrypted by wal=off"
        if name.startswith("log/")
        else ""
    )


@pytest.mark.parametrize(
    ("hits", "words"),
    [
        ({}, "the canary is in none of 9 files, 100 bytes"),
        (
            {"tmp/sort": 7},
            "of 9 files, 100 bytes, none contains the canary except tmp/sort (temporary, and judged separately; 7 times)",
        ),
        (
            {"log/1": 1, "tmp/sort": 1, "log/2": 2},
            (
                "of 9 files, 100 bytes, none contains the canary except log/1, log/2 (left unencrypted by wal=off; 3 times); "
                "tmp/sort (temporary, and judged separately; once)"
            ),
        ),
    ],
)
def test_the_disk_witness_names_what_it_does_not_judge(hits: dict[str, int], words: str) -> None:
    """A canary in such a file is no control in the plain arm either."""
    seen = Seen(files=9, size=100, hits=hits)
    assert rest_witnesses.judge_disk(seen, "encrypted", excuse) == (True, words)
    assert rest_witnesses.judge_disk(seen, "plain", excuse) == (False, words)


def test_the_disk_witness_names_what_it_judges_first() -> None:
    seen = Seen(files=9, size=100, hits={"log/1": 1, "a": 1, "b": 1, "c": 1, "d": 1})
    words = "the canary is in a, b, c, … (9 files, 100 bytes); and in log/1 (left unencrypted by wal=off; once)"
    assert rest_witnesses.judge_disk(seen, "encrypted", excuse) == (False, words)
    assert rest_witnesses.judge_disk(seen, "plain", excuse) == (True, words)


def test_a_plain_file_as_the_encrypted_arm_fails_every_witness(pair: ServerPair) -> None:
    pair.connect["encrypted"] = pair.connect["plain"]
    pair.by_arm["encrypted"] = pair.by_arm["plain"]
    proofs = hear(pair)
    assert ("encrypted", "client") in failed(proofs)
    with pytest.raises(Unproven, match="client witness, encrypted arm"):
        witnesses.require(proofs, mechanisms.get("sqlcipher"))


def test_a_file_that_opens_without_its_key_fails_the_server_witness(pair: ServerPair) -> None:
    with Agent() as agent:
        probe = Probe(engines.get("sqlite"), mechanisms.get("sqlcipher"), pair, agent, 1)
        pair.connect["encrypted"] = pair.connect["plain"]
        assert rest_witnesses.server_at_rest(probe, "encrypted") == (False, "without a key: it opens")


ANSWER = Connected(connections=1, encrypted=True, protocol="TLSv1.3", cipher="A", group="X25519", peer_key="RSA 2048")


@pytest.mark.parametrize(
    ("arm", "change", "passes"),
    [
        ("encrypted", {}, True),
        ("encrypted", {"encrypted": False}, False),
        ("encrypted", {"cipher": "B"}, False),
        ("encrypted", {"protocol": "TLSv1.2"}, False),
        ("encrypted", {"group": "P-256"}, False),
        ("encrypted", {"peer_key": "EC P-256"}, False),
        ("encrypted", {"group": "", "peer_key": ""}, True),
        ("plain", {"encrypted": False}, True),
        ("plain", {}, False),
    ],
)
def test_the_loads_own_connections_must_be_what_was_proven(arm: Arm, change: dict[str, Any], passes: bool) -> None:
    answer = msgspec.structs.replace(ANSWER, **change)

    def check(agent: Agent) -> None:
        load_connections.load_connections(
            engines.get("postgresql"), mechanisms.get("tls"), nothing, agent, arm, answer, {"encrypted": ANSWER}
        )

    nothing = ServerPair({arm: Connection(driver="postgres", per_request=True)}, [], "")

    with Agent() as agent:
        if passes:
            check(agent)
        else:
            with pytest.raises(Unproven, match="client witness"):
                check(agent)


def test_a_missing_witness_is_reported() -> None:
    proofs = [Proof("plain", "client", passed=True, detail="")]
    assert witnesses.unproven(proofs, mechanisms.get("sqlcipher")).startswith("no report from: ")
