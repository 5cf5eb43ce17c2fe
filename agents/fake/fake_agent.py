#!/usr/bin/env python3
"""An agent for tests of the pipeline: it speaks the protocol, generates no load, and answers slices from a model with a
known effect.

    fake_agent.py [--effect 0.02] [--queue mm1] [--busy 50000] [--die-busy 60000] [--sd 0.01] [--drift 0.0] [--rate 20000] [--differ] [--die-after N] [--seed 1]

Time is virtual: it answers a slice of five seconds at once. `--effect`: by this share the encrypted arm's operations
take longer.
"""

from __future__ import annotations

import argparse
import base64
import collections
import json
import math
import random
import struct
import sys
import zlib
from typing import Any

FIELDS: dict[str, tuple[dict[str, type | tuple[type, ...]], dict[str, type | tuple[type, ...]]]] = {
    "program": ({"name": str}, {}),
    "variable": (
        {"name": str, "kind": str},
        {"low": int, "high": int, "skew": (int, float), "length": int, "value": str, "of": str, "bits": int},
    ),
    "cipher": ({"name": str, "key": str}, {"blind": str}),
    "transaction": ({"name": str, "weight": int}, {}),
    "statement": ({"transaction": str, "sql": str, "parameters": str}, {"arm": str, "open": bool, "keep": str}),
    "connect": (
        {"arm": str, "driver": str},
        {
            "connections": int,
            "threads": int,
            "busy_ns": int,
            "jitter": (int, float),
            "per_request": bool,
            "timeout": (int, float),
        },
    ),
    "query": ({"arm": str, "sql": str}, {"all": bool, "timeout": (int, float)}),
    "slice": (
        {"arm": str, "seconds": (int, float)},
        {
            "discard": (int, float),
            "seed": int,
            "rate": (int, float),
            "operations": int,
            "arrivals": str,
            "gaps_us": str,
            "timeout": (int, float),
        },
    ),
    "floor": ({"cipher": str, "bytes": int}, {"mac": str, "unit": int}),
    "disconnect": ({"arm": str}, {}),
    "bye": ({}, {}),
}


SKEWED_AFTER = 60
"""Slices before those of `--skewed`."""


