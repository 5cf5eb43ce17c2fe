"""The resource that limited each arm of a cell: cores, link, disk or none of them. Pure; uses recorded figures only.

Utilisation law (Denning and Buzen, 1978, as in `capacity`): busy cores = operations per second × CPU seconds per operation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ciphercost.estimate import disturbance
from ciphercost.estimate.link_model import bytes_on_link
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.plan import conditions

SATURATED = 0.85
"""Share of a resource from which it is the limit; the mark `client-bound` has the same for the client."""

THROTTLED = 5.0
"""Per cent of the time for which a CPU quota must withhold a CPU to be the limit; the mark `throttled` has the same."""
UNSATURATED = (
    "the disk was not saturated, so this is the cost of CPU time and not of a device at its limit, where reads and writes queue for "
    "encryption too: there it can be far higher (published for one volume: 1 % when idle, half of the read rate under load). Measure with {}"
)
"""What a cell at rest says of a device with time to spare."""
BUSIER, BUSIER_TASK = "--cache small, more --rows and more --clients", "--cache small and more --rows"
"""What brings it to its limit. An operator's task has no clients."""
OTHERS = "other processes or the hypervisor took CPU time too, so a core may have been full"


class Use(NamedTuple):
    """How much of one resource an arm used while it was measured."""

    name: str
    """`the server's 2 cores`."""
    short: str
    """`server`, `client`, `shared`, `process`, `link`, `disk` or `quota`."""
    share: float
    """0 to 1, or slightly above if two clocks disagree."""
    verb: str = "busy"


def uses(cell: Cell, arm: str) -> list[Use]:
    """Every known resource, in no particular order. Empty if the load was limited on purpose or unknown."""
    facts = cell.arms.get(arm, {})
    if cell.regime == "latency" or cell.mode == "imported" or not facts.get("throughput"):
        return []
    return [*_quota(facts), *_cores(cell, facts), *_link(cell, facts), *_disk(cell, facts)]


def _quota(facts: Mapping[str, Any]) -> list[Use]:
    """A CPU quota that held processes back was used up. What else they used says little then."""
    known = facts.get("host", {}).get("throttled")
    return [Use("the CPU quota", "quota", 1.0, "used")] if known and known["mean"] > THROTTLED else []


def _cores(cell: Cell, facts: Mapping[str, Any]) -> list[Use]:
    agent, server = (_numbers(cell.cores.get(side, "")) for side in ("agent", "server"))
    client_busy = facts["throughput"] * facts.get("client_cpu_us_per_op", 0.0) / 1e6
    server_busy = facts["throughput"] * facts["server_cpu_us_per_op"] / 1e6 if "server_cpu_us_per_op" in facts else None
    if cell.embedded:
        return [_of_cores("the process's", "process", len(agent), cell.clients, client_busy)]
    if agent and agent == server and server_busy is not None:
        return [_of_cores("the shared", "shared", len(agent), 2 * cell.clients, client_busy + server_busy)]
    uses_of_cores = [_of_cores("the client's", "client", len(agent), cell.clients, client_busy)] if agent else []
    if server and server_busy is not None:
        uses_of_cores.insert(0, _of_cores("the server's", "server", len(server), cell.clients, server_busy))
    return uses_of_cores


def _of_cores(whose: str, short: str, count: int, at_once: int, busy: float) -> Use:
    """`at_once`: threads that can work in parallel. One connection can use one core, however many cores there are."""
    able = min(max(1, count), max(1, at_once))
    if busy > able:  # a server may have more threads than connections
        able = max(1, count)
    return Use(f"{whose} core" if able == 1 else f"{whose} {able} cores", short, busy / able)


def _numbers(text: str) -> list[str]:
    return [number for number in text.split(",") if number]


def _link(cell: Cell, facts: Mapping[str, Any]) -> list[Use]:
    """A link has a limit only with a given bandwidth; loopback is limited only by the CPU."""
    bandwidth = cell.conditions.get("bandwidth", "")
    if not bandwidth or "wire_bytes_per_op" not in facts or "operations" not in facts:
        return []
    bits = conditions.bits_per_second(bandwidth)
    name = f"the link of {bits / 1e6:,.4g} Mb/s"
    return [Use(name, "link", facts["throughput"] * bytes_on_link(facts) * 8 / bits, "used")]


def moves_pages(facts: Mapping[str, Any]) -> bool:
    """Whether an arm's server reads or writes files; true too if that is not known."""
    return "server_cpu_us_per_op" not in facts or any(
        facts.get(name) for name in ("read_bytes_per_op", "write_bytes_per_op", "writes")
    )


def _disk(cell: Cell, facts: Mapping[str, Any]) -> list[Use]:
    """The busiest disk of the machine. Records of older versions have none. A server that uses no disk is not limited by it, however
    busy others keep it; at rest another process may read and write for the server (a file system in user space).
    """
    if cell.layer != "rest" and not moves_pages(facts):
        return []
    known = facts.get("host", {}).get("disk_busy")
    return [Use("the disk", "disk", known["mean"] / 100)] if known else []


def limits(used: Sequence[Use]) -> list[Use]:
    """Saturated resources, the fullest first."""
    return sorted((use for use in used if round(use.share, 2) >= SATURATED), key=lambda use: -use.share)


def said(used: Sequence[Use]) -> str:
    """`limited by the server's core (98 % busy)`; `no resource was saturated (the server's core 73 % busy, …)`; empty: unknown."""
    if not used:
        return ""
    if full := limits(used):
        return f"limited by {' and '.join(f'{use.name} ({percent(use)} {use.verb})' for use in full)}"
    return f"no resource was saturated ({', '.join(f'{use.name} {percent(use)} {use.verb}' for use in used)})"


def percent(use: Use) -> str:
    """`98 %`, at most 100; disagreeing clocks could give more."""
    return f"{min(100.0, 100 * use.share):.0f} %"


def line(cell: Cell) -> str:
    """What limited both arms, or each of them; empty if unknown."""
    if cell.status != "ok":
        return ""
    plain, encrypted = (said(uses(cell, arm)) for arm in ARMS)
    if not plain or not encrypted:
        return ""
    text = plain if plain == encrypted else f"plain arm: {plain}; encrypted arm: {encrypted}"
    if disturbance.state(cell):
        text = f"{text}; {OTHERS}"
    if not _spares_its_disk(cell):
        return text
    return f"{text}; {UNSATURATED.format(BUSIER_TASK if 'duration' in cell.overhead else BUSIER)}"


def _spares_its_disk(cell: Cell) -> bool:
    """Whether this is a cell at rest in which the disk was busy for less than SATURATED of the time, in both arms."""
    disks = [use for arm in ARMS for use in uses(cell, arm) if use.short == "disk"]
    return cell.layer == "rest" and len(disks) == len(ARMS) and not limits(disks)
