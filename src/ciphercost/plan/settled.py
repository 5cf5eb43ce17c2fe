"""Whether a warm-up is over. Pure; its data are arguments."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ciphercost.plan.change_points import change_points

Floats = NDArray[np.float64]

PENALTY = 11.0
"""Penalty of a change point in a warm-up: at most 5 % false alarms on stationary noise with autocorrelation up to 0.5."""
WARMUP_POINTS = 40
"""Fewest warm-up slices per arm before `steady` can return True."""


def steady(log_plain: Floats, log_encrypted: Floats, penalty: float = PENALTY) -> bool:
    """Whether a warm-up is over: its last quarter has no change point.

    Takes the log rates of consecutive warm-up slices, one array per arm, in time order. False with fewer than WARMUP_POINTS
    per arm. `penalty`: minimum gain of a change point, in squared units of noise.
    """
    n = min(len(log_plain), len(log_encrypted))
    if n < WARMUP_POINTS:
        return False
    plain, encrypted = _binned(log_plain[-n:]), _binned(log_encrypted[-n:])
    # Use sum and difference: the arms share the machine's noise, so their own series are not independent.
    signal = np.column_stack([_in_noise_units(plain + encrypted), _in_noise_units(encrypted - plain)])
    return all(change < 0.75 * len(signal) for change in change_points(signal, penalty))


def _binned(series: Floats) -> Floats:
    """Means of neighbours, at most 2 · WARMUP_POINTS values, because the search's time grows with their square."""
    size = -(-len(series) // (2 * WARMUP_POINTS))
    bins = len(series) // size
    means: Floats = np.asarray(series[len(series) - bins * size :], float).reshape(bins, size).mean(axis=1)
    return means


def _in_noise_units(series: Floats) -> Floats:
    """The series divided by its long-run noise sd, that of an AR(1) process around a cubic trend.

    The trend prevents an unfinished warm-up from counting as noise. Autocorrelated noise drifts; without the long-run sd,
    every drift would look like a change of level.
    """
    n = len(series)
    trend = np.polynomial.legendre.legvander(np.linspace(-1, 1, n), 3)
    noise = series - trend @ np.linalg.lstsq(trend, series, rcond=None)[0]
    variance = float(noise @ noise) / (n - 4)
    if variance < 1e-20:
        return np.zeros(n)
    # Fitting a trend hides about 6/n of the autocorrelation.
    phi = min(0.9, max(0.0, float(noise[1:] @ noise[:-1] / (noise @ noise)) + 6 / n))
    scaled: Floats = (series - series.mean()) / math.sqrt(variance * (1 + phi) / (1 - phi))
    return scaled
