"""conditions: what a cell holds fixed in both arms beside the encryption: the CPU's instructions and the link. Words -> figures, checked.

A condition is no part of what is compared: it changes both arms alike, and with it what encryption costs them.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from ciphercost.engines.capabilities.settings import TakesSettings
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.host.aes import cpu_flags
from ciphercost.load.redact import SECRET
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import Cache, CellSpec

if TYPE_CHECKING:
    from ciphercost.engines import Engine
    from ciphercost.mechanisms import Mechanism

_BITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
LEAST_BITS, MOST_BITS = 64e3, 100e9
LEAST_DELAY, MOST_DELAY = 100e-6, 2.0
"""Agents give a peer 10 s to answer while they log in."""
LEAST_MTU, MOST_MTU = 576, 65_535

X86_MASK = "~0x200000200000000:~0x60000000000"
"""AES-NI and PCLMULQDQ, then VAES and VPCLMULQDQ. Without the second word OpenSSL takes it for 0, and ChaCha20 gets slower too."""
ARM_BITS = {"asimd": 1 << 0, "sha1": 1 << 3, "sha2": 1 << 4, "sha512": 1 << 6}
"""OPENSSL_armcap's bits of what stays; those of AES (1 << 2) and PMULL (1 << 5) do not."""


CACHE = {
    "cold": " (the system's emptied before each session's load)",
    "small": " (a tenth of the data; the system's emptied before each session's load)",
}

# ── words and figures ─────────────────────────────────────────────────────────────────────────────────────────────────


def bits_per_second(text: str, where: str = "--bandwidth") -> float:
    """1e8 of `100mbit`. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(kbit|mbit|gbit)\s*", text.lower())
    value = float(match[1]) * _BITS[match[2]] if match else 0.0
    if not LEAST_BITS <= value <= MOST_BITS:
        raise UsageError(f"{where}: '{text}' is not a bandwidth from 64kbit to 100gbit; write 100mbit or 1gbit")
    return value


def round_trip(text: str, where: str = "--delay") -> float:
    """0.01 of `10ms`: seconds added to a round trip. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s)\s*", text.lower())
    value = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not LEAST_DELAY <= value <= MOST_DELAY:
        raise UsageError(f"{where}: '{text}' is not a round-trip time from 100us to 2s; write 10ms")
    return value


def named(cell: CellSpec) -> dict[str, str]:
    """The conditions that differ from this machine as it is, by their option's name. Pure."""
    found: dict[str, str] = {"cpu_crypto": cell.cpu_crypto if cell.cpu_crypto != "on" else ""}
    found |= {"bandwidth": cell.bandwidth, "delay": cell.delay, "mtu": str(cell.mtu) if cell.mtu else ""}
    found["cache"] = cell.cache if cell.cache != "warm" else ""
    found["settings"] = " ".join(f"{name}={value}" for name, value in cell.settings.items())
    return {name: value for name, value in found.items() if value}


def worded(conditions: dict[str, str]) -> str:
    """`CPU crypto off, 100mbit, 10ms round trip, MTU 1500, cache small (a tenth of the data)`. Pure."""
    words = {"cpu_crypto": "CPU crypto {}", "bandwidth": "{}", "delay": "{} round trip added", "mtu": "MTU {}"}
    words["cache"] = "cache {}" + CACHE.get(conditions.get("cache", ""), "")
    words["settings"] = "{}"
    # Polling is the usual way; `conditions["idle"]` says it all the same.
    if conditions.get("idle") == "halt":
        words["idle"] = "idle cores {}"
    return ", ".join(words[name].format(value) for name, value in conditions.items() if name in words)


class Conditions(msgspec.Struct, frozen=True):
    """A cell's conditions as numbers."""

    hides_aes: bool = False
    """Whether the CPU's AES instructions are hidden from server and agent."""
    bits_per_second: float = 0.0
    """Bandwidth of the link, each way; 0: as fast as loopback."""
    delay_s: float = 0.0
    """Seconds added to each round trip."""
    mtu: int = 0
    """Bytes; 0: loopback's."""
    cache: Cache = "warm"
    settings: dict[str, str] = {}
    """The user's, of a server that we start."""

    @property
    def shaped(self) -> bool:
        """Whether the cell needs a link of its own."""
        return bool(self.bits_per_second or self.mtu)


