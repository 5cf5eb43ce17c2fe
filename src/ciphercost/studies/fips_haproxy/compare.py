"""Build the three columns of figures from the RFC, the procedure's record and our cells. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.studies import figures, in_turn, pairs, ran_on, without_runs
from ciphercost.studies.fips_haproxy import findings, published, ways
from ciphercost.studies.sheet import Sheet

if TYPE_CHECKING:
    from ciphercost.studies import Study

CONNECT = "connect"
RATE, REQUESTS = "connections/s", "operations/s"
TITLES = {"haproxy": "HAProxy", "nginx": "nginx", "apache": "Apache"}


def compare(study: Study, record: StudyRecord, cells: list[Cell]) -> StudyResult:
    """Figures of every way to connect; none of an arm that was not proven."""
    unproven = pairs.unproven(record)
    kept = record if not unproven else without_runs(record)
    ours = {cell.variant: cell for cell in cells}
    all_figures = [figure for way in ways.ALL for figure in of_way(study, kept, way, ours.get(way.name))]
    return study.result(
        ran_on(TITLES[record.engine], record, cells),
        procedure_text(record, kept, unproven),
        all_figures,
        findings.findings(study, kept, ours),
        complete=record.complete and not unproven,
    )


def of_way(study: Study, record: StudyRecord, way: ways.Way, cell: Cell | None) -> list[StudyFigure]:
    """One pair of servers. The RFC's peak stands beside every key exchange, as it states none."""
    connecting = way in ways.CONNECTING
    printed = published.peaks(study, "openssl") if connecting else {}
    here: figures.Known = (
        {arm: in_turn.rate(record, CONNECT, arm, way.name) for arm in ARMS} if way is ways.SAME else {}
    )
    return [
        *figures.rate(way.name, RATE if connecting else REQUESTS, cell, here, printed, published.PEAKS),
        *figures.server_cpu(way.name, cell),
    ]


def beside(study: Study) -> Sheet:
    """What the RFC prints of both libraries, with what FIPS mode costs each where both modes are printed."""
    by_name: dict[str, dict[str, dict[str, str]]] = {}
    for row in study.rows("figures.csv"):
        by_name.setdefault(f"{row['figure']}, {row['unit']}", {})[row["fips"]] = row
    return Sheet(
        "As published, of both libraries: out of FIPS mode → in it",
        ("", "OpenSSL 3.0.2", "AWS-LC"),
        [
            (
                name,
                *(
                    " → ".join(modes[mode][library] if mode in modes else "-" for mode in ("off", "on"))
                    for library in ("openssl", "aws_lc")
                ),
            )
            for name, modes in by_name.items()
        ],
        "AWS-LC can't be fetched as a server's library, so it is not measured here.",
    )


def procedure_text(record: StudyRecord, kept: StudyRecord, unproven: str) -> str:
    """The procedure as it ran here, or why it didn't."""
    if reason := pairs.not_run(record, unproven, began=bool(kept.runs)):
        return reason
    settings = record.settings
    encryption = " ".join(record.encryption.get(key, "") for key in ("protocol", "cipher")).strip()
    return (
        f"{kept.runs[0].load['clients']:.0f} clients that open a connection for each request, {settings[in_turn.RUNS]:.0f} runs of "
        f"{settings[in_turn.SECONDS]:g} s, all out of FIPS mode and then all in it (published: neither number nor length of runs); TLS is "
        f"{encryption}. Unlike in the published runs, as far as the RFC says, both arms are proven, and that FIPS mode is on in one of them"
        f"{'' if record.complete else '; it was cut off'}"
    )
