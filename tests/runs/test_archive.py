"""Packed runs from strangers: nothing is written outside, nothing but a record's files is read, and size has a limit."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ciphercost.model.errors import UsageError
from ciphercost.runs import archive

PLAN = b'{"format": 2}'


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as made:
        for info, content in members:
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
    return path


def file(name: str, content: bytes = PLAN) -> tuple[tarfile.TarInfo, bytes]:
    return tarfile.TarInfo(name), content


def link(kind: bytes, target: str) -> tuple[tarfile.TarInfo, bytes]:
    made = tarfile.TarInfo("run/slices.jsonl")
    made.type, made.linkname = kind, target
    return made, b""


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return path


@pytest.fixture
def into(tmp_path: Path) -> Path:
    place = tmp_path / "deep" / "down" / "into"
    place.mkdir(parents=True)
    return place


def refused(path: Path, into: Path, words: str, **more: int) -> None:
    before = sorted(path.parent.rglob("*"))
    with pytest.raises(UsageError, match=words) as error:
        archive.unpack(path, into, **more)
    assert str(path) in str(error.value)
    outside = [each for each in path.parent.rglob("*") if each not in before and into not in each.parents]
    assert outside == []


@pytest.mark.parametrize(
    "name", ["../plan.json", "/tmp/plan.json", "run/../../plan.json", "run/../plan.json", "..\\plan.json"]
)
def test_a_path_that_leads_out_is_refused(tmp_path: Path, into: Path, name: str) -> None:
    refused(tar(tmp_path / "a.tar.gz", file(name)), into, "leads out")
    refused(zipped(tmp_path / "a.zip", {name: PLAN}), into, "leads out")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_refused(tmp_path: Path, into: Path, kind: bytes) -> None:
    refused(tar(tmp_path / "a.tar.gz", file("run/plan.json"), link(kind, "/etc/passwd")), into, "link or device")


def test_a_link_in_a_zip_is_refused(tmp_path: Path, into: Path) -> None:
    info = zipfile.ZipInfo("run/plan.json")
    info.create_system, info.external_attr = 3, 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
        made.writestr(info, "/etc/passwd")
    refused(tmp_path / "a.zip", into, "link or device")


@pytest.mark.parametrize("make", [tar, zipped])
def test_too_much_is_refused_by_what_it_really_holds(tmp_path: Path, into: Path, make: Callable[..., Path]) -> None:
    big = bytes(3 << 20)
    path = (
        tar(tmp_path / "a.tar.gz", file("run/plan.json"), file("run/slices.jsonl", big))
        if make is tar
        else zipped(tmp_path / "a.zip", {"run/plan.json": PLAN, "run/slices.jsonl": big})
    )
    assert path.stat().st_size < 100_000
    refused(path, into, "more than 2 MB", largest=2 << 20)


def test_too_many_files_are_refused(tmp_path: Path, into: Path) -> None:
    many = [file(f"run/logs/{number}", b"") for number in range(archive.MOST_MEMBERS + 1)]
    refused(tar(tmp_path / "a.tar.gz", *many), into, "more than 1000 files")


def test_two_runs_in_one_archive_are_refused(tmp_path: Path, into: Path) -> None:
    refused(tar(tmp_path / "a.tar.gz", file("one/plan.json"), file("two/plan.json")), into, "pack each run on its own")


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar.xz", "a.zip"])
def test_a_damaged_archive_is_refused(tmp_path: Path, into: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"no archive at all")
    refused(tmp_path / name, into, "can't be unpacked")


def test_an_archive_that_is_cut_off_is_refused(tmp_path: Path, into: Path) -> None:
    whole = tar(tmp_path / "a.tar.gz", file("run/plan.json"), file("run/slices.jsonl", bytes(range(256)) * 1000))
    whole.write_bytes(whole.read_bytes()[:-200])
    refused(whole, into, "can't be unpacked")


def test_an_archive_without_a_run_is_refused(tmp_path: Path, into: Path) -> None:
    refused(tar(tmp_path / "a.tar.gz", file("run/readme.md")), into, "no plan.json")


@pytest.mark.parametrize("prefix", ["", "run/"])
def test_only_the_files_of_a_record_are_read(tmp_path: Path, into: Path, prefix: str) -> None:
    names = [
        f"{prefix}{name}" for name in ("plan.json", "slices.jsonl", "report.html", "logs/server.log", "logs/plan.json")
    ]
    for path in (
        tar(tmp_path / "a.tar.gz", *map(file, names)),
        zipped(tmp_path / "a.zip", dict.fromkeys(names, PLAN)),
    ):
        archive.unpack(path, into)
        assert sorted(each.name for each in into.iterdir()) == ["plan.json", "slices.jsonl"]
        for each in into.iterdir():
            each.unlink()


def test_the_same_files_are_packed_into_the_same_bytes(tmp_path: Path, into: Path) -> None:
    files = {"slices.jsonl": b"{}\n", "plan.json": PLAN}
    for name, order in (("a", files), ("b", dict(reversed(files.items())))):
        archive.pack(order, "20261121-120000-ab12", tmp_path / f"{name}.tar.xz")
    assert (tmp_path / "a.tar.xz").read_bytes() == (tmp_path / "b.tar.xz").read_bytes()
    archive.unpack(tmp_path / "a.tar.xz", into)
    assert {each.name: each.read_bytes() for each in into.iterdir()} == files
