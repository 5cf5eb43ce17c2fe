"""Reads access logs with a JSON object on each line: of Caddy, and of nginx, Apache and HAProxy under the names that people give the fields. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ciphercost.importers.log_lines import TOO_LONG
from ciphercost.importers.logs import More, Request
from ciphercost.importers.logs._refused import NO_REQUEST, NO_TIME, OTHER, TOO_LONG_REASON
from ciphercost.importers.logs._times import clf, iso
from ciphercost.model.traffic import Kind

KIND: Kind = "web"
TIME = (
    "ts",
    "time_iso8601",
    "msec",
    "time_local",
    "@timestamp",
    "timestamp",
    "time",
    "StartUTC",
    "start_time",
    "datetime",
    "date",
)
CLIENT = (
    "remote_addr",
    "remote_ip",
    "client_ip",
    "clientip",
    "remoteIP",
    "ClientHost",
    "client_addr",
    "client",
    "ip",
    "remote_host",
    "host",
    "ci",
)
METHOD = ("request_method", "method", "http_method", "RequestMethod", "verb")
PATH = ("request_uri", "uri", "path", "url", "request_path", "RequestPath", "http_path")
REQUEST = ("request", "request_line", "http_request", "RequestLine")
STATUS = (
    "status",
    "status_code",
    "response_status",
    "response",
    "http_status",
    "DownstreamStatus",
    "code",
    "resp_status",
)
SIZE = (
    "body_bytes_sent",
    "size",
    "bytes_sent",
    "bytes",
    "response_size",
    "bytes_read",
    "bytes_out",
    "DownstreamContentSize",
    "sent_bytes",
    "response_bytes",
    "bytes_uploaded",
)
PROTOCOL = ("server_protocol", "proto", "protocol", "http_version", "httpversion", "RequestProtocol")
SECONDS = ("request_time", "duration", "request_duration", "response_time", "elapsed")
MILLISECONDS = ("duration_ms", "time_total", "request_time_ms", "response_time_ms", "Tt", "Ta", "ta", "total_time")
MICROSECONDS = ("duration_us", "request_time_us", "time_us", "response_time_us")
BYTES_IN = ("request_length", "bytes_in", "request_size", "bytes_received", "RequestContentSize")
CONNECTION = ("connection", "connection_id")
NTH = ("connection_requests",)
TLS = ("ssl_protocol", "tls_version", "TLSVersion", "ssl_version")
REUSED = ("ssl_session_reused", "ssl_resumed")
_DECODER = msgspec.json.Decoder()
_CLF = re.compile(r"\d{2}/[A-Z][a-z]{2}/\d{4}:")
_EPOCH = re.compile(r"\d{9,19}(?:\.\d+)?")
HELD = 100_000
"""Times that are remembered."""
MOST_PLANS = 1000
"""Sets of fields whose meaning is remembered."""


class _Plan(NamedTuple):
    """Which field of an object says what; empty: none does."""

    time: str
    client: str
    method: str
    path: str
    request: str
    status: str
    size: str
    protocol: str
    seconds: str
    unit: float
    """Of `seconds`, per second."""
    bytes_in: str
    connection: str
    nth: str
    tls: str
    reused: str


class _Known:
    """What earlier lines told: times by their text, and plans by the names of an object's fields."""

    def __init__(self) -> None:
        self.times: dict[Any, int] = {}
        self.plans: dict[tuple[str, ...], _Plan] = {}

    def plan(self, fields: Mapping[str, Any]) -> _Plan:
        names = tuple(fields)
        found = self.plans.get(names)
        if found is None:
            if len(self.plans) > MOST_PLANS:
                self.plans.clear()
            found = self.plans[names] = _planned(fields)
        return found


def _planned(fields: Mapping[str, Any]) -> _Plan:
    def first(names: Sequence[str]) -> str:
        return next((name for name in names if name in fields and not isinstance(fields[name], dict | list)), "")

    timed = [(first(names), unit) for names, unit in ((SECONDS, 1.0), (MILLISECONDS, 1e3), (MICROSECONDS, 1e6))]
    seconds, unit = next((each for each in timed if each[0]), ("", 1.0))
    return _Plan(
        time=first(TIME),
        client=first(CLIENT),
        method=first(METHOD),
        path=first(PATH),
        request=first(REQUEST),
        status=first(STATUS),
        size=first(SIZE),
        protocol=first(PROTOCOL),
        seconds=seconds,
        unit=unit,
        bytes_in=first(BYTES_IN),
        connection=first(CONNECTION),
        nth=first(NTH),
        tls=first(TLS),
        reused=first(REUSED),
    )


def recognise(head: Sequence[bytes]) -> int:
    known = _Known()
    return sum(1 for line in head if isinstance(_said(line, known), tuple))


def read(lines: Iterable[bytes], head: Sequence[bytes], zones: set[str]) -> Iterator[Request | str]:  # noqa: ARG001
    """Yield what each line says."""
    known = _Known()
    for line in lines:
        yield _said(line, known)


def _said(line: bytes, known: _Known) -> Request | str:
    at = line.find(b"{")  # syslog may have put something before it
    if at < 0:
        return TOO_LONG_REASON if line == TOO_LONG else OTHER
    try:
        fields = _DECODER.decode(line[at:] if at else line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return OTHER
    if not isinstance(fields, dict):
        return OTHER
    if isinstance(nested := fields.get("request"), dict):  # Caddy's
        fields = {**fields, **nested}
        fields.pop("request")
    plan = known.plan(fields)
    request = fields.get(plan.request)
    if isinstance(request, str) and request.count(" ") >= 2:
        method, _, rest = request.partition(" ")
        path, _, protocol = rest.rpartition(" ")
    else:
        method, path, protocol = (str(fields.get(name) or "") for name in (plan.method, plan.path, plan.protocol))
    status = fields.get(plan.status)
    if status is None and not method:
        return OTHER
    seconds = _time(fields.get(plan.time), known.times)
    if seconds is None:
        return NO_TIME
    if not method.isalpha() or not path:
        return NO_REQUEST
    size = fields.get(plan.size)
    return (
        seconds,
        _bytes(fields.get(plan.client)),
        method.encode("utf-8", "replace"),
        path.encode("utf-8", "replace"),
        _bytes(status),
        b"-" if size is None else _bytes(size).partition(b".")[0],
        (protocol if protocol.startswith("HTTP/") or not protocol else f"HTTP/{protocol}").encode("utf-8", "replace"),
        _more(fields, plan),
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


def _more(fields: Mapping[str, Any], plan: _Plan) -> More:
    tls = fields.get("tls")
    reused = fields.get(plan.reused)
    if isinstance(tls, dict):  # Caddy's
        encrypted: bytes | None = b"TLS"
        reused = tls.get("resumed")
    else:
        encrypted = _bytes(fields[plan.tls]) if plan.tls else None
    known = reused is not None and encrypted not in (None, b"", b"-")
    seconds = _number(fields.get(plan.seconds))
    return More(
        seconds / plan.unit if seconds >= 0 else -1.0,
        int(_number(fields.get(plan.bytes_in))),
        _bytes(fields.get(plan.connection)),
        int(max(0.0, _number(fields.get(plan.nth)))),
        encrypted,
        str(reused).lower() in ("r", "true", "1") if known else None,
    )
