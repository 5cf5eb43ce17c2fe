"""The command blocks of README.md and docs/ that are marked `sh`, and a program that runs them. It needs only the standard library.

documented.py ROOT [PAGE]…      runs the blocks of each page below ROOT with the `ciphercost` on PATH, each page in a new directory
                                below this one, and prints a line for each page. Exit status 1 if one failed. Pages that need an extra are
                                    run only if they are named; those that need a program that is not here are not run, and are listed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
STAGING = "postgresql://me@staging/shop --ca ca.pem"
"""The reader's server in the examples; here the same commands run on an embedded database."""
EXTRAS = {"docs/how-to/many-load-machines.md": "ray"}
"""Pages that need an extra, which they name."""

SHORT = """mode = "quick"
sessions = 1
time = 1.0
slice_seconds = 0.05
latency = false

[[cells]]
engine = "null"
mechanism = "busy"
workload = "point-select"
clients = 1
"""
"""A spec that measures no work at all for a second, which no flag can be asked for. One client, so that it is busy on one core."""

PROGRAMS = {"docs/how-to/measure-at-rest.md": "mvn"}
"""Pages that need a program, which they name."""


def pages(root: Path) -> list[str]:
    """Pages with such blocks, as paths below `root`."""
    found = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    return [str(path.relative_to(root)) for path in found if BLOCK.search(path.read_text())]


def script(root: Path, page: str) -> str:
    """All blocks of a page, in order."""
    text = "\n".join(BLOCK.findall((root / page).read_text()))
    text = text.replace(f"prove {STAGING}", "prove sqlite:sqlcipher")
    return text.replace(f"run postgresql:tls --url {STAGING}", "run sqlite:sqlcipher")


def planned(text: str) -> str:
    """The same commands, but what they would measure is only checked and planned (`--print-spec`). Where a later command needs the run, a
    second of no work at all is measured instead.
    """
    used = "latest" in text
    text = text.replace(" \\\n", " ")
    return re.sub(
        r"^ciphercost (?:quick|run (?!.*--print-spec).*)$",
        lambda line: _planned(line[0], used),
        text,
        flags=re.MULTILINE,
    )


def _planned(command: str, used: bool) -> str:
    output = re.search(r" -o \S+", command)
    lines = ["ciphercost quick --help"]
    if command != "ciphercost quick":
        lines = [f"{command.replace(output[0], '') if output else command} --print-spec"]
    if output or used:
        lines += [f"cat > .short.toml <<'END'\n{SHORT}END", f"ciphercost run .short.toml{output[0] if output else ''}"]
    return "\n".join(lines)


def main(root: Path, wanted: list[str]) -> int:
    failed = 0
    for page in wanted or [each for each in pages(root) if each not in EXTRAS]:
        if page in PROGRAMS and shutil.which(PROGRAMS[page]) is None:
            print(f"{page:<40} not run: it needs {PROGRAMS[page]}, which is not installed", flush=True)
            continue
        place, began = Path(Path(page).stem), time.monotonic()
        place.mkdir()
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script(root, page)],
            cwd=place,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        failed += done.returncode != 0
        print(f"{page:<40} exit {done.returncode:<3} {time.monotonic() - began:5.0f} s", flush=True)
        if done.returncode:
            print("    " + "\n    ".join(done.stdout.splitlines()[-40:]), flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute(), sys.argv[2:]))
