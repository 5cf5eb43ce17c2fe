"""doctor: `ciphercost doctor`."""

from __future__ import annotations

import click


@click.command()
def doctor() -> None:
    """What this machine has and lacks."""
    from ciphercost.runs import doctor

    click.echo(doctor.doctor())
