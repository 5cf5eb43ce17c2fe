"""ports: inspects servers on this machine and on the network: addresses, ports, processes, their crypto library."""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import os
import re
import socket
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from ciphercost.host import file_stamp, listeners
from ciphercost.host.listeners import ListeningSocket, listening
from ciphercost.host.procfs import tree
from ciphercost.model.errors import RunError, UsageError

LOOPBACK = "127.0.0.1"
"""Where servers that ciphercost starts listen, unless the run names another address."""
MOST_ADDRESSES = 8
"""How many of a host's addresses are tried in turn."""
VERSION = re.compile(rb"\w+ \d[\w.+~-]*\s+\d+ \w{3} \d{4}")
"""Of a cryptographic library, from its name."""
_versions: dict[tuple[int, ...], str] = {}
"""What libraries report, by device, inode, size and time of change."""
PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
SPARE_PORTS = 1000
"""Ports that the load, witnesses and other programs need beside the idle connections."""
LONGEST_NAME = 64
"""Bytes of a process's name in /proc; Linux's own names have at most 15, those of kernel threads more."""
ROUTES = Path("/proc/net/fib_trie")
"""The kernel's table of IPv4 routes. It tells this machine's own addresses from others, which can sometimes be bound too."""


def listener(address: str, port: int, programs: tuple[str, ...]) -> int:
    """The process of one of these programs that accepts connections to a port of a loopback address; 0 if there is none, or none
    that we may see. Another server may listen on the same port of another address.

    A relay or a pooler may be listening, and its CPU is not the server's: hence `programs`, prefixes of command names.
    """
    if not is_loopback(address):
        return 0
    inodes = {accepting.inode for accepting in _accepting(address, port)}
    for pid in sorted(map(int, filter(str.isdigit, os.listdir("/proc")))) if inodes else []:  # noqa: PTH208 - a hot place
        with contextlib.suppress(OSError):
            if command(pid).startswith(programs) and inodes & open_sockets(pid):
                return _first(pid, inodes, programs)
    return 0


def _accepting(address: str, port: int) -> list[ListeningSocket]:
    """The sockets that get the connections to `address`:`port`. The kernel prefers one of the very address to IPv4's wildcard, and that
    to IPv6's, which may not take IPv4 at all.
    """
    found = listening(port)
    exact, *wildcards = _places(address)
    for places in (exact, *wildcards):
        if sockets := [listening_socket for listening_socket in found if listening_socket.address in places]:
            return sockets
    return []


def sole_listener(places: Iterable[tuple[str, int]]) -> int:
    """The process that listens at all of these addresses and ports. 0: none that we may see, or several, which are several servers: their
    CPU time can't be attributed.
    """
    pids = {listener(address, port, ("",)) for address, port in places}
    return pids.pop() if len(pids) == 1 else 0


def _first(pid: int, inodes: set[str], programs: tuple[str, ...]) -> int:
    """The process from which this one has its listening socket: workers inherit it, and their numbers may be lower."""
    with contextlib.suppress(OSError, ValueError):
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        if parent > 1 and command(parent).startswith(programs) and inodes & open_sockets(parent):
            return _first(parent, inodes, programs)
    return pid


class PortOwner(msgspec.Struct, frozen=True):
    """Who accepts connections to a port of one address."""

    ours: bool
    """Whether the process in question, or one below it, does."""
    others: str = ""
    """Who else does, as text for messages; empty: nobody."""


def port_owner(port: int, root: int, uid: int, address: str = LOOPBACK) -> PortOwner:
    """Who accepts connections to `address`:`port`. Ours are process `root`, which runs as user `uid`, and all below it.

    With SO_REUSEPORT several sockets may share a port, and each connection goes to one of them. If we may not look into
    our server's process (root without CAP_SYS_PTRACE), the socket's user decides. If the kernel lists no sockets,
    nothing can be checked, and all count as ours.
    """
    if not listeners.available():
        return PortOwner(ours=True)
    takes = set().union(*_places(address))
    sockets = {
        listening_socket.inode: listening_socket.uid
        for listening_socket in listening(port)
        if listening_socket.address in takes
    }
    if not sockets:
        return PortOwner(ours=False)
    own_inodes, hidden = set(), False
    for pid in tree(root):
        try:
            own_inodes |= open_sockets(pid)
        except PermissionError:
            hidden = True
        except OSError:
            continue
    foreign = {
        inode: user for inode, user in sockets.items() if inode not in own_inodes and not (hidden and user == uid)
    }
    return PortOwner(len(foreign) < len(sockets), _who(foreign) if foreign else "")


def _words(packed: bytes) -> str:
    """An address as /proc/net/tcp writes it: each four bytes in the machine's order. Pure."""
    return "".join(
        f"{int.from_bytes(packed[start : start + 4], sys.byteorder):08X}" for start in range(0, len(packed), 4)
    )


def _places(address: str) -> list[set[str]]:
    """Where a socket may listen, as the kernel writes it, and accept connections to an address; what it prefers first. Pure.

    A server may also use IPv6's wildcard, with or without accepting IPv4 connections.
    """
    parsed = ipaddress.ip_address(written(ipaddress.ip_address(address.partition("%")[0]).packed))
    own, any6 = {_words(parsed.packed)}, {_words(bytes(16))}
    if parsed.version == 6:
        return [own, any6]
    return [own | {_words(bytes(10) + b"\xff\xff" + parsed.packed)}, {_words(bytes(4))}, any6]


