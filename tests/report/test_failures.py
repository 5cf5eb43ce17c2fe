"""A failure is printed once in each output, wherever it happened, and JSON keeps it with every cell."""

from __future__ import annotations

import io
import json
import re
from html import unescape

import msgspec
import pytest
from rich.console import Console

import results
from ciphercost.model.errors import AGENT_CODES
from ciphercost.model.result import Cell, Result
from ciphercost.model.slices import Proof
from ciphercost.report import formats, markdown, progress
from ciphercost.report.formats import html, md, terminal

REASON = "nginx 1.26 did not start: the port is taken; stop the other program"
OTHER = "can't log in to your PostgreSQL: wrong password (SQLSTATE 28P01). Set PGPASSWORD"
SAID = Proof("encrypted", "client", passed=False, detail=OTHER, code="28P01")
RUNS = {
    "one cell": ([results.failed(reason=REASON)], {REASON: 1}),
    "one cell and its control": (
        [
            results.failed(reason=REASON),
            results.failed(reason=REASON, mechanism="none", layer="control", variant="none"),
        ],
        {REASON: 1},
    ),
    "three cells, one fails": (
        [results.cell(), results.failed(reason=REASON, workload="connect"), results.cell(clients=1)],
        {REASON: 1},
    ),
    "three cells, all alike": ([results.failed(reason=REASON, clients=n) for n in (1, 2, 3)], {REASON: 1}),
    "three of one experiment": (
        [results.failed(reason=REASON, clients=n, group="g", variant=f"clients={n}") for n in (1, 2, 3)],
        {REASON: 1},
    ),
    "three cells, two reasons": (
        [
            results.failed(reason=REASON, clients=1),
            results.failed(reason=OTHER, clients=2),
            results.failed(reason=REASON, clients=3),
        ],
        {REASON: 1, OTHER: 1},
    ),
    "no steady state": ([results.failed(reason=REASON, status="no-steady-state")], {REASON: 1}),
    "an unproven arm": (
        [results.failed(reason=f"client witness, encrypted arm: {OTHER}", status="unproven", proofs=[SAID])],
        {OTHER: 1},
    ),
}


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest) -> tuple[Result, dict[str, int]]:
    cells, counts = RUNS[request.param]
    return results.result(*cells), counts


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_the_terminal_has_a_failure_once(run: tuple[Result, dict[str, int]]) -> None:
    result, counts = run
    shown = one_line(terminal.render(result))
    assert {reason: shown.count(reason.rstrip(".")) for reason in counts} == counts


def test_markdown_has_a_failure_once_for_each_row_of_its_table(run: tuple[Result, dict[str, int]]) -> None:
    """The table's rows stand for themselves, so two cells with one reason beside another each have it."""
    result, counts = run
    text = md.render(result)
    head = markdown.escaped(REASON)[:60]
    alike = sum(cell.reason == REASON for cell in result.cells)
    assert text.count(head) == (1 if counts.get(REASON) and len(counts) == 1 else alike)


def test_a_page_has_a_failure_once_beside_its_witnesses(run: tuple[Result, dict[str, int]]) -> None:
    """What a witness saw is also in the table of all witnesses."""
    result, counts = run
    text = html.render(result)
    body = one_line(re.sub("<[^>]*>", " ", text[text.index("<body") :]))
    words = unescape(body)
    seen = {reason: sum(reason in proof.detail for cell in result.cells for proof in cell.proofs) for reason in counts}
    alike = {reason: sum(cell.reason == reason for cell in result.cells) for reason in counts}
    for reason in counts:
        expected = 1 if len(counts) == 1 else alike[reason]
        assert words.count(reason.rstrip(".")) - seen[reason] == expected


def test_no_format_prints_a_code_of_the_agent() -> None:
    """Nor one that an older version has recorded in a text."""
    proof = msgspec.json.decode(
        b'{"arm":"plain","witness":"client","passed":false,"detail":"the server answers 301 [status-301-https]"}',
        type=Proof,
    )
    kinds = {"operations": 9, "seconds": 1.0, "errors": 3, "error_kinds": {"status-404": 2, "closed-early": 1}}
    for code in (*AGENT_CODES, "status-301-https", "42501"):
        run_result = results.result(
            results.failed(reason=f"can't log in: no [{code}]. Try again", status="unproven", proofs=[proof]),
            results.cell(clients=1, arms={"plain": kinds, "encrypted": kinds}),
        )
        for text in (
            terminal.render(run_result),
            md.render(run_result),
            html.render(run_result),
            formats.get("junit")(run_result),
        ):
            assert f"[{code}]" not in unescape(text)
            assert "status-404" not in text
            assert "closed-early" not in text


def test_json_has_it_with_every_cell(run: tuple[Result, dict[str, int]]) -> None:
    result, _ = run
    document = json.loads(formats.get("json")(result))
    assert [cell.get("reason", "") for cell in document["cells"]] == [cell.reason for cell in result.cells]


def test_progress_says_that_a_cell_failed_and_leaves_the_reason_to_the_report(
    capsys: pytest.CaptureFixture[str],
) -> None:
    screen = io.StringIO()
    for display in (progress.Lines(), progress.Screen(Console(file=screen, force_terminal=True, width=80))):
        with display:
            display.start(["a"], [8.0], 10.0, [2])
            display.done(0, f"failed: {REASON}")
    for shown in (capsys.readouterr().err, screen.getvalue()):
        assert "a: failed" in shown
        assert "the port is taken" not in shown


def test_a_reason_is_not_lost_where_figures_are_shown() -> None:
    """A cell that was cut off has figures and a reason."""
    cut: Cell = results.cell(status="failed", reason=REASON)
    result = results.result(cut, results.cell(clients=1))
    assert REASON in one_line(terminal.render(result))
    assert markdown.escaped(REASON) in md.render(result)
