"""Literals and number ranges that the records share: formats, verdicts, counts. No logic."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

FORMAT = 1
"""Format of the result, `slices.jsonl` and every other file of a run except the plan."""
PLAN_FORMAT = 2
"""Format of `plan.json` and `checkpoint.json`. Format 1 has no `registered` and no `control`."""
CellMode = Literal["full", "quick", "imported"]
"""imported: figures of another tool, not paired and not proven."""
Verdict = Literal["differs", "equivalent", "unresolved"]
Status = Literal["ok", "failed", "unproven", "no-steady-state"]

# `checked` checks these ranges in every record it reads; an agent's answers are checked too.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A number of things, bytes or nanoseconds; a float represents each exactly."""
Ordinal = Annotated[int, msgspec.Meta(ge=1, le=2**31)]
"""A running number from 1."""
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e15)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Seed = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

DIRECT = "direct"
"""Value of the factor `negotiation`: TLS begins with the first byte, without a request in the server's own protocol."""
BY_SOCKET = "by-unix-socket"
"""Code of the warning that a cell's connections go by a Unix-domain socket: in transit its arms differ in TCP too."""
EARLY = "0-rtt"
"""Value of the factor `resumption`: the first request of a resumed connection goes before the handshake is complete."""
PREFIX = "ciphercost_"
CANARY_TABLE = "ciphercost_canary"

MOST_ERRORS = 0.1
"""Share of a slice's operations that may fail on the user's own server before the load stops, unless the spec has `max_errors`."""
