"""The documentation covers everything that exists, and names nothing that doesn't."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from ciphercost import commands
from ciphercost.model.slices import AgentSlice, SliceRecord

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 120


def test_every_command_in_the_readme_exists() -> None:
    named = set(re.findall(r"(?:^    |`)ciphercost ([a-z]+)\b", README, re.MULTILINE))
    assert {"quick", "run", "prove"} <= named <= set(commands.cli.commands)


def test_every_field_of_a_slice_is_in_the_format() -> None:
    text = (ROOT / "FORMAT.md").read_text()
    for field in (*SliceRecord.__struct_fields__, "window_ns", "foreign_cpu", "disk_queue"):
        assert f"`{field}`" in text, field


def test_every_field_of_a_slice_answer_is_in_the_protocol() -> None:
    text = (ROOT / "PROTOCOL.md").read_text()
    for field in AgentSlice.__struct_fields__:
        assert f'"{field}"' in text or f"`{field}`" in text or "cpu_" in field, field


def test_no_document_names_a_file_that_is_not_there() -> None:
    for path in ROOT.glob("*.md"):
        for name in re.findall(r"`((?:docs|src|agents|tests|benchmarks)/[\w./-]+)`", path.read_text()):
            assert (ROOT / name).exists() or name.endswith("latest.json"), f"{path.name} names {name}"


def test_every_link_between_documents_leads_to_a_file() -> None:
    """In the repository. `test_site.py` checks the site, which generates some of these pages."""
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text()):
            if not urlsplit(target).scheme:
                assert (path.parent / target).exists(), f"{path.relative_to(ROOT)}: {target}"


def test_no_machine_path_or_registry_host_is_written_down() -> None:
    hosts = re.compile(
        r"https?://(?!example|json-schema|www\.apache|localhost|127)[\w.-]*(debian|pypi|crates|maven|npmjs|golang)[\w.-]*"
    )
    for path in [
        *ROOT.glob("*.md"),
        *ROOT.glob("src/**/*.py"),
        *ROOT.glob("tests/**/*.py"),
        *ROOT.glob("agents/**/*.rs"),
    ]:
        if "target" not in path.parts:
            assert not hosts.search(path.read_text()), path
