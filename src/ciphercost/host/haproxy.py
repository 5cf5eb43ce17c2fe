"""haproxy: what HAProxy as a hop and HAProxy as a server have in common."""

from __future__ import annotations

from pathlib import Path

from ciphercost.host.run_ownership import own_file

PROGRAM = PACKAGE = "haproxy"
VERSION_OPTION = "-v"
VERSION_WORDS = r"HAProxy version (\d+\.\d+[\w.]*)"


def both(directory: Path, certificate: Path, key: Path) -> Path:
    """Write certificate and key into one file, as HAProxy wants them. Returns its path in `directory`."""
    return own_file(directory / "server.both.pem", certificate.read_text() + key.read_text())


def arguments(directory: Path, configuration: str) -> list[str | Path]:
    """Write the configuration. Returns what follows the program's name to run it in the foreground."""
    return ["-db", "-f", own_file(directory / "haproxy.cfg", configuration)]
