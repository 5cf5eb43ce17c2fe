"""`ciphercost predict`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ciphercost.commands import _completers
from ciphercost.commands._measure import write_or_print
from ciphercost.commands._options import (
    LOAD,
    NO_PROGRESS,
    OWN_TLS_OPTIONS,
    PASSWORD_OPTIONS,
    PRICE,
    RESULT,
    YOURS,
    Sectioned,
    options,
    section,
)
from ciphercost.commands._predict_log import LOG_OPTIONS, OF_LOGS, predict_log, refuse_without_log
from ciphercost.commands._say import note
from ciphercost.model.errors import UsageError

if TYPE_CHECKING:
    from ciphercost.model.result import Unit

LEAST, MOST = 1.0, 3600.0
"""Seconds between the two reads of a server's counters."""


@click.command(cls=Sectioned)
@click.argument("what", nargs=-1, required=True, metavar="RUN|latest|LOG…", shell_complete=_completers.runs_or_files)
@options(
    *section(
        LOAD,
        *LOG_OPTIONS,
        click.option("--rate", metavar="N/s", help="Operations per second of your server, e.g. 2000/s."),
        click.option(
            "--cpu",
            "cpu",
            metavar="TIME",
            help="CPU time that your server takes for one operation without encryption, e.g. 300us.",
        ),
        click.option(
            "--cores", type=float, metavar="N", help="Cores of your server, or of all servers that share the rate."
        ),
        click.option(
            "--round-trips",
            type=float,
            metavar="N",
            help="In transit: requests of an operation that are sent and answered one by one, e.g. 7 for a transaction of seven statements. "
            "[default: 1]",
        ),
        click.option(
            "--response",
            metavar="SIZE",
            help="In transit: bytes that an operation sends, e.g. 4KB. [default: the smallest measured]",
        ),
        click.option(
            "--connections", metavar="N/s", help="In transit: new connections per second, e.g. 10/s. [default: none]"
        ),
        click.option(
            "--pages-read", metavar="N/s", help="At rest: pages that the server reads from its files per second."
        ),
        click.option("--pages-written", metavar="N/s", help="At rest: pages that it writes to them."),
        click.option(
            "--log",
            metavar="SIZE/s",
            help="At rest: log that it writes, e.g. 2MB/s. [default: as much for each page written as was measured]",
        ),
        click.option("--sealed", metavar="N/s", help="In columns: values that are encrypted per second."),
        click.option("--opened", metavar="N/s", help="In columns: values that are decrypted."),
        click.option("--searched", metavar="N/s", help="In columns: searches for a value."),
    ),
    *section(
        YOURS,
        click.option(
            "--url",
            metavar="URL",
            help="Read the load from the counters of your server, e.g. postgresql://me@prod/shop or http://prod/nginx_status. It sends no "
            "load and changes nothing; what you give by an option counts instead.",
        ),
        click.option("--for", "time", metavar="TIME", help="With --url: seconds between its two reads. [default: 10s]"),
        *OWN_TLS_OPTIONS,
        *PASSWORD_OPTIONS,
    ),
    *section(
        RESULT,
        click.option(
            "--format",
            "format_",
            default="terminal",
            metavar="FORMAT",
            help="terminal or json; with a log also md. [default: terminal]",
        ),
        PRICE,
        NO_PROGRESS,
    ),
)
def predict(what: tuple[str, ...], **given: Any) -> None:
    """Predict what encryption would cost your own server.

    It makes no load. It takes what a run measured, and your server's load: for a connection, a round trip and a byte in transit (`quick`, or
    `run ENGINE:tls --split`), for a page at rest, for a value in columns. The added CPU time does not depend on what your statements
    themselves cost. A log, or a workload file that was made from logs, tells the load of every hour (in transit).

    \b
      ciphercost predict latest --rate 2000/s --cpu 300us --cores 16
      ciphercost predict latest --rate 900/s --cpu 2ms --response 4KB
      ciphercost predict latest --rate 900/s --cpu 2ms --pages-read 300/s
      ciphercost predict latest --url postgresql://me@prod/shop --cpu 300us
      ciphercost predict access.log access.log.1.gz --from latest
    """
    if given["cores"] is not None and not 0 < given["cores"] < 1e6:
        raise UsageError(f"--cores {given['cores']:g}: must be above 0 and below 1,000,000")
    asked = click.get_current_context().get_parameter_source("password_command")
    if asked is click.core.ParameterSource.COMMANDLINE and given["url"] is None:
        raise UsageError("--password-command has no effect without --url; remove it")
    if given["from_runs"]:
        predict_log(what, given)
        return
    refuse_without_log(given)
    _predict_load(_run(what), **{name: value for name, value in given.items() if name not in (*OF_LOGS, "no_progress")})


