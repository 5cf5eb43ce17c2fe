"""Checks of a cell before anything starts, once its names are resolved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from ciphercost import mechanisms
from ciphercost.engines import Engine
from ciphercost.engines.capabilities.documents import Documents
from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host import authorities
from ciphercost.host.tls_names import OLD
from ciphercost.load import clients, workload_file, workloads
from ciphercost.load.workloads import Workload
from ciphercost.mechanisms._column import BLOCK, Columns
from ciphercost.model.constrained_types import EARLY
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec
from ciphercost.plan.planned import PlannedCell

REVOCATION_LIST = b"-----BEGIN X509 CRL-----"
"""Begins a revocation list in a PEM file."""
FOREIGN_WORKLOADS = ("page", "connect")


def check_numbers(cell: CellSpec) -> None:
    """Raises UsageError for a number out of range, or a missing file of --ca."""
    if cell.clients < 0 or cell.clients > 1000:
        raise UsageError(f"clients {cell.clients}: must be between 1 and 1000")
    if cell.rows < 0:
        raise UsageError(f"rows {cell.rows}: must be at least 1")
    if not math.isfinite(cell.rate) or cell.rate < 0:
        raise UsageError(f"rate {cell.rate}: must be above 0")
    check_limits(cell)
    if cell.ca:
        authorities.pem(Path(cell.ca))


def check_limits(cell: CellSpec) -> None:
    """Raises UsageError for a limit of the load that is out of range or that the cell could not keep."""
    for name, value in (("max_rate", cell.max_rate), ("max_latency", cell.max_latency)):
        if not math.isfinite(value) or value < 0:
            raise UsageError(f"{name} {value:g}: must be above 0")
    if not 0 <= cell.max_errors <= 1:
        raise UsageError(f"max_errors {cell.max_errors:g}: must be between 0 and 100 %")
    if cell.max_rate and cell.regime != "latency":
        raise UsageError(
            f"max_rate {cell.max_rate:g}: regime {cell.regime} loads the server as fast as it answers; write regime latency"
        )
    if cell.max_rate and cell.rate > cell.max_rate:
        raise UsageError(f"rate {cell.rate:g}: is above max_rate {cell.max_rate:g}; lower it")


def check_secrets(cell: CellSpec, mechanism: Columns, workload: Workload) -> None:
    """Raises UsageError if the workload has no secret values for a column mechanism."""
    if cell.own_script or cell.workload_file:
        option = "--sql" if cell.sql else "--builtin" if cell.builtin else f"--workload {cell.workload}"
        raise UsageError(
            f"{option}: {mechanism.name} needs an unencrypted and an encrypted copy of each table, but {option} uses tables as they are; "
            "use --workload search, or your own rows: --csv FILE --secret COLUMN, --dump FILE --secret TABLE.COLUMN"
        )
    if cell.csv and not workload.records:
        return
    if not workloads.has_secrets(workload):
        raise UsageError(
            f"workload {cell.workload} has no secret column, so {mechanism.name} would encrypt nothing; "
            f"use --workload with one of {workloads.fitting(workloads.has_secrets)}"
        )


def check_fips(cell: CellSpec, engine: Engine) -> None:
    """Raises UsageError if the cell asks for FIPS mode of a server that ciphercost does not start, or together with a condition whose proof
    it prevents.
    """
    if not (mode := cell.factors.get("fips")):
        return
    if cell.url or engine.foreign:
        raise UsageError(f"fips={mode}: your server decides whether it is in FIPS mode; remove fips")
    if cell.cpu_crypto == "off":
        raise UsageError(
            f"fips={mode} does not go with --cpu-crypto off, which is proven with ChaCha20, and FIPS mode does not allow that; remove one of them"
        )


def check_language(cell: CellSpec, engine: Engine, workload: Workload) -> None:
    """Raises UsageError if the server does not understand the workload's language."""
    if cell.no_header and not cell.csv:
        raise UsageError("--no-header describes the file of --csv; add --csv FILE, or remove --no-header")
    if cell.csv and engine.language != "sql":
        raise UsageError(f"--csv: {cell.engine} has no tables to load the file into; remove --csv")
    if workload.file:
        _check_file(cell, engine, workload)
    if engine.foreign and not cell.own_script and not workload.file and cell.workload not in FOREIGN_WORKLOADS:
        raise UsageError(
            f"workload {cell.workload} requests documents that your server does not have; use --workload "
            f"{' or '.join(FOREIGN_WORKLOADS)}, which request the URL itself, or --sql with your own requests"
        )
    if not cell.own_script and engine.language not in workload.languages:
        fit = workloads.fitting(lambda candidate: engine.language in candidate.languages)
        raise UsageError(f"workload {cell.workload} does not run on {cell.engine}; use --workload with one of {fit}")
    _check_share(cell, workload)


