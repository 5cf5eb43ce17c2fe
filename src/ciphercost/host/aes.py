"""aes: who does AES here: /proc/crypto, the CPU's flags and an environment -> facts, in words, with a warning. Nothing is measured.

What encrypts below a server is either the kernel (fscrypt, dm-crypt) or a library in a process (nearly always OpenSSL). Both have
several implementations of AES, and which of them works decides the cost more than the mechanism does. For the kernel:

    cipher = crypto.kernel("xts(aes)")      # after the first file was written: a mode is made when it is first used
    {"cipher": "AES-256-XTS", "implementation": cipher.words(), "warning": cipher.warning()}

and for a library, with the environment of its process:

    able = crypto.openssl_capabilities(env)
    {"implementation": f"{server.library}, {able.words()}", "warning": able.warning()}

`warning()` is empty where there is nothing to warn of.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

UNUSUAL = "so the figure isn't that of a usual machine"

# ── the kernel ────────────────────────────────────────────────────────────────────────────────────────────────────────

_INSTRUCTIONS = re.compile(r"aesni|vaes|avx|(^|[-_(])ce([-_)]|$)|s390|p8_aes|p10|sparc64|riscv|zvkned|octeon")
"""In the names of drivers that use the CPU's own AES instructions: x86, arm64, s390, POWER, SPARC, RISC-V."""
_ENGINES = re.compile(
    r"qat|padlock|ccp|caam|mv-|safexcel|hisi|sa2ul|stm32|atmel|omap|dcp|qce|rk-|sun[48]i|geode|virtio"
)
"""Drivers of devices that encrypt by themselves."""
_SOFTWARE = re.compile(r"generic|fixed-time|aes-arm|neonbs|-neon|ssse3|x86_64|i586|-asm")
"""Written for any CPU, or with vector instructions that know nothing of AES."""


class KernelCipher(msgspec.Struct, frozen=True):
    """What the kernel does a mode of AES with."""

    name: str
    """As fscrypt and dm-crypt ask for it: `xts(aes)`."""
    driver: str
    """The implementation that wins: the one of the highest priority; empty: the kernel's list has none."""
    priority: int
    accelerated: bool | None
    """By the CPU's AES instructions or a device; None: not to be told from the driver's name."""
    in_use: bool
    """False: the mode has not been used since the system began, and the driver is that of the block cipher below it."""

    def words(self) -> str:
        """`kernel: xts(ecb(aes-fixed-time)) (priority 101), no AES instructions`."""
        if not self.driver:
            return f"kernel: {self.name}, by an implementation that /proc/crypto doesn't list"
        how = {True: "with AES instructions", False: "no AES instructions", None: "instructions not known"}
        shown = f"{self.driver} (priority {self.priority}), {how[self.accelerated]}"
        return f"kernel: {shown}" if self.in_use else f"kernel: {self.name} not used yet, its AES would be {shown}"

    def warning(self) -> str:
        """For people, where the kernel's AES is slower than this CPU's could be, or the CPU has none."""
        if self.accelerated is not False:
            return ""
        if "aes" in cpu_flags():
            cause = "this CPU has AES instructions, but the kernel has no driver for them"
        else:
            cause = "this CPU has no AES instructions"
        return f"the kernel encrypts with {self.driver}, in software: {cause}, {UNUSUAL}"


def kernel(name: str, text: str | None = None) -> KernelCipher:
    """Who does this mode in the kernel. `text`: of /proc/crypto, read here where it isn't given. Pure with it."""
    if text is None:
        try:
            text = Path("/proc/crypto").read_text()
        except OSError:
            text = ""
    known = list(parse(text))
    best = _best(known, name)
    in_use = best is not None
    if best is None and "aes" in name:
        best = _best(known, "aes")
    if best is None:
        return KernelCipher(name=name, driver="", priority=0, accelerated=None, in_use=False)
    driver = best["driver"]
    return KernelCipher(
        name=name, driver=driver, priority=int(best["priority"]), accelerated=accelerated(driver), in_use=in_use
    )


def parse(text: str) -> Iterable[dict[str, str]]:
    """The entries of /proc/crypto. Pure."""
    for entry in text.split("\n\n"):
        pairs = (line.partition(":") for line in entry.splitlines())
        fields = {name.strip(): value.strip() for name, colon, value in pairs if colon}
        if {"name", "driver", "priority"} <= fields.keys():
            yield fields


def _best(known: list[dict[str, str]], name: str) -> dict[str, str] | None:
    """The implementation that the kernel gives who asks for this name: internal ones and failed ones are never given."""
    fit = [
        each
        for each in known
        if each["name"] == name and each.get("internal", "no") == "no" and each.get("selftest", "passed") == "passed"
    ]
    return max(fit, key=lambda each: int(each["priority"]), default=None)


