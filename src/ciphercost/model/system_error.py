"""system_error: an error of the operating system in words: what happened, to what, and what to do about it."""

from __future__ import annotations

import errno
import os
import re

ADVICE: dict[int, str] = {
    errno.ENOSPC: "the disk is full, or has no inode left; free some space, or use another disk",
    errno.EDQUOT: "your quota on that disk is used up; free some space, or use another disk",
    errno.EROFS: "the file system is mounted read-only; use another one",
    errno.EIO: "the device failed; the kernel's log (dmesg) may say why",
    errno.ENOENT: "it does not exist, or something removed it meanwhile",
    errno.EACCES: "check the owner and mode of the file and of every directory above it",
    errno.EPERM: "the system does not allow it to this user",
    errno.EMFILE: "this process may not open more files; raise the limit (ulimit -n)",
    errno.ENFILE: "the machine can't open more files; close some programs, or raise fs.file-max",
    errno.ENOMEM: "no memory is left; end other programs, or use a smaller run",
    errno.EAGAIN: "no more processes or locks are allowed now; raise the limit (ulimit -u), or end other programs",
    errno.EFBIG: "the file would be larger than a limit allows (ulimit -f)",
    errno.ENOEXEC: "it is no program for this machine",
}
"""What to do about the errors that have an answer. For others the system's own words are all that is known."""


def words(error: OSError, *, named: bool = False) -> str:
    """`No space left on device: /x; the disk is full …`. `named`: the message names the file already. Pure."""
    where = f": {error.filename}" if error.filename and not named else ""
    advice = ADVICE.get(error.errno or 0, "")
    return f"{error.strerror or error}{where}{advice and f'; {advice}'}"


def advised(text: str) -> str:
    """A message of a system's program (in English), with what to do about the error that it names. Pure."""
    line = " ".join(text.split()) or "it printed nothing"
    fitting = (advice for number, advice in ADVICE.items() if re.search(rf": {re.escape(os.strerror(number))}$", line))
    advice = next(fitting, "")
    return f"{line}{advice and f'; {advice}'}"
