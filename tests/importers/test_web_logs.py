"""Access logs: public ones against awk, one of a known workload, and what is no log."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.importers import log_lines, logs, web_workload
from ciphercost.importers.connection_lengths import HELD, ConnectionLengths
from ciphercost.importers.distinct import KEPT, Distinct
from ciphercost.importers.logs import combined
from ciphercost.importers.quantised import Histogram, fewer
from ciphercost.load import workload_file
from ciphercost.model.errors import UsageError
from ciphercost.model.traffic import Bin, Traffic, mean, quantile, total
from ciphercost.report import traffic_document
from ciphercost.report.formats import html
from ciphercost.report.renderers import terminal
from ciphercost.runs import workload_from_logs
from ciphercost.runs.workload_from_logs import Asked

USUAL = Asked()
SAMPLES = Path(__file__).parent / "log_samples"
AWK = r"""
match($0, /"[A-Z]+ [^" ]+ HTTP\/[0-9.]+" [0-9][0-9][0-9] ([0-9]+|-)/) && $0 ~ /^[^ ]+ - / {
  text = substr($0, RSTART + 1, RLENGTH - 1); split(text, words, " ")
  status = substr(text, index(text, "\" ") + 2); split(status, answer, " ")
  kind = answer[1] == "304" ? "304" : substr(answer[1], 1, 1) "xx"
  count[words[1] " " kind]++; bytes[words[1] " " kind] += answer[2]
}
END { for (name in count) print name "\t" count[name] "\t" bytes[name] }
"""
"""An independent count: class, requests, bytes."""


def traffic_of(*paths: Path, asked: Asked = USUAL) -> Traffic:
    return workload_from_logs.read(paths, asked)[0]


def classes_of(traffic: Traffic) -> dict[str, tuple[int, int]]:
    return {each.name: (each.count, each.bytes_out) for each in traffic.classes}


# ── public logs ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["apache_combined.log", "apache_homeserver.log", "nasa_common.log"])
def test_a_public_log_has_the_requests_and_bytes_that_awk_counts(name: str) -> None:
    path = SAMPLES / name
    told = subprocess.run(["awk", AWK, path], capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in told.splitlines()]
    found = traffic_of(path)
    assert classes_of(found) == {row[0]: (int(row[1]), int(row[2])) for row in rows}
    assert found.lines == len(path.read_bytes().splitlines())
    assert found.operations + sum(each.lines for each in found.left_out) == found.lines
    assert sum(hour.operations for hour in found.hours) == found.operations
    assert sum(hour.bytes_out for hour in found.hours) == found.bytes_out
    assert sum(hour.connections for hour in found.hours) == found.connections.opened
    assert sum(each.value * each.count for each in found.connections.lengths) == pytest.approx(found.operations)


def test_damaged_lines_are_counted_and_the_first_is_named() -> None:
    (left,) = traffic_of(SAMPLES / "nasa_common.log").left_out
    assert (left.reason, left.file, left.line) == ("not a line of this format", "nasa_common.log", 38)


def test_a_virtual_host_or_forwarded_addresses_may_stand_before_the_address() -> None:
    found = traffic_of(SAMPLES / "nginx_forwarded.log")
    assert classes_of(found) == {"GET 2xx": (4, 7674753), "GET 4xx": (2, 9183)}
    assert [each.reason for each in found.left_out] == ["no HTTP request: bytes that are no request, or none at all"]
    clients = [
        item[1] for item in combined.read(lines_of("nginx_forwarded.log"), [], set()) if not isinstance(item, str)
    ]
    assert clients[:3] == [b"77.179.66.156", b"192.168.0.1", b"127.0.0.1"]


def lines_of(name: str) -> list[bytes]:
    return (SAMPLES / name).read_bytes().splitlines()


def test_haproxy_tells_connections_apart_by_port_and_what_was_encrypted() -> None:
    found = traffic_of(SAMPLES / "haproxy_http.log")
    assert (found.formats, found.operations, found.connections.basis) == (["haproxy"], 8, "logged")
    assert found.connections.encrypted == 5 / 8
    assert {each.code for each in found.notes} >= {"no-time-zone", "clock-backwards"}
    assert quantile(next(each for each in found.classes if each.name == "GET 2xx").times, 1.0) == 2.606


def test_json_of_caddy_and_nginx() -> None:
    caddy = traffic_of(SAMPLES / "caddy.json.log")
    assert (caddy.formats, classes_of(caddy)) == (["json-web"], {"GET 2xx": (2, 12948)})
    assert caddy.connections.encrypted == 1.0
    nginx = traffic_of(SAMPLES / "nginx.json.log")
    assert classes_of(nginx) == {"GET 2xx": (1, 612), "POST 3xx": (1, 0), "GET 4xx": (1, 153)}
    assert nginx.connections.basis == "logged"
    assert nginx.connections.lengths == [Bin(1, 1), Bin(2, 1)]
    assert nginx.connections.resumed == 0.5
    assert nginx.begin == 1772355600


# ── a log of a known workload gives it back ───────────────────────────────────────────────────────────────────────────

SHARES = {("GET", 200): 0.7, ("GET", 304): 0.15, ("POST", 200): 0.1, ("GET", 404): 0.05}


def synthetic(requests: int, *, logged: bool) -> tuple[list[str], Counter[str], list[int], Counter[int]]:
    """(lines, classes, sizes of GET 2xx, connections by length) of a workload whose figures are known."""
    draw = random.Random(4)
    classes: Counter[str] = Counter()
    lengths: Counter[int] = Counter()
    sizes: list[int] = []
    lines: list[tuple[float, str]] = []
    kinds, weights = list(SHARES), list(SHARES.values())
    connection, begin = 0, 0.0
    while sum(classes.values()) < requests:
        connection += 1
        begin += draw.expovariate(2.0)
        length = draw.choice((1, 1, 1, 4, 12))
        lengths[length] += 1
        for nth, at in enumerate((begin + 3.0 * step for step in range(length)), 1):
            method, status = draw.choices(kinds, weights)[0]
            size = 0 if status == 304 else int(draw.lognormvariate(9, 1.5))
            classes[f"{method} {status if status == 304 else f'{status // 100}xx'}"] += 1
            sizes += [size] if (method, status) == ("GET", 200) else []
            when = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(1_767_225_600 + at))
            address = f"10.{connection >> 16}.{connection >> 8 & 255}.{connection & 255}"
            more = f" 0.{nth:03} {connection} {nth}" if logged else ""
            lines.append((at, f'{address} - - [{when}] "{method} /p/{nth} HTTP/1.1" {status} {size} "-" "test"{more}'))
    return [line for _, line in sorted(lines)], classes, sizes, lengths


@pytest.mark.parametrize("logged", [True, False], ids=["numbered connections", "by address and gap"])
def test_a_log_of_a_known_workload_gives_back_its_shares_sizes_and_connections(tmp_path: Path, logged: bool) -> None:
    lines, classes, sizes, lengths = synthetic(20_000, logged=logged)
    path = tmp_path / "access.log"
    path.write_text("\n".join(lines) + "\n")
    found, made = workload_from_logs.read([path], Asked())
    assert {name: count for name, (count, _) in classes_of(found).items()} == classes
    histogram = next(each.sizes for each in found.classes if each.name == "GET 2xx")
    for share in (0.1, 0.5, 0.9, 0.99, 0.999):
        exact = sorted(sizes)[int(share * len(sizes))]
        assert quantile(histogram, share) == pytest.approx(exact, rel=0.01)
    assert {int(each.value): each.count for each in found.connections.lengths} == lengths
    assert found.connections.basis == ("logged" if logged else "estimate")
    # … and so does the workload
    weights = {transaction.name: transaction.weight for transaction in made.transaction}
    for name, count in classes.items():
        replayed = sum(weight for of, weight in weights.items() if of.startswith(f"{name},"))
        assert replayed / sum(weights.values()) == pytest.approx(count / sum(classes.values()), rel=0.01)
    assert {int(each.value): each.count for each in made.lengths} == lengths
    per_request = sum(
        int(made.documents[transaction.script.split()[-1]]) * transaction.weight
        for transaction in made.transaction
        if transaction.script.startswith("GET")
    )
    assert per_request / sum(weights.values()) == pytest.approx(
        sum(each.bytes_out for each in found.classes if each.method == "GET") / found.operations, rel=0.01
    )
    assert made.rate == pytest.approx(found.operations / found.seconds, rel=0.01), "the log is shorter than an hour"


def test_a_rare_large_answer_is_fetched_in_pieces_so_that_every_slice_has_its_share(tmp_path: Path) -> None:
    line = '10.0.0.1 - - [01/Jan/2026:00:00:{:02} +0000] "GET /p HTTP/1.1" 200 {}'
    lines = [line.format(number % 60, 1000 if number else 200_000_000) for number in range(10_000)]
    path = tmp_path / "access.log"
    path.write_text("\n".join(lines) + "\n")
    found, made = workload_from_logs.read([path], Asked())
    largest = max(int(size) for size in made.documents.values())
    assert largest <= 2 << 20
    requests = sum(transaction.weight for transaction in made.transaction)
    pieces = next(transaction.weight for transaction in made.transaction if str(largest) in transaction.name)
    assert pieces / requests > 1 / 200
    assert "pieces" in {note.code for note in found.notes}


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"])
def test_rotated_and_compressed_files_are_read_from_the_oldest_on(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    lines = lines_of("apache_combined.log")
    (tmp_path / "access.log").write_bytes(b"\n".join(lines[300:]))
    (tmp_path / "access.log.1").write_bytes(b"\n".join(lines[200:300]) + b"\n")
    (tmp_path / "access.log.2.gz").write_bytes(pack(b"\n".join(lines[:200]) + b"\n"))
    parts = traffic_of(*(tmp_path / name for name in ("access.log", "access.log.1", "access.log.2.gz")))
    whole = traffic_of(SAMPLES / "apache_combined.log")
    assert msgspec.structs.replace(parts, files=1) == whole


def test_a_truncated_file_counts_up_to_its_end_and_says_so(tmp_path: Path) -> None:
    packed = gzip.compress(b"\n".join(lines_of("apache_combined.log")))
    path = tmp_path / "access.log.gz"
    path.write_bytes(packed[: len(packed) // 2])
    found = traffic_of(path)
    assert 50 < found.operations < 400
    assert any("cut off" in each.reason for each in found.left_out)
    damaged = bytearray(packed)
    damaged[len(packed) // 2] ^= 0xFF
    path.write_bytes(damaged)
    assert any("damaged" in each.reason or "not a line" in each.reason for each in traffic_of(path).left_out)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the log is empty"),
        (b"\n\n\n", "the log is empty"),
        (b"\x7fELF\0\0\0\0", "a binary file"),
        (bytes(range(256)) * 100, "a binary file"),
        (b"\x28\xb5\x2f\xfd....", "compressed by zstd"),
        (b"PK\x03\x04....", "a zip archive"),
        (b"Jan  1 00:00:01 host sshd[1]: Accepted password for root from 192.0.2.1\n" * 20, "has a known format"),
        (b"just some text\nand more\n", "none of its first 2 lines has a known format"),
        (gzip.compress(b"x" * 100, mtime=0)[:12], "has a known format|the log is empty"),
    ],
)
def test_what_is_no_access_log_is_refused_with_its_name(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "other.log"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=words) as refused:
        traffic_of(path)
    assert "other.log" in str(refused.value)


def test_a_file_named_twice_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    path = SAMPLES / "apache_combined.log"
    link = tmp_path / "again.log"
    link.symlink_to(path)
    for paths, words in (
        ((path, link), "is the same file"),
        ((tmp_path,), "is no file"),
        ((tmp_path / "none.log",), "can't be read"),
    ):
        with pytest.raises(UsageError, match=words):
            traffic_of(*paths)


def test_a_line_of_a_gigabyte_is_never_in_memory_and_counts_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_lines, "LONGEST", 5000)
    monkeypatch.setattr(log_lines, "BLOCK", 1000)
    good = lines_of("apache_combined.log")[:3]
    path = tmp_path / "access.log"
    path.write_bytes(b"\n".join([good[0], b"x" * 20_000, good[1], b"y" * 4000, good[2], b"z" * 30_000]))
    found = traffic_of(path)
    assert found.operations == 3
    assert {each.reason: each.lines for each in found.left_out} == {
        "longer than 1 MiB": 2,
        "not a line of this format": 1,
    }


def test_a_clock_that_goes_backwards_and_mixed_zones_are_reported(tmp_path: Path) -> None:
    line = '10.0.0.1 - - [01/Jan/2026:{} {}] "GET /p HTTP/1.1" 200 10\n'
    path = tmp_path / "access.log"
    path.write_text(
        line.format("10:00:00", "+0000") + line.format("12:00:00", "+0100") + line.format("09:00:00", "+0000")
    )
    found = traffic_of(path)
    texts = {note.code: note.text for note in found.notes}
    assert "line 3 (by 7,200 s)" in texts["clock-backwards"]
    assert "+0000, +0100" in texts["time-zones"]
    assert found.seconds == 7200


@given(st.lists(st.binary(max_size=200), max_size=30))
def test_no_bytes_make_a_reader_fail(lines: list[bytes]) -> None:
    whole = [piece for line in lines for piece in line.split(b"\n")]
    mixed = [*whole, *lines_of("haproxy_http.log"), *lines_of("nginx.json.log"), *lines_of("nginx_forwarded.log")]
    for name in logs.names():
        form = logs.get(name)
        if form.kind == "web":
            assert form.recognise(mixed) > 0
            assert len(list(form.read(mixed, mixed, set()))) == len(mixed)


@given(st.integers(0, 200), st.binary(min_size=1, max_size=3))
def test_a_line_with_any_change_is_a_request_or_refused(at: int, change: bytes) -> None:
    line = lines_of("apache_combined.log")[0]
    (item,) = combined.read([line[:at] + change + line[at + 1 :]], [], set())
    assert isinstance(item, str) or (item[4].isdigit() and (item[5].isdigit() or item[5] == b"-") and item[2].isalpha())


# ── what is kept ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_workload_holds_no_address_path_user_or_file_name_unless_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "customer-acme.log"
    path.write_text(
        '203.0.113.77 - mallory [01/Jan/2026:00:00:01 +0000] "GET /secret-plan?token=abc123 HTTP/1.1" 200 10 "https://ref.example/" "Agent/9"\n'
        "broken line of 203.0.113.77\n"
    )
    found, made = workload_from_logs.read([path], Asked())
    text = workload_file.write(made, workload_from_logs.comments(found, made, tmp_path / "mine.toml"))
    for secret in ("203.0.113.77", "mallory", "secret-plan", "abc123", "ref.example", "Agent/9", "acme"):
        assert secret not in text.replace(str(tmp_path), ""), secret
    _, kept = workload_from_logs.read([path], Asked(keep_paths=True))
    text = workload_file.write(kept)
    assert "GET /secret-plan" in text
    for secret in ("203.0.113.77", "mallory", "abc123", "ref.example", "Agent/9", "acme"):
        assert secret not in text, secret


def test_kept_paths_are_those_of_get_and_head_that_a_script_can_hold(tmp_path: Path) -> None:
    line = '10.0.0.1 - - [01/Jan/2026:00:00:01 +0000] "{} HTTP/1.1" {} 10\n'
    asked = ["GET /a", "GET /a?q=1", "HEAD /b", "POST /c", "GET /d:x", "GET /e;", "GET /missing"]
    path = tmp_path / "access.log"
    path.write_text("".join(line.format(each, 404 if "missing" in each else 200) for each in asked))
    found, made = workload_from_logs.read([path], Asked(keep_paths=True))
    assert {transaction.script: transaction.weight for transaction in made.transaction} == {"GET /a": 2, "HEAD /b": 1}
    assert any("3 of the log's 7 requests" in note.text for note in found.notes)
    path.write_text(line.format("POST /c", 200))
    with pytest.raises(UsageError, match="no path to request"):
        workload_from_logs.read([path], Asked(keep_paths=True))


def test_a_log_without_a_request_or_without_sizes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    path.write_text('10.0.0.1 - - [01/Jan/2026:00:00:01 +0000] "-" 408 0\n' * 3)
    with pytest.raises(UsageError, match="none of the 3 lines is a request"):
        traffic_of(path)


def test_the_page_says_what_was_found_and_fits() -> None:
    found = traffic_of(SAMPLES / "apache_combined.log")
    document = traffic_document.of(found)
    text = terminal.text(document)
    assert max(map(len, text.splitlines())) <= 80
    assert "400 of 400 lines are requests (combined)" in " ".join(text.split())
    assert "<html" in html.render_document(document)


# ── parts ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

BINS = st.lists(st.tuples(st.integers(0, 10**9), st.integers(1, 1000)), min_size=1, max_size=200)


@given(BINS, st.integers(1, 40))
def test_fewer_bins_hold_the_same_count_and_sum(pairs: list[tuple[int, int]], most: int) -> None:
    histogram = Histogram()
    for value, count in pairs:
        histogram.add(value, count)
    bins = histogram.bins()
    merged = fewer(bins, most)
    assert len(merged) <= most
    assert [each.value for each in merged] == sorted(each.value for each in merged)
    assert total(merged) == sum(count for _, count in pairs)
    assert mean(merged) == pytest.approx(sum(value * count for value, count in pairs) / total(merged))


@given(BINS)
def test_whole_lengths_have_the_same_connections_and_nearly_the_same_requests(pairs: list[tuple[int, int]]) -> None:
    histogram = Histogram()
    for value, count in pairs:
        histogram.add(value % 1000 + 1, count)
    bins = histogram.bins()
    made = web_workload.lengths(bins)
    assert total(made) == total(bins)
    assert len(made) <= 2 * web_workload.MOST_LENGTHS
    assert all(each.value == int(each.value) >= 1 for each in made)
    assert abs(sum(each.value * each.count for each in made) - mean(bins) * total(bins)) <= len(bins)


def test_different_values_are_estimated_to_a_few_percent() -> None:
    distinct = Distinct()
    for number in range(200_000):
        if (hashed := hash(b"%d" % (number % 100_000))) < distinct.limit:
            distinct.add(hashed)
    assert distinct.count() == pytest.approx(100_000, rel=6 / KEPT**0.5)


def test_held_clients_are_bounded_and_none_of_their_requests_is_lost() -> None:
    connections = ConnectionLengths(75)
    opened = 0
    for number in range(3 * HELD):
        opened += connections.request(b"%d" % number, number // 1000, b"HTTP/1.1")
        assert len(connections.held) <= HELD + 1
    found = connections.found()
    assert found.opened == opened == 3 * HELD
    assert found.per_connection == 1.0