class Refused(Exception):
    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class FakeAgent:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.random = random.Random(options.seed)
        self.clock = 0.0
        self.greeted = False
        self.program_name = ""
        self.transactions: dict[str, int] = {}
        self.kinds: dict[str, str] = {}
        self.ciphered = self.blind = False
        self.arms: dict[str, dict[str, Any]] = {}
        self.slices = 0

    def answer(self, line: str) -> dict[str, Any]:
        try:
            message = json.loads(line)
            if not isinstance(message, dict) or not isinstance(message.get("type"), str):
                raise Refused("bad-message", "not a JSON object with a `type`")
            return self.act(message)
        except json.JSONDecodeError as error:
            return {"type": "error", "code": "bad-message", "text": f"not JSON: {error}"}
        except Refused as refused:
            return {"type": "error", "code": refused.code, "text": str(refused)}

    def act(self, message: dict[str, Any]) -> dict[str, Any]:
        kind = message.pop("type")
        if kind == "hello":
            return self.hello(message)
        if not self.greeted:
            raise Refused("protocol", "send `hello` first")
        if kind not in FIELDS:
            raise Refused("unknown-message", f"unknown message '{kind}'")
        required, optional = FIELDS[kind]
        for name, value in message.items():
            wanted = required.get(name) or optional.get(name)
            if wanted is None:
                raise Refused("bad-message", f"{kind} has no field '{name}'")
            if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
                raise Refused("bad-message", f"{kind}: '{name}' has the wrong type")
        for name in required:
            if name not in message:
                raise Refused("bad-message", f"{kind}: missing field '{name}'")
        # Nothing here waits for a server, so it misses no deadline.
        if not 0 < message.pop("timeout", 1) <= 86400:
            raise Refused("bad-message", f"{kind}: 'timeout' must be above 0 and at most 86400")
        result: dict[str, Any] = getattr(self, kind)(**message)
        return result

    def hello(self, message: dict[str, Any]) -> dict[str, Any]:
        if set(message) != {"protocol"} or type(message["protocol"]) is not int:
            raise Refused("bad-message", "hello needs `protocol`, a number")
        if self.greeted:
            raise Refused("protocol", "`hello` was already sent")
        if message["protocol"] != 1:
            raise Refused("protocol", "only protocol version 1 is supported")
        self.greeted = True
        return {
            "type": "hello",
            "protocol": 1,
            "agent": "fake",
            "version": "0",
            "drivers": "null",
            "tls_library": "",
            "aes": False,
        }

    # These methods and their arguments have the names of the protocol's messages and fields.

    def program(self, name: str) -> dict[str, Any]:
        self.program_name = name
        self.transactions = {}
        self.kinds = {}
        self.ciphered = self.blind = False
        return {"type": "ok"}

    def variable(self, **fields: Any) -> dict[str, Any]:
        self.need_program()
        needs = {
            "uniform": {"low", "high"},
            "zipfian": {"low", "high", "skew"},
            "sequence": {"low"},
            "text": {"length"},
            "constant": {"value"},
            "each": {"low", "high"},
            "sealed": {"of"},
            "blind": {"of", "bits"},
        }
        kind = fields["kind"]
        if kind not in needs or needs[kind] != set(fields) - {"name", "kind"}:
            raise Refused("bad-message", f"a variable of kind '{kind}' does not accept these fields")
        if "high" in fields and fields["low"] > fields["high"]:
            raise Refused("bad-message", "low is above high")
        made = ("sealed", "blind", "each")
        if kind in made[:2] and (not self.ciphered or self.kinds.get(fields["of"], "sealed") in made):
            raise Refused(
                "bad-message", "`sealed` needs a cipher, and a variable that can be sealed and is not sealed yet"
            )
        if kind == "blind" and (not self.blind or fields["bits"] % 8 or not 8 <= fields["bits"] <= 256):
            raise Refused("bad-message", "`blind` needs its own key, and bits: a multiple of 8 from 8 to 256")
        self.kinds[fields["name"]] = kind
        return {"type": "ok"}

    def cipher(self, name: str, key: str, blind: str | None = None) -> dict[str, Any]:
        self.need_program()
        keys = [key] if blind is None else [key, blind]
        sound = all(len(digits) == 64 and set(digits) <= set("0123456789abcdefABCDEF") for digits in keys)
        if name != "aes256-gcm" or not sound or self.ciphered:
            raise Refused(
                "bad-message", "a program accepts one cipher, aes256-gcm, with a key of 64 hexadecimal digits"
            )
        self.ciphered, self.blind = True, blind is not None
        return {"type": "ok"}

    def transaction(self, name: str, weight: int) -> dict[str, Any]:
        self.need_program()
        if weight < 1:
            raise Refused("bad-message", "a weight must be at least 1")
        self.transactions[name] = weight
        return {"type": "ok"}

    def statement(
        self,
        transaction: str,
        parameters: str,
        open: bool = False,  # noqa: A002
        keep: str = "",
        **_: Any,
    ) -> dict[str, Any]:
        self.need_program()
        if len({name for name in parameters.split() if self.kinds.get(name) == "each"}) > 1:
            raise Refused("bad-message", "a statement may use at most one variable of kind 'each'")
        if open and not self.ciphered:
            raise Refused("bad-message", "`open` needs a cipher")
        if keep and (not open or self.kinds.get(keep, "sealed") in ("sealed", "blind", "each")):
            raise Refused("bad-message", "`keep` names a variable that is drawn once, and needs `open`")
        if transaction not in self.transactions:
            raise Refused("bad-message", f"unknown transaction '{transaction}'")
        return {"type": "ok"}

    def connect(self, arm: str, driver: str, **fields: Any) -> dict[str, Any]:
        if driver != "null":
            raise Refused("connect", f"the fake agent has no driver '{driver}'")
        if fields.get("connections", 1) < 1:
            raise Refused("bad-message", "connections must be at least 1")
        self.arms[arm] = fields
        return {
            "type": "connected", "arm": arm, "connections": fields.get("connections", 1), "encrypted": False, "protocol": "", "cipher": "",
            "group": "", "resumed": 0, "verified": False, "peer": "", "peer_key": "", "server_version": "", "auth": "", "library": "",
        }  # fmt: skip

    def query(self, arm: str, **_: Any) -> dict[str, Any]:
        self.need_arm(arm)
        raise Refused("statement", "the null driver does not support queries")

    def slice(
        self,
        arm: str,
        seconds: float,
        discard: float = 0.0,
        seed: int = 0,
        rate: float = 0.0,
        operations: int = 0,
        arrivals: str = "",
        gaps_us: str = "",
    ) -> dict[str, Any]:
        del seed, gaps_us
        self.need_arm(arm)
        if not self.transactions:
            raise Refused("no-program", "no transaction is declared")
        if seconds <= 0 or not 0 <= discard < 1 or (operations and discard):
            raise Refused("bad-message", "seconds must be above 0; discard from 0 to below 1, and 0 with operations")
        if arrivals not in ("", "even", "random") or (arrivals and not rate):
            raise Refused("bad-message", "arrivals must be even or random, with a rate")
        self.slices += 1
        if self.options.die_after and self.slices > self.options.die_after:
            sys.exit(3)
        if SKEWED_AFTER < self.slices <= SKEWED_AFTER + self.options.skewed:
            raise Refused("skewed", "the agents began to count 9 ms apart")
        lost = getattr(self.options, f"lose_{arm}")
        if lost and discard and self.random.random() < lost:
            self.clock += seconds
            raise Refused(self.options.lose_as, "the server closed the connection")
        print(json.dumps({"type": "counting", "arm": arm}, separators=(",", ":")), flush=True)
        counted = seconds * (1 - discard)
        slow = math.exp(self.random.gauss(0, self.options.sd) + self.options.drift * self.clock)
        if arm == "encrypted":
            slow *= 1 + self.options.effect
        busy = self.arms[arm].get("busy_ns", 0)
        if self.options.busy and busy:
            slow *= busy / self.options.busy
            if self.options.die_busy and busy >= self.options.die_busy:
                sys.exit(3)
        latency = 1e9 / self.options.rate * slow
        done = operations or round(min(rate or 1e18, 1e9 / latency) * counted)
        times = histogram(latency, done)
        if self.options.queue and rate and arrivals == "random":
            stalls = self.options.stall_encrypted if arm == "encrypted" else 0.0
            waited = self.queue(latency, rate, seconds, discard, stalls)
            done, times = len(waited), histogram_of(waited)
        self.clock += done * latency / 1e9 if operations else seconds
        failing = self.options.fail_after and self.slices > self.options.fail_after
        errors = round(done * self.options.fail_share) if failing else 0
        done -= errors
        return {
            "type": "slice", "arm": arm, "seconds": done * latency / 1e9 if operations else counted, "operations": done, "work": float(done), "errors": errors,
            "rows": done, "sealed": 0, "opened": 0, "retries": 0, "checksum": f"{done + (arm == 'encrypted' and self.options.differ):016x}",
            "cpu_user_ns": round(done * latency * 0.6), "cpu_system_ns": round(done * latency * 0.3),
            "bytes_sent": 0, "bytes_received": 0, "segments_sent": 0, "segments_received": 0, "connects": 0, "resumed": 0, "late": 0,
            "threads": 1, "histogram": times,
            "first_error": "out of memory" if errors else "", "error_kinds": f"53200={errors}" if errors else "",
        }  # fmt: skip

    def queue(self, service_ns: float, rate: float, seconds: float, discard: float, stalls: float) -> list[int]:
        """Latencies in ns of what one server answers in the counted part of a slice, from an empty queue at its beginning.

        `stalls`: so many operations per second take exponentially longer, `--stall-ms` on average.
        """
        now, free, found = 0.0, 0.0, []
        count_from, end = seconds * discard * 1e9, seconds * 1e9
        while True:
            now += self.random.expovariate(rate) * 1e9
            begins = max(now, free)
            if begins >= end:
                return found
            free = begins + service_ns * (self.random.expovariate(1) if self.options.queue == "mm1" else 1)
            if stalls and self.random.random() < stalls / rate:
                free += self.random.expovariate(1) * self.options.stall_ms * 1e6
            if count_from <= free < end:
                found.append(int(free - now))

    def floor(self, cipher: str, mac: str = "", unit: int = 16384, **fields: Any) -> dict[str, Any]:
        costs = {"aes256-gcm": 0.1, "aes128-gcm": 0.09, "chacha20": 0.3}
        costs |= {f"aes{bits}-{mode}": 0.2 for bits in (128, 192, 256) for mode in ("cbc", "ctr")}
        if cipher not in costs or fields["bytes"] < 1:
            raise Refused("bad-message", "floor needs a known cipher and at least one byte")
        if unit < 1 or ("cbc" in cipher and unit % 16):
            raise Refused("bad-message", "unit: must be at least 1, and whole blocks for CBC")
        if mac not in ("", "hmac-sha1", "hmac-sha256", "hmac-sha512") or (mac and not cipher.startswith("aes")):
            raise Refused("bad-message", f"mac: no {mac}")
        if mac and cipher.endswith("-gcm"):
            raise Refused("bad-message", f"mac: {cipher} authenticates by itself")
        cost = costs[cipher] + (1.5 if mac else 0)
        return {
            "type": "floor", "cipher": cipher, "bytes": fields["bytes"], "ns_per_byte_seal": cost,
            "ns_per_byte_open": cost, "library": "",
        }  # fmt: skip

    def disconnect(self, arm: str) -> dict[str, Any]:
        self.need_arm(arm)
        del self.arms[arm]
        return {"type": "ok"}

    def bye(self) -> dict[str, Any]:
        return {"type": "ok"}

    def need_program(self) -> None:
        if not self.program_name:
            raise Refused("no-program", "there is no program")

    def need_arm(self, arm: str) -> None:
        if arm not in self.arms:
            raise Refused("no-arm", f"arm '{arm}' is not connected")


