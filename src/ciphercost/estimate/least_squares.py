"""A cost divided among its causes: weighted least squares over cells, with intervals that know what the cells don't explain. Pure.

Each cell is weighted by its own standard error (Aitken 1935). Cells share their sessions, and a slow session may be slow in all of them. So
each session also has a fit of its own with the same weights, and the scatter of these fits counts where it is larger than what independent
cells would give. If the cells lie farther from the fit than their errors explain, the model is off, and everything is less certain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ciphercost.estimate import model_error, student_t
from ciphercost.estimate.tally import Floats
from ciphercost.model.result import Added, Part, PartsError

DOUBTFUL = 3.0
"""Standard errors of a cell off the fit from which the causes do not explain all of the cost."""
LEAST_SHARE = 0.02
"""Least standard error of a cell, as a share of its value. The model is no more exact than that, and one very precise cell
must not decide alone."""


class Uncertain(NamedTuple):
    """How uncertain all causes are together. `PartsError` holds the same in a result."""

    covariances: list[Floats]
    """Covariances that the cells' own errors give, by different ways; the larger counts."""
    nu: float
    model: Floats
    """The further covariance because the model is off."""
    freedom: int

    def half(self, of: Floats, further: float = 0.0, degrees: int = 1) -> float:
        """Half-width of the 95 % interval of a linear function of the causes, with Satterthwaite's degrees of freedom.

        `further`: another variance that the function has, with its degrees of freedom.
        """
        variance = max(float(of @ covariance @ of) for covariance in self.covariances)
        model = float(of @ self.model @ of)
        below = variance**2 / self.nu + (model**2 / self.freedom if self.freedom else 0.0) + further**2 / degrees
        whole = variance + model + further
        nu = whole**2 / below if below > 0 else self.nu
        return student_t.quantile(0.975, nu) * math.sqrt(whole)


class Fitted(NamedTuple):
    """The causes of a cost."""

    causes: list[Part]
    """What one unit of each cause adds, in the order of the design's columns."""
    error: Uncertain
    worst: float
    """Largest distance of a cell from the fit, in standard errors of that cell."""
    scatter: float
    """Standard deviation of the cells around the fit beyond their errors, as a share of their cost; see `model_error`."""


def fit(
    design: Floats, added: Sequence[Added], sessions: Sequence[Mapping[int, float]] = (), least: float = 1e-3
) -> Fitted | None:
    """Fit `added` to the units of each cause in each cell, `design` with shape (cells, causes). None if the cells don't determine all causes.

    `sessions`: each cell's values by session; empty: unknown, or the run has one session. `least`: how different the cells must be: the
    least singular value of the weighted design with columns of length 1.
    """
    count = design.shape[1]
    if not count or len(added) < count:
        return None
    values = np.array([addition.mean for addition in added])
    errors = np.array([max(addition.standard_error, LEAST_SHARE * abs(addition.mean), 1e-9) for addition in added])
    weighted = design / errors[:, None]
    scale = np.linalg.norm(weighted, axis=0)
    if not scale.all() or np.linalg.matrix_rank(weighted / scale, tol=least) < count:
        return None
    covariance = np.linalg.inv((weighted / scale).T @ (weighted / scale)) / np.outer(scale, scale)
    solution = covariance @ weighted.T @ (values / errors)
    distance = np.abs(design @ solution - values) / errors
    freedom = len(added) - count
    excess = max(0.0, float(distance @ distance) / freedom - 1) if freedom else 0.0
    covariances = [covariance]
    together = sorted(set.intersection(*(set(by_session) for by_session in sessions))) if sessions else []
    if len(together) >= 2:
        each_session = np.array([[by_session[session] for by_session in sessions] for session in together])
        fits = (each_session / errors) @ weighted @ covariance
        covariances.append(np.atleast_2d(np.cov(fits, rowvar=False)) / len(together))
    error = Uncertain(covariances, max(1, min(addition.n for addition in added) - 1), covariance * excess, freedom)
    halves = [error.half(unit) for unit in np.eye(count)]
    causes = [
        Part(float(value), float(value - half), float(value + half))
        for value, half in zip(solution, halves, strict=True)
    ]
    return Fitted(causes, error, float(distance.max()), model_error.scatter(design, values, errors))


def recorded(error: Uncertain) -> PartsError:
    """The same as a result holds it."""
    return PartsError(
        [covariance.tolist() for covariance in error.covariances], error.nu, error.model.tolist(), error.freedom
    )


def together(causes: Sequence[Part], counts: Sequence[float], error: PartsError | None, scatter: float | None) -> Part:
    """What so many units of each cause cost in an operation that is not one of the fitted cells, with its 95 % interval.

    It has the error of the fit, and that of the model (`model_error`). Without the causes' common error (an older result) their half-widths
    are added up, which is never too narrow.
    """
    of = np.array(counts)
    value = float(of @ np.array([cause.value for cause in causes]))
    share, degrees = model_error.moderated(scatter, error.freedom if error is not None else 0)
    further = (share * value) ** 2
    if error is None:
        half = float(np.abs(of) @ np.array([(cause.high - cause.low) / 2 for cause in causes]))
        half = math.hypot(half, student_t.quantile(0.975, degrees) * share * value)
    else:
        known = Uncertain(list(map(np.array, error.own)), error.nu, np.array(error.model), error.freedom)
        half = known.half(of, further, degrees)
    return Part(value, value - half, value + half)


def model_share(error: PartsError | None, scatter: float | None) -> float:
    """The standard deviation of the model's error that `together` takes, as a share of what is added."""
    return model_error.moderated(scatter, error.freedom if error is not None else 0)[0]
