"""Reads access logs with a JSON object on each line: of Caddy, and of nginx, Apache and HAProxy under the names that people give the fields. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ciphercost.importers.log_lines import TOO_LONG
from ciphercost.importers.logs import More, Request, _json_quick
from ciphercost.importers.logs._json_plan import Plan, planned
from ciphercost.importers.logs._json_quick import OF_PLAN, Tls
from ciphercost.importers.logs._refused import NO_REQUEST, NO_TIME, OTHER, TOO_LONG_REASON
from ciphercost.importers.logs._times import clf, iso
from ciphercost.model.traffic import Kind

KIND: Kind = "web"
_DECODER = msgspec.json.Decoder()
_CLF = re.compile(r"\d{2}/[A-Z][a-z]{2}/\d{4}:")
_EPOCH = re.compile(r"\d{9,19}(?:\.\d+)?")
HELD = 100_000
"""Times that are remembered."""
MOST_WORDS = 5000
"""Words and numbers that are remembered."""
RESUMED = ("r", "true", "1")
"""How logs write that a connection resumed a session."""
MOST_PLANS = 1000
"""Sets of fields whose meaning is remembered."""


class _Known:
    """What earlier lines told: times and words by their text, and plans by the names of an object's fields."""

    def __init__(self) -> None:
        self.times: dict[Any, int] = {}
        self.words: dict[str, bytes] = {}
        self.numbers: dict[str, float] = {}
        self.plans: dict[tuple[str, ...], Plan] = {}

    def plan(self, fields: Mapping[str, Any]) -> Plan:
        names = tuple(fields)
        found = self.plans.get(names)
        if found is None:
            if len(self.plans) > MOST_PLANS:
                self.plans.clear()
            found = self.plans[names] = planned(fields)
        return found

    def word(self, text: str) -> bytes:
        """A text that comes again and again, as bytes."""
        found = self.words.get(text)
        if found is None:
            if len(self.words) > MOST_WORDS:
                self.words.clear()
            found = self.words[text] = text.encode("utf-8", "replace")
        return found

    def number(self, value: object) -> float:
        """A number of 0 or more; below 0: it is none. Texts are remembered."""
        number = _number(value)
        if type(value) is str:
            if len(self.numbers) > MOST_WORDS:
                self.numbers.clear()
            self.numbers[value] = number
        return number


def recognise(head: Sequence[bytes]) -> int:
    known = _Known()
    return sum(1 for line in head if isinstance(_said(line, known), tuple))


def read(lines: Iterable[bytes], head: Sequence[bytes], zones: set[str]) -> Iterator[Request | str]:  # noqa: ARG001
    """Yield what each line says."""
    known = _Known()
    quick = _json_quick.of(fields for line in head if isinstance(fields := _fields(line), dict))
    if quick is None:
        for line in lines:
            yield _said(line, known)
        return
    plan, decode, get = quick
    for line in lines:
        try:
            values = get(decode(line if line[:1] == b"{" else line[line.find(b"{") :]))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            yield _said(line, known)
            continue
        # Another text than `GET / HTTP/1.1`: other fields may say more.
        whole = not plan.request or (type(values[0]) is str and values[0].count(" ") >= 2)
        yield _request(values, plan, known) if whole else _said(line, known)


def _fields(line: bytes) -> object:
    """What a line holds; None: it is no JSON."""
    at = line.find(b"{")  # syslog may have put something before it
    if at < 0:
        return None
    try:
        return _DECODER.decode(line[at:] if at else line)
    except UnicodeDecodeError:
        return _fields(line.decode("utf-8", "replace").encode())
    except (msgspec.DecodeError, RecursionError):
        return None


