"""Where names lead in this process: a relay's address for the server's name, so that a driver still checks the name."""

from __future__ import annotations

import socket
from typing import Any

_ADDRESSES: dict[str, str] = {}
_SYSTEMS = socket.getaddrinfo


def resolve(host: str, address: str) -> None:
    """From now on `host` leads to `address`; empty: to where the system says."""
    if address:
        _ADDRESSES[host] = address
    else:
        _ADDRESSES.pop(host, None)
    socket.getaddrinfo = _ours if _ADDRESSES else _SYSTEMS  # type: ignore[assignment]


def _ours(host: Any, *more: Any, **named: Any) -> Any:
    return _SYSTEMS(_ADDRESSES.get(host, host), *more, **named)
