"""Results for tests of reports: real runs on the null engine, and made-up results with values that such runs never have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fake
from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.result import Cell, Estimate, Result, Warning_
from ciphercost.model.slices import Finding, Proof
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import registry_facts
from ciphercost.runs import pipeline

MACHINE = {
    "cpu": "Test CPU",
    "cores": 2,
    "aes": True,
    "kernel": "6.1",
    "governor": "performance",
    "memory": 8_000_000_000,
}


def estimate(ratio: float, half: float = 0.02, **more: Any) -> Estimate:
    """An interval of ± `half` as a share of the ratio."""
    known: dict[str, Any] = {"ratio_of_totals": ratio, "n": 8, "method": "t over 8 sessions", "p_value": 0.5} | more
    return Estimate(ratio, ratio * (1 - half), ratio * (1 + half), **known)


def cell(engine: str = "postgresql", mechanism: str = "tls", **more: Any) -> Cell:
    """A cell, by default measured and proven."""
    known: dict[str, Any] = {
        "engine": engine,
        "version": "18.4",
        "layer": "transit",
        "mechanism": mechanism,
        "workload": "point-select",
        "clients": 4,
        "status": "ok",
        "mode": "full",
        "verdict": "differs",
        "regime": "capacity",
        "factors": {"version": "1.3", "cipher": "aes256-gcm"},
        "sessions": 8,
        "blocks": 96,
        "overhead": {
            "throughput": estimate(0.8),
            "server_cpu_per_op": estimate(1.25),
            "client_cpu_per_op": estimate(1.1),
            "wire_bytes_per_op": estimate(1.5796, 0.00001),
        },
        "arms": {
            "plain": {
                "throughput": 46019.2,
                "server_cpu_us_per_op": 12.75,
                "client_cpu_us_per_op": 8.9,
                "wire_bytes_per_op": 75.9,
            },
            "encrypted": {
                "throughput": 36815.3,
                "server_cpu_us_per_op": 15.9,
                "client_cpu_us_per_op": 9.8,
                "wire_bytes_per_op": 119.9,
            },
        },
        "encryption": {
            "protocol": "TLSv1.3",
            "cipher": "TLS_AES_256_GCM_SHA384",
            "group": "X25519",
            "peer_key": "RSA 2048",
            "verified": "yes",
            "server_library": "OpenSSL 3.0.19",
            "client_library": "OpenSSL 3.6.3",
        },
        "proofs": [Proof("encrypted", "wire", True, "12 TLS records", 1)],
    }
    return Cell(**known | of_registries(engine, mechanism) | more)


def of_registries(engine: str, mechanism: str) -> dict[str, Any]:
    """Fields that a cell of this engine and mechanism gets from its run's record, if both are known."""
    said = registry_facts.imported(CellSpec(engine, mechanism))
    return {"embedded": said.embedded, "protects": said.protects, "mechanism_factors": said.factors}


def failed(reason: str = "the server went away", **more: Any) -> Cell:
    known: dict[str, Any] = {
        "status": "failed",
        "verdict": None,
        "overhead": {},
        "arms": {},
        "reason": reason,
        "proofs": [],
    }
    return cell(**known | more)


def result(*cells: Cell, **more: Any) -> Result:
    known: dict[str, Any] = {
        "format": FORMAT,
        "id": "20261121-120000-ab12",
        "started": "2026-11-21T12:00:00Z",
        "tool": {"name": "ciphercost", "version": "0.1.0"},
        "machine": MACHINE,
        "seed": 7,
        "cells": list(cells),
        "spec": Spec(cells=[CellSpec(each.engine, each.mechanism) for each in cells]),
    }
    return Result(**known | more)


def mixed() -> Result:
    """Costs of every kind: 8.4 times, none, an interval that contains zero, above 100 %, and cells without a number."""
    huge = estimate(8.4, 0.03)
    none = Estimate(0.9992, 0.996, 1.002, n=8, method="t", p_value=0.7, ratio_of_totals=0.9996)
    return result(
        cell(),
        cell(
            workload="connect",
            overhead={
                "throughput": estimate(0.119, 0.03),
                "server_cpu_per_op": huge,
                "latency_p50": huge,
                "latency_p99": estimate(31.5),
            },
        ),
        cell(workload="bulk-read", verdict="equivalent", overhead={"throughput": none, "server_cpu_per_op": none}),
        cell(workload="insert", verdict="unresolved", overhead={"throughput": estimate(1.01, 0.4)}),
        cell(
            "mysql",
            "innodb-tde",
            layer="rest",
            encryption={"cipher": "AES-256-CBC (pages), AES-256-CTR (binary log)"},
            factors={},
            overhead={
                "throughput": estimate(0.88, 0.08),
                "machine_cpu_per_op": estimate(1.15),
                "memory": estimate(0.99, 0.03),
            },
            findings=[
                Finding("temporary-data-in-clear", "medium", "sorts lie in clear", "tmpdir on an encrypted disk")
            ],
            warnings=[Warning_("few-sessions", "2 sessions give a wide interval")],
        ),
        failed(),
        failed("server witness: ssl is off", status="unproven", engine="mariadb"),
    )


def recorded(directory: Path, percent: int = 0, *, seed: int = 1) -> Path:
    """A run below this directory, by the fake agent in virtual time. `percent`: its effect, also among its factors; 0: 20 %, and no factor."""
    factors = {"effect": f"{percent}%"} if percent else {}
    cells = [CellSpec("null", "busy", factors=factors, regime="one-core")]
    spec = Spec(cells=cells, seed=seed, mode="quick", sessions=1, time=5.0, latency=False)
    with fake.in_place(directory.parent, f"--effect {(percent or 20) / 100} --sd 0.01 --seed {seed}"):
        pipeline.run(spec, directory / "run")
    return directory / "run"
