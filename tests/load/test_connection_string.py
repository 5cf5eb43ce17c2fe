"""Connection strings: every parameter is honoured, named, or refused with the reason, and never dropped silently."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ciphercost.host.client_identity import Named
from ciphercost.load.connection_string import (
    ConnectionString,
    Place,
    firebird,
    jdbc,
    libpq,
    mysql,
    option_files,
    pg_service,
)
from ciphercost.model.errors import UsageError
from ciphercost.model.secret import Secret, reveal

READERS = {
    "postgresql": libpq.read,
    "mysql": lambda url: mysql.read(url, "mysql"),
    "mariadb": lambda url: mysql.read(url, "mariadb"),
    "firebird": firebird.read,
}
HONOURED = {"postgresql": (*libpq.HONOURED, "ssl"), "firebird": ("wire_crypt",)}
HONOURED["mysql"] = HONOURED["mariadb"] = mysql.HONOURED
KNOWN = {"postgresql": libpq.KNOWN, "mysql": mysql.KNOWN, "mariadb": mysql.KNOWN, "firebird": firebird.KNOWN}


@pytest.fixture(autouse=True, scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home directory and an environment that say nothing."""
    place = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(place))
        patch.setattr(option_files, "SYSTEM_FILES", ())
        patch.setattr(pg_service, "SYSTEM_DIRECTORIES", ())
        for name in (*libpq.ENVIRONMENT, "PGSERVICE", "PGSERVICEFILE", "PGSYSCONFDIR", "MYSQL_HOME", "MYSQL_PWD"):
            patch.delenv(name, raising=False)
        yield place


@given(data=some.data())
def test_no_parameter_is_dropped_silently(data: some.DataObject) -> None:
    engine = data.draw(some.sampled_from(sorted(READERS)))
    name = data.draw(some.sampled_from(sorted(set(KNOWN[engine]))) | some.text(min_size=1, max_size=12))
    value = data.draw(
        some.sampled_from(["1", "0", "require", "disable", "x", "/nowhere/x.pem"]) | some.text(max_size=8)
    )
    written = f"{quote(name, safe='')}={quote(value, safe='')}"
    plain = READERS[engine](f"{engine}://me@db/shop")
    asked = refusal = None
    try:
        asked = READERS[engine](f"{engine}://me@db/shop?{written}")
    except UsageError as error:
        refusal = str(error)
    if asked is None:
        assert refusal
        assert name in refusal or "holds a password" in refusal or "sslmode" in refusal
        return
    if not value and engine == "postgresql":
        return  # to libpq the same as not given
    named = any(note.startswith(f"{name}=") for note in asked.notes)
    assert named or name.lower().replace("_", "-") in {option.replace("_", "-") for option in HONOURED[engine]}
    assert named or asked != plain or value in ("", "5432", "3306", "me", "db") or name in ("servicefile", "ssl-crl")


@pytest.mark.parametrize("engine", sorted(READERS))
def test_a_refusal_names_the_parameter(engine: str) -> None:
    with pytest.raises(UsageError, match="unknown parameter 'frobnicate'"):
        READERS[engine](f"{engine}://me@db/shop?frobnicate=1")
    with pytest.raises(UsageError, match="'frobnicate' has no value"):
        READERS[engine](f"{engine}://me@db/shop?frobnicate")
    for url in (f"{engine}://me:hunter2@db/shop", f"{engine}://me@db/shop?password=hunter2"):
        with pytest.raises(UsageError, match="holds a password") as caught:
            READERS[engine](url)
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(("name", "reason"), [*libpq.REFUSED.items()])
def test_what_libpq_can_do_and_ciphercost_can_not_is_refused_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        libpq.read(f"postgresql://h/d?{name}=x")
    assert f"{name}=x" in str(caught.value)
    assert reason in str(caught.value)


@pytest.mark.parametrize(("name", "reason"), [*mysql.REFUSED.items()])
def test_what_mysqls_clients_can_do_and_ciphercost_can_not_is_refused_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        mysql.read(f"mysql://h/d?{name}=x", "mysql")
    assert reason in str(caught.value)


def places(asked: ConnectionString) -> list[str]:
    return [str(place) for place in asked.places]


