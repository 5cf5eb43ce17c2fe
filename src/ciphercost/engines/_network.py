"""_network: what servers that are reached by host and port have in common: ours, the user's, their URLs. No engine itself."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qs, urlsplit

from ciphercost.engines import Server
from ciphercost.host.marks import hand_over
from ciphercost.host.ports import address_of, crypto_library, listener
from ciphercost.load.passwords import with_password
from ciphercost.model.errors import UsageError, nearest

if TYPE_CHECKING:
    from ciphercost.host.launch import Launch

PASSWORD_FILE = "ciphercost.password"  # noqa: S105 - a file name
"""In a server's directory: the random password of our own user, 0600."""
STOP_SECONDS = 60.0


class StartedServer(Server):
    """One that we started. A subclass says who logs in where."""

    driver: str
    user: str
    database: str

    def __init__(self, started: Launch, directory: Path, library: str | None = None) -> None:
        """`library`: what it encrypts with, where that is not an OpenSSL that it has loaded."""
        self.process = started.process
        self.pid = started.process.pid
        self.directory: Path = directory
        self.port = started.port
        self.cgroups = started.cgroups
        self.library = crypto_library(self.pid) if library is None else library

    def connection(self) -> dict[str, object]:
        return {
            "driver": self.driver,
            "host": "127.0.0.1",
            "port": self.port,
            "user": self.user,
            "database": self.database,
            "password": (self.directory / PASSWORD_FILE).read_text(),
        }

    def stop(self) -> None:
        """In order, by the signal that it was started with."""
        self.process.stop(STOP_SECONDS)


class RunningServer(Server):
    """The user's own: never started, stopped or configured by us. A subclass says where its password is looked for."""

    driver: str
    certified: bool = True
    """Whether it may show a certificate, which is checked against the name that the user wrote."""

    def __init__(
        self, host: str, port: int, user: str, database: str, programs: tuple[str, ...], *, ca: str = ""
    ) -> None:
        self.host = host
        self.port = port
        self.user = user
        self.database = database
        self.ca = ca
        """CA file that the URL names; empty: none."""
        self.address = address_of(host, port)
        self.pid = listener(self.address, port, programs)
        self.library = crypto_library(self.pid) if self.pid else ""

    @abstractmethod
    def password(self) -> str:
        """The password, where it was found; empty: nowhere."""

    def connection(self) -> dict[str, object]:
        fields: dict[str, object] = {
            "driver": self.driver,
            "host": self.address,
            "port": self.port,
            "user": self.user,
            "database": self.database,
        }
        if self.certified and self.address != self.host:
            fields["tls_server_name"] = self.host
        return with_password(fields, self.password())

    def stop(self) -> None:
        """It isn't ours to stop."""


def parse_url(
    url: str, schemes: tuple[str, ...], known: Iterable[str], password: str
) -> tuple[SplitResult, dict[str, str]]:
    """A connection URL and its parameters. Raises UsageError for a password in it and for what we would otherwise ignore.

    `known`: parameters; `password`: what to do with it instead, for people.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise UsageError(f"--url can't be read: {error}") from None
    if parts.scheme not in schemes:
        raise UsageError(f"--url must begin with {schemes[0]}://, not '{parts.scheme}://'")
    parameters = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    if parts.password is not None or "password" in parameters:
        raise UsageError(
            "--url holds a password, and command lines can be read by every user of this machine. Leave it out of the URL and "
            f"{password}."
        )
    for name in parameters:
        if name not in known:
            raise UsageError(f"--url has a parameter '{name}' that ciphercost doesn't know: {nearest(name, known)}")
    return parts, parameters


def own_file(path: Path, text: str) -> Path:
    """Write a file that only the user whom servers run as can read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    hand_over(path)
    return path