def parse(cell: CellSpec, engine: Engine, mechanism: Mechanism) -> Conditions:
    """The cell's conditions. Raises UsageError for those that can't be met, before anything is started."""
    if cell.cpu_crypto not in ("on", "off"):
        raise UsageError(f"cpu-crypto is on or off, not '{cell.cpu_crypto}'")
    if cell.idle not in ("", "poll", "halt"):
        raise UsageError(f"idle is poll or halt, not '{cell.idle}'")
    bits = bits_per_second(cell.bandwidth) if cell.bandwidth else 0.0
    delay_s = round_trip(cell.delay) if cell.delay else 0.0
    if cell.mtu and not LEAST_MTU <= cell.mtu <= MOST_MTU:
        raise UsageError(f"--mtu {cell.mtu}: must lie between {LEAST_MTU} and {MOST_MTU}")
    if cell.cache != "warm":
        _check_cache(cell, engine, mechanism)
    wants = [f"--{name.replace('_', '-').replace('settings', 'setting')}" for name in named(cell)]
    if cell.settings:
        _check_settings(cell, engine)
    if engine.embedded and (wrong := [name for name in wants if name not in ("--cpu-crypto", "--cache")]):
        raise UsageError(
            f"{cell.engine} is embedded: there is no link between it and the agent, so {wrong[0]} does not fit"
        )
    if cell.url and (wrong := [name for name in wants if name != "--delay"]):
        raise UsageError(
            f"{wrong[0]} does not fit a server of yours: it would have to be started anew, or moved onto another link. "
            "Of the conditions --delay alone fits --url"
        )
    return Conditions(cell.cpu_crypto == "off", bits, delay_s, cell.mtu, cell.cache, cell.settings)


def _check_settings(cell: CellSpec, engine: Engine) -> None:
    """Raises UsageError for a server that takes none, or for what is no name of a setting."""
    if not isinstance(engine, TakesSettings):
        raise UsageError(f"--setting is for a database server that is started here, which {cell.engine} is not")
    for name, value in cell.settings.items():
        if not re.fullmatch(r"[A-Za-z][\w.-]*", name) or not value or "\n" in value:
            raise UsageError(
                f"--setting {name}={value}: write NAME=VALUE, as the server calls it, e.g. shared_buffers=1GB"
            )
        if SECRET.search(name):
            raise UsageError(
                f"--setting {name}: command lines can be read by every user of this machine, and records are kept"
            )
        if re.fullmatch(engine.kept_settings, settled(name)):
            raise UsageError(
                f"--setting {name}: where the server listens, keeps its files and whom it lets in is not to be set: leave it out"
            )
    if len({settled(name) for name in cell.settings}) < len(cell.settings):
        raise UsageError("--setting: a setting is given twice, in two spellings")


def settled(name: str) -> str:
    """One spelling of a setting's name: `bind_address` of `Bind-Address`. Pure."""
    return name.lower().replace("-", "_")


def joined(own: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """The user's settings and those that the run itself needs. Raises UsageError where both say one. Pure."""
    needed = {settled(name): name for name in ours}
    for name in own:
        if (known := needed.get(settled(name))) is not None:
            raise UsageError(
                f"--setting {name}: this cell sets it itself ({known}={ours[known]}), and both can't be: leave it out"
            )
    return {**own, **ours}


def _check_cache(cell: CellSpec, engine: Engine, mechanism: Mechanism) -> None:
    """Raises UsageError where there is no cache to size or to empty, or none that encryption lies behind."""
    if cell.cache not in ("cold", "small"):
        raise UsageError(f"--cache is warm, cold or small, not '{cell.cache}'")
    if not isinstance(engine, StoresData):
        raise UsageError(f"--cache {cell.cache}: {cell.engine} keeps nothing, so it has no cache; leave it out")
    if cell.url:
        raise UsageError(
            f"--cache {cell.cache} does not fit a server of yours: it would have to be started anew with other settings, "
            "and the page cache of its machine emptied; leave one of them out"
        )
    if mechanism.layer not in ("rest", "control"):
        raise UsageError(
            f"--cache {cell.cache} is for encryption at rest, which acts where pages are read and written; "
            f"{cell.mechanism} encrypts in transit, whatever is cached: leave it out"
        )


# ── the mask ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def mask() -> dict[str, str]:
    """Variables of the environment that hide this CPU's AES instructions from OpenSSL. Raises UsageError where there are none to hide."""
    machine, flags = platform.machine(), cpu_flags()
    if machine not in ("x86_64", "aarch64"):
        raise UsageError(
            "--cpu-crypto off: how OpenSSL is told to leave out a CPU's AES instructions is known for x86-64 and arm64, "
            f"not for {machine}; leave it out"
        )
    if "aes" not in flags:
        raise UsageError(
            "--cpu-crypto off: this CPU has no AES instructions (/proc/cpuinfo lists none), so there is nothing to hide: "
            "every run here is one without them. Leave it out"
        )
    if machine == "x86_64":
        return {"OPENSSL_ia32cap": X86_MASK}
    return {"OPENSSL_armcap": hex(sum(bit for name, bit in ARM_BITS.items() if name in flags))}


def mask_provable(cell: CellSpec) -> bool:
    """Whether the server can be seen to obey the mask: that takes a transfer over TLS whose cipher we choose. Pure."""
    return cell.mechanism == "tls"
