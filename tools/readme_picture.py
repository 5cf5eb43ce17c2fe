"""Draw the README's picture from a run of `ciphercost quick`, for light and for dark pages.

python tools/readme_picture.py RUN
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ASSETS = Path(__file__).parents[1] / "docs" / "assets"
DARK = {"#1b1b1a": "#ececea", "#5c5c58": "#a9a9a3", "#dededa": "#373735", "#3d3d3b": "#d8d8d3", "#ffffff": "#161615"}
"""Colours of the light picture, and what replaces them: the dark palette of report.html."""


def main(run: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        program = Path(sys.executable).parent / "ciphercost"
        subprocess.run([program, "report", run, "--format", "svg", "-o", directory], check=True)
        light = (Path(directory) / "elsewhere.svg").read_text()
    dark = light
    for colour, other in DARK.items():
        dark = dark.replace(colour, other)
    ASSETS.mkdir(exist_ok=True)
    (ASSETS / "quick-light.svg").write_text(light)
    (ASSETS / "quick-dark.svg").write_text(dark)


if __name__ == "__main__":
    main(sys.argv[1])
