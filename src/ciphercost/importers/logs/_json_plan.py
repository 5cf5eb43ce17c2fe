"""Which field of a JSON access log says what: the names that people give the fields of nginx, Apache, HAProxy and Caddy. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

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


class Plan(NamedTuple):
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


def planned(fields: Mapping[str, Any]) -> Plan:
    def first(names: Sequence[str]) -> str:
        return next((name for name in names if name in fields and not isinstance(fields[name], dict | list)), "")

    timed = [(first(names), unit) for names, unit in ((SECONDS, 1.0), (MILLISECONDS, 1e3), (MICROSECONDS, 1e6))]
    seconds, unit = next((each for each in timed if each[0]), ("", 1.0))
    return Plan(
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
