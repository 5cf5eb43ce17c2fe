"""Real rotations of keys: each is proven, recorded, estimated and shown; a key that stays the old one ends as unproven."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

import warm
from ciphercost.estimate import results
from ciphercost.mechanisms.innodb_tde import InnodbTde
from ciphercost.mechanisms.sqlcipher import SqlCipher
from ciphercost.model import run_directory
from ciphercost.plan.key_rotations import rotations
from ciphercost.runs import anonymize
from conftest import RequireServer
from test_real_operations import run


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
    slices = list(run_directory.read_rotations(tmp_path / "run"))
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


@pytest.mark.parametrize(
    ("engine", "mechanism", "words"),
    [
        ("sqlite", SqlCipher, "the key in use is still the old one"),
        ("mysql", InnodbTde, "the key in use is still the old one"),
    ],
)
def test_a_key_that_stays_the_old_one_is_unproven(
    engine: str,
    mechanism: type[SqlCipher | InnodbTde],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    require_server: RequireServer,
) -> None:
    require_server(engine)
    monkeypatch.setattr(mechanism, "rotate", lambda *_: ("SELECT 1",))
    done = run(tmp_path, engine, mechanism.name, "rotate-key")
    assert done.returncode == 1, done.stdout + done.stderr
    cell = json.loads((tmp_path / "run" / "result.json").read_text())["cells"][0]
    assert (cell["status"], "key_rotation" in cell) == ("unproven", False)
    assert words in cell["reason"]
    assert "\n" not in cell["reason"]


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
