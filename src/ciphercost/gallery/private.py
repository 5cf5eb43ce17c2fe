"""Makes a record fit to publish: only the files that estimates read, without directories, server names or users. Pure but for reading.

A record holds no passwords and no keys. It may hold where its user keeps files, and, for a user's own server, its name.
Logs of servers and the HTML report are left out altogether.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ciphercost.gallery.archive import FILES
from ciphercost.model.run_directory import HASHED, read_facts
from ciphercost.model.slices import SliceRecord

HIDDEN = "…"
SERVER = "server"
LOCAL = {"localhost", "127.0.0.1", "::1", SERVER}
PUBLIC = ("usr", "etc", "proc", "sys", "dev", "lib", "lib64", "bin", "sbin", "opt")
"""Directories of the system: a path below one of them says nothing about the user."""
_PATH = re.compile(r"(?<![\w./:…])/(?!(?:" + "|".join(PUBLIC) + r")/)(?:[^\s/'\"`,;:|()<>]+/)+(?=[^\s/'\"`,;:|()<>])")
"""The directories of an absolute path, before its last part."""
_USER = re.compile(r"(?<=://)[^/@\s'\"]+@")
_OUTPUT = re.compile(r" (?:-o|--output|--json)(?: |=)(?:'[^']*'|\S+)")

Change = Callable[[str], str]


def shareable(directory: Path, *, condense: bool = False) -> dict[str, bytes]:
    """The files of a complete record as they may be published, by name.

    `condense`: leave out the latency histograms that no estimate reads, which make up most of a record: those of all but
    the counted slices of the open loop. The plan keeps the hashes that the full files had.
    """
    facts = read_facts(directory)
    hide = hiding(cell.url for cell in facts.spec.cells)
    files = {name: (directory / name).read_bytes() for name in FILES if (directory / name).is_file()}
    made = {
        name: _lines(content, hide, condense) if name == "slices.jsonl" else content for name, content in files.items()
    }
    for name in made.keys() - {"slices.jsonl", "storage.jsonl"}:
        made[name] = _document(made[name], hide)
    plan = json.loads(made["plan.json"])
    if "command" in plan:
        plan["command"] = _OUTPUT.sub("", plan["command"])
    changed = [name for name in HASHED if name in made and made[name] != files[name]]
    if changed and facts.hashes:
        plan["hashes"] = {name: hashlib.sha256(made[name]).hexdigest() for name in HASHED if name in made}
        plan["full_hashes"] = {name: facts.hashes[name] for name in changed if name in facts.hashes} | facts.full_hashes
    made["plan.json"] = _dumped(plan)
    if "result.json" in made:
        result = json.loads(made["result.json"])
        if "command" in result:
            result["command"] = _OUTPUT.sub("", result["command"])
        made["result.json"] = _dumped(result)
    return made


def hiding(urls: Iterable[str]) -> Change:
    """What replaces directories, users, and the names of the user's servers in a text."""
    names = {host for url in urls if url for host in _hosts(url)} - LOCAL
    known = re.compile("|".join(rf"(?<![\w.-]){re.escape(each)}(?![\w-])" for each in sorted(names))) if names else None

    def hide(text: str) -> str:
        if "/" in text:
            text = _USER.sub("", _PATH.sub(f"{HIDDEN}/", text))
        return known.sub(SERVER, text) if known else text

    return hide


def _hosts(url: str) -> Iterator[str]:
    """The host of each address in a URL (of a web server there may be two), and each address alone."""
    for each in re.split(r"[\s,]+", url.removeprefix("jdbc:")):
        try:
            host = urlsplit(each).hostname
        except ValueError:
            host = None
        if host:
            yield host


def _document(content: bytes, hide: Change) -> bytes:
    """A JSON document with all its texts changed; the same bytes if none is."""
    value = json.loads(content)
    changed = _walk(value, hide)
    return content if changed == value else _dumped(changed)


def _walk(value: Any, hide: Change) -> Any:
    match value:
        case str():
            return hide(value)
        case list():
            return [_walk(each, hide) for each in value]
        case dict():
            return {name: _walk(each, hide) for name, each in value.items()}
    return value


def _dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n"


def _lines(content: bytes, hide: Change, condense: bool) -> bytes:
    """slices.jsonl without private text, and if condensed, without the histograms that no estimate reads."""
    decoder, encoder = msgspec.json.Decoder(SliceRecord), msgspec.json.Encoder()
    made = []
    for line in content.splitlines(keepends=True):
        record = decoder.decode(line)
        agent, new = record.agent, record
        if new.error and hide(new.error) != new.error:
            new = msgspec.structs.replace(new, error=hide(new.error))
        if agent is not None:
            fresh = agent
            if agent.first_error and hide(agent.first_error) != agent.first_error:
                fresh = msgspec.structs.replace(fresh, first_error=hide(agent.first_error))
            if condense and agent.histogram and not (record.phase == "latency" and record.position):
                fresh = msgspec.structs.replace(fresh, histogram="")
            new = new if fresh is agent else msgspec.structs.replace(new, agent=fresh)
        made.append(line if new is record else encoder.encode(new) + b"\n")
    return b"".join(made)
