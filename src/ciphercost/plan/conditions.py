"""Conditions of a cell: CPU instructions, link, cache and server settings. Parses and checks them.

A condition applies to both arms. It is not compared, but it changes what encryption costs.
"""

from __future__ import annotations

import ipaddress
import platform
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from ciphercost.engines.capabilities.settings import canonical
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.host.aes import cpu_flags
from ciphercost.host.ports import LOOPBACK, is_loopback, is_own
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import Cache, CellSpec
from ciphercost.plan import settings as server_settings

if TYPE_CHECKING:
    from ciphercost.engines import Engine
    from ciphercost.mechanisms import Mechanism

_BITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
LEAST_BITS, MOST_BITS = 64e3, 100e9
LEAST_DELAY, MOST_DELAY = 100e-6, 2.0
"""Seconds. At login, agents wait 10 s for an answer."""
LEAST_MTU, MOST_MTU = 576, 65_535
LEAST_LOSS, MOST_LOSS = 1e-5, 0.2

X86_MASK = "~0x200000200000000:~0x60000000000"
"""Hides AES-NI and PCLMULQDQ, then VAES and VPCLMULQDQ. Without the second word OpenSSL assumes 0, which slows ChaCha20 too."""
ARM_BITS = {"asimd": 1 << 0, "sha1": 1 << 3, "sha2": 1 << 4, "sha512": 1 << 6}
"""Bits of OPENSSL_armcap that stay set; AES (1 << 2) and PMULL (1 << 5) are cleared."""
GO_MASK = {"x86_64": "cpu.aes=off,cpu.pclmulqdq=off", "aarch64": "cpu.aes=off,cpu.pmull=off"}
"""GODEBUG by machine: hides the same instructions from a server that is written in Go."""


CACHE = {
    "cold": " (with the page cache emptied before each session's load)",
    "small": " (a tenth of the data; page cache emptied before each session's load)",
}

# ── text and numbers ──────────────────────────────────────────────────────────────────────────────────────────────────


def bits_per_second(text: str, where: str = "--bandwidth") -> float:
    """Bits per second: 1e8 for `100mbit`. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(kbit|mbit|gbit)\s*", text.lower())
    value = float(match[1]) * _BITS[match[2]] if match else 0.0
    if not LEAST_BITS <= value <= MOST_BITS:
        raise UsageError(f"{where} {text}: not a bandwidth between 64kbit and 100gbit; write 100mbit or 1gbit")
    return value


def round_trip(text: str, where: str = "--delay") -> float:
    """Seconds added to a round trip: 0.01 for `10ms`. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s)\s*", text.lower())
    value = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not LEAST_DELAY <= value <= MOST_DELAY:
        raise UsageError(f"{where} {text}: not a duration between 100us and 2s; write 10ms or 1.5s")
    return value


