"""Records what a cell's facts hold about the server, the session, the client and the files on disk."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from typing import TYPE_CHECKING

import msgspec

from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.host import aes, cpu_quota, idle, tls_names, written_pages
from ciphercost.load import own_scripts
from ciphercost.load.agent import Agent
from ciphercost.load.driver_agent import DriverAgent, settings_diff
from ciphercost.load.jdbc import options
from ciphercost.mechanisms._rest import ArmAtRest, AtRest
from ciphercost.model.connection import Connected, Connection
from ciphercost.model.constrained_types import BY_SOCKET
from ciphercost.model.errors import AgentError, UsageError
from ciphercost.model.facts import CellFacts, Opening
from ciphercost.model.result import Warning_
from ciphercost.model.spec import ARMS, Arm
from ciphercost.plan import conditions, connection_strings, shown
from ciphercost.prove import client_witness, column_checks, secret_rows
from ciphercost.prove.replies import Verdict
from ciphercost.provision import cache

if TYPE_CHECKING:
    from ciphercost.host.supervisor import Supervisor
    from ciphercost.load.agent import Agent
    from ciphercost.load.agent_messages import HelloAnswer
    from ciphercost.load.load_client import LoadClient
    from ciphercost.provision.prepared_cell import PreparedCell
    from ciphercost.provision.server_pair import ServerPair


SECRET_FIELDS = frozenset({"password", "key", "tls_certificate", "tls_identity", "headers"})
"""Fields reported only as set or none: secrets, and client certificates."""


def config_diff(connect: Mapping[Arm, Connection]) -> list[str]:
    """How the arms' connections differ, without secrets. Pure."""
    plain, encrypted = connect["plain"].given(), connect["encrypted"].given()
    lines = []
    for field in sorted({*plain, *encrypted}):
        if plain.get(field) == encrypted.get(field):
            continue
        if field in SECRET_FIELDS:
            lines.append(
                f"{field}: {'set' if plain.get(field) else 'none'} | {'set' if encrypted.get(field) else 'none'}"
            )
        elif field in ("path", "tls_ca", "tls_key"):
            # These name places of this machine and this run, so a difference is no setting.
            continue
        elif field == "socket":
            ways = ["the server's Unix socket" if arm_fields.get(field) else "TCP" for arm_fields in (plain, encrypted)]
            lines.append(f"connected by: {' | '.join(ways)}")
        else:
            lines.append(f"{field}: {plain.get(field, 'not set')} | {encrypted.get(field, 'not set')}")
    return lines


HTTP3_TEXT = (
    "HTTP/3 has no unencrypted form: the plain arm speaks HTTP/1.1 over TCP, so this is the cost of QUIC, UDP and HTTP/3 together with "
    "that of encryption; --matrix http=2,3 measures HTTP/2 over TLS and TCP beside it"
)
OVERFLOWED_TEXT = (
    "the link lost {:,} of {:,} packets because the process that carries them was too slow, besides those it was to lose; leave it a "
    "CPU of its own, or use fewer --clients or a --bandwidth"
)
OLD_OPENSSL = ("OpenSSL 0.", "OpenSSL 1.")
OLD_OPENSSL_TEXT = (
    "the server is linked to OpenSSL {}; that series has had no support since September 2023 and lacks VAES and "
    "recent key exchange, so encryption may cost more here than with a current OpenSSL"
)
"""{}: its version."""
FROM_MEMORY = (
    "{} keeps all data in memory, so {} reads no file: encryption at rest acts on what is written; "
    "a workload that writes shows its cost"
)
"""{}: the engine, the workload."""


def describe_scale(facts: CellFacts, bench: PreparedCell) -> None:
    """Record the scale of pgbench's tables, which a session may have found on the user's server."""
    if (scale := bench.program.parameters.get(own_scripts.SCALE)) is not None:
        facts.factors[own_scripts.SCALE] = str(scale)


def describe_arrivals(facts: CellFacts, bench: PreparedCell) -> None:
    """Record when the requests of an open loop are due. Drivers and the agents of a cluster can't be given the times of a log."""
    untold = bench.program.arrivals == "logged" and (bench.planned.client or facts.fleet)
    facts.arrivals = "random" if untold else bench.program.arrivals


