"""The study's tables: the twelve with four columns, what HTTPS adds, and the second table of many clients. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ciphercost import studies
from ciphercost.estimate import bottleneck, disturbance
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyFigure, StudyResult
from ciphercost.studies.costs import change, with_interval
from ciphercost.studies.saturation import in_short
from ciphercost.studies.sheet import Sheet, cite
from ciphercost.studies.web_tls import changes, compare, measured, published
from ciphercost.studies.web_tls.counters import SERVER
from ciphercost.studies.web_tls.published import CV, DISK, MEMORY, NETWORK, PROCESSOR, VARIANCE

SCALE = {PROCESSOR: 1.0, MEMORY: 1e6, NETWORK: 1e6, DISK: 1.0}
UNIT = {PROCESSOR: "%", MEMORY: "MB", NETWORK: "MB/s", DISK: ""}
TITLE = {
    PROCESSOR: "processor time",
    MEMORY: "available memory",
    NETWORK: "network bytes a second",
    DISK: "average disk queue length",
}
MOST_PAIR = 17
"""Most characters of two levels side by side."""
METHOD = (
    "our method: arms interleaved in mirrored order over kept connections on loopback; each request follows the answer before it at once; "
    "the server restarts for every session; 95 % intervals by t over sessions. Its counters cover slices, which have no idle "
    "time, and its processor time includes the client's"
)


def sheets(study: StudyResult) -> Iterator[Sheet]:
    """The study's tables in its order, then their summary."""
    for key, table in published.tables(studies.get(study.study)).items():
        yield twelfth(study, key, table)
        if key == (PROCESSOR, CV):
            yield server_alone(study)
    yield changes.sheet(changes.read(studies.get(study.study)))
    yield added(study.figures)
    yield fetches(study.figures)
    yield from our_method(study.figures)
    yield from many(study.figures)


def head(study: StudyResult) -> tuple[str, ...]:
    """Columns of the twelve tables: http → https in each."""
    return (
        "http → https",
        f"as published\n{study.published_server}",
        f"here,\nwhole window\n{study.server}",
        f"here,\nbusy time\n{study.server}",
        "our\nmethod,\nno idle",
    )


# ── the twelve ────────────────────────────────────────────────────────────────────────────────────────────────────────


def twelfth(study: StudyResult, key: tuple[str, str], table: published.Table) -> Sheet:
    """One of the study's tables, one row per file."""
    figures = study.figures
    counter, statistic = key
    name = compare.figure(counter, statistic)
    unit = {CV: "", VARIANCE: f"({UNIT[counter]})²" if UNIT[counter] else ""}.get(statistic, UNIT[counter])
    words = {CV: "coefficient of variation", VARIANCE: "variance"}.get(statistic, "mean")
    scale = {CV: 1.0, VARIANCE: SCALE[counter] ** 2}.get(statistic, SCALE[counter])
    rows = []
    for operation in operations(figures, name):
        first, while_busy = by_arm(figures, operation, name), by_arm(figures, operation, f"{name}, {compare.BUSY}")
        rows.append(
            (
                operation,
                cite(pair([first[arm].published for arm in ARMS], scale), first["plain"]),
                pair([first[arm].here for arm in ARMS], scale),
                pair([figure.here if (figure := while_busy.get(arm)) else None for arm in ARMS], scale),
                pair([first[arm].ours for arm in ARMS], scale),
            )
        )
    return Sheet(f"{table.number}. {TITLE[counter]}: {words}{f', {unit}' if unit else ''}", head(study), rows)


def server_alone(study: StudyResult) -> Sheet:
    """Processor time of the server's own processes, without anything else that runs on the machine."""
    figures = study.figures
    name = compare.figure(SERVER, published.MEAN)
    rows = []
    for operation in operations(figures, name):
        first, busy = by_arm(figures, operation, name), by_arm(figures, operation, f"{name}, {compare.BUSY}")
        here = [
            pair([arm_figures[arm].here if arm in arm_figures else None for arm in ARMS])
            for arm_figures in (first, busy)
        ]
        rows.append((operation, "not published", *here, pair([first[arm].ours for arm in ARMS])))
    return Sheet("Processor time of the server's own processes: mean, %", head(study), rows)


def operations(figures: Sequence[StudyFigure], name: str, workload: str = "") -> list[str]:
    return list(dict.fromkeys(e.operation for e in figures if e.figure == name and e.workload == workload))


def by_arm(
    figures: Sequence[StudyFigure], operation: str, name: str, load: float | None = None
) -> dict[str, StudyFigure]:
    """Figures by arm, for one client or, with `load`, for that many."""
    workload = measured.MANY if load is not None else ""
    return {
        figure.arm: figure
        for figure in figures
        if (figure.operation, figure.figure, figure.workload) == (operation, name, workload)
        and load in (None, figure.load)
    }


def pair(levels: Sequence[float | None], scale: float = 1.0) -> str:
    """`0.161 → 0.169`; `-` if neither is known."""
    if all(value is None for value in levels):
        return "-"
    words = ["-" if value is None else shown(value / scale) for value in levels]
    text = " → ".join(words)
    return text if len(text) <= MOST_PAIR else "→".join(words)


def shown(value: float) -> str:
    """Four digits above 1, three below, powers of ten instead of many zeros."""
    if value == 0:
        return "0"
    if abs(value) >= 1e6:
        return powers(value)
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 1:
        return f"{value:.4g}"
    return f"{value:.3g}" if abs(value) >= 0.001 else powers(value)


