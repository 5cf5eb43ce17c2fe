"""MySQL's and MariaDB's own counters of their load: SHOW GLOBAL STATUS, and performance_schema for CPU time where it is counted.

Sources: the MySQL Reference Manual, "Server Status Variables", and "Statement Summary Tables" for SUM_CPU_TIME (from 8.0.28).
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from ciphercost.engines.capabilities.load_counters import Counted, CounterReader
from ciphercost.model.errors import AgentError
from ciphercost.model.server_counters import Count, Figure

BEGIN, END = "START TRANSACTION READ ONLY", "COMMIT"
"""Around each statement. A setting of the session would outlive it on a pooled connection."""
OURS = ("Questions", "Bytes_received", "Bytes_sent")
"""Status variables that a session has too, so that our own part is known."""
STORAGE: dict[str, Figure] = {
    "Innodb_pages_read": "pages_read",
    "Innodb_pages_written": "pages_written",
    "Innodb_os_log_written": "log_bytes",
}
"""InnoDB's own work, which its encryption is paid by."""
NAMES = (*OURS, *STORAGE, "Connections", "Ssl_finished_accepts", "Uptime", "Uptime_since_flush_status")
STATUS = "SHOW {} STATUS WHERE Variable_name IN ({})"
CONSUMER = "SELECT ENABLED FROM performance_schema.setup_consumers WHERE NAME = 'events_statements_cpu'"
"""MariaDB and older versions of MySQL have no such row."""
CPU = "SELECT SUM(SUM_CPU_TIME) FROM performance_schema.events_statements_summary_global_by_event_name"
PICO = 1e-12
COARSE = 2.0
"""Seconds: the server counts its own in whole ones."""
READS, PAUSE_S = 4, 0.01
"""Most times that the status is read at once, and seconds between two of them. While a session ends, a read can be without all that this
session did, and so can the next one if it comes at once.
"""


class MysqlCounters(CounterReader):
    """Counts statements that clients sent."""

    operation = "statement"

    def prepare(self) -> None:
        try:
            rows = self.agent.query(self.arm, CONSUMER)
        except AgentError:
            rows = []  # no right to read it, or there is no such schema
        self.counts_cpu = rows == [["YES"]]
        self._began: float | None = None

    def _status(self, scope: str, names: tuple[str, ...]) -> dict[str, float]:
        listed = ", ".join(f"'{name}'" for name in names)
        rows = self.agent.query(self.arm, STATUS.format(scope, listed))
        return {str(name): float(value or 0) for name, value in rows}

    def _whole(self) -> dict[str, float]:
        """The server's status as two reads in a row agree on: nothing in the second is less than in the first."""
        whole = self._status("GLOBAL", NAMES)
        for _ in range(READS - 1):
            time.sleep(PAUSE_S)
            before, whole = whole, self._status("GLOBAL", NAMES)
            if all(whole.get(name, 0.0) >= value for name, value in before.items()):
                break
        return whole

    def read(self) -> Counted:
        self.agent.query(self.arm, BEGIN)
        whole, session = self._whole(), self._status("SESSION", OURS)
        cpu = self.agent.query(self.arm, CPU) if self.counts_cpu else []
        self.agent.query(self.arm, END)
        mine = {name: whole[name] - session[name] for name in OURS}
        counts = [
            Count("operations", mine["Questions"], "statements: Questions in SHOW GLOBAL STATUS"),
            Count("connections", whole["Connections"], "Connections in SHOW GLOBAL STATUS"),
            Count(
                "bytes",
                mine["Bytes_received"] + mine["Bytes_sent"],
                "Bytes_received + Bytes_sent in SHOW GLOBAL STATUS",
            ),
        ]
        counts += [
            Count(figure, whole[name], f"{name} in SHOW GLOBAL STATUS")
            for name, figure in STORAGE.items()
            if name in whole
        ]
        if cpu:
            counts.append(
                Count(
                    "cpu_seconds", float(cpu[0][0] or 0) * PICO, "SUM_CPU_TIME in performance_schema, statements alone"
                )
            )
        if "Ssl_finished_accepts" in whole:
            counts.append(Count("encrypted_connections", whole["Ssl_finished_accepts"], "Ssl_finished_accepts"))
        return Counted(tuple(counts), self._marks(whole))

    def _marks(self, whole: Mapping[str, float]) -> tuple[str, ...]:
        """Empty unless the server was started, or FLUSH STATUS ran, since the last read."""
        counted = min(whole["Uptime"], whole.get("Uptime_since_flush_status", whole["Uptime"]))
        before, self._began = self._began, time.monotonic() - counted
        return () if before is None or self._began - before < COARSE else ("again",)
