"""Latency quantiles: their log ratios and levels by block or session, and those of all requests together. Pure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ciphercost.estimate import statistics, totals
from ciphercost.estimate.histogram import quantiles
from ciphercost.estimate.statistics import Interval
from ciphercost.estimate.tally import QUANTILES, Arms, Floats, Tally
from ciphercost.model.spec import ARMS, Mode

QUANTILES_BY_METRIC = {f"latency_{name}": share for name, share in QUANTILES}
WHOLE_SESSIONS = "each session's requests together"
RESAMPLED = 64
"""Up to this many sessions, the jackknife recomputes the quantiles of all requests once without each session."""


class Pooled(NamedTuple):
    """Latency quantiles of all requests together, as log ratios, encrypted − plain."""

    log_ratio: Floats
    """Shape (quantiles,)."""
    parts: Floats
    """Shape (sessions, quantiles): jackknife pseudo-values; (0, quantiles) where blocks are the unit."""

    def interval(self, column: int, robust: Interval, most_nu: int | None) -> Interval:
        """The interval of one quantile. Blocks keep no histograms, so over blocks it has the robust estimate's error."""
        centre = float(self.log_ratio[column])
        if not len(self.parts):
            return robust._replace(centre=centre, mean=None)
        return statistics.session_interval(self.parts[:, column], centre, most_nu)


def pooled(tally: Tally, latency: Arms, mode: Mode) -> Pooled:
    """Quantiles of all requests together, and each session's part in their log ratio, by the jackknife.

    `latency`: the blocks of `tally`.
    """
    shares = [share for _, share in QUANTILES]

    def log_ratio(but: int | None = None) -> Floats:
        plain, encrypted = (tally.histogram(arm, but=but) for arm in ARMS)
        if plain is None or encrypted is None:
            return np.full(len(shares), np.nan)
        ratios: Floats = np.log(quantiles(encrypted, shares) / quantiles(plain, shares))
        return ratios

    whole, sessions = log_ratio(), np.unique(latency.sessions).tolist()
    if not latency.by_session(mode) or len(sessions) > RESAMPLED:
        return Pooled(whole, np.empty((0, len(shares))))
    n = len(sessions)
    return Pooled(whole, np.array([n * whole - (n - 1) * log_ratio(session) for session in sessions]))


def quantile_interval(latency: Arms, column: int, mode: Mode, most_nu: int | None, *, whole: bool) -> Interval | None:
    """The log ratio of one quantile, by the same rule as throughput; None with fewer than two blocks.

    `whole`: use each session's requests together, because its blocks have too few.
    """
    if whole or latency.by_session(mode):
        return statistics.session_interval(by_session(latency, column, whole=whole)[1], most_nu=most_nu)
    values = log_ratios(latency, column)
    return statistics.block_interval(values) if len(values) >= 2 else None


def level(latency: Arms, column: int, mode: Mode, *, whole: bool) -> float:
    """The log level of one quantile, in log ns, of both arms together."""
    if latency.by_session(mode):
        return float(by_session(latency, column, whole=whole)[0].mean())
    return statistics.hodges_lehmann(np.log(latency.plain_ns * latency.encrypted_ns)[:, column] / 2)


def by_session(latency: Arms, column: int, *, whole: bool) -> tuple[Floats, Floats]:
    """One quantile of each session: log level of both arms together, and log ratio, each of shape (sessions,).

    `whole`: of the session's merged requests, not of its blocks.
    """
    if whole:
        plain, encrypted = np.log(latency.session_plain_ns[:, column]), np.log(latency.session_encrypted_ns[:, column])
        return (plain + encrypted) / 2, encrypted - plain
    plain, encrypted = np.log(latency.plain_ns[:, column]), np.log(latency.encrypted_ns[:, column])
    centres = [
        [statistics.hodges_lehmann(values[latency.sessions == session]) for session in np.unique(latency.sessions)]
        for values in ((plain + encrypted) / 2, encrypted - plain)
    ]
    return np.array(centres[0]), np.array(centres[1])


def log_ratios(latency: Arms, column: int) -> Floats:
    """The log ratio of one quantile in each block, shape (blocks,)."""
    ratios: Floats = np.log(latency.encrypted_ns[:, column] / latency.plain_ns[:, column])
    return ratios


def disagreements(latency: Arms, together: Pooled, mode: Mode) -> dict[str, float]:
    """By metric: p-value that the typical block or session and all requests together show the same cost."""
    p_values: dict[str, float] = {}
    for column, (name, share) in enumerate(QUANTILES):
        if not (unit := latency.unit_of(share, mode)):
            continue
        if not latency.by_session(mode):
            values = log_ratios(latency, column)
            p_values[f"latency_{name}"] = totals.one_sided(totals.far_off(values, values, latency.sessions))
        elif len(together.parts):
            _, centres = by_session(latency, column, whole=unit == "session")
            error = statistics.t_error(together.parts[:, column] - centres, "sessions")
            apart = float(together.log_ratio[column] - centres.mean())
            p_values[f"latency_{name}"] = Interval(apart, (error,), len(centres)).p_value()
    return p_values
