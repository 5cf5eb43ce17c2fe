"""Capability: the server serves files, which ciphercost writes before it starts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from ciphercost.engines.capabilities import Capability


class Documents(Capability):
    """A server whose workload reads documents instead of rows."""

    missing = "serves no documents"

    payload_documents: Mapping[str, int] = MappingProxyType({})
    """Documents that `Payload.payload` requests: size in bytes by path, as for `lay_out`."""

    largest_document: int = 0
    """Most bytes of a document that it can serve; 0: any."""
    why_largest: str = ""
    """Why it serves no larger one. Follows the sizes in the error; user-visible."""

    @abstractmethod
    def lay_out(self, directory: Path, place: Path, documents: Mapping[str, int], canary: str) -> None:
        """Write the documents (size in bytes by path) into `place`, for a server in `directory`.

        They stay in `place`; copies of `directory` share them. `canary`: text of the document that witnesses request.
        """
