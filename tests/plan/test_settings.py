"""`--setting`: what decides a setting instead, which values are secrets, and what a server says of a wrong one."""

from __future__ import annotations

import re

import pytest

from ciphercost import engines, mechanisms
from ciphercost.engines.capabilities.settings import TakesSettings, blamed, message
from ciphercost.load.redact import holds_secret
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import matrix, specs


def cell(target: str, name: str, value: str) -> CellSpec:
    engine, _, mechanism = target.partition(":")
    return CellSpec(engine, mechanism, workload=engines.get(engine).usual_workload, settings={name: value})


@pytest.mark.parametrize(
    ("target", "setting", "words"),
    [
        ("postgresql:tls", "ssl_min_protocol_version=TLSv1.2", "write --set version=1.2 instead"),
        ("postgresql:tls", "ssl_max_protocol_version=TLSv1", "TLS 1.0 and 1.1 on web servers only"),
        (
            "postgresql:tls",
            "ssl_ciphers=ECDHE-RSA-AES128-GCM-SHA256",
            "--set cipher=aes128-gcm --set version=1.2 instead",
        ),
        ("postgresql:tls", "ssl_ciphers=HIGH:!aNULL", "--set cipher=aes256-gcm|aes128-gcm|chacha20"),
        ("postgresql:tls", "ssl_ecdh_curve=prime256v1", "write --set group=p256 instead"),
        ("postgresql:tls", "ssl_groups=X25519:prime256v1", "write --matrix group=x25519,p256 instead"),
        (
            "postgresql:pg-tde",
            "ssl_tls13_ciphers=TLS_CHACHA20_POLY1305_SHA256",
            "run postgresql:tls --set cipher=chacha20",
        ),
        ("postgresql:tls", "ssl=off", "on in the encrypted arm and off in the plain one; remove it"),
        ("postgresql:tls", "pg_tde.cipher=aes_256", "run postgresql:pg-tde --set cipher=aes_256 instead"),
        ("postgresql:tls", "password_encryption=md5", "by SCRAM in both arms"),
        ("postgresql:tls", "ssl_ca_file=root.crt", "write --set client-cert=on instead"),
        ("mysql:tls", "tls_version=TLSv1.2,TLSv1.3", "write --matrix version=1.2,1.3 instead"),
        (
            "mysql:tls",
            "ssl-cipher=ECDHE-RSA-AES256-GCM-SHA384",
            "write --set cipher=aes256-gcm --set version=1.2 instead",
        ),
        ("mysql:tls", "innodb_redo_log_encrypt=ON", "run mysql:innodb-tde --set logs=on instead"),
        ("mysql:tls", "require_secure_transport=ON", "must accept the plain arm's unencrypted connections"),
        ("mariadb:tls", "ssl_session_cache_mode=OFF", "--set resumption=off instead"),
        ("mariadb:tls", "innodb-encrypt-tables=ON", "run mariadb:mariadb-tde instead"),
        ("mariadb:mariadb-tde", "file_key_management_encryption_algorithm=AES_CTR", "write --set cipher=ctr instead"),
        ("firebird:wire-crypt", "WireCryptPlugin=Arc4", "write --set cipher=arc4 instead"),
        ("firebird:wire-crypt", "WireCrypt=Required", "ciphercost decides it in firebird:wire-crypt"),
        ("valkey:tls", "tls-protocols=TLSv1.3", "write --set version=1.3 instead"),
        ("memcached:tls", "ssl_ciphers=ECDHE-RSA-CHACHA20-POLY1305", "--set cipher=chacha20 --set version=1.2"),
        ("memcached:tls", "ssl_kernel_tls=off", "where it is named"),
        ("nginx:tls", "ssl_protocols=TLSv1.2", "write --set version=1.2 instead"),
        ("nginx:tls", "ssl_session_tickets=on", "write --set resumption=tickets instead"),
        ("nginx:tls", "ssl_verify_client=on", "write --set client-cert=on instead"),
        ("nginx:tls", "ssl_conf_command=Groups X25519", "write --set group=x25519 instead"),
        ("nginx:tls", "http2=off", "--set http=1"),
        ("nginx:tls", "listen=80", "where its server listens"),
        ("nginx:tls", "ssl_certificate=/x", "by the factor certificate of tls"),
        ("nginx:tls", "ssl_buffer_size=4k; load_module x", "no ; { }"),
        ("nginx:no-sendfile", "sendfile=off", "compares its values"),
        ("apache:tls", "SSLProtocol=-all +TLSv1.2", "write --set version=1.2 instead"),
        ("apache:tls", "SSLProtocol=all -TLSv1.1 -TLSv1", "--set version=1.3|1.2|1.1|1.0"),
        ("haproxy:tls", "ssl-default-bind-options=ssl-min-ver TLSv1.2", "write --set version=1.2 instead"),
        ("caddy:tls", 'protocols=["h2"]', "--set http=1"),
        ("sqlite:sqlcipher", "cache_size=9", "no server to take settings"),
        ("duckdb:encrypted", "threads=9", "no server to take settings"),
        ("h2:tls", "a=9", "takes no settings of yours"),
    ],
)
def test_what_a_factor_or_a_mechanism_decides_is_named(target: str, setting: str, words: str) -> None:
    name, _, value = setting.partition("=")
    with pytest.raises(UsageError) as raised:
        specs.check(Spec(cells=[cell(target, name, value)]))
    assert words in str(raised.value)
    assert name in str(raised.value)