def histogram(latency_ns: float, count: int) -> str:
    """Return an HdrHistogram V2, compressed: `count` values in one bucket (three significant digits, 1 to 3.6e12)."""
    return _encoded({_index(int(latency_ns)): count} if count else {})


def histogram_of(latencies_ns: list[int]) -> str:
    """Return the same of any values."""
    return _encoded(collections.Counter(map(_index, latencies_ns)))


def _index(value: int) -> int:
    half, sub_magnitude = 1024, 10
    bucket = max(0, value.bit_length() - (sub_magnitude + 1))
    return ((bucket + 1) << sub_magnitude) + (value >> bucket) - half


def _encoded(counts: dict[int, int]) -> str:
    body, following = b"", 0
    for index, count in sorted(counts.items()):
        # A run of empty buckets is its negative length.
        body += (_zigzag(following - index) if index > following else b"") + _zigzag(count)
        following = index + 1
    header = struct.pack(">IIIIQQd", 0x1C849303, len(body), 0, 3, 1, 3_600_000_000_000, 1.0)
    packed = zlib.compress(header + body)
    return base64.b64encode(struct.pack(">II", 0x1C849304, len(packed)) + packed).decode()


def _zigzag(value: int) -> bytes:
    number = (value << 1) ^ (value >> 63)
    out = b""
    while number >> 7:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--effect", type=float, default=0.0)
    parser.add_argument("--queue", choices=["mm1", "md1"], default="")
    parser.add_argument(
        "--stall-encrypted", type=float, default=0.0, metavar="N", help="stalls per second of its queue"
    )
    parser.add_argument("--stall-ms", type=float, default=15.0, help="their mean length")
    parser.add_argument("--sd", type=float, default=0.0)
    parser.add_argument(
        "--busy", type=int, default=0, metavar="NS", help="busy_ns without an effect; a longer wait is an effect"
    )
    parser.add_argument(
        "--die-busy", type=int, default=0, metavar="NS", help="exit during a slice of an arm with this busy_ns"
    )
    parser.add_argument("--drift", type=float, default=0.0, help="change of the logarithm per second of virtual time")
    parser.add_argument("--rate", type=float, default=20_000.0)
    parser.add_argument("--differ", action="store_true", help="the encrypted arm returns other rows")
    parser.add_argument("--die-after", type=int, default=0, metavar="N", help="exit in the middle of slice N + 1")
    parser.add_argument("--fail-after", type=int, default=0, metavar="N", help="from slice N + 1 on, operations fail")
    parser.add_argument(
        "--skewed",
        type=int,
        default=0,
        metavar="N",
        help="N slices in a row fail as if agents had not counted together",
    )
    for arm in ("plain", "encrypted"):
        parser.add_argument(
            f"--lose-{arm}", type=float, default=0.0, metavar="SHARE", help="of the arm's counted slices fails"
        )
    parser.add_argument("--lose-as", default="connection", metavar="CODE", help="of that failure: connection, timeout")
    parser.add_argument("--fail-share", type=float, default=0.5, help="the share of them that fails")
    parser.add_argument("--seed", type=int, default=1)
    agent = FakeAgent(parser.parse_args())
    for line in sys.stdin:
        said = agent.answer(line)
        print(json.dumps(said, separators=(",", ":")), flush=True)
        if said["type"] == "error" and said["code"] == "protocol" and not agent.greeted and '"hello"' in line:
            return 2
        if said["type"] == "ok" and json.loads(line)["type"] == "bye":
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
