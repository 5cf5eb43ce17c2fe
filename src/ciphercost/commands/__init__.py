"""commands: parse, call, print; no logic. Heavy modules are imported where they are called, so that --help is quick."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ciphercost.host import deadlines
from ciphercost.model.errors import CiphercostError, Interrupted, UsageError, nearest
from ciphercost.model.version import VERSION

if TYPE_CHECKING:
    from ciphercost.model.result import Result

COST_OF_FAILURE = 1
"""A cell failed or a proof failed."""


class Commands(click.Group):
    """A group that names the nearest command for one that it doesn't know."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise UsageError(f"unknown command '{args[0]}': {nearest(args[0], self.commands)}")
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, message="%(prog)s %(version)s")
def cli() -> None:
    """What does encryption cost this database or web server, here, and is it really on?

    Begin with `ciphercost quick`. Exit status: 0 done · 1 a cell or a proof failed · 2 bad usage · 3 a budget is exceeded · 4 unresolved,
    where a verdict was demanded.
    """


def main() -> NoReturn:
    """Entry point. Every known failure is one clear message and its exit status; never a traceback."""
    try:
        deadlines.login()  # a wrong setting is refused before anything is started
        status = cli.main(standalone_mode=False)
    except click.exceptions.Exit as error:
        status = error.exit_code
    except click.ClickException as error:
        error.show()
        status = 2
    except CiphercostError as error:
        complain(str(error))
        status = error.exit_status
    except (KeyboardInterrupt, click.exceptions.Abort) as error:
        told = next((each for each in (error, error.__cause__) if isinstance(each, Interrupted)), "interrupted")
        complain(str(told))
        status = 130
    except BrokenPipeError:
        sys.stderr.close()
        status = 1
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        complain(f"{error.strerror or error}{where}; what was written until then is kept")
        status = 1
    raise SystemExit(status if isinstance(status, int) else 0)


def complain(text: str) -> None:
    """On a terminal in its width; a program that reads it gets it in one piece."""
    from ciphercost.report.words import printable

    said = printable(f"ciphercost: {text}")
    if sys.stderr.isatty():
        import shutil

        from ciphercost.report.layout import wrap

        width = max(20, min(shutil.get_terminal_size().columns - 1, 100))
        said = "\n".join(line for each in said.splitlines() for line in wrap(each, further="  ", width=width))
    print(said, file=sys.stderr)


# ── options that several commands share ───────────────────────────────────────────────────────────────────────────────


