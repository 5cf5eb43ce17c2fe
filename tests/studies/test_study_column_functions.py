"""column-functions: published figures, figures from runs, options, and a very small whole replication on a real server."""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections import Counter
from html import unescape
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

import result_schema
import results
import warm
from ciphercost import engines, studies
from ciphercost.host import aes
from ciphercost.host.installation import Installation
from ciphercost.load.tables import hospital_records, hospital_register
from ciphercost.model import run_directory
from ciphercost.model.errors import MissingServer, UsageError
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.slices import Proof
from ciphercost.model.spec import ARMS
from ciphercost.model.study import HostSample, StudyFigure, StudyRecord, StudyResult, StudyRun
from ciphercost.plan import conditions
from ciphercost.report import formats
from ciphercost.report.formats import _study, terminal
from ciphercost.runs import conclude, replicate
from ciphercost.studies import table
from ciphercost.studies.column_functions import (
    ColumnFunctions,
    compare,
    measured,
    names,
    procedure,
    published,
    report,
    servers,
)
from conftest import Require, RequireServer

STUDY = studies.get("column-functions")
OPERATIONS = procedure.OPERATIONS
ENGINES = tuple(servers.PAIRS)
ORDERS = {"ABBA": ("plain", "encrypted", "encrypted", "plain"), "BAAB": ("encrypted", "plain", "plain", "encrypted")}
GROWTH = {"insert": 1.0, "select": 1.0, "update": 2.0, "delete": 1.0}
COST = {"insert": 1.1, "select": 1.2, "update": 1.3, "delete": 1.4}
"""Seconds and ratios of the runs generated here, the same for both loads."""


def host(at: float, busy: float = 90.0) -> HostSample:
    """1 GB of 10 GB is free, and 4 GB are in caches."""
    return HostSample(at, 1.0, busy, 0.0, 5.0, 0.0, 0.0, 5.0, 5_000_000_000, 5_000_000_000, 0, 1_000_000_000)


def seconds(operation: str, arm: str, load: float, version: str = procedure.STUDYS) -> float:
    """Time ~ load^GROWTH for the study's statements, ~ load for the tuned ones; encrypted ÷ plain is COST."""
    power = GROWTH[operation] if version == procedure.STUDYS else 1.0
    return math.pow(load / 1000, power) * (COST[operation] if arm == "encrypted" else 1.0)


def as_published(engine: str, wobble: float = 0.0) -> list[StudyRun]:
    """Three runs of each load: -wobble, 0, +wobble around the true time."""
    return [
        StudyRun(
            operation, arm, 0.0, {"records": load, "run": float(number)},
            {"seconds": [seconds(operation, arm, load) + (number - 2) * wobble], "server_cpu_s": [0.1]},
            [host(1.0, 10.0), host(2.0), host(2.5)],
            engine=engine, mechanism=servers.PAIRS[engine].published, workload=procedure.STUDYS,
        )
        for arm in ARMS for load in (1000.0, 2000.0) for number in (1, 2, 3) for operation in OPERATIONS
    ]  # fmt: skip


def by_turns(engine: str, sessions: int = 3, wobble: float = 0.01) -> list[StudyRun]:
    """One block per version, load and session, with lead-ins that would distort everything; sessions vary in the encrypted arm."""
    runs = []
    for session in range(1, sessions + 1):
        number = 0
        for version in procedure.VERSIONS:
            for load in (1000.0, 2000.0):
                order = ORDERS["ABBA" if (session + number) % 2 else "BAAB"]
                for position, arm in enumerate((order[0], *order)):
                    for operation in OPERATIONS:
                        time = seconds(operation, arm, load, version)
                        time *= math.exp(wobble * (session - 2)) if arm == "encrypted" else 1.0
                        where = {"session": float(session), "block": float(number), "position": float(position)}
                        runs.append(
                            StudyRun(
                                operation, arm, 0.0, {"records": load if position else 1000.0, **where},
                                {"seconds": [time if position else 77.0], "server_cpu_s": [time / 2]},
                                engine=engine, workload=version, design=measured.INTERLEAVED,
                            )
                        )  # fmt: skip
                number += 1
    return runs


def kept(engines: tuple[str, ...] = ENGINES, **changes: object) -> StudyRecord:
    record = STUDY.begin(",".join(engines))
    record.complete = True
    record.versions = dict.fromkeys(record.engines, "1.2")
    record.proofs = [
        Proof(arm, witness, True, "", number)
        for number in range(1, len(record.engines) + 1)
        for arm in ARMS
        for witness in ("server", "disk")
    ]
    for engine in record.engines:
        record.runs += [*as_published(engine), *by_turns(engine)]
    for name, value in changes.items():
        setattr(record, name, value)
    return record


def cell(engine: str, ratio: float) -> Cell:
    arms = {
        "plain": {"throughput": 1000.0, "server_cpu_us_per_op": 100.0},
        "encrypted": {"throughput": 1000 * ratio, "server_cpu_us_per_op": 130.0},
    }
    stored = {
        "plain": {"table_bytes": 1000, "index_bytes": 100},
        "encrypted": {"table_bytes": 1500, "index_bytes": 150},
    }
    return Cell(
        engine, "1.2", "column", servers.PAIRS[engine].equal, "hospital", 1, "ok", "full", verdict="differs", arms=arms,
        overhead={"throughput": Estimate(ratio, ratio - 0.01, ratio + 0.01, n=5), "server_cpu_per_op": Estimate(1.3, 1.2, 1.4)},
        stored=stored,
    )  # fmt: skip


def compared(record_: StudyRecord | None = None, cells: list[Cell] | None = None) -> StudyResult:
    our_cells = [cell(engine, 0.8) for engine in ENGINES] if cells is None else cells
    return STUDY.compare(record_ or kept(), our_cells)


def figure(result: StudyResult, engine: str, operation: str, arm: str, **names: object) -> StudyFigure:
    wanted = {"figure": "time", "workload": procedure.STUDYS, **names}
    matching = [
        figure
        for figure in result.figures
        if (figure.engine, figure.operation, figure.arm) == (engine, operation, arm)
        and all(getattr(figure, name) == value for name, value in wanted.items())
    ]
    assert len(matching) == 1, (engine, operation, arm, names)
    return matching[0]


