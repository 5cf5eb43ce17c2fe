"""calibrate: `ciphercost calibrate`."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from ciphercost.commands._measure import COST_OF_FAILURE, banner, has_failed, measure
from ciphercost.commands._options import MEASURE, OUTPUT, options
from ciphercost.commands._spec import cell_of, spec_of
from ciphercost.model.errors import UsageError


@click.command()
@click.argument("engine", metavar="ENGINE[@VERSION]")
@options(*MEASURE, *OUTPUT)
def calibrate(engine: str, **given: Any) -> None:
    """Plain against plain: this machine's noise floor.

    The smallest difference that a run of this length can tell from noise, and how long a run must be to see 1 %.
    """
    if ":" in engine:
        raise UsageError(f"calibrate takes an engine alone, not '{engine}': both of its arms are plain")
    given["time_"] = given["time_"] or "45s"  # and a quarter of a minute for eight starts
    given["regime"] = given["regime"] or "one-core"
    given["no_latency"] = True
    from ciphercost.report import calibration
    from ciphercost.runs import pipeline

    made = spec_of([cell_of(f"{engine}:none", given)], given)
    banner(made)
    failed = measure(given, partial(pipeline.run_in, made), has_failed, calibration.text)
    raise click.exceptions.Exit(COST_OF_FAILURE if failed else 0)
