"""Build the figures of every OpenSSL version, and of the newer ones ÷ 3.0, from limits, record and cells. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ciphercost.model.result import Cell, Estimate
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.studies import figures, in_turn, pairs, ran_on
from ciphercost.studies.mysql_openssl import findings, published

if TYPE_CHECKING:
    from ciphercost.studies import Study

VERSIONS = ("3.0", "3.5", "3.6")
REFERENCE = VERSIONS[0]
SELECT, RECONNECT = "point-select", "reconnect"
RATE = "queries/s"


def variant(version: str, exchange: str = "") -> str:
    """Name of a version's servers in the record and in every table: `OpenSSL 3.5 X25519MLKEM768`."""
    return f"OpenSSL {version}{f' {exchange.upper()}' if exchange else ''}"


def compare(study: Study, record: StudyRecord, cells: list[Cell]) -> StudyResult:
    """Figures of every version; none of one that was not proven."""
    unproven = pairs.unproven_pairs(record, record.servers)
    runs = [run for run in record.runs if run.server not in unproven]
    kept = msgspec.structs.replace(record, runs=runs)
    ours = {(operation_of(cell), cell.variant): cell for cell in cells}
    all_figures = []
    for name in study.operations:
        variants = dict.fromkeys(
            [*(variant(version) for version in VERSIONS), *(v for operation, v in ours if operation == name)]
        )
        for variant_name in variants:
            all_figures += levels(kept, name, variant_name, ours.get((name, variant_name)))
        for variant_name in list(variants)[1:]:
            all_figures.append(against_3_0(study, kept, name, variant_name, ours.get((name, variant_name))))
    title = {"mariadb": "MariaDB", "mysql": "MySQL"}[record.engine]
    return study.result(
        ran_on(title, record, cells),
        procedure_text(record, kept, unproven),
        all_figures,
        findings.findings(study, kept),
        complete=record.complete and not unproven,
    )


def operation_of(cell: Cell) -> str:
    """The cells of one operation are one experiment, which has its name."""
    return cell.group


def levels(record: StudyRecord, name: str, variant_: str, cell: Cell | None) -> list[StudyFigure]:
    """Both arms of one version, and what TLS costs with it."""
    operation = f"{name}, {variant_}"
    here: figures.Known = {"encrypted": in_turn.rate(record, name, "encrypted", variant_)}
    return [*figures.rate(operation, RATE, cell, here), *figures.server_cpu(operation, cell)]


def against_3_0(study: Study, record: StudyRecord, name: str, variant_: str, cell: Cell | None) -> StudyFigure:
    """One version ÷ 3.0: rates over TLS as published and repeated, the cost of TLS by our method."""
    version = variant_.split()[1]
    limit = published.limits(study, record.engine).get((name, version)) if variant_ == variant(version) else None
    here = in_turn.ratio(
        *(in_turn.rate(record, name, "encrypted", variant_name) for variant_name in (variant_, variant(REFERENCE)))
    )
    known: Estimate | None = cell.against_reference if cell else None
    cost = figures.cost(
        f"{name}, {variant_.removeprefix('OpenSSL ')}{figures.OVER}{REFERENCE}", RATE, known, None, here
    )
    if limit is None:
        return cost
    return msgspec.structs.replace(cost, published=limit.ratio, bound=limit.bound, source=limit.source)


def procedure_text(record: StudyRecord, kept: StudyRecord, unproven: dict[str, str]) -> str:
    """The procedure as it ran here, or why it didn't."""
    ended = pairs.ending(record, unproven, began=bool(kept.runs))
    if not kept.runs:
        return ended
    settings = record.settings
    clients = kept.runs[0].load["clients"]
    text = (
        f"{clients:.0f} connections, TLS only, one OpenSSL after the other: {settings[in_turn.RUNS]:.0f} runs of "
        f"{settings[in_turn.SECONDS]:g} s of one row by its key on kept connections, then the same with a connection for each query; "
        "unlike in the published runs, every connection is proven to be encrypted, and which OpenSSL the server has loaded"
    )
    return f"{text}; {ended}" if ended else text