def options(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def apply(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


OUTPUT = (
    click.option(
        "--time",
        "time_",
        metavar="DURATION",
        help="Load time of each cell: 90s, 3m. [default: 90s; with a cell at rest 240s]",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0, 2**63 - 1),
        default=0,
        help="Of every random choice; 0 draws one and prints it.",
    ),
    click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="The run's directory. [default: ./runs/<id>]",
    ),
    click.option(
        "--json",
        "json_",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Also write result.json here; - is standard output.",
    ),
    click.option("--no-progress", is_flag=True, help="Say nothing while it runs."),
)
IV_OPTION = click.option(
    "--iv",
    type=click.Choice(["random", "fixed"]),
    help="In columns: an IV of its own for each value, or one for all, as published studies have it. Short for --set iv=…. "
    "[default: random]",
)
MEASURE = (
    click.option("--workload", metavar="W", help="See `ciphercost list workloads`. [default: point-select]"),
    click.option(
        "--set", "factors", multiple=True, metavar="NAME=VALUE", help="A mechanism's factor or a workload's parameter."
    ),
    IV_OPTION,
    click.option("--clients", type=int, help="Connections. [default: the workload's]"),
    click.option("--rows", type=int, help="Rows of the main table."),
    click.option("--precision", metavar="SHARE", help="Stop once the interval is ± this: 1%."),
    click.option("--sessions", type=int, help="Fresh server pairs; the interval's unit. [default: 8]"),
    click.option("--quick", "quick_mode", is_flag=True, help="One session: faster, for this server pair only."),
    click.option(
        "--regime",
        type=click.Choice(["capacity", "one-core", "latency"]),
        help="Where processes run and how busy they are.",
    ),
    click.option("--pooled/--per-request", default=None, help="Keep connections, or open one for each operation."),
    click.option(
        "--rate",
        type=float,
        help="Open loop: operations a second. [default: 60 % of the plain arm's capacity, at most 75 % of the encrypted one's]",
    ),
    click.option("--no-latency", is_flag=True, help="Spend all time on capacity."),
    click.option(
        "--url",
        "urls",
        multiple=True,
        help="A server of yours: mysql://user@host:port/db; of the web a pair: http://… and https://…. The password is never "
        "in it: PGPASSWORD, MYSQL_PWD, ISC_PASSWORD, ~/.pgpass, ~/.my.cnf, or it is asked for. `ciphercost list grants` prints the rights that the user needs.",
    ),
    click.option("--ca", metavar="FILE", help="Certificate authority of that server, PEM."),
    click.option("--bindir", metavar="DIR", help="Binaries of the server to start."),
    click.option("--sql", metavar="FILE", help="Your own statements: pgbench's script language."),
    click.option(
        "--client",
        metavar="CLIENT",
        help="Who makes the load: rust, jdbc (the newest driver), jdbc:9.7.0. [default: rust]",
    ),
    click.option(
        "--driver", metavar="FILE.jar", help="A JDBC driver of yours; what it needs behind it, separated by ':'."
    ),
    click.option(
        "--setting",
        "settings",
        multiple=True,
        metavar="NAME=VALUE",
        help="Of the server that is started, in both arms.",
    ),
    click.option("--csv", metavar="FILE", help="Your own rows: mixed-crud on a table made from this file."),
    click.option(
        "--cpu-crypto",
        type=click.Choice(["on", "off"]),
        help="off: both arms without the CPU's AES instructions. [default: on]",
    ),
    click.option("--bandwidth", metavar="RATE", help="Both arms over a link this fast each way: 100mbit. Needs root."),
    click.option("--delay", metavar="DURATION", help="Both arms with this much added to each round trip: 10ms."),
    click.option("--mtu", type=int, help="Both arms over a link of this MTU: 1500. Needs root."),
    click.option(
        "--idle",
        type=click.Choice(["poll", "halt"]),
        help="What idle cores do while load is made, in both arms. [default: poll where possible, which needs root]",
    ),
    click.option(
        "--cache",
        type=click.Choice(["warm", "cold", "small"]),
        help="At rest, both arms: the server's own cache as it comes; emptied before each session; a tenth of the data. [default: warm]",
    ),
)


def _cell(target: str, given: dict[str, Any]) -> Any:
    from ciphercost import engines
    from ciphercost.load import tables
    from ciphercost.model.spec import CellSpec
    from ciphercost.plan import targets as targets_

    engine, version, mechanism = targets_.target(target)
    factors = _pairs("--set", given["factors"], "version=1.2")
    if given.get("iv"):
        factors |= _iv(mechanism, given["iv"], factors)
    if given["pooled"] and given["workload"] == "connect":
        raise UsageError("workload connect opens a connection for each operation: leave --pooled out")
    if given["sql"] and given["workload"]:
        raise UsageError("--workload and --sql both say what an operation is: leave one of them out")
    if given["csv"] and not given.get("no_progress"):
        announce_reading(given["csv"])
    for name in ("clients", "rows", "rate", "sessions", "mtu"):
        if given.get(name) is not None and given[name] <= 0:
            raise UsageError(
                f"--{name} {given[name]}: must be at least 1" if name != "rate" else "--rate: must be above 0"
            )
    return CellSpec(
        engine=engine,
        version=version,
        mechanism=mechanism,
        workload=given["workload"] or (tables.DEFAULT_WORKLOAD if given["csv"] else engines.get(engine).usual_workload),
        factors=factors,
        clients=given["clients"] or 0,
        rows=given["rows"] or 0,
        regime=given["regime"] or "capacity",
        per_request=given["pooled"] is False,
        rate=given["rate"] or 0.0,
        url=" ".join(each.strip().replace(" ", "%20") for each in given["urls"]),
        ca=given["ca"] or "",
        bindir=given["bindir"] or "",
        sql=given["sql"] or "",
        csv=given["csv"] or "",
        cpu_crypto=given["cpu_crypto"] or "on",
        bandwidth=given["bandwidth"] or "",
        delay=given["delay"] or "",
        mtu=given["mtu"] or 0,
        cache=given["cache"] or "warm",
        idle=given["idle"] or "",
        client="" if given["client"] in (None, "rust") else given["client"],
        driver=given["driver"] or "",
        settings=_pairs("--setting", given.get("settings", ()), "shared_buffers=1GB"),
    )


