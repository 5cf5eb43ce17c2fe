"""Makes a workload of the traffic of a web server's logs. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import reduce

import msgspec

from ciphercost.importers.quantised import fewer
from ciphercost.load.workload_file import MADE_UP
from ciphercost.load.workloads import Transaction, Workload
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Warning_
from ciphercost.model.shares import in_percent
from ciphercost.model.traffic import Bin, OperationClass, Traffic

MANY, SOME, FEW = 40, 10, 3
"""Sizes of a class that has at least a tenth of the requests or bytes, a hundredth, or less."""
MOST_LENGTHS = 32
SMALLEST_PIECE = 1 << 20
"""Bytes. An answer is fetched in pieces of this size or larger if it is too rare to be in every slice."""
MORE_REQUESTS = 0.01
"""Share by which pieces may add to the requests."""
MOST_PATHS = 500
BODY = 200
"""Bytes of a request's body where the log does not have them."""
WITH_BODY = ("POST", "PUT", "PATCH")
WITHOUT_BODY = ("GET", "HEAD", "DELETE", "OPTIONS")
KEPT_BINS = 32
"""Bins of each histogram in the workload's file."""


def of(traffic: Traffic, *, speed: float = 1.0) -> tuple[Workload, list[Warning_]]:
    """The workload for a server that ciphercost starts, and what it does not repeat as it was.

    Raises UsageError if the log has no requests or no sizes.
    """
    _check(traffic)
    notes: list[Warning_] = []
    replayed, others = _replayed(traffic)
    if others:
        notes.append(Warning_("not-replayed", f"{others:,} requests with other methods are not in the workload"))
    piece = _piece(replayed)
    transactions: list[Transaction] = []
    documents: dict[str, str] = {}
    cut = 0
    for of_class in replayed:
        for size, count, pieces in _sizes(of_class, _most(of_class, traffic), piece):
            cut += count if pieces > 1 else 0
            path = f"{MADE_UP}{size}"
            documents[path] = str(size)
            transactions.append(Transaction(f"{of_class.name}, {size} B", _script(of_class, path), count * pieces))
    if cut:
        text = f"{cut:,} answers larger than {piece >> 20} MiB are fetched in pieces of at most that size, so that each slice of load has its share"
        notes.append(Warning_("pieces", text))
    if any(each.method in WITH_BODY and not each.bytes_in for each in replayed):
        text = f"the log has no size of what requests send, so each POST, PUT and PATCH sends {BODY} bytes"
        notes.append(Warning_("no-request-sizes", text))
    return _workload(
        traffic, transactions, dict(sorted(documents.items(), key=lambda each: int(each[1]))), speed
    ), notes


def by_paths(
    traffic: Traffic, paths: Mapping[tuple[bytes, bytes], Sequence[int]], *, speed: float = 1.0
) -> tuple[Workload, list[Warning_]]:
    """The workload of the logged paths, for the user's own server, and what it leaves out. `paths`: requests by method and path.

    Raises UsageError if no path can be requested.
    """
    _check(traffic)
    usable = {key: counts[0] for key, counts in paths.items() if _usable(key[1])}
    often = sorted(usable, key=lambda key: (-usable[key], key))[:MOST_PATHS]
    if not often:
        raise UsageError("no GET or HEAD request of the log was answered with success, so there is no path to request")
    transactions = [
        Transaction(f"{number}", f"{method.decode()} {path.decode()}", usable[method, path])
        for number, (method, path) in enumerate(often, 1)
    ]
    kept = sum(usable[key] for key in often)
    text = (
        f"it has {kept:,} of the log's {traffic.operations:,} requests ({in_percent(kept / traffic.operations)}): the {len(often)} most frequent paths of GET "
        "and HEAD that were answered with success, without their queries; all other requests are left out, and those that change something always"
    )
    return _workload(traffic, transactions, {}, speed), [Warning_("paths", text)]


def _check(traffic: Traffic) -> None:
    if not traffic.operations:
        reasons = "; ".join(f"{left.lines:,}: {left.reason}" for left in traffic.left_out[:3])
        raise UsageError(f"none of the {traffic.lines:,} lines is a request ({reasons})")
    if not any(each.sizes for each in traffic.classes):
        raise UsageError(
            "the log has no sizes of answers, so nothing can be repeated; add $body_bytes_sent (nginx) or %B (Apache) to its format"
        )


def _replayed(traffic: Traffic) -> tuple[list[OperationClass], int]:
    """The classes that are repeated, and how many requests are not."""
    known = [each for each in traffic.classes if each.method in (*WITH_BODY, *WITHOUT_BODY)]
    return known, traffic.operations - sum(each.count for each in known)


def _bodiless(of_class: OperationClass) -> bool:
    """Whether its answers have no body, whatever the log says of their size."""
    return of_class.method == "HEAD" or of_class.status in ("204", "304")


def _most(of_class: OperationClass, traffic: Traffic) -> int:
    share = max(of_class.count / traffic.operations, of_class.bytes_out / max(1, traffic.bytes_out))
    return 1 if _bodiless(of_class) else MANY if share >= 0.1 else SOME if share >= 0.01 else FEW


