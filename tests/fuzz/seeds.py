"""Write a target's seeds: `python -m fuzz.seeds TARGET DIR`."""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path


def main(target: str, into: Path) -> None:
    with tempfile.TemporaryDirectory(dir=into.parent) as place:
        for number, seed in enumerate(importlib.import_module(f"fuzz.targets.{target}").seeds(Path(place))):
            (into / f"seed-{number}").write_bytes(seed)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
