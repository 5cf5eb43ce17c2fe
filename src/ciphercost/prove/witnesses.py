"""witnesses: twins -> proofs, before any load. Three witnesses an arm, each of which can fail. I/O, no statistics.

Both directions are asserted: a probe that can't see the canary on the plain twin proves nothing about the encrypted one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ciphercost.engines import Engine, Server
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.host import canary_scan, deadlines, tls_names
from ciphercost.host.procfs import tree
from ciphercost.host.relay import Relay, moved
from ciphercost.load.agent import Agent
from ciphercost.load.program import Program
from ciphercost.load.trust import encrypted_first
from ciphercost.mechanisms import Mechanism, tls
from ciphercost.mechanisms._rest import AtRest, Look
from ciphercost.model.errors import AgentError, Unproven
from ciphercost.model.slices import Proof, Witness
from ciphercost.model.spec import ARMS, Arm
from ciphercost.model.terms import CANARY_TABLE
from ciphercost.prove import column_checks
from ciphercost.provision import columns
from ciphercost.provision.twins import Twins

MOST_COMPARED = 128 << 20
"""Bytes of answers that are compared."""
NULL_SEEN = "no bytes seen: the witness looked at nothing"
TEMPORARY = "temporary, and judged apart"
CLIENT_CERTIFICATE = "client_certificate"
"""In what the encrypted arm negotiated: present where the server requires and has verified a certificate of the client's."""
CERTIFIED = 3
"""Column of `EncryptsConnections.sessions` that only a session has whose client certificate was verified."""
NAMED = 3
"""Files of those that hold the canary."""


class Probe:
    """Everything a witness may ask: the twins, the agent, what each arm negotiated."""

    def __init__(self, engine: Engine, mechanism: Mechanism, twins: Twins, agent: Agent, session: int) -> None:
        self.engine = engine
        self.mechanism = mechanism
        self.twins = twins
        self.agent = agent
        self.session = session
        self.connected: dict[Arm, dict[str, Any]] = {}
        self.ended = False
        """Whether no further witness is heard: the server held one past its deadline, or it is the user's, and nothing may be sent to it
        unencrypted."""

    def connection(self, arm: Arm) -> tuple[str, dict[str, object]]:
        """The agent's arm and its fields, connected by the client's witness or by whoever is the first to ask."""
        name, fields = f"prove-{arm}", single(self.twins.connect[arm])
        if arm not in self.connected:
            self.connected[arm] = self.agent.connect(name, **fields)
        return name, fields

    def look(self, arm: Arm) -> Look:
        """The arm as a mechanism at rest sees it."""
        name, fields = self.connection(arm)
        return self.twins.look(arm, self.agent, name, fields)

    def sight(self, arm: Arm) -> columns.Sight:
        """The arm as a mechanism in columns sees it."""
        name, _ = self.connection(arm)
        return self.twins.sight(arm, self.agent, name)

    def proof(self, arm: Arm, witness: Witness, passed: bool, detail: str) -> Proof:
        return Proof(arm=arm, witness=witness, passed=passed, detail=" ".join(detail.split()), session=self.session)


def single(connect: Mapping[str, object]) -> dict[str, object]:
    """An arm's connection fields for one pooled connection. Pure."""
    return {name: value for name, value in connect.items() if name != "per_request"} | {"connections": 1, "threads": 1}


def prove(
    engine: Engine, mechanism: Mechanism, twins: Twins, agent: Agent, session: int
) -> tuple[list[Proof], dict[str, Any]]:
    """Hear every witness of the mechanism for both arms. Returns the proofs and what the encrypted arm negotiated.

    Never raises for a failed witness: that is a proof with `passed` false. `unproven` says which.
    """
    probe = Probe(engine, mechanism, twins, agent, session)
    proofs: list[Proof] = []
    prime(engine, twins, agent)
    for arm in encrypted_first(twins.connect):
        # The client first: without a connection the others have nothing to look at.
        probe.ended |= arm == "plain" and bool(twins.closed)
        for witness in sorted(set(mechanism.witnesses) - set(engine.mute), key=lambda name: name != "client"):
            if probe.ended:
                break
            proofs.append(_hear(probe, arm, witness))
            if not proofs[-1].passed and witness == "client":
                break
    _close(probe)
    return proofs, probe.connected.get("encrypted", {})


