"""Eighty columns: no output has a longer line, a word cut in the middle, or figures that touch each other."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import short
import warm
from ciphercost import commands, studies
from ciphercost.estimate import notation
from ciphercost.model.errors import CiphercostError
from ciphercost.model.result import Cell, Curve, Estimate, Part, Parts, Point, Result, Warning_
from ciphercost.model.slices import Finding, Proof
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyResult
from ciphercost.report import inventory, layout
from ciphercost.report.formats import _study, terminal
from ciphercost.report.layout import WIDTH
from ciphercost.report.words import cell_text, figure_text, verdict_text
from conftest import Require
from repetitions import examples

SETTINGS = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def check(text: str) -> list[str]:
    """The lines of a text. Asserts that none is too long."""
    lines = text.splitlines()
    long = [line for line in lines if len(line) > WIDTH]
    assert not long, "\n".join(long)
    assert not [line for line in lines if line != line.rstrip()], "spaces at the end of a line"
    touching = [line for line in lines if re.search(r"%[-+(\d]|\)\(", line)]
    assert not touching, "\n".join(touching)
    return lines


def stands(text: str, lines: list[str]) -> None:
    """Assert that the text is on one line, with nothing touching it."""
    pattern = re.compile(rf"(?<!\S){re.escape(text)}(?!\S)")
    assert any(pattern.search(line) for line in lines), f"{text!r} is incomplete in\n" + "\n".join(lines)


def uncut(text: str, lines: list[str]) -> None:
    """Assert that no word of the text is cut, unless it is longer than a line."""
    known = {word for line in lines for word in line.split()}
    for word in text.split():
        assert {word, f"{word}."} & known or len(word) > 60, f"{word!r} is cut in\n" + "\n".join(lines)


# ── what there may be ─────────────────────────────────────────────────────────────────────────────────────────────────

VERSIONS = st.sampled_from(["18.4", "5.5.5-10.11.14-MariaDB-0+deb12u2", "3.53.4", "", "15.18 (Debian 15.18-0+deb12u1)"])
VARIANTS = st.sampled_from(
    [
        "cipher=chacha20",
        "size=250MB",
        "certificate=ecdsa-p256",
        "properties=useServerPrepStmts=true;cachePrepStmts=true;rewriteBatchedStatements=true",
        "client=jdbc:mariadb-3.5.6 driver=/opt/a/long/way/to/some/driver-9.7.0-with-dependencies.jar",
        "version=1.2 cipher=TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 resumption=tickets",
    ]
)
RATIOS = st.one_of(st.floats(0.001, 0.999), st.floats(1, 3), st.floats(3, 99_999), st.just(1.0))
WORDS = ["wait", "PRAGMA temp_store=2,", "/var/tmp/" + "x" * 50, "9,999,999", "a" * 130, "—"]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(" ".join)


@st.composite
def estimates(draw: st.DrawFn) -> Estimate:
    ratio, below, above = draw(RATIOS), draw(st.floats(0, 0.9)), draw(st.floats(0, 3))
    return Estimate(
        ratio, ratio * (1 - below), ratio * (1 + above), p_value=draw(st.sampled_from([None, 0.0, 0.0412, 1.0]))
    )


@st.composite
def arms(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    levels = st.one_of(st.floats(0.01, 10), st.floats(10, 1e4), st.floats(1e5, 999_999_999))
    names = (
        "throughput", "server_cpu_us_per_op", "client_cpu_us_per_op", "machine_cpu_us_per_op", "wire_bytes_per_op",
        "read_bytes_per_op", "write_bytes_per_op", "memory_bytes", "start_s",
    )  # fmt: skip
    figures = {name: draw(levels) for name in names}
    latency = {"p50": draw(levels), "p99": draw(levels)}
    storage = {key: draw(levels) for key, _ in cell_text.STORAGE}
    return {arm: {**figures, "latency_ms": latency, "storage": storage} for arm in ARMS}


@st.composite
def cells(draw: st.DrawFn, /, **fixed: Any) -> Cell:
    layer = draw(st.sampled_from(["transit", "rest", "column"]))
    mechanism = {"transit": "tls", "rest": "innodb-tde", "column": "aes-cbc-256"}[layer]
    keys = [key for key, *_ in figure_text.METRICS]
    overhead = {
        key: draw(estimates()) for key in draw(st.sets(st.sampled_from(keys)).map(lambda some: {*some, "throughput"}))
    }
    fields: dict[str, Any] = {
        "engine": draw(st.sampled_from(["postgresql", "mariadb", "sqlite"])),
        "version": draw(VERSIONS),
        "layer": layer,
        "mechanism": mechanism,
        "workload": draw(st.sampled_from(["point-select", "column-functions/update", "hospital-2024"])),
        "clients": draw(st.sampled_from([1, 1000])),
        "status": "ok",
        "mode": "full",
        "verdict": draw(st.sampled_from(["differs", "equivalent", "unresolved"])),
        "regime": "capacity",
        "sessions": 8,
        "blocks": 96,
        "overhead": overhead,
        "arms": draw(arms()),
        "factors": {"iv": "random"},
        "proofs": [Proof(arm, "server", True, "x") for arm in ARMS],
        "encryption": {"protocol": "TLSv1.3", "cipher": "TLS_AES_256_GCM_SHA384", "server_library": "OpenSSL 3.0.19 27 Jan 2026"},
        "warnings": [Warning_("w", text) for text in draw(st.lists(TEXTS, max_size=2))],
        "findings": [Finding("temporary-data-in-clear-and-some-more", "medium", text, text) for text in draw(st.lists(TEXTS, max_size=2))],
        "stored": {arm: {"table_bytes": 999_999_999, "index_bytes": 164_000} for arm in ARMS},
        "storage": {key: draw(estimates()) for key, _ in cell_text.STORAGE} if layer == "rest" else {},
        "smallest_effect": 0.034,
        "sessions_needed": 99,
        "conditions": draw(st.sampled_from([{}, {"bandwidth": "100mbit", "delay": "10ms", "mtu": "1500", "cpu_crypto": "off"}])),
        "client": draw(st.sampled_from(["", "MySQL Connector/J 9.7.0"])),
        "chatter": draw(st.sampled_from([{}, {arm: {"COM_STMT_EXECUTE": 12.5, "BEGIN": 1.0} for arm in ARMS}])),
        "traffic": draw(st.sampled_from([{}, {arm: {"bytes_sent": 1e6, "bytes_received": 1e8, "round_trips": 1234.5} for arm in ARMS}])),
    }  # fmt: skip
    return Cell(**{**fields, **fixed})


def result(these: list[Cell], **more: Any) -> Result:
    machine = {
        "cpu": "AMD EPYC 9R14 96-Core Processor with a rather long name",
        "cores": 96,
        "aes": True,
        "kernel": "6.1",
    }
    return Result(1, "20261121-220312-8520", "2026", {"name": "c"}, machine, 1, these, **more)


# ── reports ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@SETTINGS
@given(st.lists(cells(), min_size=1, max_size=3))
def test_cells_by_themselves(these: list[Cell]) -> None:
    lines = check(terminal.render(result(these)))
    for cell in these:
        for row in figure_text.costs(cell):
            for text in (row.label, row.cost, row.interval, row.levels):
                stands(text, lines) if text else None
        uncut(cell_text.heading(cell), lines)
        uncut(verdict_text.verdict(cell), lines)
        for warning in cell.warnings:
            uncut(warning.text, lines)


@SETTINGS
@given(st.lists(VARIANTS, min_size=2, max_size=6, unique=True), st.data())
def test_cells_of_one_experiment(variants: list[str], data: st.DataObject) -> None:
    these = [
        data.draw(cells(group="g", variant=variant, against_reference=data.draw(estimates()), layer="transit", mechanism="tls"))
        for variant in variants
    ]  # fmt: skip
    lines = check(terminal.render(result(these)))
    for cell in these:
        uncut(cell.variant, lines)
        estimate = cell.overhead["throughput"]
        stands(notation.worded(estimate, "more", "fewer"), lines)
        stands(figure_text.bounds("throughput", estimate), lines)
        if server := cell.overhead.get("server_cpu_per_op"):
            stands(notation.worded(server), lines)


@SETTINGS
@given(cells(), st.sampled_from(["failed", "unproven", "no-steady-state"]), TEXTS)
def test_cells_without_a_number(cell: Cell, status: str, reason: str) -> None:
    proofs = [Proof("plain", "wire", False, reason)]
    bad = msgspec.structs.replace(cell, status=status, reason=reason, overhead={}, proofs=proofs)
    for text in (
        terminal.render(result([bad])),
        terminal.render(result([msgspec.structs.replace(bad, overhead=cell.overhead)])),
    ):
        uncut(reason, check(text))
    group = [msgspec.structs.replace(one, group="g", variant="cipher=chacha20") for one in (cell, bad)]
    uncut(reason, check(terminal.render(result(group))))


def test_sixty_cells() -> None:
    one = Cell("postgresql", "18.4", "transit", "tls", "point-select", 4, "ok", "full", verdict="differs", group="g")
    overhead = {"throughput": Estimate(0.75, 0.7, 0.8, p_value=0.01)}
    these = [
        msgspec.structs.replace(one, variant=f"certificate=rsa{number} cipher=chacha20", overhead=overhead)
        for number in range(60)
    ]
    lines = check(terminal.render(result(these)))
    for cell in these[1:]:
        stands(cell.variant, lines)


@SETTINGS
@given(st.lists(st.tuples(st.floats(1, 1e9), estimates(), st.floats(-1e9, 1e9)), min_size=1, max_size=6), VERSIONS)
def test_curves_and_parts(points: list[tuple[float, Estimate, float]], version: str) -> None:
    for along in ("size", "clients"):
        curve = Curve(
            "postgresql", version, "tls", "bulk-read", along, [Point(*point, n) for n, point in enumerate(points)]
        )
        lines = check("\n".join(terminal.curve(curve)))
        for _, estimate, _ in points:
            stands(notation.worded(estimate, "more", "fewer"), lines)
            stands(figure_text.bounds("throughput", estimate), lines)
    fitted = [Part(point[2], point[2] - point[0], point[2] + point[0]) for point in points]
    parts = [Parts("postgresql", "wire-crypt", "server", one, one, one, [0], 1.0, one, 0.1) for one in fitted]
    lines = check("\n".join(terminal.parts(result([], parts=parts))))
    for one in fitted:
        stands(figure_text.plus(one, "µs"), lines)


def filled(study: StudyResult, here: float, ours: float) -> StudyResult:
    """A study's result with everything measured."""
    figures = [
        msgspec.structs.replace(figure, here=here, here_sd=here / 3, ours=ours, low=ours * 0.9, high=ours * 1.2, n=8)
        for figure in study.figures
    ]
    return msgspec.structs.replace(study, figures=figures)