def _pairs(option: str, texts: Iterable[str], example: str) -> dict[str, str]:
    """`NAME=VALUE` of an option that may be given again. Raises UsageError."""
    found = {}
    for each in texts:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {each}: write NAME=VALUE, e.g. {option} {example}")
        found[name] = value
    return found


def _iv(mechanism: str, value: str, factors: dict[str, str]) -> dict[str, str]:
    """The factor that --iv is short for. Raises UsageError where the mechanism has none."""
    from ciphercost import mechanisms

    if "iv" in factors:
        raise UsageError("--iv and --set iv=… say the same: leave one of them out")
    made = mechanisms.get(mechanism)
    if "iv" not in {factor.name for factor in made.factors}:
        why = "ECB has no IV" if "-ecb-" in mechanism else "it is for modes in columns that have an IV"
        raise UsageError(f"--iv {value}: {mechanism} has no choice of IV ({why}): leave --iv out")
    return {"iv": value}


BESIDE_A_FILE = ("output", "json_", "no_progress", "print_spec", "targets")


def refuse_beside_a_file(path: str) -> None:
    """A spec file says everything itself: a flag beside it would be read over without a word. Raises UsageError."""
    context = click.get_current_context()
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in BESIDE_A_FILE and source is click.core.ParameterSource.COMMANDLINE:
            raise UsageError(f"{parameter.opts[0]} has no effect beside a spec file: write it into {path}")


USUAL_SESSIONS = 8
MOST_SESSIONS = 40


def _length(given: dict[str, Any], usual: float) -> tuple[int, float]:
    """(sessions, seconds of load for each cell). With a precision wanted, sessions go on until it is reached or time is up.

    `usual`: seconds where nothing else is asked for.
    """
    from ciphercost.load import units

    a_session = usual / USUAL_SESSIONS
    time = units.duration(given["time_"]) if given["time_"] else 0.0
    if given["quick_mode"]:
        if (given["sessions"] or 1) > 1:
            raise UsageError(f"--quick is one session: leave it out, or --sessions {given['sessions']}")
        return 1, time or usual
    if given["precision"]:
        sessions = given["sessions"] or min(
            MOST_SESSIONS, max(USUAL_SESSIONS, round(time / a_session)) if time else MOST_SESSIONS
        )
        return sessions, time or sessions * a_session
    return given["sessions"] or USUAL_SESSIONS, time or usual


def _spec(cells: list[Any], given: dict[str, Any]) -> Any:
    from ciphercost.load import units
    from ciphercost.model.spec import Spec
    from ciphercost.plan import schedule
    from ciphercost.plan import specs as spec

    sessions, time = _length(given, schedule.seconds(cells))
    made = spec.check(
        Spec(
            cells=cells,
            seed=given["seed"],
            mode="quick" if given["quick_mode"] else "full",
            sessions=sessions,
            time=time,
            precision=units.share(given["precision"]) if given["precision"] else 0.0,
            latency=not given["no_latency"],
        )
    )
    return spec.long_enough(made)


def _run(spec: Any, given: dict[str, Any]) -> None:
    from ciphercost.runs import pipeline

    banner(spec)
    failed = _measure(given, partial(pipeline.run_in, spec), _failed)
    raise click.exceptions.Exit(COST_OF_FAILURE if failed else 0)


def _measure(
    given: dict[str, Any],
    run_in: Callable[..., Any],
    failed: Callable[[Any], bool],
    render: Callable[[Result], str] | None = None,
) -> bool:
    """Run it, print it; whether anything of it failed. `render`: in place of the terminal's report."""
    from ciphercost.report import progress as watch

    watcher = watch.pick(not given["no_progress"])
    result, directory = run_in(given["output"], watcher, command_line())
    _show(result, directory, given["json_"], render)
    return failed(result)


def _show(result: Result, directory: Path, json_: Path | None, render: Callable[[Result], str] | None = None) -> None:
    """What a command that made a run's directory prints at its end; `json_`: where JSON is to go besides, `-` in the place of words."""
    from ciphercost.report import formats as reports
    from ciphercost.runs import html_page

    if str(json_) == "-":
        click.echo(reports.get("json")(result))
        return
    click.echo((render or reports.get("terminal"))(result))
    click.echo(f"kept in {directory}; again:\n  ciphercost report {directory}")
    if (page := directory / html_page.NAME).is_file():
        click.echo(f"to look at and to show:\n  {page}")
    if json_:
        write(json_, reports.get("json")(result) + "\n")


