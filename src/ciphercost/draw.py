"""draw: a finished run, or all repeated studies -> report.html, by a process of its own: plots are drawn by a JavaScript engine,
whose memory and whose failures are none of the run's. A page that can't be drawn is reported, and costs the run nothing.

    python -m ciphercost.draw DIRECTORY
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from ciphercost.childenv import child_environment
from ciphercost.errors import CiphercostError
from ciphercost.guard import Guard

NAME = "report.html"
SWITCH = "CIPHERCOST_PAGE"
"""`off`: no page at the end of a run; `report --format html` draws it whenever it is asked for."""
SECONDS = 120.0


def wanted() -> bool:
    """Whether runs leave a page."""
    return os.environ.get(SWITCH) != "off"


def page(directory: Path, guard: Guard, say: Callable[[str], None]) -> None:
    """Draw the page of a run whose result is written, where one is wanted. Never raises for what goes wrong with it."""
    if not wanted():
        return
    command = [sys.executable, "-m", __name__, str(directory.absolute())]
    try:
        guard.run(command, timeout=SECONDS, env=child_environment())
    except (CiphercostError, OSError) as error:
        last = (str(error).strip().splitlines() or ["no reason given"])[-1]
        say(f"{NAME} was not drawn: {last}; the run is whole: ciphercost report {directory} --format html -o FILE")


def main(directory: Path) -> None:
    """Read the result as it was written and the slices, and write the page. Raises CiphercostError."""
    import msgspec

    from ciphercost import replicate_all
    from ciphercost.model import Result
    from ciphercost.reports import html

    if (directory / replicate_all.FILE).is_file():
        found = replicate_all.outcomes(directory)
        html.write_all(replicate_all.as_page(directory, found), directory / NAME)
        return
    result = msgspec.json.decode((directory / "result.json").read_bytes(), type=Result)
    html.write(result, directory, directory / NAME)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
