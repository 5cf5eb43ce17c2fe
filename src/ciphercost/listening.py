"""listening: what can be seen of servers on this machine and on the network: addresses, ports, processes, their crypto library."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import socket
from pathlib import Path

from ciphercost.errors import UsageError


def listener(address: str, port: int, programs: tuple[str, ...]) -> int:
    """The process of one of these programs that listens on a port of this machine; 0 where there is none, or none that we may see.

    A relay or a pooler may be what listens, and its CPU is not the server's: hence `programs`, beginnings of command names.
    """
    if not (address.startswith("127.") or address == "::1"):
        return 0
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                    inodes.add(f"socket:[{fields[9]}]")
    holders = []
    for directory in Path("/proc").glob("[0-9]*/fd"):
        with contextlib.suppress(OSError):
            if inodes & {os.readlink(each) for each in directory.iterdir()}:  # noqa: PTH115 - not a path
                holders.append(int(directory.parent.name))
    return next((pid for pid in sorted(holders) if _command(pid).startswith(programs)), 0)


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def address_of(host: str, port: int) -> str:
    """The first address of a host at which somebody listens, else its first: `localhost` may be ::1, and the server not.

    Raises UsageError for a host that has none.
    """
    try:
        found = [str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except OSError as error:
        raise UsageError(f"the host '{host}' of --url can't be found: {error.strerror or error}") from None
    for address in found if len(found) > 1 else []:
        with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=3):
            return address
    return found[0]


def is_loopback(address: str) -> bool:
    """Whether this is an address of this machine's own that nobody else can answer at; never true of a name. Pure."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback


def crypto_library(pid: int) -> str:
    """`OpenSSL 3.0.17 1 Jul 2025`: what the process has loaded. The cost of encryption is first of all this library's."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            path = line.split(maxsplit=5)[-1]
            if "/libcrypto" in path:
                content = Path(f"/proc/{pid}/root{path}").read_bytes()
                match = re.search(rb"(?:OpenSSL|LibreSSL|BoringSSL) \d[\w.+~-]*\s+\d+ \w{3} \d{4}", content)
                return " ".join(match[0].decode().split()) if match else Path(path).name
    return ""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
