"""Options about the scripts that take the place of a workload, and about how statements are sent."""

from __future__ import annotations

import click

from ciphercost.commands import _completers
from ciphercost.load.pgbench.builtins import BUILTINS

SCRIPTS = (
    click.option(
        "--sql",
        multiple=True,
        metavar="FILE[@WEIGHT]",
        help="Your own statements instead, in pgbench's script language. Repeatable, with weights: --sql a.sql@3 --sql b.sql.",
        shell_complete=_completers.files,
    ),
    click.option(
        "--builtin",
        multiple=True,
        metavar="NAME[@WEIGHT]",
        help="pgbench's own script instead: tpcb-like, simple-update or select-only, on the tables of `pgbench -i`. Repeatable.",
        shell_complete=_completers.words(*BUILTINS),
    ),
    click.option(
        "-D",
        "--define",
        "define",
        multiple=True,
        metavar="NAME=VALUE",
        help="Set a variable of --sql or --builtin, e.g. -D scale=10. Repeatable. [default of scale: the number of pgbench's branches]",
    ),
)
"""What an operation is."""
SENDING = (
    click.option(
        "-M",
        "--protocol",
        type=click.Choice(["simple", "extended", "prepared"]),
        help="How statements travel: as text with their values, parsed each time, or prepared once on each connection. "
        "[default: prepared]",
    ),
    click.option(
        "--max-tries",
        type=int,
        metavar="N",
        help="Try an operation up to N times if it fails for a serialization conflict or a deadlock. [default: 1]",
    ),
)
"""How its statements travel, and what happens to those in conflict."""