def _check_file(cell: CellSpec, engine: Engine, workload: Workload) -> None:
    """Raises UsageError if a workload made from a web server's log is for another kind of server: the user's, or one that ciphercost starts."""
    if engine.language != "http" or "http" not in workload.languages:
        return
    made_up = any(workload_file.MADE_UP in transaction.script for transaction in workload.transaction)
    if engine.foreign and made_up:
        raise UsageError(
            f"{cell.workload} requests documents that stand for those of the log, and your server does not have them; make it with `ciphercost "
            "workload --keep-paths`, or run it on nginx, apache or caddy"
        )
    if not engine.foreign and not workload.documents:
        raise UsageError(
            f"{cell.workload} requests the paths of the log, and a server that ciphercost starts does not have them; run it on url:tls with --url, or make "
            "it without --keep-paths"
        )


def check_keys(planned: PlannedCell) -> None:
    """Raises UsageError if the cell would write keys into a key-value store that the user runs."""
    engine = planned.engine
    if planned.program.creates and engine.loads and not isinstance(engine, OwnSchema):
        raise UsageError(
            f"workload {planned.spec.workload} writes keys of its own, and ciphercost makes none on your server: give your own commands "
            "with --sql FILE, or use --workload connect, which creates nothing"
        )


def check_headers(cell: CellSpec, engine: Engine) -> None:
    """Raises UsageError for headers where no request has any."""
    if (cell.headers or cell.headers_file) and engine.language != "http":
        raise UsageError(f"--header: only web servers take headers, and {cell.engine} is none; remove --header")


def check_documents(cell: CellSpec, engine: Engine, workload: Workload, documents: Mapping[str, int]) -> None:
    """Raises UsageError if the workload requests a document that the server is unable to serve. `documents`: bytes by path."""
    if not isinstance(engine, Documents) or not engine.largest_document:
        return
    path, size = max(documents.items(), key=lambda document: document[1], default=("", 0))
    if size > engine.largest_document:
        sizes = [
            f"write --set {name}=10KB, or "
            for name in ("size", "page", "picture", "response")
            if name in workload.parameters
        ]
        raise UsageError(
            f"workload {cell.workload}: its document {path} has {size:,} bytes, but {cell.engine} serves at most "
            f"{engine.largest_document:,}: {engine.why_largest}; {''.join(sizes[:1])}use --workload page"
        )


def _check_share(cell: CellSpec, workload: Workload) -> None:
    """Raises UsageError if only some requests are to be encrypted and the workload does not mark which."""
    if cell.factors.get("share", "all") == "all":
        return
    if cell.delay:
        raise UsageError(
            "--delay and share=checkout: the delay applies to one connection, and share=checkout uses two; remove one of them"
        )
    if not workloads.has_marks(workload):
        raise UsageError(
            f"share={cell.factors['share']}: workload {cell.script_names or cell.workload} marks no request SECURE, so nothing would be encrypted; "
            f"use --workload {workloads.fitting(workloads.has_marks)}, or remove share"
        )


def check_column_client(cell: PlannedCell) -> None:
    """Raises UsageError if the application encrypts values and the client or the workload does not support it."""
    mechanism = cell.mechanism
    if not isinstance(mechanism, Columns):
        return
    codec = mechanism.codec(cell.engine, cell.factors, bytes(mechanism.key_bytes), bytes(BLOCK))
    if codec.client_side and cell.client:
        raise UsageError(
            f"{mechanism.name} encrypts in the application, which only the Rust agent supports; remove {clients.option(cell.spec)}"
        )
    if codec.client_side or cell.secret_columns:
        cell.encrypted_program(codec)  # raises UsageError for what an application or a table can't do


def _check_http3(planned: PlannedCell) -> None:
    """Raises UsageError if the cell's requests are to go by HTTP/3 and something of it does not go with QUIC over UDP."""
    cell, factors = planned.spec, planned.factors
    if not planned.datagrams:
        return
    if planned.mechanism.name != "tls":
        raise UsageError(
            f"http=3: HTTP/3 is always encrypted, and {cell.mechanism} compares no TLS with its absence; use "
            f"{cell.engine}:tls, or write http=1 or http=2"
        )
    if factors["version"] != "1.3":
        raise UsageError(f"version={factors['version']} does not go with http=3: QUIC has TLS 1.3 only; remove version")
    if factors["hop"]:
        raise UsageError(f"hop={factors['hop']} does not go with http=3: no hop here forwards QUIC; remove one of them")
    if cell.delay and cell.url:
        raise UsageError(
            f"--delay {cell.delay} does not go with http=3 and --url: a relay delays your own server's answers, and it forwards TCP only; "
            "remove one of them"
        )
    if factors["share"] != "all":
        raise UsageError(
            f"share={factors['share']} does not go with http=3: HTTP/3 can't leave requests unencrypted; remove one of them"
        )