def command_line() -> str:
    """The command as typed, for the record: passwords are never arguments, so there is none in it."""
    return shlex.join(["ciphercost", *sys.argv[1:]])


LONG_BYTES, READ_BYTES_A_SECOND = 100e6, 15e6


def announce_reading(path: str) -> None:
    """A long file is read before anything else is said: say that it is."""
    size = Path(path).stat().st_size if Path(path).is_file() else 0
    if size > LONG_BYTES:
        seconds = f"about {size / READ_BYTES_A_SECOND:.0f} s"
        click.echo(f"reading {path} ({size / 1e6:,.0f} MB) to learn its columns' types: {seconds}", err=True)


def _failed(result: Any) -> bool:
    """Whether a cell has no number, or something of ours is left on the user's server. Pure."""
    left = any(each.code == "schema-left" for cell in result.cells for each in cell.warnings)
    return left or any(cell.status != "ok" for cell in result.cells)


def banner(spec: Any) -> None:
    from ciphercost import engines

    if not any(cell.url for cell in spec.cells):
        return
    if all(engines.get(cell.engine).language == "http" for cell in spec.cells):
        done = "Requests are sent to it, and nothing else is done to it."
    elif any(cell.sql for cell in spec.cells):
        done = "Your statements (--sql) run on your own tables, as they are."
    else:
        done = "Everything is made in a schema of its own, ciphercost_<run>, and dropped at the end."
    first = "This server is not ours. ciphercost does not control it: other load on it is in the figures."
    from ciphercost.report.layout import wrap

    for line in [*wrap(first, "=== ", "=== "), *wrap(done, "=== ", "=== ")]:
        click.echo(line, err=True)


def write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise UsageError(f"can't write {path}: {error.strerror}") from None


# ── measuring ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@cli.command()
@options(*OUTPUT)
def quick(**given: Any) -> None:
    """One minute: what does encryption cost here?

    SQLite with SQLCipher, and PostgreSQL with TLS where it is found or can be fetched; on one core, one session each.
    """
    from ciphercost.plan import quick as quick_
    from ciphercost.runs import pipeline

    quick_.spec(given["seed"], given["time_"])  # bad usage is refused before anything is fetched
    cells, more = quick_.cells()
    spec = quick_.spec(given["seed"], given["time_"], cells)
    failed = _measure(given, partial(pipeline.run_in, spec), _failed)
    if more:
        complain(more)
    raise click.exceptions.Exit(COST_OF_FAILURE if failed else 0)


@cli.command()
@click.argument("targets", nargs=-1, required=True, metavar="ENGINE[@VERSION]:MECHANISM… | FILE.toml")
@options(
    *MEASURE,
    click.option(
        "--matrix",
        multiple=True,
        metavar="NAME=A,B…",
        help="One experiment, a cell for each value; the first is the reference, one factor differs at a time.",
    ),
    click.option("--split", "split_", is_flag=True, help="Where the cost comes from: handshake, request, byte."),
    *OUTPUT,
    click.option("--print-spec", is_flag=True, help="Print the run as a TOML file, and run nothing."),
)
def run(targets: tuple[str, ...], print_spec: bool, **given: Any) -> None:
    """Measure: ENGINE:MECHANISM or a spec file.

    Full mode: eight sessions, each a fresh start of everything, so that the interval covers restarts.
    """
    from ciphercost.load.jdbc.options import settled
    from ciphercost.plan import matrix, toml

    if len(targets) == 1 and targets[0].endswith(".toml"):
        refuse_beside_a_file(targets[0])
        made = toml.load(Path(targets[0]))
    else:
        if given["split_"] and given["matrix"]:
            raise UsageError("--split and --matrix are two experiments: run one after the other")
        if given["split_"] and (wrong := [each for each in ("workload", "sql", "csv", "rows") if given[each]]):
            raise UsageError(f"--split brings its own workloads: leave --{wrong[0]} out")
        cells = [_cell(target, given) for target in targets]
        grouped = [
            matrix.split(cell, number) if given["split_"] else matrix.matrix(cell, given["matrix"], number)
            for number, cell in enumerate(cells)
        ]
        made = _spec(settled(matrix.with_controls([each for cells in grouped for each in cells])), given)
    if print_spec:
        click.echo(toml.dump(made), nl=False)
        return
    _run(made, given)


