"""path: the kernel reports what lies below your two directories; unusable ones are refused with a clear message."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from msgspec import structs

from ciphercost import engines, mechanisms
from ciphercost.host import journal, supervisor
from ciphercost.host.journal import Entry
from ciphercost.host.supervisor import Supervisor
from ciphercost.host.volumes import image, policy
from ciphercost.load.agent import Agent
from ciphercost.mechanisms import path
from ciphercost.mechanisms._rest import AtRest
from ciphercost.model import run_directory
from ciphercost.model.errors import RunError, Unproven, UsageError
from ciphercost.model.spec import ARMS, Arm
from conftest import Require, RequirePossible
from resting import SIZE, both, check_nothing_is_left, done, found, look, resting, write

SQLITE = engines.get("sqlite")


class Disk:
    """A file system with a plain directory and one with a policy, both open to all users."""

    def __init__(self, supervisor_: Supervisor, scratch: Path) -> None:
        self.stack = ExitStack()
        self.mount = scratch / "users"
        self.image = self.stack.enter_context(image.mounted(supervisor_, self.mount, SIZE))
        self.plain, self.encrypted = self.mount / "plain", self.mount / "encrypted"
        for directory in (self.plain, self.encrypted):
            directory.mkdir()
        key = policy.add_key(self.mount, os.urandom(policy.KEY_BYTES))
        policy.make(self.encrypted, policy.MODES["aes-256-xts"], key)
        for directory in (self.plain, self.encrypted):
            directory.chmod(0o777)


@pytest.fixture
def disk(require_possible: RequirePossible) -> Iterator[Disk]:
    require_possible(image.check_rights)
    run_id = run_directory.new_id()
    with Supervisor(run_id) as run_supervisor:
        users = Disk(run_supervisor, supervisor.scratch(run_id, run_supervisor))
        with users.stack:
            yield users
            assert list(users.plain.iterdir()) == list(users.encrypted.iterdir()) == [], (
                "what was created there must be gone"
            )
    assert run_supervisor.problems == []
    check_nothing_is_left(run_id)


def test_the_image_behind_a_loop_device_is_searched(disk: Disk) -> None:
    """Here both arms are on one image; the plain one is searched as a directory, and so only its own files are."""
    with resting("path", plain=str(disk.plain), encrypted=str(disk.encrypted)) as (mechanism, rest, scratch):
        with mechanism.volume("encrypted", scratch / "encrypted", rest, SIZE) as volume:
            assert volume.backing == (disk.image,)
            write(volume, rest)
            assert found(mechanism, volume) == 0
        assert both(mechanism, rest, scratch)["plain"] == (1, 1)


def test_blocks_are_searched_if_no_file_is_behind_the_device(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path, "_searchable", lambda _: None)
    with resting("path", plain=str(disk.plain), encrypted=str(disk.encrypted)) as (mechanism, rest, scratch):
        assert both(mechanism, rest, scratch) == {"plain": (1, 1), "encrypted": (0, 0)}
    # Exchanged: the blocks of unencrypted files contain the canary, so this search can fail.
    with resting("path", plain=str(disk.encrypted), encrypted=str(disk.plain)) as (mechanism, rest, scratch):
        with mechanism.volume("encrypted", scratch / "encrypted", rest, SIZE) as volume:
            write(volume, rest)
            assert found(mechanism, volume) == 1
        assert not volume.backing[0].exists()


def test_each_arm_says_what_it_lies_on(disk: Disk) -> None:
    with (
        resting("path", plain=str(disk.plain), encrypted=str(disk.encrypted)) as (mechanism, rest, scratch),
        Agent() as agent,
    ):
        for arm in ARMS:
            with mechanism.volume(arm, scratch / arm, rest, SIZE) as volume:
                write(volume, rest)
                seen = look(arm, volume, rest, agent)
                passed, words = mechanism.status(seen)
                assert passed, words
                assert "loop device of" in words
                other: Arm = "encrypted" if arm == "plain" else "plain"
                passed, words = mechanism.status(structs.replace(seen, arm=other))
                assert not passed
                assert ("no encryption found below it" if arm == "plain" else "fscrypt policy") in words
                done(seen)
        assert mechanism.findings(rest) == []


def test_where_nothing_below_can_be_searched_nothing_is_proven(disk: Disk, tmp_path: Path, require: Require) -> None:
    place = Path("/dev/shm")
    require(place.is_dir() and os.access(place, os.W_OK), "no tmpfs here")
    directory = place / f"ciphercost-test-{run_directory.new_id()}"
    directory.mkdir()
    directory.chmod(0o777)
    try:
        with resting("path", plain=str(disk.plain), encrypted=str(directory)) as (mechanism, rest, scratch):
            mechanism.fits(SQLITE, rest.factors)
            with (
                pytest.raises(Unproven, match="disk witness, encrypted arm: tmpfs"),
                mechanism.volume("encrypted", scratch / "encrypted", rest, SIZE),
            ):
                pass
            assert [finding.code for finding in mechanism.findings(rest)] == ["directories-differ"]
        assert list(directory.iterdir()) == []
    finally:
        directory.rmdir()


def test_an_unusable_directory_is_refused_with_the_reason(disk: Disk) -> None:
    mechanism = mechanisms.get("path")
    assert isinstance(mechanism, AtRest)
    closed = disk.mount / "closed"
    closed.mkdir(mode=0o700)
    (closed / "inner").mkdir(mode=0o777)
    plain, encrypted = str(disk.plain), str(disk.encrypted)
    refused = {
        ("", ""): "path needs two directories",
        (plain, ""): "path needs two directories",
        (plain, str(disk.mount / "absent")): "is not a directory",
        (plain, plain): "plain and encrypted are the same directory",
        (encrypted, plain): "on one file system .* nothing encrypts the second",
        (plain, str(closed / "inner")): f"nobody can't reach .*: {closed} is closed to others",
    }
    for (first, second), words in refused.items():
        with pytest.raises(UsageError, match=words):
            mechanism.fits(SQLITE, mechanism.check({"plain": first, "encrypted": second}))
    mechanism.fits(SQLITE, mechanism.check({"plain": plain, "encrypted": encrypted}))


def test_a_directory_that_is_too_small_is_refused(disk: Disk) -> None:
    with (
        resting("path", plain=str(disk.plain), encrypted=str(disk.encrypted)) as (mechanism, rest, scratch),
        pytest.raises(RunError, match="on a larger disk"),
        mechanism.volume("plain", scratch / "p", rest, 1 << 50),
    ):
        pass


def test_a_killed_run_leaves_a_note_of_what_is_outside(disk: Disk) -> None:
    with (
        resting("path", plain=str(disk.plain), encrypted=str(disk.encrypted)) as (mechanism, rest, scratch),
        mechanism.volume("plain", scratch / "plain", rest, SIZE) as volume,
    ):
        entries = list(journal.read((scratch / journal.FILE).read_text()))
        assert Entry.directory(volume.path.parent) in entries
        assert volume.path.parent.name.startswith(f"ciphercost-{rest.supervisor.run_id}-")
