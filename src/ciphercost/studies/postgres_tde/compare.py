"""Build the three columns of figures from the publication, pgbench's output here and our cells. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ciphercost.estimate.levels import level
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult, StudyRun
from ciphercost.studies import pairs, ran_on, tde_pairs
from ciphercost.studies.postgres_tde import findings, grid, published
from ciphercost.studies.table import COUNT

if TYPE_CHECKING:
    from ciphercost.studies import Study

FIGURES = (
    # figure, unit, field of a published arm, series of a run here
    ("TPS", "", "tps", "tps"),
    ("latency avg", "ms", "latency_average_ms", "latency_average_ms"),
    ("latency sd", "ms", "latency_stddev_ms", "latency_stddev_ms"),
    ("connecting", "ms", "initial_connection_ms", "initial_connection_ms"),
    ("transactions", "count", "transactions", "transactions"),
)
"""What pgbench prints and the study published."""
OURS_ALONE = (
    # figure, unit, keys of an arm, divisor, key of the cost
    ("server's CPU", "µs", ("server_cpu_us_per_op",), 1.0, "server_cpu_per_op"),
    ("read from disk", "KB", ("read_bytes_per_op",), 1e3, "disk_read_per_op"),
    ("written to disk", "KB", ("write_bytes_per_op",), 1e3, "disk_written_per_op"),
)
"""Per transaction, by our method."""

KEY = "AES key, bits"
FIO_UNITS = {"fsync_latency": ("µs", 1.0)}
FIO_UNIT = ("MB/s", 1e6)
"""For fio's jobs: the unit of a level, and how many of fio's units make one."""

Here = Mapping[tuple[str, str], StudyRun]
"""By pair and arm."""


def compare(study: Study, record: StudyRecord, cells: list[Cell]) -> StudyResult:
    """Figures of every pair of arms; none of a pair that was not proven."""
    names = names_of(record)
    unproven = pairs.unproven_pairs(record, names)
    points = grid.of_record(record)
    main = grid.studys(points, published.claims(study)["clients"])
    runs = {point: here_at(record, point, unproven) for point in points}
    ours = {point: ours_at(record, point, cells) for point in points}
    here, main_cells = runs[main], ours[main]
    figures = [figure for name in names for figure in pair_figures(study, record, name, here, main_cells.get(name))]
    if len(points) > 1 or len(names) > 1:
        figures += [figure for point in points for name in names for figure in swept(name, point, runs, ours)]
    if len({point.rows for point in points}) > 1:
        figures += [
            figure for point in points for name in names for figure in storage(name, point, ours[point].get(name))
        ]
    return study.result(
        ran_on(record.engine, record, cells),
        procedure_text(record, list(runs.values()), unproven),
        [*figures, *other_server(study)],
        findings.findings(study, record, findings.Measurements(here, main_cells, runs)),
        complete=record.complete and not unproven,
    )


def names_of(record: StudyRecord) -> list[str]:
    """Names of the pairs."""
    given = record.servers or [""] * len(record.mechanisms)
    return [tde_pairs.name_of(*pair) for pair in zip(given, record.mechanisms, strict=True)]


def here_at(record: StudyRecord, point: grid.Point, unproven: Mapping[str, str]) -> Here:
    """The published procedure's runs at one point."""
    runs = {}
    for run in record.runs:
        name = tde_pairs.name_of(run.server, run.mechanism)
        if name not in unproven and grid.of_run(run, record) == point:
            runs[name, run.arm] = run
    return runs


def ours_at(record: StudyRecord, point: grid.Point, cells: Sequence[Cell]) -> dict[str, Cell]:
    """Our cells at one point, by pair."""
    given = record.servers or [""] * len(record.mechanisms)
    return {
        tde_pairs.name_of(server, cell.mechanism): cell
        for cell in cells
        for server in given
        if (not server or cell.variant.split(" ")[0] == server)
        and (cell.clients, cell.workload.rpartition("/")[2]) == (point.clients, point.operation)
        and cell.rows in (0, point.rows)
    }


# ── in words ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def procedure_text(record: StudyRecord, runs: Sequence[Here], unproven: Mapping[str, str]) -> str:
    """The procedure as it ran here, or why it didn't."""
    clauses = [what_encrypts(record), key_length(record), as_run(record, runs) if any(runs) else ""]
    return "; ".join(filter(None, [*clauses, pairs.ending(record, unproven, began=any(runs))]))


