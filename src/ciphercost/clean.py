"""clean: what runs left behind that ended without their guard: found, shown, removed. What a living run owns is never touched."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from ciphercost import idle
from ciphercost.conditions import link
from ciphercost.guard import (
    CGROUP_PREFIX,
    OUTSIDE_FILE,
    OWNER_FILE,
    OWNER_MARK,
    RUN_MARK,
    cgroup_parents,
    lives,
    scratch_base,
    start_time,
)
from ciphercost.record import is_id

GRACE_SECONDS = 60.0
"""A scratch directory without an owner file may be one that is being made."""
ORDERLY_MS, KILL_MS = 5000, 5000

Kind = Literal["process", "idle setting", "mount", "loop device", "network namespace", "control group", "directory"]
ORDER: tuple[Kind, ...] = (
    "process", "idle setting", "mount", "loop device", "network namespace", "control group", "directory",
)  # fmt: skip
"""In this order they can be removed: each holds what follows it."""


class Leftover(msgspec.Struct, frozen=True):
    """Something of a run whose controller is dead."""

    kind: Kind
    what: str
    """Process number, path or device; of an idle setting `cpu3=0`: the CPU and the value that it had."""
    run: str
    start: str = ""
    """Of a process: when it was started, so that no other of that number is meant."""

    def __str__(self) -> str:
        return f"{self.kind} {self.what} of run {self.run}"


# ── finding ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def leftovers() -> list[Leftover]:
    """Everything left behind that we can see and may remove, in the order of removal."""
    # Before the marks are read: a run that begins meanwhile has its mark first, and then its groups and its links.
    groups = [group for parent in cgroup_parents() for group in parent.glob(f"{CGROUP_PREFIX}*")]
    namespaces = link.left_behind()
    marks = dict(_marked())
    living = {run for run, owner, guards in marks.values() if guards or lives(owner)}
    dead = {path.name: path for path in _dead_directories() if path.name not in living}
    found = [Leftover("directory", str(path), run) for run, path in dead.items()]
    found.extend(Leftover("directory", place, run) for run, path in dead.items() for place in _outside(run, path))
    found.extend(
        Leftover("idle setting", f"cpu{cpu}={was}", run)
        for run, path in dead.items()
        for cpu, was in idle.left_behind(path)
    )
    # PostgreSQL's children write over their environment; but they stand in their data directory.
    runs = {pid: marks[pid][0] if pid in marks else _inside(_link(f"/proc/{pid}/cwd"), dead) for pid in _pids()}
    found.extend(
        Leftover("process", str(pid), run, start_time(pid))
        for pid, run in runs.items()
        if run and run not in living and pid != os.getpid() and _ours(Path(f"/proc/{pid}"))
    )
    # In /proc/mounts a space is \040.
    places = [line.split()[1].encode().decode("unicode_escape") for line in _lines(Path("/proc/mounts"))]
    found.extend(Leftover("mount", place, run) for place in places if (run := _inside(place, dead)))
    backings = {path.parts[3]: " ".join(_lines(path)) for path in Path("/sys/block").glob("loop*/loop/backing_file")}
    found.extend(
        Leftover("loop device", f"/dev/{name}", run)
        for name, file in backings.items()
        if (run := _inside(file.removesuffix(" (deleted)"), dead))
    )
    found.extend(
        Leftover("control group", str(group), group.name.removeprefix(CGROUP_PREFIX))
        for group in groups
        if _ours(group) and not any(group.name.startswith(f"{CGROUP_PREFIX}{run}-") for run in living)
    )
    found.extend(
        Leftover("network namespace", name, name.removeprefix(link.PREFIX).rpartition("-")[0])
        for name in namespaces
        if _ours(link.NAMESPACES / name) and not any(name.startswith(f"{link.PREFIX}{run}-") for run in living)
    )
    found.reverse()  # the newest mount first: it may lie within an older one
    return sorted(found, key=lambda each: ORDER.index(each.kind))


def _marked() -> Iterator[tuple[int, tuple[str, str, bool]]]:
    """(pid, (run, its controller, whether this is the run's guardian)) of each process that carries a run's mark."""
    for pid in _pids():
        try:
            pairs = [each.partition("=") for each in _nul(Path(f"/proc/{pid}/environ"))]
            command = _nul(Path(f"/proc/{pid}/cmdline"))
        except OSError:
            continue
        environment = {name: value for name, _, value in pairs}
        if RUN_MARK in environment:
            # A guardian whose controller is dead is undoing its list: it must be left to.
            guards = any(part.endswith("/guardian.py") for part in command[:4])
            yield pid, (environment[RUN_MARK], environment.get(OWNER_MARK, ""), guards)


def guarded(run: str) -> bool:
    """Whether a guardian still takes down what this run had started."""
    return any(guards for of, _, guards in dict(_marked()).values() if of == run)


def _dead_directories() -> Iterator[Path]:
    base = scratch_base()
    if not base.is_dir() or not _ours(base):
        return
    for path in sorted(base.iterdir()):
        if path.is_symlink() or not path.is_dir():
            continue
        try:
            owner = (path / OWNER_FILE).read_text()
        except FileNotFoundError:
            # Any other name is lost+found, or something of the user's.
            if is_id(path.name) and time.time() - path.stat().st_mtime > GRACE_SECONDS:
                yield path
            continue
        except OSError:
            continue
        if not lives(owner):
            yield path


def _outside(run: str, directory: Path) -> Iterator[str]:
    """What a run has made elsewhere, by its own notes; named as only it would name it."""
    for line in _lines(directory / OUTSIDE_FILE):
        path = Path(line)
        if path.name.startswith(f"ciphercost-{run}-") and path.is_dir() and not path.is_symlink():
            yield line


def _pids() -> list[int]:
    return sorted(int(path.name) for path in Path("/proc").glob("[0-9]*"))


def _inside(place: str, directories: dict[str, Path]) -> str:
    """The run in whose directory this place lies; empty: in none."""
    return next((run for run, path in directories.items() if Path(place).is_relative_to(path)), "") if place else ""


def _ours(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return os.geteuid() in (0, path.lstat().st_uid)
    return False


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


def remove(found: Iterable[Leftover]) -> list[str]:
    """Remove them, in order. Returns what could not be removed and why, one line each."""
    problems = []
    for each in sorted(found, key=lambda one: ORDER.index(one.kind)):
        try:
            REMOVERS[each.kind](each)
        except (OSError, subprocess.SubprocessError) as error:
            detail = getattr(error, "stderr", "") or error
            problems.append(f"{each}: {str(detail).strip()}")
    return problems


def _end(each: Leftover) -> None:
    try:
        descriptor = os.pidfd_open(int(each.what))
    except ProcessLookupError:
        return
    try:
        if start_time(int(each.what)) != each.start:
            return  # ended meanwhile; this is another
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        # A database server ends in order by SIGINT, most others by SIGTERM; the first that is understood counts.
        for numbers, patience in (((signal.SIGINT, signal.SIGTERM), ORDERLY_MS), ((signal.SIGKILL,), KILL_MS)):
            for number in numbers:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, number)
                    signal.pidfd_send_signal(descriptor, signal.SIGCONT)  # it may have been stopped
            if poll.poll(patience):
                return
        raise OSError("it does not end, not even when killed")
    finally:
        os.close(descriptor)


def _put_back(each: Leftover) -> None:
    cpu, _, was = each.what.removeprefix("cpu").partition("=")
    idle.put_back(int(cpu), was)


def _unmount(each: Leftover) -> None:
    done = subprocess.run(["umount", each.what], check=False, capture_output=True, text=True, timeout=60)
    if done.returncode:  # somebody stands in it: it leaves the tree now, and goes when they do
        subprocess.run(["umount", "--lazy", each.what], check=True, capture_output=True, text=True, timeout=60)


def _detach(each: Leftover) -> None:
    backing = " ".join(_lines(Path("/sys/block") / Path(each.what).name / "loop" / "backing_file"))
    if not backing.startswith(f"{scratch_base()}/"):
        return  # it went with its mount, and may be somebody else's by now
    subprocess.run(["losetup", "--detach", each.what], check=True, capture_output=True, text=True, timeout=60)


def _remove_namespace(each: Leftover) -> None:
    # Its card first, and with it the one at the other end: else the kernel takes them away only some time later.
    subprocess.run(
        ["ip", "-n", each.what, "link", "del", "dev", link.NEAR_END], capture_output=True, timeout=60, check=False
    )
    subprocess.run(["ip", "netns", "del", each.what], check=True, capture_output=True, text=True, timeout=60)


def _remove_group(each: Leftover) -> None:
    with contextlib.suppress(FileNotFoundError):
        Path(each.what).rmdir()


def _remove_directory(each: Leftover) -> None:
    if any(line.split()[1].startswith(each.what + "/") for line in _lines(Path("/proc/mounts"))):
        raise OSError("something is still mounted in it")
    shutil.rmtree(each.what)


REMOVERS = {
    "process": _end,
    "idle setting": _put_back,
    "mount": _unmount,
    "loop device": _detach,
    "network namespace": _remove_namespace,
    "control group": _remove_group,
    "directory": _remove_directory,
}


def sweep() -> str:
    """Find, remove, and say what was done: the text of `ciphercost clean`."""
    found = leftovers()
    if not found:
        return "Nothing is left over."
    problems = remove(found)
    failed = {problem.split(": ")[0] for problem in problems}
    lines = [f"removed {each}" for each in found if str(each) not in failed]
    return "\n".join([*lines, *(f"could not remove {problem}" for problem in problems)])
