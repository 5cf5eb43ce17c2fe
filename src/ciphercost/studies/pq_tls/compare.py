"""Build the times of every way to connect, and post-quantum ÷ classical, from claims, record and cells. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ciphercost.estimate.levels import level
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.studies import figures, in_turn, pairs, ran_on
from ciphercost.studies.pq_tls import findings, published, ways

if TYPE_CHECKING:
    from ciphercost.studies import Study

TIME, WIRE = "time", "bytes on the wire"
CLAIMED = ways.BOTH
"""The way that the abstract is about."""


def server_of(link: str, way: str) -> str:
    """Name of a pair of servers in the record."""
    return f"{way} over the {link} link"


def compare(study: Study, record: StudyRecord, cells: list[Cell]) -> StudyResult:
    """Figures of every link, file and way; none of servers that were not proven."""
    unproven = pairs.unproven_pairs(record, record.servers)
    kept = msgspec.structs.replace(record, runs=[run for run in record.runs if run.server not in unproven])
    ours = {(cell.group, cell.variant): cell for cell in cells}
    all_figures: list[StudyFigure] = []
    for link in record.conditions:
        for file in study.operations:
            if (link, file) == (ways.FAST.name, ways.FILES[0]):
                continue
            by_way = [
                time_figures(kept, link, file, way, ours.get((ways.operation(link, file), way))) for way in ways.FACTORS
            ]
            all_figures += [figure for figures_ in by_way for figure in figures_]
            all_figures += [
                against_classical(study, kept, link, file, way, ours.get((ways.operation(link, file), way)))
                for way in list(ways.FACTORS)[1:]
            ]
    title = {"nginx": "nginx", "apache": "Apache"}[record.engine]
    return study.result(
        ran_on(title, record, cells),
        procedure_text(record, kept, unproven),
        all_figures,
        findings.findings(study, ours),
        complete=record.complete and not unproven,
    )


def seconds(record: StudyRecord, link: str, file: str, way: str) -> float | None:
    """Mean time of a fetch by the published procedure."""
    rate = in_turn.rate(record, file, "encrypted", server_of(link, way))
    return 1 / rate if rate else None


def time_figures(record: StudyRecord, link: str, file: str, way: str, cell: Cell | None) -> list[StudyFigure]:
    """Time and bytes of HTTP and of one way to encrypt, and their ratio."""
    operation = f"{ways.operation(link, file)}, {way}"
    known = cell.overhead.get("throughput") if cell else None
    here = seconds(record, link, file, way)
    way_figures = []
    for arm in ARMS:
        rate = level(cell, arm, "throughput") if cell and known else None
        mine = here * 1e3 if here and arm == "encrypted" else None
        way_figures.append(StudyFigure(operation, TIME, "ms", arm, here=mine, ours=1e3 / rate if rate else None))
    way_figures.append(figures.cost(operation, TIME, figures.inverse(known)))
    bytes_ = cell.overhead.get("wire_bytes_per_op") if cell else None
    if cell and bytes_:
        way_figures += [
            StudyFigure(operation, WIRE, "KB", arm, ours=cell.arms[arm]["wire_bytes_per_op"] / 1e3) for arm in ARMS
        ]
        way_figures.append(figures.cost(operation, WIRE, bytes_))
    return way_figures


def against_classical(
    study: Study, record: StudyRecord, link: str, file: str, way: str, cell: Cell | None
) -> StudyFigure:
    """One way's time ÷ the classical one's, beside what the abstract says of it."""
    claim = published.claims(study).get((link, file)) if way == CLAIMED else None
    here = in_turn.ratio(seconds(record, link, file, way), seconds(record, link, file, ways.REFERENCE))
    known = figures.inverse(cell.against_reference) if cell else None
    name = f"{ways.operation(link, file)}, {way}{figures.OVER}{ways.REFERENCE}"
    cost = figures.cost(name, TIME, known, None, here)
    if claim is None:
        return cost
    return msgspec.structs.replace(cost, published=claim.ratio, bound=claim.bound, source=published.ABSTRACT)


def procedure_text(record: StudyRecord, kept: StudyRecord, unproven: dict[str, str]) -> str:
    """The procedure as it ran here, or why it didn't."""
    ended = pairs.ending(record, unproven, began=bool(kept.runs))
    if not kept.runs:
        return ended
    links = "; ".join(f"{name}: {words}" for name, words in record.conditions.items())
    fetches = record.settings[in_turn.FETCHES]
    text = (
        f"{fetches:.0f} fetch{'es' * (fetches != 1)} of each file, each over a new connection, over each link ({links}), one way to connect after the "
        "other: classical (X25519, RSA 2048), ML-KEM (X25519MLKEM768, RSA 2048), ML-KEM + ML-DSA (X25519MLKEM768, ML-DSA-65). All of them with OpenSSL "
        "3.5 on the server; unlike in the published runs, every one is proven"
    )
    return f"{text}; {ended}" if ended else text
