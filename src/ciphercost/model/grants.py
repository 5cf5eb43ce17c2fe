"""grants: what a user needs on a server that is the user's own, per engine: statements, purpose, and what is lost without them.

The one place: errors, `ciphercost list grants` and docs/grants.md print from here. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

MYSQL_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "INDEX", "REFERENCES")


class Grant(NamedTuple):
    """One right."""

    purpose: str
    statement: str
    """What an administrator writes; {user}, {database}. Empty: nothing is needed."""
    without: str
    """What happens where it is missing."""


PROVE = Grant(
    "prove (in transit: client, wire and server witness)",
    "",
    "nothing more than the login: every session may ask about its own encryption",
)
MYSQL = (
    PROVE._replace(
        without=f"{PROVE.without}. The server lets nobody into a database without a right in it: "
        "leave the database out of --url (mysql://USER@HOST/), or grant SELECT on it"
    ),
    Grant(
        "run, calibrate and clean; mechanisms in columns too",
        f"GRANT {', '.join(MYSQL_RIGHTS)} ON `ciphercost\\_%`.* TO '{{user}}'@'%'",
        "no database ciphercost_<run> can be made, filled or dropped, so nothing is measured; --sql runs without it, on your own tables",
    ),
)
GRANTS: dict[str, tuple[Grant, ...]] = {
    "postgresql": (
        PROVE,
        Grant(
            "run, calibrate and clean; mechanisms in columns too",
            'GRANT CREATE ON DATABASE "{database}" TO "{user}"',
            "no schema ciphercost_<run> can be made, so nothing is measured; --sql runs without it, on your own tables",
        ),
        Grant(
            "optional: pgcrypto-… and pgp-sym, once in that database",
            "CREATE EXTENSION pgcrypto SCHEMA public",
            "these mechanisms are refused; the others work",
        ),
    ),
    "mysql": MYSQL,
    "mariadb": MYSQL,
    "firebird": (
        PROVE,
        Grant(
            "run, calibrate and clean; mechanisms in columns too; and DatabaseAccess in firebird.conf must admit the directory",
            "GRANT CREATE DATABASE TO USER {user}",
            "no database file ciphercost_<run> can be made beside yours, so nothing is measured; --sql runs without it, on your own tables",
        ),
    ),
}
AT_REST = (
    "No grant replaces the disk witness: a server that is reached by --url keeps its files out of sight. In columns the server itself is "
    "asked for the stored bytes instead, and the proof says so; mechanisms at rest start servers of their own and take no --url."
)


def statement(engine: str, user: object, database: object = "") -> str:
    """What an administrator writes so that this user may make what a run needs."""
    made = next(each.statement for each in GRANTS[engine] if "{user}" in each.statement)
    quote = "'" if engine in ("mysql", "mariadb") else '"'
    return made.format(user=str(user).replace(quote, 2 * quote), database=str(database).replace('"', '""'))


def rows(user: str = "USER", database: str = "DATABASE") -> Iterator[tuple[str, str]]:
    """(engine, text) for a table: of each right its purpose, its statement, and what is lost without it."""
    for engine, every in GRANTS.items():
        for number, each in enumerate(every):
            asked = each.statement.format(user=user, database=database)
            yield engine if number == 0 else "", f"{each.purpose}: " + (f"{asked};" if asked else each.without)
            if asked:
                yield "", f"without it: {each.without}"


def markdown() -> str:
    """docs/grants.md. `python -m ciphercost.model.grants` prints it."""
    lines = [
        "# What a run needs on a server of yours",
        "",
        "For `ciphercost run`, `calibrate`, `clean` and `prove` with `--url`. Replace USER and DATABASE. `ciphercost list",
        "grants` prints the same; an error prints the statement with your names in it. Revoke it after the run.",
        "",
    ]
    for engine, every in GRANTS.items():
        lines += [f"## {engine}", ""]
        for each in every:
            asked = each.statement.format(user="USER", database="DATABASE")
            lines += [f"**{each.purpose[:1].upper()}{each.purpose[1:]}**", ""]
            lines += (
                ["```sql", f"{asked};", "```", "", f"Without it: {each.without}.", ""]
                if asked
                else [f"{each.without[:1].upper()}{each.without[1:]}.", ""]
            )
    return "\n".join([*lines, "## The disk witness", "", AT_REST, ""])


if __name__ == "__main__":
    print(markdown(), end="")
