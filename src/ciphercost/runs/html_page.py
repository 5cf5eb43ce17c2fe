"""Write report.html for a finished run, or for all repeated studies, in a separate process (`html_page_process`).

A JavaScript engine draws the plots; in its own process, its memory and its failures can't affect the run. If the page can't
be drawn, the run reports that and continues.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from ciphercost.host.environment import child_environment
from ciphercost.host.supervisor import Supervisor
from ciphercost.model.errors import CiphercostError

NAME = "report.html"
SWITCH = "CIPHERCOST_PAGE"
"""`off`: runs write no page; `report --format html` still does."""
SECONDS = 120.0
PROCESS = "ciphercost.runs.html_page_process"
"""The module that writes the page."""


def wanted() -> bool:
    """Whether runs write a page."""
    return os.environ.get(SWITCH) != "off"


def page(directory: Path, supervisor: Supervisor, say: Callable[[str], None]) -> None:
    """Write the page of a run that has its result, if pages are wanted. Reports a failure with `say` and never raises."""
    if not wanted():
        return
    command = [sys.executable, "-m", PROCESS, str(directory.absolute())]
    try:
        supervisor.run(command, timeout=SECONDS, env=child_environment())
    except (CiphercostError, OSError) as error:
        last = (str(error).strip().splitlines() or ["no reason given"])[-1]
        say(
            f"could not write {NAME}: {last}. The run itself is complete; try: ciphercost report {shlex.quote(str(directory))} --format html -o FILE"
        )
