"""leftovers: finds, lists and removes what runs left behind when they ended without their supervisor. Never touches
what belongs to a living run.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from ciphercost.host import dead_runs, idle_setting, journal, mounts
from ciphercost.host.environment import child_environment
from ciphercost.host.namespaces import NAMESPACES, NEAR_END, PREFIX, left_behind
from ciphercost.host.process_end import ends, held
from ciphercost.host.process_state import go_on, is_stopped
from ciphercost.host.run_ownership import (
    CGROUP_PREFIX,
    OWNER_MARK,
    RUN_MARK,
    SUPERVISOR,
    cgroup_parents,
    lives,
    memory_parent,
    scratch_base,
    server_user,
    start_time,
)
from ciphercost.model import owned
from ciphercost.model.errors import UsageError

ORDERLY_MS, KILL_MS = 5000, 5000

UNDO_MS = 60_000
"""A supervisor that goes on ends servers in order, and unmounts."""

Kind = Literal[
    "stopped supervisor",
    "process",
    "idle setting",
    "mount",
    "loop device",
    "network namespace",
    "control group",
    "directory",
    "schema",
]
ORDER: tuple[Kind, ...] = (
    "stopped supervisor", "process", "idle setting", "mount", "loop device", "network namespace", "control group", "directory", "schema",
)  # fmt: skip
"""The order of removal: each kind may hold the ones after it."""


class Leftover(msgspec.Struct, frozen=True):
    """Something left by a run whose controller is dead."""

    kind: Kind
    what: str
    """Process number, path or device; for an idle setting `cpu3=0`: the CPU and its original value; for a schema
    `NAME on URL`."""
    run: str
    start: str = ""
    """For a process or supervisor: its start time, so that a later process with the same number is not meant."""

    def __str__(self) -> str:
        return f"{self.kind} {self.what} of run {self.run}"


# ── finding ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def leftovers(ended: str = "") -> list[Leftover]:
    """Everything of ciphercost's that was left behind, in the order of removal. Only what our own user made counts,
    also for root.

    `ended`: a run that is over although its controller lives. Raises UsageError if another user could have written the
    scratch directory.
    """
    # List these before reading the marks: a new run sets its mark first, then makes its groups and links.
    limited = memory_parent()
    parents = dict.fromkeys((*cgroup_parents(), *(limited[:1] if limited else ())))
    groups = [group for parent in parents for group in parent.glob(f"{CGROUP_PREFIX}*")]
    namespaces = left_behind()
    marks = dict(_marked())
    # Servers run as nobody when we are root, and any process may do so: only our own processes prove that a run lives.
    living = {run for run, owner, supervisors, ours in marks.values() if ours and (supervisors or lives(owner))}
    dead = {}
    for run, found_dead in dead_runs.directories(ended):
        if found_dead is None:
            living.add(run)
        elif run == ended or run not in living:
            dead[run] = found_dead
    living.discard(ended)
    paths = {run: dead_run.path for run, dead_run in dead.items()}
    remains = [Leftover("directory", str(path), run) for run, path in paths.items()]
    remains.extend(
        Leftover("directory", place, run) for run, dead_run in dead.items() for place in _outside(run, dead_run)
    )
    remains.extend(
        Leftover("idle setting", f"cpu{cpu}={was}", run)
        for run, dead_run in dead.items()
        for cpu, was in idle_setting.left_behind(dead_run.of("idle setting"))
    )
    # PostgreSQL's children overwrite their environment, but their working directory is their data directory.
    runs = {pid: marks[pid][0] if pid in marks else _inside(_link(f"/proc/{pid}/cwd"), paths) for pid in _pids()}
    remains.extend(
        Leftover("process", str(pid), run, start_time(pid))
        for pid, run in runs.items()
        if run and run not in living and pid != os.getpid() and _ends_with_us(pid)
    )
    places = [mount.point for mount in mounts.mounts()]
    remains.extend(Leftover("mount", place, run) for place in places if (run := _inside(place, paths)))
    backings = {path.parts[3]: " ".join(_lines(path)) for path in Path("/sys/block").glob("loop*/loop/backing_file")}
    remains.extend(
        Leftover("loop device", f"/dev/{name}", run)
        for name, file in backings.items()
        if (run := _inside(file.removesuffix(" (deleted)"), paths))
    )
    remains.extend(
        Leftover("control group", str(group), group.name.removeprefix(CGROUP_PREFIX))
        for group in groups
        if _ours(group) and not any(group.name.startswith(f"{CGROUP_PREFIX}{run}-") for run in living)
    )
    remains.extend(
        Leftover("network namespace", name, name.removeprefix(PREFIX).rpartition("-")[0])
        for name in namespaces
        if _ours(NAMESPACES / name) and not any(name.startswith(f"{PREFIX}{run}-") for run in living)
    )
    remains.extend(
        Leftover("stopped supervisor", str(pid), run, start_time(pid))
        for pid, (run, owner) in _stopped(marks).items()
        if run == ended or not lives(owner)
    )
    remains.extend(Leftover("schema", f"{note.schema} on {note.url}", note.run) for note in dead_runs.dead_notes())
    remains.reverse()  # the newest mount first: it may be inside an older one
    return sorted(remains, key=lambda leftover: ORDER.index(leftover.kind))


def _marked() -> Iterator[tuple[int, tuple[str, str, bool, bool]]]:
    """(pid, (run, its controller, whether this is the run's supervisor, whether it is our own user's)) of each process
    with a run's mark.

    Other users' are left out.
    """
    for pid in _pids():
        try:
            pairs = [variable.partition("=") for variable in _nul(Path(f"/proc/{pid}/environ"))]
            command = _nul(Path(f"/proc/{pid}/cmdline"))
        except OSError:
            continue
        environment = {name: value for name, _, value in pairs}
        if RUN_MARK in environment and _ends_with_us(pid):
            # A supervisor whose controller is dead is undoing its list: let it finish.
            supervisors = any(part.endswith(f"/{SUPERVISOR.name}") for part in command[:4])
            ours = _users(pid) == {os.geteuid()}
            yield pid, (environment[RUN_MARK], environment.get(OWNER_MARK, ""), supervisors, ours)


def _stopped(marks: Mapping[int, tuple[str, str, bool, bool]]) -> dict[int, tuple[str, str]]:
    """(run, its controller) of each of our own supervisors that is stopped, by its process id."""
    return {
        pid: (run, owner)
        for pid, (run, owner, supervisors, ours) in marks.items()
        if ours and supervisors and is_stopped(pid)
    }


def stalled() -> list[str]:
    """What is stopped of runs whose controllers live, and what to do, one line each."""
    stopped = _stopped(dict(_marked()))
    return [go_on(f"the supervisor of run {run}", pid) for pid, (run, owner) in stopped.items() if lives(owner)]


def supervised(run: str) -> bool:
    """Whether a supervisor is still removing what this run had started."""
    return any(supervisors for of, _, supervisors, ours in dict(_marked()).values() if ours and of == run)


def _outside(run: str, dead: dead_runs.Dead) -> Iterator[str]:
    """Directories that a run has made outside of its scratch, by its journal. Also those that can't be seen now."""
    entries = [
        entry for entry in dead.entries if entry.kind == "directory" and not Path(entry.what).is_relative_to(dead.path)
    ]
    for entry in dict.fromkeys(entries):
        if _is_ours(entry.what, run) or (_is_named(entry.what, run) and entry.hidden()):
            yield entry.what


