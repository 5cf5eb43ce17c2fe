"""names: what a figure is of, as `compare` writes it, and `findings` and `report` look it up. Pure."""

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
"""What a figure is of."""