# ── published ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_published_figures_are_the_studys() -> None:
    by_server = published.servers(STUDY)
    assert {
        name: (server.cipher, round(server.ratio, 3), round(server.sd, 4)) for name, server in by_server.items()
    } == {
        "mariadb": ("AES-128-ECB", 1.046, 0.044),
        "firebird": ("AES-128-OFB", 1.067, 0.073),
        "postgresql": ("AES-128-CBC", 1.162, 0.0501),
    }


def test_each_server_is_given_what_it_had_in_the_study() -> None:
    for name, pair in servers.PAIRS.items():
        words = published.servers(STUDY)[name].cipher.lower().split("-")
        assert set(words) - {"aes"} <= set(pair.published.split("-")), (name, pair.published)
        assert pair.factors.get("iv", "fixed") == "fixed"
    assert {pair.equal.removeprefix("pgcrypto-").removeprefix("aes-") for pair in servers.PAIRS.values()} == {"cbc-256"}


SPREADSHEETS = {"mariadb": (4.67, 4.45), "firebird": (6.66, 7.30), "postgresql": (16.21, 5.01)}
"""Cost in per cent and its sd over the operations, from the authors' final spreadsheets."""


def printed_costs(engine: str) -> dict[tuple[str, float], float]:
    """Mean encrypted ÷ mean plain time of each published operation and load."""
    times = published.levels(STUDY, "time", engine)
    return {key: arms["encrypted"].mean / arms["plain"].mean for key, arms in times.items()}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_published_cells_give_the_published_headline(engine: str) -> None:
    costs = printed_costs(engine)
    assert set(costs) == {(name, load) for name in OPERATIONS for load in (1000.0, 2000.0, 4000.0, 8000.0)}
    mean, sd = measured.headline(costs) or (0.0, 0.0)
    assert sd is not None
    assert ((mean - 1) * 100, sd * 100) == pytest.approx(SPREADSHEETS[engine], abs=0.006)
    printed = published.servers(STUDY)[engine]
    assert mean == pytest.approx(printed.ratio, abs=0.001)
    assert sd == pytest.approx(printed.sd, abs=0.001)


def test_the_lowest_published_cell_is_mariadbs_delete_of_1000_records() -> None:
    costs = {(name, *key): cost for name in ENGINES for key, cost in printed_costs(name).items()}
    assert min(costs, key=lambda key: costs[key]) == ("mariadb", "delete", 1000.0)
    assert min(costs.values()) == pytest.approx(1 - 0.134, abs=0.0005)


@pytest.mark.parametrize(
    ("file", "prefix"), [("time.csv", "seconds"), ("cpu.csv", "cpu_percent"), ("memory.csv", "memory_gb")]
)
def test_each_of_96_levels_names_its_source(file: str, prefix: str) -> None:
    rows = list(STUDY.rows(file))
    keys = {(row["server"], row["operation"], row["records"], row["arm"]) for row in rows}
    assert len(rows) == len(keys) == 4 * 4 * 3 * 2
    for row in rows:
        assert float(row[f"{prefix}_mean"]) > 0
        assert float(row[f"{prefix}_stddev"]) >= 0
        assert row["archive"].startswith("resultados/")
        assert row["file"].endswith((".xlsx", ".ods"))
        assert re.fullmatch(r"([A-Z]+)(\d+):\1\d+", row["cells"])
        assert re.fullmatch(r"[0-9a-f]{12}", row["commit"])
    assert len({(row["file"], row["cells"]) for row in rows}) == len(rows), "no cell is read twice"


@pytest.mark.parametrize(
    ("engine", "operation", "load", "wanted"),
    [
        ("mariadb", "delete", 1000.0, (4.582938, 0.950993, 3.968319, 0.155580)),
        ("firebird", "update", 8000.0, (412.445810, 4.068246, 422.281967, 2.984303)),
        ("postgresql", "insert", 4000.0, (40.671278, 2.296890, 45.207749, 2.093491)),
    ],
)
def test_published_times_stand_beside_ours_with_their_spread(
    engine: str, operation: str, load: float, wanted: tuple[float, ...]
) -> None:
    result = compared()
    plain, encrypted = (figure(result, engine, operation, arm, load=load) for arm in ARMS)
    times = (plain.published, plain.published_sd, encrypted.published, encrypted.published_sd)
    assert times == pytest.approx(wanted, abs=1e-6)
    cost = figure(result, engine, operation, "cost", load=load)
    assert cost.published == pytest.approx(wanted[2] / wanted[0], abs=1e-6)
    # A load that did not run here has the published figures only.
    assert (cost.here is None) == (cost.ours is None) == (load > 2000)
    assert figure(result, engine, operation, "plain", load=load, figure=names.CPU).published is not None
    memory = figure(result, engine, operation, "plain", load=load, figure=names.MEMORY).published
    assert memory is not None
    assert 1000 < memory < 4100, "MB of a guest with 4 GB"


def test_all_published_levels_are_printed_even_where_nothing_was_run() -> None:
    nothing = compared(kept(complete=False, runs=[], proofs=[]), [])
    for result in (compared(), nothing):
        for name, unit in ((names.TIME, "s"), (names.CPU, "%"), (names.MEMORY, "MB")):
            levels = [
                figure for figure in result.figures if figure.figure == name and figure.unit == unit and figure.load
            ]
            assert sum(level.published is not None and level.published_sd is not None for level in levels) == 96
    text = _study.render(nothing)
    assert "4.58 ± 0.95 → 3.97 ± 0.16" in text
    assert "13.4 % less" in text
    assert "LabRedesCefetNF/Rosa_2023" in text
    assert max(map(len, text.splitlines())) <= 80


def test_one_server_alone_has_its_own_published_cells() -> None:
    result = compared(kept(("mariadb",)), [])
    assert {figure.engine for figure in result.figures} == {"mariadb"}
    assert "412 ± 4" not in _study.render(result)