def prime(engine: Engine, twins: Twins, agent: Agent) -> None:
    """One login where a server's first one after its start differs from those that follow, so that no arm is the one to pay."""
    if not engine.caches_logins:
        return
    # In clear it would be an RSA exchange; and at a server of the user's nothing is sent in clear before the encrypted arm is in.
    arms: list[Arm] = encrypted_first(ARMS) if twins.refused is None else ["encrypted"]
    for arm in arms:
        # An arm that can't log in is the client witness's to report.
        try:
            agent.connect("prime", **single(twins.connect[arm]))
            agent.disconnect("prime")
            return
        except AgentError:
            continue


def unproven(
    proofs: list[Proof], mechanism: Mechanism, arms: tuple[Arm, ...] = ARMS, mute: tuple[Witness, ...] = ()
) -> str:
    """Why these proofs don't prove the arms (both, unless told otherwise); empty when they do. Pure."""
    if reason := failed(proofs):
        return reason
    heard = {(proof.arm, proof.witness) for proof in proofs}
    missing = [
        f"{witness} witness, {arm} arm"
        for arm in arms
        for witness in mechanism.witnesses
        if witness not in mute and (arm, witness) not in heard
    ]
    return f"not heard: {', '.join(missing)}" if missing else ""


def failed(proofs: list[Proof]) -> str:
    """Which witnesses said no, and what they said; empty where none did. Pure."""
    return "; ".join(
        f"{proof.witness} witness, {proof.arm} arm: {proof.detail}" for proof in proofs if not proof.passed
    )


def load_connections(
    engine: Engine,
    mechanism: Mechanism,
    server: Server,
    agent: Agent,
    arm: Arm,
    answer: Mapping[str, Any],
    proven: Mapping[str, Any],
) -> None:
    """That the very connections which make the load are what was proven. Raises Unproven.

    `answer`: of the load's `connect`; `proven`: of the encrypted arm's proof. Where connections stay open the server is asked of each.
    """
    if not mechanism.witnesses:
        return
    if "client" not in mechanism.witnesses:
        if answer["encrypted"]:
            raise Unproven(
                f"client witness, {arm} arm: the connection is encrypted, and only what rests on the disk was to be"
            )
        return
    if bool(answer["encrypted"]) != (arm == "encrypted"):
        state = "encrypted" if answer["encrypted"] else "in clear"
        raise Unproven(f"client witness, {arm} arm: the load's connections are {state}")
    if arm == "encrypted" and (
        any(answer[name] != proven.get(name) for name in ("protocol", "cipher"))
        # A session that is resumed may tell less of itself than the first.
        or any(answer.get(name) and proven.get(name) and answer[name] != proven[name] for name in ("group", "peer_key"))
    ):
        raise Unproven(
            f"client witness, encrypted arm: the load negotiated {describe(answer)}, proven was {describe(proven)}"
        )
    if engine.caches_logins and answer.get("per_request") and answer.get("auth") != proven.get("auth"):
        # Where connections stay open, logins are no part of the load.
        raise Unproven(
            f"client witness, {arm} arm: the load logs in by {answer.get('auth')}, proven was {proven.get('auth')}: "
            "the arms would differ in more than encryption"
        )
    if mechanism.layer == "transit" and not answer.get("per_request") and "server" not in engine.mute:
        rows = EncryptsConnections.of(engine).sessions(server, agent, arm, everywhere=True)
        mutual = arm == "encrypted" and CLIENT_CERTIFICATE in proven
        passed, detail = judge_sessions(rows, arm, str(answer["cipher"]), client_certificate=mutual)
        if not passed:
            raise Unproven(f"server witness, {arm} arm, the load's own sessions: {detail}")


def require(proofs: list[Proof], mechanism: Mechanism, mute: tuple[Witness, ...] = (), closed: str = "") -> None:
    """Raises Unproven, naming the witness, unless both arms are what their names say. `closed`: why one was not tried (`Twins.closed`)."""
    if reason := unproven(proofs, mechanism, mute=mute):
        raise Unproven(f"{reason}. {closed}" if closed else reason)


