"""The cheapest proven mechanism that meets the requirements, and capacity planning."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ciphercost import commands
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.slices import Finding
from ciphercost.report import advice, capacity, cost_gate, formats
from ciphercost.report.words import figure_text
from results import cell, estimate, failed, mixed, recorded, result


def tls(ratio: float, half: float = 0.01, protocol: str = "TLSv1.3", **more: str) -> Cell:
    tls_cell = cell(overhead={"throughput": estimate(ratio, half)}, factors={"version": protocol[-3:], **more})
    return msgspec.structs.replace(tls_cell, encryption=tls_cell.encryption | {"protocol": protocol})


def rest(mechanism: str, ratio: float, cipher: str, *findings: Finding) -> Cell:
    return cell(
        mechanism=mechanism,
        layer="rest",
        workload="tpcb",
        factors={},
        overhead={"throughput": estimate(ratio, 0.01)},
        encryption={"cipher": cipher},
        findings=list(findings),
    )


def only(report: advice.Report) -> advice.Advice:
    (answer,) = report.answers
    return answer


def test_the_cheapest_that_meets_the_requirements_is_chosen_and_the_others_have_reasons() -> None:
    measured = result(tls(0.7), tls(0.9, protocol="TLSv1.2"), tls(0.8), failed("no proof", status="unproven"))
    answer = only(advice.advise(measured, ["tls1.3", "verified"]))
    assert answer.chosen == 2
    assert [candidate.outcome for candidate in answer.candidates] == ["meets", "meets", "fails", "fails"]
    reasons = {candidate.cell: "; ".join(candidate.reasons) for candidate in answer.candidates}
    assert "TLSv1.2" in reasons[1]
    assert "no proof" in reasons[3]
    assert advice.advise(measured, ["tls1.2"]).answers[0].chosen == 1


def test_a_mechanism_as_cheap_as_the_cheapest_is_named_with_it() -> None:
    answer = only(advice.advise(result(tls(0.8), tls(0.801), tls(0.5))))
    assert (answer.chosen, answer.as_cheap) == (1, [0])


@pytest.mark.parametrize(
    ("ratio", "half", "outcome", "status"),
    [(0.97, 0.01, "meets", 0), (0.95, 0.02, "unresolved", 4), (0.8, 0.01, "over", 3)],
)
def test_the_budget_is_compared_with_the_upper_bound(ratio: float, half: float, outcome: str, status: int) -> None:
    report = advice.advise(result(tls(ratio, half)), ["tls1.3"], 0.05)
    assert only(report).candidates[0].outcome == outcome
    assert report.exit_status == status


def test_a_high_finding_meets_no_requirement_and_a_control_is_not_a_candidate() -> None:
    xor = rest("firebird-crypt", 0.99, "XOR", Finding("no-cryptography", "high", "it is XOR"))
    report = advice.advise(result(xor, cell("nginx", "no-sendfile", layer="control")), ["at-rest"])
    assert only(report).candidates[0].outcome == "fails"
    assert "XOR" in only(report).candidates[0].reasons[0]
    assert report.exit_status == 3


@pytest.mark.parametrize(
    ("mechanism", "cipher", "meets"),
    [
        ("sqlcipher", "AES-256-CBC HMAC_SHA512", True),
        ("sqlcipher", "AES-256-CBC", False),
        ("gocryptfs", "AES-GCM-256", True),
        ("fscrypt", "AES-256-XTS, names AES-256-CBC-CTS", False),
        ("mariadb-tde", "AES-256-CTR (pages, redo log), AES-256-GCM (temporary files, binary log)", False),
        ("innodb-tde", "", False),
    ],
)
def test_at_rest_every_cipher_must_detect_a_change(mechanism: str, cipher: str, meets: bool) -> None:
    report = advice.advise(result(rest(mechanism, 0.9, cipher)), ["at-rest", "authenticated"])
    assert (only(report).chosen == 0) is meets


def test_wire_crypt_does_not_authenticate_and_a_share_is_not_the_whole() -> None:
    wire = cell("firebird", "wire-crypt", encryption={"protocol": "ChaCha64", "cipher": "ChaCha64"})
    assert only(advice.advise(result(wire), ["in-transit"])).chosen == 0
    assert only(advice.advise(result(wire), ["in-transit", "authenticated"])).chosen is None
    assert only(advice.advise(result(tls(0.9, share="checkout")), ["tls1.3"])).chosen is None


def test_columns_are_judged_by_their_findings() -> None:
    sealed = cell(
        mechanism="client-aes-gcm-256", layer="column", factors={}, encryption={"implementation": "by the client"}
    )
    ecb = cell(
        mechanism="aes-ecb-128",
        layer="column",
        factors={},
        encryption={"cipher": "AES-128-ECB"},
        findings=[Finding("unauthenticated", "low", "nobody notices")],
    )
    answer = only(advice.advise(result(sealed, ecb), ["column", "authenticated", "key-off-server"]))
    assert answer.chosen == 0
    stored, key = answer.candidates[1].reasons
    assert "changed stored value" in stored
    assert "server has the key" in key


def test_other_loads_and_servers_are_not_alternatives() -> None:
    report = advice.advise(result(tls(0.8), cell("mysql"), cell(workload="connect"), cell(clients=9)))
    assert len(report.answers) == 4
    assert advice.advise(result(tls(0.8), rest("fscrypt", 0.5, "AES-256-XTS")), ["tls1.3"]).exit_status == 0
    nothing = advice.advise(result(tls(0.8)), ["at-rest"])
    assert (nothing.answers, nothing.exit_status) == ([], 3)


def test_the_vocabulary_is_closed_and_documented() -> None:
    with pytest.raises(UsageError, match="did you mean 'verified'"):
        advice.needs("tls1.3,verfied")
    with pytest.raises(UsageError, match="in-transit and at-rest"):
        advice.needs("tls1.3,at-rest")
    readme = (Path(__file__).parents[2] / "docs" / "reference" / "run-options.md").read_text()
    help_ = " ".join(CliRunner().invoke(commands.cli, ["report", "--help"]).output.split())
    for word, (_, meaning, _) in advice.NEEDS.items():
        assert f"`{word}`" in readme, word
        assert word in help_, word
        assert meaning


@given(
    st.lists(st.tuples(st.floats(0.05, 1.2), st.floats(0.001, 0.3)), min_size=1, max_size=8),
    st.none() | st.floats(0.01, 0.9),
    st.sampled_from([[], ["tls1.3"], ["tls1.3", "post-quantum"]]),
)
def test_the_choice_is_within_the_budget_and_the_cheapest_there(
    costs: list[tuple[float, float]], limit: float | None, need: list[str]
) -> None:
    measured = result(*[tls(ratio, half) for ratio, half in costs])
    report = advice.advise(measured, need, limit)
    answer = only(report)
    assert {candidate.cell for candidate in answer.candidates} == set(range(len(costs)))
    within = [
        number
        for number, cell in enumerate(measured.cells)
        if "post-quantum" not in need
        and (limit is None or cost_gate.passed("throughput", cell.overhead["throughput"], limit) == "pass")
    ]
    if not within:
        assert answer.chosen is None
        assert report.exit_status in (3, 4)
        return
    assert report.exit_status == 0
    assert answer.chosen in within
    ratios = {number: measured.cells[number].overhead["throughput"].ratio for number in within}
    assert ratios[answer.chosen] == max(ratios.values())


def test_the_command_prints_it_at_80_columns_and_ends_with_its_status(tmp_path: Path) -> None:
    run = str(recorded(tmp_path / "run"))
    for arguments, status in (
        (("--need", "tls1.3,verified"), 3),
        (("--need", "tls1.3", "--format", "json"), 3),
        (("--max-cost", "5%", "--format", "md"), 3),
    ):
        done = CliRunner().invoke(commands.cli, ["report", run, *arguments])
        assert done.exit_code == status, done.output
    done = CliRunner().invoke(
        commands.cli, ["report", run, "--need", "tls1.3", "--format", "parquet", "-o", str(tmp_path / "x")]
    )
    assert isinstance(done.exception, UsageError)
    with pytest.raises(UsageError, match="terminal, md or json"):
        formats.with_advice("csv", mixed(), advice.advise(mixed()))
    for need in ([], ["tls1.3"], ["at-rest", "nothing-in-clear"]):
        report = advice.advise(mixed(), need, 0.05)
        text = formats.with_advice("terminal", mixed(), report)
        assert all(len(line) <= 80 for line in text.splitlines())
        assert json.loads(formats.with_advice("json", mixed(), report))["exit_status"] == report.exit_status
        markdown = formats.with_advice("md", mixed(), report)
        for candidate in (one for answer in report.answers for one in answer.candidates if one.estimate):
            assert figure_text.cost(candidate.metric, candidate.estimate or Estimate(1, 1, 1)) in markdown


# ── capacity ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_microseconds_an_operation_are_seconds_a_million_and_servers_follow_the_ratio() -> None:
    one_cell = cell(overhead={"server_cpu_per_op": Estimate(1.24, 1.19, 1.29)})
    planned = capacity.of(one_cell)
    assert planned is not None
    assert planned.plain_s == 12.75
    assert planned.encrypted_s.value == pytest.approx(12.75 * 1.24)
    assert (planned.servers.value, planned.servers.low, planned.servers.high) == pytest.approx((12.4, 11.9, 12.9))
    seconds = (planned.encrypted_s.value, planned.encrypted_s.low, planned.encrypted_s.high)
    servers = (planned.servers.value, planned.servers.low, planned.servers.high)
    assert [f"{figure:.1f}" for figure in (*seconds, *servers) if f"{figure:.1f}" not in capacity.line(one_cell)] == []


def test_kernel_threads_count_at_rest_and_the_process_of_an_embedded_database() -> None:
    arms = {
        "plain": {"machine_cpu_us_per_op": 2.0, "server_cpu_us_per_op": 1.0, "client_cpu_us_per_op": 1.0},
        "encrypted": {},
    }
    both = {"machine_cpu_per_op": estimate(4.0), "server_cpu_per_op": estimate(1.5), "client_cpu_per_op": estimate(3)}
    keys = [
        getattr(capacity.of(cell(engine, mechanism, layer=layer, overhead=both, arms=arms)), "key", None)
        for engine, mechanism, layer in (
            ("mysql", "innodb-tde", "rest"), ("mysql", "tls", "transit"), ("sqlite", "sqlcipher", "rest"), ("nginx", "no-sendfile", "control")
        )
    ]  # fmt: skip
    assert keys == ["machine_cpu_per_op", "server_cpu_per_op", "machine_cpu_per_op", None]
    # An embedded database whose process does the encryption: its own CPU time has the narrower interval.
    process = {"client_cpu_per_op": estimate(3)}
    for overhead in (process, process | {"machine_cpu_per_op": estimate(3, 0.1)}):
        planned = capacity.of(cell("sqlite", "sqlcipher", layer="rest", overhead=overhead, arms=arms))
        assert planned is not None
        assert planned.key == "client_cpu_per_op"


def test_the_terminal_has_one_capacity_line_per_cell_and_none_for_a_control() -> None:
    text = " ".join(formats.get("terminal")(result(cell())).split())
    assert text.count("per million operations:") == 1
    assert capacity.line(cell()) in text
    grouped = [cell(group="g", variant=f"cipher={name}") for name in "ab"]
    control = cell("nginx", "no-sendfile", layer="control", group="g")
    assert formats.get("terminal")(result(*grouped, control)).count("per million operations:") == 2
    assert not capacity.line(control)
    assert not capacity.line(failed())


def by_suite(cipher: str) -> Cell:
    tls12 = tls(0.8, protocol="TLSv1.2")
    return msgspec.structs.replace(tls12, encryption=tls12.encryption | {"cipher": cipher})


def test_forward_secrecy_follows_from_protocol_or_suite_if_no_group_is_reported() -> None:
    """Java reports no group. TLS 1.3 always has forward secrecy; in TLS 1.2 the suite's name shows it."""
    for cell_, meets in (
        (tls(0.8), True),
        (by_suite("ECDHE-RSA-AES256-GCM-SHA384"), True),
        (by_suite("AES256-GCM-SHA384"), False),
    ):
        bare = msgspec.structs.replace(cell_, encryption={k: v for k, v in cell_.encryption.items() if k != "group"})
        answer = only(advice.advise(result(bare), advice.needs("forward-secrecy")))
        assert (answer.chosen is not None) == meets


@pytest.mark.parametrize("text", ["", ",", " , "])
def test_an_empty_need_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--need is empty"):
        advice.needs(text)
