"""policy: the kernel's file encryption (fscrypt) through its own ioctls: keys of file systems, policies of directories.
Uses no tool.

The kernel accepts a policy of any mode; only creating a file shows whether it has the ciphers.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ciphercost.model.errors import RunError

SET_POLICY, GET_POLICY_EX, ADD_KEY, REMOVE_KEY = 0x800C6613, 0xC0096616, 0xC0506617, 0xC0406618
VERSION = 2
PAD_32 = 3
BY_IDENTIFIER = 2
KEY_BYTES, IDENTIFIER_BYTES = 64, 16
NOT_ENCRYPTED = (errno.ENODATA, errno.ENOTTY, errno.EOPNOTSUPP, errno.ENOSYS)
FILES_BUSY = 1
POLICY, KEY_SPECIFIER = "<BBBBB3x16s", "<I4x16s16x"


class Mode(msgspec.Struct, frozen=True):
    """How contents and names are encrypted."""

    contents: int
    names: int
    words: str
    kernel: str
    """The kernel's name of the cipher for contents."""


MODES = {
    "aes-256-xts": Mode(1, 4, "AES-256-XTS, names AES-256-CBC-CTS", "xts(aes)"),
    "adiantum": Mode(9, 9, "Adiantum, contents and names", "adiantum(xchacha12,aes)"),
    "aes-128-cbc": Mode(5, 6, "AES-128-CBC-ESSIV, names AES-128-CBC-CTS", "essiv(cbc(aes),sha256)"),
    "aes-256-hctr2": Mode(1, 10, "AES-256-XTS, names AES-256-HCTR2", "xts(aes)"),
}


class Policy(msgspec.Struct, frozen=True):
    """The policy of one file or directory."""

    contents: int
    names: int
    identifier: bytes
    """Identifier of its master key."""


def get(path: Path) -> Policy | None:
    """The policy of a file or a directory; None: it has none. Policies of version 1 have no identifier. Raises OSError."""
    asked = bytearray(struct.pack("<Q", 24) + bytes(24))
    try:
        with _opened(path) as descriptor:
            fcntl.ioctl(descriptor, GET_POLICY_EX, asked)
    except OSError as error:
        if error.errno in NOT_ENCRYPTED:
            return None
        raise
    version, contents, names, *_ = asked[8:]
    return Policy(contents, names, bytes(asked[16:32]) if version == VERSION else b"")


def make(directory: Path, mode: Mode, identifier: bytes) -> None:
    """Encrypt everything that will be made in this empty directory. Raises RunError."""
    policy = struct.pack(POLICY, VERSION, mode.contents, mode.names, PAD_32, 0, identifier)
    try:
        with _opened(directory) as descriptor:
            fcntl.ioctl(descriptor, SET_POLICY, policy)
    except OSError as error:
        raise RunError(f"the kernel rejects a policy of {mode.words} for {directory}: {error.strerror}") from None


def add_key(place: Path, key: bytes) -> bytes:
    """Give the file system of `place` a master key. Returns its identifier. Raises RunError."""
    asked = bytearray(struct.pack(KEY_SPECIFIER, BY_IDENTIFIER, bytes(16)) + struct.pack("<II32x", len(key), 0) + key)
    try:
        with _opened(place) as descriptor:
            fcntl.ioctl(descriptor, ADD_KEY, asked)
    except OSError as error:
        raise RunError(f"the file system at {place} rejects the key: {error.strerror}") from None
    return bytes(asked[8 : 8 + IDENTIFIER_BYTES])


def remove_key(place: Path, identifier: bytes) -> None:
    """Remove the key and lock everything under it. Raises RunError if a file under it is still open."""
    asked = bytearray(struct.pack(KEY_SPECIFIER, BY_IDENTIFIER, identifier) + bytes(24))
    try:
        with _opened(place) as descriptor:
            fcntl.ioctl(descriptor, REMOVE_KEY, asked)
    except OSError as error:
        raise RunError(f"the key can't be removed from the file system at {place}: {error.strerror}") from None
    if struct.unpack_from("<I", asked, 40)[0] & FILES_BUSY:
        raise RunError(f"the key was removed from the file system at {place}, but files in it are still open")


def why_no_file(directory: Path) -> str:
    """Why no file, or no encrypted file, can be created there; empty: it can. Removes what it creates."""
    path = directory / "a file to try"
    try:
        path.touch(mode=0o600, exist_ok=False)
        policy = get(path)
        path.unlink()
    except OSError as error:
        lacks = " (this kernel lacks a cipher for it)" if error.errno == errno.ENOPKG else ""
        return f"{errno.errorcode.get(error.errno or 0, 'error')}, {error.strerror}{lacks}"
    return "" if policy else "a file made there is not encrypted"


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
