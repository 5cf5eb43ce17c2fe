"""Reads JMeter's results: the table of samples (JTL as CSV), or the last line `summary =` of a run without its window. Pure.

A run's throughput is its samples divided by the time from the first one's start to the last one's end. Latency is a sample's elapsed
time. Samples that failed count as errors, as in JMeter.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from ciphercost.importers.formats import NUMBER, Bad, Lines, above_zero, cut_off, digits, errors_among, line_of, number
from ciphercost.importers.formats._quantiles import Counts
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

HEADER = re.compile(r"\"?timeStamp\"?([,;\t|])\"?elapsed\"?\1.*")
SUMMARY = re.compile(
    rf"(?:.*?\s)?(\S+) =\s+(\d+) in (\d+):(\d+):(\d+) =\s+{NUMBER}/s Avg:\s+(\d+) Min:\s+\d+ Max:\s+\d+ Err:\s+(\d+) \({NUMBER}%\).*"
)
SUMMARY_MARK = re.compile(r"\S+ [=+]\s+\d+ in \d\d:\d\d:\d\d(?:\.\d+)? =\s+[\d.,]+/s Avg:")
MARK = re.compile(rf"^[^\S\n]*(?:{HEADER.pattern}$|{SUMMARY_MARK.pattern})", re.MULTILINE)
DATA = HEADER
OWN = re.compile(
    r"\S+ [=+] .*|(?:Creating summariser|Created the tree|Starting (?:standalone )?test|Waiting for|Tidying up|\.\.\. end of run).*|(?:WARN|INFO).*"
)
END = re.compile(r"\s*\.\.\. end of run\s*")
NEEDED = ("timeStamp", "elapsed", "success")
DATES = re.compile(r"\d{13}")


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return one reading of a table, or a reading for each last line `summary =` of a run."""
    readings: list[Reading] = []
    ended = False
    for line in lines:
        if match := HEADER.fullmatch(line.lstrip("\ufeff")):
            if readings:
                raise Bad(lines.number, "a table begins below a summary; put each into its own file")
            return [of_table(lines, next(csv.reader([line.lstrip("\ufeff")], delimiter=match[1])), match[1])]
        if (match := SUMMARY.fullmatch(line)) and not lines.cut:
            reading = of_summary(match, lines.number)
            if readings and not ended:
                # JMeter repeats the line with the samples so far.
                readings[-1] = reading
            else:
                readings.append(reading)
            ended = False
        ended = ended or bool(END.fullmatch(line))
    if readings and not ended:
        readings[-1].notes.append(cut_off(readings[-1].line, "'end of run'", readings[-1].figures))
    if not readings:
        raise Bad(
            lines.number,
            "the output has no line 'summary = …', which has the result; import the whole output or the JTL file",
        )
    return readings


def of_summary(match: re.Match[str], line: int) -> Reading:
    hours, minutes, seconds = (int(match[at]) for at in (3, 4, 5))
    done, wrong, took = int(match[2]), int(match[8]), hours * 3600 + minutes * 60 + seconds
    if not done or not number(match[6]) > 0:
        raise Bad(line, "JMeter made no sample, so there is nothing to compare")
    return Reading(
        tool="jmeter",
        line=line,
        engine="web",
        workload="samples",
        operations=done,
        errors=wrong,
        seconds=float(took),
        digits=digits(match[6]),
        figures=above_zero({"throughput": number(match[6]), "latency_mean": number(match[7])}),
        notes=errors_among(line, wrong, done, "samples failed"),
    )


def of_table(lines: Lines, header: list[str], delimiter: str) -> Reading:
    """Return the run whose samples stand below this header."""
    began = lines.number
    if missing := [name for name in NEEDED if name not in header]:
        raise Bad(
            began,
            f"the table lacks the column {missing[0]}; set jmeter.save.saveservice.output_format=csv and the default columns",
        )
    at = {name: header.index(name) for name in NEEDED}
    threads = header.index("allThreads") if "allThreads" in header else None
    counts = Counts()
    first, last, wrong, most = float("inf"), 0.0, 0, 0
    for number_, words in _rows(lines, header, delimiter):
        if not DATES.fullmatch(words[at["timeStamp"]]):
            text = f"'{words[at['timeStamp']][:30]}' is not a time in milliseconds since 1970; set jmeter.save.saveservice.timestamp_format=ms"
            raise Bad(number_, text)
        start = float(words[at["timeStamp"]])
        try:
            elapsed = int(words[at["elapsed"]])
        except ValueError:
            raise Bad(number_, f"'{words[at['elapsed']][:20]}' is not a number of milliseconds") from None
        if elapsed < 0:
            raise Bad(number_, f"a sample took {elapsed} ms, which is impossible")
        counts.add(elapsed)
        first, last = min(first, start), max(last, start + elapsed)
        wrong += words[at["success"]].lower() != "true"
        if threads is not None and words[threads].isdigit():
            most = max(most, int(words[threads]))
    if not counts.number:
        raise Bad(lines.number, "the table has no sample, so there is nothing to compare")
    seconds = (last - first) / 1e3
    notes = errors_among(began, wrong, counts.number, "samples failed")
    if seconds <= 0:
        raise Bad(began, "all samples began and ended in the same millisecond, so there is no rate")
    if lines.cut:
        notes.append(
            Warning_("cut-off", f"the table that begins on line {began} is cut off in a row, which was left out")
        )
    return Reading(
        tool="jmeter",
        line=began,
        engine="web",
        workload="samples",
        clients=most,
        operations=counts.number,
        errors=wrong,
        seconds=seconds,
        started=first / 1e3,
        ended=last / 1e3,
        clock="utc",
        figures=above_zero({"throughput": counts.number / seconds, **counts.figures()}),
        notes=notes,
    )


def _rows(lines: Lines, header: list[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, values) of each row, without a last one that is cut off. A quoted message may contain line breaks."""

    def whole() -> Iterator[str]:
        for line in lines:
            if not lines.cut:
                yield line + "\n"

    reader = csv.reader(whole(), delimiter=delimiter)
    while True:
        try:
            words = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise Bad(lines.number, f"not a row of a table: {error}") from None
        if not words or words == header:
            continue
        if len(words) != len(header):
            raise Bad(lines.number, f"{len(words)} values for {len(header)} columns")
        yield lines.number, words
