"""`ciphercost doctor`."""

from __future__ import annotations

import click


@click.command()
def doctor() -> None:
    """Check what this machine can measure, and what is missing."""
    from ciphercost.runs import doctor

    click.echo(doctor.doctor())
