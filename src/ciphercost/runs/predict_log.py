"""`ciphercost predict LOG --from RUN`: what encryption would cost the traffic of a log, hour by hour."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from ciphercost import engines
from ciphercost.estimate import log_counts, log_prediction
from ciphercost.estimate.log_prediction import NOTHING, Known
from ciphercost.model.errors import UsageError
from ciphercost.model.log_prediction import LogPrediction
from ciphercost.model.result import Result
from ciphercost.model.spec import WORKLOAD_FILE
from ciphercost.model.traffic import Kind, Traffic
from ciphercost.runs import workload_from_logs
from ciphercost.runs.workload_from_logs import Asked, Read

OPERATION: Mapping[Kind, str] = {"web": "request", "sql": "statement"}
"""What a log has lines of, by its kind."""
LANGUAGE: Mapping[Kind, str] = {"web": "http", "sql": "sql"}
SERVER: Mapping[Kind, str] = {"web": "a web server", "sql": "a database"}
EXAMPLE: Mapping[Kind, str] = {"web": "nginx", "sql": "postgresql"}


def traffic(files: Sequence[Path], shows: Callable[[Read], None] = lambda _: None) -> Traffic:
    """What logs hold, or the workload file that was made from logs. `shows`: as in `workload_from_logs.read`. Raises UsageError."""
    made = [file for file in files if file.suffix == WORKLOAD_FILE]
    if made and len(files) > 1:
        raise UsageError(f"{made[0]} is a workload file, which holds all of its logs; give it alone, or give the logs")
    return workload_from_logs.traffic(files, Asked(), shows)


def check(runs: Sequence[Result], against: Sequence[Result]) -> None:
    """Raises UsageError for runs that can't predict a log, and for those that can't stand beside: before a long log is read."""
    for run in runs:
        for of in log_prediction.measured(run):
            for replay in against:
                log_prediction.replays(of, replay)


def predict(
    found: Traffic,
    runs: Sequence[Result],
    known: Known = NOTHING,
    per_connection: float | None = None,
    against: Sequence[Result] = (),
) -> list[LogPrediction]:
    """A prediction for each run, server and mechanism.

    `per_connection`: operations of a connection, instead of what was found; `against`: runs that replayed the log. Raises UsageError.
    """
    if known.bytes_per_operation is not None and log_counts.sized(found):
        raise UsageError("--response has no effect, because the log has the sizes of its answers; remove it")
    whole, hours = log_counts.of(found, per_connection)
    operation = OPERATION[found.kind]
    predictions: list[LogPrediction] = []
    for run in _alike(runs, found):
        predicted_of_run = log_prediction.predict(run, whole, hours, known, operation=operation)
        for split, predicted in zip(log_prediction.measured(run), predicted_of_run, strict=True):
            told = [*predicted.notes, *log_counts.notes(found, whole, operation, per_connection)]
            noted = msgspec.structs.replace(predicted, notes=told, busiest_second=found.arrivals.busiest_second)
            for replay in against:
                noted = log_prediction.beside(noted, split, replay, run)
            predictions.append(noted)
    return predictions


def _alike(runs: Sequence[Result], found: Traffic) -> list[Result]:
    """The runs with the costs of servers that write such logs, and no others. Raises UsageError for a run without any."""
    kept: list[Result] = []
    for run in runs:
        of = [each for each in run.parts if engines.get(each.engine).language == LANGUAGE[found.kind]]
        if not of:
            names = ", ".join(dict.fromkeys(each.engine for each in run.parts))
            raise UsageError(
                f"this is a log of {SERVER[found.kind]}, and run {run.id} measured {names}: what encryption adds differs; measure it with "
                f"`ciphercost run {EXAMPLE[found.kind]}:tls --split`"
            )
        kept.append(msgspec.structs.replace(run, parts=of))
    return kept
