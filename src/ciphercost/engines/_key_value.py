"""What key-value stores share: one program, a password in a file, and TLS on a port of its own."""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ciphercost.engines import Server, StartRequest
from ciphercost.engines._network import PASSWORD_FILE, StartedServer
from ciphercost.engines._packaged import Packaged
from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.host.installation import Installation
from ciphercost.host.launch import apart, launch
from ciphercost.host.ports import free_port
from ciphercost.host.run_ownership import hand_over, own_file
from ciphercost.model.errors import RunError, UsageError

if TYPE_CHECKING:
    from ciphercost.host.supervisor import Supervisor


class KeyValueStore(Packaged, HasTls):
    """A key-value store. A subclass names its packages, its command line and how it accepts a login."""

    language = "kv"
    usual_workload = "kv-get"
    place = "usr/bin"
    places = ("usr/bin", "usr/local/bin")
    version_option = "--version"
    mute = ("server",)  # it reports nothing about the encryption of a connection
    tls_resumption = ("on",)
    tls_client_cert = True
    certificate_setting: str
    """The setting that names the certificate; with it the server also listens with TLS."""
    started: type[StartedServer]
    """What `start` returns."""

    @abstractmethod
    def arguments(
        self, directory: Path, password: str, address: str, port: int, tls_port: int, settings: Mapping[str, str]
    ) -> list[str | Path]:
        """Return the program's arguments. `tls_port` 0: without TLS."""

    @abstractmethod
    def answers(self, password: str, address: str, port: int) -> bool:
        """Whether a server there accepts our login."""

    def check_factors(self, mechanism: str, factors: Mapping[str, str], version: str) -> None:  # noqa: ARG002
        # With `fips` the group stands in OpenSSL's configuration.
        if mechanism == "tls" and factors.get("group") and not factors.get("fips"):
            raise UsageError(
                f"{self.name} has no setting for the key exchange group: leave group={factors['group']} out"
            )

    def initialise(
        self,
        installation: Installation,  # noqa: ARG002
        directory: Path,
        supervisor: Supervisor,  # noqa: ARG002
        settings: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> None:
        """Create a directory with a random password (mode 0600)."""
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        hand_over(directory)
        own_file(directory / PASSWORD_FILE, secrets.token_hex(16))

    def start(self, request: StartRequest) -> Server:
        """TLS has a port of its own, given by `Server.other_ports`."""
        installation, directory = request.installation, request.directory
        given, env, address = apart(request.settings)
        try:
            password = (directory / PASSWORD_FILE).read_text()
        except OSError as error:
            raise RunError(
                f"{self.title} was not started, because its directory can't be read: {error.strerror}: {directory}"
            ) from None
        tls: list[int] = []

        def command(port: int) -> list[str | Path]:
            tls[:] = [free_port(address)] if self.certificate_setting in given else []
            arguments = self.arguments(directory, password, address, port, tls[0] if tls else 0, given)
            return [self.program(installation), *arguments]

        started = launch(
            request.supervisor,
            f"{self.title} {installation.version}",
            command,
            partial(self.answers, password),
            directory=directory,
            logs=request.logs,
            env=env,
            cpus=request.cpus,
            also=lambda: tls,
            address=address,
            connects=request.connects,
        )
        server = self.started(started, directory)
        server.other_ports = {"tls": {"port": tls[0]}} if tls else {}
        return server
