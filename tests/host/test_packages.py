"""packages: servers come through the machine's own package clients, complete or not at all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from ciphercost import engines
from ciphercost.engines import StartRequest
from ciphercost.engines.postgresql import ARTIFACTS, NEWEST, SUITES, version_of
from ciphercost.host import (
    apt,
    debian,
    maven,
    package_cache,
    package_client_errors,
    run_ownership,
    supervisor,
    versions,
)
from ciphercost.host.installation import Installation
from ciphercost.host.maven import Artifact
from ciphercost.host.package_cache import Receipt, Work
from ciphercost.model import run_directory
from ciphercost.model.errors import MissingServer, RunError, UsageError
from conftest import Require
from enterable import enterable
from processes import wait_for


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("CIPHERCOST_CACHE", str(path))
    return path


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Work]:
    (tmp_path / "work").mkdir()
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
        yield Work(tmp_path / "work", tmp_path / "final", run_supervisor)


def makes_a_cluster(installation: Installation) -> set[Path]:
    """Run initdb and the server in place, as the user that servers run as. Returns the libraries that the server has
    loaded.
    """
    engine = engines.get("postgresql")
    run_id = run_directory.new_id()
    with supervisor.Supervisor(run_id) as run_supervisor:
        directory = supervisor.scratch(run_id, run_supervisor) / "data"
        engine.initialise(installation, directory, run_supervisor)
        server = engine.start(StartRequest(installation, directory, run_supervisor, logs=directory.parent))
        assert "OpenSSL" in server.library
        mapped = Path(f"/proc/{server.pid}/maps").read_text()
        server.stop()
    assert run_supervisor.problems == []
    return {Path(name) for name in re.findall(r"(/\S+\.so[\d.]*)\n", mapped)}


# ── the cache ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_kept_root_is_made_once_and_found_again(cache: Path) -> None:
    roots: list[Path] = []

    def make(work: Work) -> Receipt:
        roots.append(work.path)
        assert not work.final.exists()
        (work.path / "bin").mkdir(mode=0o700)
        return Receipt("thing", "1.2", "maven", "bin")

    first = package_cache.keep("thing", "1-maven", make)
    assert package_cache.keep("thing", "1-maven", make) == first
    assert first == Installation("thing", "1.2", "maven", str(cache / "thing" / "1-maven" / "bin"))
    assert len(roots) == 1
    assert package_cache.installed("thing") == [first]
    assert (cache / "thing" / "1-maven" / "bin").stat().st_mode & 0o777 == 0o755


@pytest.mark.usefixtures("private_umask")
def test_servers_get_to_their_programs_whatever_the_umask_is(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path_factory.mktemp("above") / "new" / "cache"
    monkeypatch.setenv("CIPHERCOST_CACHE", str(cache))
    kept = package_cache.keep("thing", "1", lambda work: Receipt("thing", "1", "maven", "."))
    enterable(cache.parents[1])
    assert run_ownership.out_of_reach(Path(kept.location)) == ""
    for place in (cache, cache / "thing", cache / "thing" / "1"):
        assert place.stat().st_mode & 0o777 == 0o755, place


def test_a_cache_that_servers_can_not_get_to_is_refused_before_anything_is_fetched(
    cache: Path, require: Require
) -> None:
    require(os.geteuid() == 0, "needs root: another user's servers run as that user")
    enterable(cache.parent)
    cache.chmod(0o700)
    with pytest.raises(
        UsageError, match=rf"nobody can't reach {cache}: {cache} is closed to others .`chmod o\+x {cache}` opens it"
    ):
        engines.get("valkey").install()
    assert list(cache.iterdir()) == []


def test_two_simultaneous_requests_fetch_once(cache: Path) -> None:
    roots: list[Path] = []

    def make(work: Work) -> Receipt:
        roots.append(work.path)
        return Receipt("thing", "1", "maven", ".")

    threads = [threading.Thread(target=package_cache.keep, args=("thing", "1", make)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(roots) == 1


def test_a_failed_fetch_leaves_nothing_and_can_be_retried(cache: Path) -> None:
    def breaks(work: Work) -> Receipt:
        (work.path / "half").touch()
        raise MissingServer("the network is gone")

    with pytest.raises(MissingServer, match="the network is gone"):
        package_cache.keep("thing", "1", breaks)
    assert package_cache.installed("thing") == []
    assert [path.name for path in (cache / "thing").iterdir()] == [".lock-1"]
    assert package_cache.keep("thing", "1", lambda work: Receipt("thing", "1", "maven", ".")).version == "1"


def test_an_install_that_is_killed_ends_its_package_client_and_leaves_nothing(cache: Path, tmp_path: Path) -> None:
    script = (
        "import os; from pathlib import Path; from ciphercost.host import package_cache\n"
        "def make(work):\n"
        "    print(work.path, flush=True)\n"
        "    work.run(['sh', '-c', 'echo $$ > pid; exec sleep 1000'], 'failed')\n"
        "package_cache.keep('thing', '1', make)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as installer:
        assert installer.stdout is not None
        path = Path(installer.stdout.readline().strip())
        wait_for("the client", lambda: (path / "pid").exists() and (path / "pid").read_text().endswith("\n"))
        client = int((path / "pid").read_text())
        installer.kill()
    wait_for("the client to end", lambda: not run_ownership.start_time(client))
    wait_for("its directory to go", lambda: not path.exists())
    assert package_cache.keep("thing", "1", lambda work: Receipt("thing", "1", "maven", ".")).version == "1"


def test_a_cache_that_can_not_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CIPHERCOST_CACHE", str(tmp_path / "file"))
    with pytest.raises(UsageError, match="Set CIPHERCOST_CACHE"):
        package_cache.keep("thing", "1", lambda work: Receipt("thing", "1", "maven", "."))


def test_versions_sort_by_number() -> None:
    assert sorted(["9.6", "17.10", "17.9"], key=versions.version_key) == ["9.6", "17.9", "17.10"]


def test_no_registry_is_named_in_the_code() -> None:
    named = re.compile(r"https?://[a-z0-9]|\b[\w.-]+\.(?:org|com|io)/")
    for path in (*Path(package_cache.__file__).parent.glob("*.py"), *Path(engines.__file__).parent.glob("*.py")):
        assert not named.search(path.read_text()), path


# ── Maven ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_mvn_the_message_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Work
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingServer, match="apt-get install maven"):
        maven.fetch_jar(next(iter(ARTIFACTS.values())), work)


def test_content_with_a_wrong_checksum_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Work
) -> None:
    client = tmp_path / "mvn"
    client.write_text(
        '#!/bin/sh\nfor arg; do case $arg in -DoutputDirectory=*) echo evil > "${arg#*=}/x.jar";; esac; done\n'
    )
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(RunError, match="has the wrong SHA-256"):
        maven.fetch_jar(Artifact("group:artifact:1", "0" * 64), work)


def test_mvns_error_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Work) -> None:
    client = tmp_path / "mvn"
    client.write_text("#!/bin/sh\necho '[INFO] noise'; echo '[ERROR] no such artifact'; exit 1\n")
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(MissingServer, match=r"group:artifact:1: \[ERROR\] no such artifact"):
        maven.fetch_jar(Artifact("group:artifact:1", "0" * 64), work)


MVN_TRUST = """\
[ERROR] Plugin org.apache.maven.plugins:maven-dependency-plugin:2.8 or one of its dependencies could not be resolved: Failed to read \
artifact descriptor for org.apache.maven.plugins:maven-dependency-plugin:jar:2.8: Could not transfer artifact x from/to central: PKIX \
path building failed: sun.security.provider.certpath.SunCertPathBuilderException: unable to find valid certification path -> [Help 1]
org.apache.maven.plugin.PluginResolutionException: Plugin org.apache.maven.plugins:maven-dependency-plugin:2.8 could not be resolved
    at org.apache.maven.plugin.internal.DefaultPluginDependenciesResolver.resolve (DefaultPluginDependenciesResolver.java:131)
