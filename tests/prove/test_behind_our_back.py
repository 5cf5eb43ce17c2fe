"""Encryption is switched off behind ciphercost's back, in a complete run: no figure, exit status 1, and the name of the
witness that detected it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import ciphercost
from ciphercost.engines import Server
from ciphercost.host.volumes.volume import Volume
from ciphercost.load.agent import Agent
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.report.formats import terminal
from conftest import RequireServer

Sabotage = Callable[[PreparedCell, Volume], None]


def no_sabotage(bench: PreparedCell, volume: Volume) -> None:
    """For engines that are sabotaged once they are running."""


def without_its_keyring(bench: PreparedCell, volume: Volume) -> None:
    (volume.path / "data" / "component_keyring_file.cnf").unlink()


def with_the_plain_arms_files(bench: PreparedCell, volume: Volume) -> None:
    template = bench.dataset.template("plain")
    for path in template.iterdir():
        if path.is_file():
            shutil.copy(path, volume.path / path.name)


CASES: dict[str, tuple[CellSpec, Sabotage, tuple[str, ...], str]] = {
    "a keyring component that is disabled": (
        CellSpec("mysql", "innodb-tde", factors={"logs": "off"}),
        without_its_keyring,
        (),
        "server witness, encrypted arm: its server does not start",
    ),
    "a table that is decrypted": (
        CellSpec("mariadb", "mariadb-tde", version="11.8"),
        no_sabotage,
        ("SET GLOBAL innodb_encrypt_tables = ON", "ALTER TABLE ciphercost_canary ENCRYPTED = NO"),
        "server witness, encrypted arm",
    ),
    "a log that is no longer encrypted": (
        CellSpec("mysql", "innodb-tde"),
        no_sabotage,
        ("SET GLOBAL innodb_redo_log_encrypt = OFF",),
        "server witness, encrypted arm: innodb_redo_log_encrypt is 0",
    ),
    "a conversion that is still running": (
        CellSpec("firebird", "firebird-crypt"),
        no_sabotage,
        ("ALTER DATABASE DECRYPT",),
        "server witness, encrypted arm",
    ),
    "a plaintext file in the encrypted one's place": (
        CellSpec("sqlite", "sqlcipher"),
        with_the_plain_arms_files,
        (),
        "witness, encrypted arm",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_encryption_switched_off_behind_our_back_gives_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require_server: RequireServer, name: str
) -> None:
    cell, before, after, witness = CASES[name]
    if cell.engine != "sqlite":
        require_server(cell.engine, cell.version)
    real = PreparedCell.start

    def start(
        bench: PreparedCell,
        place: str,
        volume: Volume,
        cpus: set[int] | None = None,
        once: Mapping[str, str] | None = None,
    ) -> Server:
        attacked = place == "encrypted" and any(part.startswith("session-") for part in volume.path.parts)
        if attacked:
            before(bench, volume)
        server = real(bench, place, volume, cpus, once)
        if attacked and after:
            with Agent() as agent:
                agent.connect("attacker", server.connection() | bench.engine.plaintext_fields())
                for statement in after:
                    agent.query("attacker", statement)
        return server

    monkeypatch.setattr(PreparedCell, "start", start)
    cell = CellSpec(cell.engine, cell.mechanism, version=cell.version, factors=cell.factors, workload="tpcb", rows=500)
    result = ciphercost.run(
        Spec(cells=[cell], mode="quick", sessions=1, time=1.0, latency=False, slice_seconds=0.05), tmp_path / "run"
    )
    cell_result = result.cells[0]
    assert cell_result.status == "unproven", cell_result.reason
    assert not cell_result.overhead
    assert witness in cell_result.reason
    # Without its key a server may repeat a message thousands of times a second.
    assert all(path.stat().st_size < 50_000_000 for path in (tmp_path / "run" / "logs").iterdir())
    printed = terminal.render(result)
    assert "this cell has no number" in printed
    assert "operations per second" not in printed
