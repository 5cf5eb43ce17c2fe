"""html_page: a finished run, or all repeated studies -> report.html, by a process of its own (`draw_process`).

Plots are drawn by a JavaScript engine, whose memory and failures must not be the run's. A page that can't be drawn is reported,
and the run goes on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from ciphercost.host.environment import child_environment
from ciphercost.host.supervisor import Supervisor
from ciphercost.model.errors import CiphercostError

NAME = "report.html"
SWITCH = "CIPHERCOST_PAGE"
"""`off`: no page at the end of a run; `report --format html` draws it whenever it is asked for."""
SECONDS = 120.0
PROCESS = "ciphercost.runs.html_page_process"
"""The module that draws."""


def wanted() -> bool:
    """Whether runs leave a page."""
    return os.environ.get(SWITCH) != "off"


def page(directory: Path, supervisor: Supervisor, say: Callable[[str], None]) -> None:
    """Draw the page of a run whose result is written, where one is wanted. Never raises for what goes wrong with it."""
    if not wanted():
        return
    command = [sys.executable, "-m", PROCESS, str(directory.absolute())]
    try:
        supervisor.run(command, timeout=SECONDS, env=child_environment())
    except (CiphercostError, OSError) as error:
        last = (str(error).strip().splitlines() or ["no reason given"])[-1]
        say(f"{NAME} was not drawn: {last}; the run is whole: ciphercost report {directory} --format html -o FILE")