def _hear(probe: Probe, arm: Arm, witness: Witness) -> Proof:
    try:
        passed, detail = WITNESSES[probe.mechanism.layer, witness](probe, arm)
    except AgentError as error:
        probe.ended |= error.code == deadlines.TIMEOUT  # each further witness would be held as long
        if arm == "encrypted":
            probe.twins.note(error)
        passed, detail = False, f"{error} [{error.code}]"
    if witness == "client" and arm == "encrypted" and not passed:
        probe.twins.note(AgentError(detail))
    return probe.proof(arm, witness, passed, detail)


def _close(probe: Probe) -> None:
    for arm in probe.connected:
        # A witness may have lost its connection; then there is nothing to close.
        with contextlib.suppress(AgentError):
            probe.agent.disconnect(f"prove-{arm}")


# ── what the client negotiated ────────────────────────────────────────────────────────────────────────────────────────


def client(probe: Probe, arm: Arm) -> tuple[bool, str]:
    """The agent's own connection: encrypted, verified, with what; or in clear."""
    answer = probe.agent.connect(f"prove-{arm}", **single(probe.twins.connect[arm]))
    probe.connected[arm] = answer
    if said := probe.engine.greet(probe.agent, f"prove-{arm}"):
        answer["server_version"] = said
    if arm == "plain":
        return not answer["encrypted"], "in clear" if not answer[
            "encrypted"
        ] else f"encrypted with {answer['protocol']}"
    detail = describe(answer)
    if not answer["encrypted"]:
        return False, "in clear: nothing was negotiated"
    if reason := other_than_asked(answer, probe.twins.connect[arm], probe.twins.promised):
        return False, f"{detail}: {reason}"
    wanted = probe.twins.connect[arm].get("tls", "")
    if wanted in ("verify-ca", "verify-full") and not answer["verified"]:
        return False, f"{detail}: the peer was not verified"
    return True, detail


def unverified(answer: Mapping[str, Any], fields: Mapping[str, object]) -> str:
    """What of the server's identity was not checked, and what to do; empty where all was, or where there is no certificate. Pure.

    `answer`: `connected` of the encrypted arm; `fields`: of its `connect`.
    """
    if not answer or fields.get("tls", "off") == "off":
        return ""
    if not answer.get("verified"):
        return (
            "the server's identity was not verified: a man in the middle would look the same; use --set verify=full, with "
            "--ca FILE on a server of yours"
        )
    if fields.get("tls") == "verify-ca":
        return (
            "the server's name was not verified: any server with a certificate of that authority would look the same; use "
            "--set verify=full"
        )
    return ""


def other_than_asked(
    answer: Mapping[str, Any], fields: Mapping[str, object], promised: Mapping[str, str] = MappingProxyType({})
) -> str:
    """What of a `connected` answer isn't what the arm's fields ask for, or isn't what was `promised`; empty where all is. Pure."""
    asked = {
        "protocol": tls_names.PROTOCOLS.get(str(fields.get("tls_max")), ""),
        "cipher": str(fields.get("tls_ciphers", "")),
        "group": str(fields.get("tls_groups", "")),
    }
    for name, wanted in asked.items():
        if wanted and answer[name] not in (
            wanted,
            "",
        ):  # a client may not know the group; the server is asked of the rest
            return f"{name} {wanted} was asked for"
    for name, wanted in promised.items():
        if answer.get(name) not in (wanted, "", None):
            return f"{name} is {answer[name]}, and {wanted} was asked for"
    if answer.get("resumed") and not fields.get("resumption"):
        return "a session was resumed, though resumption is off"
    return ""


def describe(answer: Mapping[str, Any]) -> str:
    """`TLSv1.3 TLS_AES_256_GCM_SHA384 x25519, RSA 2048, peer verified` of a `connected` answer. Pure."""
    parts = [str(answer[name]) for name in ("protocol", "cipher", "group") if answer.get(name)]
    words = [" ".join(parts)]
    if answer.get("peer_key"):
        words.append(str(answer["peer_key"]))
    if answer.get("peer") or answer.get("peer_key"):  # a certificate may bear no name
        words.append("peer verified" if answer.get("verified") else "peer not verified")
    if answer.get("resumed"):
        words.append("resumed")
    if answer.get("checked"):
        words.append(str(answer["checked"]))
    return ", ".join(words)


# ── in transit ────────────────────────────────────────────────────────────────────────────────────────────────────────