def test_the_verdict_rests_on_the_three_printed_costs() -> None:
    judged = STUDY.judged(compared())
    assert [figure.operation for figure in judged.figures] == [names.ALL_OPERATIONS] * len(ENGINES)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("averages", "4.67 ± 4.45 %; firebird and postgresql agree"),
        ("below zero", "In 6 of 48 published cells the encrypted arm"),
        ("order", "plain arm came first, except for postgresql 8,000."),
        ("later runs", "34 days after the first; we infer"),
        ("mistyped", "19.70 s (cost 10.8 % more, with the log's value 10.4 % more)"),
        ("twice", "postgresql 2,000 plain: run 10 repeats run 9"),
        ("unlogged", "postgresql 4,000 plain: run 9 has no log"),
        ("unit", "its log has 3,049 (mean 2.65 GB, with the log's value 2.93)"),
        ("waiting", "firebird insert 49 to 54 %"),
        ("memory", "RAM in use is total − free"),
        ("reading", "mariadb update 74 %, cost 9.0 % more, of the rest 8.0 % less"),
        ("timing", "whole PHP process"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ran", [True, False])
def test_each_contradiction_of_the_publication_is_printed(what: str, words: str, ran: bool) -> None:
    result = compared() if ran else compared(kept(complete=False, runs=[], proofs=[]), [])
    assert sum(words in finding for finding in result.findings) == 1, what


def test_no_sentence_prints_the_figure_that_only_superseded_runs_give() -> None:
    text = _study.render(compared())
    assert "14.8" not in text
    assert "not known" not in text


# ── what is counted from runs ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_headline_is_a_mean_over_operations_of_means_over_loads() -> None:
    costs = {("insert", 1.0): 1.0, ("insert", 2.0): 1.2, ("select", 1.0): 1.3, ("select", 2.0): 1.3}
    mean, sd = measured.headline(costs) or (0.0, 0.0)
    assert mean == pytest.approx(1.2)
    assert sd == pytest.approx(0.1 * math.sqrt(2))
    assert measured.headline({}) is None
    # A load that one operation lacks is left out for all.
    lacking = costs | {("insert", 3.0): 9.0}
    assert measured.headline(lacking) == measured.headline(costs)


def test_a_mean_of_one_run_has_no_sd() -> None:
    assert measured.level([2.0]) == measured.Level(2.0, None, 1)
    assert measured.level([1.0, 3.0]) == measured.Level(2.0, math.sqrt(2), 2)
    assert measured.level([]) is None


def test_cpu_is_without_its_first_sample_and_a_short_operation_has_none() -> None:
    runs = as_published("mariadb")[:2]
    assert measured.cpu_of(runs) == measured.Level(95.0, 0.0, 2)
    short = [StudyRun("select", "plain", 0.0, {}, {}, [host(0.4)])]
    assert measured.cpu_of(short) is None
    memory = measured.memory_of(short)
    assert memory is not None
    assert memory.mean == 9000, "total − free: caches are in use too"


@pytest.mark.parametrize("power", [0.5, 1.0, 1.97])
def test_an_exponent_is_found_again(power: float) -> None:
    two = measured.line({1000.0: 3.0, 2000.0: 3.0 * 2**power})
    assert two is not None
    assert two.slope == pytest.approx(power)
    assert two.error is None
    four = measured.line({load: 0.2 * load**power for load in (1000.0, 2000.0, 4000.0, 8000.0)})
    assert four is not None
    assert four.slope == pytest.approx(power)
    assert four.error == pytest.approx(0, abs=1e-9)
    assert measured.line({1000.0: 1.0}) is None


def test_a_fits_interval_is_that_of_a_regression_done_by_scipy() -> None:
    from scipy import stats

    points = {1000.0: 1.0, 2000.0: 2.3, 4000.0: 3.9, 8000.0: 8.6}
    theirs = stats.linregress([math.log(x) for x in points], [math.log(y) for y in points.values()])
    mine = measured.line(points)
    assert mine is not None
    assert mine.slope == pytest.approx(theirs.slope)
    assert mine.error == pytest.approx(theirs.stderr)


def test_two_loads_have_an_interval_over_sessions_and_more_have_that_of_the_fit() -> None:
    def blocks(loads: tuple[float, ...], sessions: int) -> measured.Blocks:
        return {
            ("update", load): {s: [measured.Block(2 * math.log(load) + 0.001 * s * load / 1000, 0.0)] for s in range(1, sessions + 1)}
            for load in loads
        }  # fmt: skip

    two = measured.exponent(blocks((1000.0, 2000.0), 3), "update", "plain")
    assert two is not None
    assert (two.of, two.n) == ("sessions", 3)
    assert two.low is not None
    assert two.high is not None
    assert two.low < two.value < two.high
    three = measured.exponent(blocks((1000.0, 2000.0, 4000.0), 3), "update", "plain")
    assert three is not None
    assert (three.of, three.n) == ("loads", 3)
    one = measured.exponent(blocks((1000.0, 2000.0), 1), "update", "plain")
    assert one is not None
    assert one.low is None
    assert measured.exponent(blocks((1000.0,), 3), "update", "plain") is None


def test_only_whole_mirrored_blocks_count_and_no_lead_in() -> None:
    runs = by_turns("mariadb", sessions=2, wobble=0.0)
    blocks = measured.blocks(runs, "mariadb", procedure.STUDYS)
    assert {key: {s: len(session_blocks) for s, session_blocks in of.items()} for key, of in blocks.items()} == {
        (name, load): {1: 1, 2: 1} for name in OPERATIONS for load in (1000.0, 2000.0)
    }
    for (name, _), of in blocks.items():
        assert all(
            math.exp(block.value) == pytest.approx(COST[name])
            for session_blocks in of.values()
            for block in session_blocks
        )
    # An interrupted block counts for nothing.
    last = max(n for n, run in enumerate(runs) if run.workload == procedure.STUDYS and run.load["session"] == 2)
    cut = measured.blocks(runs[:last], "mariadb", procedure.STUDYS)
    assert set(cut["delete", 2000.0]) == {1}
    # In an order without mirroring (ABAB), drift would not cancel.
    other = [
        StudyRun("insert", arm, 0.0, {"records": 1.0, "session": 1.0, "block": 0.0, "position": float(n)}, {"seconds": [1.0]},
                 engine="mariadb", workload="w", design=measured.INTERLEAVED)
        for n, arm in enumerate(ARMS * 2, start=1)
    ]  # fmt: skip
    assert not measured.blocks(other, "mariadb", "w")


def test_drift_that_is_linear_in_time_cancels_in_a_block() -> None:
    runs = [
        StudyRun("insert", arm, 0.0, {"records": 1.0, "session": 1.0, "block": 0.0, "position": float(n)},
                 {"seconds": [math.exp(0.3 * n) * (1.1 if arm == "encrypted" else 1.0)]},
                 engine="mariadb", workload="w", design=measured.INTERLEAVED)
        for n, arm in enumerate(ORDERS["ABBA"], start=1)
    ]  # fmt: skip
    block = measured.blocks(runs, "mariadb", "w")["insert", 1.0][1][0]
    assert math.exp(block.value) == pytest.approx(1.1)


def test_one_session_has_an_interval_over_its_blocks_and_says_so() -> None:
    of = {1: [measured.Block(0.0, 0.10), measured.Block(0.0, 0.12), measured.Block(0.0, 0.11)]}
    cost = measured.ratio_of(of)
    assert cost is not None
    assert (cost.of, cost.n) == ("blocks", 3)
    alone = measured.ratio_of({1: of[1][:1]})
    assert alone is not None
    assert alone.low is None
    several = measured.ratio_of({**of, 2: of[1]})
    assert several is not None
    assert (several.of, several.n) == ("sessions", 2)


def test_a_plan_has_never_fewer_sessions_than_an_interval_needs() -> None:
    settings = {"least_sessions": 3.0, "most_sessions": 8.0}
    assert procedure.sessions_in(100, 20, settings) == 5
    assert procedure.sessions_in(-50, 20, settings) == 3
    assert procedure.sessions_in(1e6, 20, settings) == 8
    assert procedure.expect(2.0, (1000,)) == 2
    assert procedure.expect(1.0, (1000, 4000)) == pytest.approx(1 + 4**procedure.GUESS)


# ── side by side ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_column_is_counted_from_its_own_source() -> None:
    runs = [run for engine in ENGINES for run in (*as_published(engine, wobble=0.05), *by_turns(engine))]
    result = compared(kept(runs=runs))
    for engine in ENGINES:
        head = figure(result, engine, names.ALL_OPERATIONS, "cost", load=None)
        assert head.published == pytest.approx(published.servers(STUDY)[engine].ratio)
        assert head.here == pytest.approx(1.25)
        assert head.here_sd == pytest.approx(0.1291, abs=1e-4)
        assert head.ours == pytest.approx(1.25, rel=1e-3)
        assert head.low is not None
        assert head.high is not None
        assert head.low < 1.25 < head.high
        assert (head.n, head.of) == (3, "sessions")
        update = figure(result, engine, "update", "plain", load=2000.0)
        assert update.here == pytest.approx(4.0)
        assert update.here_sd == pytest.approx(0.05)
        assert figure(result, engine, "update", "cost", load=2000.0).ours == pytest.approx(1.3)
        assert figure(result, engine, "update", "plain", load=2000.0, workload=procedure.TUNED).ours == pytest.approx(
            2.0
        )
        steep = figure(result, engine, "update", "plain", figure=names.GROWTH)
        assert steep.ours == pytest.approx(2.0)
        flat = figure(result, engine, "update", "plain", figure=names.GROWTH, workload=procedure.TUNED)
        assert flat.ours == pytest.approx(1.0)
        rate = figure(result, engine, names.EQUAL, "cost", figure=names.RATE, workload="hospital")
        assert (rate.ours, rate.n) == (0.8, 5)
        stored = figure(result, engine, names.EQUAL, "cost", figure=names.STORED, workload="hospital")
        assert stored.ours == pytest.approx(1.5)
    assert result.complete
    assert "both arms are proven" in result.procedure


def test_an_unproven_server_has_no_figures() -> None:
    record = kept()
    record.proofs = [
        Proof(proof.arm, proof.witness, proof.session != 2 or proof.witness != "disk", "canary seen", proof.session)
        for proof in record.proofs
    ]
    result = compared(record)
    assert not result.complete
    assert "not proven" in result.procedure
    second = [figure for figure in result.figures if figure.engine == ENGINES[1] and figure.operation != names.EQUAL]
    assert all(figure.here is None and figure.ours is None for figure in second)
    assert figure(result, ENGINES[0], "insert", "cost", load=1000.0).here is not None


def test_a_record_from_before_the_applications_statements_were_known_says_so() -> None:
    settings = {name: value for name, value in kept().settings.items() if name != procedure.APPLICATION}
    assert "not those of the study's application" in compared(kept(settings=settings)).procedure
    assert "not those" not in compared().procedure


def test_a_run_that_was_cut_off_shows_what_there_is() -> None:
    record = kept(("mariadb", "firebird"), complete=False)
    record.runs = as_published("firebird")[:5]
    result = compared(record, [])
    assert "it was cut off" in result.procedure
    assert figure(result, "firebird", "insert", "plain", load=1000.0).here is not None
    assert figure(result, "firebird", "insert", "cost", load=1000.0).here is None
    assert "-" in _study.render(result)
    empty = compared(kept(("firebird",), complete=False, runs=[]), [])
    assert not empty.complete
    assert all(figure.here is None for figure in empty.figures)
    assert _study.render(empty)


def test_the_report_is_80_wide_and_has_every_server_operation_and_load() -> None:
    text = _study.render(compared())
    assert max(map(len, text.splitlines())) <= 80
    for engine in ENGINES:
        assert f"{engine} 1.2" in text
    assert text.count("  update   1,000") == 6 * len(ENGINES)
    assert "16.2 ± 5.0 % more" in text
    assert "two loads: a slope of two points" in text
    assert "AES-256-CBC" in text


def test_an_interval_that_says_nothing_is_called_too_wide() -> None:
    wide = StudyFigure("insert", "time", "ratio", "cost", ours=1.2, low=0.01, high=900.0, n=2, of="sessions")
    assert report.ours(wide) == "too wide"
    assert report.ours(
        StudyFigure("insert", "time", "ratio", "cost", ours=1.2, low=1.1, high=1.3, n=4, of="blocks")
    ) == ("20.0 % more (10.0–30.0 %), 4 blocks")


@pytest.mark.parametrize(
    ("mean", "sd", "wanted"),
    [(0.0812, 0.0021, "81.2 ± 2.1"), (12.3456, 1.2, "12,346 ± 1,200"), (0.00123, None, "1.23"), (0.0, 0.0, "0 ± 0")],
)
def test_a_spread_ends_where_its_mean_does(mean: float, sd: float | None, wanted: str) -> None:
    assert report.spread(mean, sd, 1e3) == wanted


# ── findings: each only where it applies ──────────────────────────────────────────────────────────────────────────────


def finding(result: StudyResult, words: str) -> str:
    return next((text for text in result.findings if words in text), "")


def test_modes_are_named_and_the_servers_order_at_equal_cipher() -> None:
    same = finding(
        compared(cells=[cell("mariadb", 0.9), cell("firebird", 0.8), cell("postgresql", 0.7)]), "used a different mode"
    )
    assert "AES-256-CBC on each" in same
    assert "cheapest first" not in same
    other = finding(
        compared(cells=[cell("mariadb", 0.7), cell("firebird", 0.8), cell("postgresql", 0.9)]), "used a different mode"
    )
    assert "lowest cost is postgresql, firebird and mariadb" in other
    assert "published it was mariadb, firebird and postgresql" in other
    alike = finding(
        compared(cells=[cell("mariadb", 0.7), cell("firebird", 0.71), cell("postgresql", 0.9)]), "used a different mode"
    )
    assert "The intervals of firebird and mariadb overlap" in alike
    assert "cheapest first" not in alike


def test_a_negative_cell_of_ours_is_reported_only_where_there_is_one() -> None:
    assert not finding(compared(), "encrypted arm faster")
    record = kept()
    for run in record.runs:
        if (run.engine, run.operation, run.arm, run.design) == ("firebird", "delete", "encrypted", ""):
            run.series["seconds"][0] /= 2
    text = finding(compared(record), "encrypted arm faster")
    assert "In 2 of 24 cells" in text
    assert "firebird delete 1,000 30.0 % less" in text
    assert "Interleaved, none" in text


def test_a_cost_outside_the_interval_is_reported_only_if_there_is_one() -> None:
    assert not finding(compared(), "One arm ran completely before the other")
    record = kept()
    for run in record.runs:
        if (run.engine, run.operation, run.arm, run.design) == ("mariadb", "select", "encrypted", ""):
            run.series["seconds"][0] *= 2
    assert "in 2 of 24 cells" in finding(compared(record), "One arm ran completely before the other")


def test_the_start_of_the_client_is_not_blamed_on_the_order_of_the_arms() -> None:
    """The interleaved interval is that of the statements, so the procedure's statements are compared with it."""
    record = kept()
    for run in record.runs:
        if run.design == measured.PUBLISHED:
            run.series[procedure.STATEMENTS] = list(run.series["seconds"])
            run.series["seconds"][0] += 3.0  # start and connection, the same in both arms
    text = finding(compared(record), "the client's start and connection")
    assert "In 24 of 24 cells only the time of the whole client process lies outside" in text
    assert "insert 1,000 2.5 % more" in text
    assert not finding(compared(record), "One arm ran completely before the other")
    for run in record.runs:
        if (run.engine, run.operation, run.arm, run.design) == ("mariadb", "select", "encrypted", ""):
            run.series[procedure.STATEMENTS][0] *= 2
    text = finding(compared(record), "One arm ran completely before the other")
    assert "by the time of the statements alone, in 2 of 24 cells" in text
    assert "mariadb select 1,000 2.40 times, not 1" in text
    assert "In 22 of 24 cells only" in text


def test_equal_values_stored_alike_are_reported_as_counted() -> None:
    assert not finding(compared(), "stores equal values alike")
    record = kept()
    for engine, stored in (("mariadb", 27.0), ("postgresql", 1000.0)):
        series = {"seconds": [1.0], procedure.COUNTED: [1000.0, 27.0, stored]}
        record.runs.append(
            StudyRun("insert", "encrypted", 0.0, {"records": 1000.0}, series, engine=engine, mechanism="m",
                     workload=procedure.STUDYS, design=measured.PILOT)
        )  # fmt: skip
    text = finding(compared(record), "stores equal values alike")
    assert re.search(r"mariadb \(m\) 1,000 .*27 states .*27 stored", text)
    assert "postgresql" not in text


@pytest.mark.parametrize(
    ("used", "engine", "words"),
    [
        ("on", "postgresql,mariadb,firebird", "mariadb and postgresql could use them"),
        ("on", "mariadb", "`--cpu-crypto off` hides them"),
        ("off", "postgresql,firebird", "postgresql encrypts with OpenSSL. Firebird's LibTomCrypt never uses any"),
        ("off", "mariadb", "a server obeyed, so not here"),
    ],
)  # fmt: skip
def test_whether_aes_instructions_were_used_is_stated(used: str, engine: str, words: str) -> None:
    record = kept(tuple(servers.listed(engine)), conditions={"cpu_crypto": used})
    result = compared(record)
    assert finding(result, words)
    assert finding(result, "LibTomCrypt") if "firebird" in engine else not finding(result, "LibTomCrypt")
    assert "AES instructions" in result.procedure


def test_nothing_says_that_the_published_machine_had_no_aes_instructions() -> None:
    """One of its two CPU models has them; the paper's sentence is quoted, not adopted."""
    for used in ("on", "off", "none"):
        result = compared(kept(conditions={"cpu_crypto": used}))
        for text in (result.procedure, *result.findings):
            assert not re.search(
                r"states that its machine had no|published machine had none|unlike in the published run, OpenSSL", text
            )
            assert "AES instructions, unlike in the published" not in text
        assert "The i5-3470 has AES instructions" in finding(result, "sem instruções de CPU dedicadas")


def test_of_firebird_alone_it_is_stated_that_the_option_changes_nothing() -> None:
    for used in ("on", "off"):
        record = kept(("firebird",), conditions={"cpu_crypto": used})
        assert finding(compared(record), "whatever --cpu-crypto is")


@pytest.mark.parametrize(("used", "engine"), [("none", "firebird"), ("none", "mariadb"), ("", "mariadb")])
def test_where_there_is_no_difference_to_the_published_machine_none_is_stated(used: str, engine: str) -> None:
    record = kept((engine,), conditions={"cpu_crypto": used} if used else {})
    assert not finding(compared(record), "had no AES instructions")


def test_growth_is_reported_for_operations_that_grow_and_names_its_two_points() -> None:
    text = finding(compared(), "search rows again")
    assert "firebird update load^2.00, with hospital load^1.00" in text
    assert "insert" not in text
    assert "a slope of two points" in text
    flat = kept()
    flat.runs = [run for run in flat.runs if run.operation != "update"]
    assert not finding(compared(flat), "search rows again")


def test_a_core_that_is_busy_in_both_arms_is_reported() -> None:
    assert "95 → 95 % busy" in finding(compared(), "as busy in one arm")
    record = kept()
    record.runs = [run for run in record.runs if run.design]
    assert not finding(compared(record), "as busy in one arm")


def test_operations_too_short_for_a_sample_are_counted() -> None:
    assert not finding(compared(), "The first sample is dropped")
    record = kept()
    for number, run in enumerate(record.runs):
        if not run.design and run.operation == "select":
            record.runs[number] = StudyRun(
                run.operation,
                run.arm,
                0.0,
                run.load,
                run.series,
                run.host[:1],
                engine=run.engine,
                workload=run.workload,
            )
    text = finding(compared(record), "The first sample is dropped")
    assert "In 36 of 144 runs" in text
    assert "mariadb select" in text
    assert "insert" not in text


def test_memory_that_is_not_the_servers_is_reported() -> None:
    assert not finding(compared(), "RAM in use as total")
    record = kept()
    for run in record.runs:
        if (run.engine, run.arm, run.design) == ("firebird", "encrypted", ""):
            run.host[:] = [
                msgspec.structs.replace(sample, memory_free_bytes=600_000_000, server_memory_bytes=9_000_000)
                for sample in run.host
            ]
    text = finding(compared(record), "RAM in use as total")
    assert re.search(r"firebird \+400 MB, .* processes \+9 MB", text)
    assert "mariadb" not in text


def test_a_plan_that_one_arm_alone_compiles_is_reported() -> None:
    explained = [
        [
            "Seq Scan on notification n  (cost=0.00..190609.00 rows=1640 width=272) (actual time=73.293..116.145 rows=2000 loops=1)"
        ],
        ["JIT:"],
        [
            "  Timing: Generation 8.912 ms, Inlining 0.000 ms, Optimization 3.017 ms, Emission 69.999 ms, Total 81.927 ms"
        ],
        ["Execution Time: 183.550 ms"],
    ]
    assert procedure.compiled(explained) == (81.927, 183.55)
    assert procedure.compiled(explained[-1:]) == (0.0, 183.55)
    record = kept()
    for arm, times in (("plain", [0.0, 62.0]), ("encrypted", [81.9, 183.5])):
        run = next(
            r
            for r in record.runs
            if (r.engine, r.operation, r.arm, r.load["records"], r.design) == ("postgresql", "select", arm, 2000, "")
        )
        run.series[procedure.COMPILED] = times
    text = finding(compared(record), "On tables without ANALYZE")
    assert "postgresql select 2,000 compiles" in text
    assert "the encrypted arm's (82 of 184 ms)" in text
    both = [r for r in record.runs if procedure.COMPILED in r.series]
    both[0].series[procedure.COMPILED] = [80.0, 150.0]
    assert not finding(compared(record), "On tables without ANALYZE"), "both arms compile"


# ── options ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--loads", "many"), "'many' is not a number of records"),
        (("--loads", "1000,,2000"), "'' is not a number of records"),
        (("--loads", "9" * 5000), "is not a number of records"),
        (("--loads", "0"), "'0' is not a number of records"),
        (("--loads", "1000,1000"), "the same load appears twice"),
        (("--runs", "0"), "--runs 0: must be at least 1"),
        (("--runs", "-3"), "--runs -3: must be at least 1"),
        (("--engine", "mariadb,oracle"), "does not run on 'oracle'"),
        (("--engine", "firebrid"), "did you mean 'firebird'"),
        (("--engine", ","), "names no server"),
        (("--engine", "mariadb@"), "'mariadb@' is not a server and its version; write ENGINE@VERSION"),
        (("--engine", "mariadb@11.8,mariadb@10.11"), "names mariadb in two versions"),
        (("--engine", "mariadb@10.11"), "mariadb 10.11 has no CBC"),
        (
            ("--scale", "3"),
            "study column-functions has no option --scale, which cybertec-tde-cost, pg-tde-small-cost, postgres-tde and volume-encryption have",
        ),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, tuple) else "",
)
def test_bad_options_give_one_clear_message_and_a_status(tmp_path: Path, argv: tuple[str, ...], words: str) -> None:
    done = warm.run(["replicate", "column-functions", *argv], cwd=tmp_path, timeout=300)
    assert words in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 2
    assert not list(tmp_path.iterdir()), "nothing started"


