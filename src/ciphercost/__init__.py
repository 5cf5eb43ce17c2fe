"""ciphercost: what encryption costs a database or web server, here, proven, with an interval.

import ciphercost
result = ciphercost.run(ciphercost.Spec(cells=[ciphercost.CellSpec("postgresql", "tls")]))
again = ciphercost.load("runs/20261121-120000-ab12")
again.to_polars(), ciphercost.slices("runs/20261121-120000-ab12")
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars

    from ciphercost.model import CellSpec, Result, Spec

__version__ = "0.1.0"
__all__ = ["CellSpec", "Result", "Spec", "load", "run", "slices"]


def run(spec: Spec, directory: str | Path | None = None) -> Result:
    """Run a spec and return its result, also written to `directory` (default ./runs/<id>). Raises ciphercost.errors.CiphercostError."""
    from ciphercost import pipeline

    return pipeline.run(spec, Path(directory) if directory else None)


def load(directory: str | Path) -> Result:
    """The result of a run's directory, estimated again from its slices. Raises ciphercost.errors.UsageError."""
    from ciphercost import conclude, record

    return conclude.conclude(record.find(str(directory)))


def slices(directory: str | Path) -> polars.DataFrame:
    """Every raw slice of a run as a data frame; see `ciphercost.frames.slices`. Raises ciphercost.errors.UsageError."""
    from ciphercost import frames

    return frames.slices(directory)


def __getattr__(name: str) -> Any:
    # The records are looked up when asked for, so that `ciphercost --help` need not load them.
    if name in ("CellSpec", "Result", "Spec"):
        from ciphercost import model

        return getattr(model, name)
    raise AttributeError(f"module 'ciphercost' has no attribute '{name}'")