def _check_early(planned: PlannedCell) -> None:
    """Raises UsageError if requests are to go before the handshake is complete and can't."""
    if planned.factors.get("resumption") == EARLY and not planned.datagrams:
        raise UsageError(
            f"resumption={EARLY}: {planned.spec.engine} takes early requests by HTTP/3 only; write http=3 too"
        )


def _check_openers(planned: PlannedCell) -> None:
    """Raises UsageError if operations are to open connections, and the engine has none, or not for so many clients."""
    cell, most = planned.spec, planned.engine.most_openers
    if most is None or not planned.opens:
        return
    if most == 0:
        raise UsageError(
            f"workload {planned.program.name}: {cell.engine} has no connections to open; use a workload that keeps its connection"
        )
    if planned.clients > most:
        raise UsageError(
            f"--clients {planned.clients}: the clients of one process share an open database of {cell.engine}, so an operation would not "
            f"always open it; write --clients {most}"
        )


def _both(url: str) -> str:
    """`--url http://… --url https://…`, with the addresses that were given."""
    given = {address.partition(":")[0].lower(): address for address in url.split()}
    return " ".join(f"--url {given.get(scheme, f'{scheme}://…')}" for scheme in ("http", "https"))


def check_server(planned: PlannedCell) -> None:
    """Raises UsageError if the server does not support the cell's connections, HTTP version, --ca, certificate or --url."""
    cell, engine = planned.spec, planned.engine
    _check_openers(planned)
    version = planned.factors.get("version", "")
    if version in OLD and planned.program.parameters.get("http") in (2, "2"):
        raise UsageError(
            f"version={version} does not go with http=2: HTTP/2 requires TLS 1.2 or newer (RFC 9113, section 9.2); "
            "write version=1.2 or http=1"
        )
    _check_http3(planned)
    _check_early(planned)
    given = cell.own_tls.options
    if given and not mechanisms.has(engine, "tls"):
        option, value = next(iter(given.items()))
        what = "no certificate to verify" if option == "--ca" else "no certificate"
        raise UsageError(f"{option} {value}: {cell.engine} has no TLS, so there is {what}; remove {option}")
    if cell.server_name and planned.client:
        raise UsageError(
            f"--server-name {cell.server_name}: a driver verifies the host that it connects to; name that host, or remove {clients.option(cell)}"
        )
    if cell.ca and planned.client and REVOCATION_LIST in authorities.pem(Path(cell.ca)):
        raise UsageError(
            f"--ca {cell.ca}: holds a revocation list (CRL), which drivers do not check here; remove it from the file, or "
            f"remove {clients.option(cell)}"
        )
    if cell.url and planned.mechanism.layer == "rest":
        raise UsageError(
            f"--url: {cell.engine}:{cell.mechanism} compares two servers that ciphercost starts; remove --url, and name your "
            "binaries with --bindir"
        )
    if cell.url and "certificate" in cell.factors:
        raise UsageError("certificate: your server presents its own certificate; remove certificate")
    if cell.url and "client-cert" in cell.factors:
        raise UsageError(
            "client-cert: your server decides whether it asks for a certificate; remove client-cert, and give yours with --cert and --key"
        )
    if cell.url and cell.factors.get("library"):
        raise UsageError(
            "library: ciphercost did not start your server, so it can't give it another library; remove library"
        )
    if planned.factors.get("hop") and (cell.url or engine.foreign):
        raise UsageError("hop: ciphercost puts a hop before servers that it starts, not before yours; remove hop")
    if planned.factors.get("hop") and planned.client:
        raise UsageError(f"hop: only with the Rust agent; remove {clients.option(cell)}")
    if (cell.url or engine.foreign) and not engine.embedded:
        if engine.language == "http" and not isinstance(engine, TakesUrl):
            raise UsageError(
                f"{cell.engine} is started by ciphercost; to measure a web server that you run, write url:{cell.mechanism} instead of "
                f"{cell.engine}:{cell.mechanism}: ciphercost run url:{cell.mechanism} {_both(cell.url)}"
            )
        if len(cell.url.split()) > (engine.urls if isinstance(engine, TakesUrl) else 1):
            raise UsageError(f"--url is given {len(cell.url.split())} times, but {cell.engine} needs one URL; give one")
        TakesUrl.of(engine).check_url(cell.url)
