"""What encryption costs in money: the CPU time that it adds, at a price per vCPU. Pure.

With c CPU seconds that encryption adds to a million operations, r the ratio of CPU per operation (encrypted ÷ plain) and p the price
of one CPU for an hour:

    added per million operations = c · p / 3600
    added per month for each vCPU that the plain load keeps fully busy = (r − 1) · p · 730

The second is the utilisation law of `capacity`: the same load needs r vCPUs. Both use the metric of `capacity`, with its interval.
"""

from __future__ import annotations

import math
from decimal import Decimal

import msgspec

from ciphercost.estimate import plausible
from ciphercost.model.result import Cell, Money, Part, Price, Result
from ciphercost.report import capacity
from ciphercost.report.words import cell_text

HOURS_PER_MONTH = 730
"""8,760 hours ÷ 12, as cloud providers calculate."""
SECONDS_PER_HOUR = 3600
UNIT = {"hour": "vCPU-hour", "month": "vCPU-month"}


def at_price(result: Result, price: Price | None) -> Result:
    """The result with `money` in each cell; unchanged without a price."""
    if price is None:
        return result
    cells = [msgspec.structs.replace(cell, money=of(cell, price)) for cell in result.cells]
    return msgspec.structs.replace(result, cells=cells)


def of(cell: Cell, price: Price) -> Money:
    """What encryption adds in this cell, or the reason why that is unknown."""
    planned = capacity.of(cell)
    if planned is None:
        return Money(price, reason=_reason(cell))
    hourly = price.amount / (HOURS_PER_MONTH if price.per == "month" else 1)
    seconds, servers = planned.encrypted_s, planned.servers
    million = Part(
        *((value - planned.plain_s) * hourly / SECONDS_PER_HOUR for value in (seconds.value, seconds.low, seconds.high))
    )
    busy = Part(
        *(
            (value / capacity.SERVERS - 1) * hourly * HOURS_PER_MONTH
            for value in (servers.value, servers.low, servers.high)
        )
    )
    return Money(price, planned.key, million, busy)


def per_month(cores: Part, price: Price) -> Part:
    """The price of so many cores that are kept for a month."""
    monthly = price.amount * (HOURS_PER_MONTH if price.per == "hour" else 1)
    return Part(cores.value * monthly, cores.low * monthly, cores.high * monthly)


def _reason(cell: Cell) -> str:
    if cell_text.is_control(cell):
        return "this is a control, which encrypts nothing"
    if cell.imported is not None:
        return "an imported run has no proven CPU time per operation"
    if not cell.overhead:
        return "this cell has no number"
    if cell.status == "unproven":
        return "this cell was not proven"
    if plausible.is_no_cost(cell):
        return "the difference between the arms is not what encryption costs; see the warnings"
    return "the CPU time of the server per operation was not measured, because ciphercost can't see its processes"


def line(cell: Cell) -> str:
    """`money at $0.04 per vCPU-hour: $0.0000340 more per million operations (0.0000334–0.0000346); …`, or empty."""
    money = cell.money
    if money is None:
        return ""
    price = money.price
    head = f"money at {price_text(price)}"
    if money.per_million_operations is None or money.per_busy_vcpu_month is None:
        return f"{head}: unknown, because {money.reason}"
    million, busy = (_change(part, price) for part in (money.per_million_operations, money.per_busy_vcpu_month))
    return (
        f"{head}: {million} per million operations; {busy} a month for each vCPU that the plain load keeps fully busy"
    )


def _change(part: Part, price: Price) -> str:
    """`$10.8 more (10.6–11.0)`, `$1.20 less (0.90–1.50)` or `$0.50 more (0.20 less to 1.20 more)`: one number of decimals."""
    known = [abs(amount) for amount in (part.value, part.low, part.high)]
    decimals = max(0, 2 - math.floor(math.log10(max(known)))) if max(known) else 0
    exact = math.isclose(part.low, part.high, rel_tol=1e-9)
    # A narrow interval needs more decimals than three significant digits have.
    while not exact and f"{part.low:.{decimals}f}" == f"{part.high:.{decimals}f}":
        decimals += 1
    value, low, high = (f"{amount:,.{decimals}f}" for amount in known)
    text = f"{with_currency(value, price)} {_word(part.value)}"
    if exact:
        return f"{text} (exact)"
    if part.low * part.high > 0:
        return f"{text} ({low}–{high})" if part.low > 0 else f"{text} ({high}–{low})"
    return f"{text} ({low} {_word(part.low)} to {high} {_word(part.high)})"


def _word(change: float) -> str:
    return "less" if change < 0 else "more"


def with_currency(number: str, price: Price) -> str:
    """`$0.04` or `0.04 EUR`: the currency where the user wrote it."""
    # A symbol stands at the number, a word apart from it.
    gap = " " if price.prefix and price.prefix[-1].isalpha() else ""
    return f"{price.prefix}{gap}{number}{' ' if price.suffix else ''}{price.suffix}"


def price_text(price: Price) -> str:
    """`$0.04 per vCPU-hour`: every digit, never an exponent."""
    digits = f"{Decimal(repr(price.amount)):f}".removesuffix(".0")
    return f"{with_currency(digits, price)} per {UNIT[price.per]}"
