"""Finds Java and the Java agent's jar, and starts the agent.

A released wheel contains the jar in `ciphercost/_java`. Otherwise Maven builds it once from the sources, which are in `agents/java`
of the repository; a wheel built from a clone contains them in `ciphercost/_java`.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import stat
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from ciphercost.host import maven, package_cache
from ciphercost.host.package_cache import Receipt, Work
from ciphercost.host.programs import printed
from ciphercost.load.agent import Agent
from ciphercost.model.errors import MissingServer

OLDEST = 17
"""The oldest Java version that the agent is written for."""
MAIN = "ciphercost/agent/Main.class"
CLASS_JAVA_0 = 44
"""Major version of a class file minus its Java version."""
JAR = "ciphercost-agent-jdbc.jar"
CHOSEN = "CIPHERCOST_AGENT_JDBC"
"""Environment variable: path of a jar to use instead of building one."""
STEADY: tuple[str, ...] = ("-XX:+UseSerialGC", "-Xms256m", "-Xmx512m", "-XX:-UsePerfData", "-XX:ErrorFile=/dev/null")
"""The same collector and heap on every machine, and no file shared with other processes."""
WITHOUT_AES = ("-XX:-UseAES",)
"""Stops Java's own library from using the CPU's AES instructions, as OPENSSL_ia32cap does for OpenSSL."""
OTHERS = {"JAVA_TOOL_OPTIONS": "", "JDK_JAVA_OPTIONS": "", "_JAVA_OPTIONS": ""}
"""Environment variables that add options to a virtual machine.

They are cleared, so that it runs the same way everywhere.
"""
JCMD_SECONDS = 20.0
GET = f"Install it (Debian: apt-get install default-jdk-headless), or set JAVA_HOME to a Java {OLDEST} or newer."


def find() -> Path:
    """Return the `java` program of $JAVA_HOME or PATH. Raises MissingServer if there is none that is new enough."""
    seen = []
    least = oldest()
    home = os.environ.get("JAVA_HOME")
    for candidate in (str(Path(home, "bin", "java")) if home else None, shutil.which("java")):
        if not candidate or not os.access(candidate, os.X_OK):
            continue
        number = version(candidate)
        if number >= least:
            return Path(candidate)
        seen.append(f"{candidate} is Java {number}" if number else f"{candidate} doesn't print its version")
    if seen:
        raise MissingServer(f"the JDBC agent needs Java {least} or newer, and {'; '.join(seen)}. {GET}")
    where = f"not in JAVA_HOME ({home}) and not in PATH" if home else "not in PATH, and JAVA_HOME isn't set"
    raise MissingServer(f"the JDBC agent needs Java {least} or newer, and 'java' was not found ({where}). {GET}")


def oldest() -> int:
    """The oldest Java that can run the agent: 17, or what the classes of the jar in $CIPHERCOST_AGENT_JDBC were
    compiled for.
    """
    try:
        with zipfile.ZipFile(os.environ.get(CHOSEN, "")) as archive, archive.open(MAIN) as file:
            return int.from_bytes(file.read(8)[6:], "big") - CLASS_JAVA_0
    except (OSError, KeyError, zipfile.BadZipFile):
        return OLDEST


@functools.lru_cache(maxsize=8)
def version(program: str) -> int:
    """Return 17 for `openjdk version "17.0.15"`, 8 for `java version "1.8.0_452"`; 0 if it prints no version."""
    return number(printed([program, "-version"], 60, OTHERS))


def number(command_output: str) -> int:
    """Extract the feature number from the output of `java -version`. Pure."""
    match = re.search(r'version "(?:1\.)?(\d+)', command_output)
    return int(match[1]) if match else 0


PACKAGED = Path(__file__).parents[2] / "_java"
"""What the wheel holds of the Java agent; a clone has no such directory."""


def source() -> Path:
    """Return the folder of the agent's Maven module."""
    here = PACKAGED.parent
    return next((place for place in (PACKAGED, here.parents[1] / "agents" / "java") if place.is_dir()), here)


