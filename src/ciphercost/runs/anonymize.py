"""Makes a record fit to publish: only the files that estimates read, without directories, server names or users. Pure but for reading.

A record holds no passwords and no keys. It may hold where its user keeps files, and, for a user's own server, its name.
Logs of servers and the HTML report are left out altogether.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from ciphercost.host.ports import is_loopback
from ciphercost.model.run_directory import BESIDE, HASHED, read_facts
from ciphercost.model.slices import SliceRecord
from ciphercost.model.spec import OPEN_LOOP
from ciphercost.runs.archive import FILES

HIDDEN = "…"
SERVER = "server"
LOCAL = {"localhost", "127.0.0.1", "::1", SERVER}
PUBLIC = ("usr", "etc", "proc", "sys", "dev", "lib", "lib64", "bin", "sbin", "opt")
"""Directories of the system: a path below one of them says nothing about the user."""
_PATH = re.compile(r"(?<![\w./…])/(?!(?:" + "|".join(PUBLIC) + r")/)(?:[^\s/'\"`,;:|()<>]+/)+(?=[^\s/'\"`,;:|()<>])")
"""The directories of an absolute path, before its last part."""
_USER = re.compile(r"(?<=://)[^/@\s'\"]+@")
OUTPUTS = ("-o", "--output", "--json")
PATHS = ("sql", "csv", "dump", "headers_file", "ca", "cert", "key", "bindir", "driver")
"""Keys of a cell's spec whose value is a path."""

Change = Callable[[str], str]


def shareable(directory: Path, *, condense: bool = False) -> dict[str, bytes]:
    """The files of a complete record as they may be published, by name.

    `condense`: leave out the latency histograms that no estimate reads, which make up most of a record: those of all but
    the counted slices of the open loop. The plan keeps the hashes that the full files had.
    """
    facts = read_facts(directory)
    cells = facts.spec.cells
    hide = hiding(
        (name for cell in cells for name in (cell.url, f"//{cell.server_name}")),
        (cell.listen.strip() for cell in cells),
    )
    files = {name: (directory / name).read_bytes() for name in FILES if (directory / name).is_file()}
    published = dict(files)
    for name, content in files.items():
        if name == "slices.jsonl":
            published[name] = _lines(content, hide, condense)
        elif name == "storm.jsonl":
            published[name] = b"".join(_line(line, hide) for line in content.splitlines(keepends=True))
        elif not any(name == beside.file for beside in BESIDE.values()):
            published[name] = _document(content, hide)
    changed = [name for name in HASHED if name in published and published[name] != files[name]]
    if changed and facts.hashes:
        plan = json.loads(published["plan.json"])
        plan["hashes"] = {name: hashlib.sha256(published[name]).hexdigest() for name in HASHED if name in published}
        plan["full_hashes"] = {name: facts.hashes[name] for name in changed if name in facts.hashes} | facts.full_hashes
        published["plan.json"] = _dumped(plan)
    return published


def hiding(urls: Iterable[str], addresses: Iterable[str] = ()) -> Change:
    """What replaces directories, users, names of the user's servers, and addresses of the user's machine in a text."""
    names = {host for url in urls for host in _hosts(url)} | {
        address for address in addresses if address and not is_loopback(address)
    }
    names -= LOCAL
    # A name of one word may be a word of the record too (`mysql`), so it is replaced in addresses only.
    known = [rf"(?<![\w.-]){re.escape(name)}(?![\w-])" for name in sorted(names) if re.search(r"[.:]", name)]
    known += [rf"(?<=//){re.escape(name)}(?![\w.-])" for name in sorted(names) if not re.search(r"[.:]", name)]
    hosts = re.compile("|".join(known)) if known else None

    def hide(text: str) -> str:
        if "/" in text:
            text = _USER.sub("", _PATH.sub(f"{HIDDEN}/", text))
        return hosts.sub(SERVER, text) if hosts else text

    return hide


def _hosts(url: str) -> Iterator[str]:
    """The hosts in a URL. There may be two URLs, of a web server, or several hosts in one, of a JDBC driver."""
    for single_url in url.split():
        address = re.split(r"[/?;#]", single_url.rpartition("://")[2])[0].rpartition("@")[2]
        for one in address.split(","):
            host = one.partition("]")[0].removeprefix("[") if one.startswith("[") else one.partition(":")[0]
            yield from [host] * bool(host)


def _command(text: str, hide: Change) -> str:
    """A command without the options that name its output, and without directories."""
    try:
        words = shlex.split(text)
    except ValueError:
        return hide(text)
    kept, left = [], iter(words)
    for word in left:
        if word in OUTPUTS:
            next(left, None)
        elif not word.startswith(tuple(f"{option}=" for option in OUTPUTS if option.startswith("--"))):
            kept.append(hide(_file(word)))
    return " ".join(word if word.startswith(HIDDEN) and " " not in word else shlex.quote(word) for word in kept)


def _file(path: str) -> str:
    """A path, or several with a colon between them, without directories that are not the system's. They may contain spaces."""
    if "://" in path:
        return path
    option, equals, value = path.partition("=") if path.startswith("--") else ("", "", path)
    parts = [part if _of_system(part) else f"{HIDDEN}/{part.rpartition('/')[2]}" for part in value.split(":")]
    return f"{option}{equals}{':'.join(parts)}"


def _of_system(path: str) -> bool:
    return not path.startswith("/") or path.split("/")[1] in PUBLIC


def _document(content: bytes, hide: Change) -> bytes:
    """A JSON document with all its texts changed; the same bytes if none is."""
    value = json.loads(content)
    changed = _walk(value, hide)
    return content if changed == value else _dumped(changed)


def _walk(value: Any, hide: Change, name: str = "") -> Any:
    """The value with all its texts changed. `name`: its key."""
    match value:
        case str() if name == "command":
            return _command(value, hide)
        case str() if name == "place":
            return hide(f"//{value}").removeprefix("//")
        case str() if name in PATHS:
            return hide(_file(value))
        case str():
            return hide(value)
        case list():
            return [_walk(item, hide, name) for item in value]
        case dict():
            return {key: _walk(item, hide, key) for key, item in value.items()}
    return value


def _dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n"


def _line(line: bytes, hide: Change) -> bytes:
    """A line of JSON with all its texts changed; the same bytes if none is."""
    value = json.loads(line)
    changed = _walk(value, hide)
    return line if changed == value else msgspec.json.encode(changed) + b"\n"


def _lines(content: bytes, hide: Change, condense: bool) -> bytes:
    """slices.jsonl without private text, and if condensed, without the histograms that no estimate reads."""
    decoder, encoder = msgspec.json.Decoder(SliceRecord), msgspec.json.Encoder()
    lines = []
    for line in content.splitlines(keepends=True):
        record = decoder.decode(line)
        agent, new = record.agent, record
        if new.error and hide(new.error) != new.error:
            new = msgspec.structs.replace(new, error=hide(new.error))
        if agent is not None:
            fresh = agent
            if agent.first_error and hide(agent.first_error) != agent.first_error:
                fresh = msgspec.structs.replace(fresh, first_error=hide(agent.first_error))
            if condense and agent.histogram and not (record.phase in OPEN_LOOP and record.position):
                fresh = msgspec.structs.replace(fresh, histogram="")
            new = new if fresh is agent else msgspec.structs.replace(new, agent=fresh)
        lines.append(line if new is record else encoder.encode(new) + b"\n")
    return b"".join(lines)
