"""Recognises files that `import` can't read but whose kind is known, and says what to do with each. Pure."""

from __future__ import annotations

import re

PRINT_SYSSTAT = "print it with `sadf -d FILE -- -u -r > FILE.csv`, and import that"
PRINT_ATOP = "print it with `atop -r FILE -P CPU,MEM > FILE.txt`, and import that"
KNOWN_BINARY: tuple[tuple[bytes, str], ...] = (
    (b"\x96\xd5", f"sysstat's binary file; {PRINT_SYSSTAT}"),
    (b"\xd5\x96", f"sysstat's binary file; {PRINT_SYSSTAT}"),
    (b"\xef\xbe\xed\xfe", f"atop's binary file; {PRINT_ATOP}"),
    (b"\xfe\xed\xbe\xef", f"atop's binary file; {PRINT_ATOP}"),
    (b"\x1f\x8b", "compressed (gzip); unpack it first"),
    (b"\xfd7zXZ", "compressed (xz); unpack it first"),
    (b"\x28\xb5\x2f\xfd", "compressed (zstd); unpack it first"),
    (b"PK\x03\x04", "an archive or an office document; unpack it, or save the table as .xlsx or CSV"),
    (b"%PDF-", "a PDF; save the tool's printed output, or the table as CSV"),
)
AS_TABLE = (
    "write its figures into a CSV with one run per line (mode,rate,p99_ms), and map its columns: "
    "--columns arm=mode,throughput=rate"
)
JSON = re.compile(r'\A\s*(?:\{\s*(?:"|\})|\[\s*(?:[\[{"]|\]|-?\d[\d.eE+-]*\s*,))')
OF_TOOLS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r'"sysstat"\s*:'), "sysstat"),
    (re.compile(r'"type"\s*:\s*"(?:Metric|Point)"'), "k6's stream of samples (--out json)"),
    (re.compile(r'"seq"\s*:.*"latency"\s*:.*"bytes_out"', re.DOTALL), "vegeta's single requests"),
    (re.compile(r'"latencyDistribution"'), "ghz"),
    (re.compile(r'"numberOfConnections"|"req2xx"'), "bombardier"),
    (re.compile(r'"ALL STATS"'), "memtier_benchmark"),
    (re.compile(r'"rawData"|"concurrencyLevels"'), "TechEmpower's results"),
    (re.compile(r'"confidence_interval"\s*:.*"point_estimate"', re.DOTALL), "criterion's estimates"),
)
"""Who writes which JSON."""
INSTEAD = {
    "sysstat": PRINT_SYSSTAT,
    "k6's stream of samples (--out json)": "import the summary that k6 prints, or run it with --summary-export=FILE",
    "vegeta's single requests": "make a report of them with `vegeta report`, and import that",
    "memtier_benchmark": "import what it prints on the screen",
    "criterion's estimates": "import what criterion prints on the screen",
    "TechEmpower's results": "import the raw.txt of each test, which has wrk's output",
}
KNOWN_TEXT: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^Benchmark (?:#?1|\S+): .*\n\s+Time \(", re.MULTILINE), "hyperfine's screen output, which is rounded; run it with --export-json FILE"),
    (re.compile(r"\Acommand,mean,stddev,median,user,system,min,max"), "hyperfine's CSV, which lacks the time of each run; run it with --export-json FILE"),
    (re.compile(r"^\| Command \| Mean \[\w+\] \| Min ", re.MULTILINE), "hyperfine's Markdown, which lacks single times; run it with --export-json FILE"),
    (re.compile(r"\A\W?Timestamp\W{1,3}User Count\W{1,3}Type\W{1,3}Name"), "Locust's history, whose rows are running totals; import *_stats.csv"),
    (re.compile(r"\AMethod,Name,Error,Occurrences|\ACount,Message,Traceback,Nodes"), "Locust's list of errors; import *_stats.csv"),
    (re.compile(r"\Aresponse-time,DNS\+dialup,DNS,"), "hey's CSV of single requests (-o csv); import what hey prints without it"),
    (re.compile(r"^ATOP - ", re.MULTILINE), "atop's screen output; print its file with `atop -r FILE -P CPU,MEM`, and import that"),
    (re.compile(r"^(?:RESET|SEP)\s*$", re.MULTILINE), "atop's output without CPU lines; run `atop -P CPU,MEM`"),
    (re.compile(r"\A\s*<(?:!doctype html|html|table)\b", re.IGNORECASE), f"HTML; save the tool's printed output, or {AS_TABLE}"),
    (re.compile(r"\A(?:SWP|PRC|PAG|DSK|NET|LVM|MDD) \|"), "atop's lines on swap, disks or network, which show no CPU; import its CPU or MEM lines"),
    (re.compile(r"\A\s*<\?xml|\A\s*<testResults\b"), f"XML; save the tool's printed output, or {AS_TABLE}"),
)  # fmt: skip


def unread_binary(head: bytes) -> str:
    """Return what kind of file begins with these bytes, and what to do with it; empty: none of the known ones."""
    return next((what for mark, what in KNOWN_BINARY if head.startswith(mark)), "")


def unread_text(head: str) -> str:
    """Return what kind of text this is that no importer reads, and what to do with it; empty: none of the known ones."""
    if JSON.match(head):
        tool = next((tool for mark, tool in OF_TOOLS if mark.search(head)), "")
        return f"JSON{f' of {tool}' if tool else ''}, which import can't read; {INSTEAD.get(tool, AS_TABLE)}"
    return next((what for pattern, what in KNOWN_TEXT if pattern.search(head)), "")
