"""Reads times that a script printed, one a line: `Execution time INSERT: 4.823420638`, `Tempo de execução BUSCA: 3.362679749`. Pure.

Each time is a run of the operation that its line names. Other lines may be `Name: WHOLE NUMBER`, such as `Records: 1000`, which
sets the runs apart. A time needs a unit, in its label or behind its number; nine digits after the point are seconds, as
`date +%s.%N` counts them. A label may state the arm: `Time plain: 4.1 s`.
"""

from __future__ import annotations

import math
import re

from ciphercost.importers.arm_words import ENCRYPTED, PLAIN, arm_in
from ciphercost.importers.formats import SECONDS, Bad, Lines, digits
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

LINE = re.compile(
    r"\s*(?P<label>[^\W\d][^:=|{}\"]{0,80}?)\s*[:=]\s*(?P<value>\d+(?:[.,]\d+)?|[.,]\d+)\s*(?P<unit>µs|us|ms|s|sec|secs|seconds|segundos)?\s*"
)
TIME_WORDS = re.compile(
    r"\b(?:times?|runtime|elapsed|duration|took|tempos?|duração|tiempo|temps|durée|zeit|laufzeit|dauer)\b",
    re.IGNORECASE,
)
"""What a time is called in English, Portuguese, Spanish, French and German."""
FILLERS = re.compile(
    r"\b(?:of|for|the|to|in|total|execution|run|running|response|query|de|da|do|di|execução|ejecución|execution|exécution|ausführungs?|für|pour|para)\b",
    re.IGNORECASE,
)
LABELS_UNIT = re.compile(r"[(\[_ ](µs|us|ms|s|sec|secs|seconds|segundos)[)\]]?\s*$", re.IGNORECASE)
UNITS = {"sec": "s", "secs": "s", "seconds": "s", "segundos": "s"}
OF_NANOSECONDS = re.compile(r"\d*\.\d{9}")
STATEMENTS = {
    "inserção": "INSERT", "insercao": "INSERT", "busca": "SELECT", "leitura": "SELECT", "consulta": "SELECT",
    "alteração": "UPDATE", "alteracao": "UPDATE", "atualização": "UPDATE", "remoção": "DELETE", "remocao": "DELETE",
}  # fmt: skip
"""Portuguese names of the four statements."""
SEARCHED = 200
"""Lines of a text's beginning that must all have this form: a script prints few times."""


def recognise(head: str) -> int:
    """Return the line of the first time, if every line is a label with a number."""
    first = 0
    for number, line in enumerate(head.split("\n")[:SEARCHED], 1):
        if not line.strip():
            continue
        match = LINE.fullmatch(line)
        if match is None:
            return 0
        if not first and _is_time(match):
            first = number
    return first


def read(lines: Lines) -> list[Reading]:
    """Return a reading for each time."""
    factors: dict[str, str] = {}
    readings: list[Reading] = []
    for line in lines:
        if not line.strip():
            continue
        match = LINE.fullmatch(line)
        if match is None:
            raise Bad(lines.number, f"'{line.strip()[:60]}' is not a label with a number, as the lines above are")
        if lines.cut and _is_time(match) and not match["unit"] and not OF_NANOSECONDS.fullmatch(match["value"]):
            if readings:
                readings[0].notes.append(
                    Warning_("cut-off", f"the last line, {lines.number}, is cut off and was skipped")
                )
                break
            raise Bad(lines.number, "the only time is cut off; import the whole output")
        if _is_time(match):
            readings.append(_reading(match, lines.number, dict(factors)))
        elif re.fullmatch(r"\d{1,18}", match["value"]):
            factors[match["label"].strip()] = match["value"]
        else:
            raise Bad(
                lines.number,
                f"'{match['label'][:40]}' is neither a time nor a whole number; remove the line, or say that it is a time",
            )
    return readings


def _is_time(match: re.Match[str]) -> bool:
    return bool(TIME_WORDS.search(match["label"]))


def _reading(match: re.Match[str], line: int, factors: dict[str, str]) -> Reading:
    label = match["label"]
    of_label = LABELS_UNIT.search(label)
    unit = (match["unit"] or (of_label[1] if of_label else "")).lower()
    if not unit and not OF_NANOSECONDS.fullmatch(match["value"]):
        raise Bad(
            line,
            f"the unit of '{label[:40]}' is unknown; write it behind the number, e.g. `{label[:40]}: {match['value'][:20]} s`",
        )
    seconds = float(match["value"].replace(",", ".")) * SECONDS[UNITS.get(unit, unit) or "s"]
    if not math.isfinite(seconds) or seconds <= 0:
        raise Bad(line, "a time of 0 can't be compared")
    operation = FILLERS.sub(" ", TIME_WORDS.sub(" ", LABELS_UNIT.sub("", label)))
    words = re.sub(r"[()\[\]]", " ", operation).split()
    arm = arm_in(operation)
    if arm:
        words = [word for word in words if word.lower() not in PLAIN | ENCRYPTED]
    operation = " ".join(words)
    return Reading(
        tool="script",
        line=line,
        engine="script",
        workload=STATEMENTS.get(operation.lower(), operation) or "a script",
        factors=factors,
        names=[label] if arm else [],
        operations=1,
        seconds=seconds,
        digits=digits(match["value"]),
        figures={"throughput": 1 / seconds, "latency_mean": seconds * 1e3},
    )