def test_aes_instructions_are_hidden_in_the_procedure_and_in_our_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "mask", lambda: {"OPENSSL_ia32cap": "~0x1:~0x0"})
    for value in ("on", "off"):
        study = replicate.chosen("column-functions", {"cpu_crypto": value})[0]
        cells = [*study.procedure_cells(study.engine), *study.spec(study.engine, 40.0, 3).cells]
        assert {cell.cpu_crypto for cell in cells} == {value}
    assert study.begin("mariadb").conditions == {"cpu_crypto": "off"}


def test_a_cpu_without_aes_instructions_has_none_to_hide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "cpu_flags", lambda: {"fpu"})
    with pytest.raises(UsageError, match="nothing to hide"):
        replicate.chosen("column-functions", {"cpu_crypto": "off"})


def test_another_study_has_no_loads() -> None:
    with pytest.raises(UsageError, match="no option --loads, which column-functions has"):
        replicate.chosen("mysql-tls", {"loads": "1,2"})


def test_options_make_a_study_of_that_size() -> None:
    study = replicate.chosen("column-functions", {"loads": "2000, 1000", "runs": 10})[0]
    assert isinstance(study, ColumnFunctions)
    assert (study.loads, study.runs) == ((1000, 2000), 10)
    assert study.procedure_seconds(1.0) > STUDY.procedure_seconds(1.0)


