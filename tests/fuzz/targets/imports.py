"""Outputs of other benchmark tools (`ciphercost import`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ciphercost.importers import gather
from ciphercost.importers.choices import Choices

SAMPLES = Path(__file__).parents[2] / "importers" / "samples"
LONGEST = 8192
"""Bytes of an output that is worth mutating."""
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


AB = b"""This is ApacheBench, Version 2.3 <$Revision: 1 $>
Server Software:        nginx/1.28.0
Server Port:            443
SSL/TLS Protocol:       TLSv1.3,TLS_AES_256_GCM_SHA384,2048,256

Document Path:          /
Concurrency Level:      100
Time taken for tests:   5.000 seconds
Complete requests:      50000
Failed requests:        0
Requests per second:    %d.00 [#/sec] (mean)
Time per request:       10.000 [ms] (mean)
  50%%      9
 100%%     96 (longest request)
"""
REDIS = b"""====== SET ======
  1000000 requests completed in 8.30 seconds
  50 parallel clients
  3 bytes payload

  throughput summary: %d.93 requests per second
          avg       min       p50       p95       p99       max
        0.212     0.080     0.207     0.287     0.367     1.023
"""
MEMTIER = b"""ALL STATS
Type         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency     p99 Latency   p99.9 Latency       KB/sec
Totals        %d.74         0.00     98123.40         1.83130         1.78300         3.96700         5.24700      4578.22
"""
H2LOAD = b"""starting benchmark...
spawning thread #0: 64 total client(s). Timing-based test with 0s of warm-up time and 10s of main duration for measurements.
Application protocol: http/1.1
finished in 10.00s, %d.00 req/s, 2.40MB/s
requests: 200000 total, 200064 started, 200000 done, 200000 succeeded, 0 failed, 0 errored, 0 timeout
request     :      393us      4.62ms       3.10ms     3.63ms     4.06ms     3.20ms       623us    90.88%%
req/s       :     302.17      327.98      312.37     322.39     326.86     312.50       4.97    95.31%%
"""
HYPERFINE = b'{"results": [{"command": "curl", "mean": %s, "stddev": 0.1, "times": [1.4, 1.6], "exit_codes": [0, 0]}]}'


def seeds(place: Path) -> Iterator[bytes]:
    yield BETWEEN.join((PGBENCH % (2, 900), PGBENCH % (3, 800)))
    yield BETWEEN.join((WRK % (b"", 1, 7000), WRK % (b"s", 2, 5000)))
    yield BETWEEN.join((SYSBENCH % (9000, 900), SYSBENCH % (8000, 800)))
    yield BETWEEN.join((b"time,ops\n1,100\n2,120\n", b"time,ops\n1,90\n2,95\n"))
    for sample in (AB, REDIS, MEMTIER, H2LOAD):
        yield BETWEEN.join((sample % 20000, sample % 15000))
    quoted = b"".join(
        b"2026-11-21T09:08:07.123Z > " + line for line in (SYSBENCH % (9000, 900)).splitlines(keepends=True)
    )
    yield BETWEEN.join(
        (quoted, b" Running Primer json\n" + WRK % (b"", 1, 7000) + b"Concurrency: 8\n" + WRK % (b"", 1, 7000))
    )
    yield BETWEEN.join((HYPERFINE % b"1.5", HYPERFINE % b"2.5"))
    for path in sorted(SAMPLES.glob("*.*")):
        if path.suffix != ".md" and path.stat().st_size < LONGEST:
            yield BETWEEN.join((path.read_bytes(), path.read_bytes()))