def server_of_session(probe: Probe, arm: Arm) -> tuple[bool, str]:
    """What the server says of this very session."""
    rows = EncryptsConnections.of(probe.engine).sessions(probe.twins.by_arm[arm], probe.agent, f"prove-{arm}")
    fields = single(probe.twins.connect[arm])
    mutual = "tls_certificate" in fields
    passed, detail = judge_sessions(rows, arm, str(probe.connected[arm].get("cipher", "")), client_certificate=mutual)
    if not (passed and mutual):
        return passed, detail
    refused, words = without_certificate(probe, fields)
    if refused:
        probe.connected[arm][CLIENT_CERTIFICATE] = "verified by the server"
    return refused, f"{detail}; {words}"


def without_certificate(probe: Probe, fields: Mapping[str, object]) -> tuple[bool, str]:
    """Whether the server refuses a connection that is the same but for the client's certificate: (it does, how).

    TLS 1.3 tells a client only after its handshake, and nginx answers with a status: so a request is tried too. A connection with
    the certificate follows: a server that has died refuses everybody.
    """
    bare = {name: value for name, value in fields.items() if name not in ("tls_certificate", "tls_key")}
    if reason := refusal(probe.engine, probe.agent, bare):
        if with_it := refusal(probe.engine, probe.agent, fields):
            return False, f"but after a connection without a client certificate it also refuses one with it: {with_it}"
        return True, f"without a client certificate it refuses: {reason}"
    return False, "but it also serves a connection without a client certificate"


def refusal(engine: Engine, agent: Agent, fields: Mapping[str, object]) -> str:
    """How the server refuses a connection with these fields; empty: it serves it. Raises AgentError where it answers nothing in time."""
    try:
        agent.connect("refused", **fields)
        engine.greet(agent, "refused")
    except AgentError as error:
        if error.code == deadlines.TIMEOUT:
            raise
        return str(error)
    finally:
        with contextlib.suppress(AgentError):
            agent.disconnect("refused")
    return ""


def judge_sessions(
    rows: list[list[str | None]], arm: Arm, cipher: str, *, client_certificate: bool = False
) -> tuple[bool, str]:
    """Rows as of `EncryptsConnections.sessions`: all must be what the arm's name says, and agree with the client. Pure.

    `client_certificate`: the server must say of each that it has verified one.
    """
    if not rows:
        return False, "the server says nothing of this session"
    on = [str(row[0]).lower() in ("t", "true", "1", "yes") for row in rows]
    said = f"{rows[0][1] or ''} {rows[0][2] or ''}".strip() or "no encryption"
    if arm == "plain":
        return not any(on), f"the server says: {said}" if any(on) else "the server says: not encrypted"
    if not all(on):
        return False, f"the server says: {on.count(False)} of {len(on)} sessions are not encrypted"
    ciphers = {str(row[2]) for row in rows}
    if ciphers != {cipher}:
        return False, f"the server says {', '.join(sorted(ciphers))}, the client says {cipher}"
    if client_certificate:
        lacking = sum(len(row) <= CERTIFIED for row in rows)
        if lacking:
            return False, f"the server says: {said}, and of {lacking} of {len(rows)} sessions no client certificate"
        said += ", client certificate verified"
    return True, f"the server says: {said}"


def wire(probe: Probe, arm: Arm) -> tuple[bool, str]:
    """What an eye between the two sees: the canary, in both directions, or none of it."""
    fields = single(probe.twins.connect[arm])
    host, port = str(fields["host"]), int(str(fields["port"]))
    with Relay(host, port) as relay:
        probe.agent.connect(f"wire-{arm}", **moved(fields, "127.0.0.1", relay.port))
        rows = probe.agent.query(f"wire-{arm}", probe.engine.echo(probe.twins.canary))
        probe.agent.disconnect(f"wire-{arm}")
        sent, received = bytes(relay.to_server), bytes(relay.to_client)
    words = probe.engine.echoed(rows, probe.twins.canary)
    if not all(words):
        return False, "the server did not answer with the canary, so its absence would prove nothing"
    return judge_wire(sent, received, words, arm, probe.mechanism.sign)


Sign = Callable[[bytes, bytes], tuple[bool, str]]
"""Of the bytes of both directions: whether they show that they are encrypted, in words."""