def test_its_cells_are_one_experiment_at_equal_cipher() -> None:
    spec = STUDY.spec(STUDY.engine, 40.0, 3)
    assert [cell.engine for cell in spec.cells] == list(ENGINES)
    assert len({cell.group for cell in spec.cells}) == 1
    assert {(cell.workload, cell.regime, cell.factors["iv"]) for cell in spec.cells} == {
        ("hospital", "one-core", "random")
    }
    narrowed = STUDY.spec("postgresql,mariadb", 40.0, 3)
    assert [cell.engine for cell in narrowed.cells] == ["mariadb", "postgresql"]
    assert [cell.mechanism for cell in STUDY.procedure_cells("firebird")] == ["aes-ofb-128"]


# ── whole, on real servers ────────────────────────────────────────────────────────────────────────────────────────────


def register(path: Path, count: int) -> Path:
    """A file in the register's format with so many lines."""
    titles = {**hospital_register.HEADERS, "estado": "estado", "municipio": "municipio"}
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(titles.values())
        for record in hospital_records.records(count, 9):
            writer.writerow([getattr(record, name, "") for name in titles])
    return path


def test_a_file_with_fewer_records_than_the_largest_load_is_refused(tmp_path: Path) -> None:
    path = register(tmp_path / "register.csv", 30)
    study = replicate.chosen("column-functions", {"loads": "20,30", "csv": str(path)})[0]
    assert {(cell.csv, cell.rows) for cell in study.spec("firebird", 9.0, 1).cells} == {(str(path), 30)}
    with pytest.raises(UsageError, match="contains 30 records, but 40 are requested"):
        replicate.chosen("column-functions", {"loads": "20,40", "csv": str(path)})
    with pytest.raises(UsageError, match="nowhere"):
        replicate.chosen("column-functions", {"csv": str(tmp_path / "nowhere.csv")})


