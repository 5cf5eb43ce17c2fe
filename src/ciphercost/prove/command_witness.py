"""command_witness: proves what the commands of a cell send: each runs once, before any load, through a relay that captures its bytes.

A client that connects elsewhere too, as Kafka's do to the addresses that its brokers advertise, runs once more with its packets captured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ciphercost.host import wire_streams
from ciphercost.host.packet_capture import Capture
from ciphercost.host.ports import LOOPBACK, is_loopback
from ciphercost.host.process_sockets import Lookout
from ciphercost.host.relay import Relay
from ciphercost.host.wire_streams import Stream, with_data
from ciphercost.load.command_client import CommandClient, Outcome, Place
from ciphercost.model.errors import AgentError, RunError
from ciphercost.model.slices import UNSEEN, Proof
from ciphercost.model.spec import Arm

DNS = 53
ORDER: tuple[Arm, Arm] = ("encrypted", "plain")
"""The encrypted arm first: if it fails, nothing has been sent in clear."""


class Trial(msgspec.Struct, frozen=True):
    """What one execution of an arm's command showed."""

    outcome: Outcome
    passed: bool
    detail: str
    protocol: str = ""
    cipher: str = ""
    code: str = ""
    streams: Sequence[Stream] = ()
    """Its connections."""


def prove(client: CommandClient, canary: str, session: int) -> tuple[list[Proof], dict[Arm, Trial]]:
    """Run each arm's command once through a relay. Raises RunError if a command fails."""
    trials = {arm: _trial(client, arm, canary) for arm in ORDER}
    return [
        Proof(arm, "wire", trial.passed, trial.detail, session, trial.code) for arm, trial in trials.items()
    ], trials


def once(client: CommandClient, arm: Arm) -> Outcome:
    """Run an arm's command once, straight to its server. Raises RunError."""
    try:
        return client.once(arm)
    except AgentError as error:
        raise RunError(f"{arm} arm: {error}") from None


def _trial(client: CommandClient, arm: Arm, canary: str) -> Trial:
    """Through a relay if the command connects where it is told to and nowhere else, else with its packets captured."""
    why = "it does not have {port}, so it can't be sent through a relay"
    if client.uses_port(arm):
        try:
            tried, why = _by_relay(client, arm, canary)
        except RunError as error:
            if here(client.places[arm].host):
                raise
            why = f"through a relay on this machine it failed: {error}"
        else:
            if not why:
                return tried
    try:
        capture = Capture(canary.encode(), loopback=is_loopback(client.places[arm].host))
    except OSError as error:
        return _unseen(
            client,
            arm,
            f"{why}, and packets can't be captured here ({error.strerror}): run as root, or with CAP_NET_RAW",
        )
    with Lookout(client.pid) as lookout, capture:
        outcome = _run(client, arm, client.places[arm], "while its packets were captured")
    ours = {tcp.local_port for tcp in lookout.found}
    ports = {place.port for place in client.places.values()}
    streams = [stream for flow, stream in capture.flows.items() if flow.client[1] in ours or flow.server[1] in ports]
    trial = _judged(arm, outcome, streams, canary)
    lost = f", of which {capture.lost:,} were lost because this machine is busy" if capture.lost else ""
    return msgspec.structs.replace(trial, detail=f"{trial.detail}, by captured packets{lost} ({why})")


def _by_relay(client: CommandClient, arm: Arm, canary: str) -> tuple[Trial, str]:
    """Run it through a relay. Returns what it showed, and why that is not all; empty: it is."""
    streams: dict[int, Stream] = {}

    def watch(number: int, data: bytes, by_client: bool) -> None:
        streams.setdefault(number, Stream(canary.encode())).add(data, by_client=by_client)

    server = client.places[arm]
    name = here(server.host) or LOOPBACK
    listen = LOOPBACK if name == "localhost" else name
    with Relay(server.host, server.port, listen=listen, watch=watch) as relay, Lookout(client.pid) as lookout:
        place = Place(name, relay.port, server.ca)
        where = f"through a relay, {name}:{relay.port} in place of {server.host}:{server.port}"
        outcome = _run(client, arm, place, where)
    trial = _judged(arm, outcome, streams.values(), canary)
    past = sorted({f"{tcp.address}:{tcp.port}" for tcp in lookout.found if tcp.port not in (relay.port, DNS)})
    if past:
        return (
            trial,
            f"it also connects to {', '.join(past[:3])}, past the relay, as clients do whose server names its own address",
        )
    return trial, "" if trial.streams else "it sent nothing through the relay"


def _judged(arm: Arm, outcome: Outcome, streams: Iterable[Stream], canary: str) -> Trial:
    """What one execution showed by its connections."""
    used = with_data(streams)
    passed, detail, protocol, cipher = judge(arm, used, canary)
    return Trial(outcome, passed, detail, protocol, cipher, streams=used)


def here(host: str) -> str:
    """The host's own name, if the relay can have it too, so that a certificate for it fits; empty: it can't."""
    return host if host == "localhost" or is_loopback(host) else ""


def _run(client: CommandClient, arm: Arm, place: Place, where: str) -> Outcome:
    try:
        return client.once(arm, place=place)
    except AgentError as error:
        raise RunError(f"{arm} arm: {error} (the command was run once {where})") from None


def _unseen(client: CommandClient, arm: Arm, why: str) -> Trial:
    """Nothing shows what the command sends."""
    outcome = _run(client, arm, client.places[arm], "before the load")
    return Trial(outcome, passed=False, detail=why, code=UNSEEN)


def judge(arm: Arm, streams: Sequence[Stream], canary: str = "") -> tuple[bool, str, str, str]:
    """Whether the captured connections match the arm: (passed, detail, protocol, cipher). Pure."""
    if not streams:
        return False, "the command sent nothing to its server by TCP", "", ""
    many = f"{len(streams)} connection{'s' * (len(streams) != 1)}, {sum(stream.size for stream in streams):,} bytes"
    looks = [wire_streams.seen(stream) for stream in streams]
    canaries = sum(stream.canaries for stream in streams)
    if arm == "plain":
        if by_tls := [look for look in looks if look.protocol]:
            return False, f"{len(by_tls)} of {many} use TLS ({by_tls[0].protocol}), so this arm is not plain", "", ""
        if canary and not canaries:
            return (
                False,
                f"the canary '{canary}' is not readable in {many}, so its absence in the other arm would prove nothing",
                "",
                "",
            )
        return True, f"no TLS in {many}{f'; the canary is readable {canaries} times' if canary else ''}", "", ""
    if bad := [look for look in looks if not look.encrypted]:
        return False, f"{len(bad)} of {many} not encrypted: {bad[0].words}", "", ""
    if canaries:
        return False, f"the canary '{canary}' is readable {canaries} times", "", ""
    words = ", ".join(dict.fromkeys(look.words for look in looks))
    absent = "; the canary is absent" if canary else ""
    return True, f"{words} in all of {many}{absent}", looks[0].protocol, looks[0].cipher