def accelerated(driver: str) -> bool | None:
    """Whether a driver of the kernel's uses AES instructions or a device, by its name; None where the name doesn't tell. Pure."""
    if _INSTRUCTIONS.search(driver) or _ENGINES.search(driver):
        return True
    return False if _SOFTWARE.search(driver) else None


# ── libraries ─────────────────────────────────────────────────────────────────────────────────────────────────────────

X86_BITS = {"aes": (0, 57), "pclmulqdq": (0, 33), "vaes": (1, 41), "vpclmulqdq": (1, 42)}
"""Of OPENSSL_ia32cap: word and bit. Word 0 is CPUID 1's EDX and above it ECX; word 1 CPUID 7's EBX and above it ECX."""
ARM_BITS = {"aes": 1 << 2, "pmull": 1 << 5}
"""Of OPENSSL_armcap."""
FEATURES = {"aes": "AES", "vaes": "VAES"}


class Capabilities(msgspec.Struct, frozen=True):
    """What of this CPU's AES an OpenSSL uses with an environment."""

    cpu: frozenset[str]
    """Flags of /proc/cpuinfo that matter to AES."""
    hidden: frozenset[str]
    """Those of them that the environment hides."""

    @property
    def used(self) -> frozenset[str]:
        return self.cpu - self.hidden

    def words(self) -> str:
        """`AES and VAES instructions`; `no AES instructions (hidden by OPENSSL_ia32cap)`."""
        shown = " and ".join(word for flag, word in FEATURES.items() if flag in self.used)
        hidden = " and ".join(word for flag, word in FEATURES.items() if flag in self.hidden)
        variable = "OPENSSL_armcap" if platform.machine() == "aarch64" else "OPENSSL_ia32cap"
        return (f"{shown} instructions" if shown else "no AES instructions") + (
            f" ({hidden} hidden by {variable})" if hidden else ""
        )

    def warning(self) -> str:
        """For people, where AES is done without the instructions for it."""
        if "aes" in self.used:
            return ""
        cause = "the environment hides this CPU's" if "aes" in self.hidden else "this CPU has none"
        return f"AES was done without AES instructions: {cause}, {UNUSUAL}"


def openssl_capabilities(
    env: Mapping[str, str] | None = None, flags: Iterable[str] | None = None, machine: str = ""
) -> Capabilities:
    """What an OpenSSL in a process with this environment (default: ours) uses of the CPU. Pure where all three are given.

    It is what the library was told, not what it did: `conditions.masked` proves that.
    """
    env = os.environ if env is None else env
    flags = cpu_flags() if flags is None else set(flags)
    if (machine or platform.machine()) == "aarch64":
        able = frozenset(flags & ARM_BITS.keys())
        return Capabilities(able, frozenset(name for name in able if _hidden_arm(env.get("OPENSSL_armcap", ""), name)))
    able = frozenset(flags & X86_BITS.keys())
    return Capabilities(able, hidden_x86(env.get("OPENSSL_ia32cap", "")) & able)


def _hidden_arm(value: str, name: str) -> bool:
    with contextlib.suppress(ValueError):
        return bool(value) and not int(value, 0) & ARM_BITS[name]
    return False


def hidden_x86(value: str) -> frozenset[str]:
    """The features that a value of OPENSSL_ia32cap takes away: `~` removes bits, without it the word is set. Pure.

    A second word that is left out counts as 0: everything in it is off.
    """
    if not value:
        return frozenset()
    first, colon, rest = value.partition(":")
    words = [first, rest.partition(":")[0] if colon else "0"]
    hidden = set()
    for name, (word, bit) in X86_BITS.items():
        text = words[word]
        if not text:
            continue  # as it is
        with contextlib.suppress(ValueError):
            given = bool(int(text.removeprefix("~"), 0) >> bit & 1)
            if given == text.startswith("~"):
                hidden.add(name)
    return frozenset(hidden)


def is_openssl(library: str) -> bool:
    """Whether a `Server.library` is one that heeds OpenSSL's variables. Pure."""
    return library.startswith("OpenSSL ")


def by_library(library: str, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """`implementation`, and `warning` where there is one, of AES in this library (`Server.library`) for a result's `encryption`.

    `env`: what the server's environment has beside ours. Another library than OpenSSL is named and nothing more is said of it.
    """
    if not is_openssl(library):
        return {"implementation": library} if library else {}
    able = openssl_capabilities({**os.environ, **(env or {})})
    found = {"implementation": f"{library}, {able.words()}"}
    return found | ({"warning": able.warning()} if able.warning() else {})


def cpu_flags() -> set[str]:
    """What /proc/cpuinfo says the CPU can do."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if re.match(r"(flags|Features)\s*:", line):
                return set(line.partition(":")[2].split())
    return set()
