"""`ciphercost predict`."""

from __future__ import annotations

import click

from ciphercost.commands import _completers
from ciphercost.commands._measure import write_or_print
from ciphercost.commands._options import PRICE
from ciphercost.model.errors import UsageError


@click.command()
@click.argument("run_", metavar="RUN|latest", shell_complete=_completers.runs)
@click.option("--rate", required=True, metavar="N/s", help="Operations per second of your server, e.g. 2000/s.")
@click.option(
    "--cpu",
    "cpu",
    required=True,
    metavar="TIME",
    help="CPU time that your server takes for one operation without encryption, e.g. 300us.",
)
@click.option(
    "--response", metavar="SIZE", help="Bytes that an operation sends, e.g. 4KB. [default: the smallest measured]"
)
@click.option("--connections", metavar="N/s", help="New connections per second, e.g. 10/s. [default: none]")
@click.option("--cores", type=float, metavar="N", help="Cores of your server, or of all servers that share the rate.")
@click.option("--format", "format_", default="terminal", metavar="FORMAT", help="terminal or json. [default: terminal]")
@PRICE
def predict(
    run_: str,
    rate: str,
    cpu: str,
    response: str | None,
    connections: str | None,
    cores: float | None,
    format_: str,
    price: str | None,
) -> None:
    """Predict what encryption would cost your own server.

    It makes no load. It takes what a run measured for a connection, an operation and a byte (`quick`, or `run ENGINE:tls --split`), and your
    server's load. The added CPU time does not depend on what your statements themselves cost.

    \b
      ciphercost predict latest --rate 2000/s --cpu 300us --cores 16
      ciphercost predict latest --rate 900/s --cpu 2ms --response 4KB
    """
    import msgspec

    from ciphercost.estimate import prediction
    from ciphercost.load import units
    from ciphercost.model import run_directory
    from ciphercost.model.prediction import Load
    from ciphercost.report import prediction_text
    from ciphercost.runs import conclude

    if format_ not in ("terminal", "json"):
        raise UsageError(f"unknown format '{format_}': terminal or json")
    if cores is not None and not 0 < cores < 1e6:
        raise UsageError(f"--cores {cores:g}: must be above 0 and below 1,000,000")
    load = Load(
        rate=units.rate(rate, "--rate"),
        cpu_us=units.cpu_time(cpu, "--cpu") * 1e6,
        bytes_per_operation=units.length(response, "--response") if response is not None else None,
        connections=units.rate(connections, "--connections") if connections is not None else 0.0,
        cores=cores,
    )
    if load.rate <= 0:
        raise UsageError(f"--rate {rate}: must be above 0")
    priced = units.price(price) if price is not None else None
    result = conclude.result_of(run_directory.find(run_))
    found = [prediction_text.at_price(each, priced) for each in prediction.predict(result, load)]
    text = (
        msgspec.json.format(msgspec.json.encode(found)).decode() if format_ == "json" else prediction_text.page(found)
    )
    write_or_print(text, None)
