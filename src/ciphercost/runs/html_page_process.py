"""Write the page of one run, of all repeated studies, or of a run over machines: `python -m ciphercost.runs.html_page_process DIRECTORY`."""

from __future__ import annotations

import sys
from pathlib import Path

from ciphercost.model.run_directory import ResultDecoder
from ciphercost.report import machines_document
from ciphercost.report.formats import html
from ciphercost.runs import replicate_all, spread
from ciphercost.runs.html_page import NAME


def main(directory: Path) -> None:
    """Read the result and the slices of a run, and write its page. Raises CiphercostError."""
    if (directory / replicate_all.FILE).is_file():
        outcomes = replicate_all.outcomes(directory)
        html.write_all(replicate_all.as_page(directory, outcomes), directory / NAME)
        return
    if (directory / spread.FILE).is_file():
        html.write_all(html.render_document(machines_document.of(spread.conclude(directory))), directory / NAME)
        return
    result = ResultDecoder().decode((directory / "result.json").read_bytes())
    html.write(result, directory, directory / NAME)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
