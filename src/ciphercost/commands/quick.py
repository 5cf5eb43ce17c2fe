"""`ciphercost quick`."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from ciphercost.commands._complain import complain
from ciphercost.commands._measure import COST_OF_FAILURE, has_failed, measure
from ciphercost.commands._options import OUTPUT, options, time_option


@click.command()
@options(time_option("Load time of the whole run, e.g. 90s or 3m. [default: 60s]"), *OUTPUT)
def quick(**given: Any) -> None:
    """Measure in about two minutes what encryption costs here.

    Measures SQLite with SQLCipher, and PostgreSQL with TLS if it is installed or can be fetched. One core, one session for
    each cell.
    """
    from ciphercost.plan import quick
    from ciphercost.runs import pipeline

    quick.spec(given["seed"], given["time_"])  # refuses bad usage before anything is fetched
    cells, more = quick.cells()
    plan = quick.plan(given["seed"], given["time_"], cells)
    failed = measure(given, partial(pipeline.run_in, plan), has_failed)
    if more:
        complain(more)
    raise click.exceptions.Exit(COST_OF_FAILURE if failed else 0)