def key_length(record: StudyRecord) -> str:
    """`AES key: fscrypt 256 bits, as the witnesses saw it (published: 256)`."""
    lengths = []
    for number, name in enumerate(names_of(record), start=1):
        seen = tde_pairs.bits_in(proof for proof in record.proofs if proof.session == number)
        runs = [run for run in record.runs if tde_pairs.name_of(run.server, run.mechanism) == name]
        asked = next((run.load["key_bits"] for run in runs if "key_bits" in run.load), None)
        if seen:
            lengths.append(f"{name} {seen} bits, seen by a witness")
        elif asked:
            lengths.append(f"{name} {asked:.0f} bits as requested; no witness shows the length")
    return f"AES key: {'; '.join(lengths)} (published: {tde_pairs.BITS} bits)" if lengths else ""


def what_encrypts(record: StudyRecord) -> str:
    """Whether the server encrypts, as in the study."""
    names = names_of(record)
    by_server = [name for name, by in zip(names, record.mechanisms, strict=True) if by in tde_pairs.VENDORS]
    below = [name for name in names if name not in by_server]
    clauses = []
    if by_server:
        clauses.append(
            f"encrypted by the server itself ({', '.join(by_server)}), as in the study; the plain arm is the same binaries without TDE"
        )
    if below:
        reason = "these servers have no TDE" if record.servers else "no server with TDE was named (--bindir)"
        clauses.append(
            f"{reason}, so both arms have the same server, and in one of them the file system below it encrypts: "
            f"{' and '.join(below)}"
        )
    if record.servers and record.versions:
        clauses.append("versions: " + ", ".join(f"{name} {version}" for name, version in record.versions.items()))
    return "; ".join(clauses)


def as_run(record: StudyRecord, runs: Sequence[Here]) -> str:
    settings = record.settings
    failed = sum(run.series["failed"][0] for here in runs for run in here.values())
    points = grid.of_record(record)
    text = (
        f"pgbench {record.tools.get('pgbench', '')} -i -s {settings['scale']:.0f}, then -c {settings['clients']:.0f} "
        f"-j {settings['threads']:.0f} -P 1 -T {settings['duration_s']:.0f}, the encrypted arm first and then the plain arm"
    )
    if len(points) > 1:
        rows, clients = (sorted(set(values)) for values in ((p.rows for p in points), (p.clients for p in points)))
        text += f"; run at {_listed(rows)} rows and {_listed(clients)} clients, with each size loaded once per arm"
    if any(point.operation == grid.SELECT for point in points):
        text += ", and SELECT-only too (-S)"
    if cut := sorted({point.rows for point in points if point.cut}):
        text += (
            f"; pgbench creates at least {grid.ROWS_A_SCALE:,} accounts, so for {_listed(cut)} the others were deleted and its "
            "transaction was run from a file (-f)"
        )
    return f"{text}; {failed:,.0f} transactions failed; unlike in the published run, both arms are proven"


def _listed(numbers: Sequence[int]) -> str:
    return (
        " and ".join(f"{number:,}" for number in numbers)
        if len(numbers) < 3
        else ", ".join(f"{number:,}" for number in numbers)
    )


# ── figures ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def heading(name: str) -> str:
    return f"TPC-B-like, {name}"


def pair_figures(study: Study, record: StudyRecord, name: str, here: Here, cell: Cell | None) -> list[StudyFigure]:
    """One pair of arms here beside the study's own pair."""
    printed = published.arms(study)
    arms = {"plain": printed[published.PLAIN], "encrypted": printed[published.TDE]}
    figures = []
    for figure, unit, field, series in FIGURES:
        mine = our_levels(figure, record.settings["clients"], cell)
        levels = [
            StudyFigure(
                heading(name),
                figure,
                unit,
                arm,
                published=getattr(arms[arm], field),
                here=here[name, arm].series[series][0] if (name, arm) in here else None,
                ours=mine.get(arm),
                source=printed_in(figure),
            )
            for arm in ARMS
        ]
        figures += [*levels, *cost_of(heading(name), figure, levels, cell)]
    number = names_of(record).index(name) + 1
    witnessed = tde_pairs.bits_in(proof for proof in record.proofs if proof.session == number)
    ours = tde_pairs.bits_in(cell.proofs) if cell else None
    figures += [
        StudyFigure(heading(name), KEY, COUNT, "plain"),
        StudyFigure(
            heading(name), KEY, COUNT, "encrypted", arms["encrypted"].bits, witnessed, ours, source=published.OUTPUT
        ),
    ]
    return [*figures, *ours_alone(name, cell)]


def swept(
    name: str, point: grid.Point, runs: Mapping[grid.Point, Here], ours: Mapping[grid.Point, Mapping[str, Cell]]
) -> list[StudyFigure]:
    """TPS of one pair at one point. Only the study's own point has published figures."""
    here, cell = runs[point], ours[point].get(name)
    mine = our_levels("TPS", point.clients, cell)
    levels = [
        StudyFigure(
            f"{point.title}, {point.rows:,} rows",
            "TPS",
            "",
            arm,
            here=here[name, arm].series["tps"][0] if (name, arm) in here else None,
            ours=mine.get(arm),
        )
        for arm in ARMS
    ]
    figures = [*levels, *cost_of(levels[0].operation, "TPS", levels, cell)]
    return [
        msgspec.structs.replace(figure, mechanism=name, workload=point.operation, load=float(point.clients))
        for figure in figures
    ]


