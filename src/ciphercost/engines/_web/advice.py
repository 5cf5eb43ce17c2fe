"""What is wrong with a web address that can't be measured, and what to do about it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from ciphercost.engines._web.answer import asked
from ciphercost.model.connection import Connection, HttpVersion
from ciphercost.model.errors import AgentError

if TYPE_CHECKING:
    from ciphercost.load.load_client import LoadClient
    from ciphercost.model.spec import Arm

LOGIN = re.compile(r"(?i)\b(log-?in|sign-?in|auth|sso|session/new|accounts?)\b")
GIVE = "give --header 'Cookie: …' or --header 'Authorization: …', from a file with --header @FILE"
NOT_HTTP = ("malformed", "closed-early", "tls", "connect", "timeout")
"""Codes of errors that a server may cause because it speaks another version of HTTP."""
OTHER_VERSION = {
    "2": "It answers HTTP/2 only: write --set http=2",
    "1.1": "It answers HTTP/1.1 and not HTTP/2: remove --set http=2",
}
"""By the version that it does answer."""
STATUS = {
    400: "It does not understand the request: check the address, and whether the page needs a header (--header)",
    401: f"The page needs a login: {GIVE}",
    403: f"The page is forbidden for this client. If it needs a login, {GIVE}; if it blocks programs, give --header 'User-Agent: …'",
    404: "There is no such page: check the path in both addresses of --url",
    405: "It does not allow this method here: name a page that answers GET, or give your own requests with --sql",
    406: "It has no version of the page for this client: give --header 'Accept: …'",
    407: f"A proxy in front of it needs a login: {GIVE}",
    410: "The page is gone: check the path in both addresses of --url",
    421: "It serves another host on this address: name the host that its certificate names",
    429: "It limits how often a client may ask: exempt this machine from the limit, or name a copy of the site",
}
OURS = "It fails by itself: see the server's own log"


def of_code(code: str) -> str:
    """Advice that follows from the agent's error code alone. Pure."""
    match = re.fullmatch(r"status-(\d{3})(-https)?", code)
    if not match:
        return ""
    status = int(match[1])
    return STATUS.get(status, OURS if status >= 500 else f"Name a page that answers 200, not {status}")


def of(agent: LoadClient, arm: Arm, connection: Connection, error: AgentError, urls: Mapping[str, str]) -> str:
    """What is wrong with this arm, and what to do. `connection`: its own; `urls`: of both arms. It asks the server again."""
    if re.fullmatch(r"status-3\d\d(-https)?", error.code) and error.code != "status-304":
        return _of_redirect(_location(agent, connection), arm, urls)
    if error.code == "status-400" and arm == "plain" and (shared := _on_tls_port(urls)):
        return shared
    if error.code in NOT_HTTP:
        if shared := _on_tls_port(urls) if arm == "plain" else "":
            return shared
        wanted: HttpVersion = "1.1" if connection.http == "2" else "2"
        if connection.http != "3" and _answers(agent, connection | {"http": wanted}):
            return OTHER_VERSION[wanted]
        return "" if error.code == "tls" else f"Is {urls[arm]} the address of a web server, and does it run?"
    return of_code(error.code)


def _on_tls_port(urls: Mapping[str, str]) -> str:
    """Advice if both addresses have the same port, which takes TLS alone."""
    plain, encrypted = (urlsplit(urls[arm]) for arm in ("plain", "encrypted"))
    if plain.netloc != encrypted.netloc:
        return ""
    return f"Port {plain.port} takes TLS, so it is no http address: name the port of http:// in --url http://{plain.hostname}:PORT{plain.path or '/'}"


def _location(agent: LoadClient, connection: Connection) -> str:
    """Where the server sends a client that asks for the page; empty: nowhere, or it no longer answers."""
    with contextlib.suppress(AgentError):
        agent.connect("advice", connection.single)
        try:
            return asked(agent, "advice", "GET").location
        finally:
            agent.disconnect("advice")
    return ""


def _answers(agent: LoadClient, connection: Connection) -> bool:
    """Whether the server answers a request over this connection."""
    try:
        agent.connect("advice", connection.single)
        asked(agent, "advice", "GET")
    except AgentError:
        return False
    finally:
        with contextlib.suppress(AgentError):
            agent.disconnect("advice")
    return True


def _of_redirect(location: str, arm: Arm, urls: Mapping[str, str]) -> str:
    """What to do about a redirect. Pure."""
    if not location:
        return "It redirects; name the final address in both --url"
    here, there = urlsplit(urls[arm]), urlsplit(urljoin(urls[arm], location))
    path = f"{there.path or '/'}{f'?{there.query}' if there.query else ''}"
    same_page = (here.hostname, here.path or "/") == (there.hostname, there.path or "/")
    if arm == "plain" and there.scheme == "https":
        return (
            "The site sends everybody who comes unencrypted to https, so it enforces encryption and has no plain arm to compare with. "
            "Compare two encrypted settings instead (--versus version=1.2, with the https address alone), or measure a copy of the site that "
            "answers http:// without a redirect"
        )
    if arm == "encrypted" and there.scheme == "http":
        return (
            "The https address sends everybody to http, so there is no encrypted page: name one that answers over https"
        )
    if LOGIN.search(there.path):
        return f"It sends clients without a session to {path}, a login: {GIVE}"
    if same_page:
        return f"It redirects to the same page, as sites do that set a cookie first: {GIVE}"
    host = there.hostname or ""
    hosts = {of: host if urlsplit(url).hostname != host else urlsplit(url).netloc for of, url in urls.items()}
    return (
        f"Name the final address in both: --url http://{hosts['plain']}{path} --url https://{hosts['encrypted']}{path}"
    )
