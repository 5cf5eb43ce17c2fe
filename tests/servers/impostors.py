"""impostors: servers that ask each client for its password in a form that they can read. Each records what it was sent."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from listening import Listener

PASSWORD = "correct-horse"
LEGACY_HASH = b"tilXrUJVmQ."
"""The password as Firebird's Legacy_Auth hashes it: crypt(3) with the salt 9z, which is the same everywhere."""
NONCE = b"abcdefghijklmnopqrst"
SECONDS, MOMENT, PATIENCE = 6.0, 0.5, 30.0
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PUBLIC = KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
Speak = Callable[["Line"], None]


@contextlib.contextmanager
def another_machines() -> Iterator[str]:
    """An address of this machine that is not loopback: its own or, if it has none, and for root, a temporary one.
    Empty: none.
    """
    if own := _own_address():
        yield own
        return
    # From a range for documentation (RFC 5737): the first that no other test has.
    for spare in (f"198.51.100.{number}" for number in range(9, 99) if os.geteuid() == 0):
        address = ["ip", "address", "add", f"{spare}/32", "dev", "lo"]
        if subprocess.run(address, check=False, capture_output=True).returncode:
            continue
        try:
            yield spare
        finally:
            subprocess.run(["ip", "address", "del", *address[3:]], check=True, capture_output=True)
        return
    yield ""


def _own_address() -> str:
    """The source address of packets to other machines; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect(("192.0.2.1", 9))
        address = str(probe.getsockname()[0])
        return "" if address.startswith("127.") else address
    return ""


class Line:
    """One client's connection."""

    def __init__(self, client: socket.socket, patience: float = MOMENT) -> None:
        self.client = client
        self.patience = patience
        self.heard = bytearray()
        self.answered = 0
        """Number of the client's messages that the rogue has answered."""

    def send(self, data: bytes) -> None:
        self.client.sendall(data)

    def read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.client.recv(count - len(data))
            if not part:
                raise OSError("hung up")
            self.heard += part
            data += part
        return data

    def some(self) -> bytes:
        """Read what has arrived, at least one byte."""
        part = self.client.recv(1 << 16)
        if not part:
            raise OSError("hung up")
        self.heard += part
        return part

    def rest(self) -> None:
        """Read whatever else arrives, until nothing more arrives for a moment."""
        self.client.settimeout(self.patience)
        while part := self.client.recv(1 << 16):
            self.heard += part
            self.client.settimeout(MOMENT)


class Rogue(Listener):
    """Listens on an address; `heard`: what each client has sent."""

    def __init__(self, speak: Speak, host: str, patience: float = MOMENT) -> None:
        """`patience`: seconds that a client may take to send what must be heard; a busy machine needs more than a moment."""
        self._speak, self._patience = speak, patience
        self.lines: list[Line] = []
        super().__init__(host)

    def __exit__(self, *_: object) -> None:
        self.finish()

    def serve(self, connection: socket.socket) -> None:
        connection.settimeout(max(self._patience, SECONDS / 2))
        self.lines.append(Line(connection, self._patience))
        self._speak(self.lines[-1])

    def heard(self) -> bytes:
        """Everything that its clients have sent."""
        return b"".join(bytes(line.heard) for line in self.lines)

    def has_learned_it(self) -> bool:
        """Whether the password arrived, in whatever form."""
        plain = PASSWORD.encode()
        for line in self.lines:
            heard = bytes(line.heard)
            if plain in heard or LEGACY_HASH in heard:
                return True
            for at in (each.end() for each in re.finditer(rb"\x00\x01\x00.(?=.{256})", heard, re.DOTALL)):
                for scheme in (_oaep(), padding.PKCS1v15()):
                    with contextlib.suppress(ValueError):
                        opened = KEY.decrypt(heard[at : at + 256], scheme)
                        mask = (NONCE * 20)[: len(opened)]
                        if plain in bytes(each ^ other for each, other in zip(opened, mask, strict=True)):
                            return True
        return False


def _oaep() -> padding.OAEP:
    return padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)


# ── PostgreSQL ────────────────────────────────────────────────────────────────────────────────────────────────────────


def postgres(asks: bytes) -> Speak:
    """Answer the start message with these bytes."""

    def speak(line: Line) -> None:
        while True:
            (length,) = struct.unpack(">i", line.read(4))
            (code,) = struct.unpack(">i", line.read(length - 4)[:4])
            if code >> 16 == 3:
                break
            line.send(b"N")
        line.send(asks)
        line.rest()

    return speak


