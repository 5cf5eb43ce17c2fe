"""Command lines and TOML files give a Spec, or an error that names the fix."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import warm
from ciphercost.load import units, workloads
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import specs, targets, toml


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("3m", 180), ("1h", 3600), ("500ms", 0.5), ("12", 12), ("1.5m", 90)]
)
def test_durations_are_read_with_their_units(text: str, seconds: float) -> None:
    assert units.duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "abc", "-5s", "0", "5 days", "1e9s"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="90s, 3m or 1h"):
        units.duration(text)


def test_shares_are_read_with_and_without_percent_sign() -> None:
    assert units.share("1%") == units.share("0.01") == 0.01


def test_a_target_names_engine_version_and_mechanism() -> None:
    assert targets.target("postgresql@17:tls") == ("postgresql", "17", "tls")
    assert targets.target("sqlite:sqlcipher") == ("sqlite", "", "sqlcipher")


def test_a_printed_spec_has_nothing_that_nobody_asked_for() -> None:
    rate = float("0")  # a zero as the command line makes it, not the object of the default
    cell = CellSpec("valkey", "tls", workload="kv-get", rate=rate, max_errors=rate)
    assert toml.dump(Spec(cells=[cell], precision=rate)) == (
        'time = 90.0\n\n[[cells]]\nengine = "valkey"\nmechanism = "tls"\nworkload = "kv-get"\n'
    )


@pytest.mark.parametrize(
    ("name", "full"), [("get", "kv-get"), ("set", "kv-set"), ("kv-get", "kv-get"), ("scan", "scan"), ("no", "no")]
)
def test_a_workload_may_be_written_without_its_language(name: str, full: str) -> None:
    assert workloads.full_name(name) == full


@pytest.mark.parametrize("name", ["set", "kv-set"])
def test_a_file_and_the_command_line_take_a_workload_by_both_names(name: str, tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(
        f'mode = "quick"\nsessions = 1\n[[cells]]\nengine = "valkey"\nmechanism = "tls"\nworkload = "{name}"\n'
    )
    assert [cell.workload for cell in toml.load(path).cells] == ["kv-set"]
    (planned,) = specs.plan(Spec(cells=[CellSpec("valkey", "tls", workload=name)])).cells
    assert (planned.spec.workload, planned.workload.name) == ("kv-set", "kv-set")
    done = warm.run(("run", "valkey:tls", "--workload", name, "--print-spec"), cwd=tmp_path)
    assert 'workload = "kv-set"' in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("text", "bytes_"), [("100B", 100), ("100", 100), ("1KB", 1000), ("1KiB", 1024), ("64kb", 64_000)]
)
def test_a_size_may_have_a_unit(text: str, bytes_: int) -> None:
    assert workloads.size(text, "size") == bytes_


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (CellSpec("postgres", "tls"), "did you mean 'postgresql'"),
        (CellSpec("postgresql", "tsl"), "did you mean 'tls'"),
        (CellSpec("postgresql", "sqlcipher"), "postgresql has no mechanism 'sqlcipher'"),
        (CellSpec("postgresql", "tls", workload="point-selct"), "did you mean 'point-select'"),
        (CellSpec("postgresql", "tls", clients=-1), "clients -1"),
        (CellSpec("postgresql", "tls", factors={"cypher": "x"}), "did you mean 'cipher'"),
        (CellSpec("postgresql", "tls", factors={"version": "1.4"}), "no version '1.4'"),
        (CellSpec("null", "busy", workload="connect"), "no connections to open"),
        (CellSpec("postgresql", "tls", sql="/nowhere/file.sql"), "can't read the file"),
        (CellSpec("postgresql", "tls", ca="/nowhere/ca.pem"), "no such file"),
        (CellSpec("postgresql", "tls", workload="connect", rows=5), "no table with a settable number of rows"),
        (CellSpec("postgresql", "tls+none"), "can't combine these mechanisms"),
    ],
)
def test_nonsense_in_a_cell_is_refused_with_the_nearest_name(cell: CellSpec, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)) as caught:
        specs.check(Spec(cells=[cell]))
    assert caught.value.exit_status == 2


def test_a_typo_in_a_key_of_a_spec_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text('tiem = "90s"\n[[cells]]\nengine = "postgresql"\nmechanism = "tls"\n')
    with pytest.raises(UsageError, match="unknown key 'tiem': did you mean 'time'"):
        toml.load(path)
    path.write_text('[[cells]]\nengine = "postgresql"\nmechanism = "tls"\nclinets = 4\n')
    with pytest.raises(UsageError, match=r"cell 1: .*'clinets': did you mean 'clients'"):
        toml.load(path)


def test_a_value_of_the_wrong_type_is_named(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text('[[cells]]\nengine = "postgresql"\nmechanism = "tls"\nclients = "four"\n')
    with pytest.raises(UsageError, match="clients"):
        toml.load(path)


cells = st.builds(
    CellSpec,
    engine=st.just("postgresql"),
    mechanism=st.sampled_from(["tls", "none"]),
    workload=st.sampled_from(["point-select", "tpcb", "insert"]),
    clients=st.integers(0, 1000),
    rows=st.integers(0, 10**7),
    regime=st.sampled_from(["capacity", "one-core", "latency"]),
    rate=st.floats(0, 1e6),
    url=st.text(max_size=30),
)


def test_files_of_a_cell_survive_printing_the_spec(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("name\nanna\n")
    cell = CellSpec("postgresql", "tls", workload="point-select", csv=str(tmp_path / "rows.csv"))
    (tmp_path / "grid.toml").write_text(toml.dump(Spec(cells=[cell])))
    assert toml.load(tmp_path / "grid.toml").cells == [cell]


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (CellSpec("mysql", "tls", cpu_crypto="Off"), "on or off"),  # type: ignore[arg-type]
        (
            CellSpec("mysql", "tls", url="mysql://me@localhost/", factors={"certificate": "rsa4096"}),
            "your server presents its own certificate",
        ),
    ],
)
def test_an_impossible_spec_is_refused_before_anything_starts(cell: CellSpec, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        specs.check(Spec(cells=[cell]))


@given(
    st.lists(cells, min_size=1, max_size=4),
    st.integers(0, 2**31),
    st.floats(1, 1e4),
    st.sampled_from(["full", "quick"]),
)
def test_a_printed_spec_reads_back_as_itself(drawn: list[CellSpec], seed: int, time: float, mode: str) -> None:
    import tomllib

    import msgspec

    one = Spec(cells=drawn, seed=seed, time=time, mode=mode)  # type: ignore[arg-type]
    assert msgspec.convert(tomllib.loads(toml.dump(one)), Spec) == one
