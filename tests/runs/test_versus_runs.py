"""Whole runs of two encrypted arms: both proven with their own settings, named by them, and recorded as a pair."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ciphercost.model.result import Result
from ciphercost.model.run_directory import ResultDecoder, read_slices
from conftest import RequireServer
from test_real import SHORT, ciphercost, measured, result_of

PAIRS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "postgresql:tls": (("--versus", "version=1.2", "--workload", "connect"), "TLS 1.2", "TLS 1.3"),
    "nginx:tls": (
        ("--set", "group=x25519mlkem768", "--versus", "group=x25519", "--workload", "connect"),
        "group=x25519",
        "group=x25519mlkem768",
    ),
    "mysql:tls": (("--versus", "cipher=chacha20"), "cipher=chacha20", "cipher=aes256-gcm"),
    "valkey:tls": (
        ("--set", "certificate=ecdsa-p256", "--versus", "certificate=rsa2048", "--workload", "connect"),
        "certificate=rsa2048",
        "certificate=ecdsa-p256",
    ),
    "haproxy:tls": (
        ("--set", "library=openssl-3.5", "--set", "fips=on", "--versus", "fips=off", "--workload", "connect"),
        "fips=off",
        "fips=on",
    ),
    "sqlite:sqlcipher": (("--set", "kdf=raw", "--versus", "kdf=passphrase"), "kdf=passphrase", "kdf=raw"),
    "mariadb:aes-cbc-256": (
        ("--workload", "search", "--versus", "mechanism=aes-ecb-256"),
        "aes-ecb-256",
        "aes-cbc-256",
    ),
    "mariadb:mariadb-tde": (("--versus", "cipher=cbc"), "cipher=cbc", "cipher=ctr"),
}


@pytest.fixture(scope="module", params=PAIRS)
def run(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, require_server: RequireServer
) -> tuple[str, dict[str, Any], Path]:
    """(the target, its cell in result.json, the directory of its record)."""
    engine = request.param.partition(":")[0]
    if engine != "sqlite":
        require_server(engine)
    place = tmp_path_factory.mktemp("versus")
    done = measured("run", request.param, *PAIRS[request.param][0], *SHORT, "-o", "r", "--json", "out.json", cwd=place)
    assert done.returncode == 0, done.stderr + done.stdout
    (place / "printed.txt").write_text(done.stdout)
    return request.param, result_of(place)["cells"][0], place / "r"


def test_both_arms_are_proven_and_named(run: tuple[str, dict[str, Any], Path]) -> None:
    target, cell, _ = run
    _, reference, compared = PAIRS[target]
    assert cell["status"] == "ok", cell["reason"]
    assert cell["pair"]["kind"] == "versus"
    assert (cell["pair"]["reference"]["name"], cell["pair"]["compared"]["name"]) == (reference, compared)
    assert {proof["arm"] for proof in cell["proofs"]} == {"reference", "compared"}
    assert all(proof["passed"] for proof in cell["proofs"])
    assert set(cell["arms"]) == {"reference", "compared"}
    if target.endswith(":tls"):
        wires = [proof["detail"] for proof in cell["proofs"] if proof["witness"] == "wire"]
        assert len(wires) == 2
        assert all("the canary is absent" in detail for detail in wires), wires


def test_each_arm_negotiates_what_it_was_told(run: tuple[str, dict[str, Any], Path]) -> None:
    target, cell, _ = run
    reference, compared = (cell["pair"][place]["encryption"] for place in ("reference", "compared"))
    expected: dict[str, tuple[str, str, str]] = {
        "postgresql:tls": ("protocol", "TLSv1.2", "TLSv1.3"),
        "nginx:tls": ("group", "X25519", "X25519MLKEM768"),
        "mysql:tls": ("cipher", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_256_GCM_SHA384"),
        "valkey:tls": ("peer_key", "RSA 2048", "EC P-256"),
    }
    if target in expected:
        name, first, second = expected[target]
        assert (reference[name].lower(), compared[name].lower()) == (first.lower(), second.lower())
    elif target != "haproxy:tls":  # FIPS mode is the server's alone
        assert reference != compared


def test_the_record_says_what_kind_of_pair_it_is_and_reads_back(run: tuple[str, dict[str, Any], Path]) -> None:
    target, cell, record = run
    plan = json.loads((record / "plan.json").read_text())
    assert plan["cells"][0]["pair"]["kind"] == "versus"
    again: Result = ResultDecoder().decode((record / "result.json").read_bytes())
    assert again.cells[0].pair is not None
    assert set(again.cells[0].arms) == {"plain", "encrypted"}
    assert {slice_record.arm for slice_record in read_slices(record)} == {"plain", "encrypted"}
    assert again.cells[0].arms["plain"]["throughput"] == cell["arms"]["reference"]["throughput"]
    assert target


def test_no_format_calls_an_arm_plain(run: tuple[str, dict[str, Any], Path]) -> None:
    _, _, record = run
    for form in ("terminal", "md", "csv", "latex", "junit", "openmetrics", "html", "json"):
        done = ciphercost("report", str(record), "--format", form, "-o", f"out.{form}", cwd=record.parent)
        assert done.returncode == 0, (form, done.stderr)
        text = (record.parent / f"out.{form}").read_text()
        words = text.split("<body", 1)[-1]
        for phrase in (
            "plain arm",
            "encrypted arm",
            "plain →",
            "in one arm and off",
            "off in the other",
            "encrypted ÷ plain",
        ):
            assert phrase not in words, (form, words[max(0, words.index(phrase) - 200) : words.index(phrase) + 100])
