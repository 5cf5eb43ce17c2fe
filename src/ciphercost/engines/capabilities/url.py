"""Capability: `--url` can name a server of this kind that you already run."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from ciphercost.engines import Engine, Server
from ciphercost.engines.capabilities import Capability
from ciphercost.load.connection_string import ConnectionString
from ciphercost.load.plaintext_guard import (
    CERTIFICATE_REFUSED,
    CERTIFICATE_WANTED,
    refuses_certificate,
    wants_certificate,
)
from ciphercost.model.connection import Connection

if TYPE_CHECKING:
    from ciphercost.load.load_client import LoadClient
    from ciphercost.model.errors import AgentError
    from ciphercost.model.spec import Arm


LOST = re.compile(r"unexpected EOF|closed the connection|[Cc]onnection reset|handshake failure")
"""In the agent's error: the server has ended the connection."""


class TakesUrl(Capability):
    """An engine that can measure a server you already run. ciphercost never starts, stops or configures that server."""

    missing = "takes no --url"

    urls: int = 1
    """How many URLs may name one server."""
    schemes: Mapping[str, str] = MappingProxyType({})
    """URL schemes of this kind of server, each with the mechanism that `ciphercost prove URL` looks for."""
    password_from: str = ""
    """Environment variable that holds the password."""
    give_password: str = ""
    """What to do if there is none: `set PGPASSWORD, or put it into ~/.pgpass`."""
    refuses_anonymous: str = ""
    """Text in the agent's error when the server refuses a connection without a password."""

    @classmethod
    def refusal(cls, engine: Engine) -> str:
        return f"{engine.name} {engine.no_url or cls.missing}"

    @abstractmethod
    def running(self, url: str) -> Server:
        """Return your server at this URL. Raises UsageError, RunError."""

    def check_url(self, url: str) -> None:
        """Refuse an unusable URL before anything is recorded. Raises UsageError, which never repeats a password."""
        if asked := self.connection_string(url):
            asked.needs_network()

    def connection_string(self, url: str) -> ConnectionString | None:  # noqa: ARG002
        """Return what the server's clients make of this URL here; None if its parameters are the server's, as on the web.

        Raises UsageError for a parameter that can't be honoured; it never repeats a password.
        """
        return None

    def offers_tls(self, address: str, port: int) -> bool | None:  # noqa: ARG002
        """Whether a server there offers encryption, asked without a login; None: only a login would show it.

        Raises OSError if none answers.
        """
        return None

    def check_pair(self, url: str) -> None:
        """Refuse a URL that does not lead to both arms. Raises UsageError."""

    hides_certificate: str = ""
    """What to add if a refused login may be one without a client certificate, which the server does not say."""

    def hint(self, code: str, text: str = "") -> str:
        """Return what the user should check when neither arm can connect. `code`, `text`: of the agent's error."""
        if wants_certificate(text):
            return CERTIFICATE_WANTED
        if refuses_certificate(text):
            return CERTIFICATE_REFUSED
        if self.refuses_anonymous and self.refuses_anonymous in text:
            return f"{self.give_password[:1].upper()}{self.give_password[1:]}; there is no terminal to ask on."
        if code == "connect":
            return "Is the server running, and are host and port in the URL right?"
        more = f" {self.hides_certificate}" if self.hides_certificate else ""
        return f"Does --url name the user and database, and does {self.password_from} (or its file) hold the password?{more}"

    def advice(
        self,
        url: str,  # noqa: ARG002
        agent: LoadClient,  # noqa: ARG002
        arm: Arm,  # noqa: ARG002
        connection: Connection,
        error: AgentError,
    ) -> str:
        """Say what is wrong with this arm, and what to do. It may ask the server again, over the arm's own `connection`."""
        hint = self.hint(error.code, str(error))
        if not (connection.by_tls and LOST.search(str(error))):
            return hint
        if connection.mutual:
            return f"The server may have refused the client certificate without a word. {CERTIFICATE_REFUSED}"
        return f"{hint} Or it asks for a client certificate: give yours with --cert FILE and --key FILE"

    def no_control(self, url: str, code: str) -> str:  # noqa: ARG002
        """Return why a failed unencrypted connection says nothing about this server; empty: it does. `code`: the agent's error code."""
        return ""

    def called(self, url: str) -> str:  # noqa: ARG002
        """Return what reports call this server instead of the engine's name; empty: the engine's name."""
        return ""
