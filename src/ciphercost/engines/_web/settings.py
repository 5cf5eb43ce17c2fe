"""The user's settings in a web server's configuration, and why some are refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

OF_HTTP = "the workload decides which HTTP is spoken; write --set http=1, --set http=2 or --set http=3 instead"
"""`Decided.why` of the settings for it. User-visible."""
NO_PROXY = (
    "ciphercost's web servers serve documents and are no proxies; to measure your own site, run url:tls; remove it"
)
NO_STAPLING = "the certificate that ciphercost makes names no OCSP server; remove it"


def with_settings(text: str, settings: Mapping[str, str], place: Callable[[str], str], end: str = "") -> str:
    """Put the user's settings into a configuration of one directive a line, each ended by `end`: instead of ours of the same name,
    wherever it occurs, or below the line that `place(name)` begins. Pure.
    """
    for name, value in settings.items():
        ours = re.compile(rf"(?mi)^([ \t]*){re.escape(name)}[ \t][^\n]*$")
        written = f"{name} {value}{end}"
        if ours.search(text):
            text = ours.sub(lambda match, words=written: match[1] + words, text)  # type: ignore[misc]
        else:
            head, line, tail = text.partition(place(name))
            assert line, place(name)
            text = f"{head}{line}{written}\n{tail}"
    return text
