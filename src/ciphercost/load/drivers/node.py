"""Node: node-postgres, postgres.js and mysql2, by the agent of `agents/node`.

A version of a driver is a file of `node_locks`, npm's own lock: its packages with the hashes of their files. npm unpacks them once into
the cache. The agent itself needs no package.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from ciphercost.host.package_cache import Receipt, Work, check_trust, keep, print_progress
from ciphercost.host.programs import printed
from ciphercost.host.versions import version_key
from ciphercost.load.driver_agent import AgentProcess
from ciphercost.load.drivers import MYSQL, POSTGRESQL, Driver, Language, Option
from ciphercost.model.connection import Connection
from ciphercost.model.errors import MissingServer

Versions = Mapping[str, tuple[int, ...]]
LOCKS = Path(__file__).parent / "node_locks"
PACKAGED = Path(__file__).parents[2] / "_node"
"""What the wheel holds of the agent; a clone has no such directory."""
OLDEST = 20
"""The oldest Node that the agent is written for."""
VERSION_SECONDS = 30.0
GET = f"Install Node {OLDEST} or newer with npm (Debian 13: apt-get install nodejs npm)."
CLIENT = [
    "ci",
    "--ignore-scripts",
    "--omit=dev",
    "--omit=optional",
    "--omit=peer",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
]
PREPARED = Option("prepared", ("true", "false"), "false: the server parses each statement again")
AS_TEXT = Option("prepared", ("true", "false"), "false: mysql2 writes the values into the statement's text")
FETCH_TYPES = Option(
    "fetch_types", ("true", "false"), "false: postgres.js does not ask for the types of arrays at each login"
)
NO_ADDRESSES = ("mysql2",)
"""Drivers that look for the name "localhost" in the certificate of a server whose name is an address."""
FIRST_AT_ONCE: Versions = {"node-postgres": (8, 23), "postgres.js": (3, 4, 9)}
"""From which of the versions here on they can begin TLS with the first byte."""
FIRST_BINDING: Versions = {"node-postgres": (8, 16)}
"""From which of the versions here on they can bind a login to its TLS connection."""


def _versions(name: str, engines: tuple[str, ...], *options: Option) -> list[Driver]:
    """A driver of each version that has a lock, the oldest first."""
    found = (path.name.removeprefix(f"{name}-").removesuffix(".json") for path in LOCKS.glob(f"{name}-[0-9]*.json"))
    return [
        Driver(
            name,
            version,
            "node",
            engines,
            options,
            at_once=_since(FIRST_AT_ONCE, name, version),
            checks_addresses=name not in NO_ADDRESSES,
            binding=("disable", "prefer") if _since(FIRST_BINDING, name, version) else (),
        )
        for version in sorted(found, key=version_key)
    ]


def _since(first: Versions, name: str, version: str) -> bool:
    return name in first and version_key(version) >= first[name]


class Node(Language):
    name = "Node"
    compiles = True
    concurrency = "one thread: while one connection waits for the server, others go on"
    drivers = (
        *_versions("mysql2", MYSQL, AS_TEXT),
        *_versions("node-postgres", POSTGRESQL, PREPARED),
        *_versions("postgres.js", POSTGRESQL, PREPARED, FETCH_TYPES),
    )

    def fetch(self, driver: Driver) -> None:
        source()
        program()
        packages(driver)

    def process(self, driver: Driver, like: Connection, place: Path) -> AgentProcess:  # noqa: ARG002 - no setting is the process's
        return AgentProcess([str(program()), str(source() / "src" / "main.js"), str(packages(driver))])


def program() -> Path:
    """The `node` of PATH. Raises MissingServer if there is none that is new enough."""
    found = shutil.which("node")
    if found is None:
        raise MissingServer(f"'node' was not found, and its drivers need it. {GET}")
    if (number := version(found)) < OLDEST:
        raise MissingServer(
            f"{found} is Node {number or 'of an unknown version'}; its drivers need Node {OLDEST} or newer. {GET}"
        )
    return Path(found)


@functools.lru_cache(maxsize=8)
def version(path: str) -> int:
    """20 for `v20.20.2`; 0 if it prints no version."""
    match = re.match(r"v(\d+)\.", printed([path, "--version"], VERSION_SECONDS))
    return int(match[1]) if match else 0


def source() -> Path:
    """The directory of the agent: the wheel's, or the clone's. Raises MissingServer."""
    clone = Path(__file__).parents[4] / "agents" / "node"
    for place in (PACKAGED, clone):
        if (place / "src" / "main.js").is_file():
            return place
    raise MissingServer(f"the Node agent's sources are missing: no {clone / 'src' / 'main.js'}")


def lock(driver: Driver) -> Path:
    """npm's lock of a driver: its packages, with their versions and hashes."""
    return LOCKS / f"{driver.name}-{driver.version}.json"


def packages(driver: Driver) -> Path:
    """The directory whose `node_modules` holds a driver, fetched once. Raises MissingServer."""
    text = lock(driver).read_text()
    name = f"{driver.name}-{driver.version}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def make(work: Work) -> Receipt:
        client = shutil.which("npm")
        if client is None:
            raise MissingServer(f"can't fetch {driver.title}: npm was not found. {GET}")
        print_progress(f"fetching {driver.title} with npm …")
        place = work.path / "packages"
        place.mkdir()
        (place / "package-lock.json").write_text(text)
        # npm wants it beside the lock, and that they agree.
        (place / "package.json").write_text(json.dumps(json.loads(text)["packages"][""]))
        work.run([client, *CLIENT, "--prefix", str(place)], f"npm could not install {driver.title}")
        return Receipt("node", driver.version, "npm", "packages")

    found = Path(keep("node", name, make).location)
    check_trust(found)
    return found


LANGUAGE = Node()
