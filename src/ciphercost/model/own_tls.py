"""own_tls: what a user names beside the URL of a server, so that both sides prove who they are. No logic."""

from __future__ import annotations

import msgspec


class OwnTls(msgspec.Struct, frozen=True):
    """Files of authority, certificate and key, and the name that the server's certificate has. Empty: not given."""

    ca: str = ""
    cert: str = ""
    key: str = ""
    server_name: str = ""

    @property
    def options(self) -> dict[str, str]:
        """The options of the command line that give these, without those that were not given. Pure."""
        options = {"--ca": self.ca, "--cert": self.cert, "--key": self.key, "--server-name": self.server_name}
        return {option: value for option, value in options.items() if value}


NONE = OwnTls()