def describe(facts: CellFacts, bench: PreparedCell) -> None:
    """Record what is known about a cell once its server is found and its data is loaded."""
    same_server(facts, bench.installation.version)
    facts.version = bench.installation.version
    facts.source = bench.installation.source
    facts.layer = bench.mechanism.layer
    facts.clients = bench.clients
    facts.workload = bench.program.name
    facts.think_s, facts.draw = bench.program.think_s, bench.program.draw
    describe_arrivals(facts, bench)
    facts.statements = bench.program.statements
    if bench.mechanism.layer == "column":
        facts.values = dict(bench.program.values)
    facts.rows = int(bench.program.parameters.get("rows", 0)) or sum(next(iter(bench.tables.values()), {}).values())
    # On your own server, only what you gave is fixed; the rest is in `encryption`, as negotiated.
    fixed = {name: value for name, value in bench.factors.items() if not bench.cell.url or name in bench.cell.factors}
    facts.factors = {**fixed, **{name: str(value) for name, value in bench.program.parameters.items()}}
    facts.factors |= {"protocol": bench.cell.protocol} if bench.cell.protocol else {}
    facts.factors |= {"max_tries": str(bench.cell.max_tries)} if bench.cell.max_tries else {}
    client = bench.planned.client
    facts.factors |= bench.planned.choices | (client.options if client else {}) | bench.planned.secret
    if client:
        facts.client = client.driver.title
        if chosen := options.DRIVERS_CHOICE.get(bench.mechanism.name):
            facts.factors.pop(chosen, None)  # what it chose is in `encryption`
    if (
        bench.mask
        and bench.mechanism.layer != "control"
        and not bench.engine.embedded
        and not conditions.mask_provable(bench.cell)
    ):
        facts.warnings.append(
            Warning_(
                "cpu-crypto-unproven",
                "the server was started without the CPU's AES instructions, but only tls proves that it does not use "
                "them: a library other than OpenSSL or Go's, or the kernel, would ignore the setting",
            )
        )
    if isinstance(bench.mechanism, AtRest) and bench.program.read_only and StoresData.of(bench.engine).no_cache:
        facts.warnings.append(Warning_("reads-from-memory", FROM_MEMORY.format(bench.cell.engine, bench.cell.workload)))
    if reached := conditions.who_reaches_it(bench.planned.conditions, bench.engine):
        facts.warnings.append(Warning_("listens", reached))
    facts.warnings += [Warning_(shown.CODE, text) for text in shown.not_shown(bench.planned)]
    if bench.cell.url:
        if words := connection_strings.by_socket(bench.cell, connection_strings.of(bench.cell, bench.engine)):
            facts.warnings.append(Warning_(BY_SOCKET, words))
        if not (bench.cell.command and bench.cell.command.before):
            facts.warnings.append(
                Warning_(
                    "not-restarted", "each session only opens new connections: ciphercost can't restart your own server"
                )
            )
        facts.warnings.append(Warning_("not-controlled", "ciphercost did not start, stop or configure this server"))
        if bench.cell.regime == "one-core":
            facts.warnings.append(
                Warning_(
                    "not-pinned",
                    "one core is reserved for the agent; ciphercost does not choose the cores of your own server",
                )
            )
    # On resume, most of these are already there.
    facts.warnings = list(dict.fromkeys(facts.warnings))


def same_server(facts: CellFacts, version: str) -> None:
    """Check the server on resume. Raises UsageError if its version differs from the one in the cell's recorded
    sessions.
    """
    if facts.whole_sessions and facts.version and version and version != facts.version:
        raise UsageError(
            f"{facts.spec.engine} {version} was found, but the {len(facts.whole_sessions)} recorded sessions of "
            f"this cell are from {facts.version}, and one cell can't mix two servers. Restore {facts.version} "
            "(--bindir, `ciphercost install`) and resume again, or start a new run"
        )


def describe_version(facts: CellFacts, version: str) -> None:
    """Record the version that the server itself reports; ciphercost's own binaries have reported it earlier. Raises
    UsageError if another version was requested.
    """
    if (
        facts.source == "running"
        and facts.spec.version
        and version.partition(".")[0] != facts.spec.version.partition(".")[0]
    ):
        raise UsageError(f"the server behind --url is {facts.spec.engine} {version}, not {facts.spec.version}")
    if facts.source == "running":
        same_server(facts, version)
    facts.version = version if facts.source == "running" else facts.version or version


