"""What only a driver in Java is asked or told: whether it trusts any authority of Java's, and what to do if it can't connect."""

from __future__ import annotations

import re

from ciphercost.host import versions
from ciphercost.load.jdbc.drivers import Driver
from ciphercost.model.errors import AgentError

NOTHING_IN_COMMON = re.compile(
    r"protocol_version|handshake_failure|insufficient_security|No appropriate protocol|cipher", re.IGNORECASE
)
"""In Java's message if driver and server could not agree on a version or a suite."""


def hint(driver: Driver, error: AgentError) -> str:
    """Suggest what to do if a driver can't connect. Pure."""
    text, old = str(error), driver.family == "connector-j" and versions.version_key(driver.version) < (5, 1, 44)
    if old and (error.code == "tls" or "TrustManager" in text):
        return (
            ". It offers at most TLS 1.0, which Java disables (jdk.tls.disabledAlgorithms). Use 5.1.49 or newer, or "
            "measure it unencrypted with `none`"
        )
    if error.code.startswith("1251") or "authentication" in text.lower():
        return ". This driver does not support the account's login method. Use a newer driver, or an older server (mariadb@10.11)"
    if error.code == "tls" and NOTHING_IN_COMMON.search(text):
        return ". Choose a version and suite that the driver supports: --set version=1.2, --set cipher=…"
    return ""
