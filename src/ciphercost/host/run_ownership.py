"""Identifies runs and what belongs to them: ids, owners, scratch base, control groups."""

from __future__ import annotations

import os
import pwd
import re
import shlex
from pathlib import Path

from ciphercost.host import control_groups
from ciphercost.model.errors import UsageError

RUN_MARK = "CIPHERCOST_RUN"
OWNER_MARK = "CIPHERCOST_OWNER"
"""Set in the environment of everything a run starts: the run's id, and the controller that owns it (`identity()`)."""
OWNER_FILE = "owner"
CGROUP_PREFIX = "ciphercost-"
SUPERVISOR = Path(__file__).with_name("supervisor_process.py")
"""The program of each run's supervisor; a supervisor process is recognised by its name."""

User = tuple[int, int]


# ── who we are, and for whom servers run ──────────────────────────────────────────────────────────────────────────────


def server_user() -> User | None:
    """uid and gid that servers run as: nobody's when we are root, else None (our own)."""
    if os.geteuid() != 0:
        return None
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        return (65534, 65534)
    return (nobody.pw_uid, nobody.pw_gid)


def out_of_reach(place: Path) -> str:
    """Why the user that servers run as can't get to a file or directory, and what opens the way; empty: nothing is in the way."""
    if server_user() is None:
        return ""
    ways = (*reversed(place.parents), *([place] if place.is_dir() else []))
    closed = next((way for way in ways if way.exists() and not way.stat().st_mode & 0o001), None)
    if closed is None:
        return ""
    return (
        f"servers run as 'nobody' when you are root, and nobody can't reach {place}: {closed} is closed to others "
        f"(`chmod o+x {shlex.quote(str(closed))}` opens it)"
    )


def hand_over(path: Path) -> None:
    """Give a file, or a directory with its content, to the user that servers run as. Does nothing if that is us."""
    user = server_user()
    if user is None:
        return
    os.chown(path, *user, follow_symlinks=False)
    if path.is_symlink() or not path.is_dir():
        return
    # Use descriptors: the owner of a directory could replace an entry by a link while we walk.
    for _, directories, files, within in os.fwalk(path):
        for name in (*directories, *files):
            os.chown(name, *user, dir_fd=within, follow_symlinks=False)


def own_file(path: Path, text: str) -> Path:
    """Write a file that only the user who runs the servers can read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    hand_over(path)
    return path


def start_time(pid: int) -> str:
    """A process's start in clock ticks since boot; empty if there is no such process, or only its zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink()).strip("pid:[]")
    except OSError:
        return ""


def identity(pid: int | None = None) -> str:
    """`pid:start:boot:namespace`: identifies this process (or another in our namespace) for good, not only until its
    number is reused.
    """
    pid = pid or os.getpid()
    return f"{pid}:{start_time(pid)}:{_boot()}:{_pid_namespace()}"


def lives(owner: str) -> bool:
    """Whether the process of that identity still runs. Processes of another pid namespace count as living, because we
    can't see them.
    """
    match = re.fullmatch(r"(\d+):(\d+):([^:]*):([^:]*)", owner.strip())
    if match is None:
        return False
    pid, start, boot, namespace = match.groups()
    if boot != _boot():
        return False
    return namespace != _pid_namespace() or start_time(int(pid)) == start


# ── scratch ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def scratch_base() -> Path:
    """Where runs keep data and keys: $CIPHERCOST_SCRATCH, else our own directory in /var/tmp, because /tmp is often too
    small.
    """
    chosen = os.environ.get("CIPHERCOST_SCRATCH")
    return Path(chosen).absolute() if chosen else Path(f"/var/tmp/ciphercost-{os.geteuid()}")  # noqa: S108 - owner is checked


FULL_BYTES, FULL_SHARE = 64 << 20, 0.02
"""Free bytes, and share of the disk, below which a disk counts as full. Servers need room for whole extents, and for
their logs.
"""


def disk_full() -> str:
    """What to do if the disk that holds the runs' data is full; else empty."""
    base = scratch_base()
    try:
        status = os.statvfs(base)
    except OSError:
        return ""
    free = status.f_bavail * status.f_frsize
    if free > max(FULL_BYTES, FULL_SHARE * status.f_blocks * status.f_frsize):
        return ""
    return (
        f"the disk of {base} is full ({free / 1e6:.0f} MB free): use fewer --rows, or set CIPHERCOST_SCRATCH to a "
        "directory on a larger one"
    )


def check_run_id(run_id: str) -> str:
    """The id, if it can be a file name. Raises UsageError."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", run_id):
        raise UsageError(f"'{run_id}' can't be a run's id: use only letters, digits, '.', '_' and '-'")
    return run_id


# ── control groups ────────────────────────────────────────────────────────────────────────────────────────────────────


def cgroup_parents() -> tuple[Path, ...]:
    """Directories in which we may make control groups that count CPU time: v1 cpuacct, else v2, else none."""
    directories = {hierarchy.version: hierarchy.nearest for hierarchy in control_groups.hierarchies("cpuacct")}
    for version in (1, 2):
        if version in directories and _may_make(directories[version]):
            return (directories[version],)
    return ()


def memory_parent() -> tuple[Path, str] | None:
    """Where we may make a control group with a memory limit, and the name of the file that sets it; None: nowhere."""
    for hierarchy in control_groups.hierarchies("memory"):
        if hierarchy.version == 1:
            if _may_make(hierarchy.nearest):
                return hierarchy.nearest, "memory.limit_in_bytes"
            continue
        # A group can have a limit only if its parent delegates the controller, which it can't while it has
        # processes of its own.
        for parent in (hierarchy.nearest, *hierarchy.nearest.parents):
            if not parent.is_relative_to(hierarchy.mount):
                break
            delegated = " ".join(control_groups.lines(parent / "cgroup.subtree_control")).split()
            if "memory" in delegated and _may_make(parent):
                return parent, "memory.max"
    return None


def cgroup_for(run_id: str, name: str) -> tuple[Path, ...]:
    """Control groups for one server of this run, to be passed to `spawn`, which makes them. Empty if we may make none."""
    return tuple(parent / f"{CGROUP_PREFIX}{check_run_id(run_id)}-{name}" for parent in cgroup_parents())


def _may_make(parent: Path) -> bool:
    # To move a process, cgroup v2 requires that the common ancestor's cgroup.procs is ours as well.
    return os.access(parent, os.W_OK) and os.access(parent / "cgroup.procs", os.W_OK) and not _read_only(parent)


def _read_only(path: Path) -> bool:
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
