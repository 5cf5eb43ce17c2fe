"""What is known of the files of `--dump` before they are loaded: one line for each, with an estimate of how long that takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ciphercost.plan.planned import PlannedCell


def lines(cells: Sequence[PlannedCell]) -> Iterator[str]:
    """Yield the lines for the cells' files."""
    from ciphercost.host import kept_dumps
    from ciphercost.load.units import minutes
    from ciphercost.model.sizes import size
    from ciphercost.plan import dump_checks

    seen = set()
    for planned in cells:
        cell = planned.spec
        if not cell.whole_dump or (key := (cell.dump, cell.engine, cell.mechanism)) in seen:
            continue
        seen.add(key)
        dump = dump_checks.of(cell, planned.engine)
        version = f", from {planned.engine.title} {dump.version}" if dump.version else ""
        loads = "twice, once for each arm" if _twice(planned) else "once"
        rate = kept_dumps.rates().get(f"{cell.engine}, {dump.form}")
        took = (
            f"about {minutes(dump.size / rate)} each time, at {size(rate)} of dump per second as last on this machine"
            if rate
            else "for a time that is not known before the first load on this machine"
        )
        yield (
            f"{cell.dump}: {dump.form}, {size(dump.size)}{version}; {cell.engine}:{cell.mechanism} loads it {loads}, {took}. A kept copy of an "
            "earlier load takes its place"
        )


def _twice(planned: PlannedCell) -> bool:
    """Whether each arm's data is loaded by itself."""
    from ciphercost.engines.capabilities.dumps import LoadsDumps
    from ciphercost.mechanisms._rest import AtRest

    mechanism = planned.mechanism
    if LoadsDumps.of(planned.engine).loads_stopped:  # before anything is encrypted, so one load serves both arms
        return False
    return not mechanism.loaded_once if isinstance(mechanism, AtRest) else planned.engine.embedded
