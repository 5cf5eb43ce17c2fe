"""What the published procedure could not show, computed from its own figures and from its repetition here. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyRun
from ciphercost.studies.costs import bounds, change
from ciphercost.studies.mysql_tls import published

if TYPE_CHECKING:
    from ciphercost.studies import Study

Here = Mapping[tuple[str, str], StudyRun]
FEWEST_ITERATIONS = 2
LAST_DIGIT = 0.0051
"""Largest distance of a two-digit figure from the mean that it rounds."""
UNPROVEN = (
    "REQUIRED encrypts and never checks the certificate, and nothing showed that either arm was what its name says. "
    "Here both arms are proven before each load, and "
)
VERIFIED = {
    "tls": "our method's connections check chain and name.",
    "wire-crypt": "wire-crypt encrypts in TLS's place; it verifies no server either.",
}
"""By the mechanism that encrypted the connections here."""
IN_TURNS = (
    "For each operation one arm ran completely before the other: whatever changes on the machine meanwhile looks like TLS. "
    "Our method interleaves the arms in mirrored order."
)
CHANGED = (
    "Each iteration changes the data for the next: INSERT adds its rows again, UPDATE sets values that are already set, DELETE "
    "finds nothing. An average over iterations mixes these."
)


def findings(study: Study, here: Here, ours: Mapping[str, Cell], mechanism: str) -> list[str]:
    """Findings of one or two sentences each, with computed figures. `mechanism`: what encrypted the connections here."""
    operations = study.operations
    times, cpu = published.times(study), published.cpu(study)
    found = [
        *intervals(times, here, operations),
        *order(here, ours, operations),
        UNPROVEN + VERIFIED[mechanism],
        one_pass(times, cpu, here, operations),
        averages(cpu, operations),
        *blank(cpu, operations),
        *maxima(study, cpu),
        quoted_averages(study, cpu),
        edges(cpu, operations),
        system_only(cpu, operations),
        *what_was_asked(times, cpu, here),
    ]
    return [each for each in found if each]


# ── time ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def intervals(times: Mapping[str, Mapping[str, float]], here: Here, operations: Sequence[str]) -> list[str]:
    """Published costs beside the spread of one arm's iterations."""
    said = ", ".join(f"{name} {change(times[name]['encrypted'] / times[name]['plain'])}" for name in operations)
    first = (
        f"No published figure has an interval: {said} are single averages, though mysqlslap also prints the shortest and the "
        "longest iteration."
    )
    spread = {
        name: max(run.series["seconds"]) / min(run.series["seconds"])
        for name in operations
        if (run := here.get((name, "plain"))) and len(run.series["seconds"]) >= FEWEST_ITERATIONS
    }
    if not spread:
        return [first]
    wide = ", ".join(f"{name} {change(ratio)}" for name, ratio in spread.items())
    return [f"{first} Here the slowest unencrypted iteration took, compared with the fastest: {wide}."]


def order(here: Here, ours: Mapping[str, Cell], operations: Sequence[str]) -> list[str]:
    """Operations whose repeated cost lies outside the interval of the interleaved measurement."""
    apart = []
    for name in operations:
        rate = ours[name].overhead.get("throughput") if name in ours else None
        if rate is None or any((name, arm) not in here for arm in ARMS):
            continue
        plain, encrypted = (fmean(here[name, arm].series["seconds"]) for arm in ARMS)
        if not 1 / rate.high <= encrypted / plain <= 1 / rate.low:
            apart.append(f"{name} {change(encrypted / plain)}, not {bounds(1 / rate.high, 1 / rate.low)}")
    if not apart:
        return [IN_TURNS]
    return [f"{IN_TURNS} Run here, the published procedure gives a different cost for {'; '.join(apart)}."]


def one_pass(
    times: Mapping[str, Mapping[str, float]],
    cpu: Mapping[str, Mapping[str, published.Column]],
    here: Here,
    operations: Sequence[str],
) -> str:
    """The CPU tables end after about one published time, whatever the number of iterations."""
    spans = ", ".join(
        f"{name} {cpu[name]['plain'].seconds:.0f} s of rows for a time of {times[name]['plain']:.0f} s"
        for name in operations
    )
    text = (
        f"The CPU tables cover one iteration, not five: without TLS, {spans}. Either one iteration was observed, or the printed times are not "
        "averages of five."
    )
    delete = cpu["delete"]["plain"].rows
    text += (
        f" During DELETE %user falls from {max(row['user'] for row in delete[:3]):.0f} to {delete[-1]['user']:.0f}, as on a table that "
        "becomes empty: a second iteration would have found no rows."
    )
    if run := here.get(("delete", "plain")):
        seconds = [each * published.QUERIES / run.load["queries"] for each in run.series["seconds"]]
        text += f" Here DELETE's iterations take {', '.join(f'{each:.3g}' for each in seconds)} s for {published.QUERIES:,} queries."
    return text


def what_was_asked(
    times: Mapping[str, Mapping[str, float]], cpu: Mapping[str, Mapping[str, published.Column]], here: Here
) -> list[str]:
    """What the tables say about the statements, which the study does not print."""
    each = {name: times[name]["plain"] / published.QUERIES * 1e3 for name in times}
    select = cpu["select"]["plain"].mean("system") / max(cpu["update"]["plain"].mean("system"), 0.01)
    text = (
        f"The statements are not printed. {each['update']:.1f} ms per UPDATE, nearly all of it %user, suggest a table without an index, and "
        f"SELECT keeps %system {select:.0f} times as busy as UPDATE does, as if it moved far more than one row. So SELECT reads the whole table here, "
        "and UPDATE and DELETE search all of it for their row. Our own DELETE puts each row back, and its time includes that INSERT."
    )
    return [text, CHANGED] if here else [text]


