"""java: the Java agent -> a command that runs it: a Java that is new enough, and the agent's one jar.

A released wheel holds the jar, in `ciphercost/_java`. Elsewhere Maven builds it once from its sources: `agents/java` of the
repository, which a wheel built from a clone holds in `ciphercost/_java`.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from ciphercost.host import maven, package_cache
from ciphercost.host.environment import child_environment
from ciphercost.host.package_cache import Receipt, Work
from ciphercost.load.agent import Agent
from ciphercost.model.errors import MissingServer

OLDEST = 17
"""The Java that the agent is written for."""
MAIN = "ciphercost/agent/Main.class"
CLASS_JAVA_0 = 44
"""Major version of a class file, less that of its Java."""
JAR = "ciphercost-agent-jdbc.jar"
CHOSEN = "CIPHERCOST_AGENT_JDBC"
"""In the environment: the path of the jar, if it isn't to be built."""
STEADY = ("-XX:+UseSerialGC", "-Xms256m", "-Xmx512m", "-XX:-UsePerfData")
"""One collector and one heap, whatever machine the virtual machine believes to be on; no file shared with other processes."""
WITHOUT_AES = ("-XX:-UseAES",)
"""What hides the CPU's AES instructions from Java's own library, as OPENSSL_ia32cap does from OpenSSL."""
OTHERS = {"JAVA_TOOL_OPTIONS": "", "JDK_JAVA_OPTIONS": "", "_JAVA_OPTIONS": ""}
"""Options that a virtual machine would take from this environment: none, so that it runs alike everywhere."""
GET = f"Install it (Debian: apt-get install default-jdk-headless), or set JAVA_HOME to a Java {OLDEST} or newer."


def find() -> Path:
    """The `java` program of $JAVA_HOME, else of PATH, that is new enough. Raises MissingServer."""
    seen = []
    least = oldest()
    home = os.environ.get("JAVA_HOME")
    for candidate in (str(Path(home, "bin", "java")) if home else None, shutil.which("java")):
        if not candidate or not os.access(candidate, os.X_OK):
            continue
        number = version(candidate)
        if number >= least:
            return Path(candidate)
        seen.append(f"{candidate} is Java {number}" if number else f"{candidate} doesn't say its version")
    if seen:
        raise MissingServer(f"the JDBC agent needs Java {least} or newer, and {'; '.join(seen)}. {GET}")
    where = f"not in JAVA_HOME ({home}) and not in PATH" if home else "not in PATH, and JAVA_HOME isn't set"
    raise MissingServer(f"the JDBC agent needs Java {least} or newer, and 'java' was not found ({where}). {GET}")


def oldest() -> int:
    """The Java that the agent needs: of a jar in $CIPHERCOST_AGENT_JDBC what its classes were compiled for, else 17."""
    try:
        with zipfile.ZipFile(os.environ.get(CHOSEN, "")) as archive, archive.open(MAIN) as file:
            return int.from_bytes(file.read(8)[6:], "big") - CLASS_JAVA_0
    except (OSError, KeyError, zipfile.BadZipFile):
        return OLDEST


@functools.lru_cache(maxsize=8)
def version(program: str) -> int:
    """17 of `openjdk version "17.0.15"`, 8 of `java version "1.8.0_452"`; 0 where it says nothing of the kind."""
    try:
        done = subprocess.run(
            [program, "-version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env=child_environment(OTHERS),
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    return number(done.stderr + done.stdout)


def number(said: str) -> int:
    """The feature number in what `java -version` says. Pure."""
    match = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(match[1]) if match else 0


PACKAGED = Path(__file__).parents[2] / "_java"
"""What the wheel holds of the Java agent; a clone has no such directory."""


def source() -> Path:
    """The agent's Maven module."""
    here = PACKAGED.parent
    return next((place for place in (PACKAGED, here.parents[1] / "agents" / "java") if place.is_dir()), here)


def jar(*, fetch: bool = True) -> Path:
    """The agent's jar: $CIPHERCOST_AGENT_JDBC, else the wheel's, else built once by Maven into the cache. Raises MissingServer.

    Changed sources are built again.
    """
    if chosen := os.environ.get(CHOSEN):
        if not Path(chosen).is_file():
            raise MissingServer(f"{CHOSEN} names {chosen}, which is no file")
        return Path(chosen)
    if (PACKAGED / JAR).is_file():
        return PACKAGED / JAR
    module = source()
    if not (module / "pom.xml").is_file():
        raise MissingServer(f"the Java agent's sources are not where they should be: {module / 'pom.xml'}")
    files = [module / "pom.xml", *sorted(path for path in (module / "src").rglob("*") if path.is_file())]
    text = b"".join(str(path.relative_to(module)).encode() + path.read_bytes() for path in files)
    name = f"agent-jdbc-{hashlib.sha256(text).hexdigest()[:12]}"
    if not fetch and not (package_cache.cache() / "tools" / name / package_cache.RECEIPT).exists():
        raise MissingServer("the Java agent was not built yet")

    def make(work: Work) -> Receipt:
        client = maven.need_maven()
        if shutil.which("javac") is None and not os.access(Path(os.environ.get("JAVA_HOME", ""), "bin/javac"), os.X_OK):
            raise MissingServer(f"Java's compiler 'javac', which builds the JDBC agent, was not found. {GET}")
        package_cache.say(f"building {JAR} with mvn …")
        place = work.path / "build"
        place.mkdir()
        shutil.copy(module / "pom.xml", place)
        shutil.copytree(module / "src", place / "src")
        work.run([client, "-B", "-q", "-f", str(place / "pom.xml"), "package"], "mvn could not build the Java agent")
        (place / "target" / JAR).rename(work.path / JAR)
        shutil.rmtree(place)
        return Receipt("tools", "", "built", ".")

    return Path(package_cache.keep("tools", name, make).location) / JAR


def command(options: Iterable[str] = (), *, aes: bool = True) -> list[str]:
    """The command that runs the agent. `options`: more of the virtual machine's, which win; `aes`: with the CPU's instructions.

    Raises MissingServer.
    """
    return [str(find()), *STEADY, *(() if aes else WITHOUT_AES), *options, "-jar", str(jar())]


def agent(
    options: Iterable[str] = (),
    *,
    aes: bool = True,
    cpus: Iterable[int] | None = None,
    log: Path | None = None,
    env: Mapping[str, str] | None = None,
    netns: Path | None = None,
) -> Agent:
    """The Java agent, running in a virtual machine of its own; it is cold: nothing is compiled yet. Raises MissingServer."""
    return Agent(command(options, aes=aes), cpus=cpus, log=log, env={**OTHERS, **(env or {})}, netns=netns)