@pytest.mark.parametrize(("engine", "file"), [("postgresql", True), ("mariadb", False)])
def test_a_very_small_replication_is_proven_run_recorded_and_reported_again(
    tmp_path: Path, engine: str, file: bool, require_server: RequireServer
) -> None:
    require_server(engine)
    source = str(register(tmp_path / "register.csv", 50)) if file else ""
    small = ColumnFunctions(
        (20, 40), 2, source, least_sessions=2, most_sessions=2, cell_sessions=2, cell_rows=40, interval=0.05
    )
    result, directory = replicate.run_in(small, small.spec(engine, 4.0, 5), tmp_path / "run")
    record = run_directory.read_study(directory)
    assert record is not None
    assert not record.reason
    assert record.complete
    assert record.versions[engine]
    assert record.tools["records"] == (f"of {source}" if file else "made up")
    ours = [run for run in record.runs if run.design == measured.PUBLISHED]
    # One whole arm before the other; two runs of each load; four operations in each run.
    assert [(run.arm, run.load["records"], run.load["run"], run.operation) for run in ours] == [
        (arm, load, number, name) for arm in ARMS for load in (20, 40) for number in (1, 2) for name in OPERATIONS
    ]
    # An operation that ends within a clock tick has no sample.
    assert all(row.memory_free_bytes > 0 for run in ours for row in run.host)
    assert any(run.host for run in ours)
    assert all(earlier.started <= later.started for earlier, later in pairwise(record.runs))
    # Each has a client process of its own, timed as a whole.
    assert all(0 < run.series[procedure.STATEMENTS][0] < run.series[measured.SECONDS][0] for run in ours)
    assert "a separate client process for each operation" in compare.as_run(record)
    turned = [run for run in record.runs if run.design == measured.INTERLEAVED]
    counts = Counter(
        (run.workload, run.load["session"], run.load["records"], run.operation)
        for run in turned
        if run.load["position"]
    )
    assert set(counts.values()) == {4}
    assert len(counts) == 2 * 2 * 2 * 4
    assert sum(run.series["server_cpu_s"][0] for run in turned) > 0
    explained = [run.series[procedure.COMPILED] for run in ours if procedure.COMPILED in run.series]
    assert len(explained) == (4 if engine == "postgresql" else 0), "each arm's SELECT, once per load"
    assert all(executing > 0 for _, executing in explained)
    # With one IV or none, the generated records have as many stored values as states.
    counted = next(run.series[procedure.COUNTED] for run in record.runs if procedure.COUNTED in run.series)
    assert counted[0] == 20
    assert counted[1] == counted[2] < 20
    heard = {(proof.arm, proof.witness) for proof in record.proofs}
    assert heard == {(arm, witness) for arm in ARMS for witness in ("server", "disk")}
    assert len(record.proofs) == 3 * 4, "those of the procedure and of each interleaved session"
    assert record.witnesses == {name: ["server", "disk"] for name in record.mechanisms}
    assert all(proof.passed for proof in record.proofs)

    assert result.study is not None
    head = figure(result.study, engine, names.ALL_OPERATIONS, "cost", load=None)
    assert head.published
    assert head.here
    assert head.ours
    assert head.low
    assert (head.n, head.of) == (2, "sessions")
    encoded = (directory / "result.json").read_bytes()
    assert run_directory.encode(conclude.result_of(directory)) == encoded
    result_schema.validate(json.loads(encoded))
    text = terminal.render(result)
    assert "our method here" in text
    assert "stores equal values alike" in text


