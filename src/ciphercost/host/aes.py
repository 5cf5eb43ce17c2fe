"""aes: which AES implementation the kernel or a library uses, from /proc/crypto, the CPU's flags and an environment.
Measures nothing.

What encrypts below a server is either the kernel (fscrypt, dm-crypt) or a library in a process (nearly always OpenSSL).
Both have several implementations of AES, and the one in use affects the cost more than the mechanism does. For the
kernel:

    cipher = crypto.kernel("xts(aes)")      # after the first file was written: a mode is created on first use
    {"cipher": "AES-256-XTS", "implementation": cipher.words(), "warning": cipher.warning()}

and for a library, with the environment of its process:

    able = crypto.openssl_capabilities(env)
    {"implementation": f"{server.library}, {able.words()}", "warning": able.warning()}

`warning()` is empty if there is nothing to warn about.
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
"""Matches the names of drivers that use the CPU's own AES instructions: x86, arm64, s390, POWER, SPARC, RISC-V."""
_ENGINES = re.compile(
    r"qat|padlock|ccp|caam|mv-|safexcel|hisi|sa2ul|stm32|atmel|omap|dcp|qce|rk-|sun[48]i|geode|virtio"
)
"""Drivers of devices that encrypt by themselves."""
_SOFTWARE = re.compile(r"generic|fixed-time|aes-arm|neonbs|-neon|ssse3|x86_64|i586|-asm")
"""Implementations written for any CPU, or with vector instructions that are not specific to AES."""


class KernelCipher(msgspec.Struct, frozen=True):
    """The kernel's implementation of an AES mode."""

    name: str
    """The name that fscrypt and dm-crypt request: `xts(aes)`."""
    driver: str
    """The implementation in use: the one with the highest priority. Empty: the kernel lists none."""
    priority: int
    accelerated: bool | None
    """Whether it uses the CPU's AES instructions or a device. None: the driver's name doesn't show it."""
    in_use: bool
    """False: the mode has not been used since boot, and the driver is that of the underlying block cipher."""

    def words(self) -> str:
        """`kernel: xts(ecb(aes-fixed-time)) (priority 101), no AES instructions`."""
        if not self.driver:
            return f"kernel: {self.name}, with an implementation that /proc/crypto doesn't list"
        how = {True: "with AES instructions", False: "no AES instructions", None: "instructions unknown"}
        shown = f"{self.driver} (priority {self.priority}), {how[self.accelerated]}"
        return f"kernel: {shown}" if self.in_use else f"kernel: {self.name} not used yet, its AES would be {shown}"

    def warning(self) -> str:
        """A warning if the kernel's AES is slower than this CPU allows, or the CPU has no AES instructions."""
        if self.accelerated is not False:
            return ""
        if "aes" in cpu_flags():
            cause = "this CPU has AES instructions, but the kernel has no driver for them"
        else:
            cause = "this CPU has no AES instructions"
        return f"the kernel encrypts with {self.driver}, in software: {cause}, {UNUSUAL}"


def kernel(name: str, text: str | None = None) -> KernelCipher:
    """The kernel's implementation of this mode. `text`: the content of /proc/crypto; read here if not given. Pure with
    it.
    """
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
    """The implementation that the kernel provides for this name. It never provides internal or failed ones."""
    fit = [
        implementation
        for implementation in known
        if implementation["name"] == name
        and implementation.get("internal", "no") == "no"
        and implementation.get("selftest", "passed") == "passed"
    ]
    return max(fit, key=lambda implementation: int(implementation["priority"]), default=None)


def accelerated(driver: str) -> bool | None:
    """Whether a kernel driver uses AES instructions or a device, judged by its name; None if the name doesn't show it.
    Pure.
    """
    if _INSTRUCTIONS.search(driver) or _ENGINES.search(driver):
        return True
    return False if _SOFTWARE.search(driver) else None


# ── libraries ─────────────────────────────────────────────────────────────────────────────────────────────────────────

X86_BITS = {"aes": (0, 57), "pclmulqdq": (0, 33), "vaes": (1, 41), "vpclmulqdq": (1, 42)}
"""Word and bit in OPENSSL_ia32cap. Word 0 is CPUID 1's EDX, with ECX above it; word 1 is CPUID 7's EBX, with ECX above
it.
"""
ARM_BITS = {"aes": 1 << 2, "pmull": 1 << 5}
"""Bits of OPENSSL_armcap."""
FEATURES = {"aes": "AES", "vaes": "VAES"}


class Capabilities(msgspec.Struct, frozen=True):
    """Which of this CPU's AES instructions OpenSSL uses in an environment."""

    cpu: frozenset[str]
    """Flags of /proc/cpuinfo that matter to AES."""
    hidden: frozenset[str]
    """The flags that the environment hides."""

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
        """A warning if AES runs without AES instructions."""
        if "aes" in self.used:
            return ""
        cause = "the environment hides this CPU's" if "aes" in self.hidden else "this CPU has none"
        return f"AES was done without AES instructions: {cause}, {UNUSUAL}"


def openssl_capabilities(
    env: Mapping[str, str] | None = None, flags: Iterable[str] | None = None, machine: str = ""
) -> Capabilities:
    """What OpenSSL uses of the CPU in a process with this environment (default: the current one). Pure if all three are
    given.

    This is the library's configuration, not what it did: `conditions.masked` proves that.
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
    """The features that a value of OPENSSL_ia32cap disables: `~` clears bits; without it, the word is set. Pure.

    A missing second word counts as 0: everything in it is off.
    """
    if not value:
        return frozenset()
    first, colon, rest = value.partition(":")
    words = [first, rest.partition(":")[0] if colon else "0"]
    hidden = set()
    for name, (word, bit) in X86_BITS.items():
        text = words[word]
        if not text:
            continue  # unchanged
        with contextlib.suppress(ValueError):
            given = bool(int(text.removeprefix("~"), 0) >> bit & 1)
            if given == text.startswith("~"):
                hidden.add(name)
    return frozenset(hidden)


def is_openssl(library: str) -> bool:
    """Whether a `Server.library` obeys OpenSSL's variables. Pure."""
    return library.startswith("OpenSSL ")


def by_library(library: str, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """`implementation`, and if needed `warning`, about AES in this library (`Server.library`), for a result's
    `encryption`.

    `env`: the server's environment variables beside ours. For a library other than OpenSSL, only its name is returned.
    """
    if not is_openssl(library):
        return {"implementation": library} if library else {}
    able = openssl_capabilities({**os.environ, **(env or {})})
    facts = {"implementation": f"{library}, {able.words()}"}
    return facts | ({"warning": able.warning()} if able.warning() else {})


def cpu_flags() -> set[str]:
    """The CPU's features according to /proc/cpuinfo."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if re.match(r"(flags|Features)\s*:", line):
                return set(line.partition(":")[2].split())
    return set()
