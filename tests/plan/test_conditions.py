"""Conditions of both arms: parsed from text, and refused if they can't be met."""

from __future__ import annotations

import platform
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost import engines
from ciphercost.engines.capabilities.payload import Payload
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import conditions, specs, toml


@given(st.integers(1, 999), st.sampled_from(["mbit", "Mbit", " mbit"]))
def test_a_bandwidth_is_read_in_bits_a_second(number: int, unit: str) -> None:
    assert conditions.bits_per_second(f"{number}{unit}") == number * 1e6


@given(st.integers(1, 2000))
def test_a_delay_is_read_in_seconds_of_round_trip(number: int) -> None:
    assert conditions.round_trip(f"{number}ms") == pytest.approx(number / 1000)


@pytest.mark.parametrize("text", ["", "100", "fast", "100mb", "1kbit", "200gbit", "-1mbit", "nanmbit"])
def test_an_invalid_bandwidth_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="write 100mbit"):
        conditions.bits_per_second(text)


@pytest.mark.parametrize("text", ["", "10", "soon", "10m", "1us", "3s", "-1ms"])
def test_an_invalid_delay_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="write 10ms"):
        conditions.round_trip(text)


@given(st.integers(1, 2000))
def test_a_loss_is_read_as_a_share(hundredths: int) -> None:
    assert conditions.lost_share(f"{hundredths / 100}%") == pytest.approx(hundredths / 1e4)


@pytest.mark.parametrize("text", ["", "1", "0%", "21%", "some", "-1%", "1 per cent", "nan%", "0.0001%"])
def test_an_invalid_loss_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"write 0\.1% or 1%"):
        conditions.lost_share(text)


def cell(**fields: object) -> CellSpec:
    return CellSpec(engine="postgresql", mechanism="tls", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("fields", [{"cpu_crypto": "off"}, {"bandwidth": "1mbit"}, {"mtu": 1500}, {"loss": "1%"}])
def test_a_users_server_supports_only_a_delay(fields: dict[str, object]) -> None:
    url = "postgresql://127.0.0.1:5432/db"
    with pytest.raises(UsageError, match="does not work with --url"):
        specs.check(Spec(cells=[cell(url=url, **fields)]))
    specs.check(Spec(cells=[cell(url=url, delay="10ms")]))


@pytest.mark.parametrize("fields", [{"bandwidth": "1mbit"}, {"mtu": 1500}, {"delay": "1ms"}, {"loss": "1%"}])
def test_an_embedded_engine_has_no_link(fields: dict[str, object]) -> None:
    embedded = CellSpec(engine="sqlite", mechanism="sqlcipher", **fields)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="there is no link"):
        specs.check(Spec(cells=[embedded]))


def test_an_mtu_out_of_bounds_is_refused() -> None:
    for mtu in (100, 70_000):
        with pytest.raises(UsageError, match="--mtu"):
            specs.check(Spec(cells=[cell(mtu=mtu)]))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("eth0", "not an IP address; .* one interface"),
        ("localhost", "not an IP address"),
        ("10.0.0.5/24", "not an IP address"),
        ("10.0.0", "not an IP address"),
        ("0.0.0.0", "every network .* one interface"),
        ("::", "every network"),
        ("::1", "on IPv4 only"),
        ("fe80::1", "on IPv4 only"),
        ("203.0.113.9", "no interface with this address"),
        ("224.0.0.1", "no interface with this address"),
        ("255.255.255.255", "no interface with this address"),
    ],
)
def test_an_address_that_is_not_this_machines_own_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"--listen {text}: ") + f".*{words}"):
        specs.check(Spec(cells=[cell(listen=text)]))


def test_an_address_of_this_machine_is_where_the_server_listens() -> None:
    (planned,) = specs.plan(Spec(cells=[cell(listen="127.0.0.2")])).cells
    assert planned.conditions.listen == "127.0.0.2"
    assert conditions.who_reaches_it(planned.conditions, planned.engine) == ""
    assert conditions.named(planned.spec) == {"listen": "127.0.0.2"}
    assert conditions.worded(conditions.named(planned.spec)) == "server on 127.0.0.2"
    assert specs.plan(Spec(cells=[cell()])).cells[0].conditions.listen == "127.0.0.1"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("postgresql", "whose password is random"),
        ("valkey", "unencrypted in the plain arm"),
        ("nginx", "anybody there can read its documents"),
    ],
)
def test_on_an_address_of_a_network_a_warning_says_who_reaches_the_server(name: str, words: str) -> None:
    held = conditions.Conditions(listen="10.0.0.5")
    text = conditions.who_reaches_it(held, engines.get(name))
    assert "from the network of 10.0.0.5; " in text
    assert words in text


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"url": "postgresql://127.0.0.1:5432/db"},
            "--listen 127.0.0.2 .*--url: that server is yours",
        ),
        ({"bandwidth": "1mbit"}, "--listen and --bandwidth"),
        ({"mtu": 1400}, "--listen and --mtu"),
        ({"engine": "sqlite", "mechanism": "sqlcipher"}, "--listen: sqlite is embedded in the agent"),
    ],
)
def test_an_address_to_listen_on_is_refused_where_there_is_nothing_to_decide(
    fields: dict[str, object], words: str
) -> None:
    changed = msgspec.structs.replace(cell(listen="127.0.0.2"), **fields)
    with pytest.raises(UsageError, match=words):
        specs.check(Spec(cells=[changed]))


