"""Whether a cell can state how many bytes its servers write to the disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ciphercost.host import written_pages
from ciphercost.model.facts import PAGE, CellFacts
from ciphercost.model.result import Warning_
from ciphercost.provision.server_pair import ServerPair

CODE = "writes-not-counted"
INEXACT = (
    "bytes written to disk are not stated: of {:,} bytes that a process writes, this kernel counts up to {:,}, because it counts whole folios "
    "of its page cache"
)
UNKNOWN = "bytes written to disk are not stated: how the kernel counts them where the data are is not known"


def describe(facts: CellFacts, pair: ServerPair) -> list[Warning_]:
    """Record what the kernel counts for a page that a session's servers write; return what follows at rest, if it is not the page."""
    facts.page_counted = written_pages.most_counted(directories(pair))
    if facts.counts_writes or facts.layer != "rest":
        return []
    return [Warning_(CODE, INEXACT.format(PAGE, facts.page_counted) if facts.page_counted else UNKNOWN)]


def directories(pair: ServerPair) -> Iterator[Path]:
    """Those whose file systems hold what servers that ciphercost started write. None for your own servers: theirs are not known."""
    if pair.place is not None:
        return
    if pair.directory is not None:
        yield pair.directory
    for server in pair.servers:
        if server.volume is not None:
            yield from (path for path in (server.volume.path, *server.volume.backing) if path.is_dir())
