"""Checks an application's own connection: is it encrypted and the server verified, and with what? No load.

A driver gets only what the application gives it. Four checks follow: the server reports on the session, a relay captures the bytes, an
impostor presents another certificate and goes on to the login, and the real server is addressed by another name. The last three
replace host and port in the application's string.
"""

from __future__ import annotations

import contextlib
import ipaddress
from abc import ABC, abstractmethod
from pathlib import Path

from ciphercost import mechanisms
from ciphercost.engines import Engine
from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.host.canary_scan import canary
from ciphercost.host.ports import address_of
from ciphercost.host.relay import Relay
from ciphercost.load import peer_checks
from ciphercost.load.driver_agent import SPEECHES, plain_version
from ciphercost.model.connection import Connected
from ciphercost.model.proof_row import ProofRow, ProofVerdict
from ciphercost.prove.wire_witness import judge_wire
from ciphercost.report.layout import wrap


class ClientProbe(ABC):
    """Repeats the application's connection. A subclass knows the driver."""

    engine: Engine
    place: Path
    """A directory for files of the checks."""
    host: str
    """Of the application's string; empty: it can't be replaced there."""
    port: int
    trusting: str
    """Whose authorities the driver trusts if it is told none, e.g. Java."""

    @abstractmethod
    def connect(self) -> Connected:
        """Connect as the application does. Raises UsageError if the driver rejects the string, RunError with the driver's reason."""

    @abstractmethod
    def between(self, port: int, host: str = "") -> str:
        """Connect to this port of 127.0.0.1, or of `host` by that name. Returns the reason for a failure, or ""."""

    @abstractmethod
    def with_authorities(self, port: int, ca: Path) -> str:
        """The same in a process that trusts the authorities in this PEM file instead of the system's."""

    @abstractmethod
    def query_between(self, sql: str) -> list[list[str | None]]:
        """The rows of a query on the connection that `between` has opened. Raises AgentError."""

    def wire(self) -> tuple[bool, str]:
        """(passed, detail) of a packet capture by a relay between driver and server."""
        if not self.host:
            return False, "not checked: can't replace host and port in this URL"
        word = canary()
        with Relay(self.target, self.port) as relay:
            if reason := self.between(relay.port):
                return False, f"not checked: the driver does not connect through a relay ({reason[:200]})"
            rows = self.query_between(self.engine.echo(word))
            sent, received = bytes(relay.to_server), bytes(relay.to_client)
        words = self.engine.echoed(rows, word)
        if not all(words):
            return False, "the server did not return the canary, so its absence would prove nothing"
        mechanism = mechanisms.get("tls" if isinstance(self.engine, HasTls) else "wire-crypt")
        return judge_wire(sent, received, words, "encrypted", mechanism.sign)

    def verified(self) -> tuple[peer_checks.Verdict, bool]:
        """By what the driver refuses an impostor, and whether it refuses the server under another name."""
        if self.engine.driver not in SPEECHES:
            words = f"{self.engine.title}'s wire encryption has no certificates, so there is nothing to verify"
            return peer_checks.Verdict("", words), False
        if not self.host:
            return peer_checks.Verdict("", "not tried: can't replace host and port in this URL"), False
        name = "" if is_number(self.host) or self.host == "localhost" else self.host
        speech = SPEECHES[self.engine.driver]
        verdict = peer_checks.refuses_impostor(speech, self.target, self.port, self.place, self.between, name=name)
        named = False
        if verdict.by == "certificate":
            named, more = peer_checks.refuses_other_name(self.target, self.port, self.between)
            verdict = peer_checks.Verdict(verdict.by, f"{verdict.words}, {more}")
        if not verdict.by or verdict.by == "channel binding" or named:
            return verdict, named
        verdict = peer_checks.refuses_any_authority(
            verdict, speech, self.target, self.port, self.place, self.with_authorities, self.trusting
        )
        return verdict, named

    @property
    def target(self) -> str:
        """The server's address."""
        return address_of(self.host, self.port)


def judge(probe: ClientProbe, title: str, row: ProofRow | None = None) -> tuple[bool, str]:
    """(encrypted and verified, text to print) from every witness of the connection. `title`: the driver's; `row`: takes the facts."""
    session = probe.connect()
    encrypted = session.encrypted
    used = f"{session.protocol} {session.cipher}".strip()
    checks = [("server", encrypted, f"the server reports the session as {used or 'not encrypted'}")]
    verdict, reason = False, "UNENCRYPTED: anyone on the path can read and change everything"
    if encrypted:
        checks.append(("wire", *probe.wire()))
        peer, named = probe.verified()
        certified = probe.engine.driver in SPEECHES
        checks.append(("peer", bool(peer.by) or not certified, peer.words))
        verdict = all(passed for _, passed, _ in checks)
        reason = "NOT PROVEN"
        if checks[1][1] and not verdict:
            reason = "ENCRYPTED, NOT VERIFIED: anyone on the path can impersonate the server, and then read and change everything"
        elif verdict and not certified:
            reason = f"ENCRYPTED with {used}"
        elif verdict:
            reason = f"ENCRYPTED with {used}, and the server VERIFIED ({_how(peer.by, named=named)})"
    version = plain_version(session.server_version)
    if row is not None:
        row.server = f"{probe.engine.title} {version}"
        row.protocol, row.cipher = session.protocol, session.cipher
        row.by = [witness for witness, passed, _ in checks if passed]
        row.verified = _how(peer.by, named=named) if encrypted and peer.by else ""
        good: ProofVerdict = "not verified" if encrypted and checks[1][1] else "not proven"
        row.verdict = "proven" if verdict else good if encrypted else "not encrypted"
        row.reason = "" if verdict else "; ".join(words for _, passed, words in checks if not passed)
    lines = wrap(f"{title} · {probe.engine.title} {version} · {session.library}", "")
    for witness, passed, detail in checks:
        lines += wrap(
            f"{'ok    ' if passed else 'FAILED'} {witness}: {' '.join(detail.split())}", "    ", "           "
        )
    return verdict, "\n".join([*lines, *wrap(reason, "  ", "    ")])


def _how(by: peer_checks.By, *, named: bool) -> str:
    """By what a driver verifies the server. Pure."""
    if by == "channel binding":
        return "channel binding: the login succeeds only with the server's own certificate"
    if by == "password":
        return "by the password: the server proves that it knows it and that the certificate is its own"
    if named:
        return "certificate authority and host name"
    return "certificate authority only: the driver accepts any server with a certificate from it"


def is_number(host: str) -> bool:
    """Whether a host is an address and no name. Pure."""
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host)
        return True
    return False
