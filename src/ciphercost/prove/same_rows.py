"""same_rows: checks that the same operations return the same rows in both arms.

Some statements return something else each time: now(), uuid(), a page with a token. That is found by asking the same arm
again: only if an arm differs from itself, the arms may differ too, and then they are compared by `replies`.
"""

from __future__ import annotations

import time

from ciphercost.host import deadlines
from ciphercost.load import draws
from ciphercost.load.agent_messages import Reply
from ciphercost.load.headers import with_headers
from ciphercost.load.load_client import LoadClient
from ciphercost.load.plaintext_guard import encrypted_first
from ciphercost.load.program import Program
from ciphercost.model.errors import AgentError
from ciphercost.model.slices import AgentSlice
from ciphercost.model.spec import ARMS, Arm
from ciphercost.prove import pages, replies
from ciphercost.prove.replies import Verdict
from ciphercost.provision.server_pair import ServerPair

MOST_COMPARED = 128 << 20
"""Bytes of answers that are compared."""
ASKED = 8
"""Operations that each arm repeats if the arms' answers differ."""
REPETITIONS = 3
"""How often it repeats them, each time on a new connection."""
PATIENCE = 2.0
"""Seconds of an arm's operations that are compared, if they are slow."""
SECONDS = 60
"""Longest time for the operations that are compared."""
NOT_SQL = ("http", "resp", "memcached")
"""Drivers that speak no SQL."""


def same_rows(
    pair: ServerPair, agent: LoadClient, program: Program, seed: int, most_per_second: float = 0.0
) -> Verdict:
    """Whether the arms return the same rows, and what in them differs from call to call.

    If operations change nothing, both arms run the same ones. The workload's own check query must return the same
    answer too. `most_per_second`: operations per second that the server may get; 0: no limit. Raises AgentError.
    """
    verdict = Verdict()
    if program.read_only:
        verdict = _operations(pair, agent, program, seed, most_per_second)
    if program.check and not verdict.differs:
        rows = {}
        for arm in encrypted_first(pair.connect):
            agent.connect(f"check-{arm}", pair.connect[arm].single)
            tables = program.tables(arm)
            rows[arm] = tables.read(agent.query(f"check-{arm}", tables.check, timeout=deadlines.check()))
            agent.disconnect(f"check-{arm}")
        if rows["plain"] != rows["encrypted"] and {"csv", "table"} & program.parameters.keys():
            return Verdict(_places(rows["plain"], rows["encrypted"]))
        if rows["plain"] != rows["encrypted"]:
            return Verdict(
                f"the check query returns {rows['plain']} in the plain arm and {rows['encrypted']} in the encrypted arm"
            )
    return verdict


def _places(plain: list[list[str | None]], encrypted: list[list[str | None]]) -> str:
    """How the arms' answers to the check query differ, without the values, which are the user's. Pure."""
    if len(plain) != len(encrypted):
        return f"the check query returns {len(plain)} rows in the plain arm and {len(encrypted)} in the encrypted arm"
    columns = {
        place
        for one, other in zip(plain, encrypted, strict=True)
        for place, (value, other_value) in enumerate(zip(one, other, strict=True), start=1)
        if value != other_value
    }
    numbers = ", ".join(map(str, sorted(columns)))
    return f"the check query returns other values in the two arms, in column {numbers} of its {len(plain)} rows"


