"""What MySQL's drivers have in common: the words of their `connect`, and the errors that end a connection."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from ciphercost_agent_python.failure import Failure
from ciphercost_agent_python.settings import Settings

FORBIDDEN = ("local_infile", "allow_local_infile", "allow_local_infile_in_path", "init_command", "read_default_file", "option_files",
             "unix_socket")  # fmt: skip
"""Words by which a server could read files of this machine, or that would leave the address of the URL."""
LOST = (1053, 1927, 2006, 2013, 2014, 2055, 4031)
"""Numbers of errors that end a connection."""


def words(settings: Settings) -> dict[str, Any]:
    """Words of `connect`: those of the application's URL, if there is one, and above them what else is given. Raises Failure."""
    return (_of_url(settings.dsn) if settings.dsn else {}) | settings.given


def _of_url(url: str) -> dict[str, Any]:
    """Its parameters are words, as SQLAlchemy passes them on. `true` and `false` become booleans, digits a number."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Failure("driver", f"the URL can't be read: {error}") from None
    found: dict[str, Any] = {
        "host": parts.hostname,
        "port": port,
        "user": unquote(parts.username) if parts.username else None,
        "database": unquote(parts.path.removeprefix("/")),
    }
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name in FORBIDDEN:
            raise Failure("driver", f"{name} in a URL is not allowed here")
        found[name] = {"true": True, "false": False}.get(value.lower(), int(value) if value.isdecimal() else value)
    return {name: value for name, value in found.items() if value not in (None, "")}
