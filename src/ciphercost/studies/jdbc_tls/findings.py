"""What one run each could not show, from the published figures and from those here. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ciphercost.estimate.notation import of_what
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.study import StudyFigure, StudyRecord
from ciphercost.studies.costs import TOO_WIDE, change, too_wide, with_interval
from ciphercost.studies.jdbc_tls import loops, measured, published, setups
from ciphercost.studies.jdbc_tls.loops import CAPTURED
from ciphercost.studies.jdbc_tls.measured import Once, Packets, Round, Split, Warm
from ciphercost.studies.jdbc_tls.procedure import COLD, JAVA, WARM
from ciphercost.studies.jdbc_tls.setups import EXECUTE, LOCAL, NEW, OLD, UPDATE, Setup

if TYPE_CHECKING:
    from ciphercost.studies import Study


SAME = 0.1
"""Share by which two times may differ and still count as equal."""


class Measurements(NamedTuple):
    """What was measured here."""

    record: StudyRecord
    once: Once
    rounds: Sequence[Round]
    warm: Mapping[str, Warm | None]
    splits: Mapping[str, Split | None]
    cells: Sequence[Cell]
    packets: Mapping[Setup, Packets]


def findings(study: Study, seen: Measurements) -> list[str]:
    return [
        *one_each(study, seen.once, seen.rounds),
        *warming(seen.splits[UPDATE], seen.rounds),
        *driver_alone(study, seen.rounds, seen.warm[UPDATE]),
        *on_the_wire(study, seen),
        *which_call(seen),
        *asking(seen.warm, seen.splits[EXECUTE]),
        *unverified(seen.cells),
        *map(study.finding, ("suites", "unknown")),
        *another_java(seen.record),
    ]


def one_each(study: Study, once: Once, rounds: Sequence[Round]) -> Iterator[str]:
    """How far starts of one setup differ, beside the conclusions from one start each."""
    printed = published.times(study)
    old, new, clear = setups.before(UPDATE), setups.after(UPDATE), setups.after_in_clear(UPDATE)
    if len(rounds) < measured.LEAST:
        return
    spread = [measured.us(runs[old], COLD) for runs in rounds]
    if old in once:
        spread.append(measured.us(once[old], COLD))
    apart = max(spread) / min(spread)
    yield (
        f"How much of a difference is chance: the post ran each setup once. Here the slowest of {len(spread)} starts of {OLD} takes "
        f"{of_what(change(apart), 'time')} compared with the fastest, and its {of_what(change(printed[clear] / printed[old]), 'time')} "
        "for the driver alone rests on one start of each."
    )
    whole = measured.ratio(rounds, new, old, COLD)
    if whole and too_wide(whole.low, whole.high):
        yield (
            f"Its {change(printed[new] / printed[old])} for driver and TLS can't be compared with cold starts here: the 95 % interval of "
            f"{len(rounds)} starts of each setup is too wide. More --runs make it narrower."
        )
    elif whole:
        agrees = whole.low <= printed[new] / printed[old] <= whole.high
        yield (
            f"Its {change(printed[new] / printed[old])} for driver and TLS is {'within' if agrees else 'outside'} the 95 % interval of cold "
            f"starts here: {_cost(whole)}."
        )


def warming(of: Split | None, rounds: Sequence[Round]) -> Iterator[str]:
    """A loop in a new process measures mostly the start of its JVM."""
    if of is None or of.whole.value <= 0:
        return
    start, tls = of.parts[measured.WARMING], of.parts[measured.TLS]
    new, clear = setups.after(UPDATE), setups.after_in_clear(UPDATE)
    crypto = measured.over(rounds, lambda runs: measured.start_up(runs[new]) - measured.start_up(runs[clear]))
    tls_share = (
        f" ({100 * crypto.value / of.parts[measured.WARMING].value:.0f} % of it with TLS alone)"
        if crypto and crypto.excludes_zero
        else ""
    )
    yield (
        f"It timed the start of a JVM: the upgrade adds {of.whole.value:.0f} µs ± {of.whole.half:.0f} to an insert here, of which "
        f"{start.value:.0f} µs ± {start.half:.0f} are code that runs before it is compiled{tls_share}; TLS costs {tls.value:.0f} µs ± {tls.half:.0f} "
        "once it is compiled. A service that stays up pays the first part once."
    )


def driver_alone(study: Study, rounds: Sequence[Round], warm: Warm | None) -> Iterator[str]:
    """Whether the newer driver is also slower without TLS in a warm JVM."""
    printed = published.times(study)
    old, clear = setups.before(UPDATE), setups.after_in_clear(UPDATE)
    cold = measured.ratio(rounds, clear, old, COLD)
    settled = warm.driver if warm else measured.ratio(rounds, clear, old, WARM)
    if cold is None or settled is None:
        return
    same = 1 - SAME < settled.low <= 1 <= settled.high < 1 + SAME
    yield (
        f"Why {NEW} is slower without TLS too ({of_what(change(printed[clear] / printed[old]), 'time')}): by {UPDATE}() it sends what {OLD} sends; its time "
        f"compared with that: cold {_cost(cold)}, warm {_cost(settled)}"
        + (", so the only difference is more code to warm up." if same else ".")
    )


def asking(warm: Mapping[str, Warm | None], of: Split | None) -> Iterator[str]:
    """Which call sends which additional statements."""
    execute = warm[EXECUTE]
    if execute is None or not execute.asks or of is None:
        return
    asked = "; ".join(f"{count:g} × {name}" for name, count in execute.asks.items())
    update = warm[UPDATE]
    quiet = f" By {UPDATE}() it sends none." if update is not None and not update.asks else ""
    chatter = of.parts[measured.CHATTER]
    yield (
        f"What the call changes: by {EXECUTE}() {NEW} queries the server before each insert ({asked}), which costs {chatter.value:.0f} µs "
        f"({chatter.low:.0f} to {chatter.high:.0f}) without TLS and one more encrypted round trip with TLS; {LOCAL}=true stops it.{quiet}"
    )


def unverified(cells: Sequence[Cell]) -> Iterator[str]:
    """The upgrade encrypts but verifies nobody."""
    if any(cell.encryption.get("verified") == "no" for cell in cells if cell.mechanism == "tls"):
        yield (
            f"What the upgrade gains: by default {NEW} encrypts but checks no certificate, so anyone between client and server can still read everything. "
            "sslMode=VERIFY_IDENTITY checks it, once per connection."
        )


def on_the_wire(study: Study, seen: Measurements) -> Iterator[str]:
    """Whether an insert and its OK here are those that the post captured."""
    packets = seen.packets.get(setups.after(UPDATE))
    if packets is None or loops.of(seen.record) is not CAPTURED:
        return
    printed = tuple(captured.record for captured in published.packets(study))
    wanted = f"TLS records of {printed[0]} and {printed[1]} bytes for an insert and its OK"
    if (packets.sent, packets.received) == tuple((size,) for size in printed):
        yield f"The same bytes: the post's debug output has {wanted}; a relay here saw the same sizes."
        return
    here = " and ".join(" + ".join(map(str, sizes)) or "none" for sizes in packets)
    yield f"! Not the same bytes: the post's debug output has {wanted}; a relay here saw {here}."


def which_call(seen: Measurements) -> Iterator[str]:
    """What the capture says about the call; an inference."""
    update, execute = (seen.packets.get(setups.after(call)) for call in (UPDATE, EXECUTE))
    if update is None or execute is None or not update.single or execute.single:
        return
    yield (
        f"Which call the post's loop made is not published, but in its debug output the next insert follows an OK directly. Here "
        f"{NEW} does that by {UPDATE}(); by {EXECUTE}() an insert takes {len(execute.sent)} messages to the server and {len(execute.received)} "
        f"back. So the loop probably called {UPDATE}(), or {EXECUTE}() with {LOCAL}=true."
    )


def another_java(record: StudyRecord) -> Iterator[str]:
    """The JVM is not the one of the post's time."""
    java = record.tools.get(JAVA, "")
    if java and not java.startswith("Java 1.8"):
        yield (
            f"Another Java: the debug output has the form of Java 8's (an inference), and here it is {java}. Their compilers and TLS "
            "libraries differ, and so does how long a cold start stays slow."
        )


def _cost(estimate: Estimate) -> str:
    text = with_interval(
        StudyFigure("", "time", "ratio", "cost", ours=estimate.ratio, low=estimate.low, high=estimate.high)
    )
    return f"an interval that is {TOO_WIDE}" if text == TOO_WIDE else text
