"""What vendors' PostgreSQL servers with encryption share: finding their binaries, their keys, their pages. Not a
mechanism.

No package registry offers these servers, so you name their directory of binaries with `--bindir` or an environment
variable. Both arms are clusters of the same binaries.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import secrets as randomness
import zlib
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ciphercost.engines.postgresql import PAGE
from ciphercost.host import aes
from ciphercost.host.programs import output_of
from ciphercost.host.run_ownership import hand_over
from ciphercost.mechanisms._rest import ArmAtRest, AtRest, AtRestContext, KeyState
from ciphercost.model.errors import MissingServer, UsageError

if TYPE_CHECKING:
    from ciphercost.host.installation import Installation

PAGES = 64
"""Number of pages of the largest table to inspect."""
LAYOUT = PAGE | 4
"""Bytes 18 and 19 of each unencrypted page: its size and its layout version, the same in every version since 8.3."""
SHRUNK = 0.95
"""Unencrypted pages (headers, padding, free space) compress below this share; well encrypted pages don't."""
LARGEST = (
    "SELECT pg_relation_filepath(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' "
    "ORDER BY pg_relation_size(c.oid) DESC, c.oid LIMIT 1"
)


class VendorTde(AtRest):
    """Encryption in a vendor's server, which PostgreSQL itself lacks."""

    engines = ("postgresql",)
    vendor: str
    """Name of the server."""
    variable: str
    """Environment variable that names the directory of its binaries."""
    key_states: tuple[KeyState, ...] = ("missing", "wrong")

    def bindir(self) -> str:
        """Return the directory that the variable names. Raises MissingServer if it is not set."""
        named = os.environ.get(self.variable, "")
        if not named:
            raise MissingServer(
                f"{self.name} needs {self.vendor}, which no package registry offers. Get it from its vendor, then name the directory "
                f"of its 'postgres' and 'initdb' with --bindir, or set {self.variable} to it."
            )
        if not Path(named).is_dir():
            raise MissingServer(f"{self.variable} names {named}, which is not a directory")
        return named

    def prepare(self, rest: AtRestContext) -> Installation:
        """Copy nothing, but refuse a server that lacks the encryption. Raises MissingServer, UsageError."""
        if rest.installation.source == "running":
            raise UsageError(
                f"{self.name} creates two clusters of its own, so it takes no --url: name the binaries with --bindir"
            )
        bindir = Path(rest.installation.location)
        if lack := self.lacks(bindir):
            raise MissingServer(
                f"{bindir} contains PostgreSQL {rest.installation.version}, which is not {self.vendor}: {lack}. "
                f"Name the directory of its binaries with --bindir or {self.variable}."
            )
        self.check_rest(rest)
        return rest.installation

    @abstractmethod
    def lacks(self, bindir: Path) -> str:
        """Return what these binaries lack, for people; empty: nothing."""

    def check_rest(self, rest: AtRestContext) -> None:
        """Refuse factors that this version can't honour, and directories that it can't use. Raises UsageError."""

    def structure(self, look: ArmAtRest) -> tuple[bool, str]:
        look.query("CHECKPOINT")
        ((file,),) = look.query(LARGEST) or [[None]]
        if file is None:
            return True, ""
        return judge_pages(look.arm, file, pages(look.volume.path / file))

    @abstractmethod
    def cipher(self, rest: AtRestContext) -> str:
        """Return what encrypts which data, for people."""

    def implementation(self, look: ArmAtRest) -> dict[str, str]:
        """All three vendors use the OpenSSL that the server has loaded."""
        return {
            "cipher": self.cipher(look.rest),
            **aes.by_library(look.server.library, environment(look.server.pid)),
        }

    @abstractmethod
    def key_file(self, rest: AtRestContext) -> Path:
        """Return the file in `secrets` without which the encrypted arm has no key."""

    def other_key(self, key: bytes) -> bytes:  # noqa: ARG002
        """Return the content of a key file with another key, given this key file's content."""
        return f"{randomness.token_hex(32)}\n".encode()

    @contextlib.contextmanager
    def key_taken(self, state: KeyState, rest: AtRestContext, directory: Path) -> Iterator[None]:  # noqa: ARG002
        path = self.key_file(rest)
        away = path.with_name(path.name + ".away")
        path.rename(away)
        try:
            if state == "wrong":
                write_secret(path, self.other_key(away.read_bytes()))
            yield
        finally:
            away.replace(path)