@pytest.mark.parametrize(
    ("target", "setting"),
    [
        ("nginx:tls", "ssl_buffer_size=4k"),
        ("nginx:tls", "ssl_session_cache=shared:SSL:10m"),
        ("nginx:tls", "ssl_conf_command=Options KTLS"),
        ("nginx:tls", "keepalive_requests=100"),
        ("nginx:tls", "sendfile=off"),
        ("nginx:tls", "gzip=on"),
        ("nginx:tls", "worker_processes=1"),
        ("apache:tls", "KeepAliveTimeout=5"),
        ("apache:tls", "SSLHonorCipherOrder=on"),
        ("haproxy:tls", "tune.ssl.maxrecord=1400"),
        ("caddy:tls", "read_timeout=10s"),
        ("memcached:tls", "ssl_wbuf_size=8"),
        ("mysql:tls", "default_password_lifetime=90"),
        ("mysql:tls", "key_buffer_size=8M"),
        ("mysql:tls", "max_prepared_stmt_count=9"),
        ("mysql:tls", "validate_password.policy=LOW"),
        ("mariadb:mariadb-tde", "innodb_encryption_rotate_key_age=0"),
        ("postgresql:tls", "scram_iterations=4096"),
    ],
)
def test_settings_that_nothing_decides_are_taken(target: str, setting: str) -> None:
    name, _, value = setting.partition("=")
    specs.check(Spec(cells=[cell(target, name, value)]))


def test_every_translation_is_a_valid_option() -> None:
    """A hint never names a factor that the mechanism doesn't have."""
    for engine in map(engines.get, engines.names()):
        for row in engine.decided_settings if isinstance(engine, TakesSettings) else ():
            factors = {factor.name: factor.values for factor in mechanisms.get(row.mechanism).factors}
            assert row.why or row.mechanism in mechanisms.of(engine), (engine.name, row)
            assert not row.factor or row.factor in factors, (engine.name, row)
            assert not row.value or row.value in factors[row.factor], (engine.name, row)
    for name in mechanisms.names():
        mechanism = mechanisms.get(name)
        assert set(mechanism.decided_settings.values()) <= {"", *(factor.name for factor in mechanism.factors)}, name


def test_a_control_of_a_setting_is_left_out_where_the_user_sets_it() -> None:
    assert len(matrix.with_controls([cell("nginx:tls", "gzip", "on")])) == 2
    assert len(matrix.with_controls([cell("nginx:tls", "sendfile", "off")])) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("requirepass", "x"),
        ("primary_conninfo", "host=a"),
        ("master_password", "x"),
        ("hashicorp_key_management_token", "x"),
        ("keyring_hashicorp_secret_id", "x"),
        ("file_key_management_filekey", "x"),
        ("anything", "host=a password=b"),
        ("anything", "postgresql://me:word@host/db"),
        ("anything", "-----BEGIN PRIVATE KEY-----"),
    ],
)
def test_a_secret_is_known_by_its_exact_name_or_its_value(name: str, value: str) -> None:
    assert holds_secret(name, value)


@pytest.mark.parametrize(
    "name",
    [
        "password_encryption",
        "password_lifetime",
        "innodb_encryption_threads",
        "ssl_passphrase_command",
        "log_tokens",
        "key_buffer_size",
        "authentication_policy",
        "max_prepared_stmt_count",
        "innodb_encryption_rotate_key_age",
        "disconnect_on_expired_password_after",
        "caching_sha2_password_digest_rounds",
        "sort_key_size",
    ],
)
def test_a_part_of_a_name_makes_no_secret(name: str) -> None:
    assert not holds_secret(name, "1")


def test_a_secrets_value_is_not_repeated() -> None:
    with pytest.raises(UsageError) as raised:
        specs.check(Spec(cells=[cell("postgresql:tls", "primary_conninfo", "host=a password=hidden")]))
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('2026/11/27 15:15:04 [emerg] 11047#11047: unknown directive "x" in /a/nginx.conf:7', 'unknown directive "x"'),
        ("[ALERT]    (14717) : config : parsing [/a/haproxy.cfg:2] : unknown keyword 'x'", "unknown keyword 'x'"),
        ('{"level":"error","ts":1.5,"msg":"json: unknown field \\"x\\""}', 'json: unknown field "x"'),
        (
            '2026-11-27 15:17:01.842 GMT [17167] FATAL:  invalid value for parameter "x": "y"',
            'invalid value for parameter "x": "y"',
        ),
        (
            "2026-11-27T15:17:33.560231Z 0 [ERROR] [MY-000067] [Server] unknown variable 'x=1'.",
            "unknown variable 'x=1'",
        ),
    ],
)
def test_a_servers_message_stands_without_its_time_and_place(line: str, words: str) -> None:
    assert message(line) == words


@pytest.mark.parametrize("name", engines.names())
def test_patterns_of_settings_are_in_canonical_spelling(name: str) -> None:
    """A name has `_` for `-` when it is compared, so a pattern with `-` would never match."""
    engine = engines.get(name)
    if isinstance(engine, TakesSettings):
        patterns = [engine.kept_settings, *(decided.names for decided in engine.decided_settings)]
        outside_of_sets = [re.sub(r"\[[^\]]*\]", "", pattern) for pattern in patterns]
        assert [pattern for pattern in outside_of_sets if "-" in pattern or pattern != pattern.lower()] == []


def test_the_setting_that_the_server_names_is_blamed() -> None:
    given = {"gzip": "on", "ssl_buffer_size": "lots"}
    log = ["starting", '[emerg] 1#1: "ssl_buffer_size" directive invalid value in /a/nginx.conf:3']
    assert blamed(given, log) == '--setting ssl_buffer_size=lots: "ssl_buffer_size" directive invalid value'
    assert blamed(given, ["the disk is full"]) == ""
    assert blamed({"EnableMMAP": "x"}, ["AH00526: Syntax error on line 4 of /a:", "must be on or off"]).endswith(
        "on or off"
    )
