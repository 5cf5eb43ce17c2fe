"""An HdrHistogram (V2, compressed, base64): nanoseconds from 1 to an hour, with three significant digits."""

from __future__ import annotations

import base64
import struct
import zlib
from collections import Counter

HOUR_NS = 3_600_000_000_000
_MAGNITUDE = 10
_HALF = 1 << _MAGNITUDE


def index(value: int) -> int:
    """The number of the bucket that a value belongs to."""
    bucket = max(0, value.bit_length() - (_MAGNITUDE + 1))
    return ((bucket + 1) << _MAGNITUDE) + (value >> bucket) - _HALF


def encoded(counts: Counter[int]) -> str:
    """`counts`: by number of the bucket."""
    body, following = bytearray(), 0
    for at, count in sorted(counts.items()):
        if at > following:
            body += _zigzag(following - at)  # a run of empty buckets is its negative length
        body += _zigzag(count)
        following = at + 1
    header = struct.pack(">IIIIQQd", 0x1C849303, len(body), 0, 3, 1, HOUR_NS, 1.0)
    packed = zlib.compress(header + bytes(body))
    return base64.b64encode(struct.pack(">II", 0x1C849304, len(packed)) + packed).decode()


def _zigzag(value: int) -> bytes:
    number = (value << 1) ^ (value >> 63)
    out = bytearray()
    while number >> 7:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
