"""clean and the scratch directory: whatever somebody else could have put there is refused, and never believed, run or
removed.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import wrecks
from ciphercost.host import dead_runs, journal, leftovers, run_ownership, supervisor
from ciphercost.host.journal import Entry
from ciphercost.model import owned, run_directory
from ciphercost.model.errors import UsageError
from ciphercost.runs import doctor
from conftest import Require
from directories import let_through
from processes import wait_for

CLI = [sys.executable, "-m", "ciphercost"]
NOBODY = 65534
STRANGER = 54321
DEAD = "1:1:another-boot:1\n"
LONG_AGO = 10 * dead_runs.GRACE_SECONDS


@pytest.fixture
def root(require: Require) -> None:
    require(os.geteuid() == 0, "giving files to another user needs root")


def dead_run(own_scratch: Path, run: str = "", outside: str = "") -> Path:
    """What a run leaves when it is killed together with its supervisor."""
    directory = own_scratch / (run or run_directory.new_id())
    directory.mkdir(mode=0o711)
    owned.add_line(directory / run_ownership.OWNER_FILE, DEAD.strip())
    if outside:
        journal.add(directory / journal.FILE, Entry("directory", outside))
    return directory


def victim(tmp_path: Path, run: str) -> Path:
    """A directory that an attacker wants removed, with a name that may appear in the attacker's list."""
    place = tmp_path / "home" / f"ciphercost-{run}-precious"
    place.mkdir(parents=True)
    (place / "thesis").write_text("the only copy")
    return place


def give_away(path: Path, uid: int = STRANGER) -> None:
    os.chown(path, uid, uid)
    for below in path.rglob("*"):
        os.chown(below, uid, uid, follow_symlinks=False)


def swept() -> subprocess.CompletedProcess[str]:
    with wrecks.alone():
        return subprocess.run([*CLI, "clean"], capture_output=True, text=True, check=False)


# ── the directory of all scratch ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("root")
def test_a_scratch_directory_of_another_user_is_refused_and_its_content_ignored(
    own_scratch: Path, tmp_path: Path
) -> None:
    run = run_directory.new_id()
    wanted = victim(tmp_path, run)
    dead_run(own_scratch, run, str(wanted))
    give_away(own_scratch)
    done = swept()
    assert done.returncode == 2
    assert f"uid {STRANGER}" in done.stderr
    assert str(own_scratch) in done.stderr
    assert "CIPHERCOST_SCRATCH" in done.stderr
    assert "Traceback" not in done.stderr
    assert (wanted / "thesis").exists()
    states = {name: (state, text) for name, state, text in doctor.checks() if name == "leftovers"}
    assert states["leftovers"][0] == "warn"
    with pytest.raises(UsageError, match=f"uid {STRANGER}.*CIPHERCOST_SCRATCH"):
        supervisor.scratch(run_directory.new_id())


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775, 0o722])
def test_a_scratch_directory_that_others_may_write_to_is_refused(own_scratch: Path, tmp_path: Path, mode: int) -> None:
    run = run_directory.new_id()
    wanted = victim(tmp_path, run)
    dead = dead_run(own_scratch, run, str(wanted))
    os.chown(own_scratch, os.geteuid(), STRANGER)  # a group with more than one member
    own_scratch.chmod(mode)
    done = swept()
    assert done.returncode == 2
    assert f"mode {mode:04o}" in done.stderr
    assert dead.exists()
    assert (wanted / "thesis").exists()
    with pytest.raises(UsageError, match=f"mode {mode:04o}"):
        supervisor.scratch(run_directory.new_id())
    assert own_scratch.stat().st_mode & 0o7777 == mode, "a directory that isn't trusted isn't changed either"


def test_a_scratch_directory_of_the_umask_002_is_trusted(own_scratch: Path, tmp_path: Path, require: Require) -> None:
    """A user's private group has nobody else in it."""
    require(owned.private_group() is not None, "this user has no group of its own")
    run = run_directory.new_id()
    dead = dead_run(own_scratch, run, str(victim(tmp_path, run)))
    own_scratch.chmod(0o775)
    done = swept()
    assert done.returncode == 0, done.stderr
    assert not dead.exists()


