"""Formats of `prove -f`: one file per format with `render(rows) -> str`, found by file name, and shared texts. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from ciphercost.model.proof_row import ProofRow
from ciphercost.model.registry import Registry

REGISTRY = Registry(__name__, "--format {}: not a format of prove; {}")
Rows = Sequence[ProofRow]


def names() -> list[str]:
    return REGISTRY.names()


def get(name: str) -> Callable[[Rows], str]:
    """The renderer of that format. Raises UsageError with the nearest name."""
    render: Callable[[Rows], str] = REGISTRY.get(name).render
    return render


def negotiated(row: ProofRow) -> str:
    """`TLSv1.3 TLS_AES_256_GCM_SHA384 X25519`."""
    return " ".join(filter(None, (row.protocol, row.cipher, row.group)))


def headline(rows: Rows) -> str:
    """`12 targets: 4 proven, 1 not verified, 7 fail (2 unreachable, 5 not proven)`."""
    good = Counter(row.verdict for row in rows if row.ok)
    bad = Counter(row.verdict for row in rows if not row.ok)
    parts = [f"{count} {verdict}" for verdict, count in good.items()]
    if bad:
        kinds = ", ".join(f"{count} {verdict}" for verdict, count in bad.items())
        parts.append(f"{bad.total()} fail{'s' * (bad.total() == 1)} ({kinds})")
    return f"{len(rows)} target{'s' * (len(rows) != 1)}: {', '.join(parts)}"
