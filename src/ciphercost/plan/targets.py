"""Parse targets, `ENGINE[@VERSION]:MECHANISM` or a URL, into engine, version and mechanism. Pure."""

from __future__ import annotations

import re

from ciphercost import engines, mechanisms
from ciphercost.engines.capabilities.load_counters import CountsLoad
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.url import split


def schemes() -> dict[str, str]:
    """By URL scheme: the ENGINE:MECHANISM that `ciphercost prove` checks."""
    known = [engine for engine in map(engines.get, engines.names()) if isinstance(engine, TakesUrl)]
    return {scheme: f"{engine.name}:{mechanism}" for engine in known for scheme, mechanism in engine.schemes.items()}


def target_of_url(url: str) -> str:
    """ENGINE:MECHANISM for a URL. Raises UsageError if it is none, or if no engine has its scheme."""
    known = schemes()
    if "://" not in url:
        raise UsageError(f"--url must begin with a scheme, such as postgresql://HOST:PORT/…; {nearest('', known)}")
    scheme = url.partition("://")[0].lower()
    if not re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme) or known.get(scheme, "url:").startswith("url:"):
        scheme = split(url).scheme
    if scheme not in known:
        raise UsageError(f"{scheme}://: no engine has this URL scheme; {nearest(scheme, known)}")
    return known[scheme]


def counting(url: str) -> CountsLoad:
    """The engine of a URL's scheme whose counters can be read. Raises UsageError that lists the schemes."""
    known = {
        scheme: engine
        for engine in map(engines.get, engines.names())
        if isinstance(engine, TakesUrl) and isinstance(engine, CountsLoad)
        for scheme in engine.schemes
    }
    scheme, mark, _ = url.partition("://")
    if not mark or scheme.lower() not in known:
        shown = f"{scheme}://: " if mark and re.fullmatch(r"[\w+.-]+", scheme) else "no known scheme: "
        raise UsageError(
            f"--url: {shown}ciphercost reads the counters of servers whose URL begins with one of "
            f"{', '.join(f'{name}://' for name in sorted(known))}"
        )
    return known[scheme.lower()]


def two_addresses(url: str) -> bool:
    """Whether this is the URL of a kind of server that may be named by two, one for each arm."""
    scheme, mark, _ = url.partition("://")
    known_target = schemes().get(scheme.lower(), "") if mark else ""
    return bool(known_target) and TakesUrl.of(engines.get(known_target.partition(":")[0])).urls > 1


def target(text: str) -> tuple[str, str, str]:
    """(engine, version, mechanism) for `ENGINE[@VERSION]:MECHANISM`. Raises UsageError with the nearest valid name."""
    match = re.fullmatch(r"([^:@\s]+)(?:@([\w.]+))?(?::([^:\s]+))?", text)
    if match is None:
        raise UsageError(
            f"{text}: not a target; write ENGINE[@VERSION]:MECHANISM, e.g. postgresql:tls, or the URL of a server, postgresql://HOST:PORT/…"
        )
    engine, version, mechanism = match.group(1), match.group(2) or "", match.group(3)
    if mechanism and mechanism.isdigit():
        raise UsageError(f"{text}: an address needs a scheme; write e.g. postgresql://{text}, or https://{text}")
    known_engine = engines.get(engine)
    if not mechanism:
        known = mechanisms.of(known_engine)
        raise UsageError(f"{text}: no mechanism given; write e.g. {engine}:{known[0]} ({nearest('', known)})")
    return engine, version, mechanism
