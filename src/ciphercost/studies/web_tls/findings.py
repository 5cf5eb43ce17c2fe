"""What the published procedure could not show: `findings.md`, with what its repetition here adds. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ciphercost.estimate import bottleneck
from ciphercost.model.spec import ARMS, Arm
from ciphercost.model.study import StudyFigure, StudyRecord
from ciphercost.studies.costs import change, with_interval
from ciphercost.studies.sheet import worded
from ciphercost.studies.web_tls import measured, procedure, published
from ciphercost.studies.web_tls.counters import SERVER
from ciphercost.studies.web_tls.published import DISK, MEAN, MEMORY, NETWORK, PROCESSOR

if TYPE_CHECKING:
    from ciphercost.studies import Study

Levels = Mapping[Arm, float] | Mapping[str, float]
"""One level per arm."""


def findings(
    study: Study,
    record: StudyRecord,
    here: measured.Here,
    figures: Sequence[StudyFigure],
) -> list[str]:
    """Findings of a few sentences each, with computed figures."""
    texts = [
        window(study, here),
        busy_share(study, here),
        pace(study, record, here, figures),
        limited(record, here),
        dilution(study, here),
        others(here),
        study.finding("few-samples"),
        *map(study.finding, ("changes", "larger", "less-than", "growth", "rsa")),
        memory(study, here),
        disk(study, here),
        once(study, here, record),
        threads(here),
        sendfile(figures),
        not_asked(study, figures),
        *map(study.finding, ("patience", "elsewhere")),
    ]
    return [text for text in texts if text]


def sizes_here(here: measured.Here) -> list[int]:
    """Files that both arms have fetched."""
    return sorted({size for size, _ in here if all((size, arm) in here for arm in ARMS)})


# ── idle time ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def window(study: Study, here: measured.Here) -> str:
    """Bytes a second × a fixed window = the file."""
    text = study.finding("window")
    products = [measured.carried(run, NETWORK) / run.load["bytes"] for run in here.values()]
    if products:
        text += (
            f" Here bytes a second × window ÷ file is {min(products):.3f} to {max(products):.3f} in the {len(products)} fetches, "
            "including headers and acknowledgements."
        )
    return text


def busy_share(study: Study, here: measured.Here) -> str:
    """The coefficients of variation contain how long the fetches took."""
    text = study.finding("busy-share")
    sizes = sizes_here(here)
    if sizes:
        size = sizes[-1]
        of_window = {arm: measured.whole(here[size, arm], NETWORK)[MEAN] for arm in ARMS}
        within = {arm: measured.busy(here[size, arm], NETWORK)[MEAN] for arm in ARMS}
        text += (
            f" Here {size} MB take {arrow({arm: measured.busy_share(here[size, arm]) for arm in ARMS}, 0.01)} % of the window; bytes/s: "
            f"{percent(of_window)} over the window, {percent(within)} while busy."
        )
    return text


def pace(study: Study, record: StudyRecord, here: measured.Here, figures: Sequence[StudyFigure]) -> str:
    """A link that is slower than the server hides what encryption does to its speed."""
    text = study.finding("pace")
    sizes = sizes_here(here)
    if sizes and record.settings["link_bits"]:
        filled = {
            arm: measured.busy(here[sizes[-1], arm], NETWORK)[MEAN] * 8 / record.settings["link_bits"] for arm in ARMS
        }
        seconds = {arm: measured.server_seconds(here[sizes[-1], arm]) for arm in ARMS}
        text += f" Here {sizes[-1]} MB fill {arrow(filled, 0.01)} % of the link, at {arrow(seconds)} s of the server's CPU time."
    last = max(published.SIZES)
    if rows := [cost for cost in of(figures, measured.RATE) if cost.operation == f"{last}MB"]:
        text += f" On loopback, which has no such limit, {last} MB files a second: {with_interval(rows[0])}."
    return text


def limited(record: StudyRecord, here: measured.Here) -> str:
    """What limited the smallest and the largest fetch here. One connection can use one core at each end."""
    parts = []
    for size in sorted({*sizes_here(here)[:1], *sizes_here(here)[-1:]}):
        for arm in ARMS:
            run = here[size, arm]
            seconds = measured.busy_seconds(run)
            used = [
                bottleneck.Use("the server's core", "server", measured.server_seconds(run) / seconds),
                bottleneck.Use("the client's core", "client", run.series["client_cpu_s"][0] / seconds),
            ]
            if bits := record.settings["link_bits"]:
                filled = measured.busy(run, NETWORK)[MEAN] * 8 / bits
                used.append(bottleneck.Use(f"the link of {bits / 1e6:,.0f} Mb/s", "link", filled, "used"))
            if disk_share := run.series.get(procedure.DISK_BUSY):
                used.append(bottleneck.Use("the disk", "disk", disk_share[0]))
            parts.append(f"{size} MB {spell(arm)}: {bottleneck.said(used)}")
    if not parts:
        return ""
    return f"The four counters do not show which device was the bottleneck. Here, while a fetch was busy: {'; '.join(parts)}."


def dilution(study: Study, here: measured.Here) -> str:
    """Processor time over the window against processor time while there was work."""
    text = study.finding("dilution")
    rows = []
    for size in sizes_here(here):
        over = {arm: measured.whole(here[size, arm], SERVER)[MEAN] for arm in ARMS}
        within = {arm: measured.busy(here[size, arm], SERVER)[MEAN] for arm in ARMS}
        if over["encrypted"] > 0:
            rows.append((size, over, within))
    if rows:
        examples = "; ".join(
            f"{size} MB {arrow(over)} % over the window, {arrow(within)} % while busy"
            for size, over, within in (rows if len(rows) < 3 else [rows[0], rows[-1]])
        )
        factors = [within["encrypted"] / over["encrypted"] for _, over, within in rows]
        text += f" Here, for the server's own processes: {examples}; over HTTPS that is {min(factors):.1f} to {max(factors):.0f} times what the window shows."
    return text


def others(here: measured.Here) -> str:
    """What a counter of the whole machine includes besides the server."""
    shares = [measured.whole(run, PROCESSOR)[MEAN] - measured.whole(run, SERVER)[MEAN] for run in here.values()]
    if not shares:
        return ""
    server_shares = [measured.whole(run, SERVER)[MEAN] for run in here.values()]
    return (
        f"A counter of the whole machine includes all of its other work: here {min(shares):.3g} to {max(shares):.3g} % of processor time in a window "
        f"belongs to no server process, and {min(server_shares):.3g} to {max(server_shares):.3g} % does. "
        "The study's figures also include whatever its machine did besides serving."
    )


# ── the other counters ────────────────────────────────────────────────────────────────────────────────────────────────


def memory(study: Study, here: measured.Here) -> str:
    """The direction of memory, against the table's heading."""
    text = study.finding("memory")
    sizes = sizes_here(here)
    if sizes:
        levels = {size: {arm: measured.whole(here[size, arm], MEMORY)[MEAN] for arm in ARMS} for size in sizes}
        more = sum(row["encrypted"] > row["plain"] for row in levels.values())
        text += f" Here it is higher with TLS in {more} of {len(sizes)}."
    return text


