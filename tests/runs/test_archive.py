"""Packed runs from strangers: nothing is written outside, nothing but a record's files is read, and size has a limit."""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import limited
from ciphercost.model import bounds
from ciphercost.model.errors import UsageError
from ciphercost.runs import archive
from ciphercost.runs.unpacked import Unpacked

PLAN = b'{"format": 2}'


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:xz" if path.suffix == ".xz" else "w:gz") as tar_file:
        for info, content in members:
            info.size = len(content)
            tar_file.addfile(info, io.BytesIO(content))
    return path


def file(name: str, content: bytes = PLAN) -> tuple[tarfile.TarInfo, bytes]:
    return tarfile.TarInfo(name), content


def link(kind: bytes, target: str) -> tuple[tarfile.TarInfo, bytes]:
    entry = tarfile.TarInfo("run/slices.jsonl")
    entry.type, entry.linkname = kind, target
    return entry, b""


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zip_file:
        for name, content in members.items():
            zip_file.writestr(name, content)
    return path


@pytest.fixture
def into(tmp_path: Path) -> Path:
    place = tmp_path / "deep" / "down" / "into"
    place.mkdir(parents=True)
    return place


TWO = msgspec.structs.replace(bounds.UNPACKED, most=2 << 20)


def refused(path: Path, into: Path, words: str, unpacked: bounds.Bound = bounds.UNPACKED) -> None:
    before = sorted(path.parent.rglob("*"))
    with pytest.raises(UsageError, match=words) as error:
        archive.unpack(path, into, unpacked)
    assert str(path) in str(error.value)
    outside = [entry for entry in path.parent.rglob("*") if entry not in before and into not in entry.parents]
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
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as zip_file:
        zip_file.writestr(info, "/etc/passwd")
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
    refused(path, into, r"may have 2,097,152 \(2 MiB\)", TWO)


def test_too_many_files_are_refused(tmp_path: Path, into: Path) -> None:
    many = [file(f"run/logs/{number}", b"") for number in range(bounds.ARCHIVE_MEMBERS + 1)]
    refused(tar(tmp_path / "a.tar.gz", *many), into, "more than 1000 files")


