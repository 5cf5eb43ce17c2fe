"""Capability: the server can send a response of known size, which proves that `--cpu-crypto off` is in force."""

from __future__ import annotations

from abc import abstractmethod

from ciphercost.engines.capabilities import Capability


class Payload(Capability):
    """A server that can send about as many bytes as requested, in one row.

    The CPU time shows which instructions encrypt them.
    """

    missing = (
        "can't send a response of known size, so ciphercost can't prove that --cpu-crypto off is in force; leave it out"
    )

    @abstractmethod
    def payload(self, size: int) -> str:
        """Return a statement whose one row holds about `size` bytes and costs the server next to nothing to produce."""