def asking(code: int, body: bytes = b"", *, length: int = 0) -> bytes:
    return b"R" + struct.pack(">ii", length or 8 + len(body), code) + body


POSTGRES: dict[str, Speak] = {
    "cleartext": postgres(asking(3)),
    # A driver that does not count what it reads finds a second request within the first.
    "cleartext within md5": postgres(asking(5, b"salt" + asking(3), length=100)),
    "cleartext within SASL": postgres(asking(10, b"SCRAM-SHA-256\0\0" + asking(3), length=100)),
    "after let in": postgres(asking(0) + asking(3) + b"Z\0\0\0\5I"),
}

# ── MySQL and MariaDB ─────────────────────────────────────────────────────────────────────────────────────────────────

FLAGS = 0x000FA20F | 1 << 24 | 1 << 21 | 1 << 19
"""Everything that a client may want, without TLS."""


def packet(number: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "little") + bytes([number]) + body


def mysql(
    plugin: str,
    *answers: bytes,
    version: str = "8.0.36",
    flags: int = FLAGS,
    length: int = 21,
    seed: bytes = NONCE[8:] + b"\0",
    end: bytes = b"\0",
    ahead: bytes = b"",
) -> Speak:
    """Greet with a plugin, then send each answer after the client's next packet.

    `length`: the length that the greeting gives for its nonce; `seed`: the second part of the nonce; `end`: what
    follows the plugin's name; `ahead`: packets sent together with the greeting.
    """

    def speak(line: Line) -> None:
        body = b"\x0a" + version.encode() + b"\0" + struct.pack("<I", 7) + NONCE[:8] + b"\0"
        body += struct.pack("<HBHHB", flags & 0xFFFF, 45, 2, flags >> 16, length) + bytes(10) + seed
        line.send(packet(0, body + plugin.encode() + end) + ahead)
        for answer in answers:
            head = line.read(4)
            line.read(int.from_bytes(head[:3], "little"))
            line.answered += 1
            line.send(packet(head[3] + 1, answer))
        line.rest()

    return speak


def switch(plugin: str, data: bytes = NONCE + b"\0") -> bytes:
    return b"\xfe" + plugin.encode() + b"\0" + data


SHA2, NATIVE = "caching_sha2_password", "mysql_native_password"
MYSQL: dict[str, Speak] = {
    "caching_sha2": mysql(SHA2, b"\x01\x04", b"\x01" + PUBLIC),
    "switch to caching_sha2": mysql(NATIVE, switch(SHA2), b"\x01\x04", b"\x01" + PUBLIC),
    "sha256 in the greeting": mysql("sha256_password", b"\x01" + PUBLIC, b"\x01" + PUBLIC),
    "sha256": mysql(NATIVE, switch("sha256_password"), b"\x01" + PUBLIC),
    "clear in the greeting": mysql("mysql_clear_password"),
    "clear": mysql(NATIVE, switch("mysql_clear_password", b"")),
    "dialog": mysql(NATIVE, switch("dialog", b"\x04Password: ")),
    "dialog in the greeting": mysql("dialog"),
    "of MariaDB": mysql(NATIVE, switch("mysql_clear_password", b""), version="5.5.5-10.11.6-MariaDB"),
    "of MariaDB, dialog": mysql(NATIVE, switch("dialog", b"\x04Password: "), version="5.5.5-10.11.6-MariaDB"),
}

