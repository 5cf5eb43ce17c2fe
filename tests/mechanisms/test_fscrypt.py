"""fscrypt: written data is on the image unencrypted in one arm, and in no form in the other; and each witness can
fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import structs

from ciphercost.host import volumes
from ciphercost.host.volumes import image, policy
from ciphercost.host.volumes.volume import Volume
from ciphercost.load.agent import Agent
from ciphercost.mechanisms._rest import AtRestContext, KeyState
from ciphercost.mechanisms.fscrypt import DATA
from ciphercost.model.errors import RunError, Unproven
from ciphercost.model.spec import ARMS, Arm
from conftest import Require, RequirePossible
from resting import CANARY, NAME, SIZE, both, check_nothing_is_left, done, found, look, resting, write


@pytest.fixture(autouse=True)
def _able(require_possible: RequirePossible) -> None:
    require_possible(image.check_rights)


def test_what_is_written_rests_in_clear_in_one_arm_alone() -> None:
    with resting("fscrypt") as (mechanism, rest, scratch):
        seen = both(mechanism, rest, scratch)
    assert min(seen["plain"]) > 0, "a search that can't find unencrypted data proves nothing"
    assert seen["encrypted"] == (0, 0)


@pytest.mark.parametrize("state", ["missing", "wrong"])
def test_without_its_key_no_file_has_its_name_and_none_opens(state: KeyState) -> None:
    with (
        resting("fscrypt") as (mechanism, rest, scratch),
        mechanism.volume("encrypted", scratch / "encrypted", rest, SIZE) as volume,
    ):
        write(volume, rest)
        with mechanism.key_taken(state, rest, volume.path):
            assert not volume.path.exists()
            files = [path for path in volume.path.parent.rglob("*") if path.is_file()]
            assert len(files) == 1
            assert files[0].name != NAME
            with pytest.raises(OSError, match="key not available"):
                files[0].read_bytes()
        assert (volume.path / NAME).read_text().strip() == CANARY


def test_an_open_file_keeps_the_key_from_being_removed() -> None:
    with (
        resting("fscrypt") as (mechanism, rest, scratch),
        mechanism.volume("encrypted", scratch / "encrypted", rest, SIZE) as volume,
    ):
        write(volume, rest)
        with (
            (volume.path / NAME).open(),
            pytest.raises(RunError, match="still open"),
            mechanism.key_taken("missing", rest, volume.path),
        ):
            pass


def test_each_arm_says_what_policy_its_files_have() -> None:
    with resting("fscrypt") as (mechanism, rest, scratch), Agent() as agent:
        for arm in ARMS:
            with mechanism.volume(arm, scratch / arm, rest, SIZE) as volume:
                write(volume, rest)
                seen = look(arm, volume, rest, agent)
                assert mechanism.status(seen)[0], mechanism.status(seen)
                other: Arm = "encrypted" if arm == "plain" else "plain"
                passed, words = mechanism.status(structs.replace(seen, arm=other))
                assert not passed
                assert re.search(r"\b0 of [1-9]" if arm == "plain" else r"([1-9]\d*) of \1 ", words), words
                done(seen)


def test_data_outside_the_image_is_not_proven() -> None:
    with (
        resting("fscrypt") as (mechanism, rest, scratch),
        Agent() as agent,
        mechanism.volume("encrypted", scratch / "encrypted", rest, SIZE) as volume,
    ):
        write(volume, rest)
        other = Volume(scratch / "secrets", volume.backing)
        passed, words = mechanism.status(look("encrypted", other, rest, agent))
        assert not passed
        assert "not on" in words


def test_a_copy_has_no_key_either() -> None:
    with resting("fscrypt") as (mechanism, rest, scratch), Agent() as agent:
        with mechanism.volume("encrypted", scratch / "encrypted", rest, SIZE) as volume:
            write(volume, rest)
            seen = look("encrypted", volume, rest, agent)
            refusal = mechanism.refuses(seen)
            done(seen)
            assert refusal is not None
            assert refusal[0], refusal
        with mechanism.volume("plain", scratch / "plain", rest, SIZE) as volume:
            write(volume, rest)
            seen = look("plain", volume, rest, agent)
            refusal = mechanism.refuses(seen)
            done(seen)
            assert refusal is not None
            assert not refusal[0], "a plain image is readable without any key"


def test_the_drivers_name_is_in_the_result() -> None:
    with (
        resting("fscrypt") as (mechanism, rest, scratch),
        Agent() as agent,
        mechanism.volume("encrypted", scratch / "encrypted", rest, SIZE) as volume,
    ):
        write(volume, rest)
        facts = mechanism.implementation(look("encrypted", volume, rest, agent))
    assert facts["cipher"].startswith("AES-256-XTS")
    assert "xts" in facts["implementation"]
    assert "not used yet" not in facts["implementation"]


def _lacking(scratch: Path, rest: AtRestContext) -> str:
    """Return a mode under which this kernel can't create a file; empty: it supports all."""
    with image.mounted(rest.supervisor, scratch / "try", SIZE):
        key = policy.add_key(scratch / "try", os.urandom(policy.KEY_BYTES))
        for name, mode in policy.MODES.items():
            directory = scratch / "try" / name
            directory.mkdir()
            policy.make(directory, mode, key)
            if policy.why_no_file(directory):
                return name
    return ""


def test_a_policy_under_which_no_file_can_be_created_ends_unproven(require: Require, tmp_path: Path) -> None:
    with resting("fscrypt") as (_, rest, scratch):
        mode = _lacking(scratch, rest)
    require(mode, "this kernel has the ciphers of all modes, so none fails")
    with resting("fscrypt", mode=mode) as (mechanism, rest, scratch):
        wanted = r"disk witness, encrypted arm: no file can be created under .*: ENOPKG"
        with (
            pytest.raises(Unproven, match=wanted),
            mechanism.volume("encrypted", scratch / "encrypted", rest, SIZE),
        ):
            pass
        check_nothing_is_left(rest.supervisor.run_id)
    arguments = ["run", "sqlite:fscrypt", "--workload", "tpcb", "--quick", "--time", "3s", "--no-latency"]
    command = [sys.executable, "-m", "ciphercost", *arguments, "--set", f"mode={mode}"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=600, check=False)
    printed = " ".join(ran.stdout.split())
    assert ran.returncode == 1, ran.stderr
    assert "disk witness, encrypted arm" in printed
    assert "operations per second" not in printed


def test_a_full_disk_is_reported_before_anything_is_mounted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert image.room(100 << 20, 20 << 30) == 4 * (100 << 20) + image.ROOM
    assert image.room(1 << 30, 3 << 30) == 3 << 29, "each arm may take half of the free space"
    assert image.room(1 << 30, 2 << 30) == 0
    with resting("fscrypt") as (mechanism, rest, scratch):
        monkeypatch.setattr(volumes, "free", lambda _: 1 << 20)
        with (
            pytest.raises(RunError, match="on a larger disk"),
            mechanism.volume("plain", scratch / "plain", rest, SIZE),
        ):
            pass
        check_nothing_is_left(rest.supervisor.run_id)


def test_lost_and_found_is_not_among_the_data() -> None:
    with (
        resting("fscrypt") as (mechanism, rest, scratch),
        mechanism.volume("plain", scratch / "plain", rest, SIZE) as volume,
    ):
        assert volume.path.parent.name == DATA
        assert list(volume.path.parent.iterdir()) == []
        write(volume, rest)
        assert found(mechanism, volume) > 0