@pytest.mark.parametrize("name", studies.names())
@pytest.mark.parametrize(
    ("here", "ours"), [(None, None), (1.02, 1.4), (12_345_678.9, 1234.5), (0.00123, 0.001)], ids=str
)
def test_studies(name: str, here: float | None, ours: float | None, require: Require) -> None:
    study = studies.get(name)
    try:
        record = study.begin(study.engine)
    except CiphercostError as error:
        require(None, str(error))
        raise
    told = study.compare(record, [])
    lines = check(_study.render(told if here is None or ours is None else filled(told, here, ours)))
    uncut(study.title, lines)


# ── every other screen ────────────────────────────────────────────────────────────────────────────────────────────────


def shown(*argv: str, cwd: Path) -> str:
    done = warm.run(argv, cwd=cwd, env={**os.environ, "COLUMNS": "80"}, timeout=300)
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.parametrize("command", ["", *sorted(commands.cli.commands)])
def test_help(command: str, tmp_path: Path) -> None:
    lines = check(shown(*filter(None, [command]), "--help", cwd=tmp_path))
    chosen = commands.cli.commands[command] if command else commands.cli
    for parameter in chosen.params:
        for option in parameter.opts:
            if option.startswith("--"):
                uncut(option, [line.replace(",", " ").replace("/", " ") for line in lines])


