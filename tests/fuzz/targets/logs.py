"""A server's log, as `workload` reads it, and the workload file that comes of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ciphercost.load import workload_file
from ciphercost.runs import workload_from_logs
from ciphercost.runs.workload_from_logs import Asked

PUBLIC = Path(__file__).parents[2] / "importers"
MOST = 4000
"""Bytes of a seed."""


def parse(data: bytes, place: Path) -> None:
    log, written = place / "a.log", place / "a.toml"
    log.write_bytes(data)
    found, made = workload_from_logs.read([log], Asked(writes=b"access" not in data and b"GET" not in data))
    written.write_text(workload_file.write(made, workload_from_logs.comments(found, made, written)))
    workload_file.read(written)


def seeds(place: Path) -> Iterator[bytes]:
    del place
    for path in sorted((PUBLIC / "sql_logs").iterdir()):
        if path.suffix != ".md":
            text = path.read_bytes()
            yield text[: text.rfind(b"\n", 0, MOST) + 1]
    yield b"2024-01-31T12:00:00.000200Z\t    8 Query\tSELECT a\nFROM t\n2024-01-31T12:00:01.000000Z\t    8 Quit\t\n"
    yield b"# Time: 240131 12:00:00\n# User@Host: a[a] @ [::1]  Id: 8\n# Query_time: 0.1\nSET timestamp=1;\nSELECT 1;\n"
    yield b'query,calls,total_exec_time\n"SELECT 1",7,14.0\n'
    yield b'192.0.2.1 - - [31/Jan/2024:12:00:00 +0000] "GET /a HTTP/1.1" 200 512 "-" "b"\n'
