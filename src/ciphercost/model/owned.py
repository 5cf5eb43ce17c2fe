"""owned: check that only we can have written a directory or file, before we trust, run or remove anything because of it.

Checks use an open descriptor, so that we use exactly what we checked. Symbolic links are never followed.
"""

from __future__ import annotations

import contextlib
import functools
import grp
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

from ciphercost.model.errors import UsageError

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
LARGEST = 1 << 20
"""Bytes of a note that is read; ours have a few lines."""


class Distrusted(UsageError):
    """A directory or a file that somebody else may have written. The message says what is wrong with which path."""


def fault(status: os.stat_result, owners: tuple[int, ...] = (), *, group: int | None = None) -> str:
    """What is wrong with the owner or the mode of something; empty: only we (or `owners`) can have written it. Pure but for our own uid.

    `group`: the one group that may write as well: a user's private one, under the umask 002.
    """
    allowed = {os.geteuid(), *owners}
    if status.st_uid not in allowed:
        return f"it belongs to {user(status.st_uid)}, not to {user(os.geteuid())}"
    writing = stat.S_IWOTH if status.st_gid == group else OTHERS_WRITE
    if status.st_mode & writing:
        return f"others may write to it (mode {stat.S_IMODE(status.st_mode):04o})"
    return ""


def open_directory(path: Path | str, within: int | None = None) -> int:
    """A descriptor of a directory that is ours alone. `within`: the descriptor that a relative path begins at.

    Raises Distrusted for a symbolic link, a foreign owner and a mode that lets others write (our user's private group is no
    other); OSError where there is no such directory.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=within)
    except OSError:
        with contextlib.suppress(OSError):
            if stat.S_ISLNK(os.lstat(path, dir_fd=within).st_mode):
                raise Distrusted(f"{path}: it is a symbolic link") from None
        raise
    if reason := fault(os.fstat(descriptor), group=private_group()):
        os.close(descriptor)
        raise Distrusted(f"{path}: {reason}")
    return descriptor


@contextlib.contextmanager
def opened(path: Path | str, within: int | None = None) -> Iterator[int]:
    """`open_directory`, closed afterwards."""
    descriptor = open_directory(path, within)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def check_above(path: Path) -> None:
    """Raises Distrusted where somebody else could put another directory into the place of this one.

    Each directory above must belong to root or to us; one that others may write to must be sticky, as /tmp is.
    """
    # In a user namespace root's files belong to whom `/` belongs to.
    owners = {0, os.geteuid(), Path("/").stat().st_uid}
    above = path.parent.resolve()
    for parent in (above, *above.parents):
        status = parent.stat()
        if status.st_uid not in owners:
            raise Distrusted(f"{path}: {parent}, above it, belongs to {user(status.st_uid)}, who could replace it")
        if status.st_mode & OTHERS_WRITE and not status.st_mode & stat.S_ISVTX:
            if status.st_gid == private_group() and not status.st_mode & stat.S_IWOTH:
                continue  # a user's private group, by the umask 002
            mode = f"mode {stat.S_IMODE(status.st_mode):04o}"
            raise Distrusted(f"{path}: others may write to {parent}, above it ({mode}), and could replace it")


def private_group() -> int | None:
    """The group that nobody but our own user is in, as many systems make one for each user; None where there is none.

    With the umask 002, which goes with such groups, directories that we make are open to it, and still to us alone.
    """
    return _private(os.geteuid(), os.getegid())


@functools.cache
def _private(uid: int, gid: int) -> int | None:
    try:
        us, group = pwd.getpwuid(uid), grp.getgrgid(gid)
    except KeyError:
        return None
    shared = {*group.gr_mem, *(each.pw_name for each in pwd.getpwall() if each.pw_gid == gid)} - {us.pw_name}
    return gid if group.gr_name == us.pw_name and us.pw_gid == gid and not shared else None


def read(name: str, within: int) -> str:
    """The text of a note of ours in an open directory. Raises FileNotFoundError, OSError, and Distrusted for what isn't our plain file."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=within)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Distrusted(f"{name}: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        reason = fault(status, group=private_group()) or ("" if stat.S_ISREG(status.st_mode) else "it is no plain file")
        if reason:
            raise Distrusted(f"{name}: {reason}")
        return file.read(LARGEST).decode(errors="replace")


def add_line(path: Path, line: str) -> None:
    """Add a line to a note that we alone may write, whatever the umask is. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "w") as file:
        file.write(f"{line}\n")


def user(uid: int) -> str:
    """`user alice`, or `uid 1000` where it has no name."""
    with contextlib.suppress(KeyError):
        return f"user {pwd.getpwuid(uid).pw_name}"
    return f"uid {uid}"
