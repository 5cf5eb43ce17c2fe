"""Options about many connections: storms of new ones, and memory per connection."""

from __future__ import annotations

import click

CONNECTIONS = (
    click.option(
        "--storm",
        metavar="RATE | saturated=RATE | failover[=N] | rotation=LIFETIME/N",
        help="Also open new connections while the others carry load: RATE a second (saturated: beside connections that send "
        "as fast as they can), N at once on a fresh server (a failover), or the N of a pool at once (e.g. rotation=30m/15). "
        "Takes longer. [workload storm: 160]",
    ),
    click.option(
        "--connections",
        type=int,
        metavar="N",
        help="Also measure memory per connection, with up to N idle connections on fresh servers. Takes longer. [workload idle-connections: 500]",
    ),
)
"""What `run` has."""
