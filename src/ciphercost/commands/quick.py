"""quick: `ciphercost quick`."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from ciphercost.commands._complain import complain
from ciphercost.commands._measure import COST_OF_FAILURE, has_failed, measure
from ciphercost.commands._options import OUTPUT, options


@click.command()
@options(*OUTPUT)
def quick(**given: Any) -> None:
    """One minute: what does encryption cost here?

    SQLite with SQLCipher, and PostgreSQL with TLS where it is found or can be fetched; on one core, one session each.
    """
    from ciphercost.plan import quick
    from ciphercost.runs import pipeline

    quick.spec(given["seed"], given["time_"])  # bad usage is refused before anything is fetched
    cells, more = quick.cells()
    spec = quick.spec(given["seed"], given["time_"], cells)
    failed = measure(given, partial(pipeline.run_in, spec), has_failed)
    if more:
        complain(more)
    raise click.exceptions.Exit(COST_OF_FAILURE if failed else 0)
