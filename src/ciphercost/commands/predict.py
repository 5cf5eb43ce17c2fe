"""`ciphercost predict`."""

from __future__ import annotations

import click

from ciphercost.commands import _completers
from ciphercost.commands._measure import write_or_print
from ciphercost.commands._options import OWN_TLS_OPTIONS, PASSWORD_OPTIONS, PRICE, options
from ciphercost.commands._say import note
from ciphercost.model.errors import UsageError

LEAST, MOST = 1.0, 3600.0
"""Seconds between the two reads of a server's counters."""


@click.command()
@click.argument("run_", metavar="RUN|latest", shell_complete=_completers.runs)
@click.option("--rate", metavar="N/s", help="Operations per second of your server, e.g. 2000/s.")
@click.option(
    "--cpu",
    "cpu",
    metavar="TIME",
    help="CPU time that your server takes for one operation without encryption, e.g. 300us.",
)
@click.option(
    "--response", metavar="SIZE", help="Bytes that an operation sends, e.g. 4KB. [default: the smallest measured]"
)
@click.option("--connections", metavar="N/s", help="New connections per second, e.g. 10/s. [default: none]")
@click.option("--cores", type=float, metavar="N", help="Cores of your server, or of all servers that share the rate.")
@click.option(
    "--url",
    metavar="URL",
    help="Read all of these from the counters of your server, e.g. postgresql://me@prod/shop or http://prod/nginx_status. It sends no load "
    "and changes nothing; what you give by an option counts instead.",
)
@click.option("--for", "time", metavar="TIME", help="With --url: seconds between its two reads. [default: 10s]")
@options(*OWN_TLS_OPTIONS, *PASSWORD_OPTIONS)
@click.option("--format", "format_", default="terminal", metavar="FORMAT", help="terminal or json. [default: terminal]")
@PRICE
def predict(
    run_: str,
    rate: str | None,
    cpu: str | None,
    response: str | None,
    connections: str | None,
    cores: float | None,
    url: str | None,
    time: str | None,
    ca: str | None,
    cert: str | None,
    key: str | None,
    server_name: str | None,
    format_: str,
    price: str | None,
) -> None:
    """Predict what encryption would cost your own server.

    It makes no load. It takes what a run measured for a connection, an operation and a byte (`quick`, or `run ENGINE:tls --split`), and your
    server's load. The added CPU time does not depend on what your statements themselves cost.

    \b
      ciphercost predict latest --rate 2000/s --cpu 300us --cores 16
      ciphercost predict latest --rate 900/s --cpu 2ms --response 4KB
      ciphercost predict latest --url postgresql://me@prod/shop --cpu 300us
    """
    import msgspec

    from ciphercost.load import units
    from ciphercost.model import run_directory
    from ciphercost.model.own_tls import OwnTls
    from ciphercost.model.server_counters import GivenLoad
    from ciphercost.report import prediction_text
    from ciphercost.runs import conclude, predict_load

    if format_ not in ("terminal", "json"):
        raise UsageError(f"unknown format '{format_}': terminal or json")
    if cores is not None and not 0 < cores < 1e6:
        raise UsageError(f"--cores {cores:g}: must be above 0 and below 1,000,000")
    given = GivenLoad(
        rate=units.rate(rate, "--rate") if rate is not None else None,
        cpu_us=units.cpu_time(cpu, "--cpu") * 1e6 if cpu is not None else None,
        bytes_per_operation=units.length(response, "--response") if response is not None else None,
        connections=units.rate(connections, "--connections") if connections is not None else None,
        cores=cores,
    )
    if given.rate is not None and given.rate <= 0:
        raise UsageError(f"--rate {rate}: must be above 0")
    own = OwnTls(ca or "", cert or "", key or "", server_name or "")
    for option, value in (("--for", time), *own.options.items()):
        if value and url is None:
            raise UsageError(f"{option} {value} has no effect without --url; remove it")
    seconds = units.duration(time or "10s", "--for")
    if not LEAST <= seconds <= MOST:
        raise UsageError(f"--for {time}: must be from {LEAST:g} s to {MOST / 3600:g} h")
    priced = units.price(price) if price is not None else None
    result = conclude.result_of(run_directory.find(run_))
    found = [
        prediction_text.at_price(each, priced)
        for each in predict_load.predict(result, given, url, seconds=seconds, own_tls=own, begins=note)
    ]
    text = (
        msgspec.json.format(msgspec.json.encode(found)).decode() if format_ == "json" else prediction_text.page(found)
    )
    write_or_print(text, None)
