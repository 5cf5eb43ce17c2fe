"""Why a line of a log counts for nothing. User-visible."""

from __future__ import annotations

OTHER = "not a line of this format"
NO_TIME = "its time can't be read"
NO_REQUEST = "no HTTP request: bytes that are no request, or none at all"
TOO_LONG_REASON = "longer than 1 MiB"
