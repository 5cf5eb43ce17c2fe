"""What `perf script` prints, and the parts that its stacks get."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ciphercost.estimate import profile_parts, profile_tree
from ciphercost.host import perf_text

TEXT = b"""\
nginx 31970/31970 51234.123456789:
\tffffffff81b6a460 _copy_from_iter ([kernel.kallsyms])
\t           8f3a7 [unknown] (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t           2aa10 _start (/usr/sbin/nginx)

postgres 9/9 1.5: PERF_RECORD_FORK(10:10):(9:9)
PERF_RECORD_LOST lost 12
"""


def parse(data: bytes, place: Path) -> None:
    lines = data.decode(errors="replace").splitlines(keepends=True)
    read = list(perf_text.read(lines))
    perf_text.with_descendants([9], read)
    stacks = [event.frames for event in read if isinstance(event, perf_text.Sample)]
    for frames in stacks:
        profile_parts.part(frames)
    profile_tree.tree({("x", *frames): (1.0, 2.0) for frames in stacks})


def seeds(place: Path) -> Iterator[bytes]:
    yield TEXT
    yield TEXT.replace(b"\t", b" ")
