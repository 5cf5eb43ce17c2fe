"""Fuzz one target by coverage: `python -m fuzz.one TARGET PLACE [libFuzzer's options and corpora]`. See `__main__`."""

from __future__ import annotations

import importlib
import logging
import shlex
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["ciphercost"]):
    from ciphercost.model.errors import CiphercostError

    target = importlib.import_module(f"fuzz.targets.{sys.argv[1]}")

PLACE = Path(sys.argv[2])


def check(data: bytes) -> None:
    try:
        target.parse(data, PLACE)
    except CiphercostError as error:
        if not str(error):
            raise AssertionError("an error without words") from error


def main() -> None:
    logging.disable()
    # libFuzzer merges corpora in processes that it starts by a shell, from the first argument.
    again = shlex.join([sys.executable, "-m", "fuzz.one", *sys.argv[1:3]])
    atheris.Setup([again, *sys.argv[3:]], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
