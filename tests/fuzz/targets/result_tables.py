"""Tables in any frame (`ciphercost import --columns`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ciphercost.importers import csv_columns, gather
from ciphercost.importers.choices import Choices

COLUMNS = csv_columns.columns("throughput=tps,arm=mode,latency=p50:ms")


def parse(data: bytes, place: Path) -> None:
    path = place / "table.txt"
    path.write_bytes(data)
    gather.gather([path], Choices(columns=COLUMNS))


def seeds(place: Path) -> Iterator[bytes]:
    yield b"mode,tps,p50\nplain,600.1,1.5\ntls,560.1,2ms\n"
    yield b"useSSL;mode;tps;p50\nfalse;off;1.234,5;0,5\ntrue;on;1.100,5;0,7\n"
    yield b"| mode | tps | p50 |\n|:---|--:|---|\n| **plain** | 1,600.1 | 850us |\n| tls | 560.1k | 2 ms |\n"
    yield b"bench=# select;\n mode | tps | p50 \n------+-----+-----\n off  | 600 | 1\n on   | 560 | 2\n(2 rows)\n\nTime: 1 ms\n"
    yield b"+------+-----+-----+\n| mode | tps | p50 |\n+------+-----+-----+\n| off  | 600 | 1   |\n+------+-----+-----+\n1 row in set\n"
    yield b"*** 1. row ***\n**************************** 1. row ****************************\nmode: tls\n tps: 5\n p50: 2\n"
    yield b"-[ RECORD 1 ]-\nmode | plain\ntps  | 5\np50  | 2\n"
    yield b"mode   tps   p50\nplain  600   1\ntls    560   2\n"
