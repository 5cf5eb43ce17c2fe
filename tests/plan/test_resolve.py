"""One place resolves a cell into a PlannedCell or refuses it; no other step of a run looks up a name."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import ciphercost
from ciphercost import engines, mechanisms, studies
from ciphercost.load import workloads
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import specs
from ciphercost.plan.conditions import Conditions
from ciphercost.plan.planned import PlannedCell
from ciphercost.plan.resolve import resolve

SOURCE = Path(ciphercost.__file__).parent
LOOKUPS = {
    "engines.get",
    "mechanisms.get",
    "mechanisms.find",
    "mechanisms.layer_of",
    "workloads.get",
    "workloads.of_study",
    "own_scripts.workload",
    "conditions.bits_per_second",
    "conditions.round_trip",
    "conditions.parse",
    "options.driver_of",
    "options.options_for",
    "resolve.workload_of",
}
"""Calls that look up a name of a cell or parse one of its options."""
ALLOWED = {
    # The one place.
    "plan/resolve.py": "resolves a run's cells",
    # Before there is a cell: names on the command line, and the cells that they expand to.
    "api.py": "makes a CellSpec with the engine's usual workload",
    "commands": "names on the command line",
    "plan/matrix.py": "makes cells: the engine's language for --split, the controls beside a workload",
    "plan/registry_facts.py": "writes what the registries say of a cell into its record, also of records of format 1",
    "plan/quick.py": "asks whether PostgreSQL is installed",
    "plan/schedule.py": "the default of --time depends on the mechanism's layer, before the cells are checked",
    "plan/settings.py": "which mechanism decides a setting, to name it in an error",
    "plan/targets.py": "ENGINE:MECHANISM on the command line",
    "load": "the registries themselves; `clients.settled` changes cells before they are checked",
    "mechanisms": "the registry itself",
    "engines": "the registry itself",
    # No cell of a run.
    "provision/leftover_schemas.py": "`clean`: a URL alone",
    "runs/doctor.py": "every engine there is",
    "runs/predict_log.py": "which kind of log the servers of a record's parts write",
    "runs/fixes.py": "every engine there is",
    "runs/prove.py": "`prove` chooses the mechanism's own workload before the cell is resolved",
    "runs/prove_url.py": "`prove` of a URL asks what its string means before there is a cell to resolve",
    "runs/prove_jdbc_url.py": "`prove` of a JDBC URL, which is no cell",
    "runs/prove_driver_url.py": "`prove` of the URL of another driver, which is no cell",
    "runs/client_probe.py": "what both have in common",
    "runs/import_run.py": "imported runs have no cells",
    # They read records.
    "book": "reads records",
    "estimate": "reads records",
    "report": "reads records, and lists what there is",
    "studies": "a study's own text, programs and drivers",
}
"""Files and folders that may make these calls, and why."""


def calls(path: Path) -> set[str]:
    """Such calls in a file, e.g. `engines.get`, also under other imported names."""
    tree = ast.parse(path.read_text())
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = (node.module or "").rpartition(".")[2]
            known |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in node.names}
    called = set()
    for node in ast.walk(tree):
        used = node.func if isinstance(node, ast.Call) else None
        several = node.args if isinstance(node, ast.Call) and ast.unparse(node.func) == "map" else []
        for callee in filter(None, (used, *several)):
            if isinstance(callee, ast.Name):
                called.add(known.get(callee.id, callee.id))
            elif isinstance(callee, ast.Attribute) and isinstance(callee.value, ast.Name):
                called.add(f"{known.get(callee.value.id, callee.value.id).rpartition('.')[2]}.{callee.attr}")
    return called & LOOKUPS


def test_names_are_looked_up_and_texts_parsed_in_one_place() -> None:
    others = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if name not in ALLOWED and name.partition("/")[0] not in ALLOWED and (used := calls(path)):
            others[name] = used
    assert not others


def test_every_permission_is_used() -> None:
    idle = []
    for name in ALLOWED:
        place = SOURCE / name
        files = [place] if place.is_file() else list(place.rglob("*.py"))
        if name not in ("load", "mechanisms", "engines") and not any(calls(file) for file in files):
            idle.append(name)
    assert not idle


def test_a_lookup_under_another_name_is_found(tmp_path: Path) -> None:
    file = tmp_path / "step.py"
    file.write_text(
        "from ciphercost import engines as e\nfrom ciphercost.plan.conditions import round_trip as seconds\n"
        "e.get('postgresql')\nseconds('1ms')\nlist(map(e.get, []))\n"
    )
    assert calls(file) == {"engines.get", "conditions.round_trip"}


# ── what it makes ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_planned_cell_has_what_every_step_needs() -> None:
    cell = CellSpec(
        "postgresql", "tls", factors={"version": "1.2"}, bandwidth="100mbit", delay="10ms", mtu=1500, rows=77
    )
    planned = resolve(cell)
    assert planned.spec is cell
    assert (planned.engine, planned.mechanism) == (engines.get("postgresql"), mechanisms.get("tls"))
    assert planned.factors["version"] == "1.2"
    assert set(planned.factors) == {factor.name for factor in planned.mechanism.factors}
    assert planned.conditions == Conditions(bits_per_second=1e8, delay_s=0.01, mtu=1500)
    assert planned.workload == workloads.get("point-select")
    assert planned.program.parameters["rows"] == 77
    assert planned.client is None
    assert planned.clients == planned.workload.clients
    assert resolve(msgspec.structs.replace(cell, clients=7)).clients == 7
    assert resolve(msgspec.structs.replace(cell, regime="one-core")).clients == 1


def test_the_columns_that_are_secret_are_chosen() -> None:
    planned = resolve(CellSpec("mariadb", "aes-ecb-128", workload="hospital-2024", factors={"secret": "state,cnes"}))
    assert (planned.secret, planned.secret_columns) == ({"secret": "state,cnes"}, ("state", "cnes"))
    assert resolve(CellSpec("postgresql", "tls")).secret == {}


def test_a_connection_for_each_insert_is_the_programs() -> None:
    planned = resolve(CellSpec("mysql", "tls", workload="insert-loop", factors={"connection": "per-insert"}))
    assert planned.choices == {"connection": "per-insert"}
    assert planned.program.per_request


# ── any cell at all ───────────────────────────────────────────────────────────────────────────────────────────────────

TEXT = st.text(st.characters(codec="ascii", exclude_characters="\0/"), max_size=8)
CELLS = st.builds(
    CellSpec,
    engine=st.sampled_from(engines.names()) | TEXT,
    mechanism=st.sampled_from([*mechanisms.names(), "tls+none"]) | TEXT,
    version=st.sampled_from(["", "17", "8.4", "11"]) | TEXT,
    workload=st.sampled_from(workloads.names()) | TEXT,
    factors=st.dictionaries(
        st.sampled_from(["version", "cipher", "rows", "size", "secret", "share", "connection", "iv"]) | TEXT,
        st.sampled_from(["1.2", "1.3", "off", "100", "1KB", "all", "none", "checkout", "per-insert"]) | TEXT,
        max_size=2,
    ),
    clients=st.integers(-1, 2000),
    rows=st.integers(-1, 10**6),
    regime=st.sampled_from(["capacity", "one-core", "latency"]),
    per_request=st.booleans(),
    rate=st.floats(),
    url=st.sampled_from(["", "", "postgresql://127.0.0.1/d", "mysql://127.0.0.1:1", "https://example.org"]) | TEXT,
    bindir=st.sampled_from(["", "", "there"]),
    ca=st.sampled_from(["", "", "no-such-file"]),
    sql=st.sampled_from(["", "", "no-such-file"]),
    csv=st.sampled_from(["", "", "no-such-file"]),
    cpu_crypto=st.sampled_from(["on", "off"]),
    bandwidth=st.sampled_from(["", "100mbit", "1bit"]) | TEXT,
    delay=st.sampled_from(["", "10ms", "1h"]) | TEXT,
    mtu=st.sampled_from([0, 1500, 3]),
    cache=st.sampled_from(["warm", "cold", "small"]),
    client=st.sampled_from(["", "", "jdbc:0.0", "odbc"]) | TEXT,
    settings=st.dictionaries(TEXT, TEXT, max_size=1),
)


def outcome(cell: CellSpec) -> PlannedCell | str:
    try:
        return resolve(cell)
    except UsageError as error:
        return str(error)


def comparable(resolved: PlannedCell | str) -> object:
    """Parts that two resolutions of one cell must share; load statements are generated again on each read."""
    if isinstance(resolved, str):
        return resolved
    program = msgspec.structs.replace(resolved.program, load=())
    return msgspec.structs.replace(resolved, program=program)


GOOD = (CellSpec("postgresql", "tls"), CellSpec("nginx", "tls", workload="file"), CellSpec("sqlite", "sqlcipher"))
CHANGED = st.builds(
    lambda cell, changes: msgspec.structs.replace(cell, **changes),
    st.sampled_from(GOOD),
    st.fixed_dictionaries(
        {},
        optional={
            "clients": st.integers(-1, 2000),
            "rows": st.integers(-1, 10**6),
            "regime": st.sampled_from(["capacity", "one-core", "latency"]),
            "cache": st.sampled_from(["warm", "cold", "small"]),
            "factors": st.dictionaries(st.sampled_from(["version", "cipher"]), st.sampled_from(["1.2", "1.3", "off"])),
        },
    ),
)
"""Cells that can be measured, with changes that may make them impossible. Of `CELLS` almost every one is."""


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cell=CELLS)
def test_any_cell_is_always_resolved_or_refused_in_the_same_way(cell: CellSpec) -> None:
    assert isinstance(same(cell), PlannedCell | str)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cell=CHANGED)
@example(cell=GOOD[0])
@example(cell=GOOD[1])
@example(cell=GOOD[2])
def test_a_cell_near_a_good_one_is_too(cell: CellSpec) -> None:
    answer = same(cell)
    assert isinstance(answer, PlannedCell) or cell not in GOOD


def same(cell: CellSpec) -> PlannedCell | str:
    """Resolve a cell twice, in the same way."""
    before = msgspec.json.encode(cell)
    first = outcome(cell)
    assert comparable(outcome(cell)) == comparable(first)
    assert msgspec.json.encode(cell) == before
    if isinstance(first, str):
        assert first.strip()
    else:
        assert comparable(resolve(first.spec)) == comparable(first)
    return first


WRONG: dict[str, st.SearchStrategy[object]] = {
    "engine": TEXT,
    "mechanism": TEXT.filter(lambda text: "+" not in text),
    "workload": TEXT,
    "clients": st.integers(1001, 10**6) | st.integers(-(10**6), -1),
    "rows": st.integers(-(10**6), -1),
    "rate": st.floats(max_value=-1) | st.just(float("nan")) | st.just(float("inf")),
    "ca": st.just("no-such-file"),
    "sql": st.just("no-such-file"),
    "bandwidth": st.text("0123456789xyz", min_size=1, max_size=6),
    "delay": st.text("0123456789xyz", min_size=1, max_size=6),
    "mtu": st.integers(1, 575) | st.integers(65_536, 10**6),
    "client": st.text("xyz", min_size=1, max_size=6),
    "cpu_crypto": st.text("xyz", min_size=1, max_size=6),
    "idle": st.text("xyz", min_size=1, max_size=6),
    "cache": st.text("xyz", min_size=1, max_size=6),
}
"""Impossible values by field."""


@pytest.mark.parametrize("field", WRONG)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_refusal_names_the_option_and_its_value(field: str, data: st.DataObject) -> None:
    cell = data.draw(st.sampled_from(GOOD))
    value = data.draw(WRONG[field])
    refusal = outcome(msgspec.structs.replace(cell, **{field: value}))
    assert isinstance(refusal, str)
    named = field.replace("_", "-")
    assert any(f"{named} {shown}" in refusal for shown in (value, f"'{value}'")), refusal


def test_the_whole_spec_is_checked_by_resolving_its_cells() -> None:
    cells = [CellSpec("postgresql", "tls"), CellSpec("postgresql", "none")]
    spec = Spec(cells=cells, mode="quick", sessions=1)
    assert [cell.spec for cell in specs.plan(spec).cells] == cells
    assert specs.check(spec) is spec
    with pytest.raises(UsageError, match="unknown engine 'postgresq'"):
        specs.check(msgspec.structs.replace(spec, cells=[CellSpec("postgresq", "tls")]))


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_http2_needs_tls_1_2(version: str) -> None:
    factors = {"http": "2", "version": version}
    with pytest.raises(UsageError, match=f"version={version} .*http=2: .*version=1.2 or http=1"):
        resolve(CellSpec("nginx", "tls", workload="file", factors=factors))
    resolve(CellSpec("nginx", "tls", workload="file", factors=factors | {"version": "1.2"}))
    resolve(CellSpec("nginx", "tls", workload="file", factors=factors | {"http": "1"}))


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (CellSpec("apache", "tls"), "Apache HTTP server has no HTTP/3; .*http=2"),
        (CellSpec("nginx", "tls", version="1.22"), r"nginx 1\.22 has no HTTP/3; .* 1\.25\.0"),
        (CellSpec("nginx", "no-sendfile"), "HTTP/3 is always encrypted.*nginx:tls, .*http=1"),
        (CellSpec("nginx", "none"), "HTTP/3 is always encrypted"),
        (CellSpec("nginx", "tls", factors={"version": "1.2"}), "QUIC has TLS 1.3 only; remove version"),
        (CellSpec("nginx", "tls", factors={"hop": "haproxy"}), "no hop here forwards QUIC; remove one"),
        (
            CellSpec("url", "tls", url="http://localhost https://localhost", delay="5ms"),
            "a relay .*TCP only",
        ),
        (CellSpec("nginx", "tls", workload="shop", factors={"share": "checkout"}), "can't leave requests unencrypted"),
    ],
)
def test_what_does_not_go_with_http3_is_refused(cell: CellSpec, reason: str) -> None:
    workload = "shop" if cell.workload == "shop" else "page" if cell.url else "file"
    whole = msgspec.structs.replace(cell, workload=workload, factors=cell.factors | {"http": "3"})
    with pytest.raises(UsageError, match=reason):
        resolve(whole)
    # Without HTTP/3 each of them can be planned.
    resolve(msgspec.structs.replace(whole, factors=cell.factors))


@pytest.mark.parametrize("http", ["1", "2", "3"])
def test_a_workload_of_databases_too_has_an_http_version_on_web_servers_only(http: str) -> None:
    planned = resolve(CellSpec("nginx", "tls", workload="connect", factors={"http": http}))
    assert str(planned.program.parameters["http"]) == http
    assert "http" not in resolve(CellSpec("postgresql", "tls", workload="connect")).program.parameters
    with pytest.raises(UsageError, match=r"--set http: .* tls .* connect"):
        resolve(CellSpec("postgresql", "tls", workload="connect", factors={"http": http}))


def test_http3_is_for_the_encrypted_arm_and_the_plain_one_speaks_http_1() -> None:
    planned = resolve(CellSpec("nginx", "tls", workload="file", factors={"http": "3"}))
    fields = [
        planned.engine.workload_fields("1.26.3", planned.program.parameters, encrypted=on) for on in (True, False)
    ]
    assert fields == [{"http": "3"}, {}]
    assert planned.engine.workload_settings(planned.program.parameters) == {"http3": "on"}
    with pytest.raises(UsageError, match=r"http=4: .*--set http=1 .*--set http=3"):
        resolve(CellSpec("nginx", "tls", workload="file", factors={"http": "4"}))


@pytest.mark.parametrize("name", studies.names())
def test_a_studys_own_procedure_can_be_resolved(name: str) -> None:
    study = studies.get(name)
    cells = study.procedure_cells(study.engine)
    assert [resolve(cell).spec for cell in cells] == cells


def test_client_rust_is_the_default() -> None:
    assert resolve(CellSpec("postgresql", "tls", client="rust")).spec == resolve(CellSpec("postgresql", "tls")).spec
