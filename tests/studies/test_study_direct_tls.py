"""direct-tls: what the post's scatter can show, how many starts a round trip needs, and a small run on a real server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ciphercost import studies
from ciphercost.model.errors import MissingServer, UsageError
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.slices import Proof
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyRecord, StudyResult, StudyRun
from ciphercost.report.formats import _study
from ciphercost.runs import replicate
from ciphercost.studies import pairs
from ciphercost.studies.direct_tls import DirectTls, compare, procedure, published, resolution
from conftest import Require, RequireServer

STUDY = studies.get("direct-tls")
WITNESSES = ("client", "server", "wire")


def record(**changes: object) -> StudyRecord:
    """The procedure here: 20 ± 1 ms with a request first, 19 ± 1 ms from the first byte."""
    record = STUDY.begin("postgresql")
    record.version, record.complete, record.tools = "17.6", True, {"psql": "17.6"}
    record.witnesses = pairs.witnesses_of(record, STUDY.procedure_cells("postgresql"))
    record.proofs = [Proof(arm, witness, True, "", 1) for arm in ARMS for witness in WITNESSES]  # type: ignore[arg-type]
    for arm, mean in (("plain", 20.0), ("encrypted", 19.0)):
        series = {procedure.REAL: [mean - 1, mean, mean + 1], procedure.CPU: [9.0, 10.0, 11.0]}
        record.runs.append(StudyRun(procedure.OPERATION, arm, 0.0, {"starts": 3.0}, series, mechanism="tls"))
    for name, value in changes.items():
        setattr(record, name, value)
    return record


def cell(delay: str, before: float, ratio: float) -> Cell:
    """`before`: connections a second with a request first; `ratio`: of rates."""
    arms = {"plain": {"throughput": before}, "encrypted": {"throughput": before * ratio}}
    overhead = {"throughput": Estimate(ratio, ratio - 0.005, ratio + 0.005)}
    return Cell(
        "postgresql", "17.6", "transit", "tls", "connect", 1, "ok", "full", overhead=overhead, arms=arms,
        conditions={"delay": delay} if delay else {},
    )  # fmt: skip


CELLS = [cell("", 250.0, 1.0125), cell("10ms", 20.0, 1.25)]


def compared(**changes: object) -> StudyResult:
    return STUDY.compare(record(**changes), CELLS)


def test_a_newer_server_serves_as_well_and_an_older_one_is_refused() -> None:
    newer = replicate.spec_of(STUDY, "postgresql@18", 20.0, 1)
    assert {each.version for each in newer.cells} == {"18"}
    assert {each.version for each in replicate.spec_of(STUDY, "postgresql@17.6", 20.0, 1).cells} == {"17.6"}
    assert {each.version for each in replicate.spec_of(STUDY, "postgresql", 20.0, 1).cells} == {"17"}
    with pytest.raises(UsageError, match=r"needs postgresql 17 or newer: .* without @16"):
        replicate.spec_of(STUDY, "postgresql@16", 20.0, 1)


def test_a_missing_round_trip_is_the_links_delay() -> None:
    sheet = compare.answer(compared())
    assert sheet is not None
    loopback, link = sheet.rows
    # 4 ms · (1 − 1 / 1.0125) and 50 ms · (1 − 1 / 1.25).
    assert loopback[:4] == ("loopback", "0.0494", "0.0298 to 0.0688", "yes")
    assert link[:4] == ("10ms", "10", "9.84 to 10.2", "yes")
    assert loopback[4:] == ("315,060", "3,151"), "a tenth of the scatter needs a hundredth of the starts"
    assert link[4:] == ("8", "2")


def test_what_a_number_of_starts_can_show() -> None:
    assert resolution.half_width(10.0, published.STARTS) == pytest.approx(0.877, abs=0.001)
    for sd, difference in ((10.0, 0.05), (3.0, 0.7), (1.0, 10.0)):
        count = resolution.needed(sd, difference)
        assert resolution.half_width(sd, count) <= difference * 1.000001
        assert count == 2 or resolution.half_width(sd, count - 1) > difference


def test_a_connection_that_saves_nothing_needs_no_number() -> None:
    result = STUDY.compare(record(), [cell("", 250.0, 0.999)])
    sheet = compare.answer(result)
    assert sheet is not None
    assert sheet.rows[0][3:] == ("no", "-", "-")
    assert compare.answer(STUDY.compare(record(), [])) is None


def test_only_the_direction_of_a_start_is_compared() -> None:
    judged = STUDY.judged(compared())
    (start,) = judged.figures
    assert start.published == pytest.approx(0.96)
    assert start.here == pytest.approx(0.95)
    assert judged.of(start) == "direction"
    text = _study.render(compared())
    assert "What direct negotiation changed" in text
    assert "plain → encrypted" not in text
    assert re.search(r"psql's start\n +time, ms +50\.00 → 48\.00 +20\.00 → 19\.00", text)
    assert "sslnegotiation=direct 19.0 ± 1.0 ms" in " ".join(text.split())


def test_the_report_ends_with_what_would_tell() -> None:
    findings = compared().findings
    assert findings[-1].startswith("What the post could not have told")
    assert any("10ms: 10 ms saved by each connection, which 2 starts" in finding for finding in findings)


def test_a_run_without_its_procedure_says_so() -> None:
    assert compared(runs=[], complete=False).procedure.startswith("the run was cut off before")
    assert compared(reason="no psql").procedure == "no psql"
    unproven = compared(proofs=[])
    assert not unproven.complete
    assert all(figure.here is None for figure in unproven.figures)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"runs": 1}, "--runs 1: must be from 2 to 100000 starts"),
        ({"delay": "10xs"}, "--delay 10xs: not a duration"),
        ({"delay": "0s"}, "--delay 0s: not a duration between"),
        ({"scale": 5}, "has no option --scale"),
    ],
    ids=str,
)
def test_bad_options_are_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        STUDY.configured(given)
    assert words in str(caught.value)


def test_its_cells_differ_in_their_link_alone() -> None:
    cells = STUDY.configured({"delay": "2ms"}).spec("postgresql", 10.0, 1).cells
    assert [cell.delay for cell in cells] == ["", "2ms"]
    assert len({(cell.workload, cell.clients, *cell.factors.items(), *cell.versus.items()) for cell in cells}) == 1


def test_a_small_replication_on_a_real_server(tmp_path: Path, require: Require, require_server: RequireServer) -> None:
    require_server("postgresql", "17")
    small = DirectTls(3, "2ms", sessions=2)
    require(_has_psql(), "there is no psql 17")
    result, _ = replicate.run_in(small, small.spec("postgresql", 2.0, 5), tmp_path / "run")
    assert result.study is not None
    assert result.study.complete, result.study.procedure
    start = [figure for figure in result.study.figures if figure.operation == procedure.OPERATION]
    assert all(figure.here for figure in start)
    for measured in result.cells:
        assert measured.pair is not None
        assert measured.pair.compared.factors["negotiation"] == "direct"


def _has_psql() -> bool:
    from ciphercost import engines

    try:
        procedure.find(engines.get("postgresql").find("17"))
    except MissingServer:
        return False
    return True
