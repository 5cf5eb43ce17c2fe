"""SBOMs: valid CycloneDX, the same bytes each time, and they name what is compiled into the agent."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from sbom import python, rust, wheels
from sbom.document import Package, invalid, rendered

from ciphercost.load import agent
from ciphercost.model.version import VERSION
from ciphercost.runs import versions

TARGETS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"]


@pytest.fixture(scope="module", params=TARGETS)
def text(request: pytest.FixtureRequest) -> str:
    """The Rust agent's document."""
    product, packages = rust.packages(request.param)
    return rendered(product, packages, rust.tools(), {"cdx:rustc:sbom:target:triple": request.param})


def components(document: str) -> dict[str, dict[str, Any]]:
    """By purl."""
    return {component["purl"]: component for component in json.loads(document)["components"]}


def graph(document: str) -> dict[str, list[str]]:
    """What each package needs, by purl."""
    return {dependency["ref"]: dependency.get("dependsOn", []) for dependency in json.loads(document)["dependencies"]}


def test_it_is_valid_and_names_no_path_of_this_machine(text: str) -> None:
    assert invalid(text) is None
    assert str(Path.cwd()) not in text
    assert str(Path.home()) + "/" not in text
    assert "file://" not in text


def test_its_openssl_is_the_one_that_the_agent_reports(text: str) -> None:
    reported = re.search(r"OpenSSL ([\d.]+)", str(versions.answers(agent.find())[0]["tls_library"]))
    assert reported is not None
    openssl = components(text)[f"pkg:generic/openssl@{reported[1]}"]
    assert openssl["scope"] == "required"
    assert openssl["cpe"] == f"cpe:2.3:a:openssl:openssl:{reported[1]}:*:*:*:*:*:*:*"


def test_what_is_in_the_agent_is_told_from_what_only_builds_it(text: str) -> None:
    scopes = {purl.partition("@")[0]: component["scope"] for purl, component in components(text).items()}
    for name in ("generic/openssl", "generic/sqlcipher", "generic/sqlite", "generic/rust-std", "cargo/libc"):
        assert scopes[f"pkg:{name}"] == "required"
    for name in ("cargo/openssl-src", "cargo/sqlcipher-src", "cargo/cc", "cargo/serde_derive"):
        assert scopes[f"pkg:{name}"] == "excluded"


def test_every_crate_has_licence_and_checksum_and_everything_is_needed_by_something(text: str) -> None:
    known, needs = components(text), graph(text)
    assert all(component["licenses"] for component in known.values())
    assert all(component["hashes"] for purl, component in known.items() if purl.startswith("pkg:cargo/"))
    reached: set[str] = set()
    waiting = [f"pkg:pypi/ciphercost-agent@{VERSION}"]
    while waiting:
        package = waiting.pop()
        if package not in reached:
            reached.add(package)
            waiting += needs[package]
    assert reached - {f"pkg:pypi/ciphercost-agent@{VERSION}"} == set(known)


def test_it_has_the_same_bytes_each_time_and_another_number_when_something_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    library = Package("cargo", "b", "2", "MIT")
    product = Package("pypi", "a", "1", needs=[library.purl])
    one = rendered(product, [library], {"c": "3"}, {})
    assert one == rendered(product, [library], {"c": "3"}, {})
    assert json.loads(one)["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    other = rendered(product, [library], {"c": "4"}, {})
    assert json.loads(one)["serialNumber"] != json.loads(other)["serialNumber"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("{", "not a CycloneDX document"),
        ("[]", "not a CycloneDX document"),
        ('{"specVersion": "1.2"}', "CycloneDX 1.2; expected 1.6"),
        ('{"specVersion": "1.6"}', "'bomFormat' is a required property"),
    ],
)
def test_what_is_no_document_is_refused(wrong: str, words: str) -> None:
    assert words in str(invalid(wrong))


# ── in a wheel ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def wheel(tmp_path: Path, text: str) -> Path:
    """One with the agent's document, as `wheels.wrong` reads it."""
    return packed(tmp_path, {"sboms/a.cdx.json": text})


def packed(place: Path, files: dict[str, str], version: str = VERSION) -> Path:
    path = place / "a.whl"
    inside = f"ciphercost_agent-{version}.dist-info/"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {"METADATA": f"Name: ciphercost-agent\nVersion: {version}\n", **files}.items():
            archive.writestr(inside + name, text)
    return path


def test_a_wheel_with_a_good_document_passes(wheel: Path) -> None:
    assert wheels.wrong(wheel) is None


def test_a_wheel_without_a_document_of_its_own_is_refused(tmp_path: Path, text: str) -> None:
    assert "0 files in" in str(wheels.wrong(packed(tmp_path, {})))
    wrong = str(wheels.wrong(packed(tmp_path, {"sboms/a.json": text}, "9.9.9")))
    assert f"describes ciphercost-agent {VERSION}, not ciphercost-agent 9.9.9" in wrong
    assert "not a CycloneDX document" in str(wheels.wrong(packed(tmp_path, {"sboms/a.json": "x"})))


def test_a_document_that_forgets_a_compiled_library_is_refused(tmp_path: Path, text: str) -> None:
    document = json.loads(text)
    document["components"] = [component for component in document["components"] if component["name"] != "sqlcipher"]
    wrong = str(wheels.wrong(packed(tmp_path, {"sboms/a.json": json.dumps(document)})))
    assert "names no sqlcipher" in wrong


# ── of the Python package ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_python_document_names_locked_packages_and_what_both_agents_hold(tmp_path: Path) -> None:
    jar = tmp_path / "agent.jar"
    jar.write_bytes(b"jar")
    text = rendered(*python.packages(VERSION, jar), {}, {})
    assert invalid(text) is None
    known, needs = components(text), graph(text)
    names = {component["name"] for component in known.values()}
    assert {"click", "cryptography", "pycparser", "openssl", "sqlcipher", "sqlite", "HdrHistogram"} <= names
    assert "pytest" not in names
    assert all(component["licenses"] for component in known.values())
    (cryptography,) = (purl for purl in known if purl.startswith("pkg:pypi/cryptography@"))
    assert any(purl.startswith("pkg:pypi/cffi@") for purl in needs[cryptography])
    (java,) = (purl for purl in known if "ciphercost-agent-jdbc" in purl)
    assert known[java]["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(b"jar").hexdigest()}]
    assert {java, f"pkg:pypi/ciphercost-agent@{VERSION}"} <= set(needs[f"pkg:pypi/ciphercost@{VERSION}"])


def test_a_lock_that_does_not_fit_what_is_installed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "run.txt"
    monkeypatch.setattr(python, "LOCK", lock)
    monkeypatch.setattr(python, "ROOT", tmp_path)
    shutil.copy(Path(__file__).parents[2] / "release/locks/run.txt", lock)
    assert "click" in python.locked()
    lock.write_text("click==0.1 \\\n    --hash=sha256:0\n")
    with pytest.raises(SystemExit, match=r"click==0\.1 is locked, but [\d.]+ is installed"):
        python.locked()
    lock.write_text("no-such-package-of-ours==1\n")
    with pytest.raises(SystemExit, match="no-such-package-of-ours is not installed"):
        python.locked()
