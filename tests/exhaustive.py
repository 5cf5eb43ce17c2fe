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
    instead: str
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
    "another authority-mariadb-rust-clean",
    "stripped-postgresql-rust-calibrate",
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

LOGINS = "|".join(
    map(
        re.escape,
        (
            "postgresql-jdbc-sslmode=require,channelBinding=require",
            "postgresql-jdbc-sslmode=require,channelBinding=prefer",
            "postgresql-rust-require,channel-binding=require",
            "mariadb-jdbc:4.0",
            "mariadb-rust-verify-full",
        ),
    )
)
"""Clients that meet a man in the middle who goes on to the login: on each server one that refuses him, and one that does not."""


def rules(why: str, *tests: str, instead: str = "") -> list[Rule]:
    """A rule for each of `tests`, written as `test_file::test_name`."""
    return [Rule(each.replace("::", r"\.py::"), why, instead.replace("::", ".py::")) for each in tests]


RULES = [
    # ── whole tests, each with a quick one that covers the same ──
    *rules(
        VENDOR,
        r"test_pg_tde::test_(a_real_pair|a_log_that_was|a_server_that_takes|every_key_of_a_real)",
        instead="test_pg_tde::test_a_stock_server_is_refused_with_clear_words",
    ),
    *rules(
        VENDOR,
        r"test_cybertec_tde::test_(a_real_pair|a_cluster_that_was_made_in_clear)",
        instead="test_cybertec_tde::test_a_stock_server_is_refused_with_clear_words",
    ),
    *rules(
        VENDOR,
        r"test_edb_tde::test_a_real_pair",
        instead="test_edb_tde::test_a_stock_server_is_refused_with_clear_words",
    ),
    *rules(
        LONG,
        r"test_fuzz::test_some_seconds",
        instead="test_fuzz::test_seeds_and_corpus_are_answered",
    ),
    *rules(LONG, r"test_recipes::test_it_runs_as_it_is_written\[(?!mosquitto)"),
    *rules(
        LONG,
        r"test_ray_tasks::test_",
        instead="test_spread::test_the_variance_between_machines_shows_the_slowed_one",
    ),
    *rules(
        COMBINATION,
        r"test_dead_server::test_a_killed_server_is_named\[(nginx:tls-nginx--1|apache:tls-apache2-0|caddy|mariadb|valkey|postgresql)",
    ),
    *rules(REPETITION, r"test_book_runs::test_the_books_own_runs_may_enter_it\[(?!40-controls|50-postgres-tde)"),
    *rules(
        STUDY,
        r"test_study_jdbc_tls::test_a_small_replication_on_a_real_server",
        r"test_replicate::test_a_small_replication",
        r"test_study_web_tls::test_a_small_replication",
        r"test_study_(valkey_tls|valkey_storm|pg_tde_small_cost|mysql_openssl|pq_tls|cybertec_tde_cost|fips_haproxy|direct_tls|driver_tls|turso_encryption|volume_encryption|odyssey_large_value)::test_a_small_replication",
        r"test_study_odyssey_large_value::test_a_psql_that_reaches_no_server",
        r"test_study_postgres_tde::test_a_sweep_over_two_servers",
        r"test_study_postgres_tde::test_a_run_that_pgbench_gives_up",
        r"test_study_column_functions::test_a_very_small_replication",
        instead="test_study_postgres_tde::test_a_small_run_is_made_recorded_and_reported_again",
    ),
    *rules(
        STUDY,
        r"test_study_column_functions::test_without_aes_instructions_the_agent",
        instead="test_study_column_functions::test_a_mask_that_hides_nothing_is_detected_before_anything_is_timed",
    ),
    *rules(
        STUDY,
        r"test_study_column_functions::test_a_missing_server_is_named",
        r"test_replicate_all::test_a_study_that_fails_stops_no_other",
        instead="test_replicate_all::test_by_the_command_line_every_study_has_its_reason_and_the_status_is_one",
    ),
    *rules(
        STUDY,
        r"test_jdbc_tls_wire::test_mysql_has_the_same_packets",
        instead="test_jdbc_tls_wire::test_packets_have_the_published_sizes",
    ),
    *rules(
        LONG,
        r"test_jdbc_drivers::test_jars_come_in_their_order",
        instead="test_jdbc_drivers::test_every_version_is_pinned_once",
    ),
    *rules(
        LONG,
        r"test_gocryptfs::test_each_arm_says_what_it_lies_on",
        instead="test_gocryptfs::test_a_mount_that_is_otherwise_than_was_asked_for_fails_the_server_witness",
    ),
    *rules(
        COMBINATION,
        r"test_site::test_every_page_is_accessible",
        instead="test_site::test_one_page_of_each_kind_is_accessible_and_fits",
    ),
    *rules(
        LONG,
        r"test_site::test_every_command_on_a_page_runs",
        instead="test_site::test_every_command_on_a_page_is_accepted",
    ),
    *rules(
        COMBINATION,
        r"test_mariadb_tde::test_temporary_data",
        instead="test_innodb_tde::test_temporary_data_is_readable_in_both_arms_and_has_advice",
    ),
    *rules(
        COMBINATION,
        r"test_real_web::test_a_matrix_of_sizes",
        instead="test_real_web::test_a_file_with_what_sendfile_is_worth_beside_it",
    ),
    *rules(
        LONG,
        r"test_real_http3::test_http3_is_measured_beside_http2",
        instead="test_http3::test_the_log_states_what_the_client_negotiated",
    ),
    *rules(
        LONG,
        r"test_innodb_tde::test_logs_that_were_left_in_clear",
        r"test_innodb_tde::test_a_new_master_key",
        r"test_innodb_tde::test_with_logs_off",
        instead="test_innodb_tde::test_each_arm_is_what_its_name_says_and_not_what_the_others_says",
    ),
    *rules(
        LONG,
        r"test_jdbc::test_every_sessions_machine_is_warm",
        r"test_jdbc::test_which_statements_differ",
        instead="test_jdbc::test_a_matrix_of_drivers_goes_on_where_one_can_not_connect",
    ),
    *rules(
        LONG,
        r"test_limit::test_a_slow_link_is_found_to_be_the_limit",
        instead="test_limit::test_the_limit_is_named",
    ),
    *rules(
        REPETITION,
        r"test_objective_coverage::",
        instead="test_objective_search::test_it_finds_both_capacities_whatever_they_are",
    ),
    *rules(
        LONG,
        r"test_cluster::test_a_cluster_that_wants_a_token_is_used_with_it_alone",
        instead="test_cluster_guarded::test_a_public_cluster_without_a_token_is_refused",
    ),
    *rules(
        LONG,
        r"test_faulty_arm::test_an_encrypted_arm_that_stalls_gets_no_cost_in_rate",
        instead="test_objective_runs::test_stalls_of_the_encrypted_arm_alone_leave_no_cost_in_rate",
    ),
    *rules(
        LONG,
        r"test_objective_runs::test_on_other_queues_both_capacities_are_those_of_theory",
        instead="test_objective_runs::test_on_m_m_1_both_capacities_are_those_of_theory",
    ),
    *rules(
        LONG,
        r"test_client_certificates::test_a_run_compares_them",
        r"test_client_certificates::test_its_cost_has_an_interval",
        instead="test_client_certificates::test_a_client_certificate_is_required_and_verified",
    ),
    *rules(
        COMBINATION,
        r"test_client_certificates::test_every_server_requires_it\[(mysql|redis|memcached|mariadb-jdbc|mysql-jdbc)",
        r"test_own_certificates::test_a_client_is_let_in_by_its_certificate\[(mysql|mariadb-(one|pem|pkcs12))",
        r"test_own_certificates::test_(what_is_wrong_with_a_certificate_is_one_line|a_jdbc_driver_presents_the_certificate)\[mysql",
        r"test_certificate_in_the_middle::test_he_learns_nothing_of_a_login\[mariadb-(?!none\]|expired\])",
        r"test_certificate_in_the_middle::test_he_learns_nothing_of_a_login\[postgresql-(?!stripped\]|injected beside the answer\])",
    ),
    *rules(
        LONG,
        r"test_comparison::test_tls_of_2008_and_of_today_differ",
        instead="test_comparison::test_runs_through_the_command",
    ),
    *rules(
        COMBINATION,
        r"test_import_real::test_(a_log_of_intervals|sysbench_at_a_given_rate)",
        instead="test_import_real::test_pgbench_with_progress_and_a_log_is_one_run_with_all_that_both_say",
    ),
    *rules(
        COMBINATION,
        r"test_real_web::test_(the_cpus_instructions_can_be_taken_away|a_longer_way_for_both_arms)",
        r"test_aes_mask::test_the_mask_reaches_the_functions",
        instead="test_aes_mask::test_with_the_mask_a_cell_is_proven",
    ),
    *rules(
        LONG,
        r"test_real_h2::test_a_cell_is_proven.*\[(?!tls-point-select)",
        r"test_h2::test_no_connection_resumes.*\[1\.2\]",
        r"test_key_value_at_rest::test_(a_setting_reaches|prove_tells)",
        instead="test_key_value_at_rest::test_a_cell_is_proven_by_its_files_and_measured",
    ),
    *rules(
        LONG,
        r"test_cryfs::test_(without_its_password|each_arm_says|what_is_written)",
        instead="test_cryfs::test_files_that_are_no_blocks_fail_the_disk_witness",
    ),
    *rules(
        LONG,
        r"test_real::test_a_printed_spec_is_a_file_that_can_be_run",
        instead="test_specs::test_a_printed_spec_reads_back_as_itself",
    ),
    *rules(
        LONG,
        r"test_usage::test_a_target_a_list_and_a_cell_run_as_a_spec_does",
        instead="test_python_api::test_run_takes_one_target_with_options_of_the_run_and_of_the_cell",
    ),
    *rules(
        COMBINATION,
        r"test_packages::test_postgresql_comes_from_debian_and_runs_in_place",
        r"test_packages::test_postgresql_comes_from_maven",
        r"test_packages::test_postgresql_comes_from_the_systems_own_release",
        instead="test_packages::test_a_debian_suite_is_fetched_without_mmdebstrap_and_runs_in_place",
    ),
    *rules(
        LONG,
        r"test_server_limits::test_(no_phase|the_server_sees)",
        instead="test_server_limits::test_a_slow_answer_stops_the_load_and_the_other_cells_of_that_server",
    ),
    *rules(
        LONG,
        r"test_secrets::test_a_key_is_nowhere",
        instead="test_secrets::test_a_password_is_nowhere",
    ),
    *rules(
        LONG,
        r"test_book_runs::test_a_family_that_fails",
        instead="test_book_runs::test_unknown_families_are_named",
    ),
    *rules(
        LONG,
        r"test_record_is_enough::test_what_tls_should_cost",
        instead="test_record_is_enough::test_a_run_reads_as_before_when_its_engine_and_mechanism_are_gone",
    ),
    *rules(
        COMBINATION,
        r"test_real_conditions::test_every_server_is_reached",
        instead="test_real_conditions::test_a_cell_over_a_slow_link_says_what_its_bytes_predict",
    ),
    *rules(COMBINATION, r"test_server_counters::test_.*\[(mariadb|redis)\]"),
    *rules(LONG, r"test_real_replication::test_every_figure_is_there_and_both_links_are_proven\[mysql\]"),
    *rules(REPETITION, r"test_profile::test_intervals_cover_the_truth\[full"),
    *rules(
        REPETITION,
        r"test_resume::test_it_can_be_killed_repeatedly",
        instead="test_resume::test_a_run_killed_anywhere_and_resumed_is_the_run_that_was_not_killed",
    ),
    *rules(
        LONG,
        r"test_resume::test_proofs_of_whole_sessions",
        instead="test_resume::test_a_run_killed_anywhere_and_resumed_is_the_run_that_was_not_killed",
    ),
    *rules(
        LONG,
        r"test_cluster::test_(an_open_loop|a_cluster_is_reached|agents_near_the_server|the_servers_cpu|a_node_with_another_ciphercost)",
        instead="test_cluster::test_all_nodes_make_the_load_of_one_server_and_every_session_is_proven",
    ),
    *rules(
        LONG,
        r"test_cluster_addresses::test_|test_cluster::test_(an_agents_process_that_freezes|with_fewer_than_min_agents|a_node_that_is_killed)",
        instead="test_fleet::test_a_member_that_froze_is_lost",
    ),
    *rules(
        LONG,
        r"test_csv_run::test_a_spec_file_names_a_csv_file",
        instead="test_csv_run::test_the_users_own_rows_are_measured",
    ),
    *rules(
        COMBINATION,
        r"test_real_conditions::test_a_server_of_the_users_can_be_delayed",
        instead="test_real_conditions::test_a_delayed_cell_says_what_its_round_trips_predict",
    ),
    *rules(
        COMBINATION,
        r"test_real_listen::test_(it_can_be_delayed|a_jdbc_driver)",
        instead="test_real_listen::test_a_run_on_another_address_of_loopback_is_proven",
    ),
    *rules(
        COMBINATION,
        r"test_import_real::test_a_log_of_a_run_at_a_given_rate",
        instead="test_import_real::test_pgbench_with_progress_and_a_log_is_one_run_with_all_that_both_say",
    ),
    # ── cases of tests of which others are quick ──
    *rules(
        OLD_SERVER,
        r"\[(.*-)?(postgresql@15|postgresql@17|mariadb@10\.11|nginx@1\.22)\b",
        r"test_import_real::.*\[15\]",
        r"test_mariadb_tde::.*\[10\.11\b",
    ),
    *rules(
        OLD_DRIVER,
        r"test_impostor::test_(jdbc_keeps|no_driver).*\[\w+ Connector/J (5|8|2|9|3)\.",
        r"test_agent_java::test_a_password_stands_in_no_error\[(5\.1\.6|2\.7\.15)\]",
    ),
    *rules(
        REPETITION,
        r"test_agent_java::test_both_agents_run.*\[1\]",
        r"test_faults::test_a_fault_loses.*\[(?!postgresql:tls-server killed\])",
        r"test_history::test_at_most_five_per_cent.*(-4000|(40 runs|wild runs|different widths)-400)\]",
        r"test_history::test_a_step_of_three.*\[(10|4|2)-20\]",
        r"test_machines_coverage::.*-30\]",
        r"test_machines_coverage::test_the_interval.*\[(correlated|spikes|periodic)-8\]",
        r"test_method_coverage::test_few_blocks_cover.*-(12|16|24|30)\]",
        r"test_method_coverage::test_the_quick_interval_covers.*-200\]",
        r"test_method_coverage::test_a_quick_run_that_stops.*\[(drift|correlated|spikes)\]",
        r"test_method_power::test_the_carry_over_test_fires.*\[(0\.3|0\.5|1\.0)\]",
        r"test_power_cut::.*(load is running|it has made a directory)",
        r"test_schedule::test_steady_noise_is_rarely_taken.*\[0\.3-",
        r"test_supervisor::test_a_controller_killed_at_any_moment.*-30\]",
        r"test_totals::test_equal_arms_disagree.*(drift|step|spikes|correlated|periodic)-8\]",
    ),
    *rules(
        STUDY,
        r"test_study_postgres_tde::test_a_small_run_is_made.*\[fscrypt\]",
    ),
    *rules(
        LONG,
        r"test_cluster::test_a_controller_that_ends.*\[SIGINT",
        r"test_behind_our_back::.*\[(?!a plaintext file)",
        r"test_hospital::test_it_is_run_end_to_end\[mariadb",
        r"test_secret_columns::test_cells_that_share_a_run.*\[mariadb\]",
    ),
    # One server has every case, and the others what differs.
    *rules(
        COMBINATION,
        r"test_agent_firebird::test_an_error_has_its_sqlstate.*16 MiB",
        r"test_agent_sealing::test_values_are_sealed.*\[(mysql|firebird)\]",
        r"test_book::test_every_page_is_accessible.*(390-dark|1440)",
        r"test_client_aes_gcm_256::test_it_is_run_end_to_end\[sqlite\]",
        r"test_client_aes_gcm_256::test_(every_value|the_check_compares).*\[mysql\]",
        r"test_client_aes_gcm_256::test_literals_are_sealed.*\[(mysql|firebird)\]",
        r"test_csv_run::test_the_users_own_rows.*\[(sqlite|duckdb)",
        r"test_deadlines::test_the_command_ends.*\[prove-(mysql|firebird|web|postgresql, TLS)",
        r"test_dump_runs::test_the_users_database.*\[(postgresql:tls|mysql|firebird)",
        r"test_deadlines::test_the_command_ends.*\[run-.*(TLS|greeting)\]",
        r"test_estimator::test_a_hundred_thousand_slices.*\[quick\]",
        r"test_grants::.*\[mariadb",
        r"test_grants::test_exactly.*(-mixed-crud\]|\[mysql)",
        r"test_grants::test_in_columns.*\[(mysql|firebird)\]",
        r"test_hospital::test_(each_operation|a_load_gives).*\[(mysql|mariadb)",
        r"test_hospital_app::test_the_servers_own.*mariadb",
        r"test_html::test_axe.*(-grid\]|\[dark-(quick|nothing))",
        r"test_import_real::test_mysqlslap.*\[mysql\]",
        r"test_import_real::test_sar_in_every_language.*\[(C|pt_BR)\]",
        r"test_impostor::test_a_real_server_on_another_machine.*\[mysql\]",
        r"test_in_columns::test_(sealed_values|every_row).*\[mariadb",
        r"test_in_columns::test_(sealed_values|every_row).*\[firebird",
        r"test_innodb_tde::test_temporary_data.*\[encrypted\]",
        r"test_jdbc::test_a_drivers_connection_is_proven\[mysql",
        r"test_jdbc::test_what_other_servers_count\[firebird",
        r"test_kill::test_a_controller.*(as soon|once it is proven|postgresql:tls-in the middle|sqlite:sqlcipher-while data)",
        r"test_kill::test_a_run_whose_supervisor.*\[(nginx|sqlite|firebird).*(at its start|once it is)",
        r"test_kill::test_a_run_whose_supervisor.*\[(postgresql.*(once it is|in the middle)|firebird.*in the middle)",
        r"test_launch::test_another_server_of_the_same_kind.*\[(mysql|mariadb)\]",
        r"test_listen::test_it_is_reached_over_tls.*\[(?!(postgresql|mysql)\])",
        r"test_man_in_the_middle::test_a_failed_encryption.*(stripped|closed|\[tls none)",
        rf"test_man_in_the_login::.*\[(?!({LOGINS})\])",
        r"test_man_in_the_middle::test_an_attack.*\[(?!(" + "|".join(map(re.escape, MIDDLE)) + r")\])",
        r"test_man_in_the_middle::test_without_an_attack.*\[none-(?!postgresql-rust-prove\])",
        r"test_man_in_the_middle::test_(no_later|the_verdict|a_run_warns|an_unchecked).*\[(mysql|mariadb)\]",
        r"test_mysql::test_(a_server_runs_unprivileged|an_unavailable_version).*\[mariadb@",
        r"test_mysql::test_one_server_offers.*-rsa4096\]",
        r"test_mysql_traps::.*\[mariadb",
        r"test_own_keys::.*\[redis\]",
        r"test_own_statements::test_own_tables_are_measured.*\[((mysql|mariadb|firebird)-|postgresql-jdbc)",
        r"test_own_statements::.*\[mariadb",
        r"test_own_statements::.*\[(mysql|firebird)-jdbc",
        r"test_own_statements::test_(connecting|a_table_that_may).*\[(mysql|firebird)\]",
        r"test_owndata::test_(any_table|a_table_as_wide).*\[(mysql|mariadb|sqlite)\]",
        r"test_pages::test_axe.*\[(1300-dark|390)",
        r"test_passwords::test_a_server_without_encryption.*\[(mysql|mariadb)\]",
        r"test_passwords::test_(without|on)_a_terminal.*\[(mysql|mariadb)\]",
        r"test_progress::test_on_a_terminal_it_is_live.*\[\[\((40, 10|80, 24)",
        r"test_progress::test_plain_output.*dumb",
        r"test_real::test_a_cell_is_proven.*duckdb:encrypted-workload-(scan|insert|bulk-load)",
        r"test_real::test_a_cell_is_proven.*sqlcipher-workload-(insert|bulk-read|mixed|tpcb)",
        r"test_real::test_a_cell_is_proven.*tls-(cipher|version|workload-(insert|tpcb|bulk-read|connect))",
        r"test_real::test_a_cell_is_proven.*(mixed-crud-per-request|postgresql:none-default)",
        r"test_real_firebird::test_a_cell_is_proven.*\[(bulk-read|tpcb|insert|mixed-crud)\]",
        r"test_key_value_at_rest::test_a_cell_is_proven.*\[(?!valkey:fscrypt)",
        r"test_real_key_value::test_a_cell_is_proven.*\[(kv-set-size=10KB|connect(-resumption=on)?)-",
        r"test_real_listen::test_a_run_on_an_address_of_a_network.*\[(?!valkey)",
        r"test_real_mysql::test_a_cell_is_proven.*-(connect|tpcb)\]",
        r"test_real_mysql::test_(a_url_of|a_wrong_password|a_running_server|prove_says).*\[mysql@",
        r"test_real_rotation::test_every_rotation.*\[mysql",
        r"test_real_web::test_handshakes.*\[(.*-off|apache-cache.*|caddy.*|haproxy.*)\]",
        r"test_resume::test_a_run_killed_anywhere.*\[cells[1456]-",
        r"test_secret_rows::.*\[(mysql|mariadb|postgresql@15)",
        r"test_secret_rows::test_every_operation.*\[firebird",
        r"test_secrets::test_a_password_is_nowhere\[((postgresql|mysql|firebird)-jdbc|mariadb-rust)\]",
        r"test_server_limits::test_a_slow.*\[(mysql|mariadb|firebird)\]",
        r"test_study_pages::test_a_study_page.*\[(1440-light|375-dark|375-light-web|1440-dark-(jdbc|mysql|postgres|web|column|pq|pg|valkey|cybertec))",
        r"test_tls_names::test_servers_agree_on_cbc.*\[mariadb\]",
        r"test_trend::test_the_page_fits.*(\[1440-dark-|a factor|other machine|too few)",
        r"test_usage::test_a_plot_of_one_cell.*\[svg\]",
        r"test_user_server::.*\[(.*-)?(mysql|mariadb)\b",
        r"test_user_server::test_a_run_leaves.*\[(postgresql-tpcb|firebird-)",
        r"test_user_server::test_a_run_that_is_killed_with.*\[firebird\]",
        r"test_user_server::test_a_run_that_is_told_to_end.*\[(firebird-|postgresql-(1-|2-while|15-in))",
        r"test_user_server::test_a_server_that_can_not.*\[(firebird-|postgresql-(calibrate|clean)-(port|password))",
        r"test_user_server::test_(plain_against|a_run_that_fails_while|where_the_servers).*\[firebird\]",
        r"test_volumes::test_a_full_disk_is_a_clear_error.*\[(load|session)\]",
        r"test_web::test_a_thousand_connections.*apache@2\.4-encrypted",
        r"test_web::test_the_log_has_the_share.*apache.*-2\]",
        r"test_web::test_(a_thousand|bodies_of|the_log_states|it_is_gone_when|an_unknown).*\[(caddy|haproxy)",
        r"test_web::test_the_log_states.*-rsa(1280|1536|2048|3072|4096)\]",
        r"test_web_bad_input::test_failures_under_load.*status-503",
        r"test_workloads::test_a_workload_runs.*(mysql@9\.7|mariadb@11\.8)-(tpcb|bulk-load)",
    ),
]

_ONCE = [re.compile(rule.tests) for rule in RULES]


def name_of(nodeid: str) -> str:
    """`tests/runs/test_kill.py::test_x[a]` -> `test_kill.py::test_x[a]`. Pure."""
    path, _, rest = nodeid.partition("::")
    return f"{path.rpartition('/')[2]}::{rest}"


def rule_of(name: str) -> Rule | None:
    """The rule that makes a test exhaustive; None if there is none. Pure."""
    return next((rule for rule, each in zip(RULES, _ONCE, strict=True) if each.search(name)), None)
