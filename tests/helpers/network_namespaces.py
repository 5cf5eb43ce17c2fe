"""Network namespaces of tests, by `ip`. Need root."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@contextmanager
def namespace(address: str = "") -> Iterator[str]:
    """The name of a network namespace whose loopback is up and has this address too."""
    name = f"cctest-{secrets.token_hex(4)}"
    ip("netns", "add", name)
    try:
        ip("-n", name, "link", "set", "dev", "lo", "up")
        if address:
            ip("-n", name, "address", "add", f"{address}/32", "dev", "lo")
        yield name
    finally:
        ip("netns", "del", name)