STUDY_OPTIONS = (
    "scale",
    "rows",
    "duration",
    "clients",
    "bindir",
    "mechanism",
    "select_only",
    "loads",
    "runs",
    "csv",
    "iterations",
    "queries",
    "order",
    "memory",
    "loop",
    "cpu_crypto",
)
"""Of `replicate`: what only some studies have."""


@cli.command()
@click.argument("study", metavar="STUDY|all")
@options(
    click.option(
        "--engine",
        metavar="ENGINE",
        help="Another server than the study's own; of several, those named: A,B. [default: the study's]",
    ),
    click.option("--time", "time_", metavar="DURATION", help="Load of each operation by our method. [default: 60s]"),
    click.option("--scale", type=int, metavar="N", help="Of the data, where the study has one. [default: the study's]"),
    click.option(
        "--duration", metavar="DURATION", help="Of a run as published, where it is timed. [default: the study's]"
    ),
    click.option(
        "--rows",
        metavar="N,N…",
        help="postgres-tde: of the largest table; several: a sweep, with fio at matching sizes. mysql-tls: people in the table. "
        "[default: 5000000; 10000]",
    ),
    click.option("--clients", metavar="N,N…", help="postgres-tde: connections. [default: the study's, 10,50]"),
    click.option(
        "--bindir",
        multiple=True,
        metavar="[NAME=]DIR",
        help="postgres-tde: binaries of a server that has TDE. Repeatable, with names: all servers in one table.",
    ),
    click.option(
        "--mechanism",
        metavar="NAME,NAME…",
        help="postgres-tde: what encrypts where the server has no TDE of its own. [default: fscrypt,gocryptfs]",
    ),
    click.option("--select-only", is_flag=True, help="postgres-tde: run pgbench -S (SELECT only) as well."),
    click.option(
        "--loads",
        metavar="N,N…",
        help="column-functions: records of each load; the study's: 1000,2000,4000,8000. [default: 1000,2000]",
    ),
    click.option(
        "--runs",
        type=int,
        help="column-functions: of each load as published; jdbc-tls: starts of Java. [default: 3; 5]",
    ),
    click.option("--csv", metavar="FILE", help="column-functions: the register's own file. [default: made-up records]"),
    click.option(
        "--loop",
        metavar="LOOP",
        help="jdbc-tls: captured, the post's own statement and transaction, or insert-loop. [default: captured]",
    ),
    click.option("--iterations", type=int, metavar="N", help="mysql-tls: of each operation and arm. [default: 5]"),
    click.option(
        "--queries",
        type=int,
        metavar="N",
        help="mysql-tls: of each iteration; fewer where --time is short. [default: 10000]",
    ),
    click.option(
        "--order",
        metavar="ORDER",
        help="mysql-tls: operations (each with TLS, then in clear: the paper's) or arms (all in clear, then all with TLS). "
        "[default: operations]",
    ),
    click.option(
        "--memory",
        metavar="SIZE",
        help="mysql-tls: of server and client together; the study's: 2GB. [default: no limit]",
    ),
    click.option(
        "--cpu-crypto",
        type=click.Choice(["on", "off"]),
        help="column-functions: off runs both arms without the CPU's AES instructions, as the study did. [default: on]",
    ),
    *OUTPUT[1:],
)
def replicate(study: str, engine: str | None, **given: Any) -> None:
    """Run a published study again.

    As it was published, and by our method; three columns side by side. The published procedure takes --duration for each of its
    runs; where it is not timed, two thirds of --time beside it. `all`: every study, each in a run of its own below one
    directory, and one page at the end.
    """
    from ciphercost.load import units
    from ciphercost.runs import replicate as replicate_

    if given["duration"]:
        given["duration"] = units.duration(given["duration"], "--duration")
    given["bindir"], given["select_only"] = list(given["bindir"]) or None, given["select_only"] or None
    options_ = {name: given[name] for name in STUDY_OPTIONS if given[name] is not None}
    seconds = units.duration(given["time_"]) if given["time_"] else 0.0
    if study == "all":
        from ciphercost.runs import replicate_all

        asked = replicate_all.ask(seconds, given["seed"], engine or "", options_, command_line())
        _all(replicate_all.begin(given["output"], asked), given)
    (chosen,) = replicate_.chosen(study, options_)
    made = chosen.spec(engine or chosen.engine, seconds or chosen.seconds, given["seed"])
    failed = _measure(given, partial(replicate_.run_in, chosen, made, options=options_), replicate_.failed)
    raise click.exceptions.Exit(COST_OF_FAILURE if failed else 0)


