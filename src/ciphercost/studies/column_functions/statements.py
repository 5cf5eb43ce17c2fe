"""The statements of the study by operation, server and arm. Pure."""

from __future__ import annotations

from functools import lru_cache

from ciphercost.load import script, secret_sql, workloads
from ciphercost.load.codec import PLAIN, Codec
from ciphercost.load.tables.hospital_records import FIELDS, Record
from ciphercost.load.tables.hospital_sql import LAYOUTS, OPERATIONS, RUN_ONLY, TABLES, WORKLOADS, literal
from ciphercost.model.errors import UsageError, nearest


def operation(workload: str, dialect: str, codec: Codec | None, name: str, record: Record | None = None) -> list[str]:
    """The statements of one operation of the study in one arm: for one record (`insert`) or for all records (the others).

    Without BEGIN and COMMIT, and without statements that keep the tables' size in a run. Raises UsageError for an unknown name.
    """
    if (name == "insert") != (record is not None):
        raise UsageError(
            f"{workload}: insert needs one record; {', '.join(OPERATIONS[1:])} work on all records and take none"
        )
    values: dict[str, int | str] = {field: literal(record, field, dialect) for field in FIELDS} if record else {}
    where = f"workload {workload}, {name}"
    return [
        secret_sql.expand(script.fill(statement, values, where), codec or PLAIN, where)
        for statement in statements_of(workload, dialect, name)
    ]


@lru_cache(maxsize=64)
def statements_of(workload: str, dialect: str, name: str) -> tuple[str, ...]:
    """The statements of an operation in the workload's file, without BEGIN, COMMIT and what only a run needs."""
    definition = workloads.get(workload)
    texts = {
        transaction.name: str(definition.dialect.get(dialect, {}).get(transaction.name, transaction.script))
        for transaction in definition.transaction
    }
    if workload not in (*WORKLOADS, *LAYOUTS) or name not in texts:
        raise UsageError(f"workload {workload} has no operation '{name}': {nearest(name, texts)}")
    text = texts[name].partition(RUN_ONLY)[0]
    text = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("\\"))
    bare = [statement.strip().rstrip(";") for statement in script.bare(text).split(";\n")]
    return tuple(statement for statement in bare if statement and statement.upper() not in ("BEGIN", "COMMIT"))


def tables(workload: str, dialect: str, codec: Codec | None = None) -> list[str]:
    """Statements that create the workload's tables, without rows, in one arm."""
    definition = workloads.get(workload)
    text = secret_sql.expand(
        str(definition.dialect.get(dialect, {}).get("load", definition.load)),
        codec or PLAIN,
        f"workload {workload}, load",
    )
    return [statement.strip() for statement in text.split(";\n") if statement.strip()]


def drop() -> list[str]:
    """Statements that drop the tables, children first. Firebird refuses while any connection has prepared statements on them."""
    return [f"DROP TABLE {table}" for table in reversed(TABLES)]
