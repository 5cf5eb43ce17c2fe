"""What mechanisms share whose key the client gives when it opens a database file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from ciphercost.host import aes
from ciphercost.mechanisms._rest import ArmAtRest


def kept_key(path: Path, new: str) -> str:
    """The run's key, one for all its cells: `new` at the first call. Empty while it is taken away."""
    with (
        contextlib.suppress(FileExistsError),
        os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file,
    ):
        file.write(new)
    return path.read_text()


def another(key: str) -> str:
    """A key of hexadecimal digits that differs in the last one. Pure."""
    return key[:-1] + ("0" if key[-1:] != "0" else "1")


def none_opens(tried: Mapping[str, tuple[bool, str]]) -> tuple[bool, str]:
    """Judge attempts to open a file with wrong keys: (whether it opened, the library's words), by how. Pure."""
    words = "; ".join(f"{name}: {answer}" for name, (_, answer) in tried.items())
    return not any(opened for opened, _ in tried.values()), words


def openssl_of(look: ArmAtRest) -> aes.Capabilities:
    """What OpenSSL within the agent uses of the CPU: it obeys the mask of the agent's environment."""
    able = aes.openssl_capabilities()
    return able if look.agent.hello.aes else aes.Capabilities(able.cpu, able.cpu)