def describe_agent(facts: CellFacts, hello: HelloAnswer) -> None:
    """Warn about a mask in the user's own environment: it reaches server and agent too."""
    asked = facts.spec.cpu_crypto == "off" or not hello.tls_library
    if asked or hello.aes or "aes" not in aes.cpu_flags():
        return
    hidden = Warning_(
        "aes-hidden",
        "OpenSSL does not use this CPU's AES instructions, although the CPU has them: the environment masks them "
        "(OPENSSL_ia32cap or OPENSSL_armcap); unset that, or use --cpu-crypto off, which also proves it",
    )
    warn(facts, hidden.code, [hidden])


def warn(facts: CellFacts, code: str, warnings: Iterable[Warning_]) -> None:
    """Replace an earlier session's warning of this code with what this session found."""
    facts.warnings = [*(earlier for earlier in facts.warnings if earlier.code != code), *warnings]


UNVERIFIED = "server-not-verified"
LOWERED = "security-level-lowered"
LOWERED_TEXT = (
    "OpenSSL's security level was lowered to {} for {}, which its default level refuses: for measuring their cost, "
    "not for production"
)


def weakened(factors: Mapping[str, str]) -> list[str]:
    """The cell's factors that OpenSSL refuses at its default security level. Pure."""
    return [
        f"{name}={factors[name]}"
        for name, weak in (("version", tls_names.OLD), ("certificate", tls_names.WEAK))
        if factors.get(name) in weak
    ]


def describe_rows(facts: CellFacts, verdict: Verdict) -> None:
    """Record that values differ from call to call. Raises AgentError if the arms do not return the same rows."""
    if verdict.differs:
        raise AgentError(f"the arms do not return the same rows: {verdict.differs}")
    if verdict.note:
        warn(facts, "values-vary", [Warning_("values-vary", verdict.note)])


def describe_session(facts: CellFacts, pair: ServerPair, connected: Mapping[Arm, Connected]) -> None:
    """Record what a session's server pair negotiated and where it runs."""
    facts.config_diff = config_diff(pair.connect)
    facts.encryption = client_witness.negotiated(connected.get("encrypted"))
    if facts.pair:
        negotiated = client_witness.negotiated(connected.get("plain"))
        reference = msgspec.structs.replace(facts.pair.reference, encryption=negotiated)
        facts.pair = msgspec.structs.replace(facts.pair, reference=reference)
    if facts.encryption.get("http") == "HTTP/3":
        warn(facts, "http3", [Warning_("http3", HTTP3_TEXT)])
    for arm in ("encrypted", "plain"):
        if reason := client_witness.unverified(connected.get(arm), pair.connect[arm]):
            warn(facts, UNVERIFIED, [Warning_(UNVERIFIED, f"{reason[0].upper()}{reason[1:]}")])
        if (level := pair.connect[arm].tls_security_level) is not None:
            weak = " and ".join(weakened(pair.asked_for[arm]))
            warn(facts, LOWERED, [Warning_(LOWERED, LOWERED_TEXT.format(level, weak))])
    if pair.server is not None and pair.server.library:
        facts.encryption["server_library"] = pair.server.library
        warn(facts, "old-openssl", old_openssl(pair.server.library))
    if titles := dict.fromkeys(way.chain.title for way in pair.ways.values()):
        facts.encryption["hop"] = ", ".join(titles)
    if "encrypted" in pair.ways and (implementation := pair.ways["encrypted"].own_tls):
        facts.encryption["implementation"] = implementation
    facts.keeps_connections = not any(
        connection.per_request or connection.lengths for connection in pair.connect.values()
    )
    facts.separate_processes = len({server.pid for server in pair.servers}) > 1 and not pair.embedded
    facts.cores = {"server": spell(pair.server_cpus), "agent": spell(pair.agent_cpus)}
    if not facts.page_counted:  # the same file systems in every session
        facts.page_counted = written_pages.most_counted(pair.directories())


def describe_link(facts: CellFacts, pair: ServerPair, supervisor: Supervisor) -> None:
    """Add a session's packets to those of a link that loses some."""
    if pair.link is None or not facts.spec.loss:
        return
    seen = msgspec.structs.asdict(pair.link.packets(supervisor))
    facts.link = {name: facts.link.get(name, 0) + count for name, count in seen.items()}
    if facts.link["overflowed"]:
        text = OVERFLOWED_TEXT.format(facts.link["overflowed"], facts.link["sent"])
        warn(facts, "link-overflowed", [Warning_("link-overflowed", text)])


