"""documents: servers that serve files, laid out before they start."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from ciphercost.engines.capabilities import Capability


class Documents(Capability):
    missing = "serves no documents"

    payload_documents: Mapping[str, int] = MappingProxyType({})
    """Documents that `payload` asks for, as for `lay_out`."""

    @abstractmethod
    def lay_out(self, directory: Path, place: Path, documents: Mapping[str, int], canary: str) -> None:
        """Write documents of so many bytes each, by their paths, for a server in `directory`. They stay in `place`; copies share them."""
