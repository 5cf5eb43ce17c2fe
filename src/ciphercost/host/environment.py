"""environment: what of this process's environment the processes that it starts inherit: a list of names, and nothing else.

Agents receive a server's password only through their protocol, and no other process needs one. A secret that the user has put into
the environment, under whatever name, must not reach a dozen other processes' environments, where `ps e` and /proc show it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

PASSED_ON = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|PWD|OLDPWD|TERM|COLUMNS|LINES|NO_COLOR|TZ|TZDIR|LANG|LANGUAGE|LC_[A-Z]+|TMPDIR|XDG_(?:CACHE|CONFIG|DATA)_HOME"
    r"|LD_LIBRARY_PATH|LD_PRELOAD|GLIBC_TUNABLES|OPENSSL_(?:CONF|MODULES|ia32cap)|SSL_CERT_(?:FILE|DIR)"
    r"|JAVA_HOME|VIRTUAL_ENV|PYTHON(?:PATH|HOME|NOUSERSITE|DONTWRITEBYTECODE|UNBUFFERED|HASHSEED)|RUST_BACKTRACE|SOURCE_DATE_EPOCH"
    r"|CIPHERCOST_(?:AGENT|AGENT_GO|AGENT_JDBC|CACHE|DUMPS|DEBIAN_MIRROR|FUZZ|OWNER|PAGE|RUN|SCRATCH|SEALED|TIMEOUT|TLS_LIBRARY|[A-Z]+_BINDIR)",
)
"""Names of variables that every process inherits: where programs, libraries, authorities and files are, language and time zone, and ours."""
REGISTRIES = re.compile(
    r"(?i:(?:https?|ftp|all|no)_proxy)|PIP_\w+|APT_CONFIG|DEBIAN_FRONTEND|DEBIAN_PRIORITY|M2_HOME|MAVEN_\w+|MVN_\w+|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS"
    r"|GO(?:AUTH|CACHE|ENV|INSECURE|MODCACHE|NOPROXY|NOSUMDB|PATH|PRIVATE|PROXY|SUMDB|TOOLCHAIN)"
    r"|CURL_CA_BUNDLE|REQUESTS_CA_BUNDLE|NETRC|(?i:npm)_\w+|NODE_EXTRA_CA_CERTS"
)
"""What package clients also inherit: their own settings and proxies, which may hold the password of a proxy or a mirror."""
MAVENS = re.compile(r"\$\{env\.(\w+)\}")
"""A variable that Maven's settings name."""
IN_VALUE = re.compile(r"://[^/@\s]*:[^/@\s]+@|(?:^|[?&;\s])(?:password|passwd|pwd)=", re.IGNORECASE)
"""A password within an address or a connection string, whatever the variable's name."""


def child_environment(more: Mapping[str, str] | None = None, *, registries: bool = False) -> dict[str, str]:
    """What a process inherits of the current environment, merged with `more`, which takes precedence.

    `registries`: for package clients. They get their own settings too, and the variables that Maven's settings of this user name.
    """
    named = _by_maven() if registries else frozenset()
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in named or is_passed_on(name, value, registries=registries)
    }
    return {**kept, **(more or {})}


def is_passed_on(name: str, value: str = "", *, registries: bool = False) -> bool:
    """Whether a process that is started inherits a variable. Pure."""
    if registries and REGISTRIES.fullmatch(name):
        return True
    return bool(PASSED_ON.fullmatch(name)) and not IN_VALUE.search(value)


def _by_maven() -> frozenset[str]:
    """Names of the variables in this user's settings.xml, which may take a mirror's password from them."""
    try:
        return frozenset(MAVENS.findall((Path.home() / ".m2" / "settings.xml").read_text(errors="replace")))
    except (OSError, RuntimeError):
        return frozenset()
