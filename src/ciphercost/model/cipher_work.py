"""What a cipher has to do: which one, how many bytes at a time, and how many bytes. Records, no logic."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciphercost.model.constrained_types import Count, Ordinal

RECORD_BYTES = 16384
"""The largest TLS record."""
Way = Literal["seal", "open"]


class CipherWork(msgspec.Struct, frozen=True, omit_defaults=True):
    """A cipher whose floor is measured: what it alone costs per byte on this CPU."""

    cipher: str
    """As in PROTOCOL.md: `aes256-cbc`."""
    mac: str = ""
    """What authenticates each unit, as in PROTOCOL.md. Empty: the cipher itself, or nothing."""
    unit: Ordinal = RECORD_BYTES
    """Bytes encrypted at a time."""

    def key(self, way: Way) -> str:
        """The key of this floor in a cell's `floor`: `aes256-gcm_seal`, `aes256-cbc+hmac-sha512/4016_open`."""
        unit = "" if self.unit == RECORD_BYTES else f"/{self.unit}"
        return f"{self.cipher}{f'+{self.mac}' if self.mac else ''}{unit}_{way}"


class Stream(msgspec.Struct, frozen=True, omit_defaults=True):
    """One kind of a server's files, how it is encrypted, and how much of it the server read and wrote."""

    work: CipherWork
    page: Ordinal
    """Bytes of the file in which `work.unit` bytes are encrypted; the others, such as page headers, are not."""
    pieces: bool = False
    """The server encrypts pieces of any length, which cost more per byte than the long ones of `work`."""
    read: Count = 0
    written: Count = 0
    """Bytes of the file in all of `Enciphered.operations`."""

    @property
    def share(self) -> float:
        """Encrypted bytes of each byte in the file."""
        return self.work.unit / self.page


class Enciphered(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the encrypted arm at rest had to decrypt and encrypt."""

    streams: dict[str, Stream]
    """By kind of file, as the server counts: `pages`, `redo log`, …"""
    operations: Count = 0
    """Operations in which the server counted its bytes. 0: nothing was counted."""
