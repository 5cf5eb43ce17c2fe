"""A record that somebody else may have written is resumed only when the user trusts it: nothing that it names is run, read or contacted."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import warm
from ciphercost.estimate import results
from ciphercost.host import procfs
from ciphercost.model.command_load import CommandLoad
from ciphercost.model.constrained_types import FORMAT, PLAN_FORMAT
from ciphercost.model.errors import UsageError
from ciphercost.model.facts import CellFacts, RunFacts
from ciphercost.model.machines import MACHINES_FORMAT, Machine, MachinesRun
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import registry_facts
from ciphercost.runs import own_records, replicate_all, resume, spread
from ciphercost.runs.own_records import Orders
from conftest import Require
from fake import Fake
from test_resume import ONE, killed, spec_of

CELL = CellSpec("postgresql", "tls")
ELSEWHERE: dict[str, Any] = {
    "url": "postgresql://me@db.example/x", "bindir": "theirs/bin", "ca": "theirs/ca.pem", "sql": "theirs/q.sql", "csv": "theirs/t.csv",
    "dump": "theirs/shop.dump",
    "headers_file": "theirs/h", "listen": "192.0.2.1", "driver": "theirs/d.jar", "settings": {"archive_command": "theirs"},
    "command": CommandLoad("theirs/load.sh"),
    "cert": "theirs/me.pem", "key": "theirs/me.key", "server_name": "db.example",
}  # fmt: skip
"""Every field of a cell that names a program, a library, a file, an address or a setting."""


def record(directory: Path, cells: list[CellSpec], machine: dict[str, Any] | None = None, **fields: Any) -> Path:
    """A run that never got far, as somebody could write it by hand: with the owner's files, and without a mark."""
    (directory / "logs").mkdir(parents=True, mode=0o700)
    directory.chmod(0o700)
    planned = [
        CellFacts(cell, registry_facts.registered(msgspec.structs.replace(cell, headers_file=""))) for cell in cells
    ]
    facts = RunFacts(
        PLAN_FORMAT, "20260101-000000-abcdef", "then", results.tool(), procfs.machine() if machine is None else machine, 3,
        Spec(cells=cells, mode="quick", sessions=1, time=20.0), planned, **fields,
    )  # fmt: skip
    (directory / "plan.json").write_bytes(msgspec.json.encode(facts))
    return directory


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A server's program that leaves a trace when it is run."""
    place = tmp_path / "theirs" / "bin"
    place.mkdir(parents=True)
    for name in ("postgres", "initdb"):
        (place / name).write_text(f"#!/bin/sh\necho ran >> {tmp_path}/trace\necho 'postgres (PostgreSQL) 15.1'\n")
        (place / name).chmod(0o755)
    return place


def test_a_program_that_the_record_names_runs_only_once_the_user_trusts_it(program: Path, tmp_path: Path) -> None:
    directory = record(tmp_path / "run", [msgspec.structs.replace(CELL, bindir=str(program))])
    refused = warm.run(["resume", str(directory), "--no-progress"], cwd=tmp_path)
    assert refused.returncode == 2, refused.stdout + refused.stderr
    assert f"bindir={program}" in refused.stderr
    assert "--trust-record" in refused.stderr
    assert not (tmp_path / "trace").exists()
    warm.run(["resume", "--trust-record", str(directory), "--no-progress"], cwd=tmp_path)
    assert (tmp_path / "trace").exists()


@pytest.mark.parametrize("field", ELSEWHERE)
def test_whatever_leads_out_of_the_record_is_named_and_refused(tmp_path: Path, field: str) -> None:
    directory = record(tmp_path / "run", [msgspec.structs.replace(CELL, **{field: ELSEWHERE[field]})])
    with pytest.raises(UsageError, match=rf"no mark .* {field}="):
        resume.run_in(directory)


def test_each_field_of_a_cell_is_known_to_be_harmless_or_is_refused() -> None:
    assert own_records.HARMLESS | set(ELSEWHERE) | {"factors", "versus"} == set(CellSpec.__struct_fields__)
    assert own_records.HARMLESS_SPEC | {"cluster"} == set(Spec.__struct_fields__)


@pytest.mark.parametrize(
    ("orders", "named"),
    [
        (Orders(Spec([msgspec.structs.replace(CELL, factors={"library": "/x"})])), ["library=/x"]),
        (Orders(Spec([msgspec.structs.replace(CELL, factors={"library": "here"})])), ["library=here"]),
        (Orders(Spec([msgspec.structs.replace(CELL, factors={"library": "openssl-3.5", "version": "1.3"})])), []),
        (Orders(Spec([msgspec.structs.replace(CELL, versus={"library": "/x"})])), ["library=/x"]),
        (Orders(Spec([CELL], cluster="ray://x:1")), ["cluster=ray://x:1"]),
        (Orders(Spec([CELL]), [msgspec.structs.replace(CELL, bindir="b")]), ["bindir=b"]),
        (Orders(Spec([]), options={"bindir": ["a", "b"], "scale": 3}), ['bindir=["a","b"]']),
        (Orders(Spec([]), options={"csv": "x"}), ["csv=x"]),
        (Orders(Spec([CELL])), []),
    ],
)
def test_what_a_plan_names(orders: Orders, named: list[str]) -> None:
    assert list(own_records.names(orders)) == named


