"""Everything that the tests require of a machine. `make test` fetches it, and every run starts by printing what is missing.

python tests/needs.py           print what is available and what is missing
python tests/needs.py --get     fetch what is missing: servers and tools into ciphercost's cache, programs with apt-get (as root)
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import other_tools
import recipe_parts
from ciphercost import engines, hops
from ciphercost.host import fips, package_client_errors, tls_library, tools, versions
from ciphercost.host.installation import Installation
from ciphercost.host.volumes import fuse
from ciphercost.load import drivers as applications
from ciphercost.load.jdbc import drivers, java
from ciphercost.model.errors import CiphercostError


class Need(NamedTuple):
    """One requirement. Without it, tests are skipped, or fail with CIPHERCOST_REQUIRE=all."""

    name: str
    found: Callable[[], object]
    """Returns a true value if it is available; a false value or CiphercostError means that it is missing."""
    get: Callable[[], object]
    """Fetches it. Raises CiphercostError with what to do."""


PROGRAMS = {
    # First, because the others are fetched with it.
    "mvn": "maven",
    "javac": "default-jdk-headless",
    "mmdebstrap": "mmdebstrap",
    "chattr": "e2fsprogs",
    "chromium": "chromium",
    "go": "golang-go",
    "fio": "fio",
    "ip": "iproute2",
    "localedef": "libc-bin",
    "mandoc": "mandoc",
    "mkfs.ext4": "e2fsprogs",
    "node": "nodejs",
    "npm": "npm",
    "openssl": "openssl",
    "perf": "linux-perf",
    "psql": "postgresql-client",
    "setpriv": "util-linux",
    "tc": "iproute2",
    "unshare": "util-linux",
}
"""Debian package of each program that tests call."""
BUILD = ("cargo", "cc")
"""Programs that building the agent needs, so they are always available."""
OTHER_NAMES = {"chromium": ("chromium-browser", "google-chrome")}

SERVERS = {
    "postgresql@15": "debian",
    "postgresql@17": "maven",
    "postgresql@18": "debian",
    "mysql@9.7": "debian",
    "mariadb@10.11": "debian",
    "mariadb@11.8": "debian",
    "firebird@4.0": "debian",
    "nginx@1.18": "debian",
    "nginx@1.22": "debian",
    "nginx@1.26": "debian",
    "apache@2.4": "debian",
    "caddy@2.11": "pypi",
    "haproxy@3.0": "debian",
    "valkey@8.1": "debian",
    "redis@7.0": "debian",
    "redis@8.0": "debian",
    "memcached@1.6": "debian",
    "duckdb@1.4": "maven",
    "turso@0.8": "pypi",
    "h2@2.5": "maven",
}
"""Preferred source of each server; if it does not work, any other that has the server."""


def is_server(name: str, version: str) -> bool:
    """Whether `make test` fetches a server of this version ('': any), or the agent contains it. Pure."""
    if engines.get(name).embedded:
        return True
    known = [each.partition("@") for each in SERVERS]
    return any(engine == name and versions.matches(has, version) for engine, _, has in known)


def here(name: str, version: str = "") -> list[Installation]:
    """Installations of a server that tests can use."""
    return [each for each in engines.get(name).available() if versions.matches(each.version, version)]


def program(name: str) -> str:
    """The path of a program that tests call, or ""."""
    return next(filter(None, map(shutil.which, (name, *OTHER_NAMES.get(name, ())))), "")


def everything() -> Iterator[Need]:
    for name, package in PROGRAMS.items():
        yield Need(name, partial(program, name), partial(_install, package))
    for server, source in SERVERS.items():
        yield Need(server, partial(_server, server), partial(_fetch, server, source))
    yield Need("JDBC agent", lambda: java.jar(fetch=False), java.jar)
    yield Need("JDBC drivers", lambda: _jars(fetch=False), _jars)
    newest = [applications.named(name)[-1] for name in applications.names()]
    older = [driver for driver in applications.language("node").drivers if driver not in newest]
    for driver in (*newest, *older):
        yield Need(driver.title, partial(_driver, driver, fetch=False), partial(_driver, driver))
    yield Need("gocryptfs", lambda: tools.tool("gocryptfs", fetch=False), lambda: tools.tool("gocryptfs"))
    yield Need("cryfs", lambda: tools.tool("cryfs", fetch=False), lambda: tools.tool("cryfs"))
    yield Need("gocryptfs's plain twin", lambda: fuse.passing(fetch=False), fuse.passing)
    yield Need("OpenSSL libraries", lambda: _libraries(fetch=False), _libraries)
    yield Need("OpenSSL's FIPS provider", lambda: fips.provider(fetch=False), fips.provider)
    yield Need("hops", lambda: _hops(fetch=False), _hops)
    yield Need("other load generators", other_tools.place, lambda: tools.together(other_tools.TOOLS))
    yield Need("further load generators", other_tools.further, lambda: tools.together(other_tools.FURTHER))
    for part in (part for parts in recipe_parts.PARTS.values() for part in parts):
        yield Need(part.name, partial(part.place, False), partial(part.place, True))
    yield Need("web load generators", other_tools.web, lambda: tools.together(other_tools.WEB))
    yield Need("mariadb-dump", other_tools.dumps, lambda: tools.together(other_tools.DUMPS))


def _libraries(*, fetch: bool = True) -> list[Path]:
    return [tls_library.directory(each, fetch=fetch) for each in tls_library.SUITES]


def _hops(*, fetch: bool = True) -> list[Installation]:
    return [hops.get(name).find(fetch=fetch) for name in hops.names()]


def found(need: Need) -> bool:
    try:
        return bool(need.found())
    except CiphercostError:
        return False


def report() -> list[str]:
    """Lines that list what is available and what is missing."""
    needs = [(need.name, found(need)) for need in everything()]
    missing = [name for name, has in needs if not has]
    lines = [f"required and available: {', '.join(name for name, has in needs if has) or 'nothing'}"]
    if not missing:
        return [*lines, "required and missing: nothing"]
    fate = "fail (CIPHERCOST_REQUIRE=all)" if os.environ.get("CIPHERCOST_REQUIRE") == "all" else "are skipped"
    lines += [f"required and MISSING: {name}" for name in missing]
    return [*lines, f"tests that need it {fate}; `python tests/needs.py --get` fetches it"]


def get() -> list[str]:
    """Fetch what is missing. Returns a line with the reason for each that could not be fetched."""
    failed = []
    for need in everything():
        if found(need):
            continue
        print(f"fetching {need.name} …", flush=True)
        try:
            need.get()
        except CiphercostError as error:
            failed.append(f"can't fetch {need.name}: {error}")
            print(failed[-1], flush=True)
    return failed


def _server(server: str) -> bool:
    name, _, version = server.partition("@")
    return bool(here(name, version))


def _fetch(server: str, source: str) -> None:
    name, _, version = server.partition("@")
    try:
        engines.get(name).install(version, source)
    except CiphercostError as error:
        print(error, flush=True)
        engines.get(name).install(version)


def _jars(*, fetch: bool = True) -> list[object]:
    return [path for driver in drivers.DRIVERS for path in driver.jars(fetch=fetch)]


def _driver(driver: applications.Driver, *, fetch: bool = True) -> bool:
    language = applications.language(driver.language)
    if fetch:
        language.fetch(driver)
    return language.is_here(driver)


def _install(package: str) -> None:
    """Install a Debian package. Raises CiphercostError."""
    advice = f"install it (Debian: apt-get install {package})"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise CiphercostError(advice)
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", package]
    for command in (install, ["apt-get", "-q", "update"], install):
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if command is install and done.returncode == 0:
            return
    raise CiphercostError(f"{advice}: {package_client_errors.decisive(done.stdout + done.stderr)}")


if __name__ == "__main__":
    if "--get" in sys.argv[1:]:
        get()
    print("\n".join(report()))
