"""`ciphercost workload`."""

from __future__ import annotations

from pathlib import Path

import click

from ciphercost.commands import _completers
from ciphercost.commands._log_progress import LogProgress
from ciphercost.commands._measure import write, write_or_print
from ciphercost.commands._options import NO_PROGRESS, options
from ciphercost.commands._say import note
from ciphercost.model.errors import UsageError


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE…")
@options(
    click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        metavar="FILE.toml",
        help="File of the workload, for `run --workload FILE.toml`. Without it only the page is printed.",
    ),
    click.option(
        "--html",
        "page",
        type=click.Path(path_type=Path),
        metavar="FILE.html",
        help="Also write what was found as a web page.",
    ),
    click.option(
        "--format",
        "format_",
        metavar="FORMAT",
        help="Format of the logs: combined (also common), haproxy, json-web, postgresql-text, postgresql-csv, postgresql-json, mysql-general, "
        "mysql-slow or sql-counters. [default: their content shows it]",
        shell_complete=_completers.log_formats,
    ),
    click.option(
        "--keep-paths",
        is_flag=True,
        help="Web: keep the paths of GET and HEAD requests, without their queries, to request them from a site of yours (--url). "
        "[default: the workload has no path]",
    ),
    click.option("--writes", is_flag=True, help="SQL: keep statements that write. [default: only those that read]"),
    click.option(
        "--speed",
        type=float,
        default=1.0,
        metavar="FACTOR",
        help="With --regime latency, operations come this many times as often as in the busiest hour of the logs. [default: 1]",
    ),
    click.option(
        "--keep-alive",
        metavar="DURATION",
        help="Web: idle time after which a connection counts as closed, where the log does not tell connections apart. [default: 75s, nginx's]",
    ),
    NO_PROGRESS,
)
def workload(
    files: tuple[Path, ...],
    output: Path | None,
    page: Path | None,
    format_: str | None,
    keep_paths: bool,
    writes: bool,
    speed: float,
    keep_alive: str | None,
    no_progress: bool,
) -> None:
    """Make a workload from your server's logs.

    Reads access logs of nginx, Apache, Caddy and HAProxy, also compressed and rotated ones, and shows what they hold: requests by class, sizes,
    connections, arrivals, and the lines left out. The workload repeats that mix with documents of the logged sizes. No path, address or
    user of the logs is in it, unless you give --keep-paths.

    Also reads logs of PostgreSQL, MySQL and MariaDB that hold all statements. The workload has samples of each class of transactions with
    their values, to run on a copy of the data.

    \b
      ciphercost workload /var/log/nginx/access.log* -o mine.toml
      ciphercost run nginx:tls --workload mine.toml
      ciphercost workload /var/log/postgresql/*.log -o statements.toml
      ciphercost run postgresql:tls --dump shop.dump --workload statements.toml
    """
    from ciphercost.load import units, workload_file
    from ciphercost.model.spec import WORKLOAD_FILE
    from ciphercost.report import traffic_document
    from ciphercost.report.formats import html
    from ciphercost.report.renderers import terminal
    from ciphercost.runs import workload_from_logs, workload_of_statements

    if not 0 < speed <= 1e6:
        raise UsageError(f"--speed {speed:g}: must be above 0 and at most 1,000,000")
    if output and output.suffix != WORKLOAD_FILE:
        raise UsageError(f"-o {output}: the name of a workload's file must end with .toml, so that --workload knows it")
    asked = workload_from_logs.Asked(format_ or "", keep_paths, writes, speed)
    if keep_alive:
        asked = asked._replace(keep_alive=max(1, round(units.duration(keep_alive, "--keep-alive"))))
    progress = LogProgress(shown=not no_progress)
    found, made = workload_from_logs.read(files, asked, progress.show)
    progress.end(found)
    document = traffic_document.of(found, shapes=made.shapes)
    if output:
        text = workload_file.write(made, workload_from_logs.comments(found, made, output))
        (workload_of_statements.write_private if made.written_for else write)(output, text)
    if page:
        write(page, html.render_document(document) + "\n")
    write_or_print(terminal.text(document), None)
    if output:
        note(workload_from_logs.next_step(made, output))
