"""prove_facts: puts what the witnesses of one target found into the fields of a table. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import get_args

from ciphercost.load.connection_string import UNENFORCED, ConnectionString
from ciphercost.model.connection import Connected
from ciphercost.model.errors import CiphercostError
from ciphercost.model.proof_row import ProofRow, ProofVerdict
from ciphercost.model.slices import Proof
from ciphercost.prove import client_certificate, witnesses
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.provision.server_pair import ServerPair

CLEAR = "encryption: the server also accepts unencrypted connections"
CHAIN = "the server's name: only its authority was verified"
NOBODY = "the server's identity: a man in the middle would look the same"
CLIENT = "the client certificate: the server also accepts clients without one"


def note(
    row: ProofRow,
    bench: PreparedCell,
    proofs: list[Proof],
    connected: Connected | None,
    pair: ServerPair,
    asked: ConnectionString | None,
    alone: str,
    *,
    proven: bool,
    unverified: str,
) -> None:
    """Fill in a row. `alone`, `unverified`: as `prove.judge` has them."""
    encrypted = [proof for proof in proofs if proof.arm == "encrypted"]
    plain = [proof for proof in proofs if proof.arm == "plain"]
    row.server = " ".join(filter(None, (bench.engine.title, connected.server_version if connected else "")))
    if connected is not None:
        row.protocol, row.cipher, row.group = connected.protocol, connected.cipher, connected.group
        row.certificate = connected.peer_key
        row.client_certificate = connected.client_certificate
        row.verified = verified(connected, pair)
    row.by = [proof.witness for proof in encrypted if proof.passed]
    by_socket = asked is not None and asked.plain_socket  # which says nothing about unencrypted connections by TCP
    if alone or not plain or by_socket or not all(proof.passed for proof in encrypted):
        row.enforced = "unknown"
    elif witnesses.enforces(bench.engine, proofs):
        row.enforced = "yes"
    elif plain[0].passed:
        row.enforced = "no"
    row.not_enforced = [
        text
        for text, is_so in (
            (CLEAR, row.enforced == "no"),
            (f"encryption: {asked.said} of the string" if asked else "", bool(asked and asked.level in UNENFORCED)),
            (NOBODY, bool(unverified) and not row.verified),
            (CHAIN, bool(unverified) and bool(row.verified)),
            (
                CLIENT,
                row.client_certificate in (client_certificate.NOT_REQUIRED, client_certificate.PRESENTED),
            ),
        )
        if is_so
    ]
    failed = [proof for proof in encrypted if not proof.passed] or [proof for proof in plain if not proof.passed]
    if proven:
        row.verdict = "not verified" if unverified else "proven"
        row.reason = unverified
    elif asked and asked.level in UNENFORCED and encrypted and all(proof.passed for proof in encrypted):
        row.verdict, row.reason = "not enforced", f"{asked.said}: whoever is in the path can turn encryption off"
    else:
        row.verdict = "not proven"
        row.reason = f"{failed[0].witness} witness: {failed[0].detail}" if failed else ""


GONE = re.compile(
    r"no answer from|Is the server running|did not answer|timed out|can't (?:resolve|reach)|[Cc]onnection (?:to \S+ )?refused|cannot connect to|no address",
    re.IGNORECASE,
)
"""In an error: nothing answers there."""


def failed(row: ProofRow, error: CiphercostError) -> None:
    """Fill in the row of a target that could not be examined to the end."""
    row.verdict, row.reason = "unreachable" if GONE.search(str(error)) else "not proven", f"{error}"


def worst(row: ProofRow, rows: Sequence[tuple[str, ProofRow]]) -> None:
    """Fill in the row of a string that names several servers: that of the worst. `rows`: where each server is, and its row."""
    best_first = get_args(ProofVerdict)
    place, worst_row = max(rows, key=lambda entry: (not entry[1].ok, best_first.index(entry[1].verdict)))
    for name in worst_row.__struct_fields__:
        if name not in ("target", "details"):
            setattr(row, name, getattr(worst_row, name))
    if len(rows) > 1:
        row.reason = f"{place}, {len(rows)} servers in all: {worst_row.reason or worst_row.verdict}"


def verified(connected: Connected, pair: ServerPair) -> str:
    """What of the server's identity was verified; empty: nothing. Pure."""
    if not connected.verified:
        return ""
    if connected.verified_by in ("password", "channel binding"):
        return f"by {'the ' if connected.verified_by == 'password' else ''}{connected.verified_by}"
    return "authority" if pair.connect["encrypted"].tls == "verify-ca" else "authority and name"