def _piece(classes: Sequence[OperationClass]) -> int:
    """The smallest power of two that adds few enough requests when larger answers are fetched in pieces of it."""
    sizes = [
        each
        for of_class in classes
        if not _bodiless(of_class)
        for each in of_class.sizes
        if each.value > SMALLEST_PIECE
    ]
    allowed = MORE_REQUESTS * sum(of_class.count for of_class in classes)
    piece = SMALLEST_PIECE
    while sum(each.count * (math.ceil(each.value / piece) - 1) for each in sizes) > allowed:
        piece *= 2
    return piece


def _sizes(of_class: OperationClass, most: int, piece: int) -> Iterator[tuple[int, int, int]]:
    """(bytes of a piece, answers, pieces of each) of each size that is repeated."""
    if _bodiless(of_class):
        yield 0, of_class.count, 1
        return
    for each in fewer(of_class.sizes, most):
        pieces = max(1, math.ceil(each.value / piece))
        yield round(each.value / pieces), each.count, pieces


def _script(of_class: OperationClass, path: str) -> str:
    if _bodiless(of_class):
        return f"HEAD {path}"
    if of_class.method not in WITH_BODY:
        return f"GET {path}"
    length = round(of_class.bytes_in / of_class.count) if of_class.bytes_in else BODY
    return f"\\set body random_text({max(1, min(length, 1 << 20))})\nPOST {path} :body"


def _usable(path: bytes) -> bool:
    """Whether a script can hold the path as it is."""
    return (
        path.isascii()
        and path.startswith(b"/")
        and not any(each in path for each in (b"$", b":", b";", b"#", b"\\", b'"', b"'"))
        and path.decode().isprintable()
        and b" " not in path
    )


def _workload(
    traffic: Traffic, transactions: Sequence[Transaction], documents: dict[str, str], speed: float
) -> Workload:
    divisor = reduce(math.gcd, (transaction.weight for transaction in transactions))
    return Workload(
        title=f"{traffic.operations:,} requests of a {' and '.join(traffic.formats)} log, {period(traffic)}",
        measures="the logged mix of requests and connections",
        languages=("http",),
        read_only=True,
        draw="even",
        lengths=tuple(lengths(traffic.connections.lengths)),
        rate=round(traffic.busiest_rate * speed, 3),
        arrivals="logged" if traffic.arrivals.busiest_hour else "random",
        arrived=traffic.arrivals.busiest_hour,
        parameters={"http": 1},
        documents=documents,
        transaction=[
            msgspec.structs.replace(transaction, weight=transaction.weight // divisor) for transaction in transactions
        ],
        traffic=kept(traffic),
    )


def lengths(bins: Sequence[Bin]) -> list[Bin]:
    """Whole numbers of requests per connection: at most about MOST_LENGTHS, with the same connections and requests in all."""
    counts: dict[int, int] = {}
    for each in bins if len(bins) <= MOST_LENGTHS else fewer(bins, MOST_LENGTHS // 2):
        low = math.floor(each.value)
        above = round((each.value - low) * each.count)
        for length, count in ((low, each.count - above), (low + 1, above)):
            if count:
                counts[max(1, length)] = counts.get(max(1, length), 0) + count
    return [Bin(length, count) for length, count in sorted(counts.items())]


def kept(traffic: Traffic) -> Traffic:
    """What the workload's file keeps of it: no file's name, and no more detail than a reader or a prediction needs."""

    def short(bins: list[Bin]) -> list[Bin]:
        return [Bin(float(f"{each.value:.5g}"), each.count) for each in fewer(bins, KEPT_BINS)]

    connections, arrivals = traffic.connections, traffic.arrivals
    return msgspec.structs.replace(
        traffic,
        left_out=[msgspec.structs.replace(each, file="") for each in traffic.left_out],
        classes=[msgspec.structs.replace(each, sizes=[], times=short(each.times)) for each in traffic.classes],
        connections=msgspec.structs.replace(
            connections, lengths=short(connections.lengths), idle=short(connections.idle)
        ),
        arrivals=msgspec.structs.replace(
            arrivals,
            per_second=short(arrivals.per_second),
            concurrent=short(arrivals.concurrent),
            busiest_hour=None,
        ),
        hours=[msgspec.structs.replace(each, seconds=round(each.seconds, 3)) for each in traffic.hours],
        notes=[],
    )


def period(traffic: Traffic) -> str:
    """`1 Jul 1995` or `1 to 28 Jul 1995`."""
    first, last = (datetime.fromtimestamp(at, UTC) for at in (traffic.begin, traffic.end))
    if first.date() == last.date():
        return f"{first.day} {first:%b %Y}"
    if (first.year, first.month) == (last.year, last.month):
        return f"{first.day} to {last.day} {last:%b %Y}"
    return f"{first.day} {first:%b %Y} to {last.day} {last:%b %Y}"