def is_temporary_table(place: str) -> bool:
    """Whether a file with this name holds a session's temporary table: `base/5/t3_16402`. Pure."""
    name = place.removesuffix(" (deleted)").rpartition("/")[2]
    return bool(re.fullmatch(r"t\d+_\d+(_\w+)?(\.\d+)?", name))


# ── binaries ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@functools.cache
def initdb_help(bindir: Path) -> str:
    """Return what this `initdb --help` prints; empty if it can't run."""
    return output_of([bindir / "initdb", "--help"], 10, {"LC_ALL": "C"})


def module(bindir: Path, name: str) -> Path | None:
    """Return the loadable library with this name that belongs to these binaries."""
    return next((path for place in _library_places(bindir) for path in sorted(place.glob(f"{name}.so"))), None)


def _library_places(bindir: Path) -> Iterator[Path]:
    """Ask `pg_config`, which often comes in a separate package; then try the layouts of packages and builds."""
    if directory := output_of([bindir / "pg_config", "--pkglibdir"], 10).strip():
        yield Path(directory)
    real = bindir.resolve().parent
    for pattern in ("lib", "lib64", "lib/postgresql", "lib/pgsql", "lib64/pgsql", "lib/*/postgresql"):
        yield from sorted(real.glob(pattern))


def environment(pid: int) -> dict[str, str]:
    """Return the environment that a process started with; empty if it can't be read."""
    try:
        text = Path(f"/proc/{pid}/environ").read_text(errors="replace")
    except OSError:
        return {}
    return dict(variable.split("=", 1) for variable in text.split("\0") if "=" in variable)


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def write_secret(path: Path, content: bytes, mode: int = 0o600) -> Path:
    """Write a new file that only the servers' user can read. Raises FileExistsError."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        os.fchmod(file.fileno(), mode)  # whatever the umask is
        file.write(content)
    hand_over(path)
    return path


def kept_secret(path: Path, content: bytes, mode: int = 0o600) -> Path:
    """Write the file at the first call only: cells of one run share their keys."""
    with contextlib.suppress(FileExistsError):
        write_secret(path, content, mode)
    return path


# ── pages ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def pages(file: Path) -> list[bytes]:
    """Return the first pages of a table's file that were ever written."""
    try:
        with file.open("rb") as opened:
            content = opened.read(PAGES * PAGE)
    except FileNotFoundError:
        return []
    all_pages = (content[at : at + PAGE] for at in range(0, len(content) - PAGE + 1, PAGE))
    return [page for page in all_pages if any(page)]


def judge_pages(arm: str, name: str, table_pages: Iterable[bytes]) -> tuple[bool, str]:
    """Judge whether a table's pages look as the arm's name promises. Returns (verdict, words). Pure.

    Every unencrypted page carries the mark of its layout. No encrypted page may compress: with some vendors a page's
    header stays unencrypted, but its free space must not.
    """
    looked = list(table_pages)
    if not looked:
        return False, f"{name} contains no page"
    marked = sum(int.from_bytes(page[18:20], "little") == LAYOUT for page in looked)
    packed = sum(len(zlib.compress(page)) < SHRUNK * len(page) for page in looked)
    words = (
        f"{marked} of {len(looked)} pages of {name} have the mark of an unencrypted page, {packed} can be compressed"
    )
    return (marked == len(looked) if arm == "plain" else packed == 0), words