def disk(study: Study, here: measured.Here) -> str:
    """A difference in a counter that encryption in transit can't affect."""
    text = study.finding("disk")
    sizes = [size for size in sizes_here(here) if all(measured.whole(here[size, arm], DISK)[MEAN] > 0 for arm in ARMS)]
    if sizes:
        changes = [
            measured.whole(here[size, "encrypted"], DISK)[MEAN] / measured.whole(here[size, "plain"], DISK)[MEAN]
            for size in sizes
        ]
        text += (
            f" Here its mean with TLS is {min(changes):.2g} to {max(changes):.3g} times that without, in {len(sizes)} files, each read from the disk; "
            "this includes whatever else uses the disk."
        )
    return text


def once(study: Study, here: measured.Here, record: StudyRecord) -> str:
    """One arm after the other, each file once, nothing proven."""
    text = study.finding("once")
    if not here:
        return text
    negotiated = " ".join(record.encryption.get(name, "") for name in ("protocol", "cipher")).strip()
    return f"{text} Here both were proven, and the server's log confirms each of {len(here)} fetches ({negotiated})."


def threads(here: measured.Here) -> str:
    """Total, user and kernel time of each server thread for the largest file."""
    sizes = sizes_here(here)
    if not sizes:
        return ""
    size, parts = sizes[-1], []
    for arm in ARMS:
        by_thread = measured.threads(here[size, arm])
        shown = [
            f"{name} {seconds:.3f} s (user {user:.2f}, kernel {system:.2f})"
            for name, (seconds, user, system) in list(by_thread.items())[:2]
        ]
        more = f" and {len(by_thread) - len(shown)} more" if len(by_thread) > len(shown) else ""
        parts.append(f"{spell(arm)} {worded(shown) or 'nothing'}{more}")
    return f"The study names CPU time by thread and mode as future work. Here, for {size} MB: {'; '.join(parts)}."


# ── what was not asked ────────────────────────────────────────────────────────────────────────────────────────────────


def sendfile(figures: Sequence[StudyFigure]) -> str:
    """How the cost splits, if there is a control."""
    rows = []
    for cost in of(figures, measured.RATE):
        parts = {name: of(figures, name, cost.operation) for name in (measured.WITHOUT_SENDFILE, measured.TLS_ITSELF)}
        if all(parts.values()):
            without, itself = (parts[name][0] for name in parts)
            rows.append(
                f"{cost.operation} {with_interval(cost)}, of it {with_interval(without)} and {with_interval(itself)}"
            )
    if not rows:
        return ""
    return (
        "TLS in the server's own memory can't use sendfile, so part of its cost is not cryptography. Files a second with TLS, and of that HTTP without "
        f"sendfile and TLS itself: {'; '.join(rows)}."
    )


def not_asked(study: Study, figures: Sequence[StudyFigure]) -> str:
    """Handshakes, concurrency, small files."""
    text = study.finding("not-asked")
    rows = [
        cost for cost in figures if (cost.figure, cost.arm, cost.workload) == (measured.RATE, "cost", measured.MANY)
    ]
    if not rows:
        return text
    costs_in_words = "; ".join(
        f"{published.bytes_in_words(int(cost.operation))} to {cost.load:.0f} {with_interval(cost)}"
        for cost in rows
        if cost.load is not None
    )
    return f"{text} By our method, files a second: {costs_in_words}."


def of(figures: Sequence[StudyFigure], name: str, operation: str = "") -> list[StudyFigure]:
    """Costs by our method for one client."""
    return [
        cost
        for cost in figures
        if (cost.figure, cost.arm, cost.workload) == (name, "cost", "") and operation in ("", cost.operation)
    ]


# ── words ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def percent(both: Levels) -> str:
    """`5.0 % more`, from two arms' levels."""
    return change(both["encrypted"] / both["plain"]) if both["plain"] else "-"


def arrow(both: Levels, scale: float = 1.0) -> str:
    return " → ".join(f"{both[arm] / scale:.3g}" for arm in ARMS)


def spell(arm: str) -> str:
    return "over HTTPS" if arm == "encrypted" else "over HTTP"
