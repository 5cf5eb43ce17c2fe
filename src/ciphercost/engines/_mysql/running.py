"""A MySQL or MariaDB server you already run, and whether a server there offers TLS."""

from __future__ import annotations

from ciphercost.engines import _network
from ciphercost.engines._mysql.greeting import greeting
from ciphercost.load.connection_string import mysql
from ciphercost.model.errors import UsageError
from ciphercost.model.secret import Secret


class RunningServer(_network.RunningServer):
    """A server you already run."""

    driver = "mysql"

    def __init__(self, engine: str, url: str, programs: tuple[str, ...]) -> None:
        super().__init__(mysql.read(url, engine), programs)
        self.engine = engine
        reported = greeting(self.address, self.port)
        if reported.version and reported.mariadb != (engine == "mariadb"):
            other, right = ("MariaDB", "mariadb") if reported.mariadb else ("MySQL", "mysql")
            raise UsageError(
                f"--url {url}: the server at this address is {other} {reported.version}, not {engine}. "
                f"Write {right}:// for {engine}:// and name the engine {right}."
            )

    def password(self) -> Secret | None:
        return mysql.password_found(self.engine)