Caused by: org.apache.maven.wagon.TransferFailedException: transfer failed for x.pom
    at org.apache.maven.wagon.providers.http.wagon.shared.AbstractHttpClientWagon.fillInputData (AbstractHttpClientWagon.java:1173)
Caused by: java.security.InvalidAlgorithmParameterException: the trustAnchors parameter must be non-empty
    at java.security.cert.PKIXParameters.setTrustAnchors (PKIXParameters.java:200)
[ERROR]
[ERROR] Re-run Maven using the -X switch to enable full debug logging.
[ERROR] [Help 1] PluginResolutionException
"""
MMDEBSTRAP = """\
I: running apt-get update...
Err:1 proto://host.example/debian trixie InRelease
  Could not connect to host.example:9 (127.0.0.1). - connect (111: Connection refused)
Reading package lists...
E: Failed to fetch proto://host.example/debian/dists/trixie/InRelease  Could not connect to host.example:9
E: Some index files failed to download. They have been ignored, or old ones used instead.
E: mmdebstrap failed to run
"""


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        (MVN_TRUST, f"the trustAnchors parameter must be non-empty\n{package_client_errors.UNTRUSTED}"),
        (
            MMDEBSTRAP,
            "E: Failed to fetch proto://host.example/debian/dists/trixie/InRelease  Could not connect to host.example:9",
        ),
        ("one\ntwo\n\nthree\nfour\nfive\n", "two\nthree\nfour\nfive"),
        ("[ERROR] " + "a" * 1000 + ": the cause", None),
        ("", ""),
    ],
    ids=["mvn", "mmdebstrap", "neither", "long", "nothing"],
)
def test_shows_the_cause_from_a_package_clients_output(output: str, cause: str | None) -> None:
    shown = package_client_errors.decisive(output)
    if cause is None:
        assert len(shown) < package_client_errors.LONGEST + 10
        assert shown.endswith(": the cause")
    else:
        assert shown == cause


def test_a_real_mvn_without_a_repository_reports_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Work, require: Require
) -> None:
    client = maven.maven_client()
    require(client, "mvn (Debian: apt-get install maven)")
    settings = "<settings><mirrors><mirror><id>m</id><mirrorOf>*</mirrorOf><url>{}</url></mirror></mirrors></settings>"
    (tmp_path / "settings.xml").write_text(settings.format("http://127.0.0.1:9/none"))
    wrapper = tmp_path / "mvn"
    wrapper.write_text(f'#!/bin/sh\nexec {client} -s {tmp_path}/settings.xml -Dmaven.repo.local={tmp_path}/m2 "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setattr(maven, "maven_client", lambda: str(wrapper))
    with pytest.raises(MissingServer, match="Connection refused"):
        maven.fetch_jar(next(iter(ARTIFACTS.values())), work)


def test_an_archive_in_a_jar_is_unpacked_with_its_links_and_modes(tmp_path: Path) -> None:
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as tar:
        member = tarfile.TarInfo("bin/postgres")
        member.mode, member.size = 0o755, 4
        tar.addfile(member, BytesIO(b"prog"))
        link = tarfile.TarInfo("lib/libpq.so")
        link.type, link.linkname = tarfile.SYMTYPE, "libpq.so.5"
        tar.addfile(link)
    (tmp_path / "download").mkdir()
    with zipfile.ZipFile(tmp_path / "download" / "x.jar", "w") as jar:
        jar.writestr("postgres-linux.txz", packed.getvalue())
    maven.unpack_txz_in_jar(tmp_path / "download" / "x.jar", tmp_path)
    assert os.access(tmp_path / "bin" / "postgres", os.X_OK)
    assert (tmp_path / "lib" / "libpq.so").readlink() == Path("libpq.so.5")
    assert not (tmp_path / "download").exists()


def test_postgresql_comes_from_maven_and_runs(cache: Path, require: Require, capfd: pytest.CaptureFixture[str]) -> None:
    require(maven.maven_client(), "mvn (Debian: apt-get install maven)")
    engine = engines.get("postgresql")
    enterable(cache)
    installation = engine.install(NEWEST, "maven")
    assert installation.version.startswith(f"{NEWEST}.")
    captured = capfd.readouterr()
    assert "with mvn" in captured.err
    assert captured.out == ""
    assert engine.install(NEWEST, "maven") == installation
    assert "with mvn" not in capfd.readouterr().err, "the second time it is there"
    assert installation in list(engine.available())
    makes_a_cluster(installation)


# ── Debian ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_mirror_is_the_hosts_or_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(debian.MIRROR, "file:/somewhere/debian")
    assert debian.mirror() == "file:/somewhere/debian"
    monkeypatch.delenv(debian.MIRROR)
    apt = tmp_path / "apt-get"
    apt.write_text("#!/bin/sh\necho proto://security.example/debian-security/\necho proto://host.example/debian/\n")
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert debian.mirror() == "proto://host.example/debian/"
    apt.write_text("#!/bin/sh\n")
    with pytest.raises(MissingServer, match=f"Set {debian.MIRROR}"):
        debian.mirror()


def test_with_neither_mmdebstrap_nor_apt_the_message_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Work
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingServer, match=r"apt-get install mmdebstrap.*apt-get, apt-cache, apt-config, dpkg-deb"):
        debian.unpack_suite("trixie", ["postgresql-17"], work)
    with pytest.raises(MissingServer, match="only Debian and its relatives"):
        debian.of_release(work)


def test_a_debian_suite_is_fetched_without_mmdebstrap_and_runs_in_place(
    cache: Path, monkeypatch: pytest.MonkeyPatch, require: Require
) -> None:
    monkeypatch.setattr(debian, "mmdebstrap_possible", lambda: False)
    require(not debian.debian_possible(), debian.debian_possible())
    enterable(cache)
    installation = engines.get("nginx").install("1.22", "debian")
    assert installation.version.startswith("1.22.")
    assert (installation.source, installation in list(engines.get("nginx").available())) == ("debian", True)
    assert not list(cache.glob("nginx/*/.apt")), "what apt needed is gone"


def test_postgresql_comes_from_the_systems_own_release_and_runs_in_place_with_its_own_libraries(
    cache: Path, require: Require
) -> None:
    require(not debian.apt_possible(), debian.apt_possible())
    before = sorted(Path("/var/lib/apt/lists").iterdir()), sorted(Path("/var/cache/apt").rglob("*"))
    enterable(cache)
    engine = engines.get("postgresql")
    installation = engine.install("", "apt")
    assert installation.source == "apt"
    assert version_of(Path(installation.location)) == installation.version
    libraries = makes_a_cluster(installation)
    assert [path for path in libraries if not path.is_relative_to(cache)] == []
    assert (Path(installation.location).parents[1] / installation.version[:2] / "lib/pgcrypto.so").exists()
    assert before == (sorted(Path("/var/lib/apt/lists").iterdir()), sorted(Path("/var/cache/apt").rglob("*")))
    with pytest.raises(MissingServer, match="has no package postgresql-9"):
        engine.install("9", "apt")


def test_names_what_apt_can_not_reach(tmp_path: Path, work: Work, require: Require) -> None:
    require(not debian.apt_possible(), debian.apt_possible())
    with (
        apt.Apt(work.path / "home", work.run, "deb [trusted=yes] http://127.0.0.1:9/debian sid main\n") as lists,
        pytest.raises(MissingServer, match=r"no package nginx: .*127\.0\.0\.1"),
    ):
        lists.need("nginx")


def test_the_build_with_the_old_openssl_is_used_last(cache: Path) -> None:
    for source, version in (("maven", "18.4"), ("apt", "15.9"), ("debian", "17.5")):
        package_cache.keep("thing", source, lambda work, s=source, v=version: Receipt("thing", v, s, "."))  # type: ignore[misc]
    assert [installation.source for installation in package_cache.installed("thing")] == ["debian", "apt", "maven"]
    assert list(engines.get("postgresql").sources()) == ["debian", "apt", "maven"]  # type: ignore[attr-defined]


def test_postgresql_comes_from_debian_and_runs_in_place_with_its_own_libraries(cache: Path, require: Require) -> None:
    require(not debian.debian_possible(), debian.debian_possible())
    enterable(cache)
    installation = engines.get("postgresql").install("17", "debian")
    assert installation.version.startswith("17.")
    assert version_of(Path(installation.location)) == installation.version
    libraries = makes_a_cluster(installation)
    assert len(libraries) > 5
    assert [path for path in libraries if not path.is_relative_to(cache)] == []


def test_every_suite_and_archive_is_of_a_supported_version() -> None:
    assert set(SUITES) <= {"14", "15", "16", "17", "18"}
    assert {version for _, version in ARTIFACTS} == {"14", "15", "16", "17", "18"}
    assert all(re.fullmatch("[0-9a-f]{64}", artifact.sha256) for artifact in ARTIFACTS.values())
