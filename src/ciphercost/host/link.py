"""link: a link of given bandwidth and MTU between agent and server: two interfaces, most often a veth pair, with the agent in a
network namespace behind one of them.

The server stays on 127.0.0.1, and the agent still connects to 127.0.0.1: in its namespace that address lies across the
link. So neither engines nor agents know about it, and no relay is involved. The server sees a client from 127.0.0.0/8.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import msgspec

from ciphercost.host.journal import Entry
from ciphercost.host.namespaces import NAMESPACES, NEAR_END, PREFIX
from ciphercost.host.supervisor import Supervisor
from ciphercost.model.errors import RunError, UsageError

SERVER = "127.0.0.1"
DEVICES = Path("/sys/class/net")
REMOVE = 'path="$1"; shift; "$@"; status=$?; [ ! -e "$path" ] || exit "${status:-1}"'
"""Succeeds also if somebody else has removed it."""
MTU = 1500
"""Default: Ethernet's."""
FRAME = 14
"""Bytes of a frame's header, which the shaper counts."""
LEAST_BURST = 32 << 10
"""Bytes that a link from 26 Mbit/s on may send at once: a little over 20 packets, so that it does not wait for every packet."""
SLOW_BURST_SECONDS, LEAST_PACKETS = 0.01, 2
"""A slower link sends at most so much of its time at once, but so many packets. 32 KB would carry a whole post-quantum handshake past
the shaper, as if the link had no bandwidth.
"""
BURST_SECONDS, QUEUE_SECONDS = 0.001, 0.1
LEAST_QUEUE = 256 << 10
CAP_NET_ADMIN, CAP_SYS_ADMIN = 12, 21


class Packets(msgspec.Struct, frozen=True):
    """How many packets went over a link, in both directions together, as its interfaces counted them."""

    sent: int
    lost: int
    """Of those sent."""
    overflowed: int
    """Not sent, because the interface's queue was full. No option asks for this."""


class Link:
    """A link that is up."""

    def __init__(self, namespace: str, device: str) -> None:
        self.namespace = namespace
        self.device = device
        """The server's interface, in the host's namespace."""
        self.carrier = 0
        """Process id of what carries the packets; 0: the kernel does."""

    @property
    def path(self) -> Path:
        """The namespace file that an agent enters."""
        return NAMESPACES / self.namespace

    @property
    def ends(self) -> tuple[tuple[list[str], str], ...]:
        """Both interfaces: the agent's and the server's, each after the options by which `ip` and `tc` find its namespace."""
        return (["-n", self.namespace], NEAR_END), ([], self.device)

    def crossed(self) -> int:
        """Bytes that crossed the link so far, in both directions, headers included."""
        counters = DEVICES / self.device / "statistics"
        return sum(int((counters / name).read_text()) for name in ("rx_bytes", "tx_bytes"))

    def packets(self, supervisor: Supervisor) -> Packets:
        """What both ends counted so far. Raises RunError."""
        ends = [
            json.loads(supervisor.run(["ip", *where, "-s", "-j", "link", "show", "dev", device]))[0]["stats64"]
            for where, device in self.ends
        ]
        sent, arrived = (sum(end[way]["packets"] for end in ends) for way in ("tx", "rx"))
        # One may be on its way just now.
        return Packets(sent, max(0, sent - arrived), sum(end["tx"]["dropped"] for end in ends))


def check_rights() -> None:
    """Raises UsageError before anything is started if no link can be made here."""
    advice = "Run it as root, or leave them out; --delay without --loss and http=3 needs no rights"
    for program in ("ip", "tc"):
        if shutil.which(program) is None:
            raise UsageError(
                f"--bandwidth, --mtu and --loss need the command '{program}', which was not found (Debian: apt-get install "
                "iproute2)"
            )
    status = Path("/proc/self/status").read_text()
    effective = int(status.partition("CapEff:")[2].split()[0], 16)
    if not all(effective >> bit & 1 for bit in (CAP_NET_ADMIN, CAP_SYS_ADMIN)):
        raise UsageError(
            f"--bandwidth, --mtu, --loss, and --delay with http=3 need the right to make network namespaces (CAP_NET_ADMIN and CAP_SYS_ADMIN). {advice}"
        )