def test_hosts_ports_and_addresses_are_as_libpq_reads_them() -> None:
    assert places(libpq.read("postgresql://a,b:1,[::1]:2/d")) == ["a:5432", "b:1", "[::1]:2"]
    assert places(libpq.read("postgresql:///d?host=a,b&port=7")) == ["a:7", "b:7"]
    assert libpq.read("postgresql://me@a:1/d?host=b").urls == ("postgresql://me@b:1/d",)
    assert libpq.read("postgresql://a/d?hostaddr=10.0.0.1").places == (Place("a", 5432, "10.0.0.1"),)
    assert libpq.read("postgresql://%2Frun%2Fpg/d").local.startswith("/run/pg: a Unix-domain socket")
    asked = libpq.read("postgresql://me@a,b:6/d?sslmode=require&options=-c%20x%3D1")
    assert [libpq.read(url).places for url in asked.urls] == [(place,) for place in asked.places]
    assert {libpq.read(url).level for url in asked.urls} == {"require"}
    for wrong, words in (
        ("postgresql://a,b/d?port=1,2,3", "port has 3 values for 2 servers"),
        ("postgresql://a/d?hostaddr=1.1.1.1,2.2.2.2", "host names 1 servers and hostaddr 2"),
        ("postgresql:///d?hostaddr=1.1.1.1&sslmode=verify-full", "needs the server's name"),
        ("postgresql://a/d?ssl_max_protocol_version=TLSv1.1", "leaves no version of TLS"),
        ("postgresql://a/d?sslmode=require&sslrootcert=system", "libpq refuses this"),
        ("postgresql://a/d?sslmode=requird", "did you mean 'require'"),
        ("postgresql://a/d?ssl=false", "ssl=true"),
    ):
        with pytest.raises(UsageError, match=words):
            libpq.read(wrong)


def test_a_root_certificate_in_its_usual_place_makes_require_verify(home: Path) -> None:
    assert libpq.read("postgresql://h/d?sslmode=require").level == "require"
    directory = home / ".postgresql"
    directory.mkdir()
    root = directory / "root.crt"
    root.write_text("a root certificate")
    try:
        asked = libpq.read("postgresql://h/d?sslmode=require")
        assert (asked.level, asked.ca) == ("verify-ca", str(root))
        assert "which libpq treats like sslmode=verify-ca" in asked.said
        assert libpq.read("postgresql://h/d?sslmode=verify-full").ca == str(root)
        assert libpq.read("postgresql://h/d?sslmode=prefer").level == "prefer"
        assert libpq.read("postgresql://h/d?sslrootcert=system").level == "verify-full"
    finally:
        root.unlink()
        directory.rmdir()


