"""Reads access logs with a JSON object on each line: of Caddy, and of nginx, Apache and HAProxy under the names that people give the fields. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

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
    *(
        "body_bytes_sent",
        "size",
        "bytes_sent",
        "bytes",
        "response_size",
        "bytes_read",
        "bytes_out",
        "DownstreamContentSize",
        "sent_bytes",
    ),
    *("response_bytes", "bytes_uploaded"),
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
_LEAST = 3
"""How many of time, request and status an object must have to be a line of an access log."""
_CLF = re.compile(r"\d{2}/[A-Z][a-z]{2}/\d{4}:")


def recognise(head: Sequence[bytes]) -> int:
    return sum(1 for line in head if isinstance(_said(line), tuple))


def read(lines: Iterable[bytes], head: Sequence[bytes], zones: set[str]) -> Iterator[Request | str]:  # noqa: ARG001
    """Yield what each line says."""
    times: dict[Any, int] = {}
    for line in lines:
        said = _said(line, times)
        if len(times) > 100_000:
            times.clear()
        yield said


def _said(line: bytes, times: dict[Any, int] | None = None) -> Request | str:
    at = line.find(b"{")  # syslog may have put something before it
    if at < 0:
        return TOO_LONG_REASON if line.startswith(b"\0") else OTHER
    try:
        whole = _DECODER.decode(line[at:] if at else line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return OTHER
    if not isinstance(whole, dict):
        return OTHER
    nested = whole.get("request")
    fields: Mapping[str, Any] = {**whole, **nested} if isinstance(nested, dict) else whole
    status, time = _first(fields, STATUS), _first(whole, TIME)
    request = _first(fields, REQUEST) if nested is None or isinstance(nested, str) else None
    if isinstance(request, str) and request.count(" ") >= 2:
        method, _, rest = request.partition(" ")
        path, _, protocol = rest.rpartition(" ")
    else:
        method, path = str(_first(fields, METHOD) or ""), str(_first(fields, PATH) or "")
        protocol = str(_first(fields, PROTOCOL) or "")
    if status is None and not method:
        return OTHER
    seconds = _time(time, times)
    if seconds is None:
        return NO_TIME
    if not method.isalpha() or not path:
        return NO_REQUEST
    protocol = protocol if protocol.startswith("HTTP/") or not protocol else f"HTTP/{protocol}"
    size = _first(fields, SIZE)
    return (
        seconds,
        _bytes(_first(fields, CLIENT)),
        _bytes(method),
        _bytes(path),
        _bytes(status),
        b"-" if size is None else _bytes(size).partition(b".")[0],
        _bytes(protocol),
        _more(fields),
    )


def _first(fields: Mapping[str, Any], names: Sequence[str]) -> Any:
    for name in names:
        value = fields.get(name)
        if value is not None and not isinstance(value, dict | list) and value != "":
            return value
    return None


def _bytes(value: object) -> bytes:
    return b"" if value is None else str(value).encode("utf-8", "surrogatepass")


def _time(value: object, times: dict[Any, int] | None) -> int | None:
    """Seconds since 1970. A number may be in seconds, milli-, micro- or nanoseconds."""
    if isinstance(value, bool) or value is None:
        return None
    if times is not None and (known := times.get(value)) is not None:
        return known
    found = _read_time(value)
    if times is not None and found is not None:
        times[value] = found
    return found


def _read_time(value: object) -> int | None:
    try:
        text = str(value).strip()
        number = float(text) if isinstance(value, int | float) or re.fullmatch(r"\d{9,19}(?:\.\d+)?", text) else None
        if number is not None:
            for unit in (1.0, 1e3, 1e6, 1e9):
                if 1e8 < number / unit < 1e11:
                    return int(number / unit)
            return None
        text = text.strip("[]")
        return clf(text.encode()) if _CLF.match(text) else iso(text)
    except (ValueError, OverflowError):
        return None


def _number(fields: Mapping[str, Any], names: Sequence[str]) -> float:
    """The first field that is a number; below 0: none is."""
    try:
        return float(_first(fields, names) if _first(fields, names) is not None else -1.0)
    except ValueError:
        return -1.0


def _more(fields: Mapping[str, Any]) -> More:
    seconds = _number(fields, SECONDS)
    for names, unit in ((MILLISECONDS, 1e3), (MICROSECONDS, 1e6)):
        seconds = seconds if seconds >= 0 else _number(fields, names) / unit
    tls = fields.get("tls")
    if isinstance(tls, dict):  # Caddy's
        encrypted: bytes | None = b"TLS"
        resumed = tls.get("resumed") if isinstance(tls.get("resumed"), bool) else None
    else:
        encrypted = _bytes(_first(fields, TLS)) if any(name in fields for name in TLS) else None
        reused = _first(fields, REUSED)
        resumed = None if reused is None or not encrypted else str(reused) in ("r", "true", "1", "True")
    return More(
        seconds,
        int(_number(fields, BYTES_IN)),
        _bytes(_first(fields, CONNECTION)),
        int(max(0.0, _number(fields, NTH))),
        encrypted,
        resumed,
    )
