"""Names of operations and figures, shared by `compare`, `findings` and `report`. Pure."""

from __future__ import annotations

ALL_OPERATIONS = "all operations"
EQUAL = "equal cipher"
TIME, CPU, MEMORY, SERVER_CPU, GROWTH, RATE, STORED = (
    "time",
    "CPU",
    "RAM in use",
    "server's CPU time",
    "growth exponent",
    "operations/s",
    "stored bytes",
)
"""What a figure measures."""
