"""findings: what the published procedure could not have told, counted from its own figures and from its repetition here. Pure."""

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
"""How far a figure of two digits may lie from the mean that it rounds."""
UNPROVEN = (
    "REQUIRED encrypts and never checks the certificate, and nothing showed that either arm was what its name says. "
    "Here both arms are proven before each load, and "
)
VERIFIED = {
    "tls": "our method's connections check chain and name.",
    "wire-crypt": "encrypted by wire-crypt in TLS's place, which verifies nobody either.",
}
"""By what encrypted the connections here."""
IN_TURNS = (
    "Of each operation one arm was run wholly before the other: whatever changes on the machine meanwhile looks like TLS. "
    "Our method takes both arms in turns, in mirrored order."
)
CHANGED = (
    "What an iteration changes, the next one finds: INSERT adds its rows again, UPDATE sets what is set already, DELETE "
    "finds nothing. An average over iterations mixes these."
)


def findings(study: Study, here: Here, ours: Mapping[str, Cell], mechanism: str) -> list[str]:
    """Each a sentence or two; figures in them are computed. `mechanism`: what encrypted the connections here."""
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
    """Published costs beside how far the iterations of one arm lie apart."""
    said = ", ".join(f"{name} {change(times[name]['encrypted'] / times[name]['plain'])}" for name in operations)
    first = (
        f"No published figure has an interval: {said} are single averages, though mysqlslap prints the shortest and the "
        "longest iteration beside each."
    )
    spread = {
        name: max(run.series["seconds"]) / min(run.series["seconds"])
        for name in operations
        if (run := here.get((name, "plain"))) and len(run.series["seconds"]) >= FEWEST_ITERATIONS
    }
    if not spread:
        return [first]
    wide = ", ".join(f"{name} {change(ratio)}" for name, ratio in spread.items())
    return [f"{first} Here the slowest iteration in clear took, beside the fastest: {wide}."]


def order(here: Here, ours: Mapping[str, Cell], operations: Sequence[str]) -> list[str]:
    """Where the repeated procedure's cost lies outside the interval of the interleaved measurement."""
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
    return [f"{IN_TURNS} Run here, the published procedure gives another cost than that for {'; '.join(apart)}."]


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
        f"The CPU tables cover one iteration, not five: in clear, {spans}. Either one was watched, or the printed times are not averages "
        "of five."
    )
    delete = cpu["delete"]["plain"].rows
    text += (
        f" During DELETE %user falls from {max(row['user'] for row in delete[:3]):.0f} to {delete[-1]['user']:.0f}, as on a table that "
        "gets empty: a second iteration would have found no rows."
    )
    if run := here.get(("delete", "plain")):
        seconds = [each * published.QUERIES / run.load["queries"] for each in run.series["seconds"]]
        text += f" Here DELETE's iterations take {', '.join(f'{each:.3g}' for each in seconds)} s for {published.QUERIES:,} queries."
    return text


def what_was_asked(
    times: Mapping[str, Mapping[str, float]], cpu: Mapping[str, Mapping[str, published.Column]], here: Here
) -> list[str]:
    """What the tables say of the statements, which the study does not print."""
    each = {name: times[name]["plain"] / published.QUERIES * 1e3 for name in times}
    select = cpu["select"]["plain"].mean("system") / max(cpu["update"]["plain"].mean("system"), 0.01)
    text = (
        f"The statements are not printed. {each['update']:.1f} ms an UPDATE, nearly all of it %user, point to a table without an index, and "
        f"SELECT keeps %system {select:.0f} times as busy as UPDATE does, as if it moved far more than a row. So we let SELECT read the whole table here, "
        "and UPDATE and DELETE look for their row in all of it. Our own DELETE puts each row back, and that INSERT is in its time."
    )
    return [text, CHANGED] if here else [text]


