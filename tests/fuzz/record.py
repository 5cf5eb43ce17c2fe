"""Record what real servers send to the agent, as samples for its fuzz targets: `python -m fuzz.record [TARGET…]`.

A proxy notes what a server sends between two messages of the agent: a flight. The agent's requests are those that the target
itself sends (`agents/rust/src/fuzz/requests`). Needs the servers of `make test`; run it after a change of these requests.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import needs
from asking import raw
from ciphercost import engines
from ciphercost.engines import Server, StartRequest
from ciphercost.engines._web.family import Web
from ciphercost.host import supervisor
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from fuzz.agent import REQUESTS, SAMPLES
from listening import Listener, forward

SERVERS = {
    "postgres": ["postgresql"],
    "mysql": ["mysql", "mariadb"],
    "firebird": ["firebird"],
    "http-1": ["nginx@1.26", "apache@2.4"],
    "http-2": ["nginx@1.26", "apache@2.4"],
    "resp": ["valkey"],
    "memcached": ["memcached"],
}
HEAD = bytes(4)
"""Options and cut plan of a sample: none, and uncut."""
NEXT = b"<-->"
"""As `agents/rust/src/fuzz/servers.rs` says it."""
SCRAM_FINAL = 12
"""AuthenticationSASLFinal of PostgreSQL's protocol."""
PASSWORD_IN_CLEAR = b"R\0\0\0\x08\0\0\0\x03"
"""AuthenticationCleartextPassword."""
SECONDS = 60.0
"""Longest wait for an answer."""
DOCUMENTS = {"/page": 1000, "/text": 100}


class Recorder(Listener):
    """Forwards to a server; `flights` is what the server sent on the last connection."""

    def __init__(self, port: int) -> None:
        self._server = port
        self.flights: list[bytes] = []
        super().__init__()

    def serve(self, connection: socket.socket) -> None:
        self.flights, self._asked = [b""], False
        with socket.create_connection(("127.0.0.1", self._server)) as server:
            forward(connection, server, lambda source, data: self._note(data if source is server else b""))

    def _note(self, data: bytes) -> None:
        """What the server said; nothing: the agent has said something."""
        if data and self._asked and self.flights[-1]:
            self.flights.append(b"")
        self.flights[-1] += data
        self._asked = not data


@contextmanager
def started(name: str) -> Iterator[Server]:
    engine_name, _, version = name.partition("@")
    engine = engines.get(engine_name)
    installation = needs.here(engine_name, version)[0]
    run_id = run_directory.new_id()
    with supervisor.Supervisor(run_id) as run_supervisor:
        scratch = supervisor.scratch(run_id, run_supervisor)
        engine.initialise(installation, scratch / "data", run_supervisor)
        if isinstance(engine, Web):
            engine.lay_out(scratch / "data", scratch / "documents", DOCUMENTS, "canary")
        server = engine.start(StartRequest(installation, scratch / "data", run_supervisor, logs=scratch))
        yield server
        server.stop()


def record(target: str, name: str) -> bytes:
    """What a real server sends to this target's requests."""
    requests: list[dict[str, Any]] = [json.loads(line) for line in (REQUESTS / f"{target}.jsonl").open()]
    with started(name) as server, Agent() as agent:
        fields = server.connection()
        if target == "http-2":
            fields |= server.other_ports.get("http2-in-clear", {})
        with Recorder(fields.port) as recorder:
            for request in requests[1:]:  # `hello` has been said
                kept = {key: value for key, value in request.items() if key in ("type", "arm", "setup", "http")}
                reached = raw(request.get("arm", ""), fields | {"port": recorder.port})
                asked = reached | kept if request["type"] == "connect" else request
                if (answer := answered(agent, asked))["type"] == "error":
                    print(f"{target} {name}: {request['type']}: {answer['text']}")
        return HEAD + NEXT.join(without_scram(recorder.flights) if target == "postgres" else recorder.flights)


def answered(agent: Agent, request: dict[str, Any]) -> dict[str, Any]:
    """The agent's answer; of a slice, what follows the message that counting begins."""
    agent.write(json.dumps(request).encode() + b"\n")
    while True:
        answer: dict[str, Any] = json.loads(agent.line(SECONDS))
        if answer["type"] != "counting":
            return answer


def without_scram(flights: list[bytes]) -> list[bytes]:
    """The same as if the server had asked for the password in clear: its proof is for one nonce only, so it can't be replayed."""
    for number, flight in enumerate(flights):
        at = 0
        while at + 9 <= len(flight):
            length = 1 + int.from_bytes(flight[at + 1 : at + 5])
            if flight[at : at + 1] == b"R" and int.from_bytes(flight[at + 5 : at + 9]) == SCRAM_FINAL:
                return [PASSWORD_IN_CLEAR, flight[at + length :], *flights[number + 1 :]]
            at += length
    return flights


def main(targets: list[str]) -> None:
    for target in targets or SERVERS:
        for name in SERVERS[target]:
            (SAMPLES / target).mkdir(parents=True, exist_ok=True)
            (SAMPLES / target / name.partition("@")[0]).write_bytes(record(target, name))


if __name__ == "__main__":
    main(sys.argv[1:])
