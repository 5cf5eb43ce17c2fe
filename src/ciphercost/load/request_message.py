"""request_message: what all requests to an agent have in common on the wire (PROTOCOL.md)."""

from __future__ import annotations

import msgspec


class Request(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type"):
    """A message to an agent."""
