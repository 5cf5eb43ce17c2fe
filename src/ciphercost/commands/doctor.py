"""`ciphercost doctor`."""

from __future__ import annotations

import click

from ciphercost.commands._say import say


@click.command()
@click.option("--fix", is_flag=True, help="Print the commands that install what is missing.")
@click.option("--yes", is_flag=True, help="With --fix: run these commands.")
def doctor(fix: bool, yes: bool) -> None:
    """Check what this machine can measure, and what is missing."""
    from ciphercost.model.errors import UsageError
    from ciphercost.runs import doctor, fixes

    if yes and not fix:
        raise UsageError("--yes runs the commands of --fix; write: ciphercost doctor --fix --yes")
    if not fix:
        say(doctor.doctor())
        return
    needed = fixes.fixes()
    if not needed:
        say("# nothing is missing")
    elif not yes:
        say("\n".join(one_fix.words() for one_fix in needed))
    elif not fixes.run(needed, say):
        raise click.exceptions.Exit(1)