def storage(name: str, point: grid.Point, cell: Cell | None) -> list[StudyFigure]:
    """fio's figures for both directories, with a file as large as this point's data."""
    figures = []
    operation = f"fio, a file of {grid.fio_bytes(point.rows) / (1 << 20):,.0f} MiB ({point.rows:,} rows)"
    for job, cost in cell.storage.items() if cell else ():
        assert cell is not None
        unit, divisor = FIO_UNITS.get(job, FIO_UNIT)
        figure = job.replace("_", " ")
        of: dict[str, Any] = {"mechanism": name, "workload": "fio", "load": float(point.clients)}
        figures += [
            StudyFigure(operation, figure, unit, arm, ours=cell.arms[arm]["storage"][job] / divisor, **of)
            for arm in ARMS
        ]
        figures.append(
            StudyFigure(operation, figure, "ratio", "cost", ours=cost.ratio, low=cost.low, high=cost.high, **of)
        )
    return figures


def our_levels(figure: str, clients: float, cell: Cell | None) -> dict[str, float]:
    """Our closed loop: its rate, and its mean latency = clients ÷ rate, since no client ever waits."""
    if cell is None or "throughput" not in cell.overhead:
        return {}
    rates: dict[str, float] = {arm: level(cell, arm, "throughput") or 0.0 for arm in ARMS}
    if figure == "TPS":
        return rates
    return {arm: clients / rate * 1000 for arm, rate in rates.items()} if figure == "latency avg" else {}


def cost_of(operation: str, figure: str, levels: Sequence[StudyFigure], cell: Cell | None) -> list[StudyFigure]:
    """encrypted ÷ plain, for rate and latency."""
    if figure not in ("TPS", "latency avg"):
        return []
    rate = cell.overhead.get("throughput") if cell else None
    ratio, low, high = (rate.ratio, rate.low, rate.high) if rate else (None, None, None)
    if rate and figure != "TPS":
        ratio, low, high = 1 / rate.ratio, 1 / rate.high, 1 / rate.low
    plain, encrypted = levels
    return [
        StudyFigure(
            operation,
            figure,
            "ratio",
            "cost",
            published=quotient(encrypted.published, plain.published),
            here=quotient(encrypted.here, plain.here),
            ours=ratio,
            low=low,
            high=high,
            source=printed_in(figure),
        )
    ]


def printed_in(figure: str) -> str:
    """The published table with a figure, or the text if no table has it."""
    return published.LATENCIES if figure == "latency avg" else published.OUTPUT


def ours_alone(name: str, cell: Cell | None) -> list[StudyFigure]:
    """Server CPU, and bytes from and to the disk: a rate that waits for the disk does not show what encryption costs there."""
    figures = []
    for figure, unit, keys, divisor, ratio in OURS_ALONE:
        cost = cell.overhead.get(ratio) if cell else None
        if cell is None or cost is None or keys[0] not in cell.arms["plain"]:
            continue
        for arm in ARMS:
            level = sum(cell.arms[arm][key] for key in keys) / divisor
            figures.append(StudyFigure(heading(name), figure, unit, arm, ours=level))
        figures.append(
            StudyFigure(heading(name), figure, "ratio", "cost", ours=cost.ratio, low=cost.low, high=cost.high)
        )
    return figures


def other_server(study: Study) -> list[StudyFigure]:
    """The study's third server, without TDE, compared with the same encrypted arm. There is no such server here."""
    printed = published.arms(study)
    arms = {"plain": printed[published.OTHER], "encrypted": printed[published.TDE]}
    operation = "published alone: EnterpriseDB 15.10 as the plain arm"
    figures = []
    for figure, unit, field, _ in FIGURES:
        levels = [
            StudyFigure(operation, figure, unit, arm, published=getattr(arms[arm], field), source=printed_in(figure))
            for arm in ARMS
        ]
        figures += [*levels, *cost_of(operation, figure, levels, None)]
    second = published.edb_pairs(study)[-1]
    operation = f"published alone: EnterpriseDB 15.10, second pair ({second.clients} clients by its figures)"
    for figure, unit, value in (("TPS", "", second.tps), ("latency avg", "ms", second.latency_average_ms)):
        figures += [
            StudyFigure(operation, figure, unit, "plain", published=value, source=published.OUTPUT),
            StudyFigure(operation, figure, unit, "encrypted"),
        ]
    return figures


def quotient(value: float | None, by: float | None) -> float | None:
    return value / by if value is not None and by else None
