"""Names of cipher suites: OpenSSL's and those of IANA, which Java uses."""

from __future__ import annotations

import re

from ciphercost.model.errors import UsageError


def openssl(suite: str) -> str:
    """Convert `TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384` to `ECDHE-RSA-AES256-GCM-SHA384`, as in `iana`. Other names stay. Pure."""
    match = re.fullmatch(
        r"TLS_((?:EC)?DHE_[A-Z]+)_WITH_(AES_(?:128|256)_(?:GCM|CBC)_SHA\d+|CHACHA20_POLY1305)(?:_SHA256)?", suite
    )
    if match is None:
        return suite
    cipher = re.sub(r"AES_(\d+)", r"AES\1", match[2]).replace("_CBC", "")
    return f"{match[1]}_{cipher}".replace("_", "-")


def iana(suite: str) -> str:
    """Convert `ECDHE-RSA-AES256-GCM-SHA384` to `TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384`. IANA names stay.

    Raises UsageError. Pure.
    """
    if suite.startswith("TLS_"):
        return suite
    match = re.fullmatch(r"((?:EC)?DHE-[A-Z]+)-(AES(?:128|256)(?:-[A-Z]+)?-SHA\d+|CHACHA20-POLY1305)", suite)
    if match is None:
        raise UsageError(f"Java does not support the cipher suite {suite}")
    cipher = re.sub(r"AES(\d+)", r"AES_\1", match[2]).replace("-", "_")
    cipher = f"{cipher}_SHA256" if cipher.startswith("CHACHA20") else re.sub(r"(\d)_SHA", r"\1_CBC_SHA", cipher)
    return f"TLS_{match[1].replace('-', '_')}_WITH_{cipher}"
