"""Rights that a user needs on the server of --url, for each engine: purpose, statement, and what fails without it.

Errors, `ciphercost list grants` and docs/grants.md all use this module. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

MYSQL_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "INDEX", "REFERENCES")


class Grant(NamedTuple):
    """One right."""

    purpose: str
    statement: str
    """The statement for an administrator, with {user} and {database}. Empty: no statement is needed."""
    without: str
    """What happens if the right is missing."""


PROVE = Grant(
    "prove (in transit: client, wire and server witness)",
    "",
    "needs only the login: every session may query its own encryption, and on PostgreSQL its own client certificate. With --cert, one "
    "more login is tried without the certificate",
)
PREDICT = "predict --url (reads counters)"
MYSQL = (
    PROVE._replace(
        without=f"{PROVE.without}. The server refuses a login to a database in which the user has no right: "
        "remove the database from --url (mysql://USER@HOST/), or grant SELECT on it"
    ),
    Grant(
        "run, calibrate and clean, also with column encryption",
        f"GRANT {', '.join(MYSQL_RIGHTS)} ON `ciphercost\\_%`.* TO '{{user}}'@'%'",
        "ciphercost can't create, fill or drop its database ciphercost_<run>, so it measures no workload that has tables; "
        "--sql needs only the rights of its statements, such as SELECT on your tables; --workload connect needs none",
    ),
    Grant(
        PREDICT,
        "",
        "needs only the login: SHOW GLOBAL STATUS is for everybody. Only for a MySQL server on another machine that counts CPU time "
        "(consumer events_statements_cpu), SELECT on performance_schema.* replaces --cpu",
    ),
)
KEY_VALUE = (
    PROVE._replace(
        purpose="prove (in transit: client and wire witness)",
        without="needs only the login: a user without any right to a command can be proven",
    ),
    Grant(
        "run with --sql, here for commands that read your keys with GET",
        "ACL SETUSER {user} on >PASSWORD ~KEYS:* +get",
        "the server refuses the commands (NOPERM), and ciphercost measures nothing; --workload connect needs +ping alone. ciphercost makes "
        "no keys on your server, so no other workload runs there",
    ),
    Grant(
        PREDICT,
        "ACL SETUSER {user} on >PASSWORD +info",
        "the server refuses INFO (NOPERM), and ciphercost reads nothing; --rate and --cpu need no server",
    ),
)
GRANTS: dict[str, tuple[Grant, ...]] = {
    "postgresql": (
        PROVE,
        Grant(
            "run, calibrate and clean, also with column encryption",
            'GRANT CREATE ON DATABASE "{database}" TO "{user}"',
            "ciphercost can't create its schema ciphercost_<run>, so it measures no workload that has tables; "
            "--sql needs only the rights of its statements, such as SELECT on your tables; --workload connect needs none",
        ),
        Grant(
            "optional: pgcrypto-… and pgp-sym, once in that database",
            "CREATE EXTENSION pgcrypto SCHEMA public",
            "ciphercost refuses these mechanisms; all others work",
        ),
        Grant(
            PREDICT,
            "",
            "needs only the login: pg_stat_database and, once CREATE EXTENSION pg_stat_statements ran in that database, pg_stat_statements "
            "show their counts to everybody. With the role pg_read_all_stats, ciphercost also sees how many sessions are encrypted already",
        ),
    ),
    "mysql": MYSQL,
    "mariadb": MYSQL,
    "firebird": (
        PROVE,
        Grant(
            "run, calibrate and clean, also with column encryption; DatabaseAccess in firebird.conf must also allow the directory",
            "GRANT CREATE DATABASE TO USER {user}",
            "ciphercost can't create its database file ciphercost_<run> beside yours, so it measures no workload that has "
            "tables; --sql needs only the rights of its statements, such as SELECT on your tables; --workload connect needs none",
        ),
    ),
    "valkey": KEY_VALUE,
    "redis": KEY_VALUE,
    "memcached": (
        PROVE._replace(
            purpose="prove (in transit: client and wire witness), run with --sql and with --workload connect",
            without="needs only the login, if the server asks for one: memcached knows no rights. ciphercost stores nothing there: its "
            "proof deletes a key that does not exist, because the answer repeats the key's name",
        ),
    ),
}
AT_REST = (
    "No right replaces the disk witness, because ciphercost can't read the files of the server of --url. For column encryption it asks the "
    "server for the stored bytes instead, and the proof says so. Mechanisms at rest do not work with --url: ciphercost starts their servers."
)


def statement(engine: str, user: object, database: object = "") -> str:
    """The statement that gives this user the right to create what a run needs."""
    template = next(grant.statement for grant in GRANTS[engine] if "{user}" in grant.statement)
    quote = "'" if engine in ("mysql", "mariadb") else '"'
    return template.format(user=str(user).replace(quote, 2 * quote), database=str(database).replace('"', '""'))


def _end(engine: str) -> str:
    """What ends a statement on this engine."""
    return "" if GRANTS[engine] is KEY_VALUE else ";"


def texts(engine: str) -> Iterator[str]:
    """Purpose and statement of each right on this engine, and what fails without it."""
    for grant in GRANTS[engine]:
        asked = grant.statement.format(user="USER", database="DATABASE")
        yield f"{grant.purpose}: " + (f"{asked}{_end(engine)}" if asked else grant.without)
        if asked:
            yield f"without it, {grant.without}"


def markdown() -> str:
    """docs/grants.md. `python -m ciphercost.model.grants` prints it."""
    lines = [
        "# Rights that ciphercost needs on your server",
        "",
        "`ciphercost run`, `calibrate`, `clean`, `prove` and `predict` need these rights on the server of `--url`. Replace USER and DATABASE.",
        "`ciphercost list grants` prints the same list, and errors print the statement with your own names. Revoke the right",
        "after the run.",
        "",
    ]
    for engine, every in GRANTS.items():
        lines += [f"## {engine}", ""]
        for grant in every:
            asked = grant.statement.format(user="USER", database="DATABASE")
            lines += [f"**{grant.purpose[:1].upper()}{grant.purpose[1:]}**", ""]
            lines += (
                [
                    "```sql" if _end(engine) else "```text",
                    f"{asked}{_end(engine)}",
                    "```",
                    "",
                    f"Without it, {grant.without}.",
                    "",
                ]
                if asked
                else [f"{grant.without[:1].upper()}{grant.without[1:]}.", ""]
            )
    return "\n".join([*lines, "## The disk witness", "", AT_REST, ""])


if __name__ == "__main__":
    print(markdown(), end="")
