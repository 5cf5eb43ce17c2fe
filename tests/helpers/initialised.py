"""Empty data directories, made once for each server and version and then copied, as ciphercost itself does for each session of a run.

The first `initdb`, `mysqld --initialize-insecure` or `mariadbd --bootstrap` with given options runs as the product asks. What it made is
kept below `.make`, and whoever asks for the same again gets a copy, in any process of the tests that called `use`. Whatever else the
product runs, starts or loads is not touched. All copies have the password of the first: it is written where the product keeps it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ciphercost.engines._network import PASSWORD_FILE
from ciphercost.host.run_ownership import own_file
from ciphercost.host.supervisor import Supervisor

PLACE = Path(__file__).parents[2] / ".make" / "initialised"
KEPT_PASSWORD = "password"
PATH = re.compile(r"(?<![\w.])/[^\0\s'\"]+")

Run = Callable[..., str]


class Wanted(NamedTuple):
    """A data directory that a command would make."""

    data: Path
    password: Path
    """The file that has its user's password when the command starts."""
    options: list[str]
    """The command without its places."""
    script: str
    """What it reads, without the password."""


def _postgresql(argv: Sequence[str], _: dict[str, Any]) -> Wanted:
    """Of `initdb -D DATA … --pwfile=FILE …`."""
    data = Path(argv[argv.index("-D") + 1])
    password = next(Path(each.partition("=")[2]) for each in argv if each.startswith("--pwfile="))
    known = {str(data), f"--pwfile={password}"}
    return Wanted(data, password, [each for each in argv if each not in known], "")


def _mysql(argv: Sequence[str], options: dict[str, Any]) -> Wanted:
    """Of a server that is started with DIRECTORY as its working directory, to make DIRECTORY/data by a script."""
    directory = Path(options["cwd"])
    init = [Path(each.partition("=")[2]) for each in argv if each.startswith("--init-file=")]
    script = Path(options.get("stdin") or init[0]).read_text()
    password = directory / PASSWORD_FILE
    words = [each.replace(str(directory), "DIRECTORY") for each in argv]
    return Wanted(directory / "data", password, words, script.replace(password.read_text(), "PASSWORD"))


KINDS: dict[tuple[str, str], Callable[[Sequence[str], dict[str, Any]], Wanted]] = {
    ("initdb", ""): _postgresql,
    ("mysqld", "--initialize-insecure"): _mysql,
    ("mariadbd", "--bootstrap"): _mysql,
}
"""By program and option of a command that makes a data directory."""


def wanted(argv: Sequence[str], options: dict[str, Any]) -> Wanted | None:
    """None: the command makes no data directory, or one that depends on files that may change."""
    read = [kind for (name, word), kind in KINDS.items() if Path(argv[0]).name == name and word in ("", *argv)]
    if not read or options.get("env"):
        return None
    found = read[0](argv, options)
    installation = Path(argv[0]).parents[1]
    named = [Path(each) for each in PATH.findall("\0".join(found.options))]
    return found if all(each.is_relative_to(installation) for each in named) else None


@contextlib.contextmanager
def _alone(kept: Path) -> Iterator[None]:
    """Let no other process make or read the same one meanwhile."""
    PLACE.mkdir(parents=True, exist_ok=True)
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _copy(origin: Path, to: Path, sparse: str = "auto") -> None:
    to.mkdir(exist_ok=True)
    subprocess.run(["cp", "-a", f"--sparse={sparse}", f"{origin}/.", to], check=True)


def _keep(wanted: Wanted, kept: Path) -> None:
    making = kept.with_suffix(".new")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    # Most of a new redo log is zeros. They become holes, and stay holes in all copies.
    _copy(wanted.data, making / "data", "always")
    own_file(making / KEPT_PASSWORD, wanted.password.read_text())
    making.rename(kept)


def use() -> None:
    """From now on, in this process and its forks."""
    run: Run = Supervisor.run

    def copies(self: Supervisor, argv: Sequence[str | Path], **options: Any) -> str:
        found = wanted([str(each) for each in argv], options)
        if found is None:
            return run(self, argv, **options)
        program = Path(argv[0]).stat()
        of = repr(
            (
                "sparse",
                found.options,
                found.script,
                program.st_size,
                program.st_mtime_ns,
                options.get("user"),
                os.geteuid(),
            )
        )
        kept = PLACE / hashlib.sha256(of.encode()).hexdigest()[:16]
        with _alone(kept):
            if not kept.exists():
                said = run(self, argv, **options)
                _keep(found, kept)
                return said
        _copy(kept / "data", found.data)
        own_file(found.password, (kept / KEPT_PASSWORD).read_text())
        return ""

    Supervisor.run = copies  # type: ignore[method-assign]
