"""odd_sites: small web sites as users have them, in threads of the test process: with tokens, logins, redirects, and manners of their own."""

from __future__ import annotations

import gzip
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bad_servers import BadServer, response

Page = Callable[["Asked"], bytes]
"""Answers a request with the bytes of a whole response."""
WORDS = "<p>The quick brown fox jumps over the lazy dog, and the lazy dog does not mind.</p>\n" * 20


class Asked(NamedTuple):
    """A request without a body."""

    method: str
    path: str
    headers: dict[str, str]
    """By name in lower case."""
    secure: bool
    number: int
    """Of this server's requests, from 0."""


class OddSite(BadServer):
    """A site on one port. `close`: it closes each connection after its answer."""

    def __init__(self, page: Page, certificate: tuple[Path, Path] | None = None, *, close: bool = False) -> None:
        self._page, self._secure, self._close = page, certificate is not None, close
        self.seen: list[Asked] = []
        super().__init__(lambda connection, number: False, certificate)

    def reply(self, connection: socket.socket, head: bytes, number: int) -> bool:
        first, *lines = head.decode().split("\r\n")
        method, path, _ = first.split(" ")
        named = dict(line.split(": ", 1) for line in lines if ": " in line)
        asked = Asked(method, path, {name.lower(): value for name, value in named.items()}, self._secure, number)
        self.seen.append(asked)
        connection.sendall(self._page(asked))
        return not self._close


class Pair(NamedTuple):
    """A site with and without TLS."""

    plain: OddSite
    encrypted: OddSite

    @property
    def urls(self) -> tuple[str, str]:
        return f"http://localhost:{self.plain.port}/", self.encrypted_url

    @property
    def encrypted_url(self) -> str:
        return f"https://localhost:{self.encrypted.port}/"


@contextmanager
def pair(page: Page, certificate: tuple[Path, Path], *, close: bool = False) -> Iterator[Pair]:
    with OddSite(page, close=close) as plain, OddSite(page, certificate, close=close) as encrypted:
        yield Pair(plain, encrypted)


# ── pages ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def html(body: str, *headers: str, status: str = "200 OK") -> bytes:
    return response(status, "Content-Type: text/html; charset=utf-8", *headers, body=body.encode())


def token(asked: Asked) -> bytes:
    """A page with a token, a nonce, the time, and how long it took."""
    took = f"{secrets.randbelow(10_000) / 100} ms"
    hidden = f"<input type=hidden name=csrf value={secrets.token_hex(32)}><!-- {time.time()} {took} -->"
    return html(hidden + WORDS, f"Set-Cookie: session={secrets.token_hex(16)}")


def own_address(asked: Asked) -> bytes:
    """A page that is always the same, but for its own address."""
    scheme = "https" if asked.secure else "http"
    return html(f"<link rel=canonical href={scheme}://{asked.headers['host']}/>" * 30 + WORDS)


def two_sizes(asked: Asked) -> bytes:
    """A page with a token that is longer in one arm."""
    return html(secrets.token_hex(8) + WORDS * (2 if asked.secure else 1))


def two_types(asked: Asked) -> bytes:
    kind = "text/html" if asked.secure else "application/json"
    return response("200 OK", f"Content-Type: {kind}", body=(secrets.token_hex(8) + WORDS).encode())


def with_cookie(asked: Asked) -> bytes:
    """A page for those who are logged in."""
    if (
        asked.headers.get("cookie") == "session=s3cr3t-cookie"
        and asked.headers.get("authorization") == "Bearer s3cr3t-word"
    ):
        return html("<h1>Welcome</h1>" + WORDS)
    return html("no", status="401 Unauthorized")


def login(asked: Asked) -> bytes:
    return html("", "Location: /accounts/login/?next=/", status="302 Found")


def to_https(asked: Asked) -> bytes:
    if asked.secure:
        return html(WORDS)
    return html("", f"Location: https://{asked.headers['host']}{asked.path}", status="301 Moved Permanently")


def to_en(asked: Asked) -> bytes:
    if asked.path == "/en/":
        return html(WORDS)
    return html("", "Location: /en/", status="302 Found")


def compressed(asked: Asked) -> bytes:
    """A page that goes compressed to whoever takes it so."""
    if "gzip" not in asked.headers.get("accept-encoding", ""):
        return html(WORDS, "Vary: Accept-Encoding")
    body = gzip.compress(WORDS.encode(), mtime=0)
    return response("200 OK", "Content-Type: text/html", "Content-Encoding: gzip", "Vary: Accept-Encoding", body=body)


def steady(asked: Asked) -> bytes:
    return html(WORDS)


def slow(asked: Asked) -> bytes:
    time.sleep(0.3)
    return html(WORDS)


def chunked(asked: Asked) -> bytes:
    """A page of short chunks."""
    lines = WORDS.replace("</p>\n", "</p>").encode()
    pieces = [lines[at : at + 20] for at in range(0, len(lines), 20)]
    body = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in pieces) + b"0\r\n\r\n"
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/html\r\n\r\n" + body


def nothing(asked: Asked) -> bytes:
    return b"HTTP/1.1 204 No Content\r\nServer: odd/1.0\r\n\r\n"