def _said(line: bytes, known: _Known) -> Request | str:
    """What any line says."""
    fields = _fields(line)
    if not isinstance(fields, dict):
        return TOO_LONG_REASON if line == TOO_LONG else OTHER
    if isinstance(nested := fields.get("request"), dict):  # Caddy's
        fields = {**fields, **nested}
        fields.pop("request")
    plan = known.plan(fields)
    tls = fields.get("tls")
    values = (
        *(fields.get(getattr(plan, part)) for part in OF_PLAN),
        Tls(tls.get("resumed")) if isinstance(tls, dict) else None,
    )
    return _request(values, plan, known)


def _request(values: tuple[Any, ...], plan: Plan, known: _Known) -> Request | str:
    """What the values of `OF_PLAN` say, behind which is what Caddy says of TLS."""
    (
        request,
        time,
        client,
        method,
        path,
        protocol,
        status,
        size,
        seconds,
        bytes_in,
        connection,
        nth,
        tls,
        reused,
        caddy,
    ) = values
    if type(request) is str and request.count(" ") >= 2:
        method, _, rest = request.partition(" ")
        path, _, protocol = rest.rpartition(" ")
    else:
        method, path, protocol = str(method or ""), str(path or ""), str(protocol or "")
    if status is None and not method:
        return OTHER
    if type(time) is float and 1e8 < time < 1e11:
        at: int | None = int(time)
    elif type(time) is not str or (at := known.times.get(time)) is None:
        at = _time(time, known.times)
    if at is None:
        return NO_TIME
    if not path or not method.isalpha():
        return NO_REQUEST
    if caddy is not None:
        encrypted: bytes | None = b"TLS"
        reused = caddy.resumed
    else:
        encrypted = _bytes(tls) if plan.tls else None
    words = known.words
    number = (
        known.numbers.get(seconds)
        if type(seconds) is str
        else seconds
        if type(seconds) is float and 0 <= seconds < 1e15
        else None
    )
    # Most words and numbers have come before; a call for each would take longer than all else.
    return (
        at,
        b"" if client is None else client.encode("utf-8", "replace") if type(client) is str else _bytes(client),
        words.get(method) or known.word(method),
        path.encode("utf-8", "replace"),
        (words.get(status) or known.word(status)) if type(status) is str else _bytes(status),
        b"-" if size is None else b"%d" % size if type(size) is int else _bytes(size).partition(b".")[0],
        words.get(protocol) or known.word(protocol if protocol[:5] == "HTTP/" or not protocol else f"HTTP/{protocol}"),
        tuple.__new__(
            More,
            (
                (known.number(seconds) if number is None else number) / plan.unit,
                -1 if bytes_in is None else int(_number(bytes_in)),
                b"" if connection is None else _bytes(connection),
                0 if nth is None else int(max(0.0, _number(nth))),
                encrypted,
                None
                if reused is None or not encrypted or encrypted == b"-"
                else reused is True or str(reused).lower() in RESUMED,
            ),
        ),
    )


def _bytes(value: object) -> bytes:
    return b"" if value is None else str(value).encode("utf-8", "replace")


def _time(value: object, times: dict[Any, int]) -> int | None:
    """Seconds since 1970. A number may be in seconds, milli-, micro- or nanoseconds."""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return None
    found = times.get(value)
    if found is None and (found := _read_time(value)) is not None:
        if len(times) > HELD:
            times.clear()
        times[value] = found
    return found


def _read_time(value: str | float) -> int | None:
    try:
        text = str(value).strip()
        if isinstance(value, int | float) or _EPOCH.fullmatch(text):
            number = float(text)
            return next((int(number / unit) for unit in (1.0, 1e3, 1e6, 1e9) if 1e8 < number / unit < 1e11), None)
        text = text.strip("[]")
        return clf(text.encode()) if _CLF.match(text) else iso(text)
    except (ValueError, OverflowError):
        return None


def _number(value: object) -> float:
    """A number of 0 or more; below 0: it is none."""
    try:
        number = float(value) if isinstance(value, str | int | float) else -1.0
    except ValueError:
        return -1.0
    return number if 0 <= number < 1e15 else -1.0