def lost_share(text: str, where: str = "--loss") -> float:
    """Share of the packets that are lost: 0.01 for `1%`. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    value = float(match[1]) / 100 if match else 0.0
    if not LEAST_LOSS <= value <= MOST_LOSS:
        raise UsageError(f"{where} {text}: not a share between 0.001% and 20%; write 0.1% or 1%")
    return value


def listening(text: str, where: str = "--listen") -> str:
    """The IPv4 address of this machine that `text` names: `10.0.0.5`. Raises UsageError."""
    advice = "name the address of one interface of this machine, e.g. 10.0.0.5; `ip -brief address` lists them"
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        raise UsageError(f"{where} {text}: not an IP address; {advice}") from None
    if address.is_unspecified:
        raise UsageError(f"{where} {text}: would open the server to every network of this machine; {advice}")
    if address.version == 6:
        raise UsageError(
            f"{where} {text}: servers that ciphercost starts listen on IPv4 only, because their own access rules and URLs "
            f"are written for it; {advice}"
        )
    if not is_own(str(address)):
        raise UsageError(f"{where} {text}: this machine has no interface with this address; {advice}")
    return str(address)


def named(cell: CellSpec) -> dict[str, str]:
    """The conditions that differ from the defaults, by option name. Pure."""
    conditions: dict[str, str] = {"cpu_crypto": cell.cpu_crypto if cell.cpu_crypto != "on" else ""}
    conditions |= {"bandwidth": cell.bandwidth, "delay": cell.delay, "mtu": str(cell.mtu) if cell.mtu else ""}
    conditions["loss"] = cell.loss
    conditions["listen"] = cell.listen
    conditions["cache"] = cell.cache if cell.cache != "warm" else ""
    conditions["settings"] = " ".join(f"{name}={value}" for name, value in cell.settings.items())
    return {name: value for name, value in conditions.items() if value}


def worded(conditions: dict[str, str], *, brief: bool = False) -> str:
    """`CPU crypto off, 100mbit, 10ms round trip, MTU 1500, cache small (a tenth of the data)`. `brief`: a label, without what it means. Pure."""
    words = {"cpu_crypto": "CPU crypto {}", "bandwidth": "{}", "delay": "{} round trip added", "mtu": "MTU {}"}
    words["loss"] = "{} of packets lost each way"
    words["listen"] = "server on {}"
    words["cache"] = "cache {}" + ("" if brief else CACHE.get(conditions.get("cache", ""), ""))
    words["settings"] = "{}"
    words["headers"] = "own headers ({})"
    # Polling is the default, so it is not printed, although `conditions["idle"]` records it.
    if conditions.get("idle") == "halt":
        words["idle"] = "idle cores {}"
    return ", ".join(words[name].format(value) for name, value in conditions.items() if name in words)


class Conditions(msgspec.Struct, frozen=True):
    """A cell's conditions as numbers."""

    hides_aes: bool = False
    """Whether to hide the CPU's AES instructions from server and agent."""
    bits_per_second: float = 0.0
    """Bandwidth of the link in each direction; 0: as fast as loopback."""
    delay_s: float = 0.0
    """Seconds added to each round trip."""
    mtu: int = 0
    """MTU in bytes; 0: loopback's."""
    loss: float = 0.0
    """Share of the packets that the link loses, in each direction."""
    listen: str = LOOPBACK
    """Address on which the server listens."""
    cache: Cache = "warm"
    settings: dict[str, str] = {}
    """The user's settings for a server that ciphercost starts."""

    @property
    def shaped(self) -> bool:
        """Whether the link has a bandwidth or an MTU of its own."""
        return bool(self.bits_per_second or self.mtu)


def parse(cell: CellSpec, engine: Engine, mechanism: Mechanism) -> Conditions:
    """The cell's conditions. Raises UsageError for a condition that this cell can't meet."""
    if cell.cpu_crypto not in ("on", "off"):
        raise UsageError(f"--cpu-crypto {cell.cpu_crypto}: must be on or off")
    if cell.idle not in ("", "poll", "halt"):
        raise UsageError(f"--idle {cell.idle}: must be poll or halt")
    bits = bits_per_second(cell.bandwidth) if cell.bandwidth else 0.0
    delay_s = round_trip(cell.delay) if cell.delay else 0.0
    if cell.mtu and not LEAST_MTU <= cell.mtu <= MOST_MTU:
        raise UsageError(f"--mtu {cell.mtu}: must be between {LEAST_MTU} and {MOST_MTU}")
    loss = lost_share(cell.loss) if cell.loss else 0.0
    listen = _listen(cell) if cell.listen else LOOPBACK
    if cell.cache != "warm":
        _check_cache(cell, engine, mechanism)
    wants = [f"--{name.replace('_', '-').replace('settings', 'setting')}" for name in named(cell)]
    if cell.settings:
        server_settings.check(cell, engine)
    if engine.embedded and (wrong := [name for name in wants if name not in ("--cpu-crypto", "--cache")]):
        raise UsageError(
            f"{wrong[0]}: {cell.engine} is embedded in the agent, so there is no link and no server; remove {wrong[0]}"
        )
    if cell.url and (wrong := [name for name in wants if name != "--delay"]):
        raise UsageError(
            f"{wrong[0]} does not work with --url: ciphercost would have to restart your server or change its link. "
            "The only condition that works with --url is --delay"
        )
    return Conditions(
        hides_aes=cell.cpu_crypto == "off",
        bits_per_second=bits,
        delay_s=delay_s,
        mtu=cell.mtu,
        loss=loss,
        listen=listen,
        cache=cell.cache,
        settings=cell.settings,
    )


