"""This agent's drivers: a file for each, which imports the driver when it is asked for."""

from __future__ import annotations

import importlib
import importlib.util

from ciphercost_agent_python.failure import Failure
from ciphercost_agent_python.sql_link import SqlLink

MODULES = {
    "psycopg": ("psycopg", "of_psycopg"),
    "asyncpg": ("asyncpg", "of_asyncpg"),
    "pymysql": ("pymysql", "of_pymysql"),
    "mysql-connector": ("mysql.connector", "of_mysql_connector"),
}
"""By the driver's name: its own module, and that of its links here."""


def here() -> list[str]:
    """The names of the drivers that this process can import."""
    return [name for name, (module, _) in MODULES.items() if importlib.util.find_spec(module.partition(".")[0])]


def links(name: str) -> type[SqlLink]:
    """The links of a driver. Raises Failure."""
    try:
        found: type[SqlLink] = importlib.import_module(f"{__name__}.{MODULES[name][1]}").LINK
    except ImportError as error:
        raise Failure("driver", f"{name} can't be imported: {error}") from None
    return found