def jar(*, fetch: bool = True) -> Path:
    """Return the agent's jar: $CIPHERCOST_AGENT_JDBC, else the wheel's, else one that Maven builds into the cache. Raises MissingServer.

    Maven builds it again if the sources change.
    """
    if chosen := os.environ.get(CHOSEN):
        if not Path(chosen).is_file():
            raise MissingServer(f"{CHOSEN} names {chosen}, which is not a file")
        return Path(chosen)
    if (PACKAGED / JAR).is_file():
        return PACKAGED / JAR
    module = source()
    if not (module / "pom.xml").is_file():
        raise MissingServer(f"the Java agent's sources are missing: no {module / 'pom.xml'}")
    files = [module / "pom.xml", *sorted(path for path in (module / "src").rglob("*") if path.is_file())]
    text = b"".join(str(path.relative_to(module)).encode() + path.read_bytes() for path in files)
    name = f"agent-jdbc-{hashlib.sha256(text).hexdigest()[:12]}"
    if not fetch and not (package_cache.cache() / "tools" / name / package_cache.RECEIPT).exists():
        raise MissingServer("the Java agent is not built yet")

    def make(work: Work) -> Receipt:
        client = maven.need_maven()
        if shutil.which("javac") is None and not os.access(Path(os.environ.get("JAVA_HOME", ""), "bin/javac"), os.X_OK):
            raise MissingServer(f"'javac' was not found; it is needed to build the JDBC agent. {GET}")
        package_cache.print_progress(f"building {JAR} with mvn …")
        place = work.path / "build"
        place.mkdir()
        shutil.copy(module / "pom.xml", place)
        shutil.copytree(module / "src", place / "src")
        work.run([client, "-B", "-q", "-f", str(place / "pom.xml"), "package"], "mvn could not build the Java agent")
        (place / "target" / JAR).rename(work.path / JAR)
        shutil.rmtree(place)
        return Receipt("tools", "", "built", ".")

    return Path(package_cache.keep("tools", name, make).location) / JAR


def perf_map(pid: int) -> Path | None:
    """Let a virtual machine write the names of the functions that it has compiled, where perf looks for them.

    Returns the file, which the caller removes; None if there is no `jcmd` beside `java`, or it can't.
    """
    client = find().resolve().parent / "jcmd"
    if not client.is_file() or not (place := reserved(Path("/tmp"), f"perf-{pid}.map")):  # noqa: S108 - Java and perf know no other
        return None
    printed([client, str(pid), "Compiler.perfmap"], JCMD_SECONDS, OTHERS)
    if place.stat().st_size:
        return place
    place.unlink()
    return None


def reserved(directory: Path, name: str) -> Path | None:
    """Make an empty file of this user's in a directory that others may write to, so that nobody can put a link in its place.

    None if there is one of that name already, or if somebody else could remove ours: only a sticky directory of root's, or one
    that nobody else writes to, keeps what is in it.
    """
    try:
        status = directory.stat()
        if status.st_uid not in (0, os.geteuid()) or (status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX):
            return None
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        os.close(os.open(directory / name, flags, 0o600))
    except OSError:
        return None
    return directory / name


def command(options: Iterable[str] = (), *, aes: bool = True) -> list[str]:
    """Return the command that runs the agent. `options`: more options of the virtual machine, which override; `aes`:
    use the CPU's AES instructions.

    Raises MissingServer.
    """
    return [str(find()), *STEADY, *(() if aes else WITHOUT_AES), *options, "-jar", str(jar())]


def trusting(store: Path, password: str) -> list[str]:
    """Return options of a virtual machine that trusts the authorities in a PKCS12 store instead of its own."""
    values = {"": str(store), "Type": "PKCS12", "Password": password}
    return [f"-Djavax.net.ssl.trustStore{part}={value}" for part, value in values.items()]


def agent(
    options: Iterable[str] = (),
    *,
    aes: bool = True,
    cpus: Iterable[int] | None = None,
    log: Path | None = None,
    env: Mapping[str, str] | None = None,
    netns: Path | None = None,
) -> Agent:
    """Start the Java agent in its own virtual machine. It is cold: nothing is compiled yet. Raises MissingServer."""
    return Agent(command(options, aes=aes), cpus=cpus, log=log, env={**OTHERS, **(env or {})}, netns=netns)
