"""cell_measurement: what is known of one cell while it is measured, over all of its sessions. No I/O but the record's."""

from __future__ import annotations

import time
from collections.abc import Iterable

from ciphercost.measure.progress import Display
from ciphercost.measure.stopping import Start
from ciphercost.model.facts import CellFacts
from ciphercost.model.result import Warning_
from ciphercost.model.run_directory import Record
from ciphercost.model.slices import SliceRecord
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import latency_objective, schedule

MAX_REPEATS = 2
"""Number of sessions that are repeated with longer slices; after that the report warns."""


class CellMeasurement:
    """One cell being measured: its estimates so far, its budget, its record. `Session` makes the load of each session."""

    def __init__(
        self,
        number: int,
        spec: Spec,
        facts: CellFacts,
        seed: int,
        record: Record,
        display: Display,
        stopping: Start,
    ) -> None:
        self.number = number
        self.spec = spec
        self.facts = facts
        self.seed = seed
        self.record = record
        self.display = display
        self.estimator = stopping((), bool(spec.precision), facts.spec.objective)
        self._stopping = stopping
        self.budget = schedule.budget(spec, facts.spec)
        self.objective = latency_objective.of(facts.spec)
        self._began = time.monotonic()
        self.failures = self.mistimed = 0
        """Slices in a row that failed; and that many agents did not count together."""

    @property
    def cell(self) -> CellSpec:
        return self.facts.spec

    @property
    def elapsed(self) -> float:
        """Seconds since the cell's measurement began, as slices record them."""
        return time.monotonic() - self._began

    def recall(self, slices: Iterable[SliceRecord]) -> None:
        """Take over what an interrupted run has recorded of this cell."""
        self.estimator = self._stopping(self.facts.void_sessions, bool(self.spec.precision), self.cell.objective)
        ended = 0.0
        for record in slices:
            self.estimator.add(record)
            ended = max(ended, record.started + record.length)
        self._began = time.monotonic() - ended

    def precise_enough(self) -> bool:
        """Whether the cell is precise enough. Stopping depends on precision, never on significance."""
        if not self.spec.precision or self.cell.regime == "latency":
            return False
        return self.estimator.precise(self.spec.precision, self.spec.mode)

    def must_repeat(self, session: int) -> bool:
        """Whether carry-over between the arms was detected in this session (λ ≠ 0). Then the slice length doubles and
        the session is repeated.

        Quick mode has one session and a minute: there the report warns instead.
        """
        if (
            self.spec.mode == "quick"
            or len(self.facts.void_sessions) >= MAX_REPEATS
            or self.spec.slice_seconds
            or not self.estimator.carries_over(session)
        ):
            return False
        longer = min(2 * self.facts.slice_seconds, schedule.CANDIDATES[-1])
        if longer <= self.facts.slice_seconds:
            return False
        self.facts.slice_seconds = longer
        self.facts.void_sessions = [*self.facts.void_sessions, session]
        self.estimator.void(session)
        self.record.save_facts()
        return True

    def warn(self, warning: Warning_) -> None:
        """Add a warning to the facts, once."""
        if all(earlier.code != warning.code for earlier in self.facts.warnings):
            self.facts.warnings = [*self.facts.warnings, warning]
