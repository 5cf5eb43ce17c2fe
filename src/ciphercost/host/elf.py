"""elf: what a file's ELF header and notes say: for which machine it is, and its build id. Pure but for the file."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

MACHINES = {3: "x86", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
_NOTE = 4
"""Type of a program header that points to notes."""
_BUILD_ID = 3
"""Type of the note that holds the build id."""


class Elf(NamedTuple):
    """An executable or a library."""

    machine: str
    """`x86_64`, `aarch64`, …"""
    build_id: str
    """In hex; empty if the linker gave it none."""


def read(path: Path) -> Elf:
    """What the file is. Raises ValueError if it is no ELF file of 64 bits in this machine's byte order, OSError if it can't be read."""
    content = path.read_bytes()
    if content[:4] != b"\x7fELF":
        raise ValueError("it is no ELF file")
    if content[4:6] != b"\x02\x01":
        raise ValueError("it is for a machine of 32 bits or of another byte order")
    try:
        (machine,) = struct.unpack_from("<H", content, 18)
        (table,) = struct.unpack_from("<Q", content, 32)
        size, count = struct.unpack_from("<HH", content, 54)
        notes = (_notes(content, table + number * size) for number in range(count))
        build_id = next((note for note in notes if note), "")
    except (struct.error, OverflowError):
        raise ValueError("it is cut off or damaged") from None
    return Elf(MACHINES.get(machine, f"machine {machine}"), build_id)


def _notes(content: bytes, header: int) -> str:
    """The build id among the notes of one program header; empty if it has none."""
    kind, _, offset = struct.unpack_from("<IIQ", content, header)
    (length,) = struct.unpack_from("<Q", content, header + 32)
    if kind != _NOTE:
        return ""
    end = min(offset + length, len(content))
    while offset + 12 <= end:
        named, described, kind = struct.unpack_from("<III", content, offset)
        name = offset + 12
        value = name + (named + 3) // 4 * 4
        if kind == _BUILD_ID and content[name : name + named] == b"GNU\0":
            return content[value : value + described].hex()
        offset = value + (described + 3) // 4 * 4
    return ""
