"""CryFS: encrypted blocks below, a passing daemon beside it, and the witnesses with and without encryption. A mount takes seconds (scrypt)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from msgspec import structs

from ciphercost import mechanisms
from ciphercost.host import mounts
from ciphercost.load.agent import Agent
from ciphercost.mechanisms._rest import ArmAtRest, AtRest
from ciphercost.model.spec import ARMS, Arm
from conftest import RequirePossible
from resting import CANARY, NAME, SIZE, both, done, look, mountable, resting, write


@pytest.fixture(scope="module", autouse=True)
def _able(require_possible: RequirePossible) -> None:
    require_possible(partial(mountable, "cryfs"))


def test_what_is_written_rests_in_clear_in_one_arm_alone() -> None:
    with resting("cryfs") as (mechanism, rest, scratch):
        seen = both(mechanism, rest, scratch)
    assert min(seen["plain"]) > 0, "a search that can't find it in clear proves nothing"
    assert seen["encrypted"] == (0, 0)


def test_without_its_password_the_data_is_not_there() -> None:
    with (
        resting("cryfs") as (mechanism, rest, scratch),
        mechanism.volume("encrypted", scratch / "encrypted", rest, SIZE) as volume,
    ):
        write(volume, rest)
        with mechanism.key_taken("wrong", rest, volume.path):
            assert not volume.path.exists()
            assert not mounts.is_mounted(volume.path.parent)
        assert (volume.path / NAME).read_text().strip() == CANARY


def test_each_arm_says_what_it_lies_on() -> None:
    with resting("cryfs", cipher="xchacha20-poly1305", block="32KB") as (mechanism, rest, scratch), Agent() as agent:
        for arm in ARMS:
            with mechanism.volume(arm, scratch / arm, rest, SIZE) as volume:
                write(volume, rest)
                seen = look(arm, volume, rest, agent)
                mechanism.flush(volume)
                assert mechanism.status(seen)[0], mechanism.status(seen)
                assert mechanism.structure(seen)[0], mechanism.structure(seen)
                other: Arm = "encrypted" if arm == "plain" else "plain"
                passed, words = mechanism.status(structs.replace(seen, arm=other))
                assert not passed
                assert "not on fuse." in words
                assert not mechanism.structure(structs.replace(seen, arm=other))[0]
                if arm == "encrypted":
                    assert mechanism.implementation(seen)["cipher"] == "XCHACHA20-POLY1305"
                    assert mechanism.implementation(seen)["implementation"].startswith("CryFS Version ")
                    refused = mechanism.refuses(seen)
                    assert refused is not None
                    assert refused[0], refused[1]
                done(seen)


@pytest.fixture(scope="module")
def seen() -> Iterator[ArmAtRest]:
    """An encrypted volume with the canary and a database in it."""
    with (
        resting("cryfs") as (mechanism, rest, scratch),
        Agent() as agent,
        mechanism.volume("encrypted", scratch / "encrypted", rest, SIZE) as volume,
    ):
        write(volume, rest)
        look_at = look("encrypted", volume, rest, agent)
        yield look_at
        done(look_at)


def test_files_that_are_no_blocks_fail_the_disk_witness(seen: ArmAtRest) -> None:
    cryfs = mechanisms.get("cryfs")
    assert isinstance(cryfs, AtRest)
    assert cryfs.structure(seen)[0], cryfs.structure(seen)
    stray = seen.volume.backing[0] / "in-clear"
    stray.write_text(CANARY)
    assert not cryfs.structure(seen)[0]
    stray.unlink()


@pytest.mark.parametrize(
    ("asked", "missing"),
    [({"cipher": "aes-128-gcm"}, "Cipher: aes-128-gcm"), ({"block": "4KB"}, "Blocksize: 4096 bytes")],
)
def test_a_mount_that_is_otherwise_than_was_asked_for_fails_the_server_witness(
    seen: ArmAtRest, asked: dict[str, str], missing: str
) -> None:
    cryfs = mechanisms.get("cryfs")
    assert isinstance(cryfs, AtRest)
    passed, words = cryfs.status(seen)
    assert passed, words
    assert words.endswith("aes-256-gcm in blocks of 16384 bytes")
    passed, words = cryfs.status(structs.replace(seen, rest=structs.replace(seen.rest, factors=cryfs.check(asked))))
    assert not passed
    assert words.endswith(f"does not report '{missing}'")