def _listen(cell: CellSpec) -> str:
    """The address on which the server listens. Raises UsageError."""
    if cell.url:
        raise UsageError(
            f"--listen {cell.listen} does not work with --url: that server is yours, and you decide where it listens; "
            "remove --listen"
        )
    if wrong := [name for name in ("bandwidth", "mtu", "loss") if getattr(cell, name)]:
        raise UsageError(
            f"--listen and --{wrong[0]}: that link is a virtual one inside this machine, which only loopback's address crosses; "
            "remove one of them"
        )
    return listening(cell.listen)


def who_reaches_it(held: Conditions, engine: Engine) -> str:
    """Who can reach the cell's server beside this machine's own users, for a warning; empty: nobody. Pure."""
    if is_loopback(held.listen):
        return ""
    within = {
        "http": "anybody there can read its documents, which hold random bytes",
        "kv": "it accepts only ciphercost's own user, whose password is random and crosses that network unencrypted in the plain arm",
    }
    inside = within.get(engine.language, "it accepts only ciphercost's own user, whose password is random")
    return f"the server of this run can be reached from the network of {held.listen}; {inside}"


def merged(settings: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """The user's settings and those that the run needs. Raises UsageError if both set the same one. Pure."""
    needed = {canonical(name): name for name in ours}
    for name in settings:
        if (known := needed.get(canonical(name))) is not None:
            raise UsageError(
                f"--setting {name}: conflicts with {known}={ours[known]}, which this cell requires; remove it"
            )
    return {**settings, **ours}


def _check_cache(cell: CellSpec, engine: Engine, mechanism: Mechanism) -> None:
    """Raises UsageError if there is no cache to resize or empty, or encryption does not depend on it."""
    if cell.cache not in ("cold", "small"):
        raise UsageError(f"--cache {cell.cache}: must be warm, cold or small")
    if not isinstance(engine, StoresData):
        raise UsageError(f"--cache {cell.cache}: {cell.engine} stores no data, so it has no cache; remove --cache")
    if engine.no_cache:
        raise UsageError(f"--cache {cell.cache}: {cell.engine} {engine.no_cache}; remove --cache")
    if cell.url:
        raise UsageError(
            f"--cache {cell.cache} does not work with --url: ciphercost would have to restart your server with other settings "
            "and empty the page cache of its machine; remove one of them"
        )
    if mechanism.layer not in ("rest", "control"):
        raise UsageError(
            f"--cache {cell.cache} is for encryption at rest, which works when pages are read and written; "
            f"{cell.mechanism} does not encrypt pages; remove --cache"
        )


# ── the mask ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def mask() -> dict[str, str]:
    """Environment variables that hide this CPU's AES instructions from OpenSSL and Go. Raises UsageError if there are none to
    hide.
    """
    machine, flags = platform.machine(), cpu_flags()
    if machine not in ("x86_64", "aarch64"):
        raise UsageError(
            f"--cpu-crypto off: ciphercost can hide AES instructions on x86-64 and arm64, not on {machine}; remove it"
        )
    if "aes" not in flags:
        raise UsageError(
            "--cpu-crypto off: this CPU has no AES instructions (/proc/cpuinfo lists none), so there is nothing to hide; "
            "remove it: every run here is without them"
        )
    if machine == "x86_64":
        return {"OPENSSL_ia32cap": X86_MASK, "GODEBUG": GO_MASK[machine]}
    armcap = hex(sum(bit for name, bit in ARM_BITS.items() if name in flags))
    return {"OPENSSL_armcap": armcap, "GODEBUG": GO_MASK[machine]}


def mask_provable(cell: CellSpec) -> bool:
    """Whether ciphercost can prove that the server obeys the mask: this takes a TLS transfer with a chosen cipher. Pure."""
    return cell.mechanism == "tls"