def judge_wire(
    sent: bytes, received: bytes, canary: str | tuple[str, str], arm: Arm, sign: Sign = tls.MECHANISM.sign
) -> tuple[bool, str]:
    """Whether the bytes of both directions are what the arm's name says. `canary`: one for both, or a word of each. Pure."""
    if not sent or not received:
        return False, NULL_SEEN
    words_ = (canary, canary) if isinstance(canary, str) else canary
    seen = sent.count(words_[0].encode()), received.count(words_[1].encode())
    size = f"{len(sent) + len(received)} bytes"
    if arm == "plain":
        if not all(seen):
            return False, f"the canary is not visible in {size} (compressed, or encrypted?)"
        return True, f"the canary is visible in both directions ({size})"
    if any(seen):
        return False, f"the canary is visible in clear: {seen[0]} times sent, {seen[1]} times received"
    shown, words = sign(sent, received)
    if not shown:
        return False, f"the canary is absent from {size}, but {words}"
    return True, f"the canary is absent; {words} in {size}"


# ── at rest ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def server_at_rest(probe: Probe, arm: Arm) -> tuple[bool, str]:
    """The server gives the canary back, and says of its own files what the arm's name says."""
    assert isinstance(probe.mechanism, AtRest)
    look = probe.look(arm)
    if look.query(f"SELECT word FROM {CANARY_TABLE}") != [[probe.twins.canary]]:
        return False, "the canary row is not there"
    return probe.mechanism.status(look)


def disk(probe: Probe, arm: Arm) -> tuple[bool, str]:
    """Every file of the arm, unlinked ones included: the canary is in one on the plain twin, in none on the encrypted.

    Temporary files are the ordeal's to judge: what leaks there is a finding.
    """
    assert isinstance(probe.mechanism, AtRest)
    look = probe.look(arm)
    volumes = [each.volume for each in probe.twins.by_arm.values() if each.volume]
    others = [path for each in volumes for path in (each.path, *each.backing)]
    found = at_rest(look, probe.mechanism, probe.twins.canary, others)
    passed, detail = heard_of_disk(found, look, probe.mechanism)
    if not passed:
        return passed, detail
    shown, words = probe.mechanism.structure(look)
    return shown, f"{detail}; {words}" if words else detail


def at_rest(look: Look, mechanism: AtRest, word: str, others: Iterable[Path] = ()) -> canary_scan.Seen:
    """Search everything that the arm's server has written: what its data rests in, and files only it still holds.

    `others`: places that are another arm's, which an agent with both arms' files open has too.
    """
    mechanism.flush(look.volume)
    pids = tree(look.server.pid or look.agent.pid)
    # Below the mount of a file system that encrypts everything is in clear; what it rests in is searched instead.
    device = look.volume.path.stat().st_dev if mechanism.loaded_once else None
    open_files = [
        (name, path)
        for name, path in canary_scan.held_open(pids, (*look.volume.backing, look.volume.path, *others))
        if device is None or path.stat().st_dev != device
    ]
    seen = canary_scan.search((*canary_scan.below(look.volume.backing), *open_files), word)
    seen.hits = {name.removeprefix(f"{look.volume.path}/"): count for name, count in seen.hits.items()}
    return seen


def heard_of_disk(seen: canary_scan.Seen, look: Look, mechanism: AtRest) -> tuple[bool, str]:
    """What the disk witness says of an arm that was searched."""
    passed, detail = judge_disk(seen, look.arm, lambda name: excused(name, look, mechanism))
    unseen = mechanism.searched(look.volume)
    return passed, f"{detail} ({unseen})" if unseen else detail


def excused(name: str, look: Look, mechanism: AtRest) -> str:
    """Why what lies in this file is a finding and no failure: it is temporary, or was asked to be left in clear. Empty: it is neither."""
    if is_temporary(name, look):
        return TEMPORARY
    left = mechanism.left_in_clear(look.rest) if look.arm == "encrypted" else {}
    by = next((by for pattern, by in left.items() if fnmatch(name, pattern)), "")
    return f"left in clear by {by}" if by else ""


def is_temporary(name: str, look: Look) -> bool:
    """Whether a file of an arm, named relative to its data, holds temporary data: by its name, or because nobody else could open it."""
    return name.endswith(" (deleted)") or any(fnmatch(name, each) for each in StoresData.of(look.rest.engine).temporary)


