"""aes_mask: a mask that works is proven, one that does not is detected. These tests compare CPU times, never wall-clock
times.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Literal

import pytest

import steady
from ciphercost.host import supervisor
from ciphercost.host.procfs import Sampler
from ciphercost.load.agent import Agent
from ciphercost.load.agent_messages import HelloAnswer
from ciphercost.measure.recorded_facts import describe_agent
from ciphercost.model import run_directory
from ciphercost.model.errors import UsageError
from ciphercost.model.facts import CellFacts
from ciphercost.model.result import Cell
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import conditions
from ciphercost.plan.resolve import resolve
from ciphercost.prove.aes_mask import HIDDEN, floor_ratio, judge_agent, judge_server
from ciphercost.provision import server_pairs
from ciphercost.provision.experiment_resources import ExperimentResources
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.runs import pipeline
from conftest import Require, RequireServer


def test_the_server_is_judged_by_the_cost_of_aes_relative_to_chacha() -> None:
    passed, detail = judge_server(5e6, 70e6, 16e6, size=16_000_000)
    assert passed
    assert "4.4 times" in detail
    assert not judge_server(5e6, 14e6, 17e6, size=16_000_000)[0]
    assert not judge_server(0, 0, 0, size=16_000_000)[0]


def test_the_agent_is_judged_by_its_report_and_by_its_cost() -> None:
    assert judge_agent(False, 12.7)[0]
    assert not judge_agent(True, 12.7)[0]
    assert not judge_agent(False, 0.4)[0]


@pytest.fixture
def mask(require: Require) -> dict[str, str]:
    """A mask that hides something here."""
    try:
        return conditions.mask()
    except UsageError as error:
        require(False, str(error))
        raise


def test_the_mask_hides_aes_from_the_agent_and_leaves_chacha_alone(mask: dict[str, str]) -> None:
    with Agent() as bare, Agent(env=mask) as masked:
        assert bare.hello.aes
        assert not masked.hello.aes
        for _ in range(5):  # other work on the machine adds to the one or the other
            ratios = floor_ratio(bare), floor_ratio(masked)
            seal = {each is masked: each.floor("chacha20")["seal"] for each in (bare, masked)}
            if ratios[0] < HIDDEN < ratios[1] and seal[True] < 2 * seal[False]:
                break
        assert ratios[0] < HIDDEN < ratios[1]
        assert seal[True] < 2 * seal[False]


def measured(tmp_path: Path, said: dict[str, bool]) -> Cell:
    """A run's cell; another run's if the witnesses say something else of the mask, which they compare CPU times for."""
    cell, _ = steady.tried(once, tmp_path, lambda cell: said_of_the_mask(cell) == said)
    return cell


def once(directory: Path) -> Cell:
    cell = CellSpec(engine="postgresql", mechanism="tls", cpu_crypto="off", rows=1000, regime="one-core")
    spec = Spec(cells=[cell], mode="quick", sessions=1, time=1.0, latency=False, slice_seconds=0.05)
    return pipeline.run(spec, directory).cells[0]


def said_of_the_mask(cell: Cell) -> dict[str, bool]:
    return {proof.witness: proof.passed for proof in cell.proofs if "AES hidden" in proof.detail}


@pytest.mark.usefixtures("require_postgresql", "mask")
def test_with_the_mask_a_cell_is_proven(tmp_path: Path) -> None:
    cell = measured(tmp_path, said := {"client": True, "server": True})
    assert said_of_the_mask(cell) == said
    assert cell.status in ("ok", "no-steady-state")  # this test is not about how quiet the machine is
    assert cell.conditions | {"idle": ""} == {"cpu_crypto": "off", "idle": ""}
    assert cell.floor["aes256-gcm_seal"] > cell.floor["chacha20_seal"]


@pytest.mark.usefixtures("require_postgresql", "mask")
def test_a_server_that_the_mask_does_not_reach_is_unproven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = PreparedCell.settings

    def without(bench: PreparedCell, place: str) -> dict[str, str]:
        return {
            name: value for name, value in whole(bench, place).items() if not name.startswith("env:OPENSSL_ia32cap")
        }

    monkeypatch.setattr(PreparedCell, "settings", without)
    cell = measured(tmp_path, said := {"client": True, "server": False})
    assert said_of_the_mask(cell) == said
    assert cell.status == "unproven"
    assert not cell.overhead


@pytest.mark.usefixtures("require_postgresql", "mask")
def test_a_mask_that_hides_nothing_is_unproven_on_both_sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "mask", lambda: {"OPENSSL_ia32cap": "~0x0:~0x0", "OPENSSL_armcap": "0x7d"})
    cell = measured(tmp_path, said := {"client": False, "server": False})
    assert said_of_the_mask(cell) == said
    assert cell.status == "unproven"


KEY, IV = "00112233445566778899aabbccddeeff", "ffeeddccbbaa99887766554433221100"
MEGABYTES, TIMES = 60, 8
"""Text that the server generates, and how often it encrypts that, so that the cipher counts for more than the text."""


def again(before: str, text: str, after: str) -> str:
    """SQL that applies a function `TIMES` times to a text."""
    return before * TIMES + text + after * TIMES


AES_ENCRYPTED = again("AES_ENCRYPT(", "REPEAT(CHAR(65 + seq % 26), 1000000)", f", UNHEX('{KEY}'))")
ENCRYPT_IV = again(
    "public.encrypt_iv(",
    "convert_to(repeat(chr(65 + i % 26), 1000000), 'UTF8')",
    f", '\\x{KEY}', '\\x{IV}', 'aes-cbc')",
)
BULK = {
    "mariadb": ("aes-ecb-128", f"SELECT SUM(LENGTH({AES_ENCRYPTED})) FROM seq_1_to_{MEGABYTES}"),
    "postgresql": ("pgcrypto-cbc-128", f"SELECT sum(length({ENCRYPT_IV})) FROM generate_series(1, {MEGABYTES}) i"),
}
"""By server: a column mechanism, and SQL with which its function encrypts some megabytes and returns one number."""


@pytest.mark.parametrize("name", BULK)
def test_the_mask_reaches_the_functions_that_encrypt_columns(
    name: str, mask: dict[str, str], require_server: RequireServer, tmp_path: Path
) -> None:
    assert mask
    require_server(name, "")
    spent = {used: bulk_cpu(name, used, tmp_path / used) for used in ("on", "off")}
    # In both cases the server also generates the text, which costs the same.
    assert spent["off"] > 1.3 * spent["on"], spent


def bulk_cpu(name: str, used: Literal["on", "off"], logs: Path) -> int:
    """The server's CPU time (ns) for encrypting `MEGABYTES`, the lowest of five: other work on the machine only adds to it."""
    logs.mkdir()
    mechanism, sql = BULK[name]
    run_id = run_directory.new_id()
    cell = CellSpec(name, mechanism, workload="search", rows=10, cpu_crypto=used)
    with supervisor.Supervisor(run_id) as run_supervisor:
        scratch = supervisor.scratch(run_id, run_supervisor)
        shared = ExperimentResources(scratch / "secrets" / "group-0")
        with server_pairs.bench(resolve(cell), run_supervisor, scratch, logs, 0, shared) as bench, shared.session():
            pair = server_pairs.start(bench, 1, set(), set())
            assert pair.server is not None
            sampler = Sampler(pair.server.pid, pair.server.cgroups)
            with bench.agent(pair) as agent, contextlib.closing(sampler):
                agent.connect("encrypted", pair.connect["encrypted"])
                sampler.refresh()
                times_ns = []
                for _ in range(5):
                    sampler.begin()
                    agent.query("encrypted", sql, timeout=60.0)
                    sampler.stop()
                    times_ns.append(sampler.end().server_cpu_ns)
    return min(times_ns)


def test_a_mask_of_the_users_own_environment_does_not_go_unsaid(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = CellFacts(spec=CellSpec(engine="postgresql", mechanism="tls"))
    monkeypatch.setattr(conditions, "cpu_flags", lambda: {"aes"})
    describe_agent(facts, HelloAnswer(tls_library="OpenSSL", aes=True))
    assert not facts.warnings
    describe_agent(facts, HelloAnswer(tls_library="OpenSSL", aes=False))
    describe_agent(facts, HelloAnswer(tls_library="OpenSSL", aes=False))
    assert [warning.code for warning in facts.warnings] == ["aes-hidden"]
