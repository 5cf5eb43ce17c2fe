"""Real rotations of keys: each is proven, recorded, estimated and shown; a key that stays the old one ends as unproven."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

import ciphercost as api
import warm
from ciphercost.estimate import results
from ciphercost.mechanisms.sqlcipher import SqlCipher
from ciphercost.model import run_directory
from ciphercost.model.key_rotation import KeyRotationSlice
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan.key_rotations import rotations
from ciphercost.runs import anonymize
from conftest import RequireServer
from test_real_operations import ROWS, run


@pytest.mark.parametrize(
    ("engine", "mechanism", "reach", "how"),
    [
        ("sqlite", "sqlcipher", "data", "PRAGMA rekey and a checkpoint"),
        ("mysql", "innodb-tde", "keys", "ALTER INSTANCE ROTATE INNODB MASTER KEY"),
        ("mariadb", "mariadb-tde", "data", "ALTER TABLE document ENCRYPTED = YES ENCRYPTION_KEY_ID = …"),
    ],
)
def test_every_rotation_is_recorded_and_estimated(
    engine: str, mechanism: str, reach: str, how: str, tmp_path: Path, require_server: RequireServer
) -> None:
    require_server(engine)
    done = run(tmp_path, engine, mechanism, "rotate-key")
    assert done.returncode == 0, done.stdout + done.stderr
    assert how.partition(" = …")[0] in " ".join(done.stdout.split())
    cell = json.loads((tmp_path / "run" / "result.json").read_text())["cells"][0]
    assert cell["status"] == "ok"
    slices = list(run_directory.read_beside(tmp_path / "run", KeyRotationSlice))
    assert [one.number for one in slices] == list(range(rotations("quick")))
    assert {(one.reach, one.how) for one in slices} == {(reach, how)}
    assert all(one.seconds > 0 and (one.bytes > 0) == (reach == "data") for one in slices)
    found = cell["key_rotation"]
    assert found["rotations"] == rotations("quick") - 1
    assert found["seconds"]["low"] <= found["seconds"]["value"] <= found["seconds"]["high"]
    assert ("seconds_per_gb" in found) == (reach == "data")
    # An embedded database has no traffic beside a new key.
    assert ("meanwhile" in found) == (engine != "sqlite")
    again = results.conclude(tmp_path / "run").cells[0].key_rotation
    assert msgspec.to_builtins(again) == found
    assert "rotation.jsonl" in anonymize.shareable(tmp_path / "run")
    assert "rotation.jsonl" in run_directory.read_facts(tmp_path / "run").hashes


def test_a_key_that_stays_the_old_one_is_unproven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqlCipher, "rotate", lambda *_: ("SELECT 1",))
    cell = CellSpec("sqlite", "sqlcipher", workload="rotate-key", rows=ROWS)
    spec = Spec([cell], mode="quick", sessions=1, time=0.6, slice_seconds=0.05, latency=False)
    (found,) = api.run(spec, tmp_path / "run").cells
    assert (found.status, found.key_rotation) == ("unproven", None)
    assert found.reason == (
        "server witness, encrypted arm: after PRAGMA rekey and a checkpoint the key in use is still the old one"
    )


@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        ("postgresql:tls", (), "measures encryption at rest"),
        ("postgresql:gocryptfs", (), "can't give data a new key with gocryptfs"),
        ("sqlite:sqlcipher", ("--per-request",), "remove --per-request"),
    ],
)
def test_what_can_not_be_is_refused_in_one_line(
    target: str, options: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    done = warm.run(["run", target, "--workload", "rotate-key", "--quick", *options], cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
