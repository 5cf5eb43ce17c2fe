"""url: servers that the user runs, reached by a URL."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType

from ciphercost.engines import Engine
from ciphercost.engines.capabilities import Capability


class TakesUrl(Capability):
    """An engine that `--url` may name a running server of: never started, stopped or configured by us."""

    missing = "is not reached by a URL"

    urls: int = 1
    """How many URLs may name one server."""
    schemes: Mapping[str, str] = MappingProxyType({})
    """URL schemes of a running server of this kind, each with the mechanism that `ciphercost prove URL` looks for."""
    password_from: str = ""
    """Environment variable that holds the password of a running server."""
    refuses_anonymous: str = ""
    """What the agent's error says when the server refuses a connection without a password."""

    @classmethod
    def refusal(cls, engine: Engine) -> str:
        return f"{engine.name} {engine.no_url or cls.missing}"

    @abstractmethod
    def check_url(self, url: str) -> None:
        """Refuse a URL that can't be used, before anything is recorded. Raises UsageError, never repeating a password."""

    def check_pair(self, url: str) -> None:
        """Refuse a URL that does not lead to both arms. Raises UsageError."""

    def mend(self, code: str) -> str:
        """What the user should check when neither arm can connect. `code`: of the agent's error."""
        if code == "connect":
            return "Does it run, and does --url name its host and port?"
        return f"Does --url name the user and database, and {self.password_from} (or its file) the password?"
