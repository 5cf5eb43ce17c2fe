"""PostgreSQL's own counters of its load: pg_stat_database, and pg_stat_statements where it is installed. All databases together.

Sources: the PostgreSQL documentation, "The Cumulative Statistics System" and "pg_stat_statements".
"""

from __future__ import annotations

from ciphercost.engines.capabilities.load_counters import Counted, CounterReader
from ciphercost.model import server_counters
from ciphercost.model.errors import AgentError, UsageError
from ciphercost.model.server_counters import Count

FACTS = (
    "SELECT current_setting('server_version_num'), current_setting('track_counts'), "
    "coalesce(current_setting('pg_stat_statements.track', true), ''), "
    "coalesce(current_setting('pg_stat_statements.track_utility', true), ''), "
    "coalesce((SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace "
    "WHERE extname = 'pg_stat_statements'), ''), "
    "pg_has_role('pg_read_all_stats', 'USAGE')"
)
FLUSHES = 150000
"""From this version on a session can send its own counts at once, so that it is known which of them are in the next read."""
REPORTED_SECONDS = 1.0
"""A busy session reports its transactions once in this time (PGSTAT_MIN_INTERVAL); statements are counted at once."""
BEGIN, END = "START TRANSACTION READ ONLY", "COMMIT"
"""Around each statement. A setting of the session would outlive it on a pooled connection."""
OF_DATABASES = (
    "(SELECT extract(epoch FROM pg_postmaster_start_time())::text || string_agg(coalesce(stats_reset::text, ''), ',' ORDER BY datid) "
    "FROM pg_stat_database), "
    "(SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database WHERE datname IS NOT NULL), "
    "(SELECT sum(sessions) FROM pg_stat_database WHERE datname IS NOT NULL)"
)
ENCRYPTED = "(SELECT count(*) FROM pg_stat_ssl WHERE ssl AND pid <> pg_backend_pid())"
"""Other sessions with TLS. Without pg_read_all_stats the server shows a user its own sessions only."""
OF_TRANSACTIONS = "transactions: xact_commit + xact_rollback in pg_stat_database, all databases"


class PostgresqlCounters(CounterReader):
    """Counts statements if pg_stat_statements can be read, else transactions."""

    operation = "statement"

    def prepare(self) -> None:
        ((version, tracked, kind, utility, self._schema, all_stats),) = self._ask(FACTS)
        self._utility = utility == "on"
        self._tracked = tracked == "on"
        statements = f"{self._schema}.pg_stat_statements"
        why = self._no_statements(str(kind))
        columns: tuple[str, ...] = ()
        if not why:
            try:
                columns = self.agent.reply(self.arm, f"SELECT * FROM {statements}(false) LIMIT 0").columns
            except AgentError as error:
                why = f"pg_stat_statements can't be read ({error.words})"
        self._statements = not why
        # `false`: without the texts of the statements.
        top = " FILTER (WHERE toplevel)" if "toplevel" in columns else ""
        parts = [OF_DATABASES, ENCRYPTED if all_stats == "t" else "0"]
        if self._statements:
            parts.append(f"(SELECT sum(calls){top} FROM {statements}(false))")
            # Since PostgreSQL 14 it says when it was reset, and how often it was full and forgot the rarest statements.
            told = f"(SELECT stats_reset::text FROM {statements}_info), (SELECT dealloc FROM {statements}_info)"
            parts.append(told if "toplevel" in columns else "'', ''")
        if int(str(version)) >= FLUSHES:
            parts.append("pg_stat_force_next_flush()")
        self._sql = f"SELECT {', '.join(parts)}"
        if not self._statements:
            self._count_transactions(why)
        self._ask(self._sql)  # what this session has done so far is in the counters from here on
        self._reads = 0

    def _count_transactions(self, why: str) -> None:
        """`why`: statements are not counted. Raises UsageError if nothing is."""
        if not self._tracked:
            raise UsageError(
                f"the server does not count its load: track_counts is off, and {why}; switch one of them on, or give --rate, --cpu "
                "and what else you know, without --url"
            )
        self.operation = "transaction"
        self.spread = REPORTED_SECONDS
        self.notes = (server_counters.TRANSACTIONS.format(why),)

    def _no_statements(self, kind: str) -> str:
        """Why pg_stat_statements is of no use, as a clause; empty: it is."""
        if not self._schema:
            return "pg_stat_statements is not installed in this database"
        return "pg_stat_statements.track is none" if kind == "none" else ""

    def _ask(self, sql: str) -> list[list[str | None]]:
        self.agent.query(self.arm, BEGIN)
        rows = self.agent.query(self.arm, sql)
        self.agent.query(self.arm, END)
        return rows

    def read(self) -> Counted:
        ((mark, transactions, sessions, encrypted, *more),) = self._ask(self._sql)
        # What earlier reads did is in the counters by now; this one is not.
        own_reads, self._reads = self._reads, self._reads + 1
        counts, marks, notes, lost = [], [str(mark)], [], ""
        if self._statements:
            calls, reset, forgot, *_ = more
            marks.append(str(reset))
            lost = str(forgot)
            done = float(calls or 0) - own_reads * (3 if self._utility else 1)
            counts.append(Count("operations", done, "statements: calls in pg_stat_statements, all databases"))
        if self._tracked:
            done = float(transactions or 0) - own_reads
            counts.append(Count("transactions" if self._statements else "operations", done, OF_TRANSACTIONS))
            counts.append(Count("connections", float(sessions or 0), "sessions in pg_stat_database, all databases"))
        else:
            notes.append("track_counts is off, so new connections are not counted; --connections gives them")
        if int(encrypted or 0):
            notes.append(
                f"{encrypted} of its sessions are encrypted already (pg_stat_ssl), so the CPU time that was read contains encryption"
            )
        return Counted(tuple(counts), tuple(marks), lost, tuple(notes))