LET_IN_MYSQL = b"\0\0\0\2\0\0\0"
OF_MARIADB = "5.5.5-10.11.6-MariaDB"
CLEAR = "mysql_clear_password"
SWITCH_TO_CLEAR = switch(CLEAR, b"")
OLD_LOGIN = FLAGS & ~(1 << 19 | 1 << 9)
"""Neither PLUGIN_AUTH nor PROTOCOL_41."""
ODD_GREETINGS: dict[str, Speak] = {
    # A length above 127 is negative to a driver that reads a signed byte: it finds the name at a different position.
    "nonce of 128": mysql(CLEAR, version=OF_MARIADB, length=128),
    "nonce of 255": mysql(CLEAR, length=255),
    "nonce of 255, dialog": mysql("dialog", version=OF_MARIADB, length=255),
    "nonce of 255, padded": mysql(CLEAR, version=OF_MARIADB, length=255, end=bytes(300)),
    "nonce of 255, padded by a harmless name": mysql(
        CLEAR, version=OF_MARIADB, length=255, end=b"\0" + bytes(213) + NATIVE.encode() + b"\0"
    ),
    "nonce of 30": mysql(f"{'x' * 9}{NATIVE}\0{CLEAR}", length=30),
    "nonce of 0, cut short": mysql(CLEAR, length=0, seed=b"abc\0"),
    "nonce cut short": mysql(CLEAR, version=OF_MARIADB, seed=b"abc\0"),
    "a NUL before the name": mysql("\0" + CLEAR, version=OF_MARIADB),
    "no name": mysql("", SWITCH_TO_CLEAR),
    "name without its end": mysql(CLEAR, end=b""),
    "two names": mysql(f"{NATIVE}\0{CLEAR}", SWITCH_TO_CLEAR),
    "before 4.1: 3.23": mysql("", LET_IN_MYSQL, version="3.23.58", flags=OLD_LOGIN, end=b""),
    "before 4.1: 4.0": mysql("", NONCE + b"\0abc", version="4.0.0", flags=OLD_LOGIN, end=b""),
    "before 4.1: 4.1.0": mysql("", b"\0" + NONCE + b"\0ab", version="4.1.0", flags=OLD_LOGIN, end=b""),
    "let in ahead of the answer": mysql(NATIVE, SWITCH_TO_CLEAR, ahead=packet(1, LET_IN_MYSQL)),
    "let in ahead, of MariaDB": mysql(NATIVE, SWITCH_TO_CLEAR, version=OF_MARIADB, ahead=packet(2, LET_IN_MYSQL)),
    "let in, then asked": mysql(NATIVE, LET_IN_MYSQL, SWITCH_TO_CLEAR, version=OF_MARIADB),
    "asked after fast authentication": mysql(SHA2, b"\x01\x03", SWITCH_TO_CLEAR),
}
MYSQL |= ODD_GREETINGS


def asking_for_a_file(path: str, version: str) -> Speak:
    """Let the client in, and answer its first statement with a request for a file of the client's machine."""
    return mysql(NATIVE, LET_IN_MYSQL, b"\xfb" + path.encode(), version=version)


# ── Firebird ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def xdr(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data + bytes(-len(data) % 4)


def firebird(*answers: bytes) -> Speak:
    """Send one of these after each message of the client."""

    def speak(line: Line) -> None:
        for answer in answers:
            part = line.client.recv(1 << 16)
            line.heard += part
            line.send(answer)
        line.rest()

    return speak


def accept(version: int) -> bytes:
    return struct.pack(">iiii", 3, version if version < 11 else version | -0x8000, 1, 4)


LET_IN = struct.pack(">iiii", 9, 0, 0, 0) + xdr(b"") + struct.pack(">i", 0)
LEGACY = struct.pack(">i", 92) + xdr(b"") + xdr(b"Legacy_Auth") + xdr(b"Legacy_Auth") + xdr(b"")
FIREBIRD: dict[str, Speak] = {
    "protocol 10": firebird(accept(10)),
    "protocol 12": firebird(accept(12)),
    "legacy": firebird(
        struct.pack(">iiii", 98, 13 | -0x8000, 1, 4) + xdr(b"") + xdr(b"Legacy_Auth") + struct.pack(">i", 0) + xdr(b"")
    ),
    "legacy later": firebird(
        struct.pack(">iiii", 98, 13 | -0x8000, 1, 4) + xdr(b"") + xdr(b"Srp") + struct.pack(">i", 0) + xdr(b""),
        LEGACY,
    ),
    "legacy at the end": firebird(
        struct.pack(">iiii", 98, 13 | -0x8000, 1, 4) + xdr(b"") + xdr(b"Srp") + struct.pack(">i", 0) + xdr(b""),
        LET_IN,
        LEGACY,
    ),
}

# ── Valkey ────────────────────────────────────────────────────────────────────────────────────────────────────────────

VALKEY: dict[str, Speak] = {
    # A client sends its password unexpected_input, with its first command or never.
    "silent": Line.rest,
    "let in": firebird(b"*2\r\n$7\r\nversion\r\n$5\r\n8.1.1\r\n"),
    "asking for it": firebird(b"-NOAUTH HELLO must be called with the client already authenticated\r\n"),
}