def test_without_aes_instructions_the_agent_is_proven_to_have_none_and_the_result_states_it(
    tmp_path: Path, require: Require, require_server: RequireServer
) -> None:
    require("aes" in aes.cpu_flags(), "this CPU has no AES instructions to hide")
    require_server("mariadb")
    small = ColumnFunctions(
        (20,), 1, least_sessions=1, most_sessions=1, cell_sessions=2, cell_rows=20, interval=0.05, cpu_crypto="off"
    )
    result, directory = replicate.run_in(small, small.spec("mariadb", 4.0, 5), tmp_path / "run")
    record = run_directory.read_study(directory)
    assert record is not None
    assert record.complete, record.reason
    assert record.conditions == {"cpu_crypto": "off"}
    masks = [proof for proof in record.proofs if "AES hidden from the agent" in proof.detail]
    assert [(proof.witness, proof.passed) for proof in masks] == [("client", True)] * 2, "as published, and interleaved"
    assert [cell.conditions["cpu_crypto"] for cell in result.cells] == ["off"]
    assert result.study is not None
    assert "hidden from OpenSSL (--cpu-crypto off)" in result.study.procedure
    assert finding(result.study, "OpenSSL had no AES instructions")
    assert not finding(result.study, "less here than there for that reason")
    result_schema.validate(json.loads((directory / "result.json").read_bytes()))


