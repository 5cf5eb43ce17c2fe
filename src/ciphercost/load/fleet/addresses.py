"""addresses: where a Ray cluster answers."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
from pathlib import Path

from ciphercost.model.errors import UsageError

AUTO = "auto"
CURRENT = "ray_current_cluster"
"""File in Ray's temporary directory with the address of the cluster that this machine belongs to."""
CLIENT_PORT, GCS_PORT = 10001, 6379
PROBE_SECONDS = 5.0


def check(address: str) -> None:
    """Raises UsageError if this is no address of a cluster."""
    if address != AUTO:
        resolved(address)


def resolved(address: str) -> str:
    """The address that Ray is given: HOST:PORT, or ray://HOST:PORT. Raises UsageError."""
    if address.startswith("ray://"):
        host, _, port = address.removeprefix("ray://").rstrip("/").rpartition(":")
        if not host:
            host, port = port, str(CLIENT_PORT)
        return f"ray://{host}:{number(port, address)}"
    if address != AUTO:
        host, _, port = address.rpartition(":")
        if not host:
            raise UsageError(f"--cluster {address}: write auto, HOST:{GCS_PORT} or ray://HOST:{CLIENT_PORT}")
        return f"{host}:{number(port, address)}"
    from_environment = os.environ.get("RAY_ADDRESS", "")
    if from_environment and from_environment != AUTO:
        return resolved(from_environment)
    place = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - Ray's own order
    note = Path(place) / "ray" / CURRENT
    with contextlib.suppress(OSError):
        if text := note.read_text().strip():
            return text
    raise UsageError(
        "--cluster auto: this machine belongs to no Ray cluster; start one with `ray start --head`, join one with "
        f"`ray start --address=HOST:{GCS_PORT}`, or name one: --cluster ray://HOST:{CLIENT_PORT}"
    )


def number(port: str, address: str) -> int:
    """A port. Raises UsageError."""
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(
            f"--cluster {address}: '{port}' is not a port; write auto, HOST:{GCS_PORT} or ray://HOST:{CLIENT_PORT}"
        )
    return int(port)


TOKEN_SINCE = (2, 52)
"""The version of Ray that knows token authentication."""


def check_guarded(place: str, address: str, version: str) -> None:
    """Raises UsageError for a cluster on a public address that Ray is not told to reach by token: whoever reaches its ports runs code there.

    `version`: of the Ray that is installed here.
    """
    host = place.removeprefix("ray://").rpartition(":")[0].strip("[]")
    public = sorted(candidate for candidate in _addresses(host) if ipaddress.ip_address(candidate).is_global)
    if not public:
        return
    reach = f"--cluster {address}: {public[0]} is a public address, and whoever reaches a Ray cluster's ports runs code on every node"
    if tuple(int(part) for part in version.split(".")[:2] if part.isdecimal()) < TOKEN_SINCE:
        raise UsageError(
            f"{reach}; Ray {version} has no token authentication, so use a private network, or Ray 2.52 or newer with RAY_AUTH_MODE=token"
        )
    if not by_token():
        raise UsageError(
            f"{reach}; use a private network, or start every node with RAY_AUTH_MODE=token and set it here too, with the cluster's token in "
            "~/.ray/auth_token or RAY_AUTH_TOKEN_PATH"
        )


def by_token() -> bool:
    """Whether Ray is told to reach clusters by token."""
    return os.environ.get("RAY_AUTH_MODE", "").lower() == "token"


def token_hint() -> str:
    """What to look at if a cluster does not let this machine in."""
    if by_token():
        return "by token: the one in ~/.ray/auth_token or RAY_AUTH_TOKEN_PATH must be the cluster's"
    return "without a token: if its nodes have RAY_AUTH_MODE=token, set that here too"


def _addresses(host: str) -> set[str]:
    """The addresses of a host; none if it is unknown, which `check_listening` reports."""
    try:
        return {
            str(result[4][0]).partition("%")[0] for result in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        }
    except OSError:
        return set()


def check_listening(place: str, address: str) -> None:
    """Raises UsageError if nobody listens there."""
    host, _, port = place.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PROBE_SECONDS).close()
    except OSError as error:
        at = "" if address.removeprefix("ray://") == place.removeprefix("ray://") else f" ({place})"
        raise UsageError(
            f"--cluster {address}: no Ray cluster answers there{at}: {error.strerror or error}; start one with `ray start --head`, "
            f"and check the address: {GCS_PORT} is a head's usual port, {CLIENT_PORT} that of ray://"
        ) from None
