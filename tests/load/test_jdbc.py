"""jdbc: choice of driver, client settings, and proof that connections are as requested, with real drivers on real
servers.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import steady
from ciphercost import engines
from ciphercost.engines import Server
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.host import supervisor
from ciphercost.host.impostor import Impostor
from ciphercost.load.agent import Agent
from ciphercost.load.clients import driver_of, settled
from ciphercost.load.jdbc import drivers, java, jdbc_agent
from ciphercost.load.jdbc.drivers import SERVICE, find
from ciphercost.measure import round_trips, session, slice_marks
from ciphercost.model import run_directory
from ciphercost.model.connection import Connection, TlsMode
from ciphercost.model.errors import AgentError, CiphercostError, MissingServer, RunError, Unproven, UsageError
from ciphercost.model.result import Result
from ciphercost.model.secret import reveal
from ciphercost.model.slices import AgentSlice, Counters
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import matrix, resolve, specs
from ciphercost.provision import server_pairs
from ciphercost.provision.experiment_resources import ExperimentResources
from ciphercost.report import formats
from ciphercost.runs import pipeline, prove, prove_jdbc_url
from conftest import Require, RequireServer
from firebird import started as firebird_started
from mysql_servers import ServerCopies, server_copies
from test_real import ciphercost

Counted = dict[str, dict[str, float]]


def cell(engine: str = "mariadb", **more: Any) -> CellSpec:
    mechanism = "wire-crypt" if engine == "firebird" else "tls"
    return CellSpec(engine, mechanism, **{"workload": "insert-loop", "client": "jdbc", **more})


def checked(cell_spec: CellSpec) -> Spec:
    return specs.check(Spec(cells=[cell_spec], mode="quick", sessions=1))


@pytest.fixture(scope="module")
def java_here(require: Require) -> None:
    """Java, the agent, and every driver."""
    try:
        java.command()
        for driver in drivers.DRIVERS:
            driver.jars()
    except CiphercostError as error:
        require(None, str(error))


@pytest.fixture(scope="module")
def mariadb(
    require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory, java_here: None
) -> Iterator[ServerCopies]:
    del java_here
    with server_copies(require_server("mariadb", "10.11"), tmp_path_factory.mktemp("logs")) as copies:
        yield copies


@pytest.fixture(scope="module")
def secured(mariadb: ServerCopies) -> Iterator[Server]:
    with mariadb.started(certificate="rsa2048") as server:
        yield server


SUPERVISORS: list[supervisor.Supervisor] = []


@pytest.fixture(scope="module", autouse=True)
def run_supervisor() -> Iterator[None]:
    """Agents keep their files in the scratch directory of a run."""
    with supervisor.Supervisor(run_directory.new_id()) as running:
        SUPERVISORS.append(running)
        yield
    SUPERVISORS.clear()


def agent_of(version: str, **options: str) -> jdbc_agent.JdbcAgent:
    like = Connection(driver="mysql", host="127.0.0.1", port=1)
    return jdbc_agent.JdbcAgent(
        find(version, "mariadb"),
        EncryptsConnections.of(engines.get("mariadb")),
        options,
        like,
        supervisor=SUPERVISORS[-1],
    )


# ── what is asked for ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("engine", "client", "title"),
    [
        ("mysql", "jdbc", "MySQL Connector/J 26.10.0"),
        ("mysql", "jdbc:8.0", "MySQL Connector/J 8.0.33"),
        ("mysql", "jdbc:mysql-5.1.6", "MySQL Connector/J 5.1.6"),
        ("mysql", "jdbc:connector-j-9.7.0", "MySQL Connector/J 9.7.0"),
        ("mysql", "jdbc:mariadb", "MariaDB Connector/J 4.0.0"),
        ("mariadb", "jdbc:mariadb-2.7", "MariaDB Connector/J 2.7.15"),
        ("mariadb", "jdbc:connector-j", "MySQL Connector/J 26.10.0"),
        ("postgresql", "jdbc:pgjdbc", "PostgreSQL JDBC Driver 42.7.14"),
    ],
)
def test_a_client_names_a_driver(engine: str, client: str, title: str) -> None:
    assert driver_of(cell(engine, client=client)).title == title


@pytest.mark.parametrize(
    ("cell_spec", "words"),
    [
        (cell(client="java"), r"known: .*jdbc, .*rust.*jdbc:9\.7\.0"),
        (cell(client="rust", driver="own.jar"), "--client rust uses no JDBC driver; remove it, or --driver"),
        (cell(client="jdbc:77"), "unknown JDBC driver 77 for mariadb"),
        (cell("postgresql", client="jdbc:mariadb"), "does not support postgresql"),
        (cell(client="jdbc:mariadb-9"), "known: 2.7.15"),
        (CellSpec("sqlite", "sqlcipher", client="jdbc"), "no JDBC driver for sqlite"),
        (CellSpec("null", "busy", client="jdbc"), "no JDBC driver for null"),
        (CellSpec("nginx", "tls", workload="file", client="jdbc"), "no JDBC driver for nginx"),
        (cell(client="", factors={"how": "execute"}), "--set how: not a factor of tls or a parameter of insert-loop"),
        (cell(factors={"how": "quickly"}), "how can't be 'quickly'"),
        (cell(factors={"hwo": "execute"}), "did you mean 'how'"),
        (cell("postgresql", factors={"useLocalSessionState": "true"}), "a parameter of insert-loop or an option of PostgreSQL JDBC"),
        (cell(factors={"batch": "10"}), "needs how=batch"),
        (cell(factors={"commit_every": "10"}), "needs autocommit=false"),
        (cell(factors={"autocommit": "false", "commit_every": "start"}), "an integer above 0 or end"),
        (cell(factors={"how": "batch", "connection": "per-insert"}), "how=batch needs kept connections"),
        (cell(factors={"how": "batch"}, workload="point-select"), "a single statement that returns no rows, unlike point-select"),
        (cell(factors={"connection": "pooled"}), "--set connection=pooled: unknown value"),
        (cell(factors={"properties": "password=x"}), "is a secret"),
        (cell(factors={"properties": "allowLoadLocalInfile=true"}), "allowLoadLocalInfile is not allowed"),
        (cell(factors={"properties": "autosave=never; ALLOWLOCALINFILE =true"}), "ALLOWLOCALINFILE is not allowed"),
        (cell(client="jdbc:8.0.16"), "supports TLS 1.2 at most"),
        (cell(client="jdbc:5.1.49", factors={"version": "1.2", "verify": "full"}), "checks no host names"),
        (cell(factors={"group": "p256"}), "remove group"),
        (cell(factors={"resumption": "on"}), "leave resumption off"),
        (cell("firebird", factors={"cipher": "arc4"}), "remove cipher"),
        (CellSpec("postgresql", "client-aes-gcm-256", workload="hospital-client", client="jdbc"), "remove --client"),
        (cell(driver="/nowhere/a.jar"), "no such file"),
    ],
)  # fmt: skip
def test_what_a_driver_can_not_do_is_bad_usage(java_here: None, cell_spec: CellSpec, words: str) -> None:
    del java_here
    with pytest.raises(UsageError, match=words):
        checked(cell_spec)


def jar(path: Path, service: str = "", **classes: bytes) -> str:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
        if service:
            archive.writestr(SERVICE, service)
        for name, content in classes.items():
            archive.writestr(f"{name.replace('__', '/')}.class", content)
    return str(path)


def test_a_jar_that_will_not_do_is_bad_usage(java_here: None, tmp_path: Path) -> None:
    del java_here
    (tmp_path / "text.jar").write_text("no jar")
    name, newer = "com.mysql.Newer", struct.pack(">IHH", 0xCAFEBABE, 0, 44 + 99)
    for path, words in (
        (jar(tmp_path / "empty.jar"), "contains no JDBC driver"),
        (jar(tmp_path / "other.jar", "com.example.Driver"), "does not support"),
        (jar(tmp_path / "newer.jar", name, com__mysql__Newer=newer), "needs Java 99 or newer, but .* is Java"),
        (jar(tmp_path / "gone.jar", name), "does not contain its class"),
        (str(tmp_path / "text.jar"), "as a jar: "),
        (str(find("", "postgresql").jars()[0]), "does not support mariadb"),
    ):
        with pytest.raises(UsageError, match=words):
            checked(cell(driver=path))


def test_a_missing_java_is_bad_usage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MissingServer, match="'java' was not found") as caught:
        checked(cell())
    assert caught.value.exit_status == 2


def test_the_driver_is_a_factor_like_any_other() -> None:
    cells = settled(matrix.matrix(cell(client=""), ["driver=5.1.49,8.0.16,9.7.0", "how=execute,batch"]))
    assert [cell.client for cell in cells] == ["jdbc:5.1.49", "jdbc:8.0.16", "jdbc:9.7.0", "jdbc:5.1.49"]
    assert [cell.variant for cell in cells][1] == "driver=8.0.16"
    assert len({cell.group for cell in cells}) == 1
    # Some of these drivers don't support TLS 1.3, so none of them uses it.
    assert {cell.factors["version"] for cell in cells} == {"1.2"}
    newer = settled(matrix.matrix(cell(client=""), ["driver=8.0.33,9.7.0"]))
    assert all("version" not in cell.factors for cell in newer)


def test_clients_are_compared_and_only_a_driver_is_told_what_is_its() -> None:
    rust, java_ = matrix.matrix(cell(client="", factors={"how": "execute", "rows": "5"}), ["client=rust,jdbc:9.7.0"])
    assert (rust.client, rust.factors) == ("rust", {"rows": "5"})
    assert (java_.client, java_.factors) == ("jdbc:9.7.0", {"how": "execute", "rows": "5"})
    with pytest.raises(UsageError, match=r"conflicts with --driver, .*--client"):
        matrix.matrix(cell(client="jdbc:9.7.0"), ["driver=8.0.33,9.7.0"])


def test_a_connection_for_each_insert_is_anybodys_choice() -> None:
    cell_spec = cell(client="", factors={"connection": "per-insert"})
    assert resolve.resolve(cell_spec).program.per_request
    assert not resolve.resolve(cell(client="")).program.per_request


# ── who is the server ─────────────────────────────────────────────────────────────────────────────────────────────────


def log_in_and_ask(agent: Agent, fields: Connection) -> None:
    agent.connect("plain", fields)
    agent.query("plain", "SELECT 1")


@pytest.mark.parametrize(("tls", "met"), [("off", "clear"), ("require", "statement"), ("verify-ca", "refused")])
def test_an_impostor_knows_who_checks(
    mariadb: ServerCopies, secured: Server, tmp_path: Path, tls: TlsMode, met: str
) -> None:
    fields = mariadb.fields(secured, "encrypted", certificate="rsa2048")
    with (
        Impostor("mysql", "127.0.0.1", fields.port, tmp_path / "pki", certificate="rsa2048") as impostor,
        Agent() as agent,
        pytest.raises(AgentError),
    ):
        log_in_and_ask(agent, (fields | {"port": impostor.port, "tls": tls}))
    assert impostor.met == [met]


def test_a_postgresql_client_meets_an_impostor_too(tmp_path: Path) -> None:
    fields = Connection(driver="postgres", host="127.0.0.1", user="u", database="d")
    cases: list[tuple[TlsMode, str]] = [("off", "clear"), ("require", "statement"), ("verify-ca", "refused")]
    for tls, met in cases:
        with (
            Impostor("postgres", "127.0.0.1", 1, tmp_path, certificate="ecdsa-p256", way="let in") as impostor,
            Agent() as agent,
            pytest.raises(AgentError),
        ):
            log_in_and_ask(agent, (fields | {"port": impostor.port, "tls": tls}))
        assert impostor.met == [met]


@pytest.mark.parametrize(
    ("engine", "client", "words"),
    [
        ("mariadb@10.11", "jdbc:5.1.49", "it refuses an impostor with another CA's certificate"),
        ("mariadb@10.11", "jdbc:2.7.15", "and the server under another name"),
        ("mysql", "jdbc:9.7.0", "and the server under another name"),
        ("postgresql", "jdbc", "and the server under another name"),
        ("firebird", "jdbc", "wire-crypt ChaCha"),
    ],
)
def test_a_drivers_connection_is_proven(
    java_here: None, require_server: RequireServer, engine: str, client: str, words: str
) -> None:
    del java_here
    name, _, version = engine.partition("@")
    require_server(name, version)
    (cell_spec,) = settled([cell(name, version=version, client=client)])
    proven, text = prove.examine(cell_spec)
    assert proven, text
    assert words in " ".join(text.split())


def test_a_driver_that_ignores_what_it_is_told_is_not_believed(
    java_here: None, require_server: RequireServer, tmp_path: Path
) -> None:
    del java_here
    require_server("mariadb", "10.11")
    # 2.7 silently ignores `sslMode`. This jar's manifest claims a newer version, so it gets `sslMode`.
    disguised = tmp_path / "mariadb-java-client-3.5.11.jar"
    with zipfile.ZipFile(find("2.7", "mariadb").jars()[0]) as old, zipfile.ZipFile(disguised, "w") as new:
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename == "META-INF/MANIFEST.MF":
                content = b"Manifest-Version: 1.0\nBundle-Version: 3.5.11\n"
            new.writestr(entry, content)
    proven, text = prove.examine(cell(version="10.11", driver=str(disguised)))
    assert not proven
    # The other witnesses of that arm are not asked, because there is nothing encrypted to confirm.
    assert [line.strip() for line in text.splitlines() if "FAILED" in line or "NOT PROVEN" in line] == [
        "FAILED client: unencrypted: nothing was negotiated",
        "NOT PROVEN",
    ]


def test_who_checks_nothing_is_not_called_verified(mariadb: ServerCopies, secured: Server) -> None:
    with agent_of("9.7.0") as agent:
        fields = mariadb.fields(secured, "encrypted", certificate="rsa2048")
        assert agent.connect("full", fields).verified is True
        connected = agent.connect("none", fields | {"tls": "require"})
        assert (connected.encrypted, connected.verified) == (True, False)
        # Another property overrides the check, so the driver accepts every server.
    with agent_of("9.7.0", properties="sslMode=REQUIRED") as agent:
        connected = agent.connect("full", fields)
        assert (connected.encrypted, connected.verified) == (True, False)
        assert "accepts an impostor with its own certificate" in connected.checked
        assert "relays the login" in connected.checked


def test_a_slice_of_another_driver_is_an_error(mariadb: ServerCopies, secured: Server) -> None:
    fields = mariadb.fields(secured, "plain")
    with agent_of("8.0.33") as agent, agent_of("9.7.0") as other:
        program = resolve.resolve(cell(client="", workload="connect")).program
        agent.program(program)
        agent.connect("plain", fields)
        assert agent.slice("plain", 60, discard=0.0, operations=5).operations == 5
        agent.connect("plain", other.translated(fields))
        with pytest.raises(Unproven, match=r"driver_version is '9\.7 .* was '8\.0 .*'"):
            agent.slice("plain", 60, discard=0.0, operations=5)


def test_a_driver_that_can_not_connect_says_why_and_what_helps(mariadb: ServerCopies, secured: Server) -> None:
    fields = mariadb.fields(secured, "encrypted", certificate="rsa2048", version="1.2")
    with agent_of("5.1.6") as agent:
        with pytest.raises(RunError, match=r"5\.1\.6 .* encrypted arm: .*5\.1\.49 or newer"):
            agent.enter({"plain": mariadb.fields(secured, "plain"), "encrypted": fields})
        assert agent.connect("plain", mariadb.fields(secured, "plain")).encrypted is False


# ── an application's own connection ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def base(secured: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """`//localhost:PORT/…` of a MariaDB whose password is in the environment."""
    fields = secured.connection()
    monkeypatch.setenv("MYSQL_PWD", reveal(fields.password))
    return f"//localhost:{fields.port}/{fields.database}?user={fields.user}"


def ca_of(mariadb: ServerCopies) -> str:
    return str(next(mariadb.secrets.rglob("ca.pem")))


@pytest.mark.parametrize("loopback", [True, False], ids=["loopback", "a name elsewhere"])
def test_an_application_that_checks_is_told_so(
    mariadb: ServerCopies, base: str, monkeypatch: pytest.MonkeyPatch, loopback: bool
) -> None:
    if not loopback:  # what stands in between then has the server's name, on its own machine
        monkeypatch.setattr(prove_jdbc_url, "_is_loopback", lambda _: False)
    proven, text = prove_jdbc_url.examine(f"jdbc:mariadb:{base}&sslMode=verify-full&serverSslCert={ca_of(mariadb)}")
    assert proven, text
    words = " ".join(text.split())
    assert "MariaDB Connector/J 4.0.0 · MariaDB 10.11" in words
    assert "ENCRYPTED with TLSv1.3 TLS_AES_256_GCM_SHA384, " in words
    assert "server VERIFIED (certificate authority and host name)" in words
    assert "ok wire: the canary is absent" in words


def test_an_application_that_checks_the_authority_alone(mariadb: ServerCopies, base: str) -> None:
    proven, text = prove_jdbc_url.examine(f"jdbc:mariadb:{base}&sslMode=verify-ca&serverSslCert={ca_of(mariadb)}")
    assert proven
    assert "certificate authority only" in " ".join(text.split())


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("jdbc:mysql:{base}", "ENCRYPTED, NOT VERIFIED"),
        ("jdbc:mysql:{base}&sslMode=DISABLED", "UNENCRYPTED"),
        ("jdbc:mariadb:{base}&sslMode=trust", "it accepts an impostor with its own certificate"),
    ],
)
def test_an_application_that_checks_nothing_is_told_so(mariadb: ServerCopies, base: str, url: str, words: str) -> None:
    del mariadb
    proven, text = prove_jdbc_url.examine(url.format(base=base))
    assert not proven
    assert words in " ".join(text.split())


def test_each_host_of_an_applications_url_is_examined(mariadb: ServerCopies, base: str) -> None:
    place, _, rest = base.removeprefix("//").partition("/")
    port = place.partition(":")[2]
    hosts = f"address=(host=localhost)(port={port}),127.0.0.1:{port}"
    url = f"jdbc:mariadb:sequential://{hosts}/{rest}&sslMode=verify-ca&serverSslCert={ca_of(mariadb)}"
    proven, text = prove_jdbc_url.examine(url)
    assert proven, text
    assert f"localhost:{port} (1 of the 2 servers" in text
    assert f"127.0.0.1:{port} (2 of the 2 servers" in text
    assert text.count("certificate authority only") == 2
    with pytest.raises(UsageError, match="SRV records"):
        prove_jdbc_url.examine("jdbc:mysql+srv://db/shop")


def test_what_an_application_gets_by_default_depends_on_its_drivers_version(mariadb: ServerCopies, base: str) -> None:
    del mariadb
    proven, text = prove_jdbc_url.examine(f"jdbc:mariadb:{base}", client="jdbc:3.5")
    assert not proven
    assert "UNENCRYPTED" in text
    with pytest.raises(RunError, match="Self signed certificates"):
        prove_jdbc_url.examine(f"jdbc:mariadb:{base}", client="jdbc:4.0")


def test_an_application_whose_driver_ignores_its_url(mariadb: ServerCopies, base: str) -> None:
    url = f"jdbc:mariadb:{base}&sslMode=verify-full&serverSslCert={ca_of(mariadb)}"
    proven, text = prove_jdbc_url.examine(url, str(find("2.7", "mariadb").jars()[0]))
    assert not proven
    assert "UNENCRYPTED" in text


def test_an_application_of_firebird(
    java_here: None, require_server: RequireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    del java_here
    with firebird_started(require_server("firebird")) as server:
        fields = server.connection()
        monkeypatch.setenv("ISC_PASSWORD", reveal(fields.password))
        url = f"jdbc:firebirdsql://127.0.0.1:{fields.port}/{fields.database}?user={fields.user}&encoding=UTF8"
        proven, text = prove_jdbc_url.examine(url)
        assert proven, text
        assert "no certificates" in " ".join(text.split())
        assert prove_jdbc_url.examine(f"{url}&wireCrypt=DISABLED")[0] is False


@pytest.mark.parametrize(
    ("url", "jar_of", "words"),
    [
        ("jdbc:oracle:thin:@//h/x", "", "jdbc:oracle: no engine has this JDBC scheme"),
        ("jdbc:mysql://u:secret@h/x", "", "set MYSQL_PWD"),
        ("jdbc:postgresql://h/x?user=u&password=secret", "", "set PGPASSWORD"),
        ("jdbc:postgresql://127.0.0.1:1/x", "mariadb", "does not support postgresql"),
        ("jdbc:mariadb://127.0.0.1:1/x", "mysql", "does not accept the URL"),
    ],
)
def test_a_url_that_will_not_do_is_bad_usage(java_here: None, url: str, jar_of: str, words: str) -> None:
    del java_here
    with pytest.raises(UsageError, match=words) as caught:
        prove_jdbc_url.examine(url, str(find("newest", jar_of).jars()[0]) if jar_of else "")
    assert "secret" not in str(caught.value)


def test_a_trust_stores_password_is_no_secret() -> None:
    url = "jdbc:mysql://db.example.com/x?trustCertificateKeyStorePassword=changeit"
    assert prove_jdbc_url.read(url).host == "db.example.com"
    assert prove_jdbc_url.read(url).moved(7, "here") == url.replace("db.example.com", "here:7")
    assert prove_jdbc_url.read("jdbc:mysql:loadbalance://a,b/x").host == ""


def test_prove_of_a_jdbc_url_ends_with_its_status(mariadb: ServerCopies, base: str, tmp_path: Path) -> None:
    good = f"jdbc:mariadb:{base}&sslMode=verify-full&serverSslCert={ca_of(mariadb)}"
    assert ciphercost("prove", good, cwd=tmp_path).returncode == 0
    assert ciphercost("prove", f"jdbc:mysql:{base}", cwd=tmp_path).returncode == 1
    done = ciphercost("prove", good, "--driver", "nowhere.jar", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no such file" in done.stderr


# ── under load ────────────────────────────────────────────────────────────────────────────────────────────────────────


def measured(cells: list[CellSpec], directory: Path) -> Result:
    spec = Spec(cells=settled(cells), mode="quick", sessions=1, time=1.0, latency=False, seed=5, slice_seconds=0.05)
    return pipeline.run(spec, directory)


@pytest.mark.usefixtures("whole_java")
def test_a_matrix_of_drivers_goes_on_where_one_can_not_connect(
    java_here: None, require_server: RequireServer, tmp_path: Path
) -> None:
    del java_here
    require_server("mariadb", "10.11")
    start = cell(version="10.11", client="", rows=100)
    cells = matrix.matrix(start, ["driver=8.0.16,5.1.6,9.7.0"])
    result, directory = steady.measured(partial(measured, cells), tmp_path)
    old, oldest, newest = result.cells
    assert (old.status, oldest.status, newest.status) == ("ok", "failed", "ok"), [cell.reason for cell in result.cells]
    assert "5.1.6 can't connect" in oldest.reason
    assert "Use 5.1.49 or newer" in oldest.reason
    assert old.client == "MySQL Connector/J 8.0.16"
    for cell_result in (old, newest):
        assert cell_result.encryption["protocol"] == "TLSv1.2"
        assert cell_result.encryption["verified"] == "yes"
        assert cell_result.traffic["plain"]["round_trips"] == cell_result.traffic["encrypted"]["round_trips"] == 1
        assert cell_result.traffic["encrypted"]["bytes_sent"] > cell_result.traffic["plain"]["bytes_sent"] > 80
        (kind,) = cell_result.chatter["plain"]
        assert kind.startswith("INSERT INTO loop_row")
        assert cell_result.chatter["plain"] == cell_result.chatter["encrypted"] == {kind: 1.0}
    assert not old.client_against_reference
    assert set(newest.client_against_reference) == {
        f"{name}_{arm}" for name in ("throughput", "server_cpu", "client_cpu") for arm in ("plain", "encrypted")
    }
    assert all(estimate.low < estimate.ratio < estimate.high for estimate in newest.client_against_reference.values())
    text = formats.get("terminal")(result)
    assert "driver=9.7.0 against driver=8.0.16, plain: server CPU" in " ".join(text.split())
    assert not any("password" in path.read_text() for path in directory.glob("*.json*"))


def counted(directory: Path, first: CellSpec, *others: CellSpec) -> list[tuple[Counted, Counted]]:
    """Return the round-trip facts (`chatter`) of cells that differ only in the client, by arm: statements, traffic."""
    for cell_spec in (first, *others):
        checked(cell_spec)
    run_id = run_directory.new_id()
    with supervisor.Supervisor(run_id) as run_supervisor:
        scratch = supervisor.scratch(run_id, run_supervisor)
        shared = ExperimentResources(scratch / "secrets" / "group-0")
        with (
            server_pairs.bench(resolve.resolve(first), run_supervisor, scratch, directory, 0, shared) as bench,
            shared.session(),
        ):
            assert round_trips.wanted(bench)
            pair = server_pairs.start(bench, 1, set(), set())
            facts = []
            for bench.planned in map(resolve.resolve, (first, *others)):
                with bench.agent(pair) as agent:
                    agent.program(bench.program)
                    facts.append(round_trips.measure(bench, pair, agent))
            return facts


def test_which_statements_differ_is_told(java_here: None, require_server: RequireServer, tmp_path: Path) -> None:
    del java_here
    require_server("mysql")
    by_jdbc = cell("mysql", client="jdbc:9.7.0", rows=100, factors={"how": "execute"})
    (rust, _), (java_, traffic) = counted(tmp_path, cell("mysql", client="", rows=100), by_jdbc)
    (insert,) = rust["plain"]
    assert insert.startswith("INSERT INTO loop_row")
    assert rust == {arm: {insert: 1.0} for arm in ("plain", "encrypted")}
    read_only = "SELECT @@session.transaction_read_only"
    assert java_["encrypted"] == {insert: 1.0, read_only: 1.0}
    assert traffic["plain"]["round_trips"] == 2
    assert round_trips.unlike(rust["plain"], java_["plain"]) == [read_only]
    assert round_trips.differences(rust["plain"], java_["plain"]) == f"1 × {read_only} (there 0)"


def test_a_batch_is_one_statement_for_many_rows(java_here: None, require_server: RequireServer, tmp_path: Path) -> None:
    del java_here
    require_server("mariadb", "10.11")
    wish = {"how": "batch", "batch": "50", "rewriteBatchedStatements": "true", "autocommit": "false"}
    ((statements, traffic),) = counted(tmp_path, cell(version="10.11", client="jdbc:9.7.0", rows=100, factors=wish))
    (insert,) = (name for name in statements["plain"] if name.startswith("INSERT"))
    assert insert.endswith("VALUES (?, ?, ?), …")
    assert statements["plain"][insert] == statements["plain"]["COMMIT"] == 0.02
    assert traffic["plain"]["round_trips"] == pytest.approx(0.04, abs=0.01)


def test_one_transaction_a_slice_has_no_commit_in_an_operation(
    java_here: None, require_server: RequireServer, tmp_path: Path
) -> None:
    del java_here
    require_server("mariadb", "10.11")
    wish = {"autocommit": "false", "commit_every": "end"}
    ((statements, traffic),) = counted(tmp_path, cell(version="10.11", client="jdbc:8.0.33", rows=100, factors=wish))
    assert list(statements["plain"].values()) == [1.0], statements
    assert traffic["plain"]["round_trips"] == 1


@pytest.mark.parametrize(
    ("engine", "kinds"),
    [("postgresql", {"COMMIT": 1.0, "BEGIN": 1.0}), ("firebird", {"transactions": 1.0, "rows inserted": 1.0})],
)
def test_what_other_servers_count(
    java_here: None, require_server: RequireServer, tmp_path: Path, engine: str, kinds: dict[str, float]
) -> None:
    del java_here
    require_server(engine)
    ((statements, traffic),) = counted(tmp_path, cell(engine, factors={"autocommit": "false"}, rows=100))
    assert kinds.items() <= statements["encrypted"].items(), statements
    assert engine == "firebird" or any(name.startswith("INSERT INTO loop_row") for name in statements["plain"])
    assert traffic["plain"]["round_trips"] >= 2


@pytest.mark.parametrize(
    ("command", "text", "kind"),
    [
        ("Query", "INSERT INTO t (a, b) VALUES ('it''s', 5)", "INSERT INTO t (a, b) VALUES (?, ?)"),
        ("Execute", "INSERT INTO t1 VALUES (1,'a'),(2,'b'),(3,'c", "INSERT INTO t1 VALUES (?,?), …"),
        ("Query", "/* mysql-connector-j-9.7.0 */ SELECT\n  1", "SELECT ?"),
        ("Prepare", "SELECT ?", "prepare: SELECT ?"),
        ("Connect", "user@host on db using SSL/TLS", "connect"),
        ("Query", "INSERT INTO t VALUES (7, 'a secret that the log has cut o", "INSERT INTO t VALUES (?, ?"),
        ("Query", 'INSERT INTO t VALUES ("a secret", 0xAB12, 1e5, 1.5E10)', "INSERT INTO t VALUES (?, ?, ?, ?)"),
        ("Query", 'INSERT INTO t VALUES (7, "a sec', "INSERT INTO t VALUES (?, ?"),
    ],
)
def test_a_statement_is_known_without_its_values(command: str, text: str, kind: str) -> None:
    assert round_trips.kind(command, text, double=True) == kind


def test_of_many_kinds_the_most_frequent_are_kept() -> None:
    kept = round_trips.frequent({f"SELECT {chr(97 + n % 26)}{n}": 0.005 for n in range(200)} | {"INSERT": 1.0})
    assert len(kept) == round_trips.MOST_KINDS + 1
    assert next(iter(kept)) == "INSERT"
    assert sum(kept.values()) == pytest.approx(2.0)


def test_a_slice_with_heavy_compiling_or_collecting_is_marked() -> None:
    zero: Any = dict.fromkeys(AgentSlice.__struct_fields__, 0)
    one = AgentSlice(**zero | {"seconds": 0.5, "jit_ms": 51, "gc_ms": 49, "connects": 1})

    class ServerPair:
        rest = None
        embedded = False
        agent_cpus: frozenset[int] = frozenset()
        server_cpus: frozenset[int] = frozenset()

    pair: Any = ServerPair()
    assert slice_marks.slice_marks(one, Counters(1), pair) == ["jit"]
    swapped = AgentSlice(**zero | {"seconds": 0.5, "jit_ms": 49, "gc_ms": 51, "connects": 1})
    assert slice_marks.slice_marks(swapped, Counters(1), pair) == ["gc"]


@pytest.mark.usefixtures("whole_java")
def test_every_sessions_machine_is_warm_before_it_is_measured(
    java_here: None, require_server: RequireServer, tmp_path: Path
) -> None:
    """Each session, not only the first, starts a new virtual machine and so begins by compiling."""
    del java_here
    require_server("mariadb", "10.11")
    spec = Spec(cells=[cell(version="10.11", rows=100)], sessions=2, time=6.0, latency=False, seed=5)
    result, directory = steady.measured(partial(pipeline.run, spec), tmp_path)
    assert result.cells[0].status == "ok", result.cells[0].reason
    recorded = list(run_directory.read_slices(directory))
    for number in (1, 2):
        of_session = [record for record in recorded if record.session == number and record.agent is not None]
        assert (of_session[0].phase, of_session[0].length) == ("warmup", session.COMPILE_SLICE)
        compiling = [
            record for record in of_session if record.phase == "warmup" and record.length == session.COMPILE_SLICE
        ]
        # Slices that took much longer than asked count with the time they took.
        spent = of_session[len(compiling)].started - of_session[0].started
        calm = [
            record.agent.jit_ms / 1e3 <= slice_marks.JAVA * record.agent.seconds for record in compiling if record.agent
        ]
        assert all(calm[-session.COMPILED_SLICES :]) or spent >= session.COMPILE_SHARE * spec.time
