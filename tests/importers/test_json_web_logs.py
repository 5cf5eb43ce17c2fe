"""JSON access logs: the quick way to read a line says what the general way says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from ciphercost.importers.logs import Request, _json_plan, _json_quick, json_web
from ciphercost.importers.web_traffic import HELD, WebTraffic

SAMPLES = Path(__file__).parent / "log_samples"
NAMES = sorted(name for key, names in vars(_json_plan).items() if key.isupper() for name in names)
VALUES: some.SearchStrategy[Any] = some.one_of(
    some.sampled_from(
        [
            "GET /a HTTP/1.1",
            "GET",
            "/a",
            "",
            "-",
            "200",
            "1700000000.5",
            "2024-01-31T12:00:00Z",
            "r",
            ".",
            "TLSv1.3",
            "0.012",
            "HTTP/2.0",
        ]
    ),
    some.sampled_from([200, 1700000000, 1700000000.25, 0, -1, 3.5, 10**30, True, None, [], {}]),
    some.text(max_size=4),
)
FLAT = some.dictionaries(some.sampled_from([*NAMES, "tls", "user_agent"]), VALUES, max_size=14)
NESTED = some.builds(
    lambda outer, inner, tls: {**outer, "request": {**inner, **tls}},
    FLAT,
    FLAT,
    some.sampled_from([{}, {"tls": {"resumed": True}}, {"tls": {}}, {"tls": None}]),
)
NGINX = {
    "time_iso8601": "2024-01-31T12:00:00+00:00",
    "remote_addr": "192.0.2.1",
    "request": "GET /a HTTP/1.1",
    "status": 200,
    "body_bytes_sent": 5,
}
CADDY = {
    "ts": 1.7e9,
    "status": 200,
    "size": 5,
    "duration": 0.25,
    "request": {"method": "GET", "uri": "/a", "proto": "HTTP/2.0", "remote_ip": "192.0.2.1"},
}


def read(lines: Sequence[bytes], head: Sequence[bytes]) -> list[Request | str]:
    return list(json_web.read(lines, head, set()))


@given(some.sampled_from([NGINX, CADDY]), some.lists(FLAT | NESTED, max_size=4), some.lists(FLAT | NESTED, max_size=4))
def test_a_line_says_the_same_whatever_the_first_lines_of_its_log_were(
    usual: dict[str, Any], head: list[dict[str, Any]], more: list[dict[str, Any]]
) -> None:
    changed = [{**usual, **each} for each in more]
    lines = [json.dumps(each).encode() for each in (usual, *more, *changed)]
    first = [json.dumps(each).encode() for each in (usual, usual, *head)]
    assert [read([line], first) for line in lines] == [read([line], []) for line in lines]


def test_no_name_says_two_things() -> None:
    assert len(NAMES) == len(set(NAMES))


def test_lines_of_nginx_and_caddy_are_read_quickly() -> None:
    for name in ("nginx.json.log", "caddy.json.log"):
        head = (SAMPLES / name).read_bytes().splitlines()
        quick = _json_quick.of(map(json.loads, head))
        assert quick is not None
        quick.decode(head[0][head[0].index(b"{") :])


def test_bytes_of_another_field_that_are_no_utf8_do_not_matter() -> None:
    line = json.dumps({**NGINX, "user_agent": "x"}).encode().replace(b'"x"', b'"\xfc"')
    assert read([line], [json.dumps(NGINX).encode()]) == read([line], []) == read([json.dumps(NGINX).encode()], [])


def test_a_minute_with_many_different_sizes_counts_once() -> None:
    traffic = WebTraffic()
    lines = [json.dumps({**CADDY, "ts": 1.7e9 + number % 2, "size": number}).encode() for number in range(2 * HELD)]
    traffic.add("a", "json-web", json_web.read(lines, lines[:5], set()))
    (minute,) = traffic.traffic().arrivals.concurrent
    assert (minute.value, minute.count) == (2 * HELD * 0.25 / 60, 1)