# ── CPU ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def averages(cpu: Mapping[str, Mapping[str, published.Column]], operations: Sequence[str]) -> str:
    """In which tables the last row is the average of those above it, and what counting it again does."""
    with_average = [(name, arm) for name in operations for arm in ARMS if cpu[name][arm].average]
    without = [f"{name} {spell(arm)}" for name in operations for arm in ARMS if not cpu[name][arm].average]
    text = (
        f"The last row of {len(with_average)} of the {2 * len(operations)} CPU tables is the average of the rows above it. "
        "Averaged with them it counts twice: mean %system with and without it is "
        + ", ".join(
            f"{name} {spell(arm)} {cpu[name][arm].mean_as_quoted('system'):.2f} and {cpu[name][arm].mean('system'):.2f}"
            for name, arm in with_average
        )
        + f". No mean of any counter moves by more than {moved(cpu):.2f} points, so the text's averages don't show which was done."
    )
    if without:
        text += f" In {' and '.join(without)} the last row is one of five seconds, beside the other arm's average: the arms' rows are not as many."
    return text


def moved(cpu: Mapping[str, Mapping[str, published.Column]]) -> float:
    """How far counting the average again moves a mean at most, percentage points."""
    return max(
        abs(column.mean_as_quoted(counter) - column.mean(counter))
        for columns in cpu.values()
        for column in columns.values()
        for counter in published.COUNTERS
    )


def blank(cpu: Mapping[str, Mapping[str, published.Column]], operations: Sequence[str]) -> list[str]:
    """Cells that were left blank, what they must have been, and what leaving them out does to the means."""
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
    """Maxima of the text that the tables contradict."""
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
    """Averages of the text beside the means of the tables' rows."""
    said, apart = [], []
    for each in published.quoted(study):
        if each.statistic == "average":
            mean = cpu[each.operation][each.arm].mean(each.counter)
            said.append(f"{each.operation} {spell(each.arm)} {each.value:.2f} ({mean:.3f})")
            if abs(mean - each.value) > LAST_DIGIT:
                apart.append(f"{each.operation} {spell(each.arm)}")
    end = f"They differ for {', '.join(apart)}." if apart else "They agree to the last digit."
    return f"The text's averages of %system, and in brackets the means of the tables' rows without their average rows: {', '.join(said)}. {end}"


def edges(cpu: Mapping[str, Mapping[str, published.Column]], operations: Sequence[str]) -> str:
    """Rows in which the machine did nothing, and the means without them."""
    hit = [(name, arm) for name in operations for arm in ARMS if cpu[name][arm].edges]
    if not hit:
        return ""
    said = ", ".join(
        f"{name} {spell(arm)} {column.mean('system'):.2f} and {column.inner().mean('system'):.2f}"
        for name, arm in hit
        if (column := cpu[name][arm])
    )
    count = sum(cpu[name][arm].edges for name, arm in hit)
    return f"{count} rows show a machine that does nothing (%idle 99 and more), and are in the means: %system with and without them is {said}."


def system_only(cpu: Mapping[str, Mapping[str, published.Column]], operations: Sequence[str]) -> str:
    """Of six counters one was discussed; the others say otherwise."""
    said = [
        f"{name} %system {columns['plain'].mean('system'):.2f} → {columns['encrypted'].mean('system'):.2f}, %user "
        f"{columns['plain'].mean('user'):.2f} → {columns['encrypted'].mean('user'):.2f}"
        for name in operations
        if (columns := cpu[name])
    ]
    falls = [name for name in operations if cpu[name]["encrypted"].mean("system") < cpu[name]["plain"].mean("system")]
    text = f"Only %system was discussed, but ciphers work in %user: {'; '.join(said)}."
    if falls:
        text += f" For {' and '.join(name.upper() for name in falls)} %system falls with TLS on, which TLS is unlikely to have caused."
    return text


def spell(arm: str) -> str:
    return "with TLS" if arm == "encrypted" else "in clear"