def powers(value: float) -> str:
    """`1.8e-4`."""
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def limits(cells: Sequence[Cell]) -> Iterator[Sheet]:
    """What limited each of our cells, by arm: the saturated core, link or disk, or how busy each was."""
    rows = []
    for cell in cells:
        used = [bottleneck.uses(cell, arm) for arm in ARMS]
        if cell.status == "ok" and cell.mechanism == "tls" and cell.workload == "file" and all(used):
            size = published.bytes_in_words(int(cell.factors["size"]))
            rows.append((size, f"{cell.clients}", *(in_short(uses) for uses in used)))
    if rows:
        note = (
            f'What was saturated ({100 * bottleneck.SATURATED:.0f} % busy or more); after "-:" nothing was, and how busy each was. Server and client stand for '
            "their cores. Loopback has no limit of its own. One client and the server alternate, so neither need be saturated."
        )
        if any(disturbance.state(cell) for cell in cells):
            note += f" {bottleneck.OTHERS[0].upper()}{bottleneck.OTHERS[1:]}."
        yield Sheet("What limited each cell of our method, %", ("", "clients", "http", "https"), rows, note)


# ── what it comes down to ─────────────────────────────────────────────────────────────────────────────────────────────


def added(figures: Sequence[StudyFigure]) -> Sheet:
    """The study's one result, and the same without idle time."""
    name = compare.figure(PROCESSOR, published.MEAN)
    rows = []
    for operation in operations(figures, name):
        cost, busy = (
            by_arm(figures, operation, figure_name).get("cost") for figure_name in (name, f"{name}, {compare.BUSY}")
        )
        server = by_arm(figures, operation, measured.SERVER_CPU)
        rows.append(
            (
                operation,
                cite(change(cost.published if cost else None), cost),
                change(cost.here if cost else None),
                change(busy.here if busy else None),
                pair([figure.here if (figure := server.get(arm)) else None for arm in ARMS], 1e-3),
                with_interval(server["cost"]) if server else "-",
            )
        )
    titles = ("", "published", "window", "busy", "server, here", "our method: server")
    return Sheet("What HTTPS adds to processor time, and the server's own CPU time of a fetch, ms", titles, rows)


def fetches(figures: Sequence[StudyFigure]) -> Sheet:
    """The share of a window that a fetch took, and its speed; for published ones by their own CV."""
    mean, cv = (compare.figure(NETWORK, statistic) for statistic in (published.MEAN, CV))
    rows = []
    for operation in operations(figures, mean):
        levels, scatter = by_arm(figures, operation, mean), by_arm(figures, operation, cv)
        shares = [published.share_of(scatter[arm].published or 0.0) for arm in ARMS]
        speeds = [(levels[arm].published or 0.0) / share for arm, share in zip(ARMS, shares, strict=True)]
        here = by_arm(figures, operation, measured.SHARE)
        busy = by_arm(figures, operation, f"{mean}, {compare.BUSY}")
        rows.append(
            (
                operation,
                cite(pair(shares, 0.01), scatter["plain"]),
                pair([figure.here if (figure := here.get(arm)) else None for arm in ARMS], 0.01),
                cite(pair(speeds, 1e6), levels["plain"]),
                pair([figure.here if (figure := busy.get(arm)) else None for arm in ARMS], 1e6),
            )
        )
    titles = ("", "published, by CV\n%", "here\n%", "published\nMB/s", "here\nMB/s")
    return Sheet("How much of the window was busy, and how fast the fetch was", titles, rows)


def our_method(figures: Sequence[StudyFigure]) -> Iterator[Sheet]:
    """Each file with one client, and for some the part of the cost that is due to sendfile."""
    rows = []
    for operation in operations(figures, measured.RATE):
        rate = by_arm(figures, operation, measured.RATE)
        parts = [
            by_arm(figures, operation, name).get("cost") for name in (measured.WITHOUT_SENDFILE, measured.TLS_ITSELF)
        ]
        split = [change(cost.ours, cost.figure) if cost else "" for cost in parts]
        rows.append((operation, pair([rate[arm].ours for arm in ARMS]), with_interval(rate["cost"]), *split))
    if rows:
        titles = ("", "http → https", "cost", "no sendfile", "TLS itself")
        yield Sheet("Our method, one client: files a second", titles, rows)


def many(figures: Sequence[StudyFigure]) -> Iterator[Sheet]:
    """The second table: many clients, the study's future work."""
    rows = []
    for operation in operations(figures, measured.RATE, measured.MANY):
        entries = [
            e for e in figures if (e.operation, e.figure, e.workload) == (operation, measured.RATE, measured.MANY)
        ]
        for load in sorted({entry.load for entry in entries if entry.load is not None}):
            rate, cpu = (by_arm(figures, operation, name, load) for name in (measured.RATE, measured.SERVER_CPU))
            rows.append(
                (
                    published.bytes_in_words(int(operation)),
                    f"{load:.0f}",
                    pair([rate[arm].ours for arm in ARMS]),
                    with_interval(rate["cost"]),
                    with_interval(cpu["cost"]) if "cost" in cpu else "-",
                )
            )
    if rows:
        titles = ("", "clients", "http → https", "cost", "CPU time: cost")
        yield Sheet("Many clients, our method: files a second, and the server's CPU time of one", titles, rows)
