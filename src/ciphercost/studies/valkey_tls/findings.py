"""What the published run could not show, computed from its own figures and from its repetition here. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ciphercost.model.result import Cell
from ciphercost.model.study import StudyRecord
from ciphercost.studies import in_turn
from ciphercost.studies.costs import bounds, change
from ciphercost.studies.valkey_tls import published

if TYPE_CHECKING:
    from ciphercost.studies import Study

Ours = Mapping[tuple[str, int], Cell]
"""Our cells, by operation and clients."""
ROUND_TRIP_US = 500.0
"""A round trip within one data centre, for the example of what the same cost is over a network."""
UNPROVEN = (
    "--tls-skip-verify checks no certificate, and neither protocol nor cipher suite is printed: nothing shows what the second port negotiated. "
    "Here both arms are proven before each load, and our method's connections check chain and name."
)
CPU = (
    "No CPU time was printed, so the figures can't tell what TLS costs the server from what it costs the client: one waits for the other, and "
    "the rate contains both. Our method counts the two apart."
)


def findings(study: Study, record: StudyRecord, ours: Ours) -> list[str]:
    """Findings of a few sentences each, with computed figures."""
    found = [
        one_run(study, record),
        waiting(study),
        UNPROVEN,
        CPU,
        busy(ours),
        missed(study),
        without_a_plain_arm(study),
    ]
    return [each for each in found if each]


def one_run(study: Study, record: StudyRecord) -> str:
    line = published.lines(study)["sets"]
    text = (
        f"One run of each arm, one after the other, so {change(in_turn.ratio(line.encrypted, line.plain), 'sets/s')} has no interval, and whatever "
        "else changed between the two runs counts as TLS."
    )
    widest = in_turn.widest(record)
    if widest is not None:
        text += f" Here the fastest run of one command and arm, compared with its slowest: {change(widest, 'sets/s')}."
    return text


def waiting(study: Study) -> str:
    """The published rates as times, and the same time over a network."""
    lines = published.lines(study)
    sets, every = lines["sets"], lines["all"]
    if sets.encrypted is None:
        return ""
    plain, tls = 1e6 / every.plain, 1e6 / (2 * sets.encrypted)
    over = (ROUND_TRIP_US + tls) / (ROUND_TRIP_US + plain)
    return (
        f"One client that waits for each answer measures a round trip: {plain:.1f} µs without TLS and, if it read as often as it wrote, "
        f"{tls:.1f} µs with it. So TLS added {tls - plain:.1f} µs, and the percentage says how short a round trip over loopback is: with "
        f"{ROUND_TRIP_US:.0f} µs more between client and server, the same {tls - plain:.1f} µs would be {change(over)} time. It is neither "
        "what a busy server loses nor what it pays in CPU time."
    )


def busy(ours: Ours) -> str:
    """What a busy server loses here."""
    said = []
    for (name, clients), cell in sorted(ours.items(), key=lambda each: (each[0][0], each[0][1])):
        rate = cell.overhead.get("throughput")
        others = [number for other, number in ours if other == name]
        if rate and len(others) > 1:
            said.append(f"{name} with {clients} client{'s' * (clients > 1)} {bounds(rate.low, rate.high, 'sets/s')}")
    if len(said) < 2:
        return ""
    return f"The same commands here, by the number of clients (95 %): {'; '.join(said)}."


def missed(study: Study) -> str:
    lines = published.lines(study)
    share = lines["gets that missed"].plain / lines["gets"].plain
    return (
        f"The published store was empty: {100 * share:.1f} % of the gets without TLS found no value, so hardly any answer carried one. Here every "
        "get returns 32 bytes."
    )


def without_a_plain_arm(study: Study) -> str:
    said = []
    for each in published.elsewhere(study):
        changes = ", ".join(f"{name} {before:,.0f} → {after:,.0f}" for name, before, after in each.figures)
        said.append(f'{each.thread} ("{each.title}"): {changes}')
    return (
        f"Two threads that are quoted for the cost of TLS compare two versions of a server, both with TLS: {'; '.join(said)} operations/s. They have "
        "no arm without TLS, so they don't say what it costs. A loss of up to 36 % is quoted "
        "elsewhere; we did not find its source and leave it out."
    )
