"""Compare the study's columns of "% increases" and "% decreases" with the changes of its own means. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ciphercost.model.spec import ARMS
from ciphercost.studies import Study
from ciphercost.studies.costs import bounds, change
from ciphercost.studies.sheet import Sheet
from ciphercost.studies.web_tls.published import COLUMN, MEAN, bytes_in_words

SIGN = {"increases": 1.0, "decreases": -1.0}
"""Sign of a column, by its heading."""
LEAST = 0.1
"""Points below which two figures print as equal."""


class Change(NamedTuple):
    """One printed cell and what the means in the same row give, in per cent of HTTP; positive if HTTPS is above HTTP."""

    table: str
    counter: str
    size: int
    """Megabytes."""
    heading: str
    cell: str
    """As printed."""
    printed: float
    """The same with the sign of the column's heading."""
    means: tuple[str, str]
    """Of HTTP and HTTPS, as printed."""
    given: float
    low: float
    high: float
    """Bounds of `given`: the means are printed rounded."""

    @property
    def rounded(self) -> bool:
        """Whether rounding of the means and of the cell itself explains the difference between the two."""
        own = half_a_unit(self.cell)
        return self.low - own <= self.printed <= self.high + own

    @property
    def contradicts(self) -> bool:
        """Whether the cell has another direction or size than the means, and rounding does not explain it."""
        return not self.rounded and (self.printed * self.given < 0 or abs(self.printed - self.given) >= LEAST)


def half_a_unit(text: str) -> float:
    """Half a unit in the last place of a printed number: 0.0005 of `0.161`. Pure."""
    mantissa, _, exponent = text.lower().partition("e")
    return 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def read(study: Study) -> list[Change]:
    """All 32 cells, table by table."""
    means = {
        (row["counter"], row["file_size_mb"]): tuple(row[COLUMN[arm]] for arm in ARMS)
        for row in study.rows("counters.csv")
        if row["statistic"] == MEAN
    }
    return [_change(row, *means[row["counter"], row["file_size_mb"]]) for row in study.rows("change.csv")]


def _change(row: Mapping[str, str], plain: str, encrypted: str) -> Change:
    http, https = float(plain), float(encrypted)
    off, other = half_a_unit(plain), half_a_unit(encrypted)
    cell = row["percent_as_printed"]
    return Change(
        row["table"],
        row["counter"],
        int(row["file_size_mb"]),
        row["column_heading"],
        cell,
        SIGN[row["column_heading"]] * float(cell),
        (plain, encrypted),
        100 * (https / http - 1),
        100 * ((https - other) / (http + off) - 1),
        100 * ((https + other) / (http - off) - 1),
    )


def finding(found: Sequence[Change]) -> str:
    """Where the printed columns contradict the means beside them, and how far the others differ, table by table."""
    said = [
        _of_table([each for each in found if each.table == table]) for table in dict.fromkeys(e.table for e in found)
    ]
    text = " ".join(filter(None, said))
    return (
        f'The study\'s columns of "% increases" and "% decreases" do not all agree with its means. {text}'
        if text
        else ""
    )


def _of_table(rows: Sequence[Change]) -> str:
    """Finding on one table; empty if all rows agree to LEAST points."""
    first = rows[0]
    head = f'Table {first.table} ("% {first.heading}")'
    wrong, rest = ([each for each in rows if each.contradicts is is_wrong] for is_wrong in (True, False))
    if len(wrong) == len(rows):
        return f"{head}: in all {len(rows)} rows the means change the other way ({_words(first)})."
    said = [_words(each) for each in wrong]
    said += [
        f"{each.size} MB, printed as {each.cell}, is an increase, as its means say ({_said(each.given)})"
        for each in rest
        if each.printed * SIGN[each.heading] < 0
    ]
    off = max(rest, key=lambda each: abs(each.printed - each.given))
    if abs(off.printed - off.given) >= LEAST:
        rows_ = "the other rows" if said else "the rows"
        said.append(
            f"{rows_} differ from their means by up to {abs(off.printed - off.given):.1f} points "
            f"({off.size} MB: {off.cell} printed, {abs(off.given):.2f} from {' → '.join(off.means)}), which rounding explains"
        )
    return f"{head}: {'; '.join(said)}." if said else ""


def _words(each: Change) -> str:
    """Both figures of one contradiction."""
    direction = "an increase" if each.printed > 0 else "a decrease"
    text = f"{each.size} MB is printed as {each.cell}, {direction}, and {' → '.join(each.means)} is {_said(each.given)}"
    wide = each.high - each.low >= LEAST
    return f"{text} ({bounds(_ratio(each.low), _ratio(each.high))} before rounding)" if wide else text


def _ratio(percent: float) -> float:
    return 1 + percent / 100


def _said(percent: float) -> str:
    """`25.0 % more`."""
    return change(_ratio(percent))


def sheet(found: Sequence[Change]) -> Sheet:
    """All cells, one row per file: printed, and computed from the means."""
    tables = list(dict.fromkeys(each.table for each in found))
    rows = [(bytes_in_words(size * 10**6), *_row(found, tables, size)) for size in dict.fromkeys(e.size for e in found)]
    return Sheet(
        "The study's own columns of change from HTTP to HTTPS, %: as printed / from its means",
        (
            "",
            *(
                f"Table {table}\n{next(NAMES[each.counter] for each in found if each.table == table)}"
                for table in tables
            ),
        ),
        rows,
        'Signs follow the column\'s heading: "% decreases" 10.86 is -10.86.',
    )


NAMES = {
    "processor_time_percent": "processor",
    "memory_available_bytes": "memory",
    "network_bytes_per_s": "network",
    "disk_queue_length": "disk queue",
}


def _row(found: Sequence[Change], tables: Sequence[str], size: int) -> Iterator[str]:
    for table in tables:
        own = next(each for each in found if (each.table, each.size) == (table, size))
        digits = len(own.cell.partition(".")[2])
        yield f"{own.printed:+.{digits}f} / {own.given:+.{max(2, digits)}f}"
