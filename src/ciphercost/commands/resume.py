"""`ciphercost resume`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from ciphercost.commands import _completers
from ciphercost.commands._measure import COST_OF_FAILURE, has_failed, measure
from ciphercost.commands._options import HEADER_OPTION, JSON, NO_PROGRESS, PASSWORD_OPTIONS, options
from ciphercost.commands._say import Loading, say
from ciphercost.commands.replicate import all_studies


@click.command()
@click.argument(
    "run_",
    metavar="RUN|latest",
    shell_complete=_completers.runs,
)
@options(
    HEADER_OPTION,
    *PASSWORD_OPTIONS,
    click.option(
        "--trust-record",
        is_flag=True,
        help="Resume a record that you did not begin on this machine, although it names programs, files or servers: an error lists them first.",
    ),
    JSON,
    NO_PROGRESS,
)
def resume(run_: str, **given: Any) -> None:
    """Resume a run that was interrupted or whose cells failed.

    Keeps every complete session and repeats the unfinished one. Runs record no passwords, so ciphercost reads or asks for
    them again; nor do they record the values of headers, which --header gives again.
    """
    from ciphercost.load import headers
    from ciphercost.model import run_directory
    from ciphercost.provision import dump_tables
    from ciphercost.runs import replicate, replicate_all, resume, spread

    loading = Loading()
    click.get_current_context().with_resource(dump_tables.available(loading.say, loading.show))
    headers.remember(given.pop("headers"))
    if (several := replicate_all.find(run_)) is not None:
        replicate_all.check(several, trusted=given["trust_record"])
        all_studies(several, given)
    if (over := spread.find(run_)) is not None:
        from ciphercost.commands import _machines

        _machines.resume(over, given)
    directory = run_directory.find(run_)
    if resume.finished(directory):
        say(f"{directory} is finished; `ciphercost report {shlex.quote(str(directory))}` prints it")
        return

    def run_in(_: Path | None, display: Any, __: str) -> Any:
        return resume.run_in(directory, display, trusted=given["trust_record"])

    failed = measure({**given, "output": None}, run_in, lambda result: has_failed(result) or replicate.failed(result))
    raise click.exceptions.Exit(COST_OF_FAILURE if failed else 0)
