"""What the comparisons with other load generators share: a server with both ports, blocks of ours and theirs, and their rows."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ciphercost import engines, mechanisms
from ciphercost.engines import Engine, StartRequest
from ciphercost.engines.capabilities.documents import Documents
from ciphercost.estimate.statistics import session_interval
from ciphercost.host import run_ownership, supervisor
from ciphercost.load.program import Program
from ciphercost.load.workloads import Transaction, Workload, prepare
from ciphercost.model import run_directory
from ciphercost.model.connection import Connection
from ciphercost.model.spec import Language
from peers import Slice
from run import Row

SECONDS, BLOCKS = 1, 10
AIM = 1.0


def _nothing(engine: Engine, home: Path, scratch: Path) -> None:
    """Prepare nothing."""


def documents(sizes: Iterable[int], engine: Engine, home: Path, scratch: Path) -> None:
    """Lay out a web server's file of each size, under that path."""
    files = {f"/{size}": size for size in sizes}
    Documents.of(engine).lay_out(home, scratch / "documents", files, run_directory.new_id())


@contextmanager
def served(
    name: str,
    cpus: list[int],
    prepare: Callable[[Engine, Path, Path], None] = _nothing,
    connections: int = 0,
) -> Iterator[dict[str, Connection]]:
    """A server with an unencrypted port and one with TLS 1.3 and AES-256-GCM: the connection fields of both arms.

    `prepare` gets the engine, the server's directory and the scratch directory before the start. `connections`: that the server must
    carry, if they are more than it does by itself.
    """
    engine, tls = engines.get(name), mechanisms.get("tls")
    run_id = run_directory.new_id()
    with tempfile.TemporaryDirectory() as logs, supervisor.Supervisor(run_id) as run_supervisor:
        scratch = supervisor.scratch(run_id, run_supervisor)
        installation, home = engine.find(), scratch / "server"
        engine.initialise(installation, home, run_supervisor)
        prepare(engine, home, scratch)
        factors, secrets = tls.check({"version": "1.3", "cipher": "aes256-gcm"}), scratch / "secrets"
        run_ownership.hand_over(secrets)
        settings = tls.server_settings(engine, factors, secrets)
        settings |= engine.settings_for(connections) if connections else {}
        running = engine.start(
            StartRequest(installation, home, run_supervisor, cpus=cpus, settings=settings, logs=Path(logs))
        )
        try:
            print(f"{engine.title} {installation.version} ({installation.source})", flush=True)
            plain = running.connection() | tls.connection(engine, "plain", factors, secrets)
            own = running.connection() | tls.connection(engine, "encrypted", factors, secrets)
            yield {"plain": plain, "encrypted": (own | running.other_ports["tls"])}
        finally:
            running.stop()


def asking(dialect: str, statement: str, language: Language = "sql") -> Program:
    """A program of this one statement."""
    own = Workload(
        title="", measures="", languages=(language,), transaction=[Transaction("one", statement)], name="one"
    )
    return prepare(own, dialect, {})


def compared(bench: str, name: str, shown: str, ours: Callable[[int], Slice], theirs: Callable[[], Slice]) -> list[Row]:
    """Two rows from blocks of ours, theirs, theirs, ours (or mirrored): per second, and per second of client CPU.

    One log ratio per block. `ours` gets the block's number as its seed. `name` begins the rows' names, `shown` the printed lines.
    """
    per_second, per_cpu = [], []
    for block in range(BLOCKS):
        values: dict[str, list[tuple[float, float]]] = {"ours": [], "theirs": []}
        for who in ("ours", "theirs", "theirs", "ours") if block % 2 else ("theirs", "ours", "ours", "theirs"):
            each = ours(block) if who == "ours" else theirs()
            values[who].append((each.rate, each.operations / each.cpu))
        mine, other = (np.log(np.array(values[who])).mean(axis=0) for who in ("ours", "theirs"))
        per_second.append(mine[0] - other[0])
        per_cpu.append(mine[1] - other[1])
        print(
            f"  {shown}: {np.exp(per_second[-1]):.3f} per second, {np.exp(per_cpu[-1]):.3f} per CPU second", flush=True
        )
    return [
        row(bench, f"{name}: per second", per_second),
        row(bench, f"{name}: per client-CPU-second", per_cpu),
    ]


def row(bench: str, name: str, values: list[float], aim: float = AIM) -> Row:
    """The row of one log ratio per block."""
    interval = session_interval(np.array(values))
    ratio, low, high = (float(np.exp(each)) for each in (interval.centre, *interval.bounds()))
    return {"bench": bench, "row": name, "ratio": ratio, "low": low, "high": high, "aim": aim}
