"""How far an operation that was not measured lies off what its causes add up to. Pure.

An additive model of costs is never exact: an encrypted answer takes other ways through the server than a plain one (no sendfile, other
buffers, more cache lines), and records and system calls come in whole numbers. So an operation costs ŷ · (1 + u): ŷ is what the causes add up
to, and u, with mean 0 and standard deviation τ, differs from operation to operation. A new operation draws a u of its own, which no number of
blocks or sessions makes smaller. This is the prediction interval of a random-effects model (Higgins, Thompson and Spiegelhalter 2009).

The cells of a fit show their own τ (`scatter`: Paule and Mandel 1982), but as they are few it is moderated: averaged, by degrees of freedom,
with what servers showed on which predictions were compared with measurements (`benchmarks/prediction.py`), as in Smyth (2004).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ciphercost.estimate.tally import Floats

USUAL = 0.2
"""τ of the servers of `benchmarks/prediction.py`."""
SERVERS = 5
"""Degrees of freedom of it. Operations of one server share its fit, so servers count, and not operations."""
MOST = 10.0
"""Largest τ."""
STEPS = 16
"""Of the bisection, to 0.0002."""


def scatter(design: Floats, values: Floats, errors: Floats) -> float:
    """τ of these cells: with it, their squared distances from the fit are as many as there are degrees of freedom. 0: none to spare, or exact.

    `design`: units of each cause in each cell, of shape (cells, causes); `errors`: standard errors of `values`.
    """
    cells, causes = design.shape
    if cells <= causes:
        return 0.0
    sizes = np.abs(design @ _solved(design, values, errors))

    def distance(tau: float) -> float:
        whole = np.hypot(errors, tau * sizes)
        return float(np.sum(((values - design @ _solved(design, values, whole)) / whole) ** 2))

    return root(distance, cells - causes)


def pooled(differences: Sequence[float], errors: Sequence[float]) -> float:
    """τ of relative differences around 0, with their standard errors."""
    values, standard_errors = np.array(differences), np.array(errors)
    return root(lambda tau: float(np.sum((values / np.hypot(standard_errors, tau)) ** 2)), len(differences))


def root(distance: Callable[[float], float], freedom: int) -> float:
    """The least τ at which the squared distances are no more than the degrees of freedom, by bisection."""
    low, high = 0.0, MOST
    if distance(low) <= freedom:
        return 0.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if distance(middle) > freedom else (low, middle)
    return high


def moderated(tau: float | None, freedom: int) -> tuple[float, int]:
    """(τ, its degrees of freedom) of a fit with so many cells to spare. `tau`: its cells'; None: unknown."""
    if tau is None or not freedom:
        return USUAL, SERVERS
    return math.sqrt((SERVERS * USUAL**2 + freedom * tau**2) / (SERVERS + freedom)), SERVERS + freedom


def _solved(design: Floats, values: Floats, errors: Floats) -> Floats:
    weighted = design / errors[:, None]
    scale = np.linalg.norm(weighted, axis=0)
    even = weighted / scale
    return np.asarray(np.linalg.solve(even.T @ even, even.T @ (values / errors)) / scale, dtype=np.float64)