def judge_disk(seen: canary_scan.Seen, arm: Arm, excuse: Callable[[str], str] = lambda _: "") -> tuple[bool, str]:
    """Whether what lies on the disk is what the arm's name says. `excuse`: why a file is none of this witness's; empty: it is. Pure.

    What is excused is named all the same: the witness has seen it.
    """
    if not seen.size:
        return False, NULL_SEEN
    reasons = {name: excuse(name) for name in seen.hits}
    lasting = [name for name, reason in reasons.items() if not reason]
    others = [
        f"{named(names)} ({reason}; {times(sum(seen.hits[name] for name in names))})"
        for reason in dict.fromkeys(filter(None, reasons.values()))
        if (names := [name for name, each in reasons.items() if each == reason])
    ]
    if lasting:
        beside = f"; and in {'; in '.join(others)}" if others else ""
        return arm == "plain", f"the canary is in {named(lasting)} ({seen}){beside}"
    if others:
        return arm == "encrypted", f"of {seen} the canary is in none but {'; '.join(others)}"
    return arm == "encrypted", f"the canary is in none of {seen}"


def times(count: int) -> str:
    """`once`, `3 times`. Pure."""
    return "once" if count == 1 else f"{count} times"


def named(names: list[str]) -> str:
    """The first of them. Pure."""
    return f"{', '.join(names[:NAMED])}{', …' if len(names) > NAMED else ''}"


WITNESSES: dict[tuple[str, Witness], Callable[[Probe, Arm], tuple[bool, str]]] = {
    ("transit", "client"): client,
    ("transit", "server"): server_of_session,
    ("transit", "wire"): wire,
    ("rest", "client"): client,
    ("rest", "server"): server_at_rest,
    ("rest", "disk"): disk,
    ("column", "server"): lambda probe, arm: column_checks.server(probe.sight(arm)),
    ("column", "disk"): lambda probe, arm: column_checks.disk(probe.sight(arm)),
}


def negotiated(answer: Mapping[str, Any]) -> dict[str, str]:
    """Of a `connected` answer what belongs into the result. Pure."""
    names = {
        "protocol": "protocol",
        "cipher": "cipher",
        "group": "group",
        "peer_key": "peer_key",
        "library": "client_library",
        "driver_version": "driver",
        "checked": "checked",
        CLIENT_CERTIFICATE: CLIENT_CERTIFICATE,
    }
    found = {ours: str(answer[theirs]) for theirs, ours in names.items() if answer.get(theirs)}
    if answer.get("peer") or answer.get("peer_key"):
        found["verified"] = "yes" if answer.get("verified") else "no"
        if "resumed" in answer:
            found["resumed"] = "yes" if answer["resumed"] else "no"
    return found


def same_rows(twins: Twins, agent: Agent, program: Program, seed: int) -> str:
    """Why the arms do not return the same rows; empty when they do.

    Where operations change nothing both arms run the same ones; and the workload's own check query must answer alike.
    """
    if program.read_only:
        operations = 4 if program.per_request else 64
        if not program.per_request:
            # Of very long answers a few will do.
            one = agent.slice(next(iter(twins.connect)), 60, discard=0.0, seed=seed, operations=1)
            operations = max(1, min(operations, MOST_COMPARED // max(1, one.bytes_received)))
        answers = {arm: agent.slice(arm, 60, discard=0.0, seed=seed, operations=operations) for arm in twins.connect}
        for arm, answer in answers.items():
            if answer.errors:
                raise AgentError(
                    f"{arm} arm: {answer.errors} of {operations} operations failed before any load, the first by {answer.first_error}",
                    "statement",
                )
        plain, encrypted = answers["plain"], answers["encrypted"]
        if (plain.rows, plain.checksum) != (encrypted.rows, encrypted.checksum):
            return (
                f"the same {operations} operations gave {plain.rows} rows (checksum {plain.checksum}) in clear "
                f"and {encrypted.rows} ({encrypted.checksum}) encrypted"
            )
    if program.check:
        rows = {}
        for arm in encrypted_first(twins.connect):
            agent.connect(f"check-{arm}", **single(twins.connect[arm]))
            tables = program.tables(arm)
            rows[arm] = tables.read(agent.query(f"check-{arm}", tables.check, timeout=deadlines.check()))
            agent.disconnect(f"check-{arm}")
        if rows["plain"] != rows["encrypted"]:
            return f"the check query answers {rows['plain']} in clear and {rows['encrypted']} encrypted"
    return ""
