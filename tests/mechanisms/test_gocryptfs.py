"""gocryptfs: encrypted below, while the plain arm's daemon on the same FUSE library passes files through; nothing stays
mounted."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest
from msgspec import structs

import warm
from ciphercost.host import leftovers, mounts, run_ownership, tools
from ciphercost.host.leftovers import Leftover
from ciphercost.host.volumes import fuse
from ciphercost.load.agent import Agent
from ciphercost.mechanisms._rest import KeyState
from ciphercost.model.errors import MissingServer, RunError
from ciphercost.model.spec import ARMS, Arm
from conftest import RequirePossible
from processes import wait_for
from resting import CANARY, NAME, SIZE, both, check_nothing_is_left, done, look, mountable, resting, write


@pytest.fixture(autouse=True)
def _able(require_possible: RequirePossible) -> None:
    require_possible(partial(mountable, "gocryptfs"))


@pytest.mark.parametrize("cipher", ["aes-gcm", "xchacha", "aes-siv"])
def test_what_is_written_rests_in_clear_in_one_arm_alone(cipher: str) -> None:
    with resting("gocryptfs", cipher=cipher, scrypt="10") as (mechanism, rest, scratch):
        seen = both(mechanism, rest, scratch)
    assert min(seen["plain"]) > 0, "a search that can't find unencrypted data proves nothing"
    assert seen["encrypted"] == (0, 0)


def test_a_daemon_that_mounts_another_kind_of_file_system_is_named_with_both_kinds() -> None:
    with resting("gocryptfs", scrypt="10") as (_, rest, scratch):
        place, below = scratch / "shown", scratch / "below"
        for directory in (place, below):
            directory.mkdir()
        mount = fuse.Fuse(rest.supervisor, place, [fuse.passing(), below, place], "fuse.other")
        with pytest.raises(
            RunError, match=r"of kind 'fuse\.passing' at .*, not 'fuse\.other'; start it with -o subtype=other"
        ):
            mount.mount()
        assert not mounts.is_mounted(place)


@pytest.mark.parametrize("cleaned", [False, True], ids=["at the end of a run", "by ciphercost clean"])
def test_what_a_daemon_mounted_that_answers_no_more_is_unmounted(
    cleaned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that was killed while it had a file of its own mount open: umount alone waits for it, for ever."""
    monkeypatch.setattr(mounts, "UNMOUNT_SECONDS", 1.0)
    with resting("gocryptfs", scrypt="10") as (_, rest, scratch):
        place, below = scratch / "shown", scratch / "below"
        for directory in (place, below):
            directory.mkdir()
        mount = fuse.Fuse(rest.supervisor, place, [fuse.passing(), below, place], "fuse.passing")
        mount.mount()
        os.kill(mount.pid, signal.SIGSTOP)
        try:
            time.sleep(1.1)  # the kernel keeps what it knows of the directory for a second, and then has to ask
            if cleaned:
                assert leftovers.remove([Leftover("mount", str(place), scratch.name)]) == []
            else:
                rest.supervisor.run(mounts.unmounting(place), timeout=60)
            assert not mounts.is_mounted(place)
        finally:
            os.kill(mount.pid, signal.SIGCONT)
        mount.unmount()


@pytest.mark.parametrize("state", ["missing", "wrong"])
def test_without_its_password_the_data_is_not_accessible(state: KeyState) -> None:
    with (
        resting("gocryptfs", scrypt="10") as (mechanism, rest, scratch),
        mechanism.volume("encrypted", scratch / "encrypted", rest, SIZE) as volume,
    ):
        write(volume, rest)
        with mechanism.key_taken(state, rest, volume.path):
            assert not volume.path.exists()
            assert not mounts.is_mounted(volume.path.parent)
        assert (volume.path / NAME).read_text().strip() == CANARY


@pytest.mark.parametrize("library", ["auto", "openssl", "go"])
def test_its_library_is_its_own_and_not_the_servers(library: str, tmp_path: Path) -> None:
    ended = warm.run(("prove", "sqlite:gocryptfs", "--set", f"library={library}"), cwd=tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "ENCRYPTED, proven by every witness" in " ".join(ended.stdout.split())


def test_each_arm_says_what_it_lies_on() -> None:
    with resting("gocryptfs", cipher="xchacha", scrypt="10") as (mechanism, rest, scratch), Agent() as agent:
        for arm in ARMS:
            with mechanism.volume(arm, scratch / arm, rest, SIZE) as volume:
                write(volume, rest)
                seen = look(arm, volume, rest, agent)
                assert mechanism.status(seen)[0], mechanism.status(seen)
                other: Arm = "encrypted" if arm == "plain" else "plain"
                passed, words = mechanism.status(structs.replace(seen, arm=other))
                assert not passed
                assert "not on fuse." in words
                if arm == "encrypted":
                    assert mechanism.implementation(seen)["cipher"] == "XChaCha20-Poly1305"
                    refused, detail = mechanism.refuses(seen) or (False, "")
                    assert refused, detail
                    assert detail.endswith("does not mount: password incorrect")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"scrypt": "10"}, "its directory is encrypted with XChaCha20-Poly1305, but AES-GCM-256 was requested"),
        ({"cipher": "xchacha"}, "its password goes through scrypt with N = 1024, but 2^16 was requested"),
        ({"cipher": "xchacha", "scrypt": "10", "library": "go"}, "-openssl=false is not among its daemon's options"),
    ],
)
def test_a_mount_that_is_otherwise_than_was_asked_for_fails_the_server_witness(
    asked: dict[str, str], words: str
) -> None:
    factors = {"cipher": "xchacha", "scrypt": "10", "library": "openssl"}
    with (
        resting("gocryptfs", **factors) as (mechanism, rest, scratch),
        Agent() as agent,
        mechanism.volume("encrypted", scratch / "encrypted", rest, SIZE) as volume,
    ):
        write(volume, rest)
        seen = look("encrypted", volume, rest, agent)
        passed, detail = mechanism.status(seen)
        assert passed, detail
        assert detail.endswith("is encrypted with XChaCha20-Poly1305 by openssl=true")
        other = structs.replace(rest, factors=mechanism.check(asked))
        passed, detail = mechanism.status(structs.replace(seen, rest=other))
        done(seen)
    assert not passed
    assert detail.endswith(words)