def _all(directory: Path, given: dict[str, Any]) -> NoReturn:
    """Run what is left of all studies, and print their page."""
    from ciphercost.report import progress as watch
    from ciphercost.report import together
    from ciphercost.runs import replicate_all

    progress = not given["no_progress"]
    say = partial(click.echo, err=True) if progress else lambda _: None
    found = replicate_all.go_on(directory, lambda: watch.pick(progress), say)
    text = replicate_all.as_json(directory, found)
    click.echo(text if str(given["json_"]) == "-" else together.page(found))
    if given["json_"] and str(given["json_"]) != "-":
        write(given["json_"], text + "\n")
    raise click.exceptions.Exit(COST_OF_FAILURE if replicate_all.failed(found) else 0)


@cli.command()
@click.argument("run_", metavar="RUN|latest")
@options(*OUTPUT[3:])
def resume(run_: str, **given: Any) -> None:
    """Go on with a run that was cut off, or whose cells failed.

    Whole sessions are kept, the unfinished one is thrown away. Passwords are in no record: they are found or asked for again.
    """
    from ciphercost.model import run_directory
    from ciphercost.runs import replicate as replicate_
    from ciphercost.runs import replicate_all
    from ciphercost.runs import resume as resume_

    if (several := replicate_all.find(run_)) is not None:
        _all(several, given)
    directory = run_directory.find(run_)
    if resume_.finished(directory):
        click.echo(f"{directory} is finished; `ciphercost report {directory}` shows it")
        return

    def go_on(_: Path | None, watcher: Any, __: str) -> Any:
        return resume_.run_in(directory, watcher)

    failed = _measure({**given, "output": None}, go_on, lambda result: _failed(result) or replicate_.failed(result))
    raise click.exceptions.Exit(COST_OF_FAILURE if failed else 0)


@cli.command()
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
    from ciphercost.report import calibration as calibrate_
    from ciphercost.runs import pipeline

    made = _spec([_cell(f"{engine}:none", given)], given)
    banner(made)
    failed = _measure(given, partial(pipeline.run_in, made), _failed, calibrate_.text)
    raise click.exceptions.Exit(COST_OF_FAILURE if failed else 0)


@cli.command()
@click.argument("target", metavar="ENGINE:MECHANISM | URL | jdbc:…")
@options(
    click.option("--set", "factors", multiple=True, metavar="NAME=VALUE", help="A factor of the mechanism."),
    IV_OPTION,
    click.option("--ca", metavar="FILE", help="Certificate authority of that server, PEM."),
    click.option("--bindir", metavar="DIR", help="Binaries of the server to start."),
    click.option("--client", metavar="CLIENT", help="Who asks: rust, jdbc, jdbc:9.7.0. [default: rust]"),
    click.option(
        "--driver",
        metavar="FILE.jar",
        help="The JDBC driver of your application; what it needs behind it, separated by ':'.",
    ),
)
def prove(
    target: str,
    factors: tuple[str, ...],
    iv: str | None,
    ca: str | None,
    bindir: str | None,
    client: str | None,
    driver: str | None,
) -> None:
    """Is it encrypted? No load, every witness.

    Exit status 0 only if every witness says so. jdbc:… is an application's own connection string: is it encrypted, is the server
    verified, and with what.
    """
    from ciphercost.plan.targets import target_of_url
    from ciphercost.runs import prove as examine

    if target.startswith("jdbc:"):
        from ciphercost.runs import prove_jdbc_url

        if given := [
            name for name, value in (("--set", factors), ("--iv", iv), ("--ca", ca), ("--bindir", bindir)) if value
        ]:
            raise UsageError(f"{given[0]} has no effect on a JDBC URL, which says everything itself: leave it out")
        proven, text = prove_jdbc_url.examine(target, driver or "", client or "")
        click.echo(text)
        raise click.exceptions.Exit(0 if proven else COST_OF_FAILURE)

    blank: dict[str, Any] = dict.fromkeys(
        (
            "workload",
            "clients",
            "rows",
            "regime",
            "pooled",
            "rate",
            "sql",
            "csv",
            "cpu_crypto",
            "bandwidth",
            "delay",
            "mtu",
            "cache",
            "idle",
        )
    )
    blank["urls"] = (target,) if "://" in target else ()
    url = target if "://" in target else None
    name = target_of_url(target) if url else target
    cell = _cell(
        name, {**blank, "factors": factors, "iv": iv, "ca": ca, "bindir": bindir, "client": client, "driver": driver}
    )
    proven, text = examine.examine(cell)
    click.echo(text)
    raise click.exceptions.Exit(0 if proven else COST_OF_FAILURE)


