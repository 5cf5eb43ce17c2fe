"""What a cell's connection string asks of encryption becomes a factor of the cell, so that it is checked, recorded and reported."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ciphercost.engines import Engine
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host import authorities, client_identity
from ciphercost.host.client_identity import ClientIdentity, Named
from ciphercost.load.connection_string import SYSTEM, UNENFORCED, VERIFY, ConnectionString, Level
from ciphercost.mechanisms import Mechanism
from ciphercost.model.errors import UsageError
from ciphercost.model.own_tls import OwnTls
from ciphercost.model.spec import CellSpec


def of(cell: CellSpec, engine: Engine) -> ConnectionString | None:
    """What the server's clients make of the cell's URL here; None if it has none, or one of the web. Raises UsageError."""
    if not cell.url or not isinstance(engine, TakesUrl):
        return None
    return engine.connection_string(cell.url)


def level_of(asked: ConnectionString, ca: str) -> Level:
    """What is asked of encryption, if the user also named an authority on the command line. Pure."""
    return "verify-ca" if asked.level == "require" and asked.require_verifies and ca else asked.level


def identity(own_tls: OwnTls, asked: ConnectionString | None) -> ClientIdentity | None:
    """The certificate and key with which the client proves who it is; None: none is named.

    Reads the files, and may ask for a passphrase. Raises UsageError for what is wrong with them.
    """
    named = asked.identity if asked else None
    if own_tls.cert or own_tls.key:
        if (
            named
            and (Path(named.cert), Path(named.key)) != (Path(own_tls.cert), Path(own_tls.key))
            and not _by_default(named)
        ):
            raise UsageError(
                f"--cert {own_tls.cert}: the connection string names another certificate ({named.cert}); remove one of "
                "them"
            )
        named = Named(own_tls.cert, own_tls.key)
    return client_identity.load(named) if named else None


def _by_default(named: Named) -> bool:
    """Whether nobody wrote this certificate down: libpq's default file."""
    return Path(named.cert) == Path.home() / ".postgresql" / "postgresql.crt"


def applied(cell: CellSpec, engine: Engine, mechanism: Mechanism) -> CellSpec:
    """The cell with what its connection string asks. Raises UsageError for what contradicts it or can't be honoured."""
    asked = of(cell, engine)
    if mechanism.layer == "transit":
        identity(cell.own_tls, asked)
    if asked is None:
        return cell
    if asked.plain_socket:
        check_socket(cell, asked)
    if cell.ca and asked.ca and Path(cell.ca) != Path(asked.ca):
        raise UsageError(
            f"--ca {cell.ca}: the connection string names another authority ({asked.ca}); remove one of them"
        )
    if mechanism.layer != "transit":
        if asked.level and asked.level not in UNENFORCED:
            raise UsageError(
                f"{asked.said}: {cell.engine}:{cell.mechanism} is measured over unencrypted connections; remove it, or measure "
                f"what it costs with {cell.engine}:tls"
            )
        if asked.identity and not _by_default(asked.identity):
            raise UsageError(
                f"{asked.identity.by_cert} {asked.identity.cert}: {cell.engine}:{cell.mechanism} is measured over unencrypted "
                "connections, which present no certificate; remove it"
            )
        return cell
    if asked.ca not in ("", SYSTEM):
        authorities.pem(Path(asked.ca), "the connection string's authority")
    if asked.crl and not (cell.ca or asked.ca not in ("", SYSTEM)):
        raise UsageError(f"revocation list {asked.crl[0]}: name the authority's certificate too, in a file")
    for file in asked.crl:
        authorities.lists(Path(file), "revocation list")
    if asked.tls and cell.client not in ("", "rust"):
        raise UsageError(
            "the connection string limits the TLS version, which only the Rust agent does; use --set version=…"
        )
    if asked.tls and {"version", "cipher"} & {*cell.factors, *cell.versus}:
        raise UsageError("the connection string and --set or --versus both limit the TLS version; remove one of them")
    if mechanism.name != "tls":
        return cell
    wanted = dict(asked.factors)
    if verify := VERIFY.get(level_of(asked, cell.ca), ""):
        wanted["verify"] = verify
    for name, value in wanted.items():
        if cell.factors.get(name, value) != value:
            what = asked.said if name == "verify" else f"{name}={value}"
            raise UsageError(
                f"--set {name}={cell.factors[name]} contradicts {what} of the connection string; remove one"
            )
    return msgspec.structs.replace(cell, factors={**cell.factors, **wanted})


def check_socket(cell: CellSpec, asked: ConnectionString) -> None:
    """Raises UsageError for what can't be had with connections by a Unix-domain socket."""
    what = f"socket={asked.plain_socket}"
    if cell.versus:
        raise UsageError(
            f"{what}: both arms of --versus are encrypted, and connections by a Unix socket are not; remove socket, or --versus"
        )
    if cell.client not in ("", "rust"):
        raise UsageError(f"{what}: drivers connect by TCP here; remove socket, or --client {cell.client}")
    asks = {"--delay": cell.delay, "--bandwidth": cell.bandwidth, "--mtu": cell.mtu, "--loss": cell.loss}
    for option, value in asks.items():
        if value:
            raise UsageError(
                f"{what}: {option} {value} changes a network, and no network carries a Unix socket; remove one of them"
            )


def by_socket(cell: CellSpec, asked: ConnectionString | None) -> str:
    """What the cell's connections by a Unix-domain socket mean for its figures, as a clause; empty: it has none. Pure."""
    if not (asked and asked.plain_socket):
        return ""
    if cell.mechanism != "tls":
        return "both arms connect by the server's Unix socket"
    return (
        "the plain arm connects by the server's Unix socket, the encrypted arm by TCP with TLS: the cost is that of leaving the socket for "
        "TLS, so it includes the cost of TCP"
    )


def remarks(cell: CellSpec, engine: Engine) -> list[str]:
    """What a run makes of the cell's connection string: one line for each thing that is not obvious."""
    if (asked := of(cell, engine)) is None:
        return []
    lines = list(asked.notes)
    if asked.level in UNENFORCED:
        lines.append(
            f"{asked.said}: no effect on a run, whose one arm is unencrypted; the encrypted arm requires encryption and "
            f"verifies the server (verify={cell.factors.get('verify', 'full')})"
        )
    if words := by_socket(cell, asked):
        lines.append(words)
    return lines
