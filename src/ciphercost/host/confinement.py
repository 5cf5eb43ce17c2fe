"""confinement: restricts a process that is about to become a server or an agent. Both gain no privileges and signal nobody
outside; a server also writes only to the run's own directories and opens no TCP connections. Standard library only: the
supervisor process loads it.

It uses Landlock, which needs no rights (Linux 5.13; connections 6.7; signals 6.12). Documentation/userspace-api/landlock.rst
and include/uapi/linux/landlock.h are the sources of all numbers here.
"""

from __future__ import annotations

import ctypes
import os
import signal
import stat

PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""System calls; the same numbers on every architecture."""
VERSION_ONLY = 1
PATH_BENEATH = 1
WRITE_FILE, REFER, TRUNCATE = 1 << 1, 1 << 13, 1 << 14
CHANGES = WRITE_FILE | sum(1 << bit for bit in range(4, 13))
"""Write a file; remove directory or file; make a character device, directory, file, socket, FIFO, block device, link."""
ON_A_FILE = WRITE_FILE | TRUNCATE
CONNECT_TCP = 1 << 1
ABSTRACT_SOCKETS_AND_SIGNALS = 1 << 0 | 1 << 1
COMPLETE = 6
"""The first version of Landlock that restricts all of this."""
EVERYWHERE = "/"
SHARED = ("/dev", "/proc")
"""Where every server may write as far as its rights go: /dev/null, shared memory, and settings of its own process."""

_libc = ctypes.CDLL(None, use_errno=True)


class Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("parent", ctypes.c_int32))


def abi() -> int:
    """The version of Landlock that this kernel offers; 0: none."""
    version: int = _libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(VERSION_ONLY))
    return max(0, version)


def changes(version: int) -> int:
    """The accesses to files that are restricted. `version` 0: there is no Landlock. Pure."""
    if not version:
        return 0
    return CHANGES | (REFER if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0)


def restricts(version: int) -> list[str]:
    """What `enforce` achieves with that version of Landlock, in words. Pure."""
    restrictions = ["no new privileges"]
    if version:
        restrictions.append("databases write only to the run's directories")
    if version >= 4:
        restrictions.append("servers open no TCP connections")
    if version >= 6:
        restrictions.append("no signals to others")
    return restrictions


def rules(writable: list[str], *, connects: bool = False) -> int:
    """A descriptor of rules for `enforce`; -1 if this kernel can enforce none of them. Raises OSError.

    `connects`: it may open TCP connections.

    `writable`: directories and files that may be changed, with everything below them. With `/` no file is restricted, and
    opening one takes no longer; otherwise the kernel checks each (0.6 µs, measured on an AMD EPYC). Call this before a change
    of user, who may be unable to reach them by name.
    """
    version = abi()
    files = 0 if EVERYWHERE in writable else changes(version)
    connections = CONNECT_TCP if version >= 4 and not connects else 0
    scope = ABSTRACT_SOCKETS_AND_SIGNALS if version >= 6 else 0
    if not (files or connections or scope):
        return -1
    wanted = Ruleset(files, connections, scope)
    # An older kernel knows only the first fields.
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _must(_libc.syscall(CREATE_RULESET, ctypes.byref(wanted), ctypes.c_size_t(size), ctypes.c_uint32(0)))
    for path in (*SHARED, *writable) if files else ():
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        allowed = files if stat.S_ISDIR(os.fstat(place).st_mode) else files & ON_A_FILE
        rule = Beneath(allowed, place)
        _must(_libc.syscall(ADD_RULE, ruleset, PATH_BENEATH, ctypes.byref(rule), ctypes.c_uint32(0)))
        os.close(place)
    return ruleset


def enforce(ruleset: int) -> None:
    """Restrict this process, and all that it starts, by these rules, and to the privileges that it has. Raises OSError."""
    _must(_libc.prctl(PR_SET_NO_NEW_PRIVS, *(ctypes.c_ulong(argument) for argument in (1, 0, 0, 0))))
    if ruleset >= 0:
        _must(_libc.syscall(RESTRICT_SELF, ruleset, ctypes.c_uint32(0)))
        os.close(ruleset)


def end_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends; end at once if that has ended. A change of user undoes it. Raises OSError."""
    _must(_libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), *(ctypes.c_ulong(0),) * 3))
    if os.getppid() != parent:
        os._exit(127)


def agents() -> int:
    """The rules of an agent, which connects to servers, and whose files are as its user may have them. Raises OSError."""
    return rules([EVERYWHERE], connects=True)


def _must(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"can't confine the process: {os.strerror(error)}")
    return result
