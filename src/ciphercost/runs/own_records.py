"""own_records: whether this user began the record that `resume` is to continue, or somebody else wrote what it asks for. I/O.

A plan names programs, files and servers, and `resume` uses them with this user's rights. So each record that a run begins gets a mark:
a MAC of what its plan asks for, by a key that only this user can read. A record without a valid mark may have come from anybody,
whoever owns its files here: then `resume` uses nothing that it names until the user has read it.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import re
import secrets
import shlex
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ciphercost.host import tls_library
from ciphercost.host.package_cache import cache, make_directory
from ciphercost.host.run_ownership import server_user
from ciphercost.model import owned
from ciphercost.model.errors import UsageError
from ciphercost.model.run_directory import check_owner, read_facts
from ciphercost.model.spec import CellSpec, Spec

MARK = ".mark"
"""The file of a record that holds its mark."""
OPTION = "--trust-record"
KEY_BYTES = 32
HARMLESS = frozenset(
    {
        *("engine", "mechanism", "version", "workload", "clients", "rows", "regime", "per_request", "rate", "no_header", "headers"),
        *("group", "variant", "cpu_crypto", "bandwidth", "delay", "mtu", "loss", "cache", "client", "idle"),
        *("builtin", "define", "protocol", "max_tries", "secret"),
        *("max_rate", "max_connections", "max_errors", "max_latency", "objective", "fio_bytes", "storm", "connections"),
    }
)  # fmt: skip
"""Fields of a cell that name no program, library, file, address or setting; `factors` and `versus` are judged one by one."""
HARMLESS_SPEC = frozenset(
    {
        *("cells", "seed", "mode", "sessions", "time", "precision", "margin", "latency", "slice_seconds", "profile", "spread"),
        *("agents", "min_agents", "placement", "machines"),
    }
)  # fmt: skip
HARMLESS_OPTIONS = frozenset(
    {
        *("scale", "duration", "rows", "clients", "mechanism", "select_only", "loads", "runs", "cpu_crypto", "loop"),
        *("iterations", "queries", "order", "memory", "bandwidth", "delay", "engine"),
    }
)  # fmt: skip
"""Options of studies of the same kind."""
WORD = re.compile(r"[\w.:%+ -]*", re.ASCII)
"""A factor's value that is no path."""
LONGEST = 400
"""Characters of a value in the message."""


class Orders(msgspec.Struct, frozen=True):
    """What a plan asks for."""

    spec: Spec
    cells: list[CellSpec] = []
    """The cells once more, as the record of a run repeats them."""
    study: str = ""
    options: dict[str, Any] = {}
    """Of the study, or of all."""


def of_run(directory: Path) -> list[Orders]:
    """The orders of each plan of a run on one machine. Raises UsageError if one is damaged."""
    plans = [read_facts(directory, name) for name in ("plan.json", "checkpoint.json") if (directory / name).is_file()]
    return [Orders(plan.spec, [cell.spec for cell in plan.cells], plan.study, plan.study_options) for plan in plans]


def check(directory: Path, every: Sequence[Orders], *, trusted: bool = False) -> None:
    """Raises UsageError, before anything that it names is used, for a record that somebody else may have written or may still change.

    `every`: its plans, which must all be marked. `trusted`: the user has read what they name; the record then gets this user's mark.
    """
    check_files(directory)
    if _is_marked(directory, every):
        return
    if trusted:
        mark(directory, every)
        return
    if named := list(dict.fromkeys(name for orders in every for name in names(orders))):
        raise UsageError(
            f"{directory}: has no mark of a run that you began here, so somebody else may have written it, and resuming it would use what it "
            f"names, with your rights and passwords: {'; '.join(named)}. If you trust all of it: ciphercost resume {OPTION} {shlex.quote(str(directory))}"
        )


