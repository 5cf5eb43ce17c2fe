"""Every server, witness, format and kind of run has a test in the quick suite, `make test`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import exhaustive
from ciphercost import engines, mechanisms
from ciphercost.report import formats
from conftest import COLLECTED

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).relative_to(ROOT)

SERVERS = {
    "postgresql": "test_real.py::test_a_cell_is_proven_and_measured[postgresql:tls",
    "mysql": "test_real_mysql.py::test_a_cell_is_proven_and_measured[mysql@",
    "mariadb": "test_real_mysql.py::test_a_cell_is_proven_and_measured[mariadb@",
    "firebird": "test_real_firebird.py::test_a_cell_is_proven_and_measured[",
    "sqlite": "test_real.py::test_a_cell_is_proven_and_measured[sqlite:sqlcipher",
    "duckdb": "test_real.py::test_a_cell_is_proven_and_measured[duckdb:encrypted-workload-summarize",
    "turso": "test_real.py::test_a_cell_is_proven_and_measured[turso:turso-encryption",
    "nginx": "test_real_web.py::test_a_file_with_what_sendfile_is_worth_beside_it[nginx",
    "apache": "test_real_web.py::test_a_file_with_what_sendfile_is_worth_beside_it[apache",
    "caddy": "test_real_web.py::test_a_server_that_never_uses_sendfile_has_no_control[caddy",
    "haproxy": "test_real_web.py::test_a_server_that_never_uses_sendfile_has_no_control[haproxy",
    "valkey": "test_real_key_value.py::test_a_cell_is_proven_and_measured[kv-get-valkey",
    "redis": "test_real_key_value.py::test_a_cell_is_proven_and_measured[kv-get-redis",
    "memcached": "test_real_key_value.py::test_a_cell_is_proven_and_measured[kv-get-memcached",
    "h2": "test_real_h2.py::test_a_cell_is_proven_and_measured[tls-point-select",
    "null": "test_real.py::test_a_cell_is_proven_and_measured[null:busy",
    "url": "test_real_web.py::test_a_pair_of_urls_is_measured",
    "command": "test_real_command.py::test_pgbench_over_tls_is_proven_and_measured",
}
"""For each server, a quick test with a whole run."""

COLUMNS = ("aes-", "pgcrypto-", "pgp-sym", "chacha20")
"""Prefixes of mechanisms for column encryption, which all share the witnesses of `mechanisms/_column.py`."""
IN_COLUMNS = {
    "server": "test_in_columns.py::test_a_wrong_key_fails_the_servers_witness",
    "disk": "test_in_columns.py::test_a_canary_in_clear_in_any_table_of_the_encrypted_schema_fails_the_disks_witness",
}
TRANSIT = {
    "server": "test_client_certificates.py::test_a_server_that_asks_for_no_client_certificate_is_not_proven",
    "wire": "test_relay.py::test_the_wire_witness_fails_in_every_way_it_should",
    "client": "test_mysql_traps.py::test_a_certificate_with_another_key_than_requested_fails_the_client_witness",
}
STOCK = "::test_a_stock_server_is_plain_and_nothing_else"
FAILS: dict[str, dict[str, str]] = {
    "client-aes-gcm-256": {
        "server": "test_client_aes_gcm_256.py::test_a_wrong_key_is_witnessed",
        "disk": "test_client_aes_gcm_256.py::test_values_in_clear_are_witnessed",
    },
    "cryfs": {
        "server": "test_cryfs.py::test_a_mount_that_is_otherwise_than_was_asked_for_fails_the_server_witness",
        "disk": "test_cryfs.py::test_files_that_are_no_blocks_fail_the_disk_witness",
    },
    "cybertec-tde": dict.fromkeys(("server", "disk"), f"test_cybertec_tde.py{STOCK}"),
    "edb-tde": dict.fromkeys(("server", "disk"), f"test_edb_tde.py{STOCK}"),
    "encrypted": {
        "server": "test_encrypted.py::test_a_file_with_another_cipher_than_was_asked_for_fails_the_server_witness",
        "disk": "test_encrypted.py::test_a_file_in_clear_in_the_place_of_the_encrypted_one_is_seen",
        "client": "test_witnesses.py::test_a_plain_file_as_the_encrypted_arm_fails_every_witness",
    },
    "firebird-crypt": dict.fromkeys(
        ("server", "disk"),
        "test_firebird_crypt.py::test_server_and_pages_say_what_the_arms_name_says_and_refuse_the_others",
    ),
    "fscrypt": {
        "server": "test_fscrypt.py::test_each_arm_says_what_policy_its_files_have",
        "disk": "test_fscrypt.py::test_what_is_written_rests_in_clear_in_one_arm_alone",
    },
    "gocryptfs": {
        "server": "test_gocryptfs.py::test_a_mount_that_is_otherwise_than_was_asked_for_fails_the_server_witness",
        "disk": "test_gocryptfs.py::test_what_is_written_rests_in_clear_in_one_arm_alone",
    },
    "h2-aes": dict.fromkeys(
        ("server", "disk"), "test_h2_aes.py::test_every_witness_speaks_for_its_own_arm_and_against_the_other"
    ),
    "hop": {
        "client": "test_hops.py::test_a_client_that_encrypts_where_only_the_hop_is_measured_is_detected",
        "server": "test_hops.py::test_a_hop_that_encrypts_unasked_is_detected",
        "wire": "test_hops.py::test_a_hop_that_encrypts_unasked_is_detected",
    },
    "innodb-tde": {
        "server": "test_innodb_tde.py::test_a_part_that_is_switched_off_behind_our_back_is_named",
        "disk": "test_innodb_tde.py::test_a_table_in_clear_is_seen_by_its_pages",
    },
    "mariadb-tde": {
        "server": "test_mariadb_tde.py::test_a_part_that_is_switched_off_behind_our_back_is_named",
        "disk": "test_mariadb_tde.py::test_each_way_not_to_be_encrypted_is_told_from_being_so",
    },
    "path": {
        "server": "test_path.py::test_each_arm_says_what_it_lies_on",
        "disk": "test_path.py::test_where_nothing_below_can_be_searched_nothing_is_proven",
    },
    "pg-tde": {
        "server": "test_pg_tde.py::test_a_key_that_the_server_does_not_reach_fails_the_server_witness",
        "disk": "test_pg_tde.py::test_a_key_for_another_cipher_fails_the_disk_witness",
    },
    "sqlcipher": {
        "server": "test_sqlcipher.py::test_a_file_with_other_settings_than_were_asked_for_fails_the_server_witness",
        "disk": "test_sqlcipher.py::test_a_file_in_clear_in_the_place_of_the_encrypted_one_is_seen",
        "client": "test_witnesses.py::test_a_plain_file_as_the_encrypted_arm_fails_every_witness",
    },
    "tls": TRANSIT,
    "turso-encryption": {
        "server": "test_turso_encryption.py::test_a_file_with_another_cipher_than_was_asked_for_fails_the_server_witness",
        "disk": "test_turso_encryption.py::test_a_file_in_clear_in_the_place_of_the_encrypted_one_is_seen",
        "client": "test_witnesses.py::test_a_plain_file_as_the_encrypted_arm_fails_every_witness",
    },
    "wire-crypt": dict.fromkeys(
        ("server", "wire", "client"), "test_real_firebird.py::test_an_encrypted_arm_in_clear_is_found_out"
    ),
}
"""By mechanism and witness: a test in which this witness fails."""

FORMATS = {
    "bencher": "test_exchange_formats.py::",
    "csv": "test_formats.py::",
    "github-action-benchmark": "test_exchange_formats.py::",
    "html": "test_html.py::test_a_page_makes_no_request_has_no_console_errors_and_is_readable",
    "json": "test_formats.py::",
    "junit": "test_exchange_formats.py::",
    "latex": "test_formats.py::",
    "md": "test_formats.py::",
    "openmetrics": "test_exchange_formats.py::",
    "parquet": "test_formats.py::",
    "png": "test_plots.py::",
    "svg": "test_plots.py::",
    "terminal": "test_formats.py::",
}
RUNS = {
    "quick": "test_quick.py::",
    "full": "test_real.py::test_full_mode_takes_sessions_and_measures_latency",
    "matrix": "test_jdbc.py::test_a_matrix_of_drivers_goes_on_where_one_can_not_connect",
    "calibrate": "test_user_server.py::test_plain_against_plain_leaves_the_server_as_it_was",
    "prove": "test_real.py::test_prove_needs_no_server_of_the_users",
    "a server by URL": "test_user_server.py::test_a_run_leaves_the_server_as_it_was",
    "a pair of URLs": "test_real_web.py::test_a_pair_of_urls_is_measured",
    "the user's rows": "test_user_server.py::test_a_run_leaves_the_server_as_it_was[postgresql-csv",
    "JDBC": "test_jdbc.py::test_a_matrix_of_drivers_goes_on_where_one_can_not_connect",
    "columns": "test_in_columns.py::test_a_run_shows_what_is_protected_beside_its_cost",
    "the application encrypts": "test_client_aes_gcm_256.py::test_it_is_run_end_to_end",
    "at rest": "test_real.py::test_a_cell_is_proven_and_measured[sqlite:sqlcipher",
    "a delayed link": "test_real_conditions.py::test_a_delayed_cell_says_what_its_round_trips_predict",
    "a study": "test_study_postgres_tde.py::test_a_small_run_is_made_recorded_and_reported_again",
    "all studies": "test_replicate_all.py::test_by_the_command_line_every_study_has_its_reason_and_the_status_is_one",
    "resume": "test_resume.py::test_a_run_killed_anywhere_and_resumed_is_the_run_that_was_not_killed",
    "import": "test_import_real.py::test_several_runs_of_pgbench_in_one_file_are_several_runs",
    "killed": "test_kill.py::test_a_controller_that_is_killed_leaves_nothing",
    "its supervisor killed": "test_kill.py::test_a_run_whose_supervisor_is_killed_says_so_and_leaves_nothing",
    "a server switched off behind our back": "test_behind_our_back.py::",
}


def collected(*argv: str) -> list[str]:
    """Names of all tests that pytest collects with these arguments."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", "addopts=", "-p", "no:cacheprovider"]
    # A `-v` of whoever runs these tests would cancel `-q`.
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(
        [*command, *argv], capture_output=True, text=True, check=True, cwd=ROOT, timeout=250, env=environment
    )
    return [exhaustive.name_of(line) for line in done.stdout.splitlines() if "::" in line]


