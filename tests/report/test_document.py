"""No format drops anything that is said of a cell, except what it says elsewhere."""

from __future__ import annotations

import html as entities
import re
from typing import get_args

import msgspec
import pytest

from ciphercost.model.connection_memory import ConnectionMemory, Slope
from ciphercost.model.objective_capacity import ObjectiveArm, ObjectiveCapacity
from ciphercost.model.replication import LINK, ReplicationResult
from ciphercost.model.result import Cell, Money, Part, Price, Result, Warning_
from ciphercost.model.slices import Finding, Proof
from ciphercost.model.storms import StormArm, StormResult
from ciphercost.report import blocks, document, formats
from ciphercost.report.words import figure_text, operation_text
from results import cell, estimate, failed, result

FORMATS = ("terminal", "md", "html")
STORM = {
    **{
        f"{what}_{part}": level
        for what, level in (("throughput", 3900.0), ("latency_p99", 2.2))
        for part in ("before", "during", "after")
    },
    "back_p99": 31.0,
}
"""Levels of an arm in storms."""
ELSEWHERE = {"terminal": ("reference", "client")}
"""Notes that a format has in another form: the terminal's table of an experiment."""


REPLICATION = ReplicationResult(
    {"lag": estimate(1.2), "catch_up": estimate(0.8), "copy": estimate(1.1)},
    {arm: {"lag": 4.0, "catch_up": 60_000.0, "copy": 1.5} for arm in ("plain", "encrypted")},
    3,
    540.0,
    20_000,
    52_000_000,
    "pg_basebackup",
)


def full() -> Result:
    """A cell of which everything is known that can be known together, one that failed after its figures, and one without any."""
    levels = cell().arms
    arms = {
        arm: {**figures, "storage": {"sequential_read": speed, "fsync_latency": 80.0}, "retries": 12}
        for (arm, figures), speed in zip(levels.items(), (900e6, 800e6), strict=True)
    }
    whole = cell(
        arms=arms,
        group="g",
        storage={"sequential_read": estimate(0.9), "fsync_latency": estimate(1.2)},
        stored={"plain": {"table_bytes": 163_840}, "encrypted": {"table_bytes": 245_760}},
        key_life={"rotation_s": 1.25},
        predicted={"round_trips": 3.0, "added_ms": 30.0, "throughput": 0.7},
        against_reference=estimate(0.9),
        too_few={"disk_read_per_op": "1 of 16 plain slices had any"},
        money=Money(Price(0.04, "hour", "$"), "server_cpu_per_op", Part(3e-5, 2e-5, 4e-5), Part(10.8, 10.6, 11.0)),
        objective=ObjectiveCapacity(
            "p99=5ms", {arm: ObjectiveArm("unknown") for arm in ("plain", "encrypted")}, [], reason="nothing was slow"
        ),
        storm=StormResult(
            "rate",
            "160",
            4000.0,
            0.5,
            80,
            4,
            {"throughput_during": estimate(0.9), "latency_p99_during": estimate(2.5), "back_p99": estimate(1.4)},
            {
                arm: StormArm(
                    STORM, {"throughput_during": estimate(0.8), "latency_p99_during": estimate(3.0)}, 640, 3, "53300=3"
                )
                for arm in ("plain", "encrypted")
            },
        ),
        connection_memory=ConnectionMemory(
            500,
            8,
            1,
            {arm: {"handshake": {"server": Slope(1200.0, 1100.0, 1300.0)}} for arm in ("plain", "encrypted")},
            {"handshake": {"server": Slope(29_000.0, 28_000.0, 30_000.0)}},
            "least squares in one session",
        ),
        replication=REPLICATION,
        link={"sent": 100_000, "lost": 97, "overflowed": 0},
        handshakes={"full": 120, "resumed": 30},
        chatter={arm: {"SELECT": 1.0} for arm in ("plain", "encrypted")},
        client_against_reference={"server_cpu_plain": estimate(1.3)},
        findings=[Finding("names", "low", "names of files are readable", "")],
        warnings=[Warning_("few-sessions", "2 sessions give a wide interval")],
    )
    cut = cell(status="failed", reason="the server went away after two sessions", workload="connect")
    unproven = failed("server witness: ssl is off", status="unproven", engine="mariadb")
    unproven = msgspec.structs.replace(unproven, proofs=[Proof("plain", "wire", False, "the bytes look random", 1)])
    return result(whole, cut, unproven)


def test_the_clients_bytes_are_not_taken_for_those_of_a_replicas_link() -> None:
    alone, replicated = cell(workload="replication"), cell(config_diff=[f"{LINK}sslmode=disable | sslmode=verify-full"])
    assert not any(figure_text.is_noise(alone, key) for key in figure_text.OF_THE_WIRE)
    assert all(figure_text.is_noise(replicated, key) for key in figure_text.OF_THE_WIRE)


def test_a_workload_of_the_users_called_replication_measures_its_clients() -> None:
    link = cell(workload="replication", config_diff=[f"{LINK}sslmode=disable | sslmode=verify-full"])
    assert operation_text.of(link) == "commit"
    assert not cell(workload="replication").of_link
    assert operation_text.of(cell(workload="replication")) == operation_text.of(cell())


def told(name: str, run_result: Result) -> str:
    """What a format shows, without its markup and its lines' ends."""
    text = formats.get(name)(run_result)
    if name != "terminal":
        text = entities.unescape(re.sub(r"<[^>]*>", " ", text)).replace("\u200b", "")
    return squeezed(text)


def squeezed(text: str) -> str:
    """Without spaces, because a line may end anywhere."""
    return "".join(text.split())


def texts_of(of: Cell, everything: list[Cell], without: tuple[str, ...]) -> list[str]:
    texts: list[str] = []
    for block in document.of_cell(of, everything, details=False):
        match block:
            case blocks.Standing():
                texts += [block.reason, *(proof.detail for proof in block.failed)]
            case blocks.Figures():
                texts += [text for row in block.rows for text in row]
            case blocks.Note():
                texts += [block.text] * (block.topic not in without)
            case blocks.Curve():
                texts += [text for row in (block.head, *block.rows) for text in row]
            case blocks.Findings():
                texts += [finding.text for finding in block.findings]
            case blocks.Warnings():
                texts += block.texts
    return texts


@pytest.mark.parametrize("name", FORMATS)
def test_no_format_drops_what_is_said_of_a_cell(name: str) -> None:
    # Each cell alone, so that none shares a table with another.
    for number, full_cell in enumerate(full().cells):
        alone = result(full_cell)
        shown = told(name, alone)
        texts = texts_of(full_cell, alone.cells, ELSEWHERE.get(name, ()))
        assert len(texts) >= 2, number
        assert [text for text in texts if squeezed(text) not in shown] == []


def test_the_cell_of_these_tests_has_notes_on_almost_every_topic() -> None:
    run_result = full()
    topics = {
        note.topic
        for cell in run_result.cells
        for note in blocks.only(blocks.Note, document.of_cell(cell, run_result.cells))
    }
    # A control has its own test, agents and hops need runs, and a limit is that of a whole machine.
    assert set(get_args(blocks.Topic)) - topics <= {"opening", "control", "agents", "hop", "limit"}
