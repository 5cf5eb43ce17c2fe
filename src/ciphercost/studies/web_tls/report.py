"""report: a StudyResult -> the twelve tables with four columns, what HTTPS adds, the second table of many clients; 80 columns wide. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ciphercost import studies
from ciphercost.layout import row, wrap
from ciphercost.model import ARMS, StudyFigure, StudyResult
from ciphercost.studies.table import percent, signed
from ciphercost.studies.web_tls import compare, measured, published
from ciphercost.studies.web_tls.counters import SERVER
from ciphercost.studies.web_tls.published import CV, DISK, MEMORY, NETWORK, PROCESSOR, VARIANCE
from ciphercost.words import decimals_of_width

SCALE = {PROCESSOR: 1.0, MEMORY: 1e6, NETWORK: 1e6, DISK: 1.0}
UNIT = {PROCESSOR: "%", MEMORY: "MB", NETWORK: "MB/s", DISK: ""}
TITLE = {
    PROCESSOR: "processor time",
    MEMORY: "available memory",
    NETWORK: "network bytes a second",
    DISK: "average disk queue length",
}
LABEL, COLUMN = 8, 18
MOST_PAIR = COLUMN - 1


def render(study: StudyResult) -> str:
    """The study's tables as it numbers them, then what they come down to, then what they could not have told."""
    return "\n".join(_lines(study))


def _lines(study: StudyResult) -> Iterator[str]:
    yield from wrap(study.title)
    yield ""
    yield "Twelve tables, as the study numbers them; each figure: http → https."
    yield columns("", "as published", "the same here", "… busy time", "our method")
    yield columns("", "", "whole window", "alone", "loopback")
    yield columns("", study.published_server, study.server, study.server, "no idle time")
    for key, table in published.tables(studies.get(study.study)).items():
        yield from twelfth(study.figures, key, table)
        if key == (PROCESSOR, CV):
            yield from server_alone(study.figures)
    yield from added(study.figures)
    yield from fetches(study.figures)
    yield from our_method(study.figures)
    yield from many(study.figures)
    yield ""
    yield from wrap(f"the same procedure here: {study.procedure}")
    yield ""
    yield from wrap(
        "our method: both arms by turns in mirrored order over kept connections on loopback, the next request as soon as the answer is there, "
        "every session on a server started anew; 95 % intervals by t over sessions. Its counters are taken over slices, in which nothing is "
        "idle, and its processor time has the client's in it"
    )
    yield ""
    yield "What the published procedure could not have told:"
    for finding in study.findings:
        yield from wrap(f"- {finding}", "", "  ")


def columns(label: str, *cells: str) -> str:
    ends = range(LABEL + COLUMN, LABEL + COLUMN * (len(cells) + 1), COLUMN)
    return "\n".join(row((label, 0), *((each, -end) for each, end in zip(cells, ends, strict=True))))


# ── the twelve ────────────────────────────────────────────────────────────────────────────────────────────────────────


def twelfth(figures: Sequence[StudyFigure], key: tuple[str, str], table: published.Table) -> Iterator[str]:
    """One of the study's tables, a row a file."""
    counter, statistic = key
    name = compare.figure(counter, statistic)
    unit = {CV: "", VARIANCE: f"({UNIT[counter]})²" if UNIT[counter] else ""}.get(statistic, UNIT[counter])
    words = {CV: "coefficient of variation", VARIANCE: "variance"}.get(statistic, "mean")
    yield f"{table.number}. {TITLE[counter].upper()}: {words}{f', {unit}' if unit else ''}"
    scale = {CV: 1.0, VARIANCE: SCALE[counter] ** 2}.get(statistic, SCALE[counter])
    for operation in operations(figures, name):
        first, while_busy = by_arm(figures, operation, name), by_arm(figures, operation, f"{name}, {compare.BUSY}")
        yield columns(
            f"  {operation}",
            pair([first[arm].published for arm in ARMS], scale),
            pair([first[arm].here for arm in ARMS], scale),
            pair([each.here if (each := while_busy.get(arm)) else None for arm in ARMS], scale),
            pair([first[arm].ours for arm in ARMS], scale),
        )


def server_alone(figures: Sequence[StudyFigure]) -> Iterator[str]:
    """Processor time of the server's own processes: what else runs on the machine is not in it."""
    name = compare.figure(SERVER, published.MEAN)
    yield "  PROCESSOR TIME OF THE SERVER'S OWN PROCESSES: mean, %"
    for operation in operations(figures, name):
        first, busy = by_arm(figures, operation, name), by_arm(figures, operation, f"{name}, {compare.BUSY}")
        here = [pair([each[arm].here if arm in each else None for arm in ARMS]) for each in (first, busy)]
        yield columns(f"  {operation}", "not published", *here, pair([first[arm].ours for arm in ARMS]))


def operations(figures: Sequence[StudyFigure], name: str, workload: str = "") -> list[str]:
    return list(dict.fromkeys(e.operation for e in figures if e.figure == name and e.workload == workload))


def by_arm(
    figures: Sequence[StudyFigure], operation: str, name: str, load: float | None = None
) -> dict[str, StudyFigure]:
    """Of one client, unless `load` says of how many."""
    workload = measured.MANY if load is not None else ""
    return {
        each.arm: each
        for each in figures
        if (each.operation, each.figure, each.workload) == (operation, name, workload) and load in (None, each.load)
    }


