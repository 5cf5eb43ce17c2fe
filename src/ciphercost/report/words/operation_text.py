"""What an operation is called where a reader thinks of the own server: a query, a request, a command. Pure."""

from __future__ import annotations

from ciphercost.estimate.parts import round_trips
from ciphercost.model.result import Cell

OPERATION = "operation"
"""What a workload repeats, whatever it is."""
WORDS = {
    "query": ("postgresql", "mysql", "mariadb", "firebird", "h2"),
    "request": ("nginx", "apache", "caddy", "haproxy", "url"),
    "command": ("valkey", "redis", "memcached"),
}
"""The users' words, by engine. An engine without one has operations."""
TASKS = {"backup": "backup", "restart": "restart", "encrypt-existing": "conversion"}
"""The words for an operator's tasks, by the record's name for each."""
FEW_CONNECTS = 0.01
"""New connections per operation up to which an operation is what it sends."""


def of_engine(engine: str) -> str:
    """What one round trip to this server is called."""
    return next((word for word, engines in WORDS.items() if engine in engines), OPERATION)


def of(cell: Cell) -> str:
    """What the cell's operations are called: the users' word if each is one round trip on an open connection."""
    arm = cell.arms.get("plain", {})
    if cell.of_link:
        return "commit"
    if task := arm.get("operation"):
        return TASKS.get(task, OPERATION)
    opens = arm.get("connects", 0) > FEW_CONNECTS * arm.get("operations", 0)
    return OPERATION if cell.layer != "transit" or opens or round_trips(cell) >= 2 else of_engine(cell.engine)


def many(word: str) -> str:
    """`queries`."""
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


def article(word: str) -> str:
    """`a query`, `an operation`."""
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"