def check_files(directory: Path) -> None:
    """Raises UsageError if somebody else owns or can change the record, or if a link in it leads elsewhere."""
    check_owner(directory)
    status = directory.stat()
    reason = owned.fault(status, group=owned.private_group())
    if reason:
        raise UsageError(f"{directory}: {reason}; if its content is yours, run chmod go-w {directory}")
    reachable = bool(status.st_mode & (stat.S_IXGRP | stat.S_IXOTH))
    user = server_user()
    for place, folders, files in os.walk(directory):
        logs = "logs" in Path(place).relative_to(directory).parts[:2]
        for name in (*folders, *files):
            path = Path(place, name)
            file_status = path.lstat()
            if not (stat.S_ISREG(file_status.st_mode) or stat.S_ISDIR(file_status.st_mode)):
                what = "a link" if stat.S_ISLNK(file_status.st_mode) else "no plain file"
                raise UsageError(f"{path}: is {what}, through which the run would write elsewhere; remove it")
            owners = (user[0],) if logs and user else ()
            reason = owned.fault(file_status, owners, group=owned.private_group())
            if reason and (reachable or file_status.st_uid not in {os.geteuid(), *owners}):
                raise UsageError(f"{path}: {reason}; resume only a record that is all your own")


def mark(directory: Path, every: Sequence[Orders]) -> None:
    """Mark a record as one that this user began or trusts; `every`: its plans, as read from its files, since numbers change on the way.

    Does nothing where there can't be a key.
    """
    with contextlib.suppress(OSError):
        key, path = _key(make=True), directory / MARK
        path.unlink(missing_ok=True)
        for mac in dict.fromkeys(_mac(key, orders) for orders in every):
            owned.add_line(path, mac)


def names(orders: Orders) -> Iterator[str]:
    """What a plan names that would be run, loaded, read, written, set or contacted: `bindir=/opt/x`. Pure."""
    spec = orders.spec
    usual = Spec(cells=[])
    for field in Spec.__struct_fields__:
        if field not in HARMLESS_SPEC and (value := getattr(spec, field)) != getattr(usual, field):
            yield _said(field, value)
    for cell in (*spec.cells, *orders.cells):
        yield from _names_of(cell)
    for option, value in orders.options.items():
        if value and option not in HARMLESS_OPTIONS:
            yield _said(option, value)


def _names_of(cell: CellSpec) -> Iterator[str]:
    usual = CellSpec("", "")
    for field in CellSpec.__struct_fields__:
        value = getattr(cell, field)
        if field in ("factors", "versus"):
            for name, setting in value.items():
                if not WORD.fullmatch(setting) or (name == "library" and setting not in tls_library.SUITES):
                    yield _said(name, setting)
        elif field not in HARMLESS and value != getattr(usual, field):
            yield _said(field, value)
    if cell.workload_file:
        yield _said("workload", cell.workload_file)


def _said(name: str, value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return f"{name}={text if len(text) <= LONGEST else text[:LONGEST] + '…'}"


# ── the mark ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _is_marked(directory: Path, every: Sequence[Orders]) -> bool:
    try:
        key, marks = _key(), (directory / MARK).read_text("ascii", "replace").splitlines()
    except OSError:
        return False
    return bool(every) and all(
        any(hmac.compare_digest(_mac(key, orders).encode(), line.encode()) for line in marks) for orders in every
    )


def _mac(key: bytes, orders: Orders) -> str:
    return hmac.digest(key, msgspec.json.encode(orders, order="sorted"), "sha256").hex()


def _key(*, make: bool = False) -> bytes:
    """This user's key. `make`: create it if there is none. Raises OSError if there is none that only this user can read and write."""
    path = cache() / f"record-key.{os.geteuid()}"
    if make and not path.exists():
        make_directory(path.parent)
        beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        owned.add_line(beside, secrets.token_hex(KEY_BYTES))
        with contextlib.suppress(FileExistsError):
            os.link(beside, path)  # whoever is first wins
        beside.unlink()
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise PermissionError(f"{path}: somebody else may know or have written it")
        try:
            key = bytes.fromhex(file.read(2 * KEY_BYTES + 1).decode().strip())
        except ValueError:
            key = b""
    if len(key) != KEY_BYTES:
        raise PermissionError(f"{path}: holds no key")
    return key
