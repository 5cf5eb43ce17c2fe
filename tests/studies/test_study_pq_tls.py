"""pq-tls: the abstract's limits, times of every way to connect, and a small run on a real server over a real link."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from ciphercost import studies
from ciphercost.host import link
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.slices import Proof
from ciphercost.model.study import StudyRecord, StudyResult, StudyRun
from ciphercost.report.formats import _study
from ciphercost.runs import replicate
from ciphercost.studies import figures, in_turn, pairs
from ciphercost.studies.pq_tls import PqTls, compare, published, ways
from conftest import RequirePossible, RequireServer

STUDY = studies.get("pq-tls")
WITNESSES = ("client", "server", "wire", "process")
RATES = {"classical": 5.0, ways.EXCHANGE: 4.5, ways.BOTH: 4.0}


def record(**changes: object) -> StudyRecord:
    """The procedure here: 200 ms for each file with classical algorithms, 250 ms with ML-KEM and ML-DSA."""
    record = STUDY.begin("nginx")
    record.version, record.complete = "1.26.3", True
    record.witnesses = pairs.witnesses_of(record, STUDY.procedure_cells("nginx"))
    record.proofs = [
        Proof(arm, witness, True, "", session)  # type: ignore[arg-type]
        for session in range(1, 7)
        for arm in ("plain", "encrypted")
        for witness in WITNESSES
    ]
    for name in ("fast", "slow"):
        for way, rate in RATES.items():
            for file in ways.FILES:
                series = {in_turn.RATE: [rate], in_turn.OPERATIONS: [20.0]}
                server = compare.server_of(name, way)
                record.runs.append(
                    StudyRun(file, "encrypted", 0.0, {"clients": 1.0}, series, mechanism="tls", server=server)
                )
    for name, value in changes.items():
        setattr(record, name, value)
    return record


def cell(group: str, variant: str, against: tuple[float, float, float] | None, extra: float = 0.0) -> Cell:
    arms = {
        "plain": {"throughput": 10.0, "wire_bytes_per_op": 1340.0},
        "encrypted": {"throughput": 5.0, "wire_bytes_per_op": 3340.0 + extra},
    }
    overhead = {"throughput": Estimate(0.5, 0.4, 0.6), "wire_bytes_per_op": Estimate(2.5, 2.5, 2.5)}
    return Cell(
        "nginx", "1.26.3", "transit", "tls", "pq-tls/1KB", 1, "ok", "full", overhead=overhead, arms=arms, group=group,
        variant=variant, against_reference=Estimate(*against) if against else None,
    )  # fmt: skip


SMALL, MIDDLE = ways.operation("slow", "1KB"), ways.operation("slow", "50KiB")
CELLS = [
    cell(SMALL, "classical", None),
    cell(SMALL, ways.BOTH, (1 / 1.3, 1 / 1.35, 1 / 1.25), 10_000.0),
    cell(MIDDLE, "classical", None),
    cell(MIDDLE, ways.BOTH, (1 / 1.1, 1 / 1.12, 1 / 1.08)),
]


def compared(**changes: object) -> StudyResult:
    return STUDY.compare(record(**changes), CELLS)


def test_the_abstracts_claims_are_limits_and_one_figure() -> None:
    claims = {key: (claim.bound, claim.ratio) for key, claim in published.claims(STUDY).items()}
    assert claims == {
        ("slow", "1KB"): ("", 1.32),
        ("slow", "50KiB"): ("most", 1.15),
        ("slow", "200KiB"): ("most", 1.15),
        ("fast", "50KiB"): ("most", 1.05),
        ("fast", "200KiB"): ("most", 1.05),
    }


def test_a_time_is_the_inverse_of_a_rate() -> None:
    judged = STUDY.judged(compared())
    by_operation = {figure.operation: figure for figure in judged.figures}
    small = by_operation[f"{SMALL}, {ways.BOTH} ÷ classical"]
    assert small.ours == pytest.approx(1.3)
    assert (small.low, small.high) == pytest.approx((1.25, 1.35))
    assert small.here == pytest.approx(1.25)
    assert judged.of(small) == "within"
    middle = by_operation[f"{MIDDLE}, {ways.BOTH} ÷ classical"]
    assert judged.of(middle) == "holds"
    assert by_operation[f"{MIDDLE}, {ways.EXCHANGE} ÷ classical"].published is None
    levels = [
        figure
        for figure in compared().figures
        if figure.operation == f"{MIDDLE}, classical" and figure.figure == "time"
    ]
    assert [level.ours for level in levels] == [100.0, 200.0, 2.0]
    assert [level.here for level in levels] == [None, pytest.approx(200.0), None]


def test_the_report_prints_limits_links_and_bytes() -> None:
    text = " ".join(_study.render(compared()).split())
    assert "at most 15.0 % more" in text
    assert re.search("fast: 1gbit .*10ms; slow: 2mbit .*50ms", text)
    assert "ML-KEM and ML-DSA add 10.0 KB" in text
    assert "here a relay adds the delay" in text


def test_its_cells_differ_in_key_exchange_and_certificate_only() -> None:
    cells = STUDY.spec("nginx", 10.0, 1).cells
    groups = dict.fromkeys(cell.group for cell in cells)
    assert len(groups) == 5
    for group in groups:
        of_group = [cell for cell in cells if cell.group == group]
        assert [cell.variant for cell in of_group] == list(ways.FACTORS)
        assert len({(cell.bandwidth, cell.delay, cell.workload, cell.factors["library"]) for cell in of_group}) == 1
        assert of_group[0].factors["group"] == "x25519", "the reference"


def test_the_slow_link_can_be_chosen() -> None:
    study = STUDY.configured({"bandwidth": "1mbit", "delay": "200ms", "runs": 3})
    assert study.begin("nginx").conditions == {
        "fast": "1gbit with a delay of 10ms",
        "slow": "1mbit with a delay of 200ms",
    }
    assert study.begin("nginx").settings[in_turn.FETCHES] == 3


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"bandwidth": "fast"}, "--bandwidth fast: not a bandwidth"),
        ({"delay": "10xs"}, "--delay 10xs: not a duration"),
        ({"runs": 0}, "--runs 0: must be from 1"),
    ],
    ids=str,
)
def test_bad_options_are_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        STUDY.configured(given)
    assert words in str(caught.value)


def test_a_small_replication_on_a_real_server(
    tmp_path: Path, require_server: RequireServer, require_possible: RequirePossible
) -> None:
    require_server("nginx")
    require_possible(link.check_rights)
    quick = (ways.Link("fast", "1gbit", "1ms"), ways.Link("slow", "10mbit", "5ms"))
    small = PqTls(2, quick, sessions=2)
    spec = small.spec("nginx", 2.0, 5)
    spec = msgspec.structs.replace(spec, cells=spec.cells[-1:])
    result, _ = replicate.run_in(small, spec, tmp_path / "run")
    assert result.study is not None
    assert result.study.complete, result.study.procedure
    assert all(figure.here for figure in figures.between(result.study.figures))
    negotiated = {proof.detail for cell in result.cells for proof in cell.proofs if proof.witness == "client"}
    assert any("MLKEM768" in detail and "ML-DSA" in detail for detail in negotiated), negotiated
