"""same_rows: checks that the same operations return the same rows in both arms."""

from __future__ import annotations

from ciphercost.host import deadlines
from ciphercost.load.load_client import LoadClient
from ciphercost.load.program import Program
from ciphercost.load.trust import encrypted_first
from ciphercost.model.errors import AgentError
from ciphercost.prove.probe import single
from ciphercost.provision.server_pair import ServerPair

MOST_COMPARED = 128 << 20
"""Bytes of answers that are compared."""


def same_rows(pair: ServerPair, agent: LoadClient, program: Program, seed: int) -> str:
    """Why the arms do not return the same rows. Empty if they do.

    If operations change nothing, both arms run the same ones. The workload's own check query must return the same
    answer too.
    """
    if program.read_only:
        operations = 4 if program.per_request else 64
        if not program.per_request:
            # Compare only a few very long answers.
            one = agent.slice(next(iter(pair.connect)), 60, discard=0.0, seed=seed, operations=1)
            operations = max(1, min(operations, MOST_COMPARED // max(1, one.bytes_received)))
        answers = {arm: agent.slice(arm, 60, discard=0.0, seed=seed, operations=operations) for arm in pair.connect}
        for arm, answer in answers.items():
            if answer.errors:
                raise AgentError(
                    f"{arm} arm: {answer.errors} of {operations} operations failed before any load; the first error: "
                    f"{answer.first_error}",
                    "statement",
                )
        plain, encrypted = answers["plain"], answers["encrypted"]
        if (plain.rows, plain.checksum) != (encrypted.rows, encrypted.checksum):
            return (
                f"the same {operations} operations returned {plain.rows} rows (checksum {plain.checksum}) in the "
                f"plain arm and {encrypted.rows} ({encrypted.checksum}) in the encrypted arm"
            )
    if program.check:
        rows = {}
        for arm in encrypted_first(pair.connect):
            agent.connect(f"check-{arm}", **single(pair.connect[arm]))
            tables = program.tables(arm)
            rows[arm] = tables.read(agent.query(f"check-{arm}", tables.check, timeout=deadlines.check()))
            agent.disconnect(f"check-{arm}")
        if rows["plain"] != rows["encrypted"]:
            return (
                f"the check query returns {rows['plain']} in the plain arm and {rows['encrypted']} in the encrypted arm"
            )
    return ""