def test_a_mask_that_hides_nothing_is_detected_before_anything_is_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require: Require, require_server: RequireServer
) -> None:
    require("aes" in aes.cpu_flags(), "this CPU has no AES instructions to hide")
    require_server("mariadb")
    monkeypatch.setattr(conditions, "mask", lambda: {"OPENSSL_ia32cap": "~0x0:~0x0", "OPENSSL_armcap": "0x7d"})
    small = ColumnFunctions(
        (20,), 1, least_sessions=1, most_sessions=1, cell_sessions=2, cell_rows=20, cpu_crypto="off"
    )
    result, directory = replicate.run_in(small, small.spec("mariadb", 4.0, 5), tmp_path / "run")
    record = run_directory.read_study(directory)
    assert record is not None
    assert not record.complete
    assert "not proven" in record.reason
    assert not record.runs
    assert result.study is not None
    assert not finding(result.study, "they were hidden from it")


def test_a_missing_server_is_named_and_the_others_still_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require_postgresql: Installation
) -> None:
    assert require_postgresql

    def missing(*_: object, **__: object) -> None:
        raise MissingServer("no firebird here")

    monkeypatch.setattr(type(engines.get("firebird")), "find", missing)
    small = ColumnFunctions((20,), 1, least_sessions=1, most_sessions=1, cell_sessions=2, cell_rows=40)
    result, directory = replicate.run_in(small, small.spec("firebird,postgresql", 2.0, 5), tmp_path / "run")
    record = run_directory.read_study(directory)
    assert record is not None
    assert record.reason == "firebird:aes-ofb-128: no firebird here"
    assert {run.engine for run in record.runs} == {"postgresql"}
    assert replicate.failed(result)
    assert result.study is not None
    assert figure(result.study, "firebird", names.ALL_OPERATIONS, "cost").here is None
    alone = figure(result.study, "postgresql", names.ALL_OPERATIONS, "cost")
    assert alone.here
    assert alone.ours
    assert (alone.low, alone.n) == (None, 1), "one session of one block has no interval"
    assert result.cells[0].status == "failed"
    text = terminal.render(result)
    assert "firebird:aes-ofb-128: no firebird here" in " ".join(text.split())


def test_a_server_in_path_that_lacks_the_equal_cipher_is_replaced_in_that_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require_server: RequireServer
) -> None:
    """MariaDB before 11.2 has only ECB: the cell at equal cipher runs on a version that has CBC."""
    old, new = (require_server("mariadb", version) for version in ("10.11", "11.8"))
    monkeypatch.setenv("PATH", f"{old.location}:{os.environ['PATH']}")
    small = ColumnFunctions((20,), 1, least_sessions=1, most_sessions=1, cell_sessions=2, cell_rows=20, interval=0.05)
    spec = replicate.spec_of(small, "mariadb", 4.0, 5)
    result, directory = replicate.run_in(small, spec, tmp_path / "run")
    assert result.cells[0].version == new.version, result.cells[0].reason
    record = run_directory.read_study(directory)
    assert record is not None
    assert record.complete, record.reason
    assert record.versions == {"mariadb": old.version}
    assert result.study is not None
    text = finding(result.study, "Two versions of a server")
    assert f"mariadb {old.version} ran the study's procedure, and {new.version} ran aes-cbc-256" in text


def test_a_version_is_for_the_procedure_and_for_our_cells() -> None:
    spec = replicate.spec_of(STUDY, "postgresql,mariadb@11.8", 40.0, 3)
    assert [(cell.engine, cell.version) for cell in spec.cells] == [("mariadb", "11.8"), ("postgresql", "")]
    cells = studies.at_versions(STUDY, STUDY.procedure_cells(STUDY.engine), {"mariadb": "11.8"})
    assert {cell.engine: cell.version for cell in cells} == {"firebird": "", "mariadb": "11.8", "postgresql": ""}
    with pytest.raises(UsageError, match=r"jdbc-tls needs mariadb 10.11: write --engine mariadb, without @11.8"):
        replicate.spec_of(studies.get("jdbc-tls"), "mariadb@11.8", 20.0, 1)


def test_a_cell_without_a_number_stands_at_the_head_of_every_report() -> None:
    lost = msgspec.structs.replace(
        cell("mariadb", 0.9), status="failed", reason="mariadb 10.11.14 has no CBC", overhead={}, arms={}, clients=0
    )
    cells = [cell("firebird", 0.9), lost, cell("postgresql", 0.8)]
    result = results.result(*cells, study=compared(cells=cells))
    words = "mariadb aes-cbc-256 hospital: failed: mariadb 10.11.14 has no CBC"
    for name in ("terminal", "md", "html"):
        text = formats.get(name)(result)
        body = " ".join(
            unescape(re.sub(r"<[^>]*>|[*\\\\]", "", text[text.index("<body") if name == "html" else 0 :])).split()
        )
        assert "Incomplete: " + words in body
        assert body.index(words) < body.index("MariaDB 10.8.5")
    assert table.report(STUDY, compared(), cells[:1]).lost == ""
