"""Build the figures and the split from the published milliseconds, the procedure's record and our cells. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciphercost.model.result import Cell, Estimate
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.studies import pairs, ran_on
from ciphercost.studies.jdbc_tls import findings, loops, measured, published, setups
from ciphercost.studies.jdbc_tls.loops import CAPTURED
from ciphercost.studies.jdbc_tls.measured import Known, Once, Packets, Round, Warm
from ciphercost.studies.jdbc_tls.procedure import COLD, JAVA, LIBRARY, WARM
from ciphercost.studies.jdbc_tls.setups import CALLS, EVERY, NEW, OLD, ON_THE_WIRE, SERVER_VERSION, UPDATE, Setup

if TYPE_CHECKING:
    from ciphercost.studies import Study

LOOP = "the loop"
UPGRADE, DRIVER, ENCRYPTION = "driver and TLS", "driver alone", "TLS alone"
SPLIT = "split"
"""Prefix of a split's figures."""
SUM, LEFT = "the sum", "left"
WARM_LONG = "warm, by turns"
SENT, ANSWERED = "insert on the wire", "its answer on the wire"


def compare(study: Study, record: StudyRecord, cells: list[Cell]) -> StudyResult:
    """Published, repeated and our own figures side by side; none of arms that were not proven."""
    unproven = pairs.unproven(record)
    once = {} if unproven else measured.once(record)
    packets = {} if unproven else measured.packets(record)
    rounds = [] if unproven else measured.rounds(record)
    warm = {call: measured.warm(cells, call) for call in CALLS}
    splits = {call: measured.split(rounds, warm[call], call) for call in CALLS}
    figures = [
        *loop(study, once),
        *wire(study, record, packets),
        *(figure for call in CALLS for figure in levels(rounds, warm[call], call)),
        *(figure for call in CALLS for figure in ratios(study, once, rounds, warm[call], call)),
        *(figure for call, upgrade_split in splits.items() if upgrade_split for figure in split(upgrade_split, call)),
    ]
    return study.result(
        ran_on("MariaDB", record, cells),
        procedure_text(record, once, rounds, unproven),
        figures,
        findings.findings(study, findings.Measurements(record, once, rounds, warm, splits, cells, packets)),
        complete=record.complete and not unproven,
    )


def procedure_text(record: StudyRecord, once: Once, rounds: list[Round], unproven: str) -> str:
    """The procedure as it ran here, or why it didn't."""
    if reason := pairs.not_run(record, unproven, began=bool(once)):
        return reason
    encryption = " ".join(record.encryption.get(key, "") for key in ("protocol", "cipher")).strip()
    chosen_loop, java, library = loops.of(record), record.tools.get(JAVA, ""), record.tools.get(LIBRARY, "")
    suite = (
        "The post's record sizes fit any suite of AES-CBC with HMAC-SHA256; 128 bits and ECDHE are our choice"
        if chosen_loop is CAPTURED
        else f"{NEW} knows no newer version; Java chose the suite"
    )
    return (
        f"a loop of {record.settings['rows']:,.0f} {chosen_loop.words}, in a new {java or 'Java'} each time. "
        f"One run of each setup in the published order, by {UPDATE}(); then {len(rounds)} rounds of all setups in random order, "
        f"cold and warm. Java and server share one core. MariaDB {record.version} announces itself as {SERVER_VERSION}, so "
        f"both drivers treat it as MySQL: with a server that announces MariaDB, {NEW} omits queries that it sends to MySQL, and "
        f"MySQL itself no longer accepts {OLD}. The server writes its log at each commit and flushes it each second. "
        f"TLS is {encryption}{f' ({library} on the server)' if library else ''}. {suite}. As in the driver's default, no certificate is checked"
        f"{'' if record.complete else '; it was cut off'}"
    )


def loop(study: Study, once: Once) -> list[StudyFigure]:
    """Milliseconds of the published runs and of the same here, for as many rows as each run took."""
    return [
        StudyFigure(
            UPDATE,
            LOOP,
            "ms",
            setup.arm,
            published=printed,
            here=measured.us(once[setup], COLD) * once[setup].load["rows"] / 1e3 if setup in once else None,
            workload=setup.name,
            source=published.POST,
        )
        for setup, printed in published.times(study).items()
    ]


