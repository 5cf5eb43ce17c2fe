"""The command line: one file per command, with its options, one call and its output. No logic.

Each command imports what it needs only when it runs, so that `--help` is quick.
"""

from __future__ import annotations

import gc
import os
import resource
from typing import NoReturn

import click

from ciphercost.commands import _streams
from ciphercost.commands._complain import complain
from ciphercost.commands._completers import VARIABLE
from ciphercost.host import deadlines
from ciphercost.model import system_error
from ciphercost.model.errors import CiphercostError, Interrupted, UsageError, nearest
from ciphercost.model.registry import Registry
from ciphercost.model.version import VERSION


class Commands(click.Group):
    """A group that suggests the nearest command for an unknown one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        unknown = args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-")
        if unknown and not ctx.resilient_parsing:  # which is set while a shell completes a line
            raise UsageError(f"unknown command '{args[0]}': {nearest(args[0], self.commands)}")
        return super().resolve_command(ctx, args)


def _print_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    """Callback of --version. It is not eager, so that -v is known whichever of the two comes first."""
    if not asked:
        return
    click.echo(f"ciphercost {VERSION}")
    if ctx.params.get("verbose"):
        from ciphercost.runs import versions

        for name, version in versions.versions()[1:]:
            click.echo(f"  {name:<20} {version}")
    ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    is_eager=True,
    help="With --version: print the versions of the agents and libraries too.",
)
@click.option("--version", is_flag=True, expose_value=False, callback=_print_version, help="Show the version and exit.")
def cli(verbose: bool) -> None:
    """Measure what encryption costs a database or web server on this machine, and prove that it is on.

    Start with `ciphercost quick`; it takes about two minutes.

    \b
    Exit status:
      0  done
      1  a cell or a proof failed
      2  bad usage
      3  a budget was exceeded
      4  unresolved, where you asked for a verdict
    """
    if verbose:
        raise UsageError("-v belongs to --version: ciphercost --version -v")


REGISTRY = Registry(__name__)
for _name in REGISTRY.files():
    cli.add_command(getattr(REGISTRY.load(_name), _name))


def main() -> NoReturn:
    """Entry point. Prints every known failure as one message, without a traceback, and exits with its status."""
    # A core dump would hold passwords.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    # A second thread of numpy's has nothing to compute here: it spins on a core of the servers, and is a third of numpy's import.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Searching for garbage after every 700 new objects is a tenth of the controller's work, and finds none while modules are imported.
    gc.set_threshold(10_000)
    _streams.prepare()
    try:
        deadlines.login()  # refuses a wrong setting before anything starts
        if VARIABLE in os.environ:
            from ciphercost.commands import _shells

            _shells.register()
        status = cli.main(standalone_mode=False, complete_var=VARIABLE)
    except click.exceptions.Exit as error:
        status = error.exit_code
    except click.ClickException as error:
        error.show()
        status = 2
    except CiphercostError as error:
        complain(str(error))
        status = error.exit_status
    except (KeyboardInterrupt, click.exceptions.Abort) as error:
        reason = next((cause for cause in (error, error.__cause__) if isinstance(cause, Interrupted)), "interrupted")
        complain(str(reason))
        status = 130
    except BrokenPipeError:
        status = 1
    except OSError as error:
        complain(f"{system_error.words(error)}; everything written so far is kept")
        status = 1
    _streams.flush()
    raise SystemExit(status if isinstance(status, int) else 0)
