"""package_cache: keeps fetched servers, tools and jars. Each root is filled once; nothing is installed on the host."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path

import msgspec

from ciphercost.host.environment import child_environment
from ciphercost.host.installation import Installation
from ciphercost.host.package_client_errors import decisive
from ciphercost.host.run_ownership import out_of_reach, server_user
from ciphercost.host.supervisor import Supervisor
from ciphercost.host.versions import version_key
from ciphercost.model import owned
from ciphercost.model.errors import MissingServer, RunError, UsageError
from ciphercost.model.printable import printable

RECEIPT = "installation.json"
FETCH_SECONDS = 900


class Receipt(msgspec.Struct, frozen=True):
    """Written last into an installed root; a root without it is incomplete."""

    engine: str
    version: str
    source: str
    programs: str
    """Directory of the server's programs, relative to the root."""


def print_progress(text: str) -> None:
    """Print what is being fetched to stderr; standard output is for results."""
    print(printable(text), file=sys.stderr, flush=True)


def cache() -> Path:
    """Where fetched servers are kept: $CIPHERCOST_CACHE; for root, whose servers run as nobody, a place that nobody can
    reach.
    """
    if chosen := os.environ.get("CIPHERCOST_CACHE"):
        return Path(chosen).absolute()
    if server_user() is not None:
        return Path("/var/cache/ciphercost")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ciphercost"


def installed(engine: str) -> list[Installation]:
    """Fetched installations of this engine, newest version first; Maven builds last, because their OpenSSL is from
    2018.

    Raises UsageError if somebody else could have put them there.
    """
    installations = []
    # A cache without this engine needs no trust: nothing from it is run.
    for receipt in (cache() / engine).glob(f"[!.]*/{RECEIPT}"):
        check_trust(receipt.parent)
        with contextlib.suppress(msgspec.DecodeError, msgspec.ValidationError, OSError):
            kept = msgspec.json.decode(receipt.read_bytes(), type=Receipt)
            installations.append(Installation(engine, kept.version, kept.source, str(receipt.parent / kept.programs)))
    return sorted(
        installations,
        key=lambda installation: (installation.source != "maven", version_key(installation.version)),
        reverse=True,
    )


def check_trust(place: Path) -> None:
    """Check that nobody else can write to a directory of the cache, whose programs we run. Raises UsageError.

    Every directory on the path must belong to us or to root (users may share root's cache). A directory that does not
    exist is fine.
    """
    owners = (0, Path("/").stat().st_uid)
    try:
        owned.check_above(cache())
        owned.check_above(cache().resolve())
        for directory in (place, *place.parents):
            if directory.is_relative_to(cache()):
                for path in (directory, directory / RECEIPT):
                    if path.exists() and (reason := owned.fault(path.stat(), owners, group=owned.private_group())):
                        raise owned.Distrusted(f"{path}: {reason}")
    except owned.Distrusted as error:
        raise UsageError(
            f"{error}. ciphercost runs programs from its cache, so nobody else may be able to write there. Remove write access, or "
            "set CIPHERCOST_CACHE to a directory of your own."
        ) from None
    except OSError:
        return  # unreachable, so nothing from it is run


def make_directory(directory: Path) -> None:
    """Make a directory that other users can read. Raises OSError.

    Whatever the umask is, since servers that root starts run as nobody, who must get to their programs.
    """
    new = [place for place in (directory, *directory.parents) if not place.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for place in new:
        if server_user() is not None or place.is_relative_to(cache()):
            place.chmod(0o755)


def check_reach() -> None:
    """Raises UsageError if servers could not get to their programs in the cache."""
    if why := out_of_reach(cache()):
        raise UsageError(f"{why}. Fetched servers are kept there; or set CIPHERCOST_CACHE to another directory.")


class Work:
    """A root that is being filled: at `path` now, at `final` once complete. It and its package clients don't outlive
    this process.
    """

    def __init__(self, path: Path, final: Path, supervisor: Supervisor) -> None:
        self.path = path
        self.final = final
        self._supervisor = supervisor

    def run(self, command: list[str], failure: str, env: Mapping[str, str] | None = None) -> str:
        """Run a package client to its end. Raises MissingServer with `failure` and the lines that name the cause."""
        given = {**(env or child_environment(registries=True)), "LC_ALL": "C"}
        try:
            process = self._supervisor.spawn(command, env=given, cwd=self.path, umask=0o022)
            try:
                status, output = process.wait(FETCH_SECONDS), process.output()
            finally:
                process.stop(timeout=1.0)
        except RunError as error:
            raise MissingServer(f"{failure}: {error}") from None
        if status != 0:
            raise MissingServer(f"{failure}: {decisive(output) or f'it ended with status {status} and gave no reason'}")
        return output


_offline = ContextVar("offline", default=False)


@contextlib.contextmanager
def offline() -> Iterator[None]:
    """Meanwhile `keep` fills nothing: what is missing raises MissingServer."""
    token = _offline.set(True)
    try:
        yield
    finally:
        _offline.reset(token)


def keep(engine: str, name: str, make: Callable[[Work], Receipt]) -> Installation:
    """Fill `<cache>/<engine>/<name>` once: `make` fills a directory beside it, which is then renamed atomically.

    Raises MissingServer, also if it is missing within `offline`. Idempotent, and safe if two runs ask at once: the second one waits and finds it complete.
    """
    home = cache() / engine
    run = f"fetch-{os.getpid()}"
    final, path = home / name, home / f".new-{name}-{run}"
    try:
        make_directory(home)
        check_trust(final if final.exists() else home)
        lock = (home / f".lock-{name}").open("w")
    except OSError as error:
        raise UsageError(
            f"can't write to the cache {home}: {error.strerror}. Set CIPHERCOST_CACHE to another directory."
        ) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (final / RECEIPT).exists():
            if _offline.get():
                raise MissingServer(f"{name} was not fetched yet")
            with Supervisor(run) as supervisor:
                supervisor.remove(path)
                path.mkdir()
                receipt = make(Work(path, final, supervisor))
                _open_up(path)
                (path / RECEIPT).write_bytes(msgspec.json.encode(receipt))
                shutil.rmtree(final, ignore_errors=True)
                path.rename(final)
    kept = msgspec.json.decode((final / RECEIPT).read_bytes(), type=Receipt)
    return Installation(engine, kept.version, kept.source, str(final / kept.programs))


def _open_up(root: Path) -> None:
    """Let everybody read and run it: servers don't run as the user who fetched them. Nothing in it is secret."""
    for directory, _, files in os.walk(root):
        Path(directory).chmod(0o755)
        for name in files:
            path = Path(directory) / name
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