def open_sockets(pid: int) -> set[str]:
    """Inodes of a process's sockets. Raises OSError."""
    inodes = set()
    for descriptor in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 - a hot place
        with contextlib.suppress(FileNotFoundError):
            target = os.readlink(f"/proc/{pid}/fd/{descriptor}")  # noqa: PTH115
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    return inodes


def _who(sockets: Mapping[str, int]) -> str:
    """The processes that hold these sockets, as text for messages; their users if we may not see more."""
    names = []
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if open_sockets(int(directory.name)) & sockets.keys():
                names.append(f"{command(int(directory.name))} (process {directory.name})")
    return ", ".join(names) or f"a process of uid {', '.join(map(str, sorted(set(sockets.values()))))}"


def command(pid: int) -> str:
    """The name of a process; empty if it has ended. `listener` asks for those of all processes, so this opens no buffered file."""
    try:
        file = os.open(f"/proc/{pid}/comm", os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.read(file, LONGEST_NAME).decode(errors="replace").strip()
    except OSError:
        return ""
    finally:
        os.close(file)


def address_of(host: str, port: int) -> str:
    """The first address of a host at which a server listens, else its first one: `localhost` may be ::1 while the
    server is not.

    Raises UsageError for a host that has none.
    """
    try:
        addresses = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except OSError as error:
        raise UsageError(f"--url: can't find the host '{host}': {error.strerror or error}") from None
    for address in addresses[:MOST_ADDRESSES] if len(addresses) > 1 else []:
        with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=3):
            return address
    return addresses[0]


@functools.lru_cache(maxsize=1024)  # a packet capture asks twice for each packet
def written(packed: bytes) -> str:
    """The text of an address that the kernel or a packet holds; IPv4 in IPv6 as IPv4. Pure."""
    parsed = ipaddress.ip_address(packed)
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


def is_loopback(address: str) -> bool:
    """Whether this is a loopback address, which nobody else can answer at; never true of a name. Pure."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return (getattr(parsed, "ipv4_mapped", None) or parsed).is_loopback


def crypto_library(pid: int) -> str:
    """`OpenSSL 3.0.17 1 Jul 2025`: the library that the process has loaded. It has the largest effect on the cost of
    encryption.
    """
    with contextlib.suppress(OSError):
        for path in mapped(pid):
            if "/libcrypto" in path:
                return library_version(Path(f"/proc/{pid}/root{path}")) or Path(path).name
    return ""


def mapped(pid: int) -> list[str]:
    """The files that a process has mapped, each once, in the order of their addresses. Raises OSError if it has ended."""
    lines = filter(None, Path(f"/proc/{pid}/maps").read_text().split("\n"))
    return list(dict.fromkeys(line.split(maxsplit=5)[-1] for line in lines))


def library_version(file: Path) -> str:
    """`OpenSSL 3.0.17 1 Jul 2025`: what this libcrypto reports as its version; empty if it reports none. Raises OSError."""
    same = file_stamp.of(file)
    if same not in _versions:
        _versions[same] = _version_in(file.read_bytes())
    return _versions[same]


def _version_in(content: bytes) -> str:
    """The first version in a library of some megabytes. Its names are looked for first: an expression alone takes a hundred times longer. Pure."""
    versions = []
    for name in (b"OpenSSL ", b"LibreSSL ", b"BoringSSL "):
        at = content.find(name)
        while at >= 0:
            if match := VERSION.match(content, at):
                versions.append((at, " ".join(match[0].decode().split())))
                break
            at = content.find(name, at + 1)
    return min(versions)[1] if versions else ""


def is_own(address: str, table: Path = ROUTES) -> bool:
    """Whether an IPv4 address belongs to this machine, so that a server can listen on it."""
    try:
        local, broadcast = _routes(table.read_text())
    except OSError:
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind((address, 0))
            return True
        return False
    parsed = ipaddress.IPv4Address(address)
    return parsed not in broadcast and any(parsed in network for network in local)


def _routes(table: str) -> tuple[list[ipaddress.IPv4Network], set[ipaddress.IPv4Address]]:
    """The machine's own networks, most of them single addresses, and its broadcast addresses. Pure.

    The kernel's table names an address (`|-- 127.0.0.0`), then a line for each kind of route to it (`/8 host LOCAL`).
    """
    local: list[ipaddress.IPv4Network] = []
    broadcast: set[ipaddress.IPv4Address] = set()
    address = "0.0.0.0"  # noqa: S104 - replaced by the first line
    for words in map(str.split, table.splitlines()):
        if words[:1] == ["|--"]:
            address = words[1]
        elif words[-1:] == ["LOCAL"]:
            local.append(ipaddress.IPv4Network(address + words[0]))
        elif words[-1:] == ["BROADCAST"]:
            broadcast.add(ipaddress.IPv4Address(address))
    return local, broadcast


def free_port(address: str = LOOPBACK) -> int:
    """A port of this address that is free now. Raises RunError if this machine no longer has the address."""
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError as error:
            raise RunError(f"no server can listen on {address}: {error.strerror or error}") from None
        port: int = probe.getsockname()[1]
        return port


def listening_at(address: str) -> socket.socket:
    """A socket that listens on a free port of this address, IPv4 or IPv6. Raises OSError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, 0), family=family)


def free_ports() -> int:
    """Client ports for connections to one server, without those that others need; 0: unknown."""
    try:
        low, high = map(int, PORT_RANGE.read_text().split())
    except (OSError, ValueError):
        return 0
    return max(1, high - low + 1 - SPARE_PORTS)
