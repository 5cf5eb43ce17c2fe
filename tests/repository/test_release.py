"""Releases: one version everywhere, and a Python wheel that needs no Maven and pins its agent."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path
from types import ModuleType

import pytest
from sbom import python, wheels
from sbom.document import rendered

from ciphercost.load import agent
from ciphercost.load.jdbc import java
from ciphercost.model.errors import CiphercostError
from ciphercost.model.version import VERSION
from ciphercost.runs import versions
from conftest import Require

ROOT = Path(__file__).parents[2]
MODULE = "ciphercost/_java/"


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release_version", ROOT / "release/version.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


version = _script()


# ── one version ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_all_distributions_state_one_version() -> None:
    assert set(version.versions().values()) == {VERSION}


def test_the_agent_that_is_installed_has_that_version() -> None:
    assert versions.answers(agent.find())[0]["version"] == VERSION


def copied(tmp_path: Path) -> Path:
    for name in version.PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_a_new_version_is_written_everywhere_and_nothing_else_changes(tmp_path: Path) -> None:
    root = copied(tmp_path)
    version.write("12.34.56", root)
    assert set(version.versions(root).values()) == {"12.34.56"}
    version.write(VERSION, root)
    assert all((root / name).read_bytes() == (ROOT / name).read_bytes() for name in version.PLACES)


def command(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What `make version` calls, in a copy of the files that it reads and writes."""
    (root / "release").mkdir()
    script = shutil.copy(ROOT / "release/version.py", root / "release")
    return subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=False)


def test_versions_that_differ_are_listed_with_the_command_that_makes_them_equal(tmp_path: Path) -> None:
    pom = copied(tmp_path) / "agents/java/pom.xml"
    pom.write_text(pom.read_text().replace(f"<version>{VERSION}</version>", "<version>9.9.9</version>", 1))
    done = command(tmp_path)
    assert done.returncode == 1
    assert f"make version TO={VERSION}" in done.stderr
    assert "9.9.9  agents/java/pom.xml" in done.stderr


@pytest.mark.parametrize("wrong", ["", "1", "1.2", "v1.2.3", "1.2.3-rc1", "../1.2.3"])
def test_what_is_no_version_is_refused_and_nothing_is_written(wrong: str, tmp_path: Path) -> None:
    done = command(copied(tmp_path), wrong)
    assert done.returncode == 1
    assert "not a version" in done.stderr
    assert set(version.versions(tmp_path).values()) == {VERSION}


# ── the wheel ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def built(place: Path, umask: int = 0o022, **environment: str) -> Path:
    """The wheel of this clone."""
    usual = {name: value for name, value in os.environ.items() if not name.startswith("CIPHERCOST_RELEASE_")}
    usual["SOURCE_DATE_EPOCH"] = "1700000000"
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)],
        cwd=ROOT, env=usual | environment, umask=umask, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (wheel,) = place.glob("ciphercost-*.whl")
    return wheel


def contents(wheel: Path) -> tuple[set[str], list[str]]:
    """Names of the Java agent's files in a wheel, and the distributions that it requires without an extra."""
    with zipfile.ZipFile(wheel) as archive:
        metadata = Parser().parsestr(archive.read(f"ciphercost-{VERSION}.dist-info/METADATA").decode())
        names = {name.removeprefix(MODULE) for name in archive.namelist() if name.startswith(MODULE)}
    assert metadata["Version"] == VERSION
    return names, [
        requirement for requirement in metadata.get_all("Requires-Dist", []) if "extra ==" not in requirement
    ]


@pytest.fixture(scope="module")
def jar(require: Require) -> Path:
    try:
        return java.jar(fetch=False)
    except CiphercostError as error:
        require(False, str(error))
        raise


