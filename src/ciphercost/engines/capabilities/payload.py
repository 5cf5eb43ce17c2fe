"""payload: servers that can be asked for a transfer of known size, which proves that `--cpu-crypto off` is in force."""

from __future__ import annotations

from abc import abstractmethod

from ciphercost.engines.capabilities import Capability


class Payload(Capability):
    missing = "has no transfer of known size, so that --cpu-crypto off is in force could not be proven; leave it out"

    @abstractmethod
    def payload(self, size: int) -> str:
        """A statement that returns about `size` bytes in one row, which cost the server next to nothing to produce."""