# ── looking ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@cli.command()
@click.argument("run_", metavar="RUN|latest")
@click.option(
    "--format",
    "format_",
    default="terminal",
    metavar="FORMAT",
    help="terminal, md, csv, latex, json; with -o: html, svg or png (every plot), parquet (raw slices). [default: terminal]",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to a file; of svg and png a directory, or for a run of one cell a file that ends in .svg or .png.",
)
@click.option("--need", metavar="WORD,WORD…", help="Advice: the cheapest proven mechanism of the run that meets this.")
@click.option("--max-cost", metavar="SHARE", help="… and costs at most this: 5%.")
def report(run_: str, format_: str, output: Path | None, need: str | None, max_cost: str | None) -> None:
    """Estimate a run again from its slices.

    With --need or --max-cost: advice. Words of --need: in-transit, tls1.2, tls1.3, verified, forward-secrecy, post-quantum, at-rest,
    nothing-in-clear, column, key-off-server, authenticated. Exit status: 0 one meets it · 3 none within the budget · 4 unresolved.
    """
    from ciphercost.load import units
    from ciphercost.model import run_directory
    from ciphercost.report import advice
    from ciphercost.report import formats as reports
    from ciphercost.runs import conclude as concluding
    from ciphercost.runs import replicate_all

    if (several := replicate_all.find(run_)) is not None:
        if format_ not in ("terminal", "json", "html") or need is not None or max_cost is not None:
            raise UsageError(
                f"{several} holds several studies, which have one page in the formats terminal, json and html. Of one of them: "
                f"ciphercost report {several}/STUDY"
            )
        _report_all(several, format_, output)
        return
    wanted = advice.needs(need) if need is not None else []
    limit = units.budget(max_cost, "--max-cost") if max_cost is not None else None
    to_file = reports.writer(format_)
    if to_file and need is not None:
        raise UsageError(f"--need has no format {format_}: use terminal, md or json")
    if to_file:
        if output is None:
            raise UsageError(
                f"--format {format_} is for looking at, not for a terminal: give it -o FILE, or -o DIR for svg and png"
            )
        directory = run_directory.find(run_)
        result = concluding.result_of(directory)
        to_file(result, directory, output, limit)
        if limit is not None:
            raise click.exceptions.Exit(advice.advise(result, wanted, limit).exit_status)
    else:
        render = reports.get(format_)
        result = concluding.result_of(run_directory.find(run_))
        advised = advice.advise(result, wanted, limit) if need is not None or max_cost is not None else None
        text = reports.with_advice(format_, result, advised) if advised else render(result)
        if output:
            write(output, text + "\n")
        else:
            click.echo(text)
        if advised:
            raise click.exceptions.Exit(advised.exit_status)


def _report_all(directory: Path, format_: str, output: Path | None) -> None:
    """The page of `replicate all`, as text, JSON or HTML."""
    from ciphercost.report import together
    from ciphercost.runs import replicate_all

    if format_ == "html" and output is None:
        raise UsageError("--format html is for a browser, not for a terminal: give it -o FILE")
    found = replicate_all.outcomes(directory)
    if format_ == "html" and output is not None:
        from ciphercost.report.formats import html

        html.write_all(replicate_all.as_page(directory, found), output)
        return
    page = replicate_all.as_json(directory, found) if format_ == "json" else together.page(found)
    if output:
        write(output, page + "\n")
    else:
        click.echo(page)


@cli.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN|latest…")
@click.option(
    "--fail-over", metavar="SHARE", help="Gate: the most that encryption may cost, by the interval's upper bound: 10%."
)
@click.option("--strict", is_flag=True, help="Exit status 4 where a verdict is unresolved.")
@click.option(
    "--margin", metavar="SHARE", help="Costs that differ by less are equivalent. [default: the runs' own margin, 1%]"
)
@click.option(
    "--format", "format_", default="terminal", metavar="FORMAT", help="terminal, md, csv or json. [default: terminal]"
)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write to a file.")
def compare(
    runs: tuple[str, ...], fail_over: str | None, strict: bool, margin: str | None, format_: str, output: Path | None
) -> None:
    """Do the costs of runs differ? The first is the reference.

    One run with --fail-over is a gate. Exit status: 0 done, or the gate is passed · 1 a cell has no number · 3 the budget is exceeded
    for sure · 4 unresolved, with --strict.
    """
    from ciphercost.estimate import results
    from ciphercost.load import units
    from ciphercost.model import run_directory
    from ciphercost.report import comparison as compare_
    from ciphercost.report import comparison_formats

    render = comparison_formats.get(format_)
    limit = units.budget(fail_over) if fail_over is not None else None
    within = units.share(margin, "--margin") if margin is not None else None
    read = [compare_.Run(name, *results.with_intervals(run_directory.find(name))) for name in runs]
    found = compare_.compare(read, limit=limit, strict=strict, margin=within)
    if output:
        write(output, render(found) + "\n")
    else:
        click.echo(render(found))
    raise click.exceptions.Exit(found.exit_status)