# ── CPU ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def averages(cpu: Mapping[str, Mapping[str, published.Column]], operations: Sequence[str]) -> str:
    """Tables whose last row is the average of those above it, and the effect of counting it again."""
    with_average = [(name, arm) for name in operations for arm in ARMS if cpu[name][arm].average]
    without = [f"{name} {spell(arm)}" for name in operations for arm in ARMS if not cpu[name][arm].average]
    text = (
        f"The last row of {len(with_average)} of the {2 * len(operations)} CPU tables is the average of the rows above it. "
        "A mean that includes it counts it twice: mean %system with and without it is "
        + ", ".join(
            f"{name} {spell(arm)} {cpu[name][arm].mean_as_quoted('system'):.2f} and {cpu[name][arm].mean('system'):.2f}"
            for name, arm in with_average
        )
        + f". No mean of any counter moves by more than {moved(cpu):.2f} points, so the text's averages don't show which was done."
    )
    if without:
        text += f" In {' and '.join(without)} the last row is one of five seconds, unlike the other arm's average: the arms have different numbers of rows."
    return text


def moved(cpu: Mapping[str, Mapping[str, published.Column]]) -> float:
    """The most that counting the average again moves a mean, in percentage points."""
    return max(
        abs(column.mean_as_quoted(counter) - column.mean(counter))
        for columns in cpu.values()
        for column in columns.values()
        for counter in published.COUNTERS
    )


def blank(cpu: Mapping[str, Mapping[str, published.Column]], operations: Sequence[str]) -> list[str]:
    """Blank cells, the values that they must have had, and the effect of omitting them on the means."""
    said = []
    for name in operations:
        for arm in ARMS:
            column = cpu[name][arm]
            for number, (row, whole) in enumerate(zip(column.rows, column.filled, strict=True), start=1):
                for counter in whole.keys() - row.keys():
                    means = sum(column.mean_as_printed(each) for each in published.COUNTERS)
                    own = f" (the table's own average row has {column.average[counter]:.2f})" if column.average else ""
                    said.append(
                        f"{published.CPU[name]} has no %{counter} at {number * published.ROW_SECONDS:.0f} s {spell(arm)}. The other cells of "
                        f"that row add up to {sum(row.values()):.2f}, so we infer {whole[counter]:.2f}. The mean is then "
                        f"{column.mean(counter):.2f}{own}; without that row it would be {column.mean_as_printed(counter):.2f}, and the six "
                        f"means would add up to {means:.1f} %."
                    )
    return said


def maxima(study: Study, cpu: Mapping[str, Mapping[str, published.Column]]) -> list[str]:
    """Maxima in the text that the tables contradict."""
    said = []
    for each in published.quoted(study):
        if each.statistic != "maximum" or each.second is None:
            continue
        second, value = cpu[each.operation][each.arm].maximum(each.counter)
        if (second, value) != (each.second, each.value):
            said.append(
                f"{each.operation.upper()} {spell(each.arm)}, %{each.counter}: the text has a maximum of {each.value:.2f} at {each.second:.0f} s, "
                f"{published.CPU[each.operation]} has {value:.2f} at {second:.0f} s"
            )
    return [f"The text contradicts the tables. {'; '.join(said)}."] if said else []


def quoted_averages(study: Study, cpu: Mapping[str, Mapping[str, published.Column]]) -> str:
    """Averages in the text beside the means of the tables' rows."""
    said, apart = [], []
    for each in published.quoted(study):
        if each.statistic == "average":
            mean = cpu[each.operation][each.arm].mean(each.counter)
            said.append(f"{each.operation} {spell(each.arm)} {each.value:.2f} ({mean:.3f})")
            if abs(mean - each.value) > LAST_DIGIT:
                apart.append(f"{each.operation} {spell(each.arm)}")
    end = f"They differ for {', '.join(apart)}." if apart else "They agree to the last digit."
    return f"The text's averages of %system, with the means of the tables' rows without their average rows in brackets: {', '.join(said)}. {end}"


def edges(cpu: Mapping[str, Mapping[str, published.Column]], operations: Sequence[str]) -> str:
    """Rows in which the machine was idle, and the means without them."""
    hit = [(name, arm) for name in operations for arm in ARMS if cpu[name][arm].edges]
    if not hit:
        return ""
    said = ", ".join(
        f"{name} {spell(arm)} {column.mean('system'):.2f} and {column.inner().mean('system'):.2f}"
        for name, arm in hit
        if (column := cpu[name][arm])
    )
    count = sum(cpu[name][arm].edges for name, arm in hit)
    return f"{count} rows show an idle machine (%idle 99 and more) and are part of the means: %system with and without them is {said}."


def system_only(cpu: Mapping[str, Mapping[str, published.Column]], operations: Sequence[str]) -> str:
    """The study discussed one of six counters; the others tell a different story."""
    said = [
        f"{name} %system {columns['plain'].mean('system'):.2f} → {columns['encrypted'].mean('system'):.2f}, %user "
        f"{columns['plain'].mean('user'):.2f} → {columns['encrypted'].mean('user'):.2f}"
        for name in operations
        if (columns := cpu[name])
    ]
    falls = [name for name in operations if cpu[name]["encrypted"].mean("system") < cpu[name]["plain"].mean("system")]
    text = f"Only %system was discussed, but ciphers work in %user: {'; '.join(said)}."
    if falls:
        text += f" For {' and '.join(name.upper() for name in falls)} %system falls with TLS on; TLS is unlikely to be the cause."
    return text


def spell(arm: str) -> str:
    return "with TLS" if arm == "encrypted" else "without TLS"
