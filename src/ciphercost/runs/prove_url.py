"""`ciphercost prove URL`: what does a client get that connects with exactly this string? No load.

A string that asks for no encryption, or leaves it to the server, is answered as its clients behave. One that says nothing
about encryption is examined with ciphercost's own strict client. Each of several servers is examined by itself.
"""

from __future__ import annotations

from functools import partial

import msgspec

from ciphercost import engines, mechanisms
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host.ports import address_of
from ciphercost.load.connection_string import UNENFORCED, ConnectionString
from ciphercost.model.errors import RunError, UsageError
from ciphercost.model.proof_row import ProofRow
from ciphercost.model.spec import CellSpec
from ciphercost.plan import connection_strings
from ciphercost.report.layout import wrap
from ciphercost.runs import prove, prove_servers
from ciphercost.runs.prove_servers import NamedServer


def examine(cell: CellSpec, row: ProofRow | None = None) -> tuple[bool, str]:
    """(proven for every server of the string, text to print). `row`: takes the facts of a string that names one server.

    Raises UsageError for a parameter that can't be honoured, and CiphercostError if the only server can't be reached.
    """
    engine = engines.get(cell.engine)
    asked = connection_strings.of(cell, engine)
    if asked is None:
        return prove.examine(cell, None, row)
    takes = TakesUrl.of(engine)
    every = [
        NamedServer(
            str(place),
            url,
            partial(_one, msgspec.structs.replace(cell, url=url), takes.connection_string(url) or asked),
        )
        for place, url in zip(asked.places, asked.urls, strict=True)
    ]
    outcomes = prove_servers.examine_each(every, row)
    lines = []
    for number, (server, (_, text)) in enumerate(zip(every, outcomes, strict=True), start=1):
        title = (
            f"{server.place} ({number} of the {len(every)} servers that the string names)\n" if len(every) > 1 else ""
        )
        lines.append(f"{title}{text}")
    remarks = list(asked.notes)
    if asked.unsaid and not asked.local:
        remarks.insert(0, asked.unsaid)
    if cell.ca and asked.level in UNENFORCED:
        remarks.insert(
            0, f"--ca {cell.ca}: no effect, since with {asked.said} no certificate is verified: {asked.stronger}"
        )
    for option, value in cell.own_tls.options.items() if asked.level == "disable" else ():
        if option != "--ca":
            remarks.insert(0, f"{option} {value}: no effect, since with {asked.said} nothing is encrypted")
    for note in remarks:
        lines += wrap(f"{note}.", "  ", "    ")
    return all(proven for proven, _ in outcomes), "\n".join(lines)


def _one(cell: CellSpec, asked: ConnectionString, row: ProofRow) -> tuple[bool, str]:
    """The same for a string that names one server."""
    engine = engines.get(cell.engine)
    if asked.local:
        _in_clear(row, engine.title, f"{asked.local}")
        advice = wrap(f"{asked.instead_of_socket}.", "  ") if asked.instead_of_socket else []
        return False, "\n".join([engine.title, *wrap(f"NOT ENCRYPTED: {asked.local}", "  ", "    "), *advice])
    if asked.level.startswith("verify") and asked.missing_ca and not (asked.ca or cell.ca):
        raise UsageError(f"{asked.said}: {asked.missing_ca}; or name it with --ca FILE")
    if asked.level not in UNENFORCED:
        return prove.examine(cell, asked, row)
    if "verify" in cell.factors:
        raise UsageError(
            f"--set verify={cell.factors['verify']} contradicts {asked.said} of the connection string; remove one"
        )
    offers = _offers(cell, asked)
    if asked.level == "disable" or offers is False:
        _in_clear(row, engine.title, _why_in_clear(asked))
        return False, "\n".join([f"{engine.title} at {asked.places[0]}", *_unencrypted(asked, offers)])
    if "verify" in {factor.name for factor in mechanisms.get(cell.mechanism).factors}:
        cell = msgspec.structs.replace(cell, factors={**cell.factors, "verify": "require"})
    return prove.examine(msgspec.structs.replace(cell, ca=""), asked, row)


def _in_clear(row: ProofRow, server: str, why: str) -> None:
    """Note that the client gets no encryption."""
    row.verdict, row.server, row.reason = "not encrypted", server, why


def _offers(cell: CellSpec, asked: ConnectionString) -> bool | None:
    """Whether the server offers encryption, asked without a login; None: that can't be asked. Raises RunError."""
    place = asked.places[0]
    try:
        return TakesUrl.of(engines.get(cell.engine)).offers_tls(
            address_of(place.address or place.host, place.port), place.port
        )
    except OSError as error:
        raise RunError(
            f"no answer from {place}: {error.strerror or error}. Is the server running, and are host and port in the URL right?"
        ) from None


def _why_in_clear(asked: ConnectionString) -> str:
    """Why a client gets no encryption. Pure."""
    if asked.level == "disable":
        return f"this string asks for no encryption ({asked.said})"
    return f"the server does not offer TLS, and with {asked.said} the client goes on without"


def _unencrypted(asked: ConnectionString, offers: bool | None) -> list[str]:
    """Lines for a client that gets no encryption. Pure."""
    verdict = wrap(f"NOT ENCRYPTED: {_why_in_clear(asked)}", "  ", "    ")
    if asked.level == "disable":
        could = {
            True: "The server offers TLS, so it could have encrypted this connection",
            False: "The server does not offer TLS, so it could not have encrypted it either",
            None: "Whether the server could have encrypted it was not tried",
        }[offers]
        return [*verdict, *wrap(f"{could}: {asked.stronger}.", "  ")]
    return [*verdict, *wrap(f"Switch the server's TLS on, and {asked.stronger}.", "  ")]
