"""The RFC's figures. Pure."""

from __future__ import annotations

from ciphercost.studies import Study
from ciphercost.studies.figures import Known

WITHOUT, WITHIN = "Measured Performance Gap", "FIPS Performance Gap"
RFC = 'Cloud Foundry, RFC 0061 "AWS-LC as TLS Backend for HAProxy" (2026), cloudfoundry/community, toc/rfc/rfc-0061-haproxy-awslc.md'
PEAKS = f"{WITHOUT}; {WITHIN}"
SOURCES = {
    PEAKS: f"{RFC}: the peaks of the tables in these two sections, each of one build. The RFC prints no cost of FIPS mode itself; it is "
    "computed from them"
}
"""Where its figures were seen, and what they hold."""
CLIENTS = 20
"""Connections of its load at 5,000 connections a second; at the peak in FIPS mode it had 60."""


def peaks(study: Study, library: str) -> Known:
    """New connections per second without FIPS mode and in it, with `openssl` or `aws_lc`."""
    by_mode = {row["fips"]: float(row[library]) for row in study.rows("figures.csv") if row["figure"] == "peak"}
    return {"plain": by_mode["off"], "encrypted": by_mode["on"]}


def figure(study: Study, fips: str, name: str, library: str) -> float:
    """One figure of its tables."""
    (value,) = (row[library] for row in study.rows("figures.csv") if (row["fips"], row["figure"]) == (fips, name))
    return float(value)