def test_a_skipped_member_counts_before_it_is_unpacked(
    tmp_path: Path, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size stands before it, so a log of 2 GB that nobody wants costs nothing."""
    taken: list[int] = []
    take = Unpacked._take

    def counted(self: Unpacked, most: int) -> bytes:
        taken.append(most)
        return take(self, most)

    monkeypatch.setattr(Unpacked, "_take", counted)
    log = tarfile.TarInfo("run/logs/postgres.log")
    log.size = 2 << 30
    content = [file("run/plan.json"), (log, b"")]
    for name in ("a.tar.gz", "a.tar.xz"):
        path = tmp_path / name
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode="w") as tar_file:
            for entry, data in content:
                tar_file.addfile(entry, io.BytesIO(data)) if data else raw.write(entry.tobuf())
        packed = raw.getvalue()
        path.write_bytes(gzip.compress(packed) if name.endswith("gz") else lzma.compress(packed))
        (into / "plan.json").unlink(missing_ok=True)
        refused(path, into, r"2,147,48.* bytes, .* 1,073,741,824")
    assert sum(taken) < 1 << 20


def test_unpacking_stops_at_its_bound_whatever_the_sizes_say(tmp_path: Path, into: Path) -> None:
    """The padding behind a member, and what is no member at all, are unpacked too."""
    path = tmp_path / "a.tar.gz"
    small = msgspec.structs.replace(bounds.UNPACKED, most=0)
    with Unpacked(tar(path, file("run/plan.json")), small) as stream, pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "ARCHIVE_MEMBERS", 0)
        with pytest.raises(UsageError, match="may have 0"):
            stream.read(1024)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_has_a_bound_of_memory(tmp_path: Path, into: Path, kind: bytes) -> None:
    """In a process that may use little more memory than it has."""
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, 700 << 20
    path = tmp_path / "a.tar.gz"
    with gzip.open(path, "wb", compresslevel=1) as packed:
        packed.write(header.tobuf())
        for _ in range(32):
            packed.write(bytes(1 << 20))
    printed = limited.run(
        "from ciphercost.runs import archive; archive.unpack(Path(sys.argv[1]), Path(sys.argv[2]))", path, into
    )
    assert "734,003,200 bytes" in printed
    assert f"{bounds.ARCHIVE_HEADER:,}" in printed


def test_an_archive_can_not_ask_for_memory(tmp_path: Path, into: Path) -> None:
    path = tar(tmp_path / "a.tar.xz", file("run/plan.json"))
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]
    raw = lzma.decompress(path.read_bytes())
    # The header alone says so; an encoder with such a dictionary would take 10 GB.
    usual = lzma.compress(raw, filters=[{**filters[0], "dict_size": 1 << 20}])
    path.write_bytes(with_dictionary(usual, 36))
    refused(path, into, "can't be unpacked: .*[Mm]emory")


def with_dictionary(xz: bytes, size: int) -> bytes:
    """The same `.xz` with another dictionary in its first block's header: 36 is 1 GiB."""
    length = (xz[12] + 1) * 4
    block = bytearray(xz[12 : 12 + length - 4])
    at = block.index(b"\x21\x01") + 2
    block[at] = size
    return xz[:12] + bytes(block) + zlib.crc32(block).to_bytes(4, "little") + xz[12 + length :]


def test_the_list_of_a_zips_files_has_a_bound(tmp_path: Path, into: Path) -> None:
    path = zipped(tmp_path / "a.zip", {f"run/{'x' * 60_000}{number}": b"" for number in range(20)})
    refused(path, into, "list of files .* 1,2.* bytes, .* 1,048,576")
    many = zipped(tmp_path / "b.zip", {f"run/{number}": b"" for number in range(bounds.ARCHIVE_MEMBERS + 1)})
    refused(many, into, "more than 1000 files")


def test_directories_count_as_files_do(tmp_path: Path, into: Path) -> None:
    def directory(number: int) -> tuple[tarfile.TarInfo, bytes]:
        entry = tarfile.TarInfo(f"run/{number}")
        entry.type = tarfile.DIRTYPE
        return entry, b""

    refused(
        tar(tmp_path / "a.tar.gz", *map(directory, range(bounds.ARCHIVE_MEMBERS + 1))), into, "more than 1000 files"
    )


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar.xz"])
def test_parts_of_a_packed_file_follow_each_other(tmp_path: Path, into: Path, name: str) -> None:
    """As `cat`, pigz and `xz -T` make them."""
    path = tar(tmp_path / name, file("run/plan.json"), file("run/slices.jsonl", bytes(range(256)) * 2000))
    compress, expand = (gzip.compress, gzip.decompress) if name.endswith("gz") else (lzma.compress, lzma.decompress)
    raw = expand(path.read_bytes())
    path.write_bytes(b"".join(compress(raw[at : at + 100_000]) for at in range(0, len(raw), 100_000)))
    archive.unpack(path, into)
    assert (into / "slices.jsonl").read_bytes() == bytes(range(256)) * 2000
    (into / "plan.json").unlink()
    (into / "slices.jsonl").unlink()
    path.write_bytes(path.read_bytes()[:-200])
    refused(path, into, "can't be unpacked|damaged|no plan.json")


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
        assert sorted(entry.name for entry in into.iterdir()) == ["plan.json", "slices.jsonl"]
        for entry in into.iterdir():
            entry.unlink()


def test_the_same_files_are_packed_into_the_same_bytes(tmp_path: Path, into: Path) -> None:
    files = {"slices.jsonl": b"{}\n", "plan.json": PLAN}
    for name, order in (("a", files), ("b", dict(reversed(files.items())))):
        archive.pack(order, "20261121-120000-ab12", tmp_path / f"{name}.tar.xz")
    assert (tmp_path / "a.tar.xz").read_bytes() == (tmp_path / "b.tar.xz").read_bytes()
    archive.unpack(tmp_path / "a.tar.xz", into)
    assert {path.name: path.read_bytes() for path in into.iterdir()} == files
