"""url: splits a URL that a user typed into its parts."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from ciphercost.model.errors import UsageError


def split(url: str) -> SplitResult:
    """Return the parts of a URL, whose port is a number. Raises UsageError, which repeats no part: one may be a password. Pure."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise UsageError(
            "--url: not a valid URL; write SCHEME://USER@HOST:PORT/…, with a port up to 65535 and an IPv6 address in [brackets]"
        ) from None
    return parts
