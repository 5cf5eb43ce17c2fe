"""destructive_test: detects a mechanism that claims to encrypt but doesn't, on a real server, before any load."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

import ciphercost
from ciphercost import mechanisms
from ciphercost.host.volumes.volume import Volume
from ciphercost.mechanisms import Mechanism
from ciphercost.mechanisms._rest import ArmAtRest, AtRest, AtRestContext, KeyState
from ciphercost.model.result import Cell
from ciphercost.model.spec import CellSpec, Spec


class Sham(AtRest):
    """A mechanism that claims to encrypt."""

    name = "none"  # the mechanism that it replaces
    title = "sham"
    engines = ("postgresql",)
    key_states = ("missing",)

    def status(self, look: ArmAtRest) -> tuple[bool, str]:
        return True, f"as the {look.arm} arm should be"

    def key_taken(
        self, state: KeyState, rest: AtRestContext, directory: Path
    ) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def settings(self, arm: str, rest: AtRestContext) -> dict[str, str]:
        return {"work_mem": "5MB"} if arm == "encrypted" else {}


def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mechanism: Mechanism) -> Cell:
    real = mechanisms.get
    monkeypatch.setattr(mechanisms, "get", lambda name: mechanism if name == "none" else real(name))
    cell = CellSpec("postgresql", "none", clients=1, rows=100)
    spec = Spec(cells=[cell], mode="quick", sessions=1, time=1.0, latency=False, slice_seconds=0.05)
    return ciphercost.run(spec, tmp_path / "run").cells[0]


@pytest.mark.usefixtures("require_postgresql")
def test_the_disk_and_key_tests_detect_encryption_that_is_only_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = measured(tmp_path, monkeypatch, Sham())
    assert cell.status == "unproven"
    assert not cell.overhead
    assert "disk witness, encrypted arm: killed: the canary" in cell.reason
    assert "server witness, encrypted arm: without its key" in cell.reason
    assert "returns the canary" in cell.reason
    assert {(proof.arm, proof.witness) for proof in cell.proofs if not proof.passed} == {
        ("encrypted", "disk"),
        ("encrypted", "server"),
    }


def test_the_interface_has_no_default_that_would_pass() -> None:
    class Silent(AtRest):
        name = "silent"

    with pytest.raises(NotImplementedError):
        Silent().status(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["fscrypt", "gocryptfs", "path", "sqlcipher"])
def test_files_of_temporary_data_beside_what_is_encrypted_have_an_advice(name: str) -> None:
    mechanism = mechanisms.get(name)
    assert isinstance(mechanism, AtRest)
    assert "temp_store=2" in mechanism.advice("/var/tmp/etilqs_1f (deleted)")


def test_a_scan_of_a_devices_blocks_names_what_it_does_not_cover() -> None:
    mechanism = mechanisms.get("path")
    assert isinstance(mechanism, AtRest)
    blocks = Volume(Path("/x/cluster"), (Path("/x/encrypted.blocks"),))
    assert mechanism.searched(blocks).endswith("but not those of deleted files")
    assert mechanism.searched(Volume(Path("/x/cluster"), (Path("/x"),))) == ""
