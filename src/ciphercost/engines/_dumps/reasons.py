"""reasons: why a server refused a statement of a dump, in words that hold nothing of the user's data. Pure.

A server's message repeats values: `invalid input syntax for type integer: "4711"`. So only its code is used, and names of objects.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Reason(NamedTuple):
    """A kind of refusal."""

    code: str
    """Regular expression of the server's code."""
    text: str
    """Regular expression of its message, whose groups are names of objects."""
    words: str
    """For people; `{}`: the name."""


POSTGRESQL = (
    Reason("42601", r"syntax error", "has a syntax error"),
    Reason("", r'extension "([\w-]+)" is not available', "needs the extension {}, which this server lacks"),
    Reason("", r'role "([^"]+)" does not exist', "needs the role {}"),
    Reason("42P01", r'relation "([\w.]+)" does not exist', "names the table or view {}, which does not exist there"),
    Reason("42704", r'type "([\w.]+)" does not exist', "needs the type {}, which does not exist there"),
    Reason("3F000", r'schema "(\w+)" does not exist', "names the schema {}, which does not exist there"),
    Reason("42883", r"function .* does not exist", "calls a function that does not exist there"),
    Reason("42P07|42710|42723|42P06", r"already exists", "creates what exists already"),
    Reason(
        "22P04",
        r"missing data for column|extra data after last expected column",
        "has a row with another number of columns than its table",
    ),
    Reason(
        "22P02|22007|22008|22003",
        r"invalid input (?:syntax|value)|out of range",
        "has a value that its column's type does not take",
    ),
    Reason("22021", r"invalid byte sequence", "has bytes that are not valid in its encoding"),
    Reason("23503", r"violates foreign key constraint", "has a row that breaks a foreign key"),
    Reason("23505", r"duplicate key|could not create unique index", "has a key twice"),
    Reason("23\\d{3}", r"violates (?:not-null|check) constraint", "has a row that breaks a constraint"),
    Reason(
        "42501", r"permission denied|must be (?:owner|superuser)", "needs a right that ciphercost's user does not have"
    ),
    Reason("53100", r"No space left on device|could not extend file", "does not fit on this disk"),
    Reason(
        "",
        r"unrecognized configuration parameter",
        "sets a parameter that this server does not know: it is from a newer server",
    ),
    Reason("", r"unsupported version", "is from a newer pg_dump than this server's pg_restore"),
    Reason(
        "",
        r"unexpected end of file|end of file|could not uncompress|could not read from input file",
        "ends too early: it is truncated",
    ),
    Reason(
        "",
        r"could not find .* file|could not open (?:input )?file|not a valid archive|corrupt",
        "is incomplete: a file of it is missing or damaged",
    ),
    Reason("0A000", r"not supported", "needs something that this server does not support"),
)
MYSQL = (
    Reason("1064", r"SQL syntax", "has a syntax error"),
    Reason(
        "1273|1115",
        r"Unknown (?:collation|character set): '(\w+)'",
        "needs {}, which this server lacks: it is from another vendor or a newer server",
    ),
    Reason("1146", r"doesn't exist", "names a table that does not exist there"),
    Reason("1050|1007|1304|1359", r"already exists", "creates what exists already"),
    Reason("1286", r"Unknown storage engine '(\w+)'", "needs the storage engine {}, which this server lacks"),
    Reason(
        "1193",
        r"Unknown system variable '(\w+)'",
        "sets {}, which this server does not know: it is from another vendor or a newer server",
    ),
    Reason("1062", r"Duplicate entry", "has a key twice"),
    Reason("1451|1452|1005|1215|1822|1824", r"foreign key", "breaks a foreign key"),
    Reason("1136", r"Column count", "has a row with another number of columns than its table"),
    Reason(
        "1366|1292|1265|1264|1406|3140|4025",
        r"ncorrect|[Oo]ut of range|too long",
        "has a value that its column's type does not take",
    ),
    Reason("1153|2020", r"max_allowed_packet|larger than", "has a statement that is larger than the server takes"),
    Reason("1114|3|28|1030", r"is full|No space left", "does not fit on this disk"),
    Reason(
        "3185|3825|3826",
        r"master key|ENCRYPTION",
        "encrypts a table itself, and the plain arm has no key; remove ENCRYPTION='Y' from the dump",
    ),
    Reason(
        "1227|1410|1044|1142", r"[Aa]ccess denied|not allowed", "needs a right that ciphercost's user does not have"
    ),
    Reason(
        "2006|2013",
        r"gone away|Lost connection",
        "ended the connection: the server stopped, or refused the statement's size",
    ),
)
FIREBIRD = (
    Reason(
        "",
        r"[Ee]xpected backup version [\d., or]*?found (\d+)|expected backup version",
        "is from a newer gbak than this server's",
    ),
    Reason(
        "",
        r"unexpected end of file|end of file|invalid (?:record|block|attribute)|don't recognize|expected .* record",
        "ends too early, or is damaged",
    ),
    Reason("", r"cannot open|can't open", "can't be opened by gbak"),
    Reason("", r"[Uu]nable to complete|validation error", "has a row that breaks a constraint"),
    Reason("", r"UDF|entrypoint", "needs a library of functions that this server lacks"),
)


def words(reasons: tuple[Reason, ...], code: str, message: str) -> str:
    """The words for a server's code and message; empty if they are of no kind that is known."""
    for reason in reasons:
        match = re.search(reason.text, message)
        if match or (code and reason.code and re.fullmatch(reason.code, code)):
            name = next((group for group in (match.groups() if match else ()) if group), "")
            return reason.words.format(name) if name or "{}" not in reason.words else reason.words.format("something")
    return ""