def old_openssl(library: str) -> list[Warning_]:
    """Warnings about a server that has loaded this library (`Server.library`). Pure."""
    if not library.startswith(OLD_OPENSSL):
        return []
    return [Warning_("old-openssl", OLD_OPENSSL_TEXT.format(library.split()[1]))]


def describe_client(facts: CellFacts, pair: ServerPair, agent: Agent) -> None:
    """Record how the driver's settings differ between the arms."""
    agents = {arm: by for arm in ARMS if isinstance(by := agent.of(arm), DriverAgent)}
    if len(agents) == len(ARMS):
        facts.config_diff = settings_diff({arm: by.settings(pair.connect[arm]) for arm, by in agents.items()})


def describe_columns(facts: CellFacts, bench: PreparedCell, pair: ServerPair, agent: LoadClient) -> None:
    """For a column mechanism, record who encrypts and, once per cell, what the stored bytes leak and how many they are.

    The agent is connected to both arms.
    """
    assert pair.sealing is not None
    sealing = pair.sealing
    facts.encryption |= sealing.mechanism.implementation(sealing.engine, sealing.factors)
    other = pair.sealings["plain"]
    of_reference(facts, other.mechanism.implementation(other.engine, other.factors))
    if sealing.codec.client_side:
        facts.encryption["client_library"] = agent.hello.tls_library
    if facts.stored or facts.findings:
        return
    views = {arm: pair.arm_view(arm, agent, arm) for arm in ARMS}
    facts.findings = column_checks.findings(views["encrypted"])
    facts.findings += secret_rows.findings(views["plain"], views["encrypted"], bench.program.secrets)
    facts.stored = column_checks.sizes(views.values())


QUOTA_TEXT = (
    "a CPU quota of {} holds for {}: under it rates and latencies are those that the quota allows; read CPU time per operation, or measure "
    "without the quota (`cpu.max` of the control group, CPUQuota= of the systemd unit, --cpus of the container)"
)
"""{}: cores, and for whom."""


def describe_quota(facts: CellFacts, pair: ServerPair, agent: LoadClient) -> None:
    """Warn about CPU quotas of control groups that hold server or client."""
    ends = {"the server": pair.server.pid if pair.server else 0, "the client": agent.pid}
    quotas = {name: cpu_quota.tightest(pid) for name, pid in ends.items() if pid}
    by_quota: dict[cpu_quota.Quota, list[str]] = {}
    for name, quota in quotas.items():
        if quota is not None:
            by_quota.setdefault(quota, []).append(name)
    warn(
        facts,
        "cpu-quota",
        [
            Warning_(
                "cpu-quota",
                QUOTA_TEXT.format(cores_text(quota.cores), " and ".join(names) + " together" * (len(names) > 1)),
            )
            for quota, names in by_quota.items()
        ],
    )


def cores_text(cores: float) -> str:
    """`0.5 cores`, `1 core`. Pure."""
    return f"{cores:.3g} core{'s' * (cores != 1)}"


def describe_idle(facts: CellFacts, pair: ServerPair) -> None:
    """Decide once for all sessions of a cell what its idle cores do. Raises UsageError if the required mode is not
    possible.
    """
    server, client = pair.server_cpus, pair.agent_cpus
    # Sessions recorded before this setting existed had halting cores.
    wish = facts.idle or ("halt" if facts.whole_sessions else facts.spec.idle)
    reason = "" if wish == "halt" else idle.obstacle(server, client)
    if wish == "poll" and reason:
        begun = f"the {len(facts.whole_sessions)} recorded sessions of this cell were measured with idle cores polling"
        raise UsageError(f"{begun if facts.whole_sessions else '--idle poll'}: {reason}")
    if facts.idle:
        return
    facts.idle = "halt" if wish == "halt" or reason else "poll"
    if facts.idle == "halt" and idle.kept_by_others(server | client):
        kept = (
            "idle cores were to halt, but another run or the machine's owner keeps some of them from halting "
            "(pm_qos_resume_latency_us is n/a): these figures are not those of halting cores"
        )
        facts.warnings = [*facts.warnings, Warning_("cores-kept", kept)]
    # On one core, nobody waits for another core to wake.
    if reason and server != client:
        halting = (
            "idle cores halt, and waking the client's core is part of the server's CPU per operation, in both arms "
            f"(METHODOLOGY.md, Idle cores): {reason}"
        )
        facts.warnings = [*facts.warnings, Warning_("cores-halt", halting)]


