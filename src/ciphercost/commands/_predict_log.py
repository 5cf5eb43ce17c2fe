"""`ciphercost predict LOG… --from RUN`: its options, and its call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ciphercost.commands import _completers
from ciphercost.commands._log_progress import LogProgress
from ciphercost.commands._measure import write_or_print
from ciphercost.model.errors import UsageError

FORMATS = ("terminal", "md", "json")
OF_LOGS = ("from_runs", "against", "per_connection")
TAKEN = ("cpu", "cores", "response", "price", "format_", "no_progress", *OF_LOGS)
"""What is taken with a log."""
LOG_OPTIONS = (
    click.option(
        "--from",
        "from_runs",
        multiple=True,
        metavar="RUN|latest",
        help="Run that measured what a handshake, a request and a byte cost (`--split`). Repeatable: a prediction from each.",
        shell_complete=_completers.runs,
    ),
    click.option(
        "--against",
        multiple=True,
        metavar="RUN|latest",
        help="Print a measured replay of the log (`run … --workload mine.toml`) beside the prediction. Repeatable.",
        shell_complete=_completers.runs,
    ),
    click.option(
        "--requests-per-connection",
        "per_connection",
        type=float,
        metavar="N",
        help="Requests that one connection carries. [default: as the log tells, or an estimate]",
    ),
)


def refuse_without_log(given: Mapping[str, Any]) -> None:
    """Raises UsageError for options that need a log."""
    for option, value in (("--against", given["against"]), ("--requests-per-connection", given["per_connection"])):
        if value:
            raise UsageError(
                f"{option} needs a log: `ciphercost predict access.log --from RUN {option} …`; or remove it"
            )
    if given["format_"] == "md":
        raise UsageError(
            "--format md needs a log, as in `ciphercost predict access.log --from RUN`; without one: terminal or json"
        )


def predict_log(logs: Sequence[str], given: Mapping[str, Any]) -> None:
    """Print the prediction. Raises UsageError."""
    import msgspec

    from ciphercost.estimate.log_prediction import Known
    from ciphercost.load import units
    from ciphercost.model import run_directory
    from ciphercost.report import log_prediction_document
    from ciphercost.report.renderers import md, terminal
    from ciphercost.runs import conclude, predict_log

    if given["format_"] not in FORMATS:
        raise UsageError(f"unknown format '{given['format_']}': {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    _refuse(given)
    per_connection = given["per_connection"]
    if per_connection is not None and not 1 <= per_connection < 1e9:
        raise UsageError(f"--requests-per-connection {per_connection:g}: must be 1 or more")
    known = Known(
        cpu_us=units.cpu_time(given["cpu"], "--cpu") * 1e6 if given["cpu"] is not None else None,
        cores=given["cores"],
        bytes_per_operation=units.length(given["response"], "--response") if given["response"] is not None else None,
    )
    price = units.price(given["price"]) if given["price"] is not None else None
    runs = [conclude.result_of(run_directory.find(name)) for name in given["from_runs"]]
    against = [conclude.result_of(run_directory.find(name)) for name in given["against"]]
    predict_log.check(runs, against)
    progress = LogProgress(shown=not given["no_progress"])
    found = predict_log.traffic([Path(log) for log in logs], progress.show)
    progress.end(found)
    predictions = [
        log_prediction_document.at_price(predicted, price)
        for predicted in predict_log.predict(found, runs, known, per_connection, against)
    ]
    if given["format_"] == "json":
        text = msgspec.json.format(msgspec.json.encode(predictions)).decode()
    else:
        render = md.text if given["format_"] == "md" else terminal.text
        text = "\n\n".join(render(log_prediction_document.of(predicted)) for predicted in predictions)
    write_or_print(text, None)


def _refuse(given: Mapping[str, Any]) -> None:
    """Raises UsageError for what the log tells itself, and for what belongs to other predictions."""
    for name, value in given.items():
        if name not in TAKEN and value is not None:
            option = {"time": "--for"}.get(name, f"--{name.replace('_', '-')}")
            raise UsageError(f"{option} {value} has no effect with a log (--from), whose counts are taken; remove it")
