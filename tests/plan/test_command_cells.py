"""A cell whose load commands make: what is planned of it, and what is refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import warm
from ciphercost.host.pki import Pki
from ciphercost.model.command_load import CommandLoad
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import schedule, specs, toml
from ciphercost.plan.planned import Plan

PLAIN, ENCRYPTED = "tool -s {seconds} {host} {port}", "tool --tls -s {seconds} {host} {port}"
CELL = CellSpec("command", "tls", url="127.0.0.1:5432", command=CommandLoad(PLAIN, ENCRYPTED))
LOAD: dict[str, Any] = {"plain": PLAIN, "encrypted": ENCRYPTED}


def planned(cell: CellSpec, **more: Any) -> Plan:
    return specs.plan(Spec(cells=[cell], time=300.0, **more))


def changed(**fields: Any) -> CellSpec:
    """The cell with other fields; those of `command` as a mapping."""
    if isinstance(command := fields.get("command"), dict):
        fields["command"] = CommandLoad(**(LOAD | command))
    return msgspec.structs.replace(CELL, **fields)


def test_its_workload_is_named_after_the_program_or_by_the_user() -> None:
    assert planned(CELL).spec.cells[0].workload == "tool"
    assert planned(changed(workload="reads")).spec.cells[0].workload == "reads"


def test_a_planned_cell_can_be_planned_again_as_resume_does() -> None:
    once = planned(CELL).spec
    assert specs.plan(once).spec == once


def test_slices_of_a_second_need_more_time() -> None:
    spec = Spec(cells=[CELL], time=100.0)
    with pytest.raises(UsageError, match=r"blocks of 4.5 slices of 1 s"):
        specs.long_enough(specs.plan(spec))
    least = schedule.least_seconds(spec, CELL)
    assert 150 < least < schedule.seconds([CELL])
    assert schedule.budget(spec, CELL).latency_s == 0


def test_clients_are_those_that_the_command_is_told() -> None:
    told = {"plain": f"{PLAIN} {{clients}}", "encrypted": f"{ENCRYPTED} {{clients}}"}
    assert planned(changed(command=told)).cells[0].clients == 4
    assert planned(changed(command=told, clients=9)).cells[0].clients == 9
    assert planned(CELL).cells[0].clients == 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"command": None}, "give the command that makes the load"),
        ({"url": ""}, "--url HOST:PORT"),
        ({"url": "localhost"}, "--url localhost: not an address"),
        ({"url": "postgresql://h:1"}, "not an address"),
        ({"url": "tcp://h:1 tcp://h:2"}, "two addresses of the same arm"),
        ({"url": "tcp://me:geheim@h:1"}, "without user or path"),
        ({"command": {"encrypted": ""}}, "--encrypted is missing"),
        ({"command": {"encrypted": PLAIN}}, "are the same command on the same address"),
        ({"command": {"plain": "tool {ca}"}}, "give --ca FILE"),
        ({"command": {"plain": "tool {nothing}"}}, "--plain: unknown placeholder"),
        ({"command": {"before": "restart {seconds}"}}, "--before: unknown placeholder"),
        ({"command": {"server_pid": "1", "server_unit": "x"}}, "name the same thing"),
        ({"clients": 3}, "no command has {clients}"),
        ({"mechanism": "none"}, "compares a command with itself"),
        ({"factors": {"version": "1.2"}}, "--set: has no effect on a command's load"),
        ({"delay": "1ms"}, "--delay 1ms: has no effect"),
        ({"rows": 5}, "--rows 5: has no effect"),
        ({"per_request": True}, "--per-request: has no effect"),
        ({"client": "jdbc"}, "--client jdbc: has no effect"),
        ({"regime": "latency"}, "--regime latency"),
        ({"version": "15"}, "--version 15: has no effect"),
        ({"mechanism": "chacha20"}, "has no mechanism"),
        ({"engine": "postgresql", "url": ""}, "only engine command takes commands"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        planned(changed(**fields))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "geheim" not in str(caught.value)


def test_what_only_agents_can_do_is_refused() -> None:
    with pytest.raises(UsageError, match="--cluster: agents of ciphercost's own"):
        planned(CELL, cluster="auto")


def test_a_ca_is_used_or_refused(tmp_path: Path) -> None:
    ca = str(Pki(tmp_path / "pki", "ecdsa-p256").ca)
    assert planned(changed(ca=ca, command={"encrypted": f"{ENCRYPTED} {{ca}}"}))
    with pytest.raises(UsageError, match=r"no command has \{ca\}"):
        planned(changed(ca=ca))
    with pytest.raises(UsageError, match=r"nothing\.pem"):
        planned(changed(ca="nothing.pem", command={"encrypted": f"{ENCRYPTED} {{ca}}"}))


def test_a_spec_file_holds_the_commands(tmp_path: Path) -> None:
    spec = planned(changed(command={"before": "restart", "operations": 7, "unproven": True})).spec
    (tmp_path / "spec.toml").write_text(toml.dump(spec))
    assert toml.load(tmp_path / "spec.toml") == spec
    (tmp_path / "spec.toml").write_text(toml.dump(spec).replace("before", "befour"))
    with pytest.raises(UsageError, match="befour"):
        toml.load(tmp_path / "spec.toml")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("command:tls",), "give the command that makes the load"),
        (("command:tls", "--encrypted", "x"), "--encrypted: needs --plain too"),
        (("postgresql:tls", "--plain", "x"), "only engine command takes commands"),
        (("command:none", "--url", "h:1", "--plain", "x", "--reads", "pgbensh"), "did you mean 'pgbench'?"),
        (
            ("command:none", "--url", "h:1", "--plain", "x", "--reads", "pgbench", "--operations", "3"),
            "--operations 3 takes the command's duration",
        ),
        (("command:none", "--url", "h:1", "--plain", "x", "--split"), "--split: ciphercost chooses its load"),
        (("command@3:none", "--url", "h:1", "--plain", "x"), "--version 3: has no effect"),
        (("command:none", "--url", "h:1", "--plain", "x password=geheim", "--print-spec"), "put the secret into the environment"),
    ],
)  # fmt: skip
def test_the_command_line_refuses_the_same(argv: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = warm.run(["run", *argv], cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())