def test_a_run_of_ones_own_is_resumed_and_no_more_once_its_plan_has_changed(
    tmp_path: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIRTUAL_TIME", "1")
    fake("--sd 0.01")
    killed(spec_of(ONE), tmp_path / "run", 400)
    own_records.check(tmp_path / "run", own_records.of_run(tmp_path / "run"))
    shutil.copytree(tmp_path / "run", tmp_path / "other")
    path = tmp_path / "other" / "checkpoint.json"
    facts = json.loads(path.read_text())
    facts["spec"]["cells"][0]["bindir"] = facts["cells"][0]["spec"]["bindir"] = "/theirs"
    path.write_text(json.dumps(facts))
    with pytest.raises(UsageError, match="bindir=/theirs"):
        resume.run_in(tmp_path / "other")
    result, _ = resume.run_in(tmp_path / "run")
    assert [cell.status for cell in result.cells] == ["ok"]


def test_a_mark_is_by_a_key_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, mine = tmp_path / "their-cache", tmp_path / "cache"
    directory = record(tmp_path / "run", [msgspec.structs.replace(CELL, bindir="/theirs")])
    every = own_records.of_run(directory)
    monkeypatch.setenv("CIPHERCOST_CACHE", str(theirs))
    own_records.mark(directory, every)
    own_records.check(directory, every)
    monkeypatch.setenv("CIPHERCOST_CACHE", str(mine))
    with pytest.raises(UsageError, match="no mark"):
        own_records.check(directory, every)
    own_records.check(directory, every, trusted=True)
    own_records.check(directory, every)
    (key,) = mine.iterdir()
    assert key.stat().st_mode & 0o777 == 0o600
    key.chmod(0o644)  # then others may know it
    with pytest.raises(UsageError, match="no mark"):
        own_records.check(directory, every)


def test_an_empty_machine_is_not_this_machine(tmp_path: Path) -> None:
    directory = record(tmp_path / "run", [CELL], {})
    with pytest.raises(UsageError, match=r"does not record the machine .*\(cpu, cores"):
        resume.run_in(directory)


LINKS: dict[str, Callable[[Path, Path], None]] = {
    ".plan.json.new": lambda path, aim: path.symlink_to(aim),
    "slices.jsonl": lambda path, aim: path.symlink_to(aim),
    "logs/agent.log": lambda path, aim: path.symlink_to(aim),
    "report.html": lambda path, aim: os.mkfifo(path),
}


@pytest.mark.parametrize("name", LINKS)
def test_a_link_in_the_record_is_refused(tmp_path: Path, name: str) -> None:
    aim = tmp_path / "precious"
    aim.write_text("precious")
    directory = record(tmp_path / "run", [CELL])
    LINKS[name](directory / name, aim)
    with pytest.raises(UsageError, match=f"{name}: is (a link|no plain file),"):
        resume.run_in(directory)
    assert aim.read_text() == "precious"


def test_a_record_that_others_may_change_is_refused(tmp_path: Path) -> None:
    directory = record(tmp_path / "run", [CELL])
    directory.chmod(0o777)
    with pytest.raises(UsageError, match="others may write to it"):
        resume.run_in(directory)
    directory.chmod(0o755)
    (directory / "plan.json").chmod(0o666)
    with pytest.raises(UsageError, match=r"plan\.json: others may write to it"):
        resume.run_in(directory)


def test_a_file_of_somebody_else_is_refused(tmp_path: Path, require: Require) -> None:
    require(os.geteuid() == 0, "giving a file away needs root")
    directory = record(tmp_path / "run", [CELL])
    os.chown(directory / "plan.json", 12345, 12345)
    with pytest.raises(UsageError, match=r"plan\.json: belongs to uid 12345"):
        resume.run_in(directory)


def test_a_run_over_machines_and_one_of_all_studies_are_judged_alike(tmp_path: Path) -> None:
    over, every = tmp_path / "over", tmp_path / "all"
    for directory in (over, every):
        directory.mkdir(mode=0o700)
    machines_run = MachinesRun(
        MACHINES_FORMAT, "x", "then", results.tool(), 1, Spec([CELL], cluster="ray://theirs:10001"), [Machine("node-1", "n", "h", [0], 1.0)]
    )  # fmt: skip
    spread.save(over, machines_run)
    done = warm.run(["resume", str(over)], cwd=tmp_path)
    assert (done.returncode, "cluster=ray://theirs:10001" in done.stderr) == (2, True), done.stderr
    batch = replicate_all.new_record(0.0, 1, "", {"bindir": ["/theirs"]}, "")
    assert batch.format == FORMAT
    replicate_all.save(every, batch)
    done = warm.run(["resume", str(every)], cwd=tmp_path)
    assert (done.returncode, 'bindir=["/theirs"]' in done.stderr) == (2, True), done.stderr
    again = replicate_all.begin(tmp_path / "mine", batch)
    replicate_all.check(again)