def test_a_service_and_the_environment_complete_the_string(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = home / "services.conf"
    file.write_text(
        "# ours\n[shop]\nhost=db.example\nport=6000\nsslmode=disable\nuser=service\npassword=hunter2\n\n[other]\nhost=x\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    monkeypatch.setenv("PGHOST", "elsewhere")
    monkeypatch.setenv("PGSSLMODE", "require")
    asked = libpq.read("postgresql:///?service=shop")
    assert (places(asked), asked.user, asked.level) == (["db.example:6000"], "service", "disable")
    assert asked.said == "sslmode=disable of service shop"
    assert reveal(asked.password) == "hunter2"
    assert "hunter2" not in repr(asked)
    assert any("host=db.example of service shop" in note for note in asked.notes)
    assert libpq.read("postgresql://here/?service=shop&sslmode=prefer").level == "prefer"
    asked = libpq.read("postgresql:///d")
    assert (places(asked), asked.level, asked.said) == (["elsewhere:5432"], "require", "PGSSLMODE=require")
    monkeypatch.setenv("PGSERVICE", "other")
    assert places(libpq.read("postgresql:///d")) == ["x:5432"]
    monkeypatch.setenv("PGSERVICE", "shopp")
    with pytest.raises(UsageError, match=r"service=shopp: .* did you mean 'shop'"):
        libpq.read("postgresql:///d")
    file.write_text("[shop]\nldap://directory/x\n")
    with pytest.raises(UsageError, match=r"line 2: .*LDAP"):
        libpq.read("postgresql:///d?service=shop")
    file.write_text("[shop]\nsslmod=require\n")
    with pytest.raises(UsageError, match=r"service shop: unknown parameter 'sslmod'"):
        libpq.read("postgresql:///d?service=shop")
    monkeypatch.delenv("PGSERVICE")
    monkeypatch.setenv("PGSSLCERT", "mine.pem")
    assert libpq.read("postgresql://h/d").identity == Named("mine.pem", "", "sslcert", "sslkey")
    assert libpq.read("postgresql://h/d?sslmode=disable").identity is None
    assert libpq.read("postgresql://h/d?sslcertmode=disable").identity is None
    identity = libpq.read("postgresql://h/d?sslcert=a.pem&sslkey=a.key").identity
    assert identity == Named("a.pem", "a.key", "sslcert", "sslkey")
    file.write_text("[shop]\nsslcert=s.pem\nsslkey=s.key\nsslpassword=sesame\n")
    monkeypatch.delenv("PGSSLCERT")
    of_service = libpq.read("postgresql:///d?service=shop")
    assert of_service.identity == Named("s.pem", "s.key", "sslcert", "sslkey", Secret("sesame"))
    assert "sesame" not in str(of_service)
    with pytest.raises(UsageError, match="set CIPHERCOST_KEY_PASSPHRASE") as refused:
        libpq.read("postgresql://h/d?sslcert=a.pem&sslpassword=sesame")
    assert "sesame" not in str(refused.value)


@pytest.mark.parametrize(
    ("engine", "query", "level"),
    [
        ("mysql", "ssl-mode=disabled", "disable"),
        ("mysql", "SSL_MODE=Preferred", "prefer"),
        ("mysql", "ssl-mode=REQUIRED&ssl-ca=/x", "require"),
        ("mysql", "ssl-mode=VERIFY_CA", "verify-ca"),
        ("mysql", "ssl-mode=VERIFY_IDENTITY", "verify-full"),
        ("mysql", "ssl-ca=/x", "verify-ca"),
        ("mysql", "", ""),
        ("mariadb", "ssl=0", "disable"),
        ("mariadb", "ssl=off&ssl-verify-server-cert=1", "disable"),
        ("mariadb", "ssl=1", "prefer"),
        ("mariadb", "ssl-ca=/x", "prefer"),
        ("mariadb", "ssl-verify-server-cert=1", "verify-full"),
        ("mariadb", "ssl=1&ssl-verify-server-cert=0", "prefer"),
        ("mariadb", "", ""),
    ],
)
def test_the_options_of_mysql_and_mariadb_mean_what_their_clients_make_of_them(
    engine: str, query: str, level: str
) -> None:
    assert mysql.read(f"{engine}://h/d?{query}", engine).level == level


def test_versions_of_tls_are_honoured() -> None:
    assert mysql.read("mysql://h/d?tls-version=TLSv1.2,TLSv1.3", "mysql").tls == {"tls_min": "1.2", "tls_max": "1.3"}
    assert mysql.read("mysql://h/d?tls-versions=[TLSv1.3]", "mysql").tls == {"tls_min": "1.3", "tls_max": "1.3"}
    assert libpq.read("postgresql://h/d?ssl_min_protocol_version=tlsv1.3").tls == {"tls_min": "1.3"}
    for wrong in ("tls-version=TLSv1.1,TLSv1.3", "tls-version=SSLv3", "ssl-mode=MAYBE", "ssl=perhaps"):
        with pytest.raises(UsageError, match=wrong.partition("=")[0]):
            mysql.read(f"mysql://h/d?{wrong}", "mysql")


def test_option_files_decide_as_they_do_for_the_clients(home: Path) -> None:
    file = home / ".my.cnf"
    more = home / "more"
    more.mkdir()
    (more / "tls.cnf").write_text("[client]\nssl_mode=DISABLED\n[mysqldump]\nssl-cert=x\n")
    (more / "ignored.txt").write_text("[client]\nssl-mode=REQUIRED\n")
    file.write_text(f"!includedir {more}\n[client]\nhost=db\nport=4000\n[client-mariadb]\nskip-ssl\n")
    try:
        asked = mysql.read("mysql://", "mysql")
        assert (places(asked), asked.level) == (["db:4000"], "disable")
        assert asked.said == f"ssl-mode=DISABLED in {more / 'tls.cnf'}"
        assert asked.said in asked.notes[0]
        assert mysql.read("mysql://h/?ssl-mode=REQUIRED", "mysql").level == "require"
        (more / "tls.cnf").unlink()
        assert mysql.read("mysql://h/", "mysql").level == ""
        assert mysql.read("mariadb://h/", "mariadb").said == f"ssl=0 in {file}"
        file.write_text("[client]\nssl-cert=/me.pem\nssl-key=/me.key\n")
        assert mysql.read("mysql://h/", "mysql").identity == Named("/me.pem", "/me.key", "ssl-cert", "ssl-key")
        assert mysql.read("mysql://h/?ssl-mode=DISABLED", "mysql").identity is None
        file.write_text("[client]\nssl-cert=/me.pem\nssl-key=/me.key\nssl-passphrase=sesame\n")
        asked = mysql.read("mariadb://h/", "mariadb")
        assert asked.identity == Named("/me.pem", "/me.key", "ssl-cert", "ssl-key", Secret("sesame"))
        assert "sesame" not in str(asked)
        file.write_text("[client]\nsocket=/run/mysqld.sock\nprotocol=socket\n")
        assert mysql.read("mysql://localhost/", "mysql").local.startswith("/run/mysqld.sock: a Unix-domain socket")
        assert mysql.read("mysql://localhost/?protocol=tcp", "mysql").local == ""
        with pytest.raises(UsageError, match="goes with localhost and socket=FILE only"):
            mysql.read("mysql://db/", "mysql")
    finally:
        file.unlink()


@pytest.mark.parametrize(
    ("url", "place", "local"),
    [
        ("mysql:///d?socket=/run/s", Place("127.0.0.1", 3306, socket="/run/s"), True),
        ("mysql://me@localhost:3307/d?socket=/run/s", Place("localhost", 3307, socket="/run/s"), True),
        ("mysql://me@localhost/d?socket=/run/s&protocol=tcp", Place("localhost", 3306), False),
        ("mysql://me@127.0.0.1/d?socket=/run/s", Place("127.0.0.1", 3306), False),
        ("mysql://me@db.example:1/d?socket=/run/s", Place("db.example", 1), False),
    ],
)
def test_a_socket_is_for_what_is_unencrypted_and_the_host_for_the_rest(url: str, place: Place, local: bool) -> None:
    asked = mysql.read(url, "mysql")
    assert (asked.places, asked.plain_socket, bool(asked.local)) == ((place,), "/run/s", local)
    asked.needs_network()  # a run has both
    (again,) = asked.urls
    assert mysql.read(again, "mysql").places == asked.places
    assert local == ("localhost only" not in " ".join(asked.notes))


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("mysql://a,b/d?socket=/run/s", "name one host"),
        ("mysql:///d?socket=run/s", "write the whole path"),
        ("mysql:///d?socket=", "write the whole path"),
        ("mysql://h/d?socket=/run/s&protocol=socket", "goes with localhost and socket=FILE only"),
    ],
)
def test_a_socket_that_can_not_be_meant_is_refused(url: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        mysql.read(url, "mysql")


def test_postgresql_has_no_tls_over_a_socket_so_a_run_refuses_it_and_says_what_to_write() -> None:
    asked = libpq.read("postgresql://me@/shop?host=/run/postgresql&port=5433")
    with pytest.raises(UsageError, match="PostgreSQL has no TLS there") as refused:
        asked.needs_network()
    assert "name a host: postgresql://me@127.0.0.1:5433/shop" in str(refused.value)


def test_a_name_that_means_a_socket_to_mysqls_own_clients_is_said() -> None:
    (note,) = mysql.read("mysql://localhost/d", "mysql").notes
    assert note.startswith("localhost: MySQL's own clients")
    assert "Unix-domain socket" in note
    assert mysql.read("mysql://127.0.0.1/d", "mysql").notes == ()
    assert mysql.read("mysql://localhost/d?protocol=tcp", "mysql").notes == ()


# ── hosts of JDBC URLs ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("url", "urls"),
    [
        ("jdbc:mysql://h/shop?a=b", ["jdbc:mysql://h/shop?a=b"]),
        ("jdbc:mysql://address=(host=h)(port=3307)/shop", ["jdbc:mysql://h:3307/shop"]),
        ("jdbc:mysql://address=(host=::1)(port=1)(user=me)/d?x=y", ["jdbc:mysql://[::1]:1/d?x=y&user=me"]),
        ("jdbc:mysql://(host=a,port=1,sslMode=REQUIRED)/d", ["jdbc:mysql://a:1/d?sslMode=REQUIRED"]),
        ("jdbc:mysql:loadbalance://h1,h2:7/shop", ["jdbc:mysql://h1:3306/shop", "jdbc:mysql://h2:7/shop"]),
        ("jdbc:mysql:replication://h1/shop", ["jdbc:mysql://h1:3306/shop"]),
        ("jdbc:mysql://h1,address=(host=h2)(port=2)/", ["jdbc:mysql://h1:3306/", "jdbc:mysql://h2:2/"]),
        ("jdbc:mysql://[h1,h2]/d", ["jdbc:mysql://h1:3306/d", "jdbc:mysql://h2:3306/d"]),
        ("jdbc:mariadb:sequential://h1:1,h2/d?sslMode=trust", ["jdbc:mariadb://h1:1/d?sslMode=trust", "jdbc:mariadb://h2:3306/d?sslMode=trust"]),
        ("jdbc:mariadb://address=(host=h)(port=1)(type=primary)/d", ["jdbc:mariadb://h:1/d"]),
        ("jdbc:postgresql://h1:1,h2/shop?ssl=true", ["jdbc:postgresql://h1:1/shop?ssl=true", "jdbc:postgresql://h2:5432/shop?ssl=true"]),
        ("jdbc:postgresql:shop?user=me", ["jdbc:postgresql://localhost:5432/shop?user=me"]),
        ("jdbc:postgresql:/", ["jdbc:postgresql://localhost:5432/"]),
        ("jdbc:postgresql:///shop", ["jdbc:postgresql://localhost:5432/shop"]),
        ("jdbc:firebirdsql://h:1//d.fdb", ["jdbc:firebirdsql://h:1//d.fdb"]),
        ("jdbc:postgresql://h/d?socketFactory=com.example.Proxy", ["jdbc:postgresql://h/d?socketFactory=com.example.Proxy"]),
        ("jdbc:firebirdsql:h/1:/d.fdb?x=y", ["jdbc:firebirdsql://h:1//d.fdb?x=y"]),
    ],
)  # fmt: skip
def test_every_form_of_a_jdbc_url_becomes_a_url_for_each_host(url: str, urls: list[str]) -> None:
    assert [single.url for single in jdbc.singles(url)] == urls


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("jdbc:mysql+srv://h/d", "SRV records"),
        ("jdbc:mysql:replication+srv://h/d", "SRV records"),
        ("jdbc:mysql:loadbalanced://h/d", "did you mean 'loadbalance'"),
        ("jdbc:mysql://address=(port=1)/d", "form that is not supported"),
        ("jdbc:mysql://address=(host=h)(port=many)/d", "is not a number"),
        ("jdbc:mariadb://address=(host=h)(localSocket=/x)/d", "Unix-domain socket"),
        ("jdbc:mariadb://localhost/d?user=me&localSocket=/run/s", "remove localSocket, and name a host"),
        ("jdbc:mysql://h/d?socketFactory=org.newsclub.net.mysql.AFUNIXDatabaseSocketFactory", "remove socketFactory"),
        (
            "jdbc:postgresql://h/d?socketFactory=org.newsclub.net.unix.AFUNIXSocketFactory$FactoryArg",
            "remove socketFactory",
        ),
        ("jdbc:mysql://address=(protocol=pipe)(host=h)/d", "a local connection"),
        ("jdbc:h2:tcp://h/d", "H2"),
        ("jdbc:firebirdsql:embedded:/d.fdb", "in this process"),
        ("jdbc:oracle:thin:@h", "no engine has this JDBC scheme"),
        ("jdbc:", "no engine has this JDBC scheme"),
    ],
)
def test_a_jdbc_url_that_can_not_be_examined_is_refused_in_one_line(url: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        jdbc.singles(url)
    assert "\n" not in str(caught.value)


@given(text=some.text(some.sampled_from("h1,:/?()=[]@;&. address"), max_size=25))
def test_no_jdbc_url_is_an_internal_error(text: str) -> None:
    for begin in ("jdbc:mysql://", "jdbc:mariadb:replication://", "jdbc:postgresql:", "jdbc:firebirdsql:"):
        with contextlib.suppress(UsageError):
            assert jdbc.singles(begin + text)
