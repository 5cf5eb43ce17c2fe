"""The version of this package, as results record it."""

from __future__ import annotations

VERSION = "0.1.0"