def wire(study: Study, record: StudyRecord, packets: dict[Setup, Packets]) -> list[StudyFigure]:
    """Bytes of an insert and of its answer, summed over messages: MySQL packets without TLS, TLS records with it."""
    insert, answer = published.packets(study)
    figures = []
    for setup in (candidate for candidate in ON_THE_WIRE if candidate in packets):
        seen, encrypted = packets[setup], setup.arm == "encrypted"
        # The post captured the new driver with TLS; the MySQL packets in those records are the same for any driver.
        printed = loops.of(record) is CAPTURED and setup.call == UPDATE
        for name, of, sizes in ((SENT, insert, seen.sent), (ANSWERED, answer, seen.received)):
            figures.append(
                StudyFigure(
                    setup.call,
                    name,
                    "bytes",
                    setup.arm,
                    published=float(of.record if encrypted else of.mysql) if printed else None,
                    here=float(sum(sizes)),
                    n=len(sizes),
                    of="messages",
                    workload=setup.name,
                    source=published.DEBUG if printed else "",
                )
            )
    return figures


def levels(rounds: list[Round], warm: Warm | None, call: str) -> list[StudyFigure]:
    """µs per insert: cold and warm from the rounds, long warm from our cells."""
    figures = []
    for setup in (candidate for candidate in EVERY if candidate.call == call):
        for state in (COLD, WARM):
            known = measured.over(rounds, lambda runs, s=setup, t=state: measured.us(runs[s], t))  # type: ignore[misc]
            if known:
                figures.append(_figure(setup, state, known))
        if warm:
            value = warm.old + (0.0 if setup == setups.before(call) else warm.in_clear.value)
            value += warm.tls.value if setup == setups.after(call) else 0.0
            figures.append(StudyFigure(call, WARM_LONG, "µs", setup.arm, ours=value, workload=setup.name))
    return figures


def _figure(setup: Setup, name: str, known: Known) -> StudyFigure:
    return StudyFigure(
        setup.call,
        name,
        "µs",
        setup.arm,
        ours=known.value,
        low=known.low,
        high=known.high,
        n=known.n,
        workload=setup.name,
    )


def ratios(study: Study, once: Once, rounds: list[Round], warm: Warm | None, call: str) -> list[StudyFigure]:
    """Time ratios of the upgrade, of the driver alone and of TLS alone: cold, warm, and long warm."""
    old, new, clear = setups.before(call), setups.after(call), setups.after_in_clear(call)
    printed = published.times(study)
    figures = []
    for name, above, below in ((UPGRADE, new, old), (DRIVER, clear, old), (ENCRYPTION, new, clear)):
        for state in (COLD, WARM):
            published_ratio = (
                printed[above] / printed[below] if state == COLD and above in printed and below in printed else None
            )
            both = state == COLD and above in once and below in once
            here = measured.us(once[above], COLD) / measured.us(once[below], COLD) if both else None
            figures.append(
                _cost(call, f"{name}, {state}", measured.ratio(rounds, above, below, state), published_ratio, here)
            )
    if warm:
        figures.append(_cost(call, f"{UPGRADE}, {WARM_LONG}", warm.whole))
        figures.append(_cost(call, f"{DRIVER}, {WARM_LONG}", warm.driver))
        in_all = warm.old + warm.in_clear.value
        tls = Estimate(1 + warm.tls.value / in_all, 1 + warm.tls.low / in_all, 1 + warm.tls.high / in_all, n=warm.tls.n)
        figures.append(_cost(call, f"{ENCRYPTION}, {WARM_LONG}", tls))
    return figures


def _cost(
    call: str, name: str, ours: Estimate | None, printed: float | None = None, here: float | None = None
) -> StudyFigure:
    return StudyFigure(
        call,
        name,
        "ratio",
        "cost",
        published=printed,
        here=here,
        ours=ours.ratio if ours else None,
        low=ours.low if ours else None,
        high=ours.high if ours else None,
        n=ours.n if ours else 0,
        source=published.POST if printed is not None else "",
    )


def split(of: measured.Split, call: str) -> list[StudyFigure]:
    """µs per insert that the upgrade adds in a cold Java: the whole, the parts, their sum, and the remainder."""
    every = {measured.WHOLE: of.whole, **of.parts, SUM: of.sum, LEFT: of.left}
    return [
        StudyFigure(
            call,
            f"{SPLIT}: {name}",
            "µs",
            "cost",
            ours=known.value,
            low=known.low,
            high=known.high,
            n=known.n,
        )
        for name, known in every.items()
    ]