def pair(levels: Sequence[float | None], scale: float = 1.0) -> str:
    """`0.161 → 0.169`; `-` where nothing is known."""
    if all(each is None for each in levels):
        return "-"
    words = ["-" if each is None else shown(each / scale) for each in levels]
    text = " → ".join(words)
    return text if len(text) <= MOST_PAIR else "→".join(words)


def shown(value: float) -> str:
    """Four digits of what is above 1, three of what is below, powers of ten where there would be many zeros."""
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


# ── what it comes down to ─────────────────────────────────────────────────────────────────────────────────────────────


def added(figures: Sequence[StudyFigure]) -> Iterator[str]:
    """The study's one result, and what becomes of it once idle time is left out."""
    name = compare.figure(PROCESSOR, published.MEAN)
    yield ""
    yield "WHAT HTTPS ADDS TO PROCESSOR TIME, and the server's own CPU time of a fetch, ms"
    yield f"{'':<8}{'published':>10}{'window':>9}{'busy':>9}{'server, here':>18}{'our method: server':>26}"
    for operation in operations(figures, name):
        cost, busy = (by_arm(figures, operation, each).get("cost") for each in (name, f"{name}, {compare.BUSY}"))
        server = by_arm(figures, operation, measured.SERVER_CPU)
        yield from row(
            (f"  {operation}", 0),
            (percent(cost.published if cost else None), -18),
            (points(cost), -27),
            (points(busy), -36),
            (pair([each.here if (each := server.get(arm)) else None for arm in ARMS], 1e-3), -54),
            (bounded(server["cost"], 26) if server else "-", -80),
        )


def points(cost: StudyFigure | None) -> str:
    """`+12 %` here."""
    return f"{signed((cost.here - 1) * 100, 0)} %" if cost and cost.here is not None else "-"


def bounded(cost: StudyFigure, width: int) -> str:
    """`-12.3 % (-13.1 to -11.4)` with the digits that interval and size let one trust; an interval that fills no column says nothing."""
    if cost.ours is None or cost.low is None or cost.high is None:
        return percent(cost.ours)
    digits = 0 if cost.ours >= 2 else decimals_of_width((cost.high - cost.low) * 100)
    ratio, low, high = (signed((each - 1) * 100, digits) for each in (cost.ours, cost.low, cost.high))
    text = f"{ratio} % ({low} to {high})"
    return text if len(text) < width else f"{ratio} % (too wide)"


def fetches(figures: Sequence[StudyFigure]) -> Iterator[str]:
    """How much of a window was a fetch, and how fast it went: published ones by their own CV."""
    yield ""
    yield "HOW MUCH OF THE WINDOW WAS BUSY, %, and MB/s while it was"
    yield columns("", "published, by CV", "here", "published: MB/s", "here: MB/s")
    mean, cv = (compare.figure(NETWORK, each) for each in (published.MEAN, CV))
    for operation in operations(figures, mean):
        rows, scatter = by_arm(figures, operation, mean), by_arm(figures, operation, cv)
        shares = [published.share_of(scatter[arm].published or 0.0) for arm in ARMS]
        speeds = [(rows[arm].published or 0.0) / share for arm, share in zip(ARMS, shares, strict=True)]
        here = by_arm(figures, operation, measured.SHARE)
        busy = by_arm(figures, operation, f"{mean}, {compare.BUSY}")
        yield columns(
            f"  {operation}",
            pair(shares, 0.01),
            pair([each.here if (each := here.get(arm)) else None for arm in ARMS], 0.01),
            pair(speeds, 1e6),
            pair([each.here if (each := busy.get(arm)) else None for arm in ARMS], 1e6),
        )


def our_method(figures: Sequence[StudyFigure]) -> Iterator[str]:
    """Each file to one client, and of some what part of the cost is sendfile's."""
    found = operations(figures, measured.RATE)
    if not found:
        return
    yield ""
    yield "OUR METHOD, one client: files a second"
    yield f"{'':<8}{'http → https':>17}{'cost':>25}{'no sendfile':>15}{'TLS itself':>15}"
    for operation in found:
        rate = by_arm(figures, operation, measured.RATE)
        parts = [
            by_arm(figures, operation, each).get("cost") for each in (measured.WITHOUT_SENDFILE, measured.TLS_ITSELF)
        ]
        yield from row(
            (f"  {operation}", 0),
            (pair([rate[arm].ours for arm in ARMS]), -25),
            (bounded(rate["cost"], 25), -50),
            *((percent(each.ours) if each else "", end) for each, end in zip(parts, (-65, -80), strict=True)),
        )


def many(figures: Sequence[StudyFigure]) -> Iterator[str]:
    """The second table: what the study asks for next."""
    found = operations(figures, measured.RATE, measured.MANY)
    if not found:
        return
    yield ""
    yield "MANY CLIENTS, our method: files a second, and the server's CPU time of one"
    yield f"{'':<8}clients{'http → https':>15}{'cost':>26}{'CPU time: cost':>24}"
    for operation in found:
        own = [e for e in figures if (e.operation, e.figure, e.workload) == (operation, measured.RATE, measured.MANY)]
        for load in sorted({each.load for each in own if each.load is not None}):
            rate, cpu = (by_arm(figures, operation, each, load) for each in (measured.RATE, measured.SERVER_CPU))
            yield from row(
                (f"  {published.bytes_in_words(int(operation))}", 0),
                (f"{load:.0f}", -14),
                (pair([rate[arm].ours for arm in ARMS]), -30),
                (bounded(rate["cost"], 26), -56),
                (bounded(cpu["cost"], 24) if "cost" in cpu else "-", -80),
            )