@pytest.fixture(scope="module")
def everything(pytestconfig: pytest.Config) -> list[str]:
    """Names of all tests there are. A run of the whole suite has collected them already."""
    here = pytestconfig.stash[COLLECTED]
    files = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    return here if files == {name.partition("::")[0] for name in here} else collected()


@pytest.fixture(scope="module")
def quick(everything: list[str]) -> list[str]:
    return [name for name in everything if exhaustive.rule_of(name) is None]


def missing(wanted: dict[str, str], quick: list[str]) -> list[str]:
    return [f"{what}: {name}" for what, name in wanted.items() if not any(test.startswith(name) for test in quick)]


def test_make_test_selects_by_the_rules() -> None:
    file = "tests/runs/test_kill.py"
    selected, all_ = collected("-m", "not exhaustive", file), collected(file)
    assert selected == [name for name in all_ if exhaustive.rule_of(name) is None]
    assert 0 < len(selected) < len(all_)


def test_every_rule_matches_and_every_omitted_test_has_a_quick_sibling(everything: list[str], quick: list[str]) -> None:
    left: dict[exhaustive.Rule, set[str]] = {}
    for name in everything:
        if (rule := exhaustive.rule_of(name)) is not None:
            left.setdefault(rule, set()).add(name.partition("[")[0])
    assert [rule.tests for rule in exhaustive.RULES if rule not in left] == []
    tests = {name.partition("[")[0] for name in quick}
    for rule, names in left.items():
        assert rule.instead in tests if rule.instead else names <= tests, rule


def test_every_server_has_a_quick_run(quick: list[str]) -> None:
    differ = sorted(set(SERVERS) ^ set(engines.names()))
    assert not differ, f"{differ}: SERVERS in {FILE} needs one entry per engine, a quick test that runs it"
    assert missing(SERVERS, quick) == []


def test_every_witness_has_a_quick_test_in_which_it_fails(quick: list[str]) -> None:
    for name in mechanisms.names():
        witnesses = mechanisms.get(name).witnesses
        fails = IN_COLUMNS if name.startswith(COLUMNS) else FAILS.get(name, {})
        assert set(fails) == set(witnesses), (
            f"{name} has the witnesses {witnesses}: FAILS[{name!r}] in {FILE} needs, for each of them, a test in which it fails "
            f"(TRANSIT where the mechanism uses TLS)"
        )
        assert missing(fails, quick) == [], name


def test_every_format_and_kind_of_run_has_a_quick_test(quick: list[str]) -> None:
    assert set(FORMATS) == set(formats.names())
    assert missing(FORMATS | RUNS, quick) == []