@pytest.mark.parametrize(
    ("primary", "members", "expected"), [(7, [], True), (7, ["us", "them"], False), (100, [], False)]
)
def test_a_private_group_has_our_name_and_nobody_else(
    monkeypatch: pytest.MonkeyPatch, primary: int, members: list[str], expected: bool
) -> None:
    us = pwd.struct_passwd(("us", "x", 7, primary, "", "/", "/bin/sh"))
    them = pwd.struct_passwd(("them", "x", 8, 100, "", "/", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: us)
    monkeypatch.setattr(pwd, "getpwall", lambda: [us, them])
    name = {7: "us", 100: "users"}[primary]
    monkeypatch.setattr(grp, "getgrgid", lambda gid: grp.struct_group((name, "x", primary, members)))
    assert owned._private.__wrapped__(7, primary) == (primary if expected else None)


def test_a_link_in_the_place_of_the_scratch_directory_is_refused(
    own_scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = dead_run(own_scratch)
    (tmp_path / "link").symlink_to(own_scratch)
    monkeypatch.setenv("CIPHERCOST_SCRATCH", str(tmp_path / "link"))
    done = swept()
    assert done.returncode == 2
    assert "symbolic link" in done.stderr
    assert dead.exists()
    with pytest.raises(UsageError, match="symbolic link"):
        supervisor.scratch(run_directory.new_id())


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("how", ["foreign", "open"])
def test_a_scratch_directory_that_others_could_replace_is_refused(
    own_scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    parent = tmp_path / "theirs"
    (parent / "scratch").mkdir(parents=True, mode=0o711)
    dead = dead_run(parent / "scratch")
    monkeypatch.setenv("CIPHERCOST_SCRATCH", str(parent / "scratch"))
    if how == "foreign":
        os.chown(parent, STRANGER, STRANGER)
    else:
        parent.chmod(0o777)
    done = swept()
    assert done.returncode == 2
    assert str(parent) in done.stderr
    assert dead.exists()
    with pytest.raises(UsageError, match=str(parent)):
        supervisor.scratch(run_directory.new_id())


def test_a_sticky_directory_above_is_fine_and_a_mode_is_only_widened_as_servers_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_through(tmp_path)
    above = tmp_path / "like tmp"
    above.mkdir()
    above.chmod(0o1777)
    monkeypatch.setenv("CIPHERCOST_SCRATCH", str(above / "new"))
    before = os.umask(0)
    try:
        with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
            path = supervisor.scratch(run_supervisor.run_id, run_supervisor)
            assert (path / run_ownership.OWNER_FILE).stat().st_mode & 0o022 == 0, "whatever the umask is"
    finally:
        os.umask(before)
    assert (above / "new").stat().st_mode & 0o777 == (0o700 if run_ownership.server_user() is None else 0o711)


# ── a run's directory and its notes ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("what", ["directory", run_ownership.OWNER_FILE, journal.FILE])
@pytest.mark.parametrize("how", ["foreign", "open", "link"])
def test_run_directories_that_others_could_have_written_are_kept_and_named(
    own_scratch: Path, tmp_path: Path, what: str, how: str
) -> None:
    run = run_directory.new_id()
    wanted = victim(tmp_path, run)
    dead = dead_run(own_scratch, run, str(wanted))
    path = dead if what == "directory" else dead / what
    if how == "foreign":
        os.chown(path, STRANGER, STRANGER)
    elif how == "open":
        path.chmod(0o777)
    else:
        path.rename(tmp_path / "real")
        path.symlink_to(tmp_path / "real")
    done = swept()
    assert done.returncode == 1
    assert f"left {dead}: " in done.stdout
    assert what in done.stdout or what == "directory"
    assert dead.exists()
    assert (wanted / "thesis").exists()


def test_our_own_directories_are_removed_with_what_they_list_elsewhere(own_scratch: Path, tmp_path: Path) -> None:
    run = run_directory.new_id()
    wanted = victim(tmp_path, run)
    dead = dead_run(own_scratch, run, str(wanted))
    done = swept()
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"removed directory {dead} of run {run}" in done.stdout
    assert not dead.exists()
    assert not wanted.exists()


@pytest.mark.usefixtures("root")
def test_a_list_can_not_name_what_others_own_nor_lead_through_a_link(own_scratch: Path, tmp_path: Path) -> None:
    run = run_directory.new_id()
    foreign = victim(tmp_path, run)
    (tmp_path / "way").symlink_to(foreign.parent)
    relative = os.path.relpath(foreign)
    give_away(foreign)
    for line in (
        str(foreign),
        str(tmp_path / "way" / foreign.name),
        relative,
        f"{tmp_path}/home/../home/{foreign.name}",
    ):
        dead = dead_run(own_scratch, run, line)
        assert [leftover.what for leftover in leftovers.leftovers() if leftover.run == run] == [str(dead)]
        shutil.rmtree(dead)
    os.chown(foreign, 0, 0)
    dead_run(own_scratch, run, str(tmp_path / "way" / foreign.name))
    assert not [leftover for leftover in leftovers.leftovers() if "precious" in leftover.what]


def test_a_directory_that_became_a_link_after_it_was_found_is_not_followed(own_scratch: Path, tmp_path: Path) -> None:
    run = run_directory.new_id()
    dead = dead_run(own_scratch, run)
    remains = [leftover for leftover in leftovers.leftovers() if leftover.run == run]
    precious = victim(tmp_path, run)
    shutil.rmtree(dead)
    dead.symlink_to(precious)
    assert "symbolic link" in " ".join(leftovers.remove(remains))
    assert (precious / "thesis").exists()
    assert shutil.rmtree.avoids_symlink_attacks


def test_links_within_a_run_are_removed_and_not_followed(own_scratch: Path, tmp_path: Path) -> None:
    dead = dead_run(own_scratch)
    precious = victim(tmp_path, "x")
    (dead / "data").symlink_to(precious)
    assert swept().returncode == 0
    assert not dead.exists()
    assert (precious / "thesis").exists()


@pytest.mark.usefixtures("root")
def test_a_directory_is_handed_over_without_following_links(tmp_path: Path) -> None:
    precious = victim(tmp_path, "x")
    (tmp_path / "data" / "inner").mkdir(parents=True)
    (tmp_path / "data" / "inner" / "link").symlink_to(precious)
    run_ownership.hand_over(tmp_path / "data")
    assert (tmp_path / "data" / "inner").stat().st_uid == NOBODY
    assert (tmp_path / "data" / "inner" / "link").lstat().st_uid == NOBODY
    assert precious.stat().st_uid == os.geteuid()


# ── processes, control groups ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def sleeper(alone: None) -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def marked(run: str, uid: int, owner: str = DEAD.strip()) -> subprocess.Popen[bytes]:
    env = {run_ownership.RUN_MARK: run, run_ownership.OWNER_MARK: owner, "PATH": os.environ["PATH"]}
    process = subprocess.Popen(["sleep", "1000"], env=env, user=uid, group=uid, extra_groups=[])
    wait_for(
        "the mark to be seen",
        lambda: run_ownership.RUN_MARK.encode() in Path(f"/proc/{process.pid}/environ").read_bytes(),
    )
    return process


@pytest.mark.usefixtures("root", "own_scratch")
def test_another_users_process_is_never_killed_whatever_its_mark(sleeper: list[subprocess.Popen[bytes]]) -> None:
    run = run_directory.new_id()
    theirs, ours, servers = (marked(run, uid) for uid in (STRANGER, 0, NOBODY))
    sleeper += [theirs, ours, servers]
    remains = [leftover for leftover in leftovers.leftovers() if leftover.run == run]
    assert {leftover.what for leftover in remains} == {str(ours.pid), str(servers.pid)}
    assert leftovers.remove(remains) == []
    assert ours.wait(30) == servers.wait(30) == -signal.SIGINT
    assert theirs.poll() is None


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("uid", [STRANGER, NOBODY])
def test_another_users_process_can_not_keep_a_dead_run_from_being_removed(
    own_scratch: Path, sleeper: list[subprocess.Popen[bytes]], uid: int
) -> None:
    dead = dead_run(own_scratch)
    sleeper.append(marked(dead.name, uid, run_ownership.identity()))
    assert str(dead) in [leftover.what for leftover in leftovers.leftovers()]


@pytest.mark.usefixtures("root")
def test_a_user_who_cleans_touches_nothing_of_others(own_scratch: Path, tmp_path: Path) -> None:
    """Root's scratch, cleaned by nobody."""
    dead = dead_run(own_scratch)
    let_through(tmp_path)
    tmp_path.chmod(0o755)
    own_scratch.chmod(0o755)
    os.seteuid(NOBODY)
    try:
        with pytest.raises(UsageError, match="user root"):
            leftovers.sweep()
    finally:
        os.seteuid(0)
    assert dead.exists()


def test_an_old_directory_without_notes_is_still_found(own_scratch: Path) -> None:
    old = own_scratch / run_directory.new_id()
    old.mkdir(mode=0o700)
    before = time.time() - LONG_AGO
    os.utime(old, (before, before))
    assert str(old) in [leftover.what for leftover in leftovers.leftovers()]
