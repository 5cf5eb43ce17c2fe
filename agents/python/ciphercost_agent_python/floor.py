"""What a cipher alone costs on this CPU: the libcrypto that this process has loaded, called by ctypes.

A call by ctypes takes about as long as the cipher takes for a few hundred bytes; that is measured too, and subtracted.
"""

from __future__ import annotations

import ctypes
import hmac
import os
import re
import ssl
import time
from pathlib import Path
from typing import Any

from ciphercost_agent_python.failure import Failure, bad_message

RECORD_BYTES = 16384
PASSES = 5
HEADER = b"\x17\x03\x03\x40\x11"
CIPHERS = {
    "aes256-gcm": ("EVP_aes_256_gcm", 32),
    "aes128-gcm": ("EVP_aes_128_gcm", 16),
    "chacha20": ("EVP_chacha20_poly1305", 32),
} | {f"aes{bits}-{mode}": (f"EVP_aes_{bits}_{mode}", bits // 8) for bits in (128, 192, 256) for mode in ("cbc", "ctr")}
"""libcrypto's function for each cipher, and the bytes of a key."""
MACS = {"hmac-sha1": "sha1", "hmac-sha256": "sha256", "hmac-sha512": "sha512"}
_GET_TAG, _SET_TAG, _TAG = 0x10, 0x11, 16


def library() -> Path:
    """The libcrypto of the driver if it brings one, else Python's. Raises Failure."""
    ssl.OPENSSL_VERSION  # noqa: B018 - `ssl` has loaded Python's
    found = dict.fromkeys(re.findall(r"(/\S*libcrypto\S*\.so\S*)", Path("/proc/self/maps").read_text()))
    # The driver's packages come first on Python's path.
    own = [
        path
        for path in found
        if any(place and path.startswith(place) for place in os.environ.get("PYTHONPATH", "").split(os.pathsep))
    ]
    if not found:
        raise Failure("internal", "this Python has no libcrypto of its own that could be measured")
    return Path((own or list(found))[0])


def version() -> str:
    """What that library says of itself. Raises Failure."""
    crypto = ctypes.CDLL(str(library()))
    crypto.OpenSSL_version.restype = ctypes.c_char_p
    found: str = crypto.OpenSSL_version(0).decode()
    return found


def measure(cipher: str, mac: str | None, unit: int, size: int) -> dict[str, Any]:
    """Fields of the answer. Raises Failure for what can't be measured."""
    if cipher not in CIPHERS:
        raise bad_message(f'cipher: no "{cipher}"')
    if mac is not None and mac not in MACS:
        raise bad_message(f'mac: no "{mac}"')
    sealed = cipher.endswith("-gcm") or cipher == "chacha20"
    if mac is not None and sealed:
        raise bad_message(f"mac: {cipher} authenticates by itself")
    if not 1 <= unit <= 1 << 20 or (cipher.endswith("-cbc") and unit % 16):
        raise bad_message("unit: must lie between 1 and 1048576, and be whole blocks for CBC")
    if not 1 <= size <= 1 << 32:
        raise bad_message("bytes: must lie between 1 and 4294967296")
    measured = _Measured(cipher, mac, unit, sealed=sealed)
    units = -(-size // (PASSES * unit))
    costs = {}
    for way in (1, 0):
        costs[way] = min(measured.once(way, units) for _ in range(PASSES)) / (units * unit)
    return {
        "bytes": units * unit * PASSES,
        "ns_per_byte_seal": costs[1],
        "ns_per_byte_open": costs[0],
        "library": measured.version,
    }


class _Measured:
    def __init__(self, cipher: str, mac: str | None, unit: int, *, sealed: bool) -> None:
        crypto = ctypes.CDLL(str(library()))
        self._crypto, self._unit, self._sealed, self._mac = crypto, unit, sealed, MACS[mac] if mac else ""
        self.version = version()
        for name in ("EVP_CIPHER_CTX_new", CIPHERS[cipher][0]):
            getattr(crypto, name).restype = ctypes.c_void_p
        crypto.EVP_CipherInit_ex.argtypes = [
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_char_p,
            ctypes.c_char_p,
            ctypes.c_int,
        ]
        crypto.EVP_CipherUpdate.argtypes = [
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_char_p,
            ctypes.c_int,
        ]
        crypto.EVP_CipherFinal_ex.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        crypto.EVP_CIPHER_CTX_ctrl.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
        crypto.EVP_CIPHER_CTX_set_padding.argtypes = [ctypes.c_void_p, ctypes.c_int]
        crypto.EVP_CIPHER_CTX_free.argtypes = [ctypes.c_void_p]
        self._key = os.urandom(CIPHERS[cipher][1])
        self._kind = getattr(crypto, CIPHERS[cipher][0])()
        self._nonces = 12 if sealed else 16
        self._out = ctypes.create_string_buffer(unit + 32)
        self._length = ctypes.c_int()
        self._tag = ctypes.create_string_buffer(_TAG)

    def once(self, way: int, units: int) -> float:
        """Nanoseconds of CPU that so many units took, without those of the calls. `way`: 1 seals, 0 opens."""
        context = self._crypto.EVP_CIPHER_CTX_new()
        try:
            self._crypto.EVP_CipherInit_ex(context, self._kind, None, self._key, bytes(self._nonces), way)
            self._crypto.EVP_CIPHER_CTX_set_padding(context, 0)
            text = os.urandom(self._unit)
            nonces = [number.to_bytes(self._nonces, "big") for number in range(min(units, 256))]
            began = time.thread_time_ns()
            for number in range(units):
                self._one(context, nonces[number & 255], text, way)
            took = time.thread_time_ns() - began
            return max(took - self._calls(units), units * self._unit * 1e-3)
        finally:
            self._crypto.EVP_CIPHER_CTX_free(context)

    def _one(self, context: Any, nonce: bytes, text: bytes, way: int) -> None:
        crypto = self._crypto
        if self._mac and way == 0:
            hmac.new(self._key, nonce + text, self._mac).digest()
        crypto.EVP_CipherInit_ex(context, None, None, None, nonce, way)
        length = ctypes.byref(self._length)
        if self._sealed:
            crypto.EVP_CipherUpdate(context, None, length, HEADER, len(HEADER))
        if crypto.EVP_CipherUpdate(context, self._out, length, text, self._unit) != 1:
            raise Failure("internal", "libcrypto refused the cipher")
        if self._sealed and way == 0:
            crypto.EVP_CIPHER_CTX_ctrl(context, _SET_TAG, _TAG, self._tag)
        crypto.EVP_CipherFinal_ex(context, self._out, length)  # a tag of random bytes is checked, and found wrong
        if self._sealed and way == 1:
            crypto.EVP_CIPHER_CTX_ctrl(context, _GET_TAG, _TAG, self._tag)
        if self._mac and way == 1:
            hmac.new(self._key, nonce + self._out.raw[: self._unit], self._mac).digest()

    def _calls(self, units: int) -> float:
        """Nanoseconds of CPU of as many calls that do nothing."""
        idle = self._crypto.OpenSSL_version_num
        idle.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
        calls = 5 if self._sealed else 3
        length = ctypes.byref(self._length)
        began = time.thread_time_ns()
        for _ in range(units * calls):
            idle(None, self._out, length, HEADER, 5)
        return time.thread_time_ns() - began


def uses_aes() -> bool:
    """Whether OpenSSL uses the CPU's AES instructions: it has them, and no mask in the environment hides them."""
    words = Path("/proc/cpuinfo").read_text()
    flags = set(re.findall(r"(?m)^(?:flags|Features)\s*:.*$", words)[:1])
    has = any(" aes" in line for line in flags)
    mask = os.environ.get("OPENSSL_ia32cap", "").partition(":")[0]  # noqa: SIM112
    if mask.startswith("~"):
        return has and not int(mask[1:], 0) >> 57 & 1
    if mask:
        return has and bool(int(mask, 0) >> 57 & 1)
    arm = os.environ.get("OPENSSL_armcap", "")  # noqa: SIM112
    return has and (not arm or bool(int(arm, 0) >> 2 & 1))