def _is_named(what: str, run: str) -> bool:
    """Whether a path is absolute and has a name that only this run would give."""
    name = Path(what).name
    return Path(what).is_absolute() and (name.startswith(f"ciphercost-{run}-") or name.endswith(f"-{run}"))


def _is_ours(what: str, run: str) -> bool:
    """Whether a directory is named as only this run would name it, on a path without links, and owned by our users."""
    path = Path(what)
    try:
        return _is_named(what, run) and path.resolve() == path and path.is_dir() and path.lstat().st_uid in _our_users()
    except OSError:
        return False


def _pids() -> list[int]:
    return sorted(int(path.name) for path in Path("/proc").glob("[0-9]*"))


def _inside(place: str, directories: dict[str, Path]) -> str:
    """The run whose directory contains this place; empty if none does."""
    return next((run for run, path in directories.items() if Path(place).is_relative_to(path)), "") if place else ""


def _ours(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return path.lstat().st_uid == os.geteuid()
    return False


def _our_users() -> set[int]:
    """The users that own what runs start and make: our own and, for root, also nobody, whom servers run as."""
    user = server_user()
    return {os.geteuid(), user[0]} if user else {os.geteuid()}


def _ends_with_us(pid: int) -> bool:
    """Whether a process belongs to our users, by all of its user ids."""
    users = _users(pid)
    return bool(users) and users <= _our_users()


def _users(pid: int) -> set[int]:
    """Real, effective and saved user id; empty if there is no such process. (Its directory in /proc belongs to root for
    many reasons.)
    """
    for line in _lines(Path(f"/proc/{pid}/status")):
        if line.startswith("Uid:"):
            return {int(uid) for uid in line.split()[1:4]}
    return set()


def _link(path: str) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(path)  # noqa: PTH115 - may be no path: "/x (deleted)"
    return ""


def _lines(path: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return path.read_text().splitlines()
    return []


def _nul(path: Path) -> list[str]:
    return path.read_bytes().decode(errors="replace").split("\0")


# ── removing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def remove(remains: Iterable[Leftover]) -> list[str]:
    """Remove them, in order. Returns what could not be removed and why, one line each."""
    problems, failed = [], set()
    for leftover in sorted(remains, key=lambda one: ORDER.index(one.kind)):
        try:
            if leftover.run in failed and Path(leftover.what) == scratch_base() / leftover.run:
                raise OSError("kept, because its journal names what could not be removed")
            REMOVERS[leftover.kind](leftover)
        except (OSError, subprocess.SubprocessError, UsageError) as error:
            detail = getattr(error, "stderr", "") or error
            failed.add(leftover.run)
            problems.append(f"{leftover}: {str(detail).strip()}")
    return problems


def _end(leftover: Leftover) -> None:
    with held(int(leftover.what), leftover.start) as descriptor:
        if descriptor < 0:
            return
        # A database server shuts down cleanly on SIGINT, most others on SIGTERM; the first signal it understands
        # counts.
        for numbers, patience in (((signal.SIGINT, signal.SIGTERM), ORDERLY_MS), ((signal.SIGKILL,), KILL_MS)):
            for number in numbers:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, number)
                    signal.pidfd_send_signal(descriptor, signal.SIGCONT)  # it may be stopped
            if ends(descriptor, patience):
                return
        raise OSError("it does not end, even after SIGKILL")


def _go_on(leftover: Leftover) -> None:
    """Continue a supervisor, which then undoes all that its run made and ends."""
    with held(int(leftover.what), leftover.start) as descriptor:
        if descriptor < 0:
            return
        signal.pidfd_send_signal(descriptor, signal.SIGCONT)
        if not ends(descriptor, UNDO_MS):
            raise OSError("it was continued and is still removing what its run made; run this again in a minute")


def _put_back(leftover: Leftover) -> None:
    cpu, _, was = leftover.what.removeprefix("cpu").partition("=")
    idle_setting.put_back(int(cpu), was)


def _system(*argv: str, check: bool = True) -> int:
    """Run a system command and return its exit status. Raises CalledProcessError if `check` and the status is not 0."""
    done = subprocess.run(argv, check=check, capture_output=True, text=True, timeout=60, env=child_environment())
    return done.returncode


def _unmount(leftover: Leftover) -> None:
    # If some process is inside it, it is detached now, and goes when that process does.
    _system(*mounts.unmounting(leftover.what))


def _detach(leftover: Leftover) -> None:
    backing = " ".join(_lines(Path("/sys/block") / Path(leftover.what).name / "loop" / "backing_file"))
    if not backing.startswith(f"{scratch_base()}/"):
        return  # it went with its mount, and may now belong to somebody else
    _system("losetup", "--detach", leftover.what)


def _remove_namespace(leftover: Leftover) -> None:
    # Remove its interface first, and with it the one at the other end: otherwise the kernel removes them only some time
    # later.
    _system("ip", "-n", leftover.what, "link", "del", "dev", NEAR_END, check=False)
    _system("ip", "netns", "del", leftover.what)


def _remove_group(leftover: Leftover) -> None:
    with contextlib.suppress(FileNotFoundError):
        Path(leftover.what).rmdir()


def _remove_directory(leftover: Leftover) -> None:
    path = Path(leftover.what)
    _refuse_mounted(path)
    if path.parent != scratch_base():
        if not _is_ours(leftover.what, leftover.run):
            raise OSError(
                "it is now a different directory, or its file system is not mounted or is locked. It was left alone; mount and "
                f"unlock it and run this again. If it is gone for good: rm -r {scratch_base() / leftover.run}"
            )
        shutil.rmtree(path)
        return
    with dead_runs.opened_base() as base:
        if base is not None:
            with contextlib.suppress(FileNotFoundError):
                os.close(owned.open_directory(path.name, base))
                shutil.rmtree(path.name, dir_fd=base)


def _drop_schema(leftover: Leftover) -> None:
    name, _, url = leftover.what.partition(" on ")
    file = scratch_base() / journal.NOTES / f"{name}-*.json"
    commands = [note.command for note in dead_runs.dead_notes() if (note.schema, note.url) == (name, url)]
    command = commands[0] if commands else shlex.join(["ciphercost", "clean", "--url", url])
    raise OSError(f"only its server can drop it. Run: {command} (if the server is gone: rm {file})")


def _refuse_mounted(path: Path) -> None:
    if any(Path(mount.point).is_relative_to(path) for mount in mounts.mounts()):
        raise OSError("something is still mounted in it")


REMOVERS = {
    "stopped supervisor": _go_on,
    "process": _end,
    "idle setting": _put_back,
    "mount": _unmount,
    "loop device": _detach,
    "network namespace": _remove_namespace,
    "control group": _remove_group,
    "directory": _remove_directory,
    "schema": _drop_schema,
}


def after(run: str, paths: Sequence[Path] = ()) -> list[str]:
    """Remove what a run left whose supervisor is gone; its controller, the caller, lives. Returns what remains, one
    line each.

    `paths`: what the supervisor was to remove besides, in the order in which it was made.
    """
    problems = remove(
        leftover for leftover in leftovers(run) if leftover.run == run or leftover.run.startswith(f"{run}-")
    )
    for path in reversed(paths):
        try:
            if path.is_symlink() or path.is_file():
                path.unlink()
            elif path.is_dir() and not path.is_relative_to(scratch_base()):
                _refuse_mounted(path)
                shutil.rmtree(path)
        except OSError as error:
            problems.append(f"{path}: {error}")
    named = " ".join(problems)
    return [
        *problems,
        *(f"{path} is still there" for path in paths if os.path.lexists(path) and str(path) not in named),
    ]


def sweep() -> tuple[str, bool]:
    """Find and remove leftovers. Returns the text of `ciphercost clean`, and whether nothing remains. Raises
    UsageError.
    """
    remains = leftovers()
    problems = remove(remains)
    if any(leftover.kind == "stopped supervisor" for leftover in remains):
        rest = [leftover for leftover in leftovers() if leftover not in remains]  # what it could not remove
        remains, problems = [*remains, *rest], [*problems, *remove(rest)]
    failed = {problem.split(": ")[0] for problem in problems}
    lines = [f"removed {leftover}" for leftover in remains if str(leftover) not in failed]
    left = [*(f"could not remove {problem}" for problem in problems), *dead_runs.distrusted()]
    return "\n".join([*(lines + left or ["Nothing is left over."]), *stalled()]), not left
