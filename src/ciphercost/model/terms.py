"""terms: Words and ranges that the records are made of: arms, verdicts, counts. No logic."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

FORMAT = 1
"""Version of the result, of `slices.jsonl` and of every other file of a run but the plan."""
PLAN_FORMAT = 2
"""Version of `plan.json` and `checkpoint.json`. Format 1 has no `registered` and no `control`."""
CellMode = Literal["full", "quick", "imported"]
"""imported: figures of another tool: not paired, not proven."""
Verdict = Literal["differs", "equivalent", "unresolved"]
Status = Literal["ok", "failed", "unproven", "no-steady-state"]

# Ranges, which are checked whenever a record is read (`checked`), and an agent's answer too.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""Of things, bytes or nanoseconds; a float holds each of them exactly."""
Ordinal = Annotated[int, msgspec.Meta(ge=1, le=2**31)]
"""A number of something, from 1."""
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e15)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Seed = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

PREFIX = "ciphercost_"
CANARY_TABLE = "ciphercost_canary"
