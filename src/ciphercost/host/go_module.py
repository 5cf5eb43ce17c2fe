"""go_module: builds a Go module with the machine's own `go` and keeps the program in the cache. No proxy is named here: `go` has its
own settings.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

from ciphercost.host import programs
from ciphercost.host.environment import child_environment
from ciphercost.host.package_cache import Receipt, Work, keep, print_progress
from ciphercost.model.errors import MissingServer
from ciphercost.model.version import VERSION

CHOOSES = (1, 21)
"""The oldest Go that fetches a newer one itself if a module needs it, unless it may not (GOTOOLCHAIN=local)."""
GET = "Install Go (Debian: apt-get install golang-go), then try again."


def need_go() -> str:
    """The `go` command. Raises MissingServer if there is none that can build modules of today."""
    client = shutil.which("go")
    if client is None:
        raise MissingServer(f"'go' was not found; it is needed to build the Go agent. {GET}")
    match = re.search(r"go(\d+)\.(\d+)", printed := programs.printed([client, "version"], 60))
    if match is None:
        raise MissingServer(f"{client} doesn't print its version: {printed[:80]!r}. {GET}")
    if (int(match[1]), int(match[2])) < CHOOSES:
        least = ".".join(map(str, CHOOSES))
        raise MissingServer(f"the Go agent needs Go {least} or newer to be built, and {client} is {match[0]}. {GET}")
    return client


def built(module: Path, name: str) -> Path:
    """The program of this module, built once with the versions of its go.sum, which `go` checks.

    The cache key is the source, so a changed source is rebuilt. Raises MissingServer.
    """
    files = [path for path in sorted(module.iterdir()) if path.is_file() and path.suffix in (".go", ".mod", ".sum")]
    text = b"".join(path.name.encode() + b"\0" + path.read_bytes() for path in files)
    kept = f"{name}-{hashlib.sha256(VERSION.encode() + text).hexdigest()[:12]}"

    def make(work: Work) -> Receipt:
        client = need_go()
        print_progress(f"building {name} with go …")
        place = work.path / "build"
        place.mkdir()
        for path in files:
            shutil.copy(path, place)
        flags = ["-mod=readonly", "-trimpath", f"-ldflags=-X main.version={VERSION}"]
        command = [client, "build", "-C", str(place), *flags, "-o", str(work.path / name), "."]
        try:
            work.run(command, f"go could not build {name}", {**child_environment(registries=True), "CGO_ENABLED": "0"})
        except MissingServer as error:
            more = "; GOTOOLCHAIN=auto lets it fetch that" if "GOTOOLCHAIN" in str(error) else ""
            raise MissingServer(f"{error}{more}") from None
        shutil.rmtree(place)
        return Receipt("tools", "", "built", ".")

    return Path(keep("tools", kept, make).location) / name
