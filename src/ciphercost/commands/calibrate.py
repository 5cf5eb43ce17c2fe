"""`ciphercost calibrate`."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from ciphercost.commands import _completers
from ciphercost.commands._measure import COST_OF_FAILURE, banner, has_failed, measure
from ciphercost.commands._options import LOAD, MEASURE, OUTPUT, Sectioned, options, section, time_option
from ciphercost.commands._spec import cell_of, plan_of
from ciphercost.model.errors import UsageError


@click.command(cls=Sectioned)
@click.argument(
    "engine",
    metavar="ENGINE[@VERSION]",
    shell_complete=_completers.engines,
)
@options(*MEASURE, *section(LOAD, time_option("Load time, e.g. 90s or 3m. [default: 45s]")), *OUTPUT)
def calibrate(engine: str, **given: Any) -> None:
    """Measure the noise of this machine: plain against plain.

    Prints the smallest cost that a run of this length can resolve, and how long a run must be to resolve 1 %. Both arms
    are unencrypted, so any difference is noise. Runs without a latency phase, and with --regime one-core by default (capacity with --cluster).
    """
    if ":" in engine:
        raise UsageError(
            f"calibrate '{engine}': give the engine without a mechanism, e.g. {engine.partition(':')[0]}; both arms are plain"
        )
    given["time_"] = given["time_"] or "45s"  # plus about 15 s for eight starts
    # One core for client and server needs the client here.
    given["regime"] = given["regime"] or ("capacity" if given["cluster"] else "one-core")
    given["no_latency"] = True
    from ciphercost.report import calibration
    from ciphercost.runs import pipeline

    plan = plan_of([cell_of(f"{engine}:none", given)], given)
    banner(plan)
    failed = measure(given, partial(pipeline.run_in, plan), has_failed, calibration.text)
    raise click.exceptions.Exit(COST_OF_FAILURE if failed else 0)
