"""Factors without a choice are known when the cell is planned, and a page does not list them."""

from __future__ import annotations

import msgspec
import pytest

import results
from ciphercost import mechanisms
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import registry_facts, specs
from ciphercost.report.formats import html


def fixed(engine: str, mechanism: str, workload: str, **factors: str) -> set[str]:
    (cell,) = specs.plan(Spec(cells=[CellSpec(engine, mechanism, workload=workload, factors=factors)])).cells
    (facts,) = registry_facts.planned([cell])
    assert facts.registered is not None
    return set(facts.registered.fixed)


@pytest.mark.parametrize(
    ("engine", "workload", "some", "never"),
    [
        (
            "postgresql",
            "bulk-read",
            {"resumption", "share", "ends", "chunks"},
            {"client-cert", "negotiation", "version", "cipher", "size"},
        ),
        ("nginx", "file", {"ends"}, {"client-cert", "resumption", "share", "version", "size"}),
        (
            "valkey",
            "kv-get",
            {"negotiation", "channel-binding", "share", "ends"},
            {"client-cert", "version", "certificate", "size"},
        ),
    ],
)
def test_what_a_server_or_a_formula_decides_is_no_choice(
    engine: str, workload: str, some: set[str], never: set[str]
) -> None:
    decided = fixed(engine, "tls", workload)
    assert some <= decided
    assert not never & decided
    for name in decided & {factor.name for factor in mechanisms.get("tls").factors} - {"ends"}:
        (factor,) = (candidate for candidate in mechanisms.get("tls").factors if candidate.name == name)
        for value in factor.values[1:]:
            with pytest.raises(UsageError):
                specs.plan(Spec(cells=[CellSpec(engine, "tls", workload=workload, factors={name: value})]))


def test_a_choice_that_was_made_is_one() -> None:
    assert "cipher" not in fixed("postgresql", "tls", "point-select", version="1.2")
    assert "ends" not in fixed("postgresql", "tls", "point-select", hop="haproxy")
    assert "chunks" in fixed("postgresql", "tls", "bulk-read", size="10KB")
    assert fixed("sqlite", "sqlcipher", "insert") == set()


def test_a_page_lists_what_could_have_been_chosen() -> None:
    cell = results.cell(factors={"cipher": "aes256-gcm", "share": "all", "chunks": "16"})
    assert "share=all" in html.render(results.result(cell)), "an older record says nothing of it"
    text = html.render(results.result(msgspec.structs.replace(cell, fixed_factors=["share", "chunks"])))
    assert "cipher=aes256-gcm" in text
    assert "share=all" not in text
    assert "chunks=16" not in text
