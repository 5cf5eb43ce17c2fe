"""Check that only this user can have written a directory or file, before ciphercost trusts, runs or removes anything in it.

The checks use an open descriptor, so that ciphercost uses exactly what it checked. They never follow symbolic links.
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
"""Most bytes to read of a note; ciphercost's notes have a few lines."""


class Distrusted(UsageError):
    """Somebody else may have written a directory or file. The message has the path and the reason."""


def fault(status: os.stat_result, owners: tuple[int, ...] = (), *, group: int | None = None) -> str:
    """What is wrong with an owner or mode, or "": then only this user (or `owners`) can have written it.

    `group`: a group that may write as well: the user's private group, under the umask 002.
    """
    allowed = {os.geteuid(), *owners}
    if status.st_uid not in allowed:
        return f"belongs to {user(status.st_uid)}, not to {user(os.geteuid())}"
    writing = stat.S_IWOTH if status.st_gid == group else OTHERS_WRITE
    if status.st_mode & writing:
        return f"others may write to it (mode {stat.S_IMODE(status.st_mode):04o})"
    return ""


def open_directory(path: Path | str, within: int | None = None) -> int:
    """Open a directory that only this user can write to. `within`: a directory's descriptor, at which a relative path begins.

    Raises Distrusted for a symbolic link, a foreign owner or a mode that lets others write (the user's private group may
    write), and OSError if there is no such directory.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=within)
    except OSError:
        with contextlib.suppress(OSError):
            if stat.S_ISLNK(os.lstat(path, dir_fd=within).st_mode):
                raise Distrusted(f"{path}: is a symbolic link") from None
        raise
    if reason := fault(os.fstat(descriptor), group=private_group()):
        os.close(descriptor)
        raise Distrusted(f"{path}: {reason}")
    return descriptor


@contextlib.contextmanager
def opened(path: Path | str, within: int | None = None) -> Iterator[int]:
    """`open_directory` as a context that closes the descriptor."""
    descriptor = open_directory(path, within)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def check_above(path: Path) -> None:
    """Raises Distrusted if somebody else could replace this directory.

    Each directory above must belong to root or to this user; one that others may write to must be sticky, as /tmp is.
    """
    # In a user namespace, root's files belong to the owner of `/`.
    owners = {0, os.geteuid(), Path("/").stat().st_uid}
    above = path.parent.resolve()
    for parent in (above, *above.parents):
        status = parent.stat()
        if status.st_uid not in owners:
            raise Distrusted(
                f"{path}: the directory above it, {parent}, belongs to {user(status.st_uid)}, who could replace it"
            )
        if status.st_mode & OTHERS_WRITE and not status.st_mode & stat.S_ISVTX:
            if status.st_gid == private_group() and not status.st_mode & stat.S_IWOTH:
                continue  # a user's private group, by the umask 002
            mode = f"mode {stat.S_IMODE(status.st_mode):04o}"
            raise Distrusted(
                f"{path}: others may write to the directory above it, {parent} ({mode}), and could replace it"
            )


def private_group() -> int | None:
    """The group whose only member is this user, as many systems create for each user; None if there is none.

    Systems with such groups use the umask 002: the group may write to new directories, and is still this user alone.
    """
    return _private(os.geteuid(), os.getegid())


@functools.cache
def _private(uid: int, gid: int) -> int | None:
    try:
        us, group = pwd.getpwuid(uid), grp.getgrgid(gid)
    except KeyError:
        return None
    shared = {*group.gr_mem, *(account.pw_name for account in pwd.getpwall() if account.pw_gid == gid)} - {us.pw_name}
    return gid if group.gr_name == us.pw_name and us.pw_gid == gid and not shared else None


def read(name: str, within: int) -> str:
    """Read a note of ciphercost in an open directory. Raises FileNotFoundError, OSError, or Distrusted if it isn't this user's plain file."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=within)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Distrusted(f"{name}: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        reason = fault(status, group=private_group()) or ("" if stat.S_ISREG(status.st_mode) else "is not a plain file")
        if reason:
            raise Distrusted(f"{name}: {reason}")
        return file.read(LARGEST).decode(errors="replace")


def add_line(path: Path, line: str, *, on_disk: bool = False) -> None:
    """Append a line to a note with mode 0600, whatever the umask is. `on_disk`: return when it would survive a power cut.

    Raises OSError.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "w") as file:
        file.write(f"{line}\n")
        if on_disk:
            file.flush()
            os.fsync(file.fileno())
            to_disk(path.parent)


def to_disk(directory: Path) -> None:
    """Write a directory's entries to disk. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def user(uid: int) -> str:
    """`user alice`, or `uid 1000` if it has no name."""
    with contextlib.suppress(KeyError):
        return f"user {pwd.getpwuid(uid).pw_name}"
    return f"uid {uid}"