@cli.command("import")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="FILE…")
@options(
    click.option(
        "--plain",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A file or folder of the plain arm.",
    ),
    click.option(
        "--encrypted",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A file or folder of the other.",
    ),
    click.option(
        "--arm",
        "arm_words",
        multiple=True,
        metavar="ARM[=WORD]",
        help="plain=before: files with this word in their names are of this arm; plain alone: all are.",
    ),
    click.option(
        "--columns",
        metavar="MAP",
        help="What the columns of a table are: time=elapsed_ms,arm=mode,operations=n,latency=p50:us,factor=dbms; "
        "run=NAME or run=row (each row is a run), decimal=point or comma.",
    ),
    click.option("--engine", default="", metavar="ENGINE", help="What server it was. [default: what the tool tells]"),
    click.option(
        "--mechanism", default="", metavar="MECHANISM", help="What encrypted: tls, innodb-tde, … [default: encryption]"
    ),
    OUTPUT[2],
    OUTPUT[3],
)
def import_(files: tuple[Path, ...], **given: Any) -> None:
    """Other tools' results: what can they tell?

    pgbench, mysqlslap, sysbench, sar, sadf, atop, wrk, h2load, hyperfine, or any table; files or folders of them. Each is known by its
    content, its arm by its name (plain, off, notls, … or tls, ssl, on, …).
    """
    from ciphercost.runs import import_run

    result, directory, said = import_run.run(files, given, command_line())
    click.echo("\n".join(said) + "\n", err=True)
    _show(result, directory, given["json_"])


@cli.command("list")
@click.argument("what", required=False, metavar="[engines|mechanisms|workloads|studies|runs|grants]")
def list_(what: str | None) -> None:
    """What there is: engines, mechanisms, workloads, studies, runs; and the grants that --url needs."""
    from ciphercost.report import inventory

    click.echo(inventory.show(what))


@cli.command()
def doctor() -> None:
    """What this machine has and lacks."""
    from ciphercost.runs import doctor as doctor_

    click.echo(doctor_.doctor())


@cli.command()
@click.argument("target", metavar="ENGINE[@VERSION]")
@click.option(
    "--source", type=click.Choice(["debian", "apt", "maven"]), help="Where from. [default: what this machine can use]"
)
def install(target: str, source: str | None) -> None:
    """Fetch a server into a private root.

    Nothing is installed on the host.
    """
    from ciphercost import engines

    engine, _, version = target.partition("@")
    found = engines.get(engine).install(version, source or "")
    click.echo(f"{found.engine} {found.version} from {found.source}: {found.location}")


@cli.command()
@options(
    click.option("--url", help="Not this machine but a server of yours: schemas that killed runs left there."),
    click.option("--engine", help="Of that server, where its URL does not tell."),
    click.option("--ca", metavar="FILE", help="Certificate authority of that server, PEM: asked by TLS."),
    click.option(
        "--schema", "wanted", multiple=True, metavar="NAME", help="This one, though its run can't be seen from here."
    ),
)
def clean(url: str | None, engine: str | None, ca: str | None, wanted: tuple[str, ...]) -> None:
    """Remove what a killed run has left.

    Nothing of a run that lives is touched, and nothing that does not bear our mark.
    """
    from ciphercost.host import leftovers as clean_
    from ciphercost.provision import leftover_schemas

    if url is None and (engine or ca or wanted):
        raise UsageError("--engine, --ca and --schema say more of a server: give its --url too")
    text, worked = leftover_schemas.sweep(url, engine or "", ca or "", wanted) if url else clean_.sweep()
    click.echo(text)
    raise click.exceptions.Exit(0 if worked else COST_OF_FAILURE)