def _operations(pair: ServerPair, agent: LoadClient, program: Program, seed: int, most_per_second: float) -> Verdict:
    """Run the same operations in both arms and compare their rows."""
    operations = 4 if program.per_request else 64
    if most_per_second:
        operations = max(1, min(operations, int(most_per_second * SECONDS / 2)))

    def run(arm: Arm) -> AgentSlice:
        return agent.slice(arm, SECONDS, discard=0.0, seed=seed, operations=operations, rate=most_per_second)

    few = 2
    if not program.per_request:
        # Compare only a few very long answers, or slow ones. Both arms, since a driver may change a statement's format after
        # some runs.
        began = time.monotonic()
        longest = max(
            agent.slice(arm, SECONDS, discard=0.0, seed=seed, operations=1).bytes_received for arm in pair.connect
        )
        in_time = PATIENCE * len(pair.connect) / (time.monotonic() - began)
        connections = pair.connect["plain"].connections
        operations = max(1, min(operations, MOST_COMPARED // max(1, longest), int(connections * in_time)))
        few = max(1, min(ASKED, int(in_time)))
    answers = {arm: run(arm) for arm in pair.connect}
    for arm, answer in answers.items():
        if answer.errors:
            raise AgentError(
                f"{arm} arm: {answer.errors} of {operations} operations failed before any load; the first error: "
                f"{answer.first_error}",
                "statement",
            )
    plain, encrypted = answers["plain"], answers["encrypted"]
    if _same(plain, encrypted):
        return Verdict()
    differs = Verdict(
        f"the same {operations} operations returned {plain.rows} rows (checksum {plain.checksum}) in the "
        f"plain arm and {encrypted.rows} ({encrypted.checksum}) in the encrypted arm"
    )
    computed = any(script.computes for _, _, script in program.transactions)
    if not computed and not draws.drawable(program):
        return differs
    # First on new connections: what belongs to a session stays the same within it. Only the agent can run what it computes.
    verdict = Verdict() if computed else _repeated(pair, agent, program, seed, few, most_per_second)
    if verdict.differs or verdict.note:
        return verdict
    if any(variable.kind == "sequence" for _, _, script in program.transactions for variable in script.variables):
        return differs  # an arm's next operations draw other values
    # A clock with a resolution of a second, a value that few operations return: the agent's own operations, once more.
    again = {arm: run(arm) for arm in pair.connect}
    if all(_same(again[arm], answers[arm]) for arm in ARMS):
        return differs
    return Verdict(varies=("some rows",))


def _same(one: AgentSlice, other: AgentSlice) -> bool:
    return (one.rows, one.checksum) == (other.rows, other.checksum)


def _repeated(
    pair: ServerPair, agent: LoadClient, program: Program, seed: int, count: int, most_per_second: float
) -> Verdict:
    """Repeat `count` operations in each arm, arms in turn, and compare the answers. A server that refuses them here has
    answered nothing.
    """
    driver = pair.connect["plain"].driver
    sql = driver not in NOT_SQL
    operations = {arm: draws.operations(program, arm, count, seed, sql=sql) for arm in ARMS}
    texts = {arm: [[text for text, _ in operation] for operation in operations[arm]] for arm in ARMS}
    names = [
        f"statement {position}" if len(program.transactions) == 1 else f"{transaction}, statement {position}"
        for number, operation in enumerate(texts["plain"])
        for transaction in [program.transactions[number % len(program.transactions)][0]]
        for position in range(1, len(operation) + 1)
    ]
    answers: dict[Arm, list[list[Reply]]] = {arm: [[] for _ in names] for arm in ARMS}
    if any(sum(len(operation) for operation in texts[arm]) != len(names) for arm in ARMS):
        return Verdict()  # the arms run different statements
    for _ in range(REPETITIONS):
        for arm in encrypted_first(pair.connect):
            connection, current_headers = pair.connect[arm].single, ""
            agent.connect(f"again-{arm}", connection)
            try:
                for number, (text, headers) in enumerate(
                    statement for operation in operations[arm] for statement in operation
                ):
                    if headers != current_headers:
                        agent.disconnect(f"again-{arm}")
                        agent.connect(f"again-{arm}", with_headers(connection, headers))
                        current_headers = headers
                    answers[arm][number].append(agent.reply(f"again-{arm}", text))
                    time.sleep(1 / most_per_second if most_per_second else 0)
            except AgentError:
                return Verdict()
            finally:
                agent.disconnect(f"again-{arm}")
    if driver == "http":
        places = {arm: str(pair.connect[arm].authority) for arm in ARMS}
        return pages.compare([text for operation in texts["plain"] for text in operation], answers, places)
    return replies.compare(names, answers)
