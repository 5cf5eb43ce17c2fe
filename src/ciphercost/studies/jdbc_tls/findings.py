"""findings: what one run each could not have told, from the published figures and from those here. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ciphercost.model import Cell
from ciphercost.studies.jdbc_tls import measured, published, setups
from ciphercost.studies.jdbc_tls.measured import Once, Round, Split, Warm
from ciphercost.studies.jdbc_tls.procedure import COLD, WARM
from ciphercost.studies.jdbc_tls.setups import EXECUTE, LOCAL, NEW, OLD, UPDATE

if TYPE_CHECKING:
    from ciphercost.studies import Study


SAME = 0.1
"""Within so much of each other two times are called alike."""


def findings(
    study: Study,
    once: Once,
    rounds: Sequence[Round],
    warm: Mapping[str, Warm | None],
    splits: Mapping[str, Split | None],
    cells: Sequence[Cell],
) -> list[str]:
    return [
        *one_each(study, once, rounds),
        *warming(splits[UPDATE], rounds),
        *driver_alone(study, rounds, warm[UPDATE]),
        *asking(warm, splits[EXECUTE]),
        *unverified(cells),
        *not_the_same_loop(study),
    ]


def one_each(study: Study, once: Once, rounds: Sequence[Round]) -> Iterator[str]:
    """How far starts of one setup lie apart, beside what is told from one of each."""
    printed = published.times(study)
    old, new, clear = setups.before(UPDATE), setups.after(UPDATE), setups.after_in_clear(UPDATE)
    if len(rounds) < measured.LEAST:
        return
    spread = [measured.us(each[old], COLD) for each in rounds]
    if old in once:
        spread.append(measured.us(once[old], COLD))
    apart = max(spread) / min(spread) - 1
    yield (
        f"How much of a difference is chance: it ran each setup once. Here {len(spread)} starts of {OLD} lie up to {apart:.0%} apart, "
        f"and its {printed[clear] / printed[old] - 1:+.0%} for the driver alone rests on one start of each.".replace(
            "%", " %"
        )
    )
    whole = measured.ratio(rounds, new, old, COLD)
    if whole:
        agrees = whole.low <= printed[new] / printed[old] <= whole.high
        yield (
            f"Its {printed[new] / printed[old]:.2f} times as long for driver and TLS is {'within' if agrees else 'outside of'} what cold starts "
            f"give here: {whole.ratio:.2f} (95 % {whole.low:.2f} to {whole.high:.2f})."
        )


def warming(of: Split | None, rounds: Sequence[Round]) -> Iterator[str]:
    """That a loop in a process that has just begun is mostly its virtual machine's."""
    if of is None or of.whole.value <= 0:
        return
    start, tls = of.parts[measured.WARMING], of.parts[measured.TLS]
    new, clear = setups.after(UPDATE), setups.after_in_clear(UPDATE)
    crypto = measured.over(rounds, lambda each: measured.start_up(each[new]) - measured.start_up(each[clear]))
    own = (
        f" ({crypto.value / of.parts[measured.WARMING].value:.0%} of it with TLS alone)"
        if crypto and crypto.from_nothing
        else ""
    )
    yield (
        f"That it timed the start of a virtual machine: the upgrade adds {of.whole.value:.0f} µs ± {of.whole.half:.0f} to an insert here, and "
        f"{start.value:.0f} µs ± {start.half:.0f} are code that runs before it is compiled{own}; {tls.value:.0f} µs ± {tls.half:.0f} are what TLS costs "
        "once it is. A service that stays up pays the first part once.".replace("%", " %")
    )


def driver_alone(study: Study, rounds: Sequence[Round], warm: Warm | None) -> Iterator[str]:
    """That the newer driver is slower without TLS too: in a warm machine?"""
    printed = published.times(study)
    old, clear = setups.before(UPDATE), setups.after_in_clear(UPDATE)
    cold = measured.ratio(rounds, clear, old, COLD)
    settled = warm.driver if warm else measured.ratio(rounds, clear, old, WARM)
    if cold is None or settled is None:
        return
    same = 1 - SAME < settled.low <= 1 <= settled.high < 1 + SAME
    yield (
        f"Why {NEW} is slower without TLS too ({printed[clear] / printed[old]:.2f} times): by {UPDATE}() it sends what {OLD} sends, and takes "
        f"{cold.ratio:.2f} times as long cold ({cold.low:.2f} to {cold.high:.2f}), but {settled.ratio:.2f} warm ({settled.low:.2f} to {settled.high:.2f})"
        + (", so that it is more code to warm up, and nothing else." if same else ".")
    )


def asking(warm: Mapping[str, Warm | None], of: Split | None) -> Iterator[str]:
    """Which call asks what."""
    own = warm[EXECUTE]
    if own is None or not own.asks or of is None:
        return
    asked = "; ".join(f"{count:g} × {name}" for name, count in own.asks.items())
    update = warm[UPDATE]
    quiet = f" By {UPDATE}() it asks nothing." if update is not None and not update.asks else ""
    chatter = of.parts[measured.CHATTER]
    yield (
        f"Which call the loop made: by {EXECUTE}() {NEW} asks the server before each insert ({asked}), which costs {chatter.value:.0f} µs "
        f"({chatter.low:.0f} to {chatter.high:.0f}) in clear and an encrypted round trip more with TLS; {LOCAL}=true stops it.{quiet}"
    )


def unverified(cells: Sequence[Cell]) -> Iterator[str]:
    """That what it paid for is the weaker half of TLS."""
    if any(cell.encryption.get("verified") == "no" for cell in cells if cell.mechanism == "tls"):
        yield (
            f"What it got for it: {NEW} by default encrypts and checks no certificate, so that whoever can stand between can still read all. "
            "sslMode=VERIFY_IDENTITY looks at it, once a connection."
        )


def not_the_same_loop(study: Study) -> Iterator[str]:
    printed = published.times(study)
    yield (
        "How many rows, which statement, which server and which Java: none is said, so that its milliseconds "
        f"({', '.join(f'{each:,.0f}' for each in printed.values())}) compare with each other alone, and here their ratios do."
    )
