"""same_rows: the same operations in both arms -> whether they return the same rows."""

from __future__ import annotations

from ciphercost.host import deadlines
from ciphercost.load.agent import Agent
from ciphercost.load.program import Program
from ciphercost.load.trust import encrypted_first
from ciphercost.model.errors import AgentError
from ciphercost.prove.probe import single
from ciphercost.provision.server_pair import ServerPair

MOST_COMPARED = 128 << 20
"""Bytes of answers that are compared."""


def same_rows(pair: ServerPair, agent: Agent, program: Program, seed: int) -> str:
    """Why the arms do not return the same rows; empty when they do.

    Where operations change nothing both arms run the same ones; and the workload's own check query must answer alike.
    """
    if program.read_only:
        operations = 4 if program.per_request else 64
        if not program.per_request:
            # Of very long answers a few will do.
            one = agent.slice(next(iter(pair.connect)), 60, discard=0.0, seed=seed, operations=1)
            operations = max(1, min(operations, MOST_COMPARED // max(1, one.bytes_received)))
        answers = {arm: agent.slice(arm, 60, discard=0.0, seed=seed, operations=operations) for arm in pair.connect}
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
        for arm in encrypted_first(pair.connect):
            agent.connect(f"check-{arm}", **single(pair.connect[arm]))
            tables = program.tables(arm)
            rows[arm] = tables.read(agent.query(f"check-{arm}", tables.check, timeout=deadlines.check()))
            agent.disconnect(f"check-{arm}")
        if rows["plain"] != rows["encrypted"]:
            return f"the check query answers {rows['plain']} in clear and {rows['encrypted']} encrypted"
    return ""
