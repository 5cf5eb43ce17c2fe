"""Tests that only `make test-all` runs: those with the marker `exhaustive`, each with a reason.

The rules are here and not at the tests, so that one screen shows everything that the quick suite omits. A rule is a regular
expression for `test_file.py::test_name[parameters]`. If a rule omits all cases of a test, `instead` names the quick test
that covers the same. `tests/repository/test_quick_suite.py` checks that every rule matches a test, and that exhaustive tests
are never the only ones to cover something.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Rule(NamedTuple):
    """A rule for exhaustive tests."""

    tests: str
    why: str
    instead: str = ""
    """A quick test that covers the same, as `test_file.py::test_name`; empty: other cases of the same tests do."""


OLD_SERVER = "old server version"
VENDOR = "vendor's server"
OLD_DRIVER = "old driver version"
REPETITION = "thousands of repetitions"
STUDY = "long study"
COMBINATION = "combination whose parts are covered one by one"
LONG = "long run"

MIDDLE = (
    "another authority-mysql-rust-prove",
    "self-signed-postgresql-rust-prove",
    "expired-nginx-rust-prove",
    "not yet valid-postgresql-rust-prove",
    "another name-mariadb-rust-prove",
    "for clients only-postgresql-rust-prove",
    "leaf as authority-nginx-rust-prove",
    "revoked-postgresql-rust-run",
    "TLS 1.1 at most-nginx-rust-prove",
    "TLS 1.2 for 1.3-valkey-rust-prove",
    "stripped-mysql-rust-prove",
    "answered in clear-mariadb-rust-prove",
    "injected beside the answer-mysql-rust-prove",
    "injected beside the answer-postgresql-jdbc-prove",
    "injected behind the answer-postgresql-rust-prove",
    "closed-postgresql-rust-prove",
    "reset-postgresql-rust-prove",
    "alert-postgresql-rust-prove",
)
"""Each attack, server, client and command of the man in the middle at least once; `make middle` has all combinations."""

RULES = [
    # ── old versions ──
    Rule(r"\[(.*-)?(postgresql@15|postgresql@17|mariadb@10\.11|nginx@1\.22)\b", OLD_SERVER),
    Rule(r"test_import_real\.py::.*\[15\]", OLD_SERVER),
    Rule(r"test_mariadb_tde\.py::.*\[10\.11\b", OLD_SERVER),
    Rule(r"test_impostor\.py::test_(jdbc_keeps|no_driver).*\[\w+ Connector/J (5|8|2|9|3)\.", OLD_DRIVER),
    Rule(r"test_agent_java\.py::test_a_password_stands_in_no_error\[(5\.1\.6|2\.7\.15)\]", OLD_DRIVER),
    # ── servers that need a directory named by the user ──
    Rule(
        r"test_pg_tde\.py::test_(a_real_pair|a_log_that_was|a_server_that_takes|every_key_of_a_real)",
        VENDOR,
        "test_pg_tde.py::test_a_stock_server_is_refused_with_clear_words",
    ),
    Rule(
        r"test_cybertec_tde\.py::test_(a_real_pair|a_cluster_that_was_made_in_clear)",
        VENDOR,
        "test_cybertec_tde.py::test_a_stock_server_is_refused_with_clear_words",
    ),
    Rule(
        r"test_edb_tde\.py::test_a_real_pair",
        VENDOR,
        "test_edb_tde.py::test_a_stock_server_is_refused_with_clear_words",
    ),
    # ── sizes and places between others ──
    Rule(r"test_web\.py::test_the_log_states.*-rsa(1280|1536|3072)\]", COMBINATION),
    Rule(r"test_mysql\.py::test_one_server_offers.*-rsa4096\]", COMBINATION),
    Rule(r"test_study_pages\.py::test_a_study_page_can_be_read.*\[1440-dark-(jdbc|mysql|postgres|web)", COMBINATION),
    Rule(r"test_resume\.py::test_a_run_killed_anywhere.*\[cells[145]-", COMBINATION),
    Rule(r"test_progress\.py::test_on_a_terminal_it_is_live.*\[\[\((40, 10|80, 24)", COMBINATION),
    Rule(r"test_real_key_value\.py::test_a_cell_is_proven.*\[connect-resumption=on-memcached\]", COMBINATION),
    Rule(r"test_server_limits\.py::test_a_slow.*\[(mysql|mariadb|firebird)\]", COMBINATION),
    Rule(r"test_faults\.py::test_a_fault_loses.*\[(?!postgresql:tls-server killed\])", REPETITION),
    Rule(
        r"test_fuzz\.py::test_some_seconds",
        LONG,
        "test_fuzz.py::test_seeds_and_corpus_are_answered",
    ),
    # ── simulations ──
    Rule(r"test_method_coverage\.py::test_few_blocks_cover.*-(12|16|24|30)\]", REPETITION),
    Rule(r"test_method_coverage\.py::test_the_quick_interval_covers.*-200\]", REPETITION),
    Rule(r"test_method_coverage\.py::test_a_quick_run_that_stops.*\[(drift|correlated|spikes)\]", REPETITION),
    Rule(r"test_history\.py::test_at_most_five_per_cent.*(-4000|40 runs-400)\]", REPETITION),
    Rule(r"test_method_power\.py::test_the_carry_over_test_fires.*\[(0\.3|0\.5|1\.0)\]", REPETITION),
    Rule(r"test_schedule\.py::test_steady_noise_is_rarely_taken.*\[0\.3-", REPETITION),
    # ── studies ──
    Rule(
        r"test_study_jdbc_tls\.py::test_a_small_replication_on_a_real_server",
        STUDY,
        "test_study_column_functions.py::test_a_very_small_replication_is_proven_run_recorded_and_reported_again",
    ),
    Rule(
        r"test_replicate\.py::test_a_small_replication",
        STUDY,
        "test_study_column_functions.py::test_a_very_small_replication_is_proven_run_recorded_and_reported_again",
    ),
    Rule(r"test_study_column_functions\.py::test_a_very_small_replication.*\[mariadb-", STUDY),
    Rule(
        r"test_study_column_functions\.py::test_without_aes_instructions_the_agent",
        STUDY,
        "test_study_column_functions.py::test_a_mask_that_hides_nothing_is_detected_before_anything_is_timed",
    ),
    Rule(
        r"test_study_column_functions\.py::test_a_missing_server_is_named",
        STUDY,
        "test_replicate_all.py::test_by_the_command_line_every_study_has_its_reason_and_the_status_is_one",
    ),
    Rule(r"test_study_postgres_tde\.py::test_a_small_run_is_made.*\[fscrypt\]", STUDY),
    Rule(
        r"test_study_postgres_tde\.py::test_a_sweep_over_two_servers",
        STUDY,
        "test_study_postgres_tde.py::test_a_small_run_is_made_recorded_and_reported_again",
    ),
    Rule(
        r"test_replicate_all\.py::test_a_study_that_fails_stops_no_other",
        STUDY,
        "test_replicate_all.py::test_by_the_command_line_every_study_has_its_reason_and_the_status_is_one",
    ),
    Rule(
        r"test_study_web_tls\.py::test_a_small_replication",
        STUDY,
        "test_study_column_functions.py::test_a_very_small_replication_is_proven_run_recorded_and_reported_again",
    ),
    Rule(
        r"test_jdbc_tls_wire\.py::test_mysql_has_the_same_packets",
        STUDY,
        "test_jdbc_tls_wire.py::test_packets_have_the_published_sizes",
    ),
    Rule(
        r"test_jdbc_drivers\.py::test_jars_come_in_their_order",
        LONG,
        "test_jdbc_drivers.py::test_every_version_is_pinned_once",
    ),
    Rule(
        r"test_gocryptfs\.py::test_each_arm_says_what_it_lies_on",
        LONG,
        "test_gocryptfs.py::test_a_mount_that_is_otherwise_than_was_asked_for_fails_the_server_witness",
    ),
    # ── documentation ──
    Rule(
        r"test_site\.py::test_every_page_is_accessible",
        COMBINATION,
        "test_site.py::test_one_page_of_each_kind_is_accessible_and_fits",
    ),
    Rule(r"test_site\.py::test_every_command_on_a_page_runs\[(?!how-to/compare-machines)", LONG),
    # ── runs ──
    Rule(r"test_behind_our_back\.py::.*\[(a keyring|a log|a conversion|a plaintext file)", LONG),
    Rule(
        r"test_innodb_tde\.py::test_logs_that_were_left_in_clear",
        LONG,
        "test_innodb_tde.py::test_each_arm_is_what_its_name_says_and_not_what_the_others_says",
    ),
    Rule(
        r"test_jdbc\.py::test_every_sessions_machine_is_warm",
        LONG,
        "test_jdbc.py::test_a_matrix_of_drivers_goes_on_where_one_can_not_connect",
    ),
    Rule(r"test_limit\.py::test_a_slow_link_is_found_to_be_the_limit", LONG, "test_limit.py::test_the_limit_is_named"),
    Rule(
        r"test_client_certificates\.py::test_a_run_compares_them",
        LONG,
        "test_client_certificates.py::test_a_client_certificate_is_required_and_verified",
    ),
    Rule(
        r"test_innodb_tde\.py::test_a_new_master_key",
        LONG,
        "test_innodb_tde.py::test_each_arm_is_what_its_name_says_and_not_what_the_others_says",
    ),
    Rule(
        r"test_comparison\.py::test_tls_of_2008_and_of_today_differ",
        LONG,
        "test_comparison.py::test_real_runs_through_the_command",
    ),
    Rule(
        r"test_import_real\.py::test_(a_log_of_intervals|sysbench_at_a_given_rate)",
        COMBINATION,
        "test_import_real.py::test_pgbench_with_progress_and_a_log_is_one_run_with_all_that_both_say",
    ),
    Rule(
        r"test_real_web\.py::test_(the_cpus_instructions_can_be_taken_away|a_longer_way_for_both_arms)",
        COMBINATION,
        "test_aes_mask.py::test_with_the_mask_a_cell_is_proven",
    ),
    Rule(r"test_aes_mask\.py::test_the_mask_reaches_the_functions.*\[postgresql\]", COMBINATION),
    Rule(r"test_csv_run\.py::test_the_users_own_rows.*\[sqlite", COMBINATION),
    Rule(r"test_client_aes_gcm_256\.py::test_it_is_run_end_to_end\[sqlite\]", COMBINATION),
    Rule(r"test_user_server\.py::test_a_run_leaves.*\[postgresql-tpcb\]", COMBINATION),
    Rule(r"test_hospital\.py::test_it_is_run_end_to_end\[mariadb", LONG),
    Rule(r"test_secret_columns\.py::test_cells_that_share_a_run.*\[mariadb\]", LONG),
    Rule(
        r"test_cryfs\.py::test_(without_its_password|each_arm_says|what_is_written)",
        LONG,
        "test_cryfs.py::test_files_that_are_no_blocks_fail_the_disk_witness",
    ),
    Rule(r"test_real\.py::test_a_cell_is_proven.*tls-(cipher|version|workload-(insert|tpcb|bulk-read))", COMBINATION),
    Rule(r"test_real\.py::test_a_cell_is_proven.*sqlcipher-workload-(insert|bulk-read|mixed)", COMBINATION),
    Rule(r"test_real_mysql\.py::test_a_cell_is_proven.*(9\.7-tpcb|11\.8-connect|11\.8-tpcb)\]", COMBINATION),
    Rule(r"test_real_firebird\.py::test_a_cell_is_proven.*\[(bulk-read|tpcb|insert|mixed-crud)\]", COMBINATION),
    Rule(
        r"test_real_key_value\.py::test_a_cell_is_proven.*\[(kv-set-size=10KB|connect)-(valkey|memcached)\]",
        COMBINATION,
    ),
    Rule(r"test_kill\.py::test_a_controller_that_is_killed.*(as soon|once it is proven)", COMBINATION),
    Rule(
        r"test_kill\.py::test_a_run_whose_supervisor.*\[(nginx|sqlite|firebird).*(at its start|once it is)", COMBINATION
    ),
    Rule(r"test_kill\.py::test_a_run_whose_supervisor.*\[postgresql.*once it is", COMBINATION),
    # ── a user's server: PostgreSQL has every case, the others only what differs ──
    Rule(r"test_user_server\.py::test_a_run_leaves.*\[(mysql|mariadb|firebird)-(csv|tpcb)\]", COMBINATION),
    Rule(r"test_user_server\.py::test_plain_against_plain.*\[(mysql|mariadb|firebird)\]", COMBINATION),
    Rule(r"test_user_server\.py::test_a_run_that_fails_while.*\[(mysql|mariadb|firebird)\]", COMBINATION),
    Rule(r"test_user_server\.py::test_a_run_that_is_told_to_end.*\[(mysql|mariadb|firebird)-", COMBINATION),
    Rule(r"test_user_server\.py::test_a_run_that_is_told_to_end.*\[postgresql-(1-|2-while|15-in)", COMBINATION),
    Rule(
        r"test_user_server\.py::test_a_server_that_can_not_be_reached.*\[(mysql|mariadb|firebird)-(calibrate|clean)",
        COMBINATION,
    ),
    Rule(
        r"test_user_server\.py::test_a_server_that_can_not_be_reached.*\[(mysql|mariadb|firebird)-.*-host\]",
        COMBINATION,
    ),
    Rule(r"test_user_server\.py::test_where_the_servers_processes.*\[(mysql|mariadb|firebird)\]", COMBINATION),
    Rule(r"test_grants\.py::test_exactly.*-mixed-crud\]", COMBINATION),
    Rule(r"test_grants\.py::test_in_columns.*\[(mysql|mariadb|firebird)\]", COMBINATION),
    Rule(
        r"test_man_in_the_middle\.py::test_an_attack.*\[(?!(" + "|".join(map(re.escape, MIDDLE)) + r")\])", COMBINATION
    ),
    Rule(r"test_man_in_the_middle\.py::test_without_an_attack.*\[none-(?!postgresql-rust-prove\])", COMBINATION),
    Rule(
        r"test_man_in_the_middle\.py::test_(no_later|the_verdict|a_run_warns|an_unchecked).*\[(mysql|mariadb)\]",
        COMBINATION,
    ),
    Rule(r"test_man_in_the_middle\.py::test_a_failed_encryption.*(stripped|closed|\[tls none)", COMBINATION),
    Rule(r"test_deadlines\.py::test_the_command_ends.*\[prove-(mysql|firebird|web|postgresql, TLS)", COMBINATION),
    Rule(r"test_deadlines\.py::test_the_command_ends.*\[run-.*(TLS|greeting)\]", COMBINATION),
    Rule(
        r"test_secrets\.py::test_a_password_is_nowhere\[(postgresql-jdbc|mysql-jdbc|firebird-jdbc|mariadb-rust)\]",
        COMBINATION,
    ),
    Rule(r"test_history\.py::test_a_step_of_three.*\[(10|4|2)-20\]", REPETITION),
    Rule(r"test_history\.py::test_at_most_five.*(wild runs|different widths)-400\]", REPETITION),
    Rule(r"test_trend\.py::test_the_page_fits.*\[1440-dark-", COMBINATION),
    Rule(r"test_user_server\.py::test_a_run_leaves.*\[mariadb-point-select\]", COMBINATION),
    Rule(
        r"test_real\.py::test_a_printed_spec_is_a_file_that_can_be_run",
        LONG,
        "test_specs.py::test_a_printed_spec_reads_back_as_itself",
    ),
    Rule(
        r"test_usage\.py::test_a_target_a_list_and_a_cell_run_as_a_spec_does",
        LONG,
        "test_python_api.py::test_run_takes_one_target_with_options_of_the_run_and_of_the_cell",
    ),
    Rule(r"test_study_pages\.py::test_a_study_page.*\[(375-dark|1440-light)-", COMBINATION),
    Rule(r"test_real\.py::test_a_cell_is_proven.*(mixed-crud-per-request|sqlcipher-workload-tpcb)", COMBINATION),
    Rule(r"test_real_mysql\.py::test_a_cell_is_proven.*\[mysql@9\.7-connect\]", COMBINATION),
    Rule(r"test_real_mysql\.py::test_a_(url_of|wrong_password).*\[mysql@", COMBINATION),
    Rule(r"test_real_web\.py::test_handshakes.*\[(apache|nginx)-off\]", COMBINATION),
    Rule(r"test_innodb_tde\.py::test_temporary_data.*\[encrypted\]", COMBINATION),
    Rule(r"test_progress\.py::test_plain_output.*dumb", COMBINATION),
    Rule(r"test_owndata\.py::test_(any_table|a_table_as_wide).*\[mysql\]", COMBINATION),
    Rule(r"test_launch\.py::test_another_server_of_the_same_kind.*\[mysql\]", COMBINATION),
    Rule(r"test_real_mysql\.py::test_(a_running_server|prove_says_yes).*\[mysql@", COMBINATION),
    Rule(r"test_import_real\.py::test_mysqlslap.*\[mysql\]", COMBINATION),
    Rule(r"test_html\.py::test_axe_finds_no_serious_violation.*-grid\]", COMBINATION),
    Rule(r"test_book\.py::test_every_page_is_accessible.*(390-dark|1440-light)", COMBINATION),
    Rule(r"test_pages\.py::test_axe_finds_no_serious.*\[(1300-dark|390-light)\]", COMBINATION),
    Rule(
        r"test_packages\.py::test_postgresql_comes_from_debian_and_runs_in_place",
        COMBINATION,
        "test_packages.py::test_postgresql_comes_from_the_systems_own_release_and_runs_in_place_with_its_own_libraries",
    ),
    Rule(
        r"test_innodb_tde\.py::test_with_logs_off",
        LONG,
        "test_innodb_tde.py::test_each_arm_is_what_its_name_says_and_not_what_the_others_says",
    ),
    Rule(r"test_passwords\.py::test_(without|on)_a_terminal.*\[mysql\]", COMBINATION),
    Rule(r"test_import_real\.py::test_sar_in_every_language.*\[(C|pt_BR)\]", COMBINATION),
    # ── where one or two servers have every case, and the others the whole suite ──
    Rule(r"test_user_server\.py::test_a_run_that_is_killed_with.*\[(mysql|mariadb)\]", COMBINATION),
    Rule(
        r"test_user_server\.py::test_(clean_asks|a_schema_that|a_run_of_(an|this)).*\[(.*-)?(mysql|mariadb)",
        COMBINATION,
    ),
    Rule(r"test_user_server\.py::test_a_schema_(without|that_is).*\[(mysql|mariadb)", COMBINATION),
    Rule(r"test_user_server\.py::test_a_server_that_can_not.*\[(mysql|mariadb|firebird)-", COMBINATION),
    Rule(
        r"test_user_server\.py::test_a_server_that_can_not.*\[postgresql-(calibrate|clean)-(port|password)", COMBINATION
    ),
    Rule(
        r"test_server_limits\.py::test_(no_phase|the_server_sees)",
        LONG,
        "test_server_limits.py::test_a_slow_answer_stops_the_load_and_the_other_cells_of_that_server",
    ),
    Rule(
        r"test_study_postgres_tde\.py::test_a_run_that_pgbench_gives_up",
        STUDY,
        "test_study_postgres_tde.py::test_a_small_run_is_made_recorded_and_reported_again",
    ),
    Rule(
        r"test_jdbc\.py::test_which_statements_differ",
        LONG,
        "test_jdbc.py::test_a_matrix_of_drivers_goes_on_where_one_can_not_connect",
    ),
    Rule(r"test_jdbc\.py::test_what_other_servers_count\[firebird", COMBINATION),
    Rule(r"test_jdbc\.py::test_a_drivers_connection_is_proven\[mysql", COMBINATION),
    Rule(r"test_in_columns\.py::test_(sealed_values|every_row).*\[mariadb", COMBINATION),
    Rule(r"test_workloads\.py::test_a_workload_runs.*(mysql@9\.7|mariadb@11\.8)-tpcb", COMBINATION),
    Rule(r"test_owndata\.py::test_(any_table|a_table_as_wide).*\[(mariadb|sqlite)\]", COMBINATION),
    Rule(r"test_web\.py::test_the_log_states.*rsa(2048|4096)\]", COMBINATION),
    Rule(r"test_web\.py::test_a_thousand_connections.*apache@2\.4-encrypted", COMBINATION),
    Rule(r"test_web\.py::test_the_log_has_the_share.*apache.*-2\]", COMBINATION),
    Rule(r"test_hospital\.py::test_(each_operation|a_load_gives).*\[(mysql|mariadb)", COMBINATION),
    Rule(r"test_hospital_app\.py::test_the_servers_own.*mariadb", COMBINATION),
    Rule(r"test_supervisor\.py::test_a_controller_killed_at_any_moment.*-30\]", REPETITION),
    Rule(r"test_kill\.py::test_a_controller.*(postgresql:tls-in the middle|sqlite:sqlcipher-while data)", COMBINATION),
    Rule(
        r"test_kill\.py::test_a_run_whose_supervisor.*(postgresql:tls|firebird:wire-crypt)-in the middle", COMBINATION
    ),
    Rule(r"test_passwords\.py::test_a_server_without_encryption.*\[(mysql|mariadb)\]", COMBINATION),
    Rule(r"test_passwords\.py::test_(without|on)_a_terminal.*\[mariadb\]", COMBINATION),
    Rule(r"test_client_aes_gcm_256\.py::test_literals_are_sealed.*\[(mysql|firebird)\]", COMBINATION),
    Rule(r"test_agent_sealing\.py::test_values_are_sealed.*\[(mysql|firebird)\]", COMBINATION),
    Rule(r"test_volumes\.py::test_a_full_disk_is_a_clear_error.*\[load\]", COMBINATION),
    Rule(r"test_impostor\.py::test_a_real_server_on_another_machine.*\[mysql\]", COMBINATION),
    Rule(r"test_estimator\.py::test_a_hundred_thousand_slices.*\[quick\]", COMBINATION),
    Rule(r"test_grants\.py::.*\[mariadb", COMBINATION),
    Rule(r"test_mysql_traps\.py::test_a_server_that_offers.*\[mariadb", COMBINATION),
    Rule(r"test_mysql_traps\.py::test_(a_client_that_prefers|once_proven).*\[mysql", COMBINATION),
    Rule(r"test_experiment\.py::test_the_cost_difference.*\[full\]", COMBINATION),
    Rule(r"test_totals\.py::test_equal_arms_disagree.*(drift|step|spikes|correlated|periodic)-8\]", REPETITION),
    Rule(r"test_html\.py::test_axe.*\[dark-(quick|nothing)", COMBINATION),
    Rule(r"test_study_pages\.py::test_a_study_page.*\[(1440-dark-column|375-light-web)", COMBINATION),
    Rule(r"test_pages\.py::test_axe.*\[390-dark\]", COMBINATION),
    Rule(r"test_book\.py::test_every_page_is_accessible.*1440-dark", COMBINATION),
    Rule(r"test_trend\.py::test_the_page_fits.*(a factor|other machine|too few)", COMBINATION),
    Rule(r"test_launch\.py::test_another_server_of_the_same_kind.*\[mariadb\]", COMBINATION),
    Rule(r"test_tls_names\.py::test_servers_agree_on_cbc.*\[mariadb\]", COMBINATION),
    Rule(r"test_mysql\.py::test_(a_server_runs_unprivileged|an_unavailable_version).*\[mariadb@", COMBINATION),
    Rule(r"test_web_bad_input\.py::test_failures_under_load.*status-503", COMBINATION),
    Rule(r"test_real_key_value\.py::test_a_cell_is_proven.*\[connect-resumption=on-valkey", COMBINATION),
    Rule(r"test_real_mysql\.py::test_prove_says_that.*\[mysql@", COMBINATION),
    Rule(r"test_resume\.py::test_a_run_killed_anywhere.*\[cells6-", COMBINATION),
    Rule(r"test_usage\.py::test_a_plot_of_one_cell.*\[svg\]", COMBINATION),
    Rule(
        r"test_packages\.py::test_postgresql_comes_from_maven",
        COMBINATION,
        "test_packages.py::test_postgresql_comes_from_the_systems_own_release_and_runs_in_place_with_its_own_libraries",
    ),
    Rule(r"test_power_cut\.py::.*(load is running|it has made a directory)", REPETITION),
    Rule(
        r"test_secrets\.py::test_a_key_is_nowhere",
        LONG,
        "test_secrets.py::test_a_password_is_nowhere",
    ),
    Rule(
        r"test_book_runs\.py::test_a_family_that_fails",
        LONG,
        "test_book_runs.py::test_unknown_families_are_named",
    ),
    Rule(
        r"test_record_is_enough\.py::test_what_tls_should_cost",
        LONG,
        "test_record_is_enough.py::test_a_run_reads_as_before_when_its_engine_and_mechanism_are_gone",
    ),
    Rule(
        r"test_real_conditions\.py::test_every_server_is_reached",
        COMBINATION,
        "test_real_conditions.py::test_a_cell_over_a_slow_link_says_what_its_bytes_predict",
    ),
    Rule(
        r"test_resume\.py::test_it_can_be_killed_repeatedly",
        REPETITION,
        "test_resume.py::test_a_run_killed_anywhere_and_resumed_is_the_run_that_was_not_killed",
    ),
    Rule(r"test_real_web\.py::test_handshakes.*apache-cache", COMBINATION),
    Rule(r"test_real\.py::test_a_cell_is_proven.*(postgresql:none-default|tls-workload-connect)", COMBINATION),
    Rule(r"test_grants\.py::test_exactly.*\[mysql", COMBINATION),
    Rule(r"test_volumes\.py::test_a_full_disk_is_a_clear_error.*\[session\]", COMBINATION),
    Rule(r"test_agent_java\.py::test_both_agents_run.*\[1\]", REPETITION),
]

_ONCE = [re.compile(rule.tests) for rule in RULES]


def name_of(nodeid: str) -> str:
    """`tests/runs/test_kill.py::test_x[a]` -> `test_kill.py::test_x[a]`. Pure."""
    path, _, rest = nodeid.partition("::")
    return f"{path.rpartition('/')[2]}::{rest}"


def rule_of(name: str) -> Rule | None:
    """The rule that makes a test exhaustive; None if there is none. Pure."""
    return next((rule for rule, each in zip(RULES, _ONCE, strict=True) if each.search(name)), None)
