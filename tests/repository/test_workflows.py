"""The project's own workflows, issue forms and citation: what they run exists, actions are pinned, nothing may write without need.

actionlint, in `make check`, checks their syntax. That they work only the forge shows.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from ciphercost.model.version import VERSION

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FLOWS: dict[str, dict[Any, Any]] = {path.name: yaml.safe_load(path.read_text()) for path in WORKFLOWS}
JOBS = {(name, job): fields for name, flow in FLOWS.items() for job, fields in flow["jobs"].items()}
STEPS = [(name, job, step) for (name, job), fields in JOBS.items() for step in fields.get("steps", ())]
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
MAY_WRITE = {
    ("release.yml", "draft"): {"contents", "id-token", "attestations"},
    ("release.yml", "publish"): {"id-token"},
    ("release.yml", "announce"): {"contents"},
    ("site.yml", "publish"): {"pages", "id-token"},
}
"""What a job may write. None of them builds or runs code of the repository beside its checkout."""


def test_there_is_a_workflow_of_each_kind() -> None:
    assert set(FLOWS) == {"ci.yml", "release.yml", "site.yml", "wheels.yml"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: str(path.name))
def test_every_action_is_pinned_by_a_commit_whose_version_is_stated(path: Path) -> None:
    used = re.findall(r"^ *(?:- )?uses: (\S+)(.*)$", path.read_text(), re.MULTILINE)
    assert used
    for action, comment in used:
        if not action.startswith("./"):
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action
        else:
            assert (ROOT / action).exists(), action


def test_an_action_has_one_version_everywhere() -> None:
    pins: dict[str, set[str]] = {}
    for path in WORKFLOWS:
        for action, commit in re.findall(r"uses: ([\w/-]+)@(.*)$", path.read_text(), re.MULTILINE):
            pins.setdefault(action, set()).add(commit)
    assert {"actions/checkout", "pypa/gh-action-pypi-publish"} <= set(pins)
    assert {action: commits for action, commits in pins.items() if len(commits) > 1} == {}


def test_a_job_may_write_only_what_it_is_for() -> None:
    for flow in FLOWS.values():
        assert flow["permissions"] == {"contents": "read"}
    rights = {
        key: {name for name, right in job["permissions"].items() if right == "write"}
        for key, job in JOBS.items()
        if "permissions" in job
    }
    assert rights == MAY_WRITE


def test_who_may_write_runs_no_make_and_keeps_no_token_in_the_checkout() -> None:
    for name, job, step in STEPS:
        if (name, job) in MAY_WRITE:
            assert not re.search(r"\b(make|pip|bash|python3?)\b", step.get("run", "")), (name, job)
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False, (name, job)


def test_nothing_that_a_stranger_can_write_gets_into_a_shell() -> None:
    """Titles, branches and texts of a pull request are expanded before the shell reads the line."""
    for name, job, step in STEPS:
        assert "${{" not in step.get("run", ""), (name, job)
    for flow in FLOWS.values():
        assert "pull_request_target" not in flow[True]  # `on`


def test_every_job_ends() -> None:
    for key, job in JOBS.items():
        assert "uses" in job or 0 < job["timeout-minutes"] <= 120, key


def test_every_target_and_script_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    run = "\n".join(step.get("run", "") for _, _, step in STEPS)
    asked = {word for line in re.findall(r"^make (.*)$", run, re.MULTILINE) for word in line.split() if "=" not in word}
    assert {"check", "test", "release", "audit", "docs", "book"} == asked <= targets
    scripts = re.findall(r"(?:sh|python3) ([\w./-]+\.(?:sh|py))", run)
    assert {".github/packages.sh", "release/version.py", "release/compare.py"} == set(scripts)
    assert all((ROOT / path).is_file() for path in scripts)


def test_images_are_systems_whose_packages_the_readme_lists() -> None:
    listed = re.findall(
        r"^    (Debian|Ubuntu) ([\d.]+) +apt-get install", (ROOT / "README.md").read_text(), re.MULTILINE
    )
    images = {f"{name.lower()}:{version}" for name, version in listed}
    assert set(JOBS["ci.yml", "test"]["strategy"]["matrix"]["image"]) == images
    assert set(JOBS["release.yml", "install"]["strategy"]["matrix"]["image"]) <= images
    for name in ("ci.yml", "site.yml", "wheels.yml"):
        for job in FLOWS[name]["jobs"].values():
            image = job.get("container")
            assert image is None or isinstance(image, dict) or image in images


@pytest.mark.parametrize(
    ("release", "words"),
    [
        (
            'NAME="Debian GNU/Linux"\nVERSION_ID="13"\n',
            "apt-get install --yes make gcc perl python3-venv rustc cargo\n",
        ),
        (
            'NAME="Ubuntu"\nVERSION_ID="24.04"\n',
            "apt-get install --yes make gcc perl python3-venv rustup && rustup default stable\n",
        ),
    ],
)
def test_a_workflow_installs_what_the_readme_lists(release: str, words: str, tmp_path: Path) -> None:
    """With a system of this text, and with programs that do nothing."""
    script = (ROOT / ".github/packages.sh").read_text()
    assert script.count("/etc/os-release") == 1
    (tmp_path / "os-release").write_text(release)
    (tmp_path / "script").write_text(script.replace("/etc/os-release", str(tmp_path / "os-release")))
    for name in ("apt-get", "rustup", "git"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["sh", tmp_path / "script"], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, words, "")


def test_the_release_ships_and_attests_what_make_release_builds() -> None:
    """The names are those of `release/wheels.sh`."""
    script = (ROOT / "release/wheels.sh").read_text()
    assert "dist/ciphercost-$version.cdx.json" in script
    assert "dist/ciphercost_agent-$version-${target%%-*}.cdx.json" in script
    steps = FLOWS["release.yml"]["jobs"]["draft"]["steps"]
    attested = [step["with"] for step in steps if step.get("uses", "").startswith("actions/attest@")]
    assert attested[0] == {"subject-checksums": "dist/SHA256SUMS"}
    assert {inputs["sbom-path"].replace("${{ env.VERSION }}", "$version") for inputs in attested[1:]} == {
        "dist/ciphercost-$version.cdx.json",
        *(f"dist/ciphercost_agent-$version-{machine}.cdx.json" for machine in ("x86_64", "aarch64")),
    }
    publish = FLOWS["release.yml"]["jobs"]["publish"]
    assert publish["environment"] == "pypi"
    assert not {"password", "user", "repository-url"} & set(publish["steps"][-1]["with"])


@pytest.mark.parametrize(
    ("tag", "heading", "status"), [("v", "({date})", 0), ("v9", "({date})", 1), ("v", "(not released)", 1)]
)
def test_a_tag_that_does_not_fit_is_no_release(tag: str, heading: str, status: int, tmp_path: Path) -> None:
    (run,) = [step["run"] for step in FLOWS["release.yml"]["jobs"]["version"]["steps"] if "run" in step]
    (tmp_path / "release").mkdir()
    (tmp_path / "release/version.py").write_text(f"print('{VERSION}')\n")
    (tmp_path / "CHANGELOG.md").write_text(
        f"# Changelog\n\n## {VERSION} {heading.format(date='2027-01-31')}\n\nText.\n"
    )
    env = {"PATH": "/usr/bin:/bin", "GITHUB_REF_NAME": f"{tag}{VERSION}", "GITHUB_OUTPUT": str(tmp_path / "output")}
    done = subprocess.run(["bash", "-e", "-c", run], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    assert ("::error::" in done.stdout) == bool(status)
    if not status:
        assert (tmp_path / "output").read_text() == f"version={VERSION}\n"


def test_notes_are_the_versions_part_of_the_changelog(tmp_path: Path) -> None:
    (run,) = [step["run"] for step in FLOWS["release.yml"]["jobs"]["draft"]["steps"] if "run" in step]
    text = f"# Changelog\n\n## 99.0.0 (2027-02-01)\n\nLater.\n\n## {VERSION} (2027-01-31)\n\nThis.\n\n### Part\n\n## 0.0.1 (2026-01-01)\n\nOld.\n"
    (tmp_path / "CHANGELOG.md").write_text(text)
    env = {"PATH": "/usr/bin:/bin", "VERSION": VERSION}
    subprocess.run(["bash", "-e", "-c", run.splitlines()[0]], cwd=tmp_path, env=env, check=True)
    assert (tmp_path / "notes.md").read_text().split() == ["This.", "###", "Part"]


@pytest.mark.parametrize("path", [path for path in FORMS if path.name != "config.yml"], ids=lambda path: str(path.name))
def test_an_issue_form_asks_for_something(path: Path) -> None:
    form = yaml.safe_load(path.read_text())
    assert set(form) == {"name", "description", "title", "body"}
    asked = [field for field in form["body"] if field["type"] != "markdown"]
    assert {field["type"] for field in asked} <= {"input", "textarea", "dropdown", "checkboxes"}
    ids = [field["id"] for field in asked]
    assert len(ids) == len(set(ids))
    assert all(field["attributes"]["label"] for field in asked)
    assert any(field.get("validations", {}).get("required") for field in asked)


def test_the_citation_has_what_cff_requires_and_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert (citation["version"], citation["license"]) == (VERSION, "Apache-2.0")
