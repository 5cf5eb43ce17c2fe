"""go_program: builds a directory of Go once with Debian's compiler and keeps the program in the cache."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path

from ciphercost.host.debian import empty_directory, unpack_suite
from ciphercost.host.package_cache import RECEIPT, Receipt, Work, cache, keep, print_progress
from ciphercost.model.errors import MissingServer


def go_program(source: Path, packages: Iterable[str], suite: str, *, fetch: bool = True) -> Path:
    """The program of this directory of Go, built once with a compiler and libraries from Debian, which are then
    discarded.

    The cache key is the source, so a changed source is rebuilt. Raises MissingServer.
    """
    text = b"".join(path.read_bytes() for path in sorted(source.iterdir()) if path.is_file())
    name = f"{source.name}-{hashlib.sha256(text).hexdigest()[:12]}"

    if not fetch and not (cache() / "tools" / name / RECEIPT).exists():
        raise MissingServer(f"{source.name} was not built yet")

    def make(work: Work) -> Receipt:
        unpack_suite(suite, (*packages, "golang-go"), work)
        root = next(work.path.glob("usr/lib/go-*/bin/go"), None)
        if root is None:
            raise MissingServer(f"the package golang-go of {suite} contains no compiler")
        print_progress(f"building {source.name} …")
        place = work.path / "build" / "src" / source.name
        shutil.copytree(source, place)
        libraries = work.path / "usr" / "share" / "gocode"
        environment = {
            "GOROOT": root.parent.parent,
            "GOPATH": f"{place.parent.parent}:{libraries}",
            "GOCACHE": place.parent.parent / "cache",
            "GO111MODULE": "off",  # Debian's packages are in a GOPATH
            "GOTOOLCHAIN": "local",
            "GOFLAGS": "",
            "CGO_ENABLED": "0",
        }
        words = [f"{name}={value}" for name, value in environment.items()]
        built = work.path.parent / f"{work.path.name}.program"
        command = ["env", f"--chdir={place}", *words, str(root), "build", "-trimpath", "-o", str(built), "."]
        try:
            work.run(command, f"{source.name} could not be built")
            empty_directory(work.path)
            built.rename(work.path / source.name)
        finally:
            built.unlink(missing_ok=True)
        return Receipt("tools", "", "built", ".")

    return Path(keep("tools", name, make).location) / source.name