@pytest.fixture(scope="module")
def released(jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("released")
    listed = place / "ciphercost.cdx.json"
    listed.write_text(rendered(*python.packages(VERSION, jar), {}, {}))
    return built(place, CIPHERCOST_RELEASE_JAR=str(jar), CIPHERCOST_RELEASE_SBOM=str(listed))


def test_a_released_wheel_holds_the_jar_and_requires_the_agent_of_its_version(released: Path, jar: Path) -> None:
    names, required = contents(released)
    assert names == {java.JAR}
    assert f"ciphercost-agent=={VERSION}" in required
    with zipfile.ZipFile(released) as archive:
        assert archive.read(MODULE + java.JAR) == jar.read_bytes()


def test_a_released_wheel_runs_its_java_agent_without_maven(released: Path, tmp_path: Path) -> None:
    try:
        program = java.find()
    except CiphercostError as error:
        pytest.skip(str(error))
    with zipfile.ZipFile(released) as archive:
        archive.extractall(tmp_path / "site")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(program)
    code = "from ciphercost.load.jdbc import java\nwith java.agent() as agent: print(agent.hello.version, java.jar())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            "PYTHONPATH": str(tmp_path / "site"),
            "PATH": str(tmp_path / "bin"),
            "CIPHERCOST_CACHE": str(tmp_path / "cache"),
            "HOME": str(tmp_path),
        },
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == [VERSION, str(tmp_path / "site" / MODULE / java.JAR)], done.stderr
    assert not (tmp_path / "cache").exists()


def test_a_wheel_built_from_a_clone_holds_the_java_agents_sources_and_requires_no_agent(tmp_path: Path) -> None:
    """Otherwise pip could not install a clone: no package index has its agent."""
    wheel = built(tmp_path)
    names, required = contents(wheel)
    assert {"pom.xml", "src/main/java/ciphercost/agent/Main.java"} <= names
    assert java.JAR not in names
    with zipfile.ZipFile(wheel) as archive:
        package = "ciphercost/_python/ciphercost_agent_python"
        assert {f"{package}/__main__.py", f"{package}/drivers/of_psycopg.py"} <= set(archive.namelist())
        assert {"ciphercost/_go/main.go", "ciphercost/_go/go.mod", "ciphercost/_go/go.sum"} <= set(archive.namelist())
    assert required
    assert not any(requirement.startswith(agent.DISTRIBUTION) for requirement in required)
    with zipfile.ZipFile(wheel) as archive:
        page = archive.read(f"ciphercost-{VERSION}.data/data/share/man/man1/ciphercost.1").decode()
    assert page.startswith(".TH CIPHERCOST 1 ")
    assert f'"ciphercost {VERSION}"' in page
    assert ".SS ciphercost quick" in page


def test_a_release_without_the_jar_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="which is not a file"):
        built(tmp_path, CIPHERCOST_RELEASE_JAR=str(tmp_path / "none.jar"))


def test_a_release_without_the_list_of_what_it_is_made_of_fails(jar: Path, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"CIPHERCOST_RELEASE_SBOM names \., .*not a file"):
        built(tmp_path, CIPHERCOST_RELEASE_JAR=str(jar))


def test_a_released_wheel_lists_what_it_is_made_of(released: Path) -> None:
    assert wheels.wrong(released) is None


def test_a_wheel_has_the_same_bytes_in_each_build(released: Path, jar: Path, tmp_path: Path) -> None:
    listed = str(released.parent / "ciphercost.cdx.json")
    again = built(
        tmp_path,
        0o077,
        CIPHERCOST_RELEASE_JAR=str(jar),
        CIPHERCOST_RELEASE_SBOM=listed,
        TZ="Pacific/Auckland",
        LC_ALL="C",
    )
    assert again.read_bytes() == released.read_bytes()


def test_the_container_is_made_of_the_wheels_alone() -> None:
    lines = (ROOT / "Containerfile").read_text().splitlines()
    assert [line for line in lines if line.startswith(("COPY", "ADD"))] == ["COPY dist/*.whl /tmp/wheels/"]
    assert (ROOT / ".containerignore").read_text().split() == ["*", "!dist/*.whl"]
