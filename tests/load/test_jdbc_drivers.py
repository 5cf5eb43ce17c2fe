"""drivers: which version a name means, and the URL and properties of each family."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import pkcs12

from ciphercost.host import maven
from ciphercost.host.maven import Artifact
from ciphercost.host.pki import Pki
from ciphercost.load.jdbc import drivers, suites
from ciphercost.load.jdbc.drivers import DRIVERS, SERVICE, Target, TlsRequest, address, find
from ciphercost.model.errors import MissingServer, RunError, UsageError
from conftest import Require

HERE = Target("127.0.0.1", 3306, "shop")
CHECKED = TlsRequest(
    "verify-ca", ca="/tmp/ca.pem", store="/tmp/ca.p12", protocol="1.2", ciphers=("ECDHE-RSA-AES256-GCM-SHA384",)
)


@pytest.mark.parametrize(
    ("asked", "engine", "title"),
    [
        ("9.7.0", "mysql", "MySQL Connector/J 9.7.0"),
        ("9", "mysql", "MySQL Connector/J 9.7.0"),
        ("8.0", "mysql", "MySQL Connector/J 8.0.33"),
        ("5.1", "mariadb", "MySQL Connector/J 5.1.49"),
        ("3", "mysql", "MariaDB Connector/J 3.5.11"),
        ("newest", "mysql", "MySQL Connector/J 26.10.0"),
        ("", "mariadb", "MariaDB Connector/J 4.0.0"),
        ("", "postgresql", "PostgreSQL JDBC Driver 42.7.14"),
        ("6", "firebird", "Jaybird 6.0.5"),
    ],
)
def test_a_version_names_a_driver_of_its_engine(asked: str, engine: str, title: str) -> None:
    assert find(asked, engine).title == title


@pytest.mark.parametrize(
    ("asked", "engine", "words"),
    [("9.7.1", "mysql", "9.7.0"), ("5.1.6", "postgresql", "42.7.14"), ("", "sqlite", "mysql")],
)
def test_a_version_that_is_none_of_the_engines_is_refused_with_those_that_are(
    asked: str, engine: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        find(asked, engine)


def test_every_version_is_pinned_once() -> None:
    pins = [artifact.sha256 for driver in DRIVERS for artifact in driver.artifacts]
    assert len(set(pins)) == len(DRIVERS) == len({driver.title for driver in DRIVERS})
    assert all(len(pin) == 64 and set(pin) <= set("0123456789abcdef") for pin in pins)


@pytest.mark.parametrize(
    ("version", "plain", "required", "checked"),
    [
        ("5.1.6", "useSSL=false", "requireSSL=true useSSL=true", "verifyServerCertificate=true"),
        ("5.1.49", "useSSL=false", "enabledTLSProtocols=TLSv1.2", "enabledSSLCipherSuites=TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
        ("8.0.16", "sslMode=DISABLED", "enabledTLSProtocols=TLSv1.2 sslMode=REQUIRED", "trustCertificateKeyStoreUrl=file:///tmp/ca.p12"),
        ("9.7.0", "sslMode=DISABLED", "sslMode=REQUIRED", "tlsVersions=TLSv1.2 sslMode=VERIFY_CA"),
        ("2.7.15", "useSsl=false", "useSsl=true trustServerCertificate=true", "disableSslHostnameVerification=true serverSslCert=/tmp/ca.pem"),
        ("3.5.11", "sslMode=disable", "sslMode=trust", "sslMode=verify-ca enabledSslProtocolSuites=TLSv1.2"),
    ],
)  # fmt: skip
def test_each_version_is_told_in_its_own_words(version: str, plain: str, required: str, checked: str) -> None:
    driver = find(version, "mysql")
    for wish, words in ((TlsRequest(), plain), (TlsRequest("require"), required), (CHECKED, checked)):
        told = address(driver, HERE, wish)
        assert set(words.split()) <= {f"{name}={value}" for name, value in told.properties.items()}
        scheme = "mariadb" if driver.family == "mariadb" else "mysql"
        assert told.url == f"jdbc:{scheme}://127.0.0.1:3306/shop"


def test_what_a_driver_has_no_word_for_is_said() -> None:
    assert address(find("", "postgresql"), HERE, CHECKED).unsaid == ("protocol", "ciphers")
    assert address(find("5.1.6", "mysql"), HERE, CHECKED).unsaid == ("protocol", "ciphers")
    assert address(find("9.7.0", "mysql"), HERE, CHECKED).unsaid == ()
    assert drivers.machine_options(CHECKED, ()) == []
    assert drivers.machine_options(CHECKED, ("protocol", "ciphers")) == [
        "-Djdk.tls.client.protocols=TLSv1.2",
        "-Djdk.tls.client.cipherSuites=TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    ]


def test_h2s_driver_has_no_word_for_tls_but_its_url() -> None:
    driver = find("", "h2")
    plain, checked = address(driver, HERE, TlsRequest()), address(driver, HERE, CHECKED)
    assert (plain.url, plain.unsaid) == ("jdbc:h2:tcp://127.0.0.1:3306/./shop", ())
    assert (checked.url, checked.unsaid) == ("jdbc:h2:ssl://127.0.0.1:3306/./shop", ("protocol", "ciphers", "store"))
    options = drivers.machine_options(CHECKED, checked.unsaid)
    assert f"-Djavax.net.ssl.trustStore={CHECKED.store}" in options
    assert "-Dh2.enableAnonymousTLS=false" in options
    with pytest.raises(UsageError, match="always checks the server's certificate"):
        address(driver, HERE, TlsRequest("require"))


@pytest.mark.parametrize(
    "suite",
    [
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        "ECDHE-RSA-AES128-GCM-SHA256",
        "ECDHE-RSA-AES256-SHA384",
        "DHE-RSA-AES256-GCM-SHA384",
        "TLS_AES_256_GCM_SHA384",
    ],
)
def test_javas_name_of_a_suite_leads_back_to_openssls(suite: str) -> None:
    assert suites.openssl(suites.iana(suite)) == suite


def test_what_a_version_cannot_do_is_refused() -> None:
    for version, engine, wish, words in (
        ("5.1.49", "mysql", TlsRequest("verify-full", ca="a", store="b"), "does not check host names"),
        ("9.7.0", "mysql", TlsRequest("verify-ca", ca="a"), "needs the CA's certificate"),
        ("", "postgresql", TlsRequest("verify-full"), "needs the CA's certificate"),
        ("", "firebird", TlsRequest("verify-ca", ca="a"), "has no certificates"),
    ):
        with pytest.raises(UsageError, match=words):
            address(find(version, engine), HERE, wish)


def test_what_the_user_adds_wins() -> None:
    told = address(find("9.7.0", "mysql"), HERE, TlsRequest(), {"sslMode": "PREFERRED", "useLocalSessionState": "true"})
    assert told.properties["sslMode"] == "PREFERRED"
    assert told.properties["useLocalSessionState"] == "true"


def test_a_suite_has_a_name_in_java() -> None:
    assert suites.iana("ECDHE-ECDSA-CHACHA20-POLY1305") == "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"
    assert suites.iana("ECDHE-RSA-AES128-GCM-SHA256") == "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    assert suites.iana("ECDHE-RSA-AES256-SHA384") == "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384"
    assert suites.iana("TLS_AES_256_GCM_SHA384") == "TLS_AES_256_GCM_SHA384"
    with pytest.raises(UsageError, match="cipher suite ROT13"):
        suites.iana("ROT13")


def test_jars_come_in_their_order_once_and_only_as_they_are_pinned(
    require: Require, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    require(maven.maven_client(), "no mvn here: install Maven")
    monkeypatch.setenv("CIPHERCOST_CACHE", str(tmp_path))
    pinned = [find(version, "mysql").artifacts[0] for version in ("2.7.15", "5.1.6")]
    with pytest.raises(MissingServer, match="not fetched yet"):
        maven.maven_jars("jdbc", "two", pinned, fetch=False)
    jars = maven.maven_jars("jdbc", "two", pinned)
    assert [path.name for path in jars] == ["0-mariadb-java-client-2.7.15.jar", "1-mysql-connector-java-5.1.6.jar"]
    assert maven.maven_jars("jdbc", "two", pinned, fetch=False) == jars
    other = [pinned[0], Artifact(pinned[1].coordinate, "0" * 64)]
    with pytest.raises(RunError, match="has the wrong SHA-256"):
        maven.maven_jars("jdbc", "two", other)
    assert len(list((tmp_path / "jdbc").glob("two-*"))) == 1


def jar(path: Path, **entries: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in entries.items():
            archive.writestr({"service": SERVICE, "manifest": "META-INF/MANIFEST.MF"}.get(name, name), text)
    return path


def test_a_jar_of_the_users_says_what_it_is(tmp_path: Path) -> None:
    service = "# a driver\ncom.mysql.cj.jdbc.Driver\n"
    driver = drivers.of_file(jar(tmp_path / "my.jar", service=service, manifest="Bundle-Version: 8.4.1\n"))
    assert (driver.title, driver.driver_class) == ("MySQL Connector/J 8.4.1", "com.mysql.cj.jdbc.Driver")
    assert driver.jars() == [tmp_path / "my.jar"]
    assert drivers.of_file(jar(tmp_path / "x-3.1.4.jar", service="org.mariadb.jdbc.Driver")).version == "3.1.4"


def test_a_jar_without_a_driver_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="contains no JDBC driver"):
        drivers.of_file(jar(tmp_path / "empty.jar", manifest=""))
    with pytest.raises(UsageError, match="which ciphercost does not support"):
        drivers.of_file(jar(tmp_path / "other.jar", service="oracle.jdbc.OracleDriver"))
    (tmp_path / "text.jar").write_text("no jar")
    for name in ("text.jar", "missing.jar"):
        with pytest.raises(UsageError, match="as a jar: "):
            drivers.of_file(tmp_path / name)


def test_a_trust_store_holds_the_ca(tmp_path: Path) -> None:
    pki = Pki(tmp_path / "pki")
    store = drivers.trust_store(pki.ca, tmp_path / "ca.p12")
    loaded = pkcs12.load_pkcs12(store.read_bytes(), drivers.STORE_PASSWORD.encode())
    assert loaded.key is None
    assert [entry.certificate.subject.rfc4514_string() for entry in loaded.additional_certs] == [
        "CN=ciphercost test CA"
    ]