@pytest.mark.parametrize("what", inventory.TABLES)
def test_lists(what: str, tmp_path: Path) -> None:
    check(shown("list", what, cwd=tmp_path))


def test_doctor(tmp_path: Path) -> None:
    check(shown("doctor", cwd=tmp_path))


def test_proofs(tmp_path: Path) -> None:
    lines = check(shown("prove", "sqlite:sqlcipher", cwd=tmp_path))
    assert any("ENCRYPTED" in line for line in lines)


def test_a_list_of_runs_with_long_names(tmp_path: Path) -> None:
    argv = ["run", "null:busy", "--quick", "--time", "3s", "--no-latency", "--matrix", "effect=1%,4%"]
    done = short.run(argv, cwd=tmp_path, timeout=600)
    assert "effect=4%" in done.stdout
    check(done.stdout)
    check(done.stderr)
    check(shown("list", "runs", cwd=tmp_path))


# ── the rules themselves ──────────────────────────────────────────────────────────────────────────────────────────────


@given(TEXTS, st.integers(20, 100), st.sampled_from(["", "  ", "! "]))
def test_wrapping_loses_nothing(text: str, width: int, indent: str) -> None:
    lines = layout.wrap(text, indent, "   ", width)
    assert all(len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join((indent + text).split())
    for word in text.split():
        assert len(word) > width - 3 or any(word in line.split() for line in lines)


def test_a_long_list_of_options_breaks_after_its_delimiters() -> None:
    text = "properties=" + ";".join(f"aRatherLongOption{number}=true" for number in range(6))
    assert [line[-1] for line in layout.wrap(text, width=60)[:-1]] == [";"] * (len(layout.wrap(text, width=60)) - 1)


@given(
    st.lists(
        st.tuples(st.text("abc→ ", max_size=40).map(str.strip), st.sampled_from([0, 20, -37, 39, -71, -80])), max_size=5
    )
)
def test_a_row_keeps_every_text_apart_from_the_next(columns: list[tuple[str, int]]) -> None:
    lines = layout.row(*columns)
    assert all(len(line) <= WIDTH for line in lines)
    assert " ".join(" ".join(lines).split()) == " ".join(" ".join(text for text, _ in columns).split())
