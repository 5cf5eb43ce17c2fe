"""How long it takes to draw the page of a run of sixty cells with its slices, and the page's size. Limit ÷ measured value; 1 or more is within
the limit."""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from pathlib import Path

from controller import FAKE, python, row
from run import Row

CELLS = 60

MAKE = """
import sys
from pathlib import Path
from ciphercost.runs import pipeline
from ciphercost.model.spec import CellSpec, Spec
cells = [
    CellSpec("null", "busy", regime="one-core", group="1", variant=f"effect={n}%", factors={"effect": f"{n}%"}) for n in range(1, CELLS + 1)
]
pipeline.run(Spec(cells=cells, seed=1, mode="quick", sessions=1, time=12), Path(sys.argv[1]))
"""

DRAW = """
import sys, time
from pathlib import Path
from ciphercost.runs import conclude
result = conclude.result_of(Path(sys.argv[1]))
began = time.perf_counter()
from ciphercost.estimate import trace
from ciphercost.report.formats import html
page = html.render(result, trace.read(Path(sys.argv[1])))
print("seconds", time.perf_counter() - began, "bytes", len(page.encode()))
"""


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as place:
        agent = Path(place) / "fake-agent"
        agent.write_text(
            f"#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(FAKE))} --effect 0.2 --sd 0.03\n"
        )
        agent.chmod(0o755)
        run = str(Path(place) / "run")
        python(MAKE.replace("CELLS", str(CELLS)), run, CIPHERCOST_AGENT=str(agent), CIPHERCOST_PAGE="off")
        outputs = [python(DRAW, run) for _ in range(5)]
    seconds, sizes = (
        [float(re.search(rf"{name} ([\d.]+)", text)[1]) for text in outputs]  # type: ignore[index]
        for name in ("seconds", "bytes")
    )
    return [
        {**row(f"drawing the page of {CELLS} cells, bar 5 s", 5, seconds, "s"), "bench": "report"},
        {**row(f"the page of {CELLS} cells, bar 3 MB", 3, [size / 1e6 for size in sizes], "MB"), "bench": "report"},
    ]
