"""command_place: the addresses of a server that commands load. Pure."""

from __future__ import annotations

from urllib.parse import urlsplit

from ciphercost.model.errors import UsageError

SCHEMES = ("tcp", "tls")
EXAMPLE = "write HOST:PORT, or tcp://HOST:PORT for the plain arm and tls://HOST:PORT for the encrypted one"


def places(url: str) -> tuple[tuple[str, int], tuple[str, int]]:
    """(host, port) of the plain and of the encrypted arm, from one or two addresses separated by a space. Raises UsageError."""
    by_scheme: dict[str, tuple[str, int]] = {}
    for text in url.split():
        scheme, place = _address(text)
        if scheme in by_scheme:
            raise UsageError(f"--url {text}: two addresses of the same arm; {EXAMPLE}")
        by_scheme[scheme] = place
    if not by_scheme:
        raise UsageError(f"command: name the server that your command loads: --url HOST:PORT; {EXAMPLE}")
    known = next(iter(by_scheme.values()))
    return by_scheme.get("tcp", known), by_scheme.get("tls", known)


def _address(text: str) -> tuple[str, tuple[str, int]]:
    scheme, mark, rest = text.partition("://")
    scheme, rest = (scheme.lower(), rest) if mark else ("tcp", text)
    try:
        parts = urlsplit(f"//{rest}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise UsageError(f"--url {text}: not an address; {EXAMPLE}") from None
    if parts.username is not None or parts.path.strip("/") or parts.query or parts.fragment:
        raise UsageError(
            f"--url {scheme}://{host}:{port or ''}…: an address of a command's server is a host and a port only, without user or path; "
            f"they belong into the command; {EXAMPLE}"
        )
    if scheme not in SCHEMES or not host or not port:
        raise UsageError(f"--url {text}: not an address; {EXAMPLE}")
    return scheme, (host, port)
