"""Reads HammerDB's result of a timed TPROC-C or TPROC-H test. Pure.

Written from the output that HammerDB 4 and 5 document and from its driver scripts, as no package registry has HammerDB. TPROC-C
prints new orders (NOPM) and transactions (TPM) per minute. An operation is a transaction of HammerDB: a new order is the figure that does
not depend on the database, and only figures of one database are compared, so a run's throughput is its new orders per second.
"""

from __future__ import annotations

import re

from ciphercost.importers.formats import NUMBER, Bad, Lines, above_zero, digits, line_of, number
from ciphercost.importers.formats._whole import rows
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

VUSER = r"(?:Vuser \d+:[^\S\n]*)?"
MARK = re.compile(
    rf"^[^\S\n]*(?:HammerDB CLI v\S+|{VUSER}TEST RESULT : System achieved |{VUSER}\d+ Active Virtual Users configured|>>>>> PROC: \w+"
    rf"|{VUSER}Completed \d+ query set\(s\) in )",
    re.MULTILINE,
)
OWN = re.compile(
    r"Vuser \d+.*|hammerdb>.*|HammerDB CLI .*|(?:>>>>>|CALLS:|P99:|\+-).*|Changed .*|Value .*|Database set .*|Benchmark set .*|ALL VIRTUAL USERS .*"
)
VERSION = re.compile(r"\s*HammerDB CLI v(\S+)\s*")
RESULT = re.compile(rf"\s*{VUSER}TEST RESULT : System achieved (\d+) NOPM from (\d+) (.+?) TPM\s*")
USERS = re.compile(rf"\s*{VUSER}(\d+) Active Virtual Users configured\s*")
PERIOD = re.compile(rf"\s*{VUSER}Timing test period of (\d+) in minutes\s*")
QUERY_SET = re.compile(rf"\s*{VUSER}Completed (\d+) query set\(s\) in (\d+) seconds\s*")
FAILED = re.compile(rf"\s*{VUSER}FINISHED FAILED\s*")
PROCEDURE = re.compile(r"\s*>>>>> PROC: (\w+)\s*")
SUMMARY = re.compile(r"\s*>>>>> SUMMARY OF \d+ ACTIVE VIRTUAL USERS : .*")
CALLS = re.compile(rf"\s*CALLS: (\d+)\s+MIN: {NUMBER}ms\s+AVG: {NUMBER}ms\s+.*")
QUANTILES = re.compile(rf"\s*P99: {NUMBER}ms\s.*\bP50: {NUMBER}ms\s.*")
SERVERS = {"postgresql": "postgresql", "mysql": "mysql", "mariadb": "mariadb"}
NEW_ORDER = "NEWORD"
QUERIES = 22
"""Queries of one set of TPROC-H."""


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading for each test result. The time profile, if any, stands below its result."""
    every = rows(lines, "HammerDB")
    readings: list[Reading] = []
    version, users, minutes, failed = "", 0, 0, 0
    procedure = ""
    summarised = False
    for at, row in enumerate(every, 1):
        if match := VERSION.fullmatch(row):
            version = match[1]
        elif match := USERS.fullmatch(row):
            users = int(match[1])
        elif match := PERIOD.fullmatch(row):
            minutes, failed, summarised = int(match[1]), 0, False
        elif FAILED.fullmatch(row):
            failed += 1
            if readings:
                readings[-1].notes.append(_failures(1))
        elif match := RESULT.fullmatch(row):
            readings.append(of_test(int(match[1]), int(match[2]), match[3], at, minutes, digits(match[1])))
            _describe(readings[-1], version, users, failed)
            failed, summarised = 0, False
        elif match := QUERY_SET.fullmatch(row):
            readings.append(of_queries(int(match[1]), int(match[2]), at))
            _describe(readings[-1], version, users, failed)
        elif SUMMARY.fullmatch(row):
            summarised = True
        elif match := PROCEDURE.fullmatch(row):
            procedure = match[1]
        elif summarised and procedure == NEW_ORDER and readings and (match := CALLS.fullmatch(row)):
            readings[-1].figures |= above_zero({"latency_mean": number(match[3])})
        elif summarised and procedure == NEW_ORDER and readings and (match := QUANTILES.fullmatch(row)):
            readings[-1].figures |= above_zero({"latency_p99": number(match[1]), "latency_p50": number(match[2])})
    if not readings:
        text = "the output has no line 'TEST RESULT : System achieved …', which only a timed test prints"
        raise Bad(len(every), f"{text}; run HammerDB with a timed driver script and import its whole output")
    return readings


def _describe(reading: Reading, version: str, users: int, failed: int) -> None:
    reading.version, reading.clients = version, users
    if failed:
        reading.notes.append(_failures(failed))


def _failures(count: int) -> Warning_:
    return Warning_("errors", f"{count} virtual user{'s' * (count != 1)} of HammerDB ended with FINISHED FAILED")


def of_test(orders: int, transactions: int, database: str, line: int, minutes: int, digits_: int) -> Reading:
    if not orders:
        raise Bad(line, "HammerDB completed no new order, so there is nothing to compare")
    return Reading(
        tool="hammerdb",
        line=line,
        engine="database",
        server=SERVERS.get(database.lower(), ""),
        workload="new orders of TPROC-C",
        factors={} if database.lower() in SERVERS else {"database": database},
        operations=orders * minutes,
        seconds=minutes * 60.0,
        digits=digits_,
        figures={"throughput": orders / 60},
        notes=[]
        if transactions >= orders
        else [
            Warning_(
                "contradiction",
                f"{orders:,} new orders from {transactions:,} transactions per minute; a figure is wrong",
            )
        ],
    )


def of_queries(sets: int, seconds: int, line: int) -> Reading:
    if not sets or not seconds:
        raise Bad(line, "HammerDB's query set took 0 s, so there is nothing to compare; use a larger scale")
    return Reading(
        tool="hammerdb",
        line=line,
        engine="database",
        workload="queries of TPROC-H",
        operations=sets * QUERIES,
        seconds=float(seconds),
        digits=digits(str(seconds)),
        figures={"throughput": sets * QUERIES / seconds, "latency_mean": seconds / (sets * QUERIES) * 1e3},
    )
