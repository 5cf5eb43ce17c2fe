"""The figures of both publications. Pure."""

from __future__ import annotations

from ciphercost.studies import Study

PYMONGO, PROXY = "PyMongo's results", "the proxy's results"
SOURCES = {
    PYMONGO: 'mongodb/mongo-python-driver pull request 1481, "PYTHON-4155 Run perf tests with TLS enabled", 19 January 2024: MB/s of each '
    "test without TLS and with it. The copy that we saw ends in the row JsonDeepEncoding, so this and later rows are left out",
    PROXY: 'localstack/postgresql-proxy pull request 15, "reduce SSL connection overhead by setting TCP_NODELAY", 14 May 2026: seconds of 101 '
    "connections with 3 queries each, before and after",
}
"""Where they were seen, and what they hold."""
WITHOUT_A_NETWORK = ("JsonFullDecoding", "JsonFullEncoding", "JsonDeepDecoding")
"""Tests that encode and decode in memory, as their names say: TLS has no part in them."""


def pymongo(study: Study, test: str) -> float:
    """MB/s with TLS ÷ without it."""
    (row,) = (row for row in study.rows("pymongo.csv") if row["test"] == test)
    return float(row["encrypted"]) / float(row["plain"])


def proxy(study: Study, when: str) -> float:
    """Connections a second with TLS ÷ without it, `before` the change or `after` it."""
    (row,) = (row for row in study.rows("proxy.csv") if row["when"] == when)
    return float(row["plain"]) / float(row["encrypted"])