def shaper(bits_per_second: float, mtu: int = MTU) -> list[str]:
    """The arguments of `tc` for a token bucket of this rate. Pure.

    Its burst is a millisecond's worth (of a slow link up to ten), its queue holds a tenth of a second's: enough for TCP to
    fill the link without loss.
    """
    per_second = bits_per_second / 8
    slow = max(LEAST_PACKETS * (mtu + FRAME), min(LEAST_BURST, round(per_second * SLOW_BURST_SECONDS)))
    burst = max(slow, round(per_second * BURST_SECONDS))
    queue = max(LEAST_QUEUE, round(per_second * QUEUE_SECONDS))
    return ["tbf", "rate", f"{round(bits_per_second)}bit", "burst", str(burst), "limit", str(queue)]


SET = "import os, sys; [open(path, 'w').write('1') for path in sys.argv[1:] if os.path.exists(path)]"


def settings_of(device: str) -> list[str]:
    """The kernel settings of an interface that must be 1, if they exist. Pure.

    By default the kernel does not route 127.0.0.0/8 over an interface. Without IPv6 the interfaces send nothing of
    their own, so everything that crosses the link is load.
    """
    return [f"/proc/sys/net/ipv4/conf/{device}/route_localnet", f"/proc/sys/net/ipv6/conf/{device}/disable_ipv6"]


@contextmanager
def veth(supervisor: Supervisor, link: Link) -> Iterator[int]:
    """The two ends of a link: a pair of interfaces of the kernel's own."""
    pair = ["ip", "link", "add", link.device, "type", "veth", "peer", "name", NEAR_END, "netns", link.namespace]
    undo = removing(DEVICES / link.device, "ip", "link", "del", "dev", link.device)
    with _made(supervisor, pair, undo, Entry("network device", link.device)):
        yield 0


Ends = Callable[[Supervisor, Link], AbstractContextManager[int]]
"""Makes both interfaces of a link. Gives `Link.carrier`."""


@contextmanager
def linked(supervisor: Supervisor, bits_per_second: float, mtu: int, ends: Ends = veth) -> Iterator[Link]:
    """A link of this bandwidth (0: unlimited) each way and this MTU (0: 1500). Removed afterwards. Raises RunError.

    `ends` makes both interfaces: one in the link's namespace, named `NEAR_END`, and the link's `device`.
    Everything is registered with the supervisor first, so that it is removed even if this process is killed.
    """
    token = secrets.token_hex(4)
    link = Link(f"{PREFIX}{supervisor.run_id}-{token}", f"cc{token}")
    agent = f"127.{200 + secrets.randbelow(50)}.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"
    inside = ["-n", link.namespace]
    with ExitStack() as stack:
        stack.enter_context(
            _made(
                supervisor,
                ["ip", "netns", "add", link.namespace],
                removing(link.path, "ip", "netns", "del", link.namespace),
                Entry("network namespace", link.namespace),
            )
        )
        link.carrier = stack.enter_context(ends(supervisor, link))
        for path in settings_of(link.device):
            if Path(path).exists():
                Path(path).write_text("1")
        within = ["ip", "netns", "exec", link.namespace, sys.executable, "-I", "-S", "-c", SET]
        supervisor.run([*within, *settings_of(NEAR_END)])
        for where, device in link.ends:
            supervisor.run(["ip", *where, "link", "set", "dev", device, "mtu", str(mtu or MTU)])
            if bits_per_second:
                supervisor.run(
                    ["tc", *where, "qdisc", "add", "dev", device, "root", *shaper(bits_per_second, mtu or MTU)]
                )
            supervisor.run(["ip", *where, "link", "set", "dev", device, "up"])
        # The namespace's own loopback stays down, so 127.0.0.1 is not local there and goes over the link.
        supervisor.run(["ip", *inside, "address", "add", f"{agent}/32", "dev", NEAR_END])
        supervisor.run(["ip", *inside, "route", "add", SERVER, "dev", NEAR_END, "src", agent])
        # The narrower of two routes counts: the agent's address is taken out of the host's 127.0.0.0/8.
        supervisor.run(["ip", "route", "add", f"{agent}/32", "dev", link.device, "table", "local", "scope", "link"])
        yield link


def removing(path: Path, *command: str) -> list[str]:
    """The command that removes what `path` shows, in whatever state it is. It fails only if that stays. Pure."""
    return ["sh", "-c", REMOVE, "remove", str(path), *command]


@contextmanager
def _made(supervisor: Supervisor, make: list[str], undo: list[str], what: Entry) -> Iterator[None]:
    forget: Callable[[], None] = supervisor.undo(undo, what)
    try:
        supervisor.run(make)
    except RunError as error:
        forget()
        raise RunError(f"can't make the link for --bandwidth, --mtu or --loss: {error}") from None
    try:
        yield
    finally:
        supervisor.run(undo)
        forget()
