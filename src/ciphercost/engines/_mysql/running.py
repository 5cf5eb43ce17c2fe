"""A MySQL or MariaDB server you already run: its URL and where ciphercost finds its password."""

from __future__ import annotations

import getpass
import os
from pathlib import Path
from urllib.parse import SplitResult, unquote

from ciphercost.engines import _network
from ciphercost.engines._mysql.greeting import greeting
from ciphercost.engines._network import parse_url
from ciphercost.model.errors import UsageError
from ciphercost.model.secret import Secret

PARAMETERS = ("ssl-mode", "ssl-ca")
"""`ssl-mode` is accepted and ignored: each arm has its own."""
ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "r": "\r", "s": " ", "\\": "\\"}


class RunningServer(_network.RunningServer):
    """A server you already run."""

    driver = "mysql"

    def __init__(self, engine: str, url: str, programs: tuple[str, ...]) -> None:
        parts, parameters = parse(url, engine)
        options = client_options()
        super().__init__(
            parts.hostname or options.get("host") or "127.0.0.1",
            parts.port or _number(options.get("port", "")) or 3306,
            unquote(parts.username or "") or options.get("user") or getpass.getuser(),
            unquote(parts.path.lstrip("/")),
            programs,
            ca=parameters.get("ssl-ca", ""),
        )
        reported = greeting(self.address, self.port)
        if reported.version and reported.mariadb != (engine == "mariadb"):
            other, right = ("MariaDB", "mariadb") if reported.mariadb else ("MySQL", "mysql")
            raise UsageError(
                f"--url {url}: the server at this address is {other} {reported.version}, not {engine}. "
                f"Write {right}:// for {engine}:// and name the engine {right}."
            )

    def password(self) -> Secret | None:
        return password_found()


def parse(url: str, engine: str) -> tuple[SplitResult, dict[str, str]]:
    """Split a connection URL into its parts and parameters. Raises UsageError, as `parse_url` does."""
    return parse_url(url, (engine,), PARAMETERS, "set MYSQL_PWD, or put it into the [client] group of ~/.my.cnf")


def password_found() -> Secret | None:
    """Return the password from MYSQL_PWD, else from the option files; None if there is none. Raises UsageError."""
    found = os.environ["MYSQL_PWD"] if "MYSQL_PWD" in os.environ else client_options().get("password", "")
    return Secret(found) if found else None


def client_options() -> dict[str, str]:
    """Return user, password, host and port from the [client] groups of $MYSQL_HOME/my.cnf and ~/.my.cnf.

    The later file wins. Raises UsageError if others can read a file that holds a password.
    """
    found: dict[str, str] = {}
    home = os.environ.get("MYSQL_HOME")
    for path in (*([Path(home) / "my.cnf"] if home else []), Path.home() / ".my.cnf"):
        try:
            text = path.read_text(errors="replace")
            closed = not path.stat().st_mode & 0o077
        except OSError:
            continue
        options = parse_options(text)
        if "password" in options and not closed:
            raise UsageError(
                f"{path} holds a password and others can read it, so ciphercost ignores it: chmod 600 {path}"
            )
        found |= options
    return found


def parse_options(text: str) -> dict[str, str]:
    """Parse an option file by the rules of MySQL's own programs: user, password, host and port of [client]. Pure."""
    group, found = "", {}
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and "]" in line:
            group = line[1 : line.index("]")].strip()
        elif group == "client" and line and line[0] not in "#;!":
            name, _, value = line.partition("=")
            if name.strip() in ("user", "password", "host", "port"):
                found[name.strip()] = _value(value.strip())
    return found


def _value(text: str) -> str:
    """Return a value without its quotes and end-of-line comment, with escapes resolved. Pure."""
    if len(text) > 1 and text[0] in "'\"" and (end := text.rfind(text[0])) > 0:
        text = text[1:end]
    else:
        text = text.partition("#")[0].rstrip() if " #" in text else text
    parts, at = [], 0
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text) and text[at + 1] in ESCAPES:
            parts.append(ESCAPES[text[at + 1]])
            at += 2
        else:
            parts.append(text[at])
            at += 1
    return "".join(parts)


def _number(text: str) -> int:
    if not text:
        return 0
    if not text.isdigit():
        raise UsageError(f"port={text} in the [client] group of the MySQL option file is not a number")
    return int(text)
