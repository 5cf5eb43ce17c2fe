"""What encryption would cost on the user's server, as text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from ciphercost.estimate.notation import decimals_of_half, number
from ciphercost.model import sizes
from ciphercost.model.prediction import Prediction, Source
from ciphercost.model.printable import printable
from ciphercost.model.result import Part, Price
from ciphercost.report import money
from ciphercost.report.capacity import SERVERS
from ciphercost.report.layout import wrap

FIGURES = {
    "rate": "{} operations/s",
    "cpu_us": "{} µs of CPU time per operation",
    "bytes_per_operation": "{} per operation",
    "connections": "{} new connections/s",
    "cores": "{} cores",
    "round_trips": "{} round trips per operation",
    "page read": "{} pages read/s",
    "page written": "{} pages written/s",
    "kilobyte of log": "{} KB of log/s",
    "value sealed": "{} values sealed/s",
    "value opened": "{} values opened/s",
    "value searched": "{} searches/s",
    "seconds": "{} s",
}
"""Words for `Source.figure`."""


def at_price(of: Prediction, price: Price | None) -> Prediction:
    """The prediction with what the added cores cost in a month."""
    if price is None:
        return of
    return msgspec.structs.replace(of, price=price, per_month=money.per_month(of.added_cores, price))


def page(predictions: Sequence[Prediction]) -> str:
    """All predictions, one below the other, and where their load comes from."""
    sections = [list(_lines(prediction)) for prediction in predictions]
    if predictions and predictions[0].sources:
        sections.append(list(_sources(predictions[0])))
    return printable("\n\n".join("\n".join(line for text in of for line in wrap(text, "", "  ")) for of in sections))


def _sources(of: Prediction) -> Iterator[str]:
    """The load, and where each figure of it comes from."""
    yield f"your server's load{f'; an operation is a {of.operation}' if of.operation else ''}:"
    for source in of.sources:
        yield f"- {_words(source)}: {source.source}"


def _figure(of: Source) -> str:
    return sizes.size(of.value) if of.figure == "bytes_per_operation" else number(of.value)


def _words(of: Source) -> str:
    """`1 round trip per operation`, `2 new connections/s`."""
    words = FIGURES[of.figure].format(_figure(of))
    return re.sub(r"^1 (new connection|page|value|search|core|operation|round trip)(?:es|s)\b", r"1 \1", words)


def _lines(of: Prediction) -> Iterator[str]:
    yield headline(of)
    if of.added_us.low <= 0 <= of.added_us.high:
        yield "! the interval holds 0: this run can't tell what encryption adds to such an operation; measure longer"
    yield f"{of.engine} {of.mechanism} adds {interval(of.added_us, 'µs')} to an operation of {number(of.load.cpu_us)} µs: {_pieces(of)}"
    yield f"CPU for the same load: {number(of.busy)} → {number(of.busy + of.added_cores.value)} cores, {more(of.ratio)}"
    servers = Part(*(SERVERS * ratio for ratio in (of.ratio.value, of.ratio.low, of.ratio.high)))
    yield f"{SERVERS} CPU-bound servers become {servers.value:,.2f} ({servers.low:,.2f}–{servers.high:,.2f})"
    if of.per_month is not None and of.price is not None:
        yield f"money at {money.price_text(of.price)}: {monthly(of.per_month, of.price, ' a month')}"
    if of.model_error:
        yield of_the_model(of.model_error)
    for note in of.notes:
        yield f"! {note}"
    yield f"measured in run {of.run} on {of.cpu or 'an unknown CPU'}; another CPU has other costs"


def headline(of: Prediction) -> str:
    """`16 cores at 45 % would be at 46.3 % (46.1–46.6 %)`, or how much more CPU it takes."""
    after = of.utilisation_encrypted
    if after is None or of.utilisation is None or of.load.cores is None:
        return f"{of.engine} {of.mechanism} would take {more(of.ratio)} CPU time on your server"
    return (
        f"{number(of.load.cores)} {'core' if of.load.cores == 1 else 'cores'} at {percent(of.utilisation, after)} % would be at "
        f"{percent(after.value, after)} % ({percent(after.low, after)}–{percent(after.high, after)} %) with {of.engine} {of.mechanism}"
    )


def monthly(part: Part, price: Price, unit: str = "") -> str:
    """`$1.20 (1.10–1.31)`; `unit` stands after the amount."""
    digits = max(2, decimals((part.high - part.low) / 2))
    return f"{money.with_currency(rounded(part.value, digits), price)}{unit} ({ends(part, digits)})"


def of_the_model(error: float) -> str:
    """What a prediction's interval contains besides the errors of the measured costs."""
    return (
        f"the interval is a prediction's: operations differ from the sum of their costs by {100 * error:.0f} % (standard "
        "deviation), which longer measuring does not change"
    )


def percent(share: float, of: Part) -> str:
    return f"{100 * share:.{decimals(100 * (of.high - of.low) / 2)}f}"


def more(ratio: Part) -> str:
    """`4.6 % more (4.3–4.9 %)`, or `2.2 times (2.1–2.3)` from there."""
    if ratio.value >= 2:
        return interval(ratio, "times")
    change = Part(*(100 * (factor - 1) for factor in (ratio.value, ratio.low, ratio.high)))
    digits = decimals((change.high - change.low) / 2)
    return f"{_signed(change.value, digits)} ({ends(change, digits, ' %')})"


def _signed(percent: float, digits: int) -> str:
    return f"{abs(percent):,.{digits}f} % {'less' if percent < 0 else 'more'}"


def ends(of: Part, digits: int, unit: str = "") -> str:
    """`4.3–4.9 %`, or `−2.1 to 10.8 %` if the low end is below 0."""
    low, high = (rounded(bound, digits) for bound in (of.low, of.high))
    return f"{low} to {high}{unit}" if of.low < 0 else f"{low}–{high}{unit}"


def interval(of: Part, unit: str) -> str:
    """`15.8 µs (15.1–16.5)`, with as many digits as the interval supports."""
    digits = decimals((of.high - of.low) / 2)
    return f"{rounded(of.value, digits)} {unit} ({ends(of, digits)})".replace("  ", " ")


def rounded(value: float, digits: int) -> str:
    """`−1,234.5`, with so many decimals."""
    return f"{value:,.{digits}f}".replace("-", "−")


def decimals(half: float) -> int:
    return decimals_of_half(half, most=6)


def _pieces(of: Prediction) -> str:
    if of.basis == "operation":
        return "as measured with one workload"
    if of.basis == "units":
        named = {"page": "pages", "kilobyte": "pages and log", "value": "values"}
        return ", ".join(f"{number(us)} for {named.get(unit, _many(unit))}" for unit, us in of.units_us.items())
    trips = of.load.round_trips
    pieces = [f"{number(of.request_us)} for {'the operation' if trips == 1 else f'its {number(trips)} round trips'}"]
    sent = of.load.bytes_per_operation
    pieces.append(f"{number(of.bytes_us)} for its {'bytes' if sent is None else sizes.size(sent)}")
    if of.load.connections:
        pieces.append(
            f"{number(of.connections_us)} for its share of {number(of.load.connections)} new connections a second"
        )
    return ", ".join(pieces)


def _many(unit: str) -> str:
    """`pages read`, `values sealed`, `searches`."""
    if unit == "value searched":
        return "searches"
    return re.sub(r"^(page|value|kilobyte|opening)\b", r"\1s", unit)
