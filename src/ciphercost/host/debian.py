"""debian: unpacks packages of a Debian suite, or of this system's own release, into a private root. apt knows its own
mirrors.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from ciphercost.host import apt
from ciphercost.host.environment import child_environment
from ciphercost.host.package_cache import Work, print_progress
from ciphercost.model.errors import MissingServer

MIRROR = "CIPHERCOST_DEBIAN_MIRROR"
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def mmdebstrap_possible() -> bool:
    return shutil.which("mmdebstrap") is not None and os.geteuid() == 0


def debian_possible() -> str:
    """Why packages of a Debian suite can't be unpacked here; empty if they can: as root with mmdebstrap, otherwise with
    apt alone.
    """
    if mmdebstrap_possible():
        return ""
    if not (reason := apt.possible()) and KEYS.exists():
        return ""
    reason = reason or f"Debian's keys are not in {KEYS} (apt-get install debian-archive-keyring)"
    other = "mmdebstrap needs root" if shutil.which("mmdebstrap") else "mmdebstrap was not found"
    return f"{other} (as root on Debian: apt-get install mmdebstrap), and {reason}"


def apt_possible() -> str:
    """Why packages of this system's own release can't be unpacked here; empty if they can."""
    return apt.possible()


def release() -> str:
    """This machine's release: `debian-12`; `system` if it has no name."""
    try:
        os_release = platform.freedesktop_os_release()
    except OSError:
        return "system"
    return re.sub(r"[^\w.-]", "", f"{os_release['ID']}-{os_release.get('VERSION_CODENAME', '')}").strip("-")


def of_release(work: Work) -> AbstractContextManager[apt.Apt]:
    """Packages of this system's own release, for the root `work`. Raises MissingServer."""
    if reason := apt_possible():
        raise MissingServer(f"can't fetch this system's own packages: {reason}")
    print_progress(f"looking up packages of this system's own release ({release()}) with apt …")
    return apt.Apt(work.path / APT, work.run)


APT = ".apt"
"""apt's working directory, inside a root that is being filled."""


def mirror() -> str:
    """The Debian mirror: $CIPHERCOST_DEBIAN_MIRROR, else the one that this machine's apt uses. Raises MissingServer."""
    if chosen := os.environ.get(MIRROR):
        return chosen
    for wanted in (
        ["Origin: Debian", "Label: Debian"],
        ["Component: main"],
    ):  # before the first `apt-get update`, apt knows no origin
        command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", *wanted]
        with contextlib.suppress(OSError):
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=child_environment())
            uris = [uri for uri in done.stdout.split() if uri.rstrip("/").endswith("debian")]
            if uris:
                return uris[0]
    raise MissingServer(f"this machine's apt knows no Debian mirror. Set {MIRROR} to the URI of one.")


def unpack_suite(suite: str, packages: Iterable[str], work: Work) -> None:
    """Unpack packages of a suite and their dependencies into the root `work`, without configuring or starting anything."""
    if reason := debian_possible():
        raise MissingServer(f"can't fetch Debian packages: {reason}")
    wanted = list(packages)
    unpack = _by_mmdebstrap if mmdebstrap_possible() else _by_apt
    try:
        unpack(suite, wanted, work, strict=True)
    except MissingServer as error:
        if "expired" not in str(error):
            raise
        print_progress(
            f"the mirror's list of {suite} is out of date (a frozen mirror, or a wrong clock here), but its "
            "signature is valid …"
        )
        empty_directory(work.path)
        unpack(suite, wanted, work, strict=False)


def _by_mmdebstrap(suite: str, packages: list[str], work: Work, *, strict: bool) -> None:
    names = ",".join(packages)
    print_progress(f"unpacking {names} of Debian {suite} with mmdebstrap …")
    command = ["mmdebstrap", "--verbose", "--variant=extract", "--mode=root", "--format=directory", "--skip=output/dev"]
    command += [] if strict else ['--aptopt=Acquire::Check-Valid-Until "false"']
    target = [f"--include={names}", suite, str(work.path), mirror()]
    work.run([*command, *target], f"mmdebstrap could not unpack {names} of {suite}")


def _by_apt(suite: str, packages: list[str], work: Work, *, strict: bool) -> None:
    print_progress(f"unpacking {', '.join(packages)} of Debian {suite} with apt-get …")
    options = f"signed-by={KEYS}" + ("" if strict else " check-valid-until=no")
    with apt.Apt(work.path / APT, work.run, f"deb [{options}] {mirror()} {suite} main\n") as lists:
        lists.unpack(packages, work.path)


def empty_directory(directory: Path) -> None:
    for entry in directory.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
