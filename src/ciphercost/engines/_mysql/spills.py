"""Statements that make InnoDB, Aria and filesort write a given word to temporary files. Pure.

On MySQL 9.7 and MariaDB 10.11 and 11.8 each was seen to write the word unencrypted; otherwise it would prove nothing.
"""

from __future__ import annotations

from ciphercost.engines.capabilities.storage import Spill

TABLE = "ciphercost_spill"
DIGITS = "WITH d AS (SELECT 0 AS n " + " ".join(f"UNION ALL SELECT {digit}" for digit in range(1, 10)) + ")"
NUMBER = "a.n + 10 * b.n + 100 * c.n + 1000 * e.n + 10000 * f.n"
NUMBERS = "d a, d b, d c, d e, d f"
"""The numbers 0 to 99,999, in SQL for which neither server has a limit."""
TIMES = 100
"""How often a row repeats the word: 3.9 KB."""
ROWS = 20_000
LINGER = f"SLEEP(IF(i % {ROWS // 10} = {ROWS // 10 - 1}, 0.3, 0)) = 0"
"""A condition that holds for every row and takes three seconds in total."""


def temporary_table(word: str, flush: str) -> Spill:
    """A table of CREATE TEMPORARY TABLE with 5,000 rows. `flush`: the statement that brings it to disk."""
    return Spill(
        "temporary table",
        (
            f"CREATE TEMPORARY TABLE {TABLE} (b varbinary(4000))",
            f"INSERT INTO {TABLE} {DIGITS} SELECT REPEAT('{word} ', {TIMES}) FROM {NUMBERS} WHERE {NUMBER} < 5000",
            flush,
        ),
    )


def beyond_the_pool() -> str:
    """Return a statement that fills the table until it is a quarter larger than the buffer pool (400 MB at most)."""
    rows = "LEAST(@@innodb_buffer_pool_size * 1.25 / 4096, 100000)"
    return f"INSERT INTO {TABLE} {DIGITS} SELECT REPEAT('other ', 650) FROM {NUMBERS} WHERE {NUMBER} < {rows}"


def internal_table(word: str, to_disk: str) -> Spill:
    """A table that the server creates by itself for a subquery too large for memory."""
    inner = f"SELECT {NUMBER} AS i, REPEAT('{word} ', {TIMES}) AS b FROM {NUMBERS} WHERE {NUMBER} < {ROWS} LIMIT {ROWS}"
    return Spill(
        "internal temporary table",
        (to_disk, f"{DIGITS} SELECT COUNT(*) FROM ({inner}) AS t WHERE {LINGER} AND b <> ''"),
        during=True,
    )


def sort(word: str) -> Spill:
    """A sort in many runs.

    Rows arrive slowly because the runs hold the keys, and the file they are merged into does not.
    """
    inner = (
        f"SELECT {NUMBER} AS i, CAST(CONCAT('{word}', {NUMBER}) AS BINARY) AS b FROM {NUMBERS} "
        f"WHERE {NUMBER} < {ROWS} LIMIT {ROWS}"
    )
    return Spill(
        "sort",
        (
            "SET SESSION sort_buffer_size = 32768",
            f"{DIGITS} SELECT b FROM ({inner}) AS t WHERE {LINGER} ORDER BY b DESC",
        ),
        during=True,
    )
