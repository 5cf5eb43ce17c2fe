"""A factor that the workload can't show is named before the run and beside the answer, with what to use instead."""

from __future__ import annotations

import msgspec
import pytest

from ciphercost import mechanisms
from ciphercost.commands import _banner
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Warning_
from ciphercost.model.spec import CellSpec
from ciphercost.plan import shown
from ciphercost.plan.resolve import resolve
from ciphercost.report import formats
from ciphercost.report.words import verdict_text
from results import cell, result


@pytest.mark.parametrize("name", mechanisms.names())
def test_every_factor_says_when_it_acts(name: str) -> None:
    for factor in mechanisms.get(name).factors:
        assert factor.acts in ("operation", *shown.WHEN), factor.name


SQLCIPHER = CellSpec("sqlite", "sqlcipher", factors={"kdf": "passphrase"})
POSTGRESQL = CellSpec("postgresql", "tls")


def lines_of(spec: CellSpec, **factors: str) -> list[str]:
    return list(shown.not_shown(resolve(msgspec.structs.replace(spec, factors=spec.factors | factors))))


@pytest.mark.parametrize(
    ("spec", "factors", "expected"),
    [
        (SQLCIPHER, {}, "a database file; point-select keeps its connections, so it does not show it: use --workload connect or --per-request"),
        (POSTGRESQL, {"group": "x25519"}, "keeps its connections, so it does not show it: use --workload connect or --per-request"),
        (POSTGRESQL, {"certificate": "ecdsa-p256"}, "certificate acts when a connection opens"),
        (POSTGRESQL, {"verify": "ca"}, "verify acts when a connection opens"),
        (CellSpec("nginx", "tls", workload="file"), {"resumption": "tickets"}, "resumption acts when a connection opens"),
        (CellSpec("nginx", "tls", workload="file"), {"client-cert": "on"}, "client-cert acts when a connection opens; file keeps"),
        (POSTGRESQL, {"version": "1.2"}, "so it hardly shows it (its records are in every operation): use --workload connect"),
        (CellSpec("mysql", "innodb-tde"), {"logs": "off"}, "logs acts when data is written; point-select only reads, so it can't show it: use --workload "),
        (CellSpec("postgresql", "gocryptfs"), {"scrypt": "18"}, "scrypt acts before the load"),
    ],
)  # fmt: skip
def test_a_factor_that_the_workload_cannot_show_is_named(
    spec: CellSpec, factors: dict[str, str], expected: str
) -> None:
    (line,) = lines_of(spec, **factors)
    assert expected in line


@pytest.mark.parametrize(
    ("spec", "factors"),
    [
        (POSTGRESQL, {}),  # nobody asked
        (POSTGRESQL, {"cipher": "chacha20"}),
        (CellSpec("postgresql", "tls", workload="storm"), {"certificate": "ecdsa-p256", "version": "1.2"}),
        (CellSpec("postgresql", "tls", workload="connect"), {"group": "x25519", "version": "1.2", "verify": "ca"}),
        (CellSpec("postgresql", "tls", per_request=True), {"group": "x25519"}),
        (CellSpec("nginx", "tls", workload="shop"), {"resumption": "cache"}),
        (CellSpec("sqlite", "sqlcipher", workload="connect"), {"kdf": "passphrase"}),
        (CellSpec("mysql", "innodb-tde", workload="insert"), {"logs": "off"}),
        (CellSpec("sqlite", "sqlcipher"), {"hmac": "sha1", "page_size": "8192"}),
    ],
)  # fmt: skip
def test_what_the_workload_shows_has_no_line(spec: CellSpec, factors: dict[str, str]) -> None:
    assert lines_of(spec, **factors) == []


def test_it_is_printed_before_the_run_and_first_in_every_report() -> None:
    before = " ".join(_banner.lines([resolve(SQLCIPHER)])).replace("=== ", "").replace("  ", " ")
    assert "kdf acts when a connection opens" in before
    text = lines_of(POSTGRESQL, group="x25519")[0]
    measured = result(cell(factors={"group": "x25519"}, warnings=[Warning_(shown.CODE, text)]))
    assert verdict_text.sentences(measured)[0] == f"Not an answer about group: {text}."
    for name in ("terminal", "md", "html"):
        assert "Not an answer about group" in formats.get(name)(measured)


def test_an_embedded_database_says_how_long_it_takes_to_open() -> None:
    arms = {
        arm: {"throughput": 1000.0, "start_s": seconds} for arm, seconds in (("plain", 0.0011), ("encrypted", 0.126))
    }
    embedded = cell("sqlite", "sqlcipher", layer="rest", arms=arms)
    for name in ("terminal", "md", "html"):
        assert "time to open: 1.1 → 126 ms" in " ".join(formats.get(name)(result(embedded)).split()), name
    each_opens = msgspec.structs.replace(
        embedded, arms={arm: values | {"connects": 1000} for arm, values in arms.items()}
    )
    assert "time to open" not in formats.get("terminal")(result(each_opens))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (CellSpec("duckdb", "encrypted", workload="connect", clients=2), "write --clients 1"),
        (CellSpec("duckdb", "encrypted", per_request=True, clients=2), "write --clients 1"),
        (CellSpec("null", "busy", workload="connect"), "null has no connections to open"),
    ],
)
def test_operations_that_can_not_open_a_database_each_are_refused(spec: CellSpec, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        resolve(spec)