def _run(what: tuple[str, ...]) -> Path:
    """The run's directory. Raises UsageError, also for a log without --from."""
    from ciphercost.model import run_directory

    first, *others = what
    if others:
        raise UsageError(
            f"{others[0]}: one run at a time; for logs name the run with --from, as in `ciphercost predict {what[-1]} --from {first}`"
        )
    if Path(first).is_file():
        raise UsageError(
            f"{first} is a file and no run; for a log name the run with --from, as in `ciphercost predict {first} --from latest`"
        )
    return run_directory.find(first)


def _predict_load(
    run: Path,
    *,
    rate: str | None,
    cpu: str | None,
    cores: float | None,
    round_trips: float | None,
    response: str | None,
    connections: str | None,
    url: str | None,
    time: str | None,
    ca: str | None,
    cert: str | None,
    key: str | None,
    server_name: str | None,
    format_: str,
    price: str | None,
    **units_: str | None,
) -> None:
    import msgspec

    from ciphercost.load import units
    from ciphercost.model.own_tls import OwnTls
    from ciphercost.model.server_counters import GivenLoad
    from ciphercost.report import prediction_text
    from ciphercost.runs import conclude, predict_load

    if format_ not in ("terminal", "json"):
        raise UsageError(f"unknown format '{format_}': terminal or json")
    given = GivenLoad(
        rate=units.rate(rate, "--rate") if rate is not None else None,
        cpu_us=units.cpu_time(cpu, "--cpu") * 1e6 if cpu is not None else None,
        bytes_per_operation=units.length(response, "--response") if response is not None else None,
        connections=units.rate(connections, "--connections") if connections is not None else None,
        cores=cores,
        round_trips=round_trips,
        units=_units(units_),
    )
    if round_trips is not None and not 0 < round_trips < 1e6:
        raise UsageError(f"--round-trips {round_trips:g}: must be above 0 and below 1,000,000")
    if given.rate is not None and given.rate <= 0:
        raise UsageError(f"--rate {rate}: must be above 0")
    own_tls = OwnTls(ca or "", cert or "", key or "", server_name or "")
    for option, value in (("--for", time), *own_tls.options.items()):
        if value and url is None:
            raise UsageError(f"{option} {value} has no effect without --url; remove it")
    seconds = units.duration(time or "10s", "--for")
    if not LEAST <= seconds <= MOST:
        raise UsageError(f"--for {time}: must be from {LEAST:g} s to {MOST / 3600:g} h")
    priced = units.price(price) if price is not None else None
    result = conclude.result_of(run)
    predictions = [
        prediction_text.at_price(predicted, priced)
        for predicted in predict_load.predict(result, given, url, seconds=seconds, own_tls=own_tls, begins=note)
    ]
    text = (
        msgspec.json.format(msgspec.json.encode(predictions)).decode()
        if format_ == "json"
        else prediction_text.page(predictions)
    )
    write_or_print(text, None)


def _units(given: Mapping[str, str | None]) -> dict[Unit, float]:
    """Pages, kilobytes of log and values per second, as far as they were given. Raises UsageError."""
    from ciphercost.load import units
    from ciphercost.model.prediction import UNIT_OPTIONS

    rates: dict[Unit, float] = {}
    for unit, option in UNIT_OPTIONS.items():
        text = given[option.removeprefix("--").replace("-", "_")]
        if text is None:
            continue
        if unit != "kilobyte of log":
            rates[unit] = units.rate(text, option)
            continue
        size, mark, second = text.rpartition("/")
        if not mark or second.strip() != "s":
            raise UsageError(f"{option}: '{text}' is not bytes per second; write e.g. 2MB/s")
        rates[unit] = units.length(size, option) / 1e3
    return rates
