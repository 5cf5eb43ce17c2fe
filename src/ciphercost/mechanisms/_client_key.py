"""What mechanisms share whose key the client gives when it opens a database file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from ciphercost.host import aes
from ciphercost.mechanisms._rest import ArmAtRest
from ciphercost.model.errors import AgentError


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


def of_header(path: Path, length: int, judge: Callable[[bytes], tuple[bool, str]]) -> tuple[bool, str]:
    """Judge a database file by its first bytes. Returns (verdict, words)."""
    try:
        with path.open("rb") as file:
            header = file.read(length)
    except OSError as error:
        return False, f"{path.name} can't be read: {error}"
    return judge(header)


def said_of(path: Path, error: AgentError) -> str:
    """The library's words in an error of the agent's, which begins with the file. Pure."""
    return str(error).partition(f"{path.name}: ")[2] or str(error)


def openssl_of(look: ArmAtRest) -> aes.Capabilities:
    """What OpenSSL within the agent uses of the CPU: it obeys the mask of the agent's environment."""
    able = aes.openssl_capabilities()
    return able if look.agent.hello.aes else aes.Capabilities(able.cpu, able.cpu)