def test_data_unmounted_outside_ciphercost_is_not_proven() -> None:
    with (
        resting("gocryptfs", scrypt="10") as (mechanism, rest, scratch),
        Agent() as agent,
        mechanism.volume("encrypted", scratch / "encrypted", rest, SIZE) as volume,
    ):
        rest.supervisor.run(mounts.unmounting(volume.path.parent))
        write(volume, rest)
        seen = look("encrypted", volume, rest, agent)
        passed, words = mechanism.status(seen)
        assert not passed
        assert "not on fuse.gocryptfs" in words
        done(seen)


def _read_by(pid: int) -> int:
    return next(int(line.split()[1]) for line in Path(f"/proc/{pid}/io").read_text().splitlines() if "rchar" in line)


TRIES, KEPT = 5, [False, True, False]


def test_both_arms_keep_and_drop_the_page_cache_alike() -> None:
    """Otherwise the kernel's way with a FUSE daemon would count as encryption."""
    size, page = 4 << 20, 8192
    seen: dict[Arm, list[bool]] = {}
    with resting("gocryptfs", scrypt="10") as (mechanism, rest, scratch):
        # Another test's run with a cold cache may drop the page cache of the whole machine meanwhile.
        for arm, number in itertools.product(ARMS, range(TRIES)):
            if seen.get(arm) == KEPT:
                continue
            with mechanism.volume(arm, scratch / f"{arm}-{number}", rest, SIZE) as volume:
                path = volume.path.parent / "file"
                path.write_bytes(os.urandom(size))
                again = []
                with path.open("r+b", buffering=0) as file:
                    for do in ("read", "read", "write", "read"):
                        before = _read_by(volume.pids[0])
                        if do == "write":
                            os.pwrite(file.fileno(), bytes(page), page)
                            continue
                        for at in range(0, size, page):
                            os.pread(file.fileno(), page, at)
                        again.append(_read_by(volume.pids[0]) - before > size / 2)
                before = _read_by(volume.pids[0])
                path.read_bytes()
                seen[arm] = [*again[1:], _read_by(volume.pids[0]) - before > size / 2]
    assert seen["plain"] == seen["encrypted"] == KEPT


def test_a_daemon_that_was_killed_leaves_no_mount() -> None:
    with resting("gocryptfs", scrypt="10") as (mechanism, rest, scratch):
        with mechanism.volume("encrypted", scratch / "encrypted", rest, SIZE) as volume:
            # At its start it sends a request to its own mount; killed at that moment, it would never end.
            tasks = Path(f"/proc/{volume.pids[0]}/task")

            def asks() -> bool:
                for task in tasks.iterdir():
                    with contextlib.suppress(OSError):  # a thread that has ended
                        if "request_wait" in (task / "wchan").read_text():
                            return True
                return False

            wait_for("its start", lambda: not asks())
            (volume.path.parent / "file").write_bytes(b"x")
            time.sleep(1.0)
            os.kill(volume.pids[0], 9)
            wait_for("the daemon to end", lambda: run_ownership.start_time(volume.pids[0]) == "")
            assert mounts.is_mounted(volume.path.parent)
        check_nothing_is_left(rest.supervisor.run_id)


def test_a_busy_mount_is_unmounted_all_the_same() -> None:
    with resting("gocryptfs", scrypt="10") as (mechanism, rest, scratch):
        with mechanism.volume("plain", scratch / "plain", rest, SIZE) as volume:
            write(volume, rest)
            standing = rest.supervisor.spawn(["sleep", "1000"], cwd=volume.path)
        check_nothing_is_left(rest.supervisor.run_id)
        standing.stop()


def test_a_directory_can_be_synchronised_and_an_unlinked_file_stays_usable() -> None:
    with resting("gocryptfs", scrypt="10") as (mechanism, rest, scratch):
        for arm in ARMS:
            with mechanism.volume(arm, scratch / arm, rest, SIZE) as volume:
                directory = os.open(volume.path.parent, os.O_RDONLY)
                os.fsync(directory)
                os.close(directory)
                path = volume.path.parent / "file"
                with path.open("w+b", buffering=0) as file:
                    path.unlink()
                    os.ftruncate(file.fileno(), 10000)
                    os.pwrite(file.fileno(), b"kept", 9000)
                    assert os.pread(file.fileno(), 4, 9000) == b"kept"


def test_without_gocryptfs_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CIPHERCOST_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MissingServer, match="apt-get install gocryptfs"):
        tools.tool("gocryptfs", fetch=False)
    with pytest.raises(MissingServer, match="ciphercost-passing"):
        fuse.passing()