def describe_awake(facts: CellFacts, problem: str) -> None:
    """Record what went wrong in a session whose cores were to be kept from halting, if anything did."""
    if problem and facts.idle == "poll":
        others = [earlier for earlier in facts.warnings if earlier.code != "cores-halt"]
        facts.warnings = [*others, Warning_("cores-halt", problem)]


def of_reference(facts: CellFacts, known: Mapping[str, str]) -> None:
    """Record how the reference arm encrypts, if it does."""
    if facts.pair:
        reference = msgspec.structs.replace(
            facts.pair.reference, encryption={**facts.pair.reference.encryption, **known}
        )
        facts.pair = msgspec.structs.replace(facts.pair, reference=reference)


def describe_at_rest(facts: CellFacts, mechanism: AtRest, pair: ServerPair, agent: LoadClient) -> None:
    """Record what only the session's servers can report: their settings, who encrypts, how long a start took.

    The agent is connected to both arms.
    """
    assert pair.rest is not None
    looks = {arm: pair.look(arm, agent, arm, pair.connect[arm]) for arm in ARMS}
    engine = StoresData.of(pair.rest.engine)
    if query := engine.variables:
        settings = {arm: settings_in_force(look.query(query), look) for arm, look in looks.items()}
        facts.config_diff += [
            f"{name}: {settings['plain'].get(name, 'not there')} | {settings['encrypted'].get(name, 'not there')}"
            for name in sorted({*settings["plain"], *settings["encrypted"]})
            if settings["plain"].get(name) != settings["encrypted"].get(name)
        ]
    direct = mechanism.direct_io and engine.does_direct_io(pair.rest.installation.version)
    if text := cache.caveat(facts.spec, direct=direct, below=mechanism.loaded_once):
        kept = [earlier for earlier in facts.warnings if earlier.code != "page-cache"]
        facts.warnings = [*kept, Warning_("page-cache", text)]
    if facts.pair:  # otherwise the plain arm is unencrypted, and no program describes its encryption
        of_reference(facts, mechanism.implementation(looks["plain"]))
    known = mechanism.implementation(looks["encrypted"])
    if warning := known.pop("warning", ""):
        kept = [earlier for earlier in facts.warnings if earlier.code != "implementation"]
        facts.warnings = [*kept, Warning_("implementation", warning)]
    facts.encryption |= known
    if not pair.embedded:
        session = len({opening.session for opening in facts.openings}) + 1
        facts.openings += [Opening(session, arm, seconds) for arm, seconds in pair.openings.items()]


def opened(facts: CellFacts, session: int, pair: ServerPair, arm: Arm, agent: LoadClient) -> Connected:
    """Open an arm's connections for the load, and return the agent's answer.

    Of an embedded database at rest, records how long it takes to open, once per arm and session: its file, and what its key is derived from.
    That is the controller's time for the agent's answer, divided by the number of connections.
    """
    connection = pair.connect[arm]
    began = time.monotonic()
    answer = agent.connect(arm, connection)
    seconds = (time.monotonic() - began) / connection.connections
    known = any((opening.session, opening.arm) == (session, arm) for opening in facts.openings)
    if pair.embedded and pair.rest is not None and not known:
        facts.openings = [*facts.openings, Opening(session, arm, seconds)]
    return answer


def settings_in_force(rows: list[list[str | None]], look: ArmAtRest) -> dict[str, str]:
    """The settings among the rows of a server's `variables` that can be compared with another server's: no ports, no
    identifiers, paths relative to its own place.
    """
    settings = {}
    place, engine = str(look.volume.path), StoresData.of(look.rest.engine)
    for name, value in engine.pairs(rows):
        if name and not any(fnmatch(name, pattern) for pattern in engine.unlike):
            settings[name] = (value or "").replace(place, "DIR").replace(str(look.rest.secrets), "SECRETS")
    return settings


def spell(cpus: set[int]) -> str:
    return ",".join(str(cpu) for cpu in sorted(cpus))
