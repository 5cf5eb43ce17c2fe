"""Any server, loaded by commands of the user's: a benchmark tool that speaks its protocol. ciphercost itself speaks none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ciphercost.engines import Server, StartRequest
from ciphercost.engines._command_server import DRIVER, CommandsServer
from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host.installation import Installation
from ciphercost.load.command_place import places
from ciphercost.model.connection import Changes
from ciphercost.model.errors import MissingServer, UsageError

if TYPE_CHECKING:
    from ciphercost.host.pki import Pki
    from ciphercost.host.supervisor import Supervisor


class Command(HasTls, TakesUrl):
    name = "command"
    title = "server of your command"
    driver = DRIVER
    dialect = "command"
    language = "command"
    usual_workload = "command"
    foreign = True
    loads = False
    urls = 2
    by_command = True
    mute = ("server", "client")
    schemes = MappingProxyType({})

    def available(self) -> Iterable[Installation]:
        return ()

    def find(self, version: str = "", *, url: str = "", bindir: str = "") -> Installation:
        if version or bindir:
            raise UsageError(
                "command: ciphercost does not start the server behind an address: leave version and --bindir out"
            )
        places(url)
        return Installation(self.name, "", "running", url)

    def check_url(self, url: str) -> None:
        places(url)

    def install(self, version: str = "", source: str = "") -> Installation:  # noqa: ARG002
        raise MissingServer(
            "command has nothing to install: it measures a server that you run with a command that you have; give both: "
            "ciphercost run command:tls --url HOST:PORT --plain '…' --encrypted '…'"
        )

    def initialise(
        self,
        installation: Installation,
        directory: Path,
        supervisor: Supervisor,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Nothing to create."""

    def start(self, request: StartRequest) -> Server:
        return self.running(request.installation.location)

    def running(self, url: str) -> CommandsServer:
        return CommandsServer(url)

    def tls_settings(self, pki: Pki, factors: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG002
        """Return nothing: the server's TLS is configured already."""
        return {}

    def plaintext_fields(self) -> Changes:
        return {}


ENGINE = Command()
"""Its server may be any; the commands name it to people."""
