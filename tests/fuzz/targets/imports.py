"""Outputs of other benchmark tools (`ciphercost import`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ciphercost.importers import gather
from ciphercost.importers.choices import Choices

BETWEEN = b"\n%%\n"
"""Between the plain arm's file and the encrypted one's."""


def parse(data: bytes, place: Path) -> None:
    plain, _, encrypted = data.partition(BETWEEN)
    files = [place / "plain.txt", place / "tls.txt"]
    for path, content in zip(files, (plain, encrypted), strict=True):
        path.write_bytes(content)
    gather.gather(files, Choices())


PGBENCH = b"""transaction type: <builtin: TPC-B>
scaling factor: 1
query mode: simple
number of clients: 4
number of threads: 1
duration: 10 s
number of transactions actually processed: 9000
number of failed transactions: 0 (0.000%%)
latency average = %d.5 ms
tps = %d.25 (without initial connection time)
"""
WRK = b"""Running 10s test @ http%s://127.0.0.1:80/
  2 threads and 8 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.%d0ms    2.00ms  30.00ms   90.00%%
    Req/Sec     3.50k   100.00     4.00k    70.00%%
  70001 requests in 10.00s, 15.00MB read
Requests/sec:  %d.10
Transfer/sec:  1.5MB
"""
SYSBENCH = b"""sysbench 1.0.20 (using system LuaJIT 2.1.0)

Running the test with following options:
Number of threads: 4

SQL statistics:
    transactions:                        %d  (%d.00 per sec.)
General statistics:
    total time:                          10.0001s

Latency (ms):
         avg:                                    1.10
         95th percentile:                        2.00

Threads fairness:
    events (avg/stddev):           2250.0000/10.00
    execution time (avg/stddev):   9.9990/0.00
"""


HYPERFINE = b'{"results": [{"command": "curl", "mean": %s, "stddev": 0.1, "times": [1.4, 1.6], "exit_codes": [0, 0]}]}'


def seeds(place: Path) -> Iterator[bytes]:
    yield BETWEEN.join((PGBENCH % (2, 900), PGBENCH % (3, 800)))
    yield BETWEEN.join((WRK % (b"", 1, 7000), WRK % (b"s", 2, 5000)))
    yield BETWEEN.join((SYSBENCH % (9000, 900), SYSBENCH % (8000, 800)))
    yield BETWEEN.join((b"time,ops\n1,100\n2,120\n", b"time,ops\n1,90\n2,95\n"))
    yield BETWEEN.join((HYPERFINE % b"1.5", HYPERFINE % b"2.5"))