def test_cells_that_share_their_servers_listen_on_the_same_address() -> None:
    cells = [cell(group="g", listen="127.0.0.2"), cell(group="g", workload="connect")]
    with pytest.raises(UsageError, match=r"group 'g': .*same listen"):
        specs.check(Spec(cells=cells))
    specs.check(Spec(cells=[msgspec.structs.replace(cell, group="") for cell in cells]))


@pytest.mark.parametrize(
    ("engine", "mechanism", "settings", "words"),
    [
        ("sqlite", "sqlcipher", {"a": "b"}, "sqlite is embedded in the agent"),
        ("postgresql", "tls", {"env:LD_PRELOAD": "x"}, "with the server's own name"),
        ("postgresql", "tls", {"work_mem": ""}, "with the server's own name"),
        ("postgresql", "tls", {"password_encryption": "md5"}, "by SCRAM in both arms"),
        ("postgresql", "tls", {"ssl_passphrase_command": "x"}, "ciphercost decides"),
        ("postgresql", "tls", {"listen_addresses": "*"}, "ciphercost decides"),
        ("postgresql", "none", {"hba_file": "/x"}, "ciphercost decides"),
        ("postgresql", "none", {"archive_command": "x"}, "ciphercost decides"),
        ("mysql", "tls", {"ssl_key": "x"}, "ciphercost decides"),
        ("mysql", "none", {"Bind-Address": "0.0.0.0"}, "ciphercost decides"),
        ("mariadb", "none", {"skip-grant-tables": "1"}, "ciphercost decides"),
        ("mariadb", "none", {"datadir": "/var/lib/mysql"}, "ciphercost decides"),
        ("mysql", "none", {"port": "3306"}, "ciphercost decides"),
        ("firebird", "none", {"RemoteBindAddress": "0.0.0.0"}, "ciphercost decides"),
        ("mysql", "none", {"max-connections": "9", "max_connections": "8"}, "two spellings"),
    ],
)
def test_reserved_settings_are_refused(engine: str, mechanism: str, settings: dict[str, str], words: str) -> None:
    asked_cell = CellSpec(engine, mechanism, workload=engines.get(engine).usual_workload, settings=settings)
    with pytest.raises(UsageError, match=words):
        specs.check(Spec(cells=[asked_cell]))
    with pytest.raises(UsageError, match="does not work with --url"):
        specs.check(Spec(cells=[cell(url="postgresql://127.0.0.1:5432/db", settings={"work_mem": "8MB"})]))


@pytest.mark.parametrize(
    ("engine", "name"),
    [
        ("mysql", "key_buffer_size"),
        ("mysql", "innodb_encryption_rotate_key_age"),
        ("mariadb", "version"),
        ("mysql", "innodb-flush-log-at-trx-commit"),
        ("mysql", "log_bin"),
        ("mysql", "innodb_buffer_pool_size"),
        ("postgresql", "shared_buffers"),
        ("postgresql", "synchronous_commit"),
        ("firebird", "DefaultDbCachePages"),
    ],
)
def test_other_settings_are_accepted(engine: str, name: str) -> None:
    specs.check(Spec(cells=[CellSpec(engine=engine, mechanism="none", settings={name: "1"})]))


def test_a_setting_that_the_cell_requires_conflicts_with_the_users() -> None:
    assert conditions.merged({"a": "1"}, {"b-c": "2"}) == {"a": "1", "b-c": "2"}
    with pytest.raises(UsageError, match="conflicts with max-connections=420, which this cell requires"):
        conditions.merged({"max_connections": "300"}, {"max-connections": "420"})


def test_conditions_are_named_only_if_they_differ_from_the_defaults() -> None:
    assert conditions.named(cell()) == {}
    chosen = cell(cpu_crypto="off", bandwidth="100mbit", delay="10ms", mtu=1500)
    assert conditions.named(chosen) == {"cpu_crypto": "off", "bandwidth": "100mbit", "delay": "10ms", "mtu": "1500"}
    parts = conditions.worded(conditions.named(chosen)).split(", ")
    for part, fact in zip(parts, ("crypto off", "100mbit", "10ms", "MTU 1500"), strict=True):
        assert fact in part


def test_conditions_go_through_a_file_unchanged() -> None:
    import msgspec

    chosen = cell(cpu_crypto="off", bandwidth="100mbit", delay="10ms", mtu=1500)
    again = msgspec.toml.decode(toml.dump(Spec(cells=[chosen])), type=Spec)
    assert again.cells == [chosen]


def test_the_mask_of_x86_names_both_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(conditions, "cpu_flags", lambda: {"aes"})
    assert conditions.mask()["OPENSSL_ia32cap"].count(":") == 1


def test_the_mask_of_arm_leaves_what_is_not_aes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(conditions, "cpu_flags", lambda: {"aes", "pmull", "asimd", "sha2"})
    assert conditions.mask() == {"OPENSSL_armcap": hex(0b10001), "GODEBUG": "cpu.aes=off,cpu.pmull=off"}


@pytest.mark.parametrize(("machine", "flags"), [("x86_64", {"sse2"}), ("riscv64", {"aes"})])
def test_the_mask_is_refused_if_there_is_nothing_to_hide(
    monkeypatch: pytest.MonkeyPatch, machine: str, flags: set[str]
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(conditions, "cpu_flags", lambda: flags)
    with pytest.raises(UsageError, match=r"--cpu-crypto off: .*remove it"):
        conditions.mask()


def test_an_engine_without_a_transfer_of_known_size_reports_what_it_can_not_prove() -> None:
    with pytest.raises(UsageError, match="can't prove"):
        Payload.of(engines.get("null")).payload(1)
    assert "repeat" in Payload.of(engines.get("postgresql")).payload(8_000_000)
