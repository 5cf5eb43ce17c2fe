"""kept_dumps: where copies of loaded dumps are kept, and how `ciphercost clean` removes them. I/O."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import mmap
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ciphercost.host import file_stamp, package_cache
from ciphercost.model import owned
from ciphercost.model.sizes import size as sized

RECEIPT, DATA, RATES = "kept.json", "data", "rates.json"


def content_hash(dump: Path) -> str:
    """SHA-256 of a file, or of a directory's files with their names, in hexadecimal digits. Each content is read once. Raises OSError."""
    files = sorted(path for path in dump.rglob("*") if path.is_file()) if dump.is_dir() else [dump]
    return _content_hash(dump, tuple((file, file_stamp.of(file)) for file in files))


@functools.lru_cache(maxsize=64)
def _content_hash(dump: Path, files: tuple[tuple[Path, file_stamp.Stamp], ...]) -> str:
    digest = hashlib.sha256()
    for file, _ in files:
        digest.update(f"{file.relative_to(dump)}\0{file.stat().st_size}\0".encode())
        if file.stat().st_size:
            with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
                digest.update(content)
    return digest.hexdigest()


def home() -> Path:
    """The directory of all copies: $CIPHERCOST_DUMPS, else one beside the fetched servers."""
    chosen = os.environ.get("CIPHERCOST_DUMPS")
    return Path(chosen).absolute() if chosen else package_cache.cache() / "dumps"


def make_home() -> None:
    """Make it, for its owner alone. Raises OSError, owned.Distrusted."""
    package_cache.make_directory(home().parent)
    owned.check_above(home())
    home().mkdir(exist_ok=True, mode=0o700)
    check(home())


def check(place: Path) -> None:
    """Raises OSError unless a directory is our own and nobody else can enter it."""
    status = place.lstat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o077 or place.is_symlink():
        raise PermissionError(f"{place} must belong to you, with mode 0700")


def remove(place: Path) -> bool:
    """Remove a copy unless a run reads it. Returns whether it is gone. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (place / RECEIPT).unlink(missing_ok=True)  # first: without it, what a kill leaves is no copy
            shutil.rmtree(place)
        except BlockingIOError:
            return False
        finally:
            os.close(descriptor)
    return True


def sweep() -> tuple[list[str], bool]:
    """Remove all copies. Returns lines for people, and whether nothing remains."""
    lines, worked = [], True
    for place in sorted(_places()):
        size = sum(file.lstat().st_size for file in place.rglob("*") if file.is_file())
        words = f"the copy of a loaded dump ({sized(size)}) in {place}"
        try:
            gone = remove(place)
        except OSError as error:
            lines.append(f"could not remove {words}: {error.strerror}")
            worked = False
            continue
        lines.append(f"removed {words}" if gone else f"left {words}: a run uses it")
    return lines, worked


def _places() -> Iterator[Path]:
    with contextlib.suppress(OSError):
        check(home())
        for path in home().iterdir():
            if path.is_dir() and not path.name.startswith("."):  # one that a run is making is in that run's journal
                yield path


def rates() -> dict[str, float]:
    """Bytes of a dump that this machine loaded per second, by server and kind of dump."""
    with contextlib.suppress(OSError, msgspec.DecodeError):
        check(home())
        return msgspec.json.decode((home() / RATES).read_bytes(), type=dict[str, float])
    return {}


def note_rate(what: str, size: int, seconds: float) -> None:
    """Remember how fast a dump was loaded, for the next one's estimate."""
    with contextlib.suppress(OSError, owned.Distrusted):
        make_home()
        known = rates() | {what: size / max(seconds, 1e-3)}
        file = home() / f".rates-{os.getpid()}-{time.monotonic_ns()}"
        file.write_bytes(msgspec.json.encode(known))
        file.rename(home() / RATES)
