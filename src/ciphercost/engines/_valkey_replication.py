"""Replication of Valkey and Redis: a replica, what both servers report of its link, and a full synchronisation. Not an engine."""

from __future__ import annotations

from pathlib import Path

from ciphercost.engines.capabilities.replication import (
    Ask,
    CopyRequest,
    FullCopy,
    LinkEnd,
    Replicates,
    ReplicationLink,
)
from ciphercost.model.secret import reveal

STATE = "INFO replication"
LONG_S = 86_400
"""Seconds that a stopped link may live."""


class ValkeyReplication(Replicates):
    """By a replica that is told its primary while it runs."""

    copied_by = "a full synchronisation"
    link_word = "PSYNC"
    link_settings = ("tls-replication no", "tls-replication yes")
    same_port = False

    def replication_settings(self, number: int) -> dict[str, str]:  # noqa: ARG002 - both servers have the same
        """A stopped replica keeps its link, and a copy begins at once."""
        return {
            "repl-timeout": str(LONG_S),
            "repl-diskless-sync-delay": "0",
            "client-output-buffer-limit": "replica 0 0 0",
        }

    def make_replica(self, directory: Path) -> None:
        """Nothing: it throws away what it has when it joins."""

    def join(self, primary: Ask, replica: Ask, link: ReplicationLink) -> None:  # noqa: ARG002
        replica(f"CONFIG SET masterauth {reveal(link.to.password)}")
        replica(f"CONFIG SET tls-replication {'yes' if link.ca else 'no'}")
        for statement in _anew(link):
            replica(statement)

    def joined(self, primary: Ask, replica: Ask) -> str:
        state = _state(replica)
        if state.get("role") != "slave" or state.get("master_link_status") != "up":
            return f"its link is {state.get('master_link_status', 'not there')}"
        if not any(key.startswith("slave") and "state=online" in value for key, value in _state(primary).items()):
            return "the primary has no replica online"
        return ""

    def synchronous(self, primary: Ask, replica: Ask, *, on: bool) -> None:
        """Nothing: each client decides for itself, by WAIT."""

    def position(self, primary: Ask) -> int:
        return int(_state(primary).get("master_repl_offset", "0"))

    def applied(self, replica: Ask) -> int:
        return int(_state(replica).get("slave_repl_offset", "0"))

    def primary_end(self, primary: Ask, accepted: int) -> LinkEnd:  # noqa: ARG002
        return LinkEnd(None, "the primary does not report how a link is encrypted")

    def replica_end(self, replica: Ask) -> LinkEnd:
        state, rows = _state(replica), [row[0] for row in replica("CONFIG GET tls-replication")]
        setting = str(rows[-1]) if rows else "unknown"
        status = state.get("master_link_status", "not there")
        words = f"tls-replication {setting}, link {status}, port {state.get('master_port', 'unknown')}"
        return LinkEnd(setting == "yes" if status == "up" else None, words)

    def full_copy(self, request: CopyRequest) -> FullCopy:
        return FullCopy(statements=_anew(request.link), joins=True)


def _anew(link: ReplicationLink) -> list[str]:
    """Let the replica forget what it followed, so that it takes everything over again."""
    return ["REPLICAOF NO ONE", f"REPLICAOF {link.host} {link.port}"]


def _state(ask: Ask) -> dict[str, str]:
    """The fields of INFO."""
    text = "\n".join(str(row[0]) for row in ask(STATE))
    return dict(line.partition(":")[::2] for line in text.replace("\r", "").split("\n") if ":" in line)
